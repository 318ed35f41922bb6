"""Classes of devices, groups, flows and links that live through the same iteration.

Replicas of a plan do the same on links that look the same. Colours are refined until they are
equitable: two devices of one class belong to groups of the same classes, two groups have members
and flows of the same classes, two flows cross links of the same classes, and two links carry flows
of the same classes. All that the engine knows of a member then follows from its class, and one
member stands for all of them; the result is that of the whole, not an approximation.

References
----------
Berkholz, Bonsma and Grohe, "Tight lower and upper bounds for the complexity of canonical colour
refinement", Theory of Computing Systems 60, 2017.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nest_core.network import FloatArray, IntArray
from nest_core.network.link_map import scrambled

__all__ = ["Classes", "Flows", "Members", "classes_of"]

_Colours = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Which device belongs to which group; both of shape (memberships,)."""

    group: IntArray
    device: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Flows and the links that they cross.

    Parameters
    ----------
    group : int array (flows,)
        That a flow works for.
    flow, link : int array (crossings,)
    weight : float array (crossings,)
        Bytes on the link per byte of the flow.
    """

    group: IntArray
    flow: IntArray
    link: IntArray
    weight: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The class of every device, group, flow and link, numbered from 0 by first appearance."""

    device: IntArray
    group: IntArray
    flow: IntArray
    link: IntArray


def classes_of(
    members: Members,
    flows: Flows,
    labels: tuple[tuple[npt.NDArray[np.generic], ...], ...],
    *,
    is_whole: bool = False,
) -> Classes:
    """Return the coarsest equitable classes that tell labels apart.

    Parameters
    ----------
    labels : columns (devices,), (groups,), (flows,) and (links,)
        What is known to differ: stages, axes, phases, capacities.
    is_whole : bool
        Whether everything is a class of its own.
    """
    if is_whole:
        return Classes(*(np.arange(len(columns[0])) for columns in labels))
    device, group, flow, link = map(_coloured, labels)
    weight = _coloured((flows.weight,))
    number = 0
    while (now := sum(len(np.unique(of)) for of in (device, group, flow, link))) > number:
        number = now
        group = _mixed(
            _mixed(group + _sums(members.group, device[members.device], len(group)))
            + _sums(flows.group, flow, len(group))
        )
        flow = _mixed(
            _mixed(flow + group[flows.group])
            + _sums(flows.flow, _mixed(link[flows.link] + weight), len(flow))
        )
        link = _mixed(link + _sums(flows.link, _mixed(flow[flows.flow] + weight), len(link)))
        device = _mixed(device + _sums(members.device, group[members.group], len(device)))
    return Classes(*map(_numbered, (device, group, flow, link)))


def _coloured(columns: tuple[npt.NDArray[np.generic], ...]) -> _Colours:
    """Return a colour for every row."""
    colours = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        colours = _mixed(colours + np.asarray(column, np.float64).view(np.uint64))
    return colours


def _sums(into: IntArray, colours: _Colours, size: int) -> _Colours:
    """Add colours up, whatever their order; sums of mixed numbers tell multisets apart."""
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, into, _mixed(colours))
    return sums


def _mixed(colours: _Colours) -> _Colours:
    """Return another number for every number; zero has one too."""
    return scrambled(colours + np.uint64(0x9E3779B97F4A7C15))


def _numbered(labels: npt.NDArray[np.generic]) -> IntArray:
    """Number equal labels alike, in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
