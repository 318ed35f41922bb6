"""What the communication library adds to the links' time, per collective and group.

A family's `Curve` (fitted to measurements, ``presets/collectives``) gives the regimes that are
open to a collective among so many devices; here they become `Protocol` entries for the
reduce-scatters and all-gathers that costs are made of. Without curves the links alone count.

Over several nodes the network's regimes apply between them, and inside them the fastest that the
node's own curve reaches: NCCL pipelines chunks through both.
"""

from dataclasses import dataclass, replace

import numpy as np

from nest_core.documents import InputError, kept_per_edition, preset_names, require
from nest_core.hardware import Accelerator, Curve, load_curve
from nest_core.network import IDEAL, IntArray, Kind, Network, Protocol

__all__ = ["LINKS_ALONE", "Software", "most_nodes", "software_of"]

_TRANSFER = "all_to_all"  # NCCL's all-to-all is made of sends and receives


@dataclass(frozen=True, slots=True)
class Software:
    """Curves of the accelerators' own links and of the network between nodes.

    Parameters
    ----------
    inside, between : Curve or None
        None: links as they are.
    """

    inside: Curve | None = None
    between: Curve | None = None

    @property
    def reach(self) -> float:
        """No protocol reaches more than this part of a port's bandwidth."""
        return max(_reach(curve) for curve in (self.inside, self.between))

    @property
    def reach_outside(self) -> float:
        """Nor more than this between nodes."""
        return _reach(self.between)

    def lower_bounds(
        self,
        op: str,
        devices: int,
        fewest_nodes: int,
        latency_s: float,
        *,
        spans: bool,
        meshed: bool,
    ) -> tuple[tuple[float, float], ...]:
        """Lower bounds of a reduce-scatter or all-gather: seconds, and part of a port's rate.

        Parameters
        ----------
        fewest_nodes : int
            That so many devices fill; 1 if they may sit inside one node, 0 if that is not known.
        latency_s : float
            The fabric's least.
        spans : bool
            Whether the group may span several nodes. It then takes ``log2`` of them in steps; none
            if it may sit inside one, as a protocol between nodes may count no steps there.
        """
        lines = []
        if fewest_nodes <= 1:
            for entry in self.collectives(op, devices, 1, meshed=meshed):
                fewest = 1.0 if meshed else np.log2(devices)
                count = fewest if entry.steps_inside is None else entry.steps_inside
                starts = entry.base_s + count * (latency_s + entry.step_inside_s)
                lines.append((float(starts), entry.inside))
        if spans:
            steps = np.log2(fewest_nodes) if fewest_nodes > 1 else 0.0
            for entry in self.collectives(op, devices, devices, meshed=meshed):
                # Its steps leave the node; bytes may go inside or outside.
                fewest = steps if entry.steps_outside is None else min(steps, entry.steps_outside)
                starts = entry.base_s + fewest * (latency_s + entry.step_outside_s)
                lines.append((float(starts), max(entry.inside, entry.outside)))
        return tuple(lines)

    def collectives(
        self, op: str, devices: int, nodes: int, *, meshed: bool = False
    ) -> tuple[Protocol, ...]:
        """Regimes of a reduce-scatter or all-gather, or of half an all-reduce.

        Parameters
        ----------
        op : {"all_reduce", "reduce_scatter", "all_gather"}
        devices, nodes : int
            Of one group, and how many nodes it spans.
        meshed : bool
            Whether the link map tells which of a node's links so many devices can use; else the
            curve does.
        """
        return (
            IDEAL
            if devices == 1
            else self._regimes(op, devices, nodes, 2 if op == "all_reduce" else 1, meshed)
        )

    def of_groups(self, network: Network, kind: Kind, groups: IntArray) -> tuple[Protocol, ...]:
        """Regimes of one kind of call among groups where they sit."""
        nodes, meshed = most_nodes(network, groups), network.meshed_nodes
        return (
            self.transfers(nodes > 1, meshed=meshed)
            if kind == "ring"
            else self.collectives(kind, groups.shape[1], nodes, meshed=meshed)
        )

    def of_algorithm(
        self, network: Network, op: str, groups: IntArray, *, reduces: bool = False
    ) -> tuple[Protocol, ...]:
        """Regimes of an algorithm that a person names: it takes its own steps.

        Parameters
        ----------
        op : str
            All of an all-reduce, not a half.
        reduces : bool
            Whether switches do it; links then count up what goes up once.
        """
        size, nodes = groups.shape[1], most_nodes(network, groups)
        if self.inside is None or nodes > 1 or not reduces:
            regimes = self._regimes(op, size, nodes, 1, network.meshed_nodes, in_network=False)
            return tuple(replace(entry, steps_inside=None) for entry in regimes)
        rings = self.inside.terms(op, size, in_network=False)
        # A ring sends 2 (n - 1) / n of the message.
        return tuple(
            Protocol(
                term.base_s,
                step_inside_s=term.step_s,
                inside=term.efficiency * size / (2 * (size - 1)),
            )
            for term in self.inside.terms(op, size)
            if term not in rings
        )

    def transfers(self, outside: bool, *, meshed: bool = False) -> tuple[Protocol, ...]:
        """Regimes of point-to-point transfers, some of which leave their node or none."""
        return self._regimes(_TRANSFER, 2, 2 if outside else 1, 1, meshed)

    def _regimes(
        self,
        op: str,
        devices: int,
        nodes: int,
        parts: int,
        meshed: bool,
        *,
        in_network: bool = True,
    ) -> tuple[Protocol, ...]:
        if nodes == 1:
            if self.inside is None:
                return IDEAL
            share = self.inside.share(devices) if meshed else 1.0
            return tuple(
                Protocol(
                    base_s=term.base_s / parts,
                    step_inside_s=term.step_s,
                    inside=term.efficiency / share,
                    steps_inside=term.steps / parts,
                )
                for term in self.inside.terms(op, devices, in_network=in_network)
            )
        if self.between is None:
            return IDEAL
        while devices % nodes:  # a group that straddles nodes unevenly counts as more nodes
            nodes += 1
        reached, step = 1.0, 0.0
        if self.inside is not None:
            rings = self.inside.terms(op, devices, nodes=nodes)
            reached = max(term.efficiency for term in rings)
            step = min(term.step_s for term in rings)
        return tuple(
            Protocol(
                base_s=term.base_s / parts,
                step_inside_s=step,
                step_outside_s=term.step_s,
                inside=reached,
                outside=term.efficiency,
                steps_inside=devices // nodes - 1,
                steps_outside=None if term.algorithm == "ring" else term.steps / parts,
                tree=self.between.trees and op == "all_reduce" and nodes == 2,
            )
            for term in self.between.terms(op, devices, nodes=nodes, in_network=in_network)
        )


