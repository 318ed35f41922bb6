"""NEST's level-wise cost matrices: what each class of traffic takes at each level of the fabric.

A cell holds the seconds of one iteration that a class takes if its groups reach up to a level, on
the network that the level-wise program reads (`nest_core.network.patterns.levels_only`), at the
degrees, micro-batch, cuts and ZeRO of the program's own plan. It is the stage that the class takes
longest in; nothing is taken to hide behind compute, so classes can be compared.

The plan's *own* cells are the times that the program read (`nest_core.planner.levelwise`). In the
others the class alone is moved: groups of its size are spread evenly over whole blocks of the
level and cover the fabric, all sending at once. A group that is larger than a block has no cell.

References
----------
NEST, MLSys 2026, section 4: the level-wise network representation.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nest_core.costs import (
    BETWEEN,
    NO_OVERLAP,
    LayerTable,
    Plan,
    Point,
    Problem,
    links,
    most_nodes,
    plan_links,
    stage_costs,
)
from nest_core.costs.communication import with_tables
from nest_core.costs.links import PlanLinks, group_times
from nest_core.documents import capital, grouped, humanise_seconds
from nest_core.network import (
    REMOTE_HOPS,
    BoolArray,
    FloatArray,
    IntArray,
    Kind,
    MessageTime,
    Network,
    block_levels,
    transfers,
)
from nest_core.planner.baselines.nest import on_levels
from nest_core.planner.levelwise import level_links, slots

__all__ = ["MATRIX_CLASSES", "CostMatrices", "LevelOf", "cost_matrices", "matrix_finding"]

_WORTH_TELLING = 1.05
MATRIX_CLASSES = {
    "tp": ("tp", "tensor"),
    "cp": ("cp", "context"),
    "etp": ("etp", "expert tensor"),
    "ep": ("ep", "expert"),
    "pp": ("pp", "pipeline"),
    "dp": ("data", "data"),
    "edp": ("expert_data", "expert data"),
    "tied": ("tied", "tied copies"),
}
"""Classes by name: the axis of their groups (`nest_core.costs.links`), and what people read."""


@dataclass(frozen=True, slots=True)
class LevelOf:
    """A level as the program reads it.

    Parameters
    ----------
    name : str
    size : int
        Devices of its largest block.
    bandwidth_Bps : float
        Of one device, all of its block sending.
    latency_s : float
    """

    name: str
    size: int
    bandwidth_Bps: float
    latency_s: float


@dataclass(frozen=True, slots=True, eq=False)
class CostMatrices:
    """Seconds of an iteration by class and level.

    Parameters
    ----------
    plan : Plan
        The level-wise program's.
    levels : tuple of LevelOf
        Innermost first.
    ranks : dict of str to int
        Classes that the plan has, of `MATRIX_CLASSES`, and how many ranks a group of each has.
    seconds : (classes, levels)
        NaN where no group of the size ends at the level.
    own : (classes, levels)
        Whether groups of the plan end there.
    """

    plan: Plan
    levels: tuple[LevelOf, ...]
    ranks: dict[str, int]
    seconds: FloatArray
    own: BoolArray

    def to_json(self) -> dict[str, dict[str, float | None]]:
        """Class to level to seconds; null where no group of the size ends at the level."""
        names = [level.name for level in self.levels]
        return {
            name: {
                level: None if np.isnan(value) else float(value)
                for level, value in zip(names, row, strict=True)
            }
            for name, row in zip(self.ranks, self.seconds, strict=True)
        }

    def own_json(self) -> dict[str, list[str]]:
        """Class to the levels at which groups of the plan end."""
        return {
            name: [level.name for level, is_own in zip(self.levels, row, strict=True) if is_own]
            for name, row in zip(self.ranks, self.own, strict=True)
        }


def cost_matrices(problem: Problem, plan: Plan) -> CostMatrices:
    """Return the matrices that the level-wise program read when it chose a plan.

    Parameters
    ----------
    problem : Problem
        On its fabric; the program's levels follow from it.
    plan : Plan
        Of the level-wise program (`nest_core.planner.baselines.nest`), or any other, at whose
        degrees and cuts the levels are then told.

    Notes
    -----
    One count of the links, and one price of all stages, for each class and level.
    """
    view = on_levels(problem)
    depth = len(view.network.nesting)
    stages = grouped((plan.stage_point(stage), stage) for stage in range(plan.point.pp))
    read = {point: _read(view, plan, point) for point in stages}
    ranks, rows, owned = {}, [], []
    for name in MATRIX_CLASSES:
        size = max(_ranks(point, name) for point in stages)
        row = np.full(depth, np.nan)
        is_own = np.zeros(depth, dtype=bool)
        for point, members in stages.items():
            if _ranks(point, name) < 2:
                continue
            mine = _ends(view, plan, point, members, name)
            only = replace(
                with_tables(view, partial(_only, name, point)),
                overlap=NO_OVERLAP,
                update_Bps=np.inf,
            )
            for level in range(depth):
                shared = _shared(view, point, read[point], name, level, level in mine)
                if shared is not None:
                    spent = _longest(only, plan, point, members, shared)
                    row[level] = spent if np.isnan(row[level]) else max(row[level], spent)
            is_own[list(mine)] = True
        if np.nanmax(row, initial=0.0) > 0.0:
            ranks[name] = size
            rows.append(row)
            owned.append(is_own)
    return CostMatrices(
        plan,
        _levels(problem.network),
        ranks,
        np.array(rows).reshape(len(ranks), depth),
        np.array(owned, dtype=bool).reshape(len(ranks), depth),
    )


def _ranks(point: Point, name: str) -> int:
    """Ranks of a group of a class; 1 where a plan has none."""
    return {
        "tp": point.tp,
        "cp": point.cp,
        "etp": point.etp if point.etp != point.tp else 1,
        "ep": point.ep,
        "pp": min(2, point.pp),
        "dp": point.shard_ranks,
        "edp": point.expert_shard_ranks if point.experts_apart else 1,
        "tied": min(2, point.pp),
    }[name]


def _read(view: Problem, plan: Plan, point: Point) -> PlanLinks:
    """Return what the program read for stages of a point; a single stage it prices where it
    sits.
    """
    placed_slots = slots(view.network, point.order, point.dp, point.tp * point.cp)
    if point.pp == 1 or placed_slots is None:
        return links(view, point)
    alike = level_links(view, point, placed_slots)
    if not plan.ragged:
        return alike
    placed = plan_links(view, plan, point)  # hops to stages of other widths, by a rank's bytes
    times = (placed.forward.alpha_s, placed.forward.beta_s_per_byte * placed.hop_ranks)
    alpha, beta = np.zeros((2, len(times[0]), len(alike.producer_level)))
    for level in alike.producer_level[1:].tolist():
        met = placed.producer_level == level
        alpha[:, 1 + level] = times[0][:, met].max(axis=1, initial=0.0)
        beta[:, 1 + level] = times[1][:, met].max(axis=1, initial=0.0)
    return replace(alike, forward=MessageTime(alpha, beta))


def _ends(view: Problem, plan: Plan, point: Point, members: list[int], name: str) -> set[int]:
    """Levels at which groups of a class end in some stages of the plan."""
    placed = plan_links(view, plan, point)
    if name == "pp":
        return {int(placed.producer_level[s]) for s in members if s > 0}
    groups, stage = placed.groups(MATRIX_CLASSES[name][0], point.instances)
    if name != "tied":
        groups, stage = groups[np.isin(stage, members)], stage[np.isin(stage, members)]
    reach = view.network.level(groups[:, :1], groups).max(axis=1)
    return {int(reach[stage == number].max()) for number in np.unique(stage)}


def _shared(
    view: Problem, point: Point, read: PlanLinks, name: str, level: int, problem: bool
) -> PlanLinks | None:
    """Links of a point, its class' groups ending at a level; None where none does."""
    network, axis = view.network, MATRIX_CLASSES[name][0]
    forward = MessageTime.nothing(point.pp)
    times: dict[tuple[str, Kind, int], MessageTime] = {}
    if name == "pp":
        column = 1 + level if len(read.producer_level) == 1 + len(network.nesting) else -1
        if column > 0 and read.forward.beta_s_per_byte[:, column].any():
            single = MessageTime(
                read.forward.alpha_s[:, [column]], read.forward.beta_s_per_byte[:, [column]]
            )
        elif (groups := _spread(network, 2, level)) is not None:
            outside = most_nodes(network, groups) > 1
            sending = view.software.transfers(outside, meshed=network.meshed_nodes)
            team = np.zeros(len(groups), dtype=np.int64)
            single = transfers(network, groups[:, 0], groups[:, 1], sending, team)
        else:
            return None
        forward = single.repeated(point.pp)
    else:
        kind = _kind(view, point, name)
        if kind is None:
            return None
        copies = point.instances if axis in BETWEEN else 1
        if problem:
            time = read.time(axis, kind, copies)
        elif (groups := _spread(network, _ranks(point, name), level)) is not None:
            team = np.zeros(len(groups), dtype=np.int64)
            time = group_times(
                network, view.software, kind, groups, team, view.dispatch if axis == "ep" else None
            )[kind]
        else:
            return None
        times[axis, kind, copies] = _first(time, point.pp)
        if copies > 1:  # copies of shards are reduced where the plan has them
            between = read.time(BETWEEN[axis], "all_reduce", copies)
            times[BETWEEN[axis], "all_reduce", copies] = _first(between, point.pp)
    if point.tp > 1:  # parts that ranks received are gathered where the plan has them
        gathered = _first(read.time("tp", "reduce_scatter"), point.pp)
        times.setdefault(("tp", "reduce_scatter", 1), gathered)
    shared = PlanLinks(
        network, view.software, point, forward, np.full(point.pp, level), view.dispatch
    )
    for key, time in times.items():
        shared.put(*key, time)
    return shared


