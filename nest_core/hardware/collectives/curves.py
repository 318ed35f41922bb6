"""What a collective takes on one kind of link, as a minimum of affine functions of its bytes.

NCCL picks the fastest of its protocols and algorithms, so::

    seconds(op, n, m) = min over regimes r of
        base_r[op] + steps(op, n) * (latency + step_r) + sent_bytes(op, n, m) / rate_r(op, n)
    rate_r(op, n) = efficiency_r[op] * used / (1 + own_block[op] * share(n) / (n - 1))
    used = link rate * share(n)

``latency`` is the fabric's own, one way; the preset states the value that the fit assumed, and
``step_r`` is what software adds to it at every step. ``own_block`` is the time for a rank's own
block, 1/n of the message, which crosses no link but is copied or reduced in memory: relative to
what is sent, (n-1)/n, that is 1/(n-1). ``share`` is the part of a device's links that rings over
n devices can use; 1 behind switches, less on directly wired nodes (memory is as fast as ever,
hence the share in the denominator).

In-network reduction (NVLS) is a regime with its own bytes: a rank draws the reduced m/n and
receives all m by multicast, m (1 + 1/n) in total, in two steps. Between nodes (SHARP) a device's
port sends its part of m up once and receives it once, where a ring sends 2 (N-1)/N of it over N
nodes. A reduce-scatter that way sends all of m up and an all-gather receives all of it, where a
ring sends and receives (N-1)/N: switches spare those two steps, not bytes. A regime serves the
collectives that it states an efficiency for.

Over several nodes NCCL pipelines chunks through all links, so the slowest link counts and not
their sum; base and steps are those of the network, and steps inside nodes are added to them
(`steps`, after NCCL's ``tuning.cc``).

Units: seconds, bytes, bytes/s per device and direction.
References: NVIDIA/nccl@5067397 ``src/graph/tuning.cc``; nccl-tests ``PERFORMANCE.md``.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from nest_core.documents.errors import InputError, require
from nest_core.hardware.collectives.measurements import OPS

__all__ = ["Curve", "FloatArray", "Regime", "Term", "between_bytes", "sent_bytes", "steps"]

FloatArray = npt.NDArray[np.float64]
Algorithm = Literal["ring", "in_network"]

IN_NETWORK_STEPS = 2
"""In-network reduction: data go up to the switch and come down again."""


@dataclass(frozen=True, slots=True)
class Regime:
    """One protocol or algorithm: cheap to start and slow, or dear to start and fast.

    Parameters
    ----------
    name : str
    algorithm : {"ring", "in_network"}
        ``in_network`` regimes serve all-reduce, between nodes also its halves.
    base_s : tuple of float
        Per entry of `OPS`: paid once.
    step_s : float
        Per step, on top of the fabric's latency.
    efficiency : tuple of float
        Per entry of `OPS`: share of the link rate reached in the limit of many devices; 0 where an
        ``in_network`` regime does not serve it.
    """

    name: str
    algorithm: Algorithm
    base_s: tuple[float, ...]
    step_s: float
    efficiency: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A regime for one collective among n devices, as a planner combines it with contention:

    ``base_s + steps * (fabric latency + step_s) + transfer seconds / efficiency``, the transfer
    seconds being those of `sent_bytes` over the most loaded link at its full rate. For
    in-network regimes the efficiency is relative to the ring's bytes and may exceed 1.
    """

    base_s: float
    steps: int
    step_s: float
    efficiency: float
    algorithm: Algorithm = "ring"


