"""One collective against message size: our curve, the fabric's bound, measured points.

*Ideal links* have the fabric's own latencies and all of its bandwidth. A *library* adds what a
curve of `presets/collectives` says: its base once, its software's latency per step, and the share
of the links' bandwidth that each of its regimes reaches; contention stays counted link by link. In
a node with a switch, on a ring, that is `Curve.seconds` again. Between nodes the regimes are those
of the network's curve (`LIBRARY_NETWORK`), which must not outrun the node's. The algorithm
``library`` is the price that plans carry.

The *bound* is the bus bandwidth of an endless message over ideal links, by the best algorithm.
All sizes are priced at once: a time is a minimum of affine functions of the size, but for the
floor of exchanges whose far messages travel while near ones are sent.

Units: seconds, bytes, bytes/s. Message sizes as nccl-tests counts them (`collective`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nest_core.costs.software import LINKS_ALONE, Software, most_nodes
from nest_core.documents import (
    MICROSECOND,
    InputError,
    load_toml,
    preset_names,
    preset_path,
    require,
)
from nest_core.network import (
    ALGORITHMS,
    IDEAL,
    IN_NETWORK,
    KINDS,
    Concurrent,
    FloatArray,
    IntArray,
    Network,
    algorithm_stages,
    bus_factor,
    by_algorithm,
    check_op,
    collective,
    member_groups,
    message_time,
    price_phases,
)

__all__ = [
    "LIBRARY_NETWORK",
    "SIZES",
    "CollectiveSweep",
    "Measured",
    "load_measured",
    "sweep",
]

SIZES: FloatArray = 2.0 ** np.arange(12, 32.25, 0.5)
"""Half octaves from 4 KiB to 4 GiB."""

LIBRARY_NETWORK = "network-infiniband"
"""The curve between nodes for families that state none."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveSweep:
    """A collective at many sizes.

    Parameters
    ----------
    op : str
    devices, nodes : int
        Of one group; a torus has no nodes.
    size_bytes, seconds : float array (sizes,)
    algorithms : tuple of str
        What was taken at each size.
    bound_Bps : float
        Bus bandwidth that the links would allow.
    """

    op: str
    devices: int
    nodes: int
    size_bytes: FloatArray
    seconds: FloatArray
    algorithms: tuple[str, ...]
    bound_Bps: float

    @property
    def bus_Bps(self) -> FloatArray:
        """Return bus bandwidth at each size."""
        return self.bus_of(self.size_bytes, self.seconds)

    def bus_of(self, size_bytes: FloatArray, seconds: FloatArray) -> FloatArray:
        """Return bus bandwidth of other times of the same collective."""
        return np.asarray(bus_factor(self.op, self.devices) * size_bytes / seconds)

    @property
    def bound_s(self) -> FloatArray:
        """Return time at each size if nothing but the links' bandwidth counted."""
        return np.asarray(bus_factor(self.op, self.devices) * self.size_bytes / self.bound_Bps)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Measured times of one collective among the devices of one node.

    Parameters
    ----------
    accelerator, source : str
    size_bytes, seconds : float array (points,)
    """

    accelerator: str
    source: str
    size_bytes: FloatArray
    seconds: FloatArray


def sweep(
    network: Network,
    op: str,
    size: int,
    *,
    stride: int = 1,
    concurrent: Concurrent = "one",
    algorithm: str = "library",
    software: Software = LINKS_ALONE,
    sizes: FloatArray = SIZES,
) -> CollectiveSweep:
    """Price a collective at all sizes.

    Parameters
    ----------
    size, stride, concurrent, algorithm
        As `nest_core.network.collective.collective` takes them.
    software : Software
        What a library reaches inside nodes and between them. Its in-network reduction is open to
        ``fastest`` where its curve says so.

    Raises
    ------
    InputError
        Where the fabric has no such groups, the algorithm does not suit them, or the library
        has no curve for the operation.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> network = collapse(Hierarchical("node", (Tier("node", 8, 100e9, 1e-6),)))
    >>> found = sweep(network, "all_reduce", 8, sizes=np.array([800e6]))
    >>> round(float(found.seconds[0]) * 1e3, 3), found.algorithms, found.bound_Bps / 1e9
    (14.006, ('hierarchical_halving',), 100.0)
    """
    check_op(op)
    groups = member_groups(network.devices, size, stride=stride, concurrent=concurrent)
    nodes = 0 if network.torus is not None else most_nodes(network, groups)
    local = software.inside
    reduces = local is not None and local.reduces_in_network(op, size, nodes)
    ways = _Ways(network, op, groups, software)
    open_to = [name for name in ALGORITHMS[op] if reduces or name not in IN_NETWORK]
    if algorithm == "library" and op in KINDS:
        seconds, chosen = _by_library(network, op, groups, software, sizes)
    else:
        free = algorithm in ("fastest", "library")
        chosen = ways.fastest(open_to, sizes) if free else (algorithm,) * len(sizes)
        seconds = np.zeros(len(sizes))
        for name in dict.fromkeys(chosen):
            here = np.array([entry == name for entry in chosen])
            seconds[here] = ways.seconds(name, sizes[here])
    link_map = min(way for name in (*open_to, *chosen) if (way := ways.per_byte(name)) > 0)
    return CollectiveSweep(op, size, nodes, sizes, seconds, chosen, bus_factor(op, size) / link_map)


def _by_library(
    network: Network, op: str, groups: IntArray, software: Software, sizes: FloatArray
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return what plans are priced by, and by which algorithm, at every size."""
    kind, parts = KINDS[op]
    sending = software.of_groups(network, kind, groups)
    times = by_algorithm(network, kind, groups, sending)
    names = list(times)
    best = np.argmin([way.seconds(sizes[:, None]).max(axis=1) for way in times.values()], axis=0)
    seconds = parts * message_time(network, kind, groups, sending).seconds(sizes[:, None]).max(
        axis=1
    )
    return np.asarray(seconds), tuple(names[index] for index in best)