def _first(time: MessageTime, members: int) -> MessageTime:
    """Return the first member, which is as slow as all, for each of so many."""
    return MessageTime(time.alpha_s[:, :1], time.beta_s_per_byte[:, :1]).repeated(members)


def _kind(view: Problem, point: Point, name: str) -> Kind | None:
    """Return what a class calls; None where layers send nothing of it."""
    if name == "tied":
        return "all_reduce"
    if name in ("dp", "edp"):
        return "reduce_scatter" if point.zero else "all_reduce"
    table = view.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    calls = table.calls.get(MATRIX_CLASSES[name][0])
    return calls.kind if calls else None


def _spread(network: Network, size: int, level: int) -> IntArray | None:
    """Return groups spread evenly over whole blocks of a level, shape (groups, size); None: too
    large.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
    >>> network = collapse(Hierarchical("two", tiers))
    >>> _spread(network, 4, 0).tolist(), _spread(network, 4, 1).tolist()
    ([[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]])
    """
    line = np.lexsort(network.nesting)
    block = network.nesting[level][line]
    groups_of = []
    for members in np.split(line, np.flatnonzero(np.diff(block)) + 1):
        rows = len(members) // size
        if rows:
            groups = members[: rows * size].reshape(size, rows).T
            groups_of.append(groups[network.level(groups[:, :1], groups).max(axis=1) == level])
    groups = np.concatenate(groups_of) if groups_of else np.empty((0, size), dtype=np.int64)
    return groups if len(groups) else None