@dataclass(frozen=True, slots=True)
class Curve:
    """All regimes of one accelerator family on one kind of link.

    Parameters
    ----------
    name : str
    link : {"nvlink", "network"}
        Inside a node, or between nodes.
    latency_s : float
        The fabric's latency per step that the fit assumed.
    own_block : tuple of float
        Per entry of `OPS`.
    regimes : tuple of Regime
    in_network_from : int or None
        The smallest number of devices for which in-network reduction is chosen; between nodes, of
        nodes.
    shares : tuple of (int, float)
        Share of the links that n devices can use, for directly wired nodes; others 1.
    bandwidths : tuple of (str, float)
        Link rate, bytes/s per device and direction, by the word that names an accelerator (or
        a kind of network).
    trees : bool
        Whether all-reduces over two nodes were measured to run along trees.
    """

    name: str
    link: Literal["nvlink", "network"]
    latency_s: float
    own_block: tuple[float, ...]
    regimes: tuple[Regime, ...]
    in_network_from: int | None = None
    shares: tuple[tuple[int, float], ...] = ()
    bandwidths: tuple[tuple[str, float], ...] = ()
    trees: bool = False

    def share(self, devices: int) -> float:
        """Part of a device's links that ``devices`` of them can use."""
        return dict(self.shares).get(devices, 1.0)

    def terms(
        self, op: str, devices: int, *, nodes: int = 1, in_network: bool = True
    ) -> tuple[Term, ...]:
        """Return the regimes open to a collective, for a planner to take the minimum over.

        Parameters
        ----------
        op : str
            One of `OPS`.
        devices, nodes : int
            For a network curve ``nodes`` counts; ``steps`` are then those between nodes.
        in_network : bool
            False leaves in-network reduction out.
        """
        index = _op_index(op)
        _check_group(devices, nodes)
        inside, between = steps(op, devices, nodes)
        rows = []
        for regime in self.regimes:
            if regime.algorithm == "in_network":
                if not (in_network and self.reduces_in_network(op, devices, nodes)):
                    continue
                count = IN_NETWORK_STEPS
                around = (2 if op == "all_reduce" else 1) * (nodes - 1) / nodes
                scale = around if nodes > 1 else 2 * (devices - 1) / (devices + 1)
            else:
                count = between if self.link == "network" else inside
                share = self.share(devices) if self.link == "nvlink" else 1.0
                scale = share / (1 + self.own_block[index] * share / (devices - 1))
            efficiency = regime.efficiency[index] * scale
            rows.append(
                Term(regime.base_s[index], count, regime.step_s, efficiency, regime.algorithm)
            )
        return tuple(rows)

    def reduces_in_network(self, op: str, devices: int, nodes: int = 1) -> bool:
        """Whether the family's switches reduce for this collective."""
        first, between = self.in_network_from, self.link == "network"
        served = op == "all_reduce" or between
        served = served and any(
            regime.algorithm == "in_network" and regime.efficiency[_op_index(op)] > 0
            for regime in self.regimes
        )
        return (
            False
            if not served or first is None or (nodes > 1) is not between
            else (nodes if between else devices) >= first
        )

    @property
    def top(self) -> float:
        """The largest share of the link rate that any ring reaches in the limit."""
        rings = [regime for regime in self.regimes if regime.algorithm == "ring"]
        return max(max(regime.efficiency) for regime in rings)

    def reaching(self, factor: float, all_to_all: float = 1.0, in_network: float = 1.0) -> Self:
        """Return the same curve where links carry ``factor`` of what they did, at most all of it.

        Of that, all-to-alls and switches that reduce reach such a part again.
        """
        if factor == all_to_all == in_network == 1.0:
            return self
        factor = min(factor, 1.0 / self.top)
        exchange = OPS.index("all_to_all")

        def scaled(regime: Regime) -> Regime:
            factor_in_network = in_network if regime.algorithm == "in_network" else 1.0
            shares = [share * factor * factor_in_network for share in regime.efficiency]
            shares[exchange] *= all_to_all
            return replace(regime, efficiency=tuple(min(1.0, share) for share in shares))

        return replace(self, regimes=tuple(map(scaled, self.regimes)))

    def seconds(
        self,
        op: str,
        devices: int,
        size_bytes: npt.ArrayLike,
        bandwidth_Bps: float,
        *,
        latency_s: float | None = None,
        in_network: bool = True,
    ) -> FloatArray:
        """Seconds of a collective inside a node. Shape: that of ``size_bytes``.

        Parameters
        ----------
        op : str
            One of `OPS`.
        devices : int
            At least 2.
        size_bytes : array_like of float
            The message, counted as nccl-tests counts it.
        bandwidth_Bps : float
            Rate of one device's links, one direction.
        latency_s : float, optional
            The fabric's latency per step; by default the one that the fit assumed.
        in_network : bool
            False leaves in-network reduction out.

        Examples
        --------
        >>> regime = Regime("only", "ring", (10e-6,) * 4, 1e-6, (0.5,) * 4)
        >>> curve = Curve("toy", "nvlink", 0.0, (0.0,) * 4, (regime,))
        >>> curve.seconds("all_gather", 2, [0, 2e9], 100e9).round(6).tolist()
        [1.1e-05, 0.020011]
        """
        terms = self.terms(op, devices, in_network=in_network)
        latency = self.latency_s if latency_s is None else latency_s
        alpha = np.array([term.base_s + term.steps * (latency + term.step_s) for term in terms])
        rate = np.array([term.efficiency for term in terms]) * _positive(bandwidth_Bps)
        sent = sent_bytes(op, devices, np.asarray(size_bytes, dtype=np.float64))
        return np.asarray(np.min(alpha + sent[..., None] / rate, axis=-1))

    def seconds_between(
        self,
        op: str,
        devices: int,
        nodes: int,
        size_bytes: npt.ArrayLike,
        bandwidth_Bps: float,
        local: Self,
        local_bandwidth_Bps: float,
    ) -> FloatArray:
        """Seconds over several nodes; ``self`` is the network's curve, ``local`` the node's."""
        terms = self.terms(op, devices, nodes=nodes)
        size = np.asarray(size_bytes, dtype=np.float64)
        inside_s, per_byte_inside = local.inside(op, devices, nodes, local_bandwidth_Bps)
        per_byte = between_bytes(op, devices, nodes) / _positive(bandwidth_Bps)
        alpha = np.array(
            [t.base_s + t.steps * (self.latency_s + t.step_s) + inside_s for t in terms]
        )
        beta = np.array([max(per_byte / term.efficiency, per_byte_inside) for term in terms])
        return np.asarray(np.min(alpha + size[..., None] * beta, axis=-1))

    def inside(
        self, op: str, devices: int, nodes: int, bandwidth_Bps: float
    ) -> tuple[float, float]:
        """Return what a collective over several nodes takes inside them: seconds, seconds per
        byte.
        """
        if devices == nodes:
            return 0.0, 0.0
        count, _ = steps(op, devices, nodes)
        ring = self.terms(op, devices, nodes=nodes)
        fastest = max(term.efficiency for term in ring) * _positive(bandwidth_Bps)
        start = count * (self.latency_s + min(term.step_s for term in ring))
        return start, inside_bytes(op, devices, nodes) / fastest