def load_measured(name: str, op: str, devices: int) -> Measured | None:
    """Return the measured times of an accelerator family; None where there are none."""
    if name not in preset_names("measured"):
        return None
    document = load_toml(preset_path("measured", f"{name}.toml"))
    of_group = (
        Measured(
            document["accelerator"],
            document["source"],
            np.array(series["bytes"], np.float64),
            np.array(series["time_us"], np.float64) * MICROSECOND,
        )
        for series in document["series"]
        if (series["collective"], series["devices"]) == (op, devices)
    )
    return next(of_group, None)


class _Ways:
    """Algorithms of one collective, each priced once: over ideal links and by the library."""

    def __init__(
        self,
        network: Network,
        op: str,
        groups: IntArray,
        software: Software,
    ) -> None:
        self._network, self._op, self._groups, self._software = network, op, groups, software
        self._priced: dict[str, tuple[FloatArray, FloatArray, FloatArray, float]] = {}

    def seconds(self, name: str, sizes: FloatArray) -> FloatArray:
        """Return the seconds of the slowest group."""
        alpha, beta, floor, _ = self._price(name)
        affine = alpha[:, None, :] + beta[:, None, :] * sizes[:, None]
        return np.asarray(np.maximum(affine.min(axis=0), floor).max(axis=1))

    def per_byte(self, name: str) -> float:
        """Return seconds per byte over ideal links; 0 where the algorithm does not suit."""
        try:
            return self._price(name)[3]
        except InputError:
            return 0.0

    def fastest(self, names: Iterable[str], sizes: FloatArray) -> tuple[str, ...]:
        """Return the fastest that suits, at every size."""
        seconds: dict[str, FloatArray] = {}
        refusals: list[InputError] = []
        for name in names:
            try:
                seconds[name] = self.seconds(name, sizes)
            except InputError as error:
                refusals.append(error)
        if not seconds:
            raise refusals[-1]
        suited = list(seconds)
        return tuple(suited[index] for index in np.argmin(np.stack(list(seconds.values())), axis=0))

    def _price(self, name: str) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        if name not in self._priced:
            network, count = self._network, len(self._groups)
            phases = [
                phase
                for stage in algorithm_stages(self._op, name, network, self._groups)
                for phase in stage
            ]
            sending = self._software.of_algorithm(
                network, self._op, self._groups, reduces=name in IN_NETWORK
            )
            require(
                sending,
                "algorithm",
                "must be one that the library has measured here",
                name,
                "choose ideal links or another algorithm",
            )
            time = price_phases(network.link_map, phases, count, (*IDEAL, *sending))
            floor = np.zeros(count)
            if any(phase.steps.min() < 1 <= phase.steps.max() for phase in phases):
                # Far messages travel while near ones are sent: `collective` knows their floor.
                floor += collective(
                    network,
                    self._op,
                    0.0,
                    self._groups.shape[1],
                    stride=int(self._groups[0, 1] - self._groups[0, 0]),
                    concurrent="all" if count > 1 else "one",
                    algorithm=name,
                    protocols=sending,
                ).time_s
            self._priced[name] = (
                time.alpha_s[1:],
                time.beta_s_per_byte[1:],
                floor,
                float(time.beta_s_per_byte[0].max()),
            )
        return self._priced[name]
