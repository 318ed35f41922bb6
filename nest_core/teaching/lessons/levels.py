"""Lesson 2, levels instead of device pairs: figure 4 of the paper, one cell at a time.

The blackboard example of ``docs/method.md``: four layers, two nodes of two devices, a table that
fills backwards. Layers take seconds per micro-batch, forward and backward; between them flow units
of data, and as many back as gradients. What a unit takes between two devices follows from the
level at which they meet, so a cell of the table asks for the level of the link to the stage
before, not for that stage's device (NEST, MLSys 2026, section 4, figure 4).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from nest_core.costs import MEGATRON_ORDER, Plan, Point, Report, price
from nest_core.documents.schema.lesson import FormulaTable
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import Network, collapse
from nest_core.report.tables import Table
from nest_core.scenario import load_fabric
from nest_core.teaching.lessons.figure import (
    LEVEL_NAMES,
    Given,
    LessonFigure,
    StageCut,
    bare_chain,
    stage_load,
)
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings

__all__ = [
    "LAYERS",
    "LEVELS",
    "MAPPINGS",
    "MICRO_BATCHES",
    "OBJECTIVES",
    "SECONDS",
    "STAGES",
    "UNITS",
    "DynamicTable",
    "LevelCell",
    "cells",
    "chosen_cuts",
    "hop_seconds",
    "levels_between",
    "network",
    "priced",
]

SECONDS = (6.0, 6.0, 3.0, 5.0)
UNITS = (0.0, 3.0, 2.0, 2.0, 0.0)
"""Data that enters layer ``i``; none at either end."""
LAYERS = len(SECONDS)
STAGES = 3
MICRO_BATCHES = 4

MAPPINGS = {"012": (0, 1, 2), "123": (1, 2, 3)}
"""Devices of stages 0, 1 and 2: which link crosses from one node to the other."""

OBJECTIVES: dict[str, Callable[[float, float], float]] = {
    "sum": lambda load, rest: load + rest,
    "slowest": max,
}
"""What a cell holds: the sum of the stages' loads, or the slowest stage (the paper's)."""


@dataclass(frozen=True, slots=True)
class LevelCell:
    """Least seconds from a stage on.

    Parameters
    ----------
    stage, first : int
        The stage, and the first of its layers.
    level : int or None
        Of the link to the stage before; None for the first stage.
    candidates : tuple of StageCut
        All cuts that leave a layer for every later stage.
    """

    stage: int
    first: int
    level: int | None
    candidates: tuple[StageCut, ...]

    @property
    def best(self) -> StageCut:
        """The least; the earliest cut among equals."""
        return min(self.candidates, key=lambda way: way.total)


@cache
def network(per_node: int = 2) -> Network:
    """Two nodes of a few devices; a "byte" is a unit of data."""
    tiers = (Tier("node", per_node, 2.0, 0.0, "device"), Tier("rack", 2, 1.0, 0.0, "child"))
    return collapse(Hierarchical("blackboard", tiers))


def hop_seconds() -> tuple[float, ...]:
    """Seconds per unit over a link of each level, innermost first."""
    return tuple(1.0 / level.single_flow_Bps for level in network().levels)


def levels_between(mapping: str) -> tuple[int, ...]:
    """Level of the link into stages 1 and 2."""
    devices = np.array(MAPPINGS[mapping])
    return tuple(network().level(devices[:-1], devices[1:]).tolist())


@cache
def cells(mapping: str, objective: str) -> tuple[LevelCell, ...]:
    """Return the table in the order in which it is filled: last stage first, last layers first.

    Parameters
    ----------
    mapping : str
        Of `MAPPINGS`.
    objective : str
        Of `OBJECTIVES`.
    """
    combine, between = OBJECTIVES[objective], levels_between(mapping)
    table: dict[tuple[int, int, int | None], LevelCell] = {}
    for stage in reversed(range(STAGES)):
        after = between[stage] if stage < STAGES - 1 else None
        firsts = [0] if stage == 0 else range(LAYERS - STAGES + stage, stage - 1, -1)
        for first in firsts:
            for level in range(len(hop_seconds())) if stage else [None]:
                candidates = []
                for end in _ends(stage, first):
                    load = stage_load((SECONDS, UNITS), hop_seconds(), (first, end), level, after)
                    rest = table[stage + 1, end, after].best.total if after is not None else 0.0
                    total = combine(load, rest) if after is not None else load
                    candidates.append(StageCut(end, load, rest, total))
                table[stage, first, level] = LevelCell(stage, first, level, tuple(candidates))
    return tuple(table.values())


def _ends(stage: int, first: int) -> list[int]:
    """Where a stage may end: every later stage keeps a layer, the last takes all."""
    after = STAGES - 1 - stage
    return list(range(first + 1, LAYERS - after + 1)) if after else [LAYERS]


def chosen_cuts(mapping: str, objective: str) -> tuple[int, ...]:
    """Return the cuts that the full table leads to, read from the first stage on."""
    table = {(cell.stage, cell.first, cell.level): cell for cell in cells(mapping, objective)}
    between = (None, *levels_between(mapping))
    cuts = [0]
    for stage in range(STAGES):
        cuts.append(table[stage, cuts[-1], between[stage]].best.end)
    return tuple(cuts)


@cache
def priced(
    mapping: str,
    cuts: tuple[int, ...],
    seconds: tuple[float, ...] = SECONDS,
    units: tuple[float, ...] = UNITS,
    micro_batches: int = MICRO_BATCHES,
) -> Report:
    """Return the plan with these cuts, priced by the one judge of every plan."""
    used = MAPPINGS[mapping]
    order = (*used, *(device for device in range(network().devices) if device not in used))
    point = Point(1, False, 1, len(cuts) - 1, 1, 0, MEGATRON_ORDER, device_order=order)
    chain = bare_chain(network(), seconds, (0.0,) * LAYERS, units, micro_batches)
    return price(chain, Plan(point, cuts, ("none",) * point.pp))


FABRIC = "h100-spine-leaf-1024"
"""The fabric of the question."""

_STEPS = tuple(range(len(cells("012", "sum")) + 1))
_HELD = {"sum": "sum of the stages", "slowest": "slowest stage"}


@dataclass(frozen=True, slots=True)
class DynamicTable:
    """The table so far.

    Parameters
    ----------
    mapping, objective : str
    filled : tuple of LevelCell
        In order; the last is the one just filled.
    whole : tuple of LevelCell
        What the table will hold.
    devices : tuple of int
        Of the stages, first to last.
    between : tuple of int
        Level of the link into every stage but the first.
    cuts : tuple of int
        Of the finished plan; empty before the last step.
    """

    mapping: str
    objective: str
    filled: tuple[LevelCell, ...]
    whole: tuple[LevelCell, ...]
    devices: tuple[int, ...]
    between: tuple[int, ...]
    cuts: tuple[int, ...]


def _show(settings: Settings) -> Reveal:
    mapping, objective = str(settings["seats"]), str(settings["held"])
    every = cells(mapping, objective)
    step = int(settings["step"])
    filled = every[:step]
    done = step == len(every)
    cuts = chosen_cuts(mapping, objective) if done else ()
    table = DynamicTable(
        mapping, objective, filled, every, MAPPINGS[mapping], levels_between(mapping), cuts
    )
    return Reveal(
        table,
        _told(table),
        (
            *(_load_formula(table, cell) for cell in filled[-1:]),
            _pairs(),
            *([_iteration(table)] if done else []),
        ),
        tuple(_candidates(table, cell) for cell in filled[-1:]),
    )


def _told(table: DynamicTable) -> tuple[str, ...]:
    if not table.filled:
        return (
            "The table is filled from the last stage to the first. A cell needs to know how far "
            "the stage before it will be, but not where: one row per level is enough.",
            "Step forward to fill the first cell.",
        )
    cell = table.filled[-1]
    stage = cell.stage + 1
    if table.cuts:
        return (
            f"The last cell is the answer: stages cut at {_layers(table.cuts)}. It was read back "
            "along the rows whose level is the real one; the other rows were kept in case.",
            "Cells of the last stage are the same wherever stage 2 is placed. Change the rank "
            "mapping and see which rows are read instead.",
        )
    if cell.level is None:
        return (f"Stage {stage} is the first: it has no stage before it, so it needs one row.",)
    assumed = LEVEL_NAMES[cell.level]
    return (
        f"Stage {stage} begins with layer {cell.first + 1}. Stage {stage - 1} has no device yet; "
        f"this row assumes the {assumed}, the other row the other level.",
        f"The link to stage {stage + 1} is known: it is placed already."
        if stage < STAGES
        else "No stage comes after it, so nothing comes back from there.",
    )


def _layers(cuts: tuple[int, ...]) -> str:
    names = [
        f"{first + 1} to {end}" if end - first > 1 else f"{end}"
        for first, end in itertools.pairwise(cuts)
    ]
    return "layers " + " | ".join(names)


def _load_formula(table: DynamicTable, cell: LevelCell) -> FormulaTable:
    best = cell.best
    combined = "+" if table.objective == "sum" else "max with"
    rest = f" {combined} {best.rest:g}" if cell.stage < STAGES - 1 else ""
    return FormulaTable(
        name="The cell just filled, seconds",
        symbols="best[stage][first][level] = min over cuts of load(first..cut, level, known level) "
        + ("+" if table.objective == "sum" else "max")
        + " best[stage + 1][cut][known level]",
        numbers=f"load {best.load:g}{rest} = {best.total:g}, with the cut after layer {best.end}",
        source="NEST, MLSys 2026, equation 3"
        if table.objective == "slowest"
        else "method.md, The program; equation 3 has max in place of +",
    )


def _pairs() -> FormulaTable:
    fabric, small = _large(), network()
    pairs = fabric.devices * (fabric.devices - 1)
    return FormulaTable(
        name="Distances to tell apart",
        symbols="D (D - 1) device pairs, or L levels",
        numbers=f"here {small.devices * (small.devices - 1)} pairs, {len(small.levels)} levels; "
        f"with {fabric.devices:,} H100 {pairs:,} pairs, {len(fabric.levels)} levels",
        source="NEST, MLSys 2026, section 4",
    )


def _candidates(table: DynamicTable, cell: LevelCell) -> Table:
    return Table(
        "What the cell was the least of",
        "One line per cut that is possible here",
        tuple(
            {
                "stage takes layers": _layers((cell.first, candidate.end)).removeprefix("layers "),
                "its load, s": f"{candidate.load:g}",
                "goes on with, s": f"{candidate.rest:g}" if cell.stage < STAGES - 1 else "–",
                _HELD[table.objective] + ", s": f"{candidate.total:g}",
                "": "least" if candidate == cell.best else "",
            }
            for candidate in cell.candidates
        ),
    )


def _iteration(table: DynamicTable) -> FormulaTable:
    report = priced(table.mapping, table.cuts)
    loads = [stage.micro_batch_s for stage in report.stages]
    return FormulaTable(
        name="Iteration of this plan, seconds",
        symbols="sum(t) + (m - 1) max(t)",
        numbers=f"{sum(loads):g} + ({MICRO_BATCHES} - 1) {max(loads):g} = {report.iteration_s:g}",
        source="method.md, Time; the planner then lowers a cap on max(t) until nothing better is "
        "left",
    )


def _large() -> Network:
    return collapse(load_fabric(FABRIC))


def _exercise(given: Settings) -> Report:
    """Stages of layers 1, 2 to 3 and 4, the first two in one node."""
    seconds = tuple(float(given[f"t{number}"]) for number in range(1, LAYERS + 1))
    units = (0.0, *(float(given[f"u{number}"]) for number in range(1, LAYERS)), 0.0)
    return priced("012", (0, 1, 3, 4), seconds, units, int(given["m"]))


LEVELS = LessonFigure(
    "levels",
    (
        Control(
            "step",
            "Step",
            _STEPS,
            0,
            f"Cells filled: 0 to {_STEPS[-1]}, last stage first.",
            stepped=True,
        ),
        Control(
            "seats",
            "Rank mapping",
            tuple(MAPPINGS),
            "012",
            "Which link crosses between the nodes.",
            ("stages 1 2 | 3", "stages 1 | 2 3"),
        ),
        Control(
            "held",
            "A cell holds",
            tuple(OBJECTIVES),
            "sum",
            "The sum of the stages' loads, or the slowest stage, as in the paper.",
            ("the sum of stages", "the slowest stage"),
        ),
    ),
    _show,
    {
        **{f"t{number}": Given(seconds, 0, 1e6) for number, seconds in enumerate(SECONDS, start=1)},
        **{f"u{number}": Given(UNITS[number], 0, 1e6) for number in range(1, LAYERS)},
        "m": Given(MICRO_BATCHES, 1, 4096),
    },
    {
        "layers": lambda given: LAYERS,
        "times": lambda given: ", ".join(f"{seconds:g}" for seconds in SECONDS),
        "data": lambda given: ", ".join(f"{units:g}" for units in UNITS[1:-1]),
        "stages": lambda given: STAGES,
        "places": lambda given: network().devices,
        "nodes": lambda given: int(network().node.max()) + 1,
        "per_node": lambda given: int((_large().node == 0).sum()),
        "inside": lambda given: hop_seconds()[0],
        "across": lambda given: hop_seconds()[1],
        "devices": lambda given: _large().devices,
        "others": lambda given: _large().devices - 1,
        "levels": lambda given: len(_large().levels),
        "level_names": lambda given: ", ".join(level.name for level in _large().levels),
        "loads": lambda given: ", ".join(
            f"{stage.micro_batch_s:g}" for stage in _exercise(given).stages
        ),
        "iteration": lambda given: _exercise(given).iteration_s,
        "unfilled": lambda given: (
            int(given["m"]) * max(stage.micro_batch_s for stage in _exercise(given).stages)
        ),
        "one_by_one": lambda given: (
            int(given["m"]) * sum(stage.micro_batch_s for stage in _exercise(given).stages)
        ),
    },
)