def steps(op: str, devices: int, nodes: int = 1) -> tuple[int, int]:
    """Return steps inside nodes and between them.

    A ring takes 2(n-1) for all-reduce and n-1 for all-gather and reduce-scatter; a direct
    all-to-all sends to all at once. Between nodes all-reduce runs along trees of depth
    log2(nodes), down chains inside a node; the others keep to rings (NCCL ``tuning.cc``).

    Examples
    --------
    >>> steps("all_reduce", 8), steps("all_reduce", 16, nodes=2), steps("all_to_all", 8)
    ((14, 0), (14, 2), (1, 0))
    """
    per_node = devices // nodes
    between = nodes - 1
    if op == "all_reduce":
        return 2 * (per_node - 1), 2 * math.ceil(math.log2(nodes))
    return (
        (1 if per_node > 1 else 0, between)
        if op == "all_to_all"
        else (devices - 1 - between, between)
    )


def sent_bytes(op: str, devices: int, size_bytes: FloatArray) -> FloatArray:
    """Bytes that a device sends: 2(n-1)/n of the message for all-reduce, else (n-1)/n.

    Raises
    ------
    InputError
        If there are fewer than two devices, or the collective is not one of `OPS`.
    """
    _op_index(op)
    _check_group(devices, 1)
    return (2.0 if op == "all_reduce" else 1.0) * (devices - 1) / devices * size_bytes


def between_bytes(op: str, devices: int, nodes: int) -> float:
    """Bytes that a device sends out of its node, per byte of the message."""
    share = (nodes - 1) / nodes
    return (
        share
        if op == "all_to_all"
        else (2.0 if op == "all_reduce" else 1.0) * share * nodes / devices
    )


def inside_bytes(op: str, devices: int, nodes: int) -> float:
    """Bytes that a device sends to its node's others, per byte of the message."""
    return (
        (devices // nodes - 1) / devices
        if op == "all_to_all"
        else (2.0 if op == "all_reduce" else 1.0) * (devices - 1) / devices
    )


def _check_group(devices: int, nodes: int) -> None:
    require(devices >= 2, "devices", "must be at least 2", devices, "a collective needs a peer")
    require(
        nodes >= 1 and devices % nodes == 0,
        "nodes",
        f"must divide {devices} devices evenly",
        nodes,
        "give another",
    )


def _op_index(op: str) -> int:
    try:
        return OPS.index(op)
    except ValueError as error:
        raise InputError("op", f"must be one of {', '.join(OPS)}", op, "choose one") from error


def _positive(bandwidth_Bps: float) -> float:
    require(
        math.isfinite(bandwidth_Bps) and bandwidth_Bps > 0,
        "bandwidth_Bps",
        "must be positive",
        bandwidth_Bps,
        "give a link's rate",
    )
    return bandwidth_Bps