def most_nodes(network: Network, groups: IntArray) -> int:
    """Return the most nodes that any of the groups spans; a torus has no nodes to leave."""
    if network.torus is not None:
        return 1
    node = network.node[groups]
    if groups.shape[1] > 2:  # two are apart in either order
        node = np.sort(node, axis=1)
    return int((node[:, 1:] != node[:, :-1]).sum(axis=1).max(initial=0)) + 1


LINKS_ALONE = Software()


def _reach(curve: Curve | None) -> float:
    """Return the largest part of the bandwidth that any regime reaches for any group.

    An in-network regime moves ``1 + 1/n`` of a message where a ring moves ``2 (n - 1)/n``.
    """
    return (
        1.0
        if curve is None
        else max(
            max(regime.efficiency) * (2.0 if regime.algorithm == "in_network" else 1.0)
            for regime in curve.regimes
        )
    )


def software_of(accelerator: Accelerator) -> Software:
    """Return what the accelerator's communication library makes of the links."""
    inside = _curve(accelerator.links, "nvlink")
    between = _curve(accelerator.network, "network")
    return Software(
        inside and inside.reaching(accelerator.links_reach),
        between and between.reaching(accelerator.network_reach),
    )


@kept_per_edition(64)
def _curve(name: str | Curve, link: str) -> Curve | None:
    """Return the fitted curve of a name, or the measured one; None without one."""
    if isinstance(name, Curve):
        return name
    field = f"accelerator.collectives.{'links' if link == 'nvlink' else 'network'}"
    if not name:
        return None
    if name not in preset_names("collectives"):
        raise InputError(
            field,
            "must be one of the presets",
            name,
            "pick " + ", ".join(preset_names("collectives")),
        )
    curve = load_curve(name)
    require(curve.link == link, field, f"must be a curve of kind {link}", name, "pick another")
    return curve
