"""A plan as pictures show it: whose stage every device is, and what one replica sends to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nest_core.costs.placement import rank_mapping_of
from nest_core.explain.loads import Loads
from nest_core.network import Network
from nest_core.report.picture.theme import STAGE_STEPS

if TYPE_CHECKING:
    from nest_core.costs import Plan

__all__ = ["PlanOnDevices", "load_look", "plan_on_devices", "stage_look", "tier_busy"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_LOAD_STEPS = 6
_NAMES = {"tp": "tensor", "cp": "context", "dp": "data", "pp": "pipeline"}


@dataclass(frozen=True, slots=True, eq=False)
class PlanOnDevices:
    """Who does what, device by device as the fabric has them present.

    Parameters
    ----------
    stages, replicas : int
    stage : int array (devices,)
        −1 where idle.
    group : tuple of tuple of int
        Devices of the first tensor group of the first replica, stage by stage.
    finding : str
        How far the groups of every axis reach.
    tensor : int array (devices,)
        Number of the tensor group; −1 where idle.
    """

    stages: int
    replicas: int
    stage: IntArray
    group: tuple[tuple[int, ...], ...]
    finding: str
    tensor: IntArray

    def look(self, devices: Sequence[int]) -> str:
        """Of some devices together: their stage, ``idle``, or ``mixed``."""
        result = np.unique(self.stage[list(devices)]) if len(devices) else np.array([-1])
        if len(result) > 1:
            return "mixed"
        return "idle" if result[0] < 0 else stage_look(int(result[0]), self.stages)

    @property
    def subtitle(self) -> str:
        """What colours and orange lines mean."""
        hops = ""
        if self.stages > 1:
            hops = f" Orange: replica 1 of {self.replicas} and its pipeline transfers."
        return f"Colour: pipeline stage, {self.stages} in all.{hops}"


def stage_look(stage: int, stages: int) -> str:
    """One of the steps of the ramp that all stages are on.

    Examples
    --------
    >>> stage_look(0, 4), stage_look(3, 4), stage_look(0, 1)
    ('stage-0', 'stage-11', 'stage-4')
    """
    last = STAGE_STEPS - 1
    return f"stage-{round(stage / (stages - 1) * last) if stages > 1 else round(0.4 * last)}"


def plan_on_devices(network: Network, plan: Plan) -> PlanOnDevices:
    """What a plan does on the devices of a network."""
    parts = rank_mapping_of(network, plan)
    first = (parts.dp == 0) & (parts.cp == 0)
    groups = []
    for stage in range(plan.point.pp):
        members = np.flatnonzero(first & (parts.pp == stage))
        groups.append(tuple(members[np.argsort(parts.tp[members], kind="stable")].tolist()))
    axes = {"tp": parts.tp, "cp": parts.cp, "dp": parts.dp, "pp": parts.pp}
    keys = np.stack([parts.pp, parts.dp, parts.cp])
    tensor = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    tensor = np.where(parts.pp < 0, -1, tensor)
    result = _finding(network, axes)
    return PlanOnDevices(plan.point.pp, plan.point.dp, parts.pp, tuple(groups), result, tensor)


def _finding(network: Network, axes: Mapping[str, IntArray]) -> str:
    """The level at which the groups of every axis meet, innermost first."""
    works = np.flatnonzero(axes["pp"] >= 0)
    reached: dict[int, list[str]] = {}
    for name, values in axes.items():
        if values[works].max(initial=0) == 0:
            continue
        others = np.stack([axes[other][works] for other in axes if other != name])
        key = np.unique(others, axis=1, return_inverse=True)[1].reshape(-1)
        start = np.zeros(int(key.max()) + 1, np.int64)
        start[key[::-1]] = works[::-1]
        level = int(network.level(start[key], works).max())
        reached.setdefault(level, []).append(_NAMES[name])
    if not reached:
        return "One device holds the whole model"
    top = len(network.levels) - 1
    said = []
    for level in sorted(reached):
        *several, last = reached[level]
        names = f"{', '.join(several)} and {last}" if several else last
        name = network.levels[level].name
        if network.torus is not None:
            said.append(f"{names} groups span {name}")
            continue
        how = "crosses" if level == top else "turns at" if level else "stays in"
        said.append(f"{names} traffic {how} the {name}")
    text = "; ".join(said)
    return text[0].upper() + text[1:]


def load_look(share: float, busiest: float) -> str:
    """Step of the load ramp of a busy share, the busiest link being the last one."""
    if busiest <= 0 or share <= 0:
        return "load-0"
    return f"load-{min(_LOAD_STEPS - 1, 1 + int((_LOAD_STEPS - 1) * share / busiest * 0.999))}"


def tier_busy(loads: Loads, level: int) -> FloatArray:
    """Busy share of the links by which every device climbs to a level, shape (devices,).

    Of both directions and all parallel links the busiest; none where the network is no tree.
    """
    from nest_core.network.tree import TreeLinkMap  # compiled kernels load with it

    link_map = loads.network.link_map
    if not isinstance(link_map, TreeLinkMap):
        return np.zeros(loads.network.devices)
    offset = 0 if link_map.scale_up is None else len(link_map.scale_up.capacity_Bps)
    for number, tier in enumerate(link_map.tiers):
        size = 2 * tier.group_links * len(tier.capacity_Bps)
        if number == level:
            result = loads.busy[offset : offset + size].reshape(len(tier.capacity_Bps), -1)
            return np.asarray(result.max(axis=1)[tier.child])
        offset += size
    return np.zeros(loads.network.devices)