def _only(name: str, point: Point, table: LayerTable) -> LayerTable:
    """Layers that send one class and do nothing else."""
    none = np.zeros(table.layers)
    rows = np.zeros_like(table.replay_s)
    axis = MATRIX_CLASSES[name][0]
    dense, experts = name == "dp", name == "edp" or (name == "dp" and not point.experts_apart)
    return replace(
        table,
        compute_s=none,
        forward_s=none,
        weight_s=none,
        replay_s=rows,
        launch_s=rows,
        calls={axis: table.calls[axis]} if axis in table.calls else {},
        parameters=table.parameters if dense else none,
        expert_parameters=table.expert_parameters if experts else none,
        tied_parameters=table.tied_parameters
        if name == "tied" or (dense and point.pp == 1)
        else 0.0,
        boundary_bytes=table.boundary_bytes if name == "pp" else np.zeros(table.layers + 1),
    )


def _longest(
    only: Problem, plan: Plan, point: Point, members: list[int], shared: PlanLinks
) -> float:
    """Seconds of an iteration, of the stage that takes longest."""
    costs = stage_costs(only, point, shared)
    spent = []
    for stage in members:
        spans = plan.virtual_stages(stage)
        c = only.recomputations.index(plan.recompute[stage])
        load, _ = costs.load(stage, spans, c)
        spent.append(float(costs.micro_batches * load + costs.sync_seconds(stage, spans, c, load)))
    return max(spent)


def _levels(network: Network) -> tuple[LevelOf, ...]:
    """Return the levels of a fabric as the program reads them.

    Where several blocks meet at one of the fabric's levels the largest has its name, and the
    others say how large they are.
    """
    numbers = block_levels(network)
    levels = []
    for index, (block, number) in enumerate(zip(network.nesting, numbers, strict=True)):
        level, size = network.levels[number], int(np.bincount(block).max())
        remote = network.torus is not None and number == REMOTE_HOPS - 1
        name = f"{level.name} or more" if remote else level.name
        name += f", {size:,} devices" if number in numbers[index + 1 :] else ""
        levels.append(LevelOf(name, size, level.bandwidth_Bps, level.latency_s))
    return tuple(levels)


def matrix_finding(matrices: CostMatrices) -> str:
    """Return the class that a level further out would cost most, else the one that takes
    longest.
    """
    best, sentence = 0.0, ""
    for row, name in enumerate(matrices.ranks):
        outer = int(np.flatnonzero(matrices.own[row]).max())
        further = outer + 1
        if further == len(matrices.levels) or np.isnan(matrices.seconds[row, further]):
            continue
        outer_s, further_s = matrices.seconds[row, outer], matrices.seconds[row, further]
        if further_s - outer_s > best and further_s > _WORTH_TELLING * outer_s:
            best = float(further_s - outer_s)
            sentence = (
                f"{capital(MATRIX_CLASSES[name][1])} traffic stays at level "
                f"{matrices.levels[outer].name}; one level out it takes "
                f"{further_s / outer_s:.3g} × as long"
            )
    if sentence:
        return sentence
    own_s = np.where(matrices.own, matrices.seconds, 0.0)
    row, level = divmod(int(own_s.argmax()), own_s.shape[1])
    name = list(matrices.ranks)[row]
    return (
        f"{capital(MATRIX_CLASSES[name][1])} traffic has to reach level "
        f"{matrices.levels[level].name} and takes "
        f"{humanise_seconds(float(own_s[row, level]))} of an iteration"
    )
