"""Lesson 8, how to read a paper's table: the artifact's faults, recomputed one by one.

The lead of NEST over another planner in figure 5: as printed; computed with the artifact's own
costs, which give the printed figure; with the other planner's stages in their right order, which
the artifact reverses; and with transfers in milliseconds as well, as layer times are. Only the
paper's rows are priced like this (`nest_core.paper.published`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from nest_core.documents.schema.lesson import FormulaTable
from nest_core.documents.units import from_gbps_bytes, humanise_seconds, percent
from nest_core.paper.cases import FIGURES, PLANNERS, Cell, shipped_instance
from nest_core.paper.published import PAPER_MODELS, Instance, StageOrder, evaluate, solve
from nest_core.paper.published.costs import boundary_levels
from nest_core.paper.reproduction import model_name, printed_rows
from nest_core.report.tables import Table
from nest_core.teaching.lessons.figure import Given, LessonFigure
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings

__all__ = ["PAPER_TABLE", "READINGS", "Leads", "leads"]

Ratios = tuple[float | None, ...]
READINGS = ("printed", "recomputed", "right order", "and one unit")
"""As printed; the artifact's costs; stages in order; transfers in milliseconds too."""

ASKED = ("llama2", 256)
FIGURE = "figure5"
_DEVICES = (64, 128, 256, 512, 1024)
_PLACED = ("manual", "mcmc", "phaze")
"""Planners whose placements the artifact ships."""

_PER_SECOND = 1000.0  # milliseconds


@dataclass(frozen=True, slots=True)
class Leads:
    """A cell of the figure.

    Parameters
    ----------
    model : str
        Its name for people.
    devices : int
    leads : mapping of str to tuple of (float or None)
        NEST's throughput over each planner's, by `READINGS`; None where there is no figure.
    transfer_s : float
        The largest transfer between two stages of NEST's plan, in seconds.
    layer_ms : float
        The longest layer, forward and backward, in milliseconds.
    """

    model: str
    devices: int
    leads: Mapping[str, Ratios]
    transfer_s: float
    layer_ms: float


@cache
def leads(model: str, devices: int) -> Leads:
    """Price a cell of figure 5 in every reading.

    Parameters
    ----------
    model : str
        The artifact's name.
    devices : int
    """
    cell = Cell("tpuv4_fatTree", model, devices, 1)
    instance = shipped_instance(cell)
    one_unit = replace(
        instance, bandwidths=tuple(rate / _PER_SECOND for rate in instance.bandwidths)
    )
    printed = printed_rows(FIGURE).get(cell.key, {})
    columns = [
        {name: _over(printed.get("nest"), printed.get(name)) for name in _PLACED},
        _computed(instance, StageOrder.AS_PUBLISHED),
        _computed(instance, StageOrder.RIGHT),
        _computed(one_unit, StageOrder.RIGHT),
    ]
    rows = {name: tuple(column.get(name) for column in columns) for name in _PLACED}
    return Leads(model_name(model), devices, rows, *_sizes(instance))


def _over(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours / theirs


def _computed(instance: Instance, order: StageOrder) -> dict[str, float | None]:
    ours = solve(instance).throughput
    return {
        baseline.name.lower(): _over(ours, evaluate(instance, baseline, order).throughput)
        for baseline in instance.baselines
    }


def _sizes(instance: Instance) -> tuple[float, float]:
    """Return the largest transfer of NEST's plan, seconds, and the longest layer, milliseconds."""
    solution = solve(instance)
    layers = next(width for width in instance.widths if width.width == solution.tensor_parallel)
    longest = max(map(sum, zip(layers.forward, layers.backward, strict=True)))
    between = boundary_levels(instance, instance.stage_devices(layers.width), len(solution.stages))
    rate = min(instance.bandwidths[: max(between) + 1])
    return max((size for _, _, size in layers.edges), default=0.0) / rate, longest


def _show(settings: Settings) -> Reveal:
    cell = leads(str(settings["model"]), int(settings["devices"]))
    # As `humanise_seconds`, down to nanoseconds.
    transfer_s = cell.transfer_s / _PER_SECOND
    counted = humanise_seconds(transfer_s) if transfer_s >= 1e-6 else f"{1e9 * transfer_s:.3g} ns"
    return Reveal(
        cell,
        (
            "The artifact prices other planners' stages in reverse: their last stage pays the "
            "largest stash and recomputes, their first is spared. " + _moved(cell),
            "It also adds seconds of transfer to milliseconds of compute: the network is a "
            "thousand times too fast. Put right, plans that communicate little hardly move.",
            "A fault is not yet a wrong conclusion: recompute the row before you dismiss it, or "
            "believe it.",
        ),
        (
            *(
                _lead_formula(cell, name)
                for name, ratios in cell.leads.items()
                if ratios[1] is not None
            ),
            FormulaTable(
                name="A transfer beside a layer",
                symbols="bytes / (bytes/s) is added to milliseconds",
                numbers=f"{humanise_seconds(cell.transfer_s)} counts as "
                f"{counted}; the longest layer takes "
                f"{cell.layer_ms:.3g} ms",
                source="docs/decisions/published-package.md",
            ),
        ),
        (_table(cell),),
    )


def _moved(cell: Leads) -> str:
    """Return what the right order makes of the leads."""
    changes = [
        f"{PLANNERS[planner]} from {published:.3g} to {right:.3g}"
        for planner, (_, published, right, _) in cell.leads.items()
        if published is not None and right is not None and abs(published / right - 1) > 0.005
    ]
    return (
        "In this cell that changes no lead."
        if not changes
        else f"In the right order NEST's lead changes: over {', over '.join(changes)}."
    )


def _lead_formula(cell: Leads, planner: str) -> FormulaTable:
    _, published, right, _ = cell.leads[planner]
    numbers = "does not fit in its right order" if right is None else f"{right:.3g} in order"
    return FormulaTable(
        name=f"Lead over {PLANNERS[planner]}",
        symbols="NEST's sequences per time / the planner's",
        numbers=f"{published:.3g} as published, {numbers}",
        source=f"{cell.model}, {cell.devices:,} devices, the artifact's own costs",
    )


def _table(cell: Leads) -> Table:
    return Table(
        f"NEST over other planners: {cell.model}, {cell.devices:,} devices",
        "Ratio of throughputs; 1 means equally fast, – that there is no figure",
        tuple(
            {"planner": PLANNERS[planner]}
            | {
                reading: "–" if ratio is None else f"{ratio:.3g}"
                for reading, ratio in zip(READINGS, ratios, strict=True)
            }
            for planner, ratios in cell.leads.items()
        ),
    )


def _printed(planner: str) -> float:
    return float(printed_rows(FIGURE)[Cell("tpuv4_fatTree", *ASKED, 1).key][planner])


def _ratios() -> tuple[float, float]:
    """NEST's lead over manual in the cell of the question: as printed, and in the right order."""
    printed, _, right, _ = leads(*ASKED).leads["manual"]
    if printed is None or right is None:
        raise RuntimeError("the presets lost the cell of the question")
    return printed, right


def _right(printed: float, right: float) -> str:
    larger, smaller = right > printed * 1.02, right < printed * 0.98
    return "c" if larger else "a" if not smaller else "b" if right > 1.005 else "d"


def _left(printed: float, right: float) -> str:
    is_level = _right(printed, right) == "d"
    return "Nothing: the two plans are equally fast." if is_level else f"{percent(right - 1)}."


def _transfer_s(given: Settings) -> float:
    return 1e6 * float(given["size_MB"]) / from_gbps_bytes(float(given["rate_GBps"]))


def _factor(given: Settings) -> float:
    """Return the truth over what is said where seconds are added to milliseconds."""
    compute, transfer = float(given["compute_ms"]), _transfer_s(given)
    return (compute + _PER_SECOND * transfer) / (compute + transfer)


PAPER_TABLE = LessonFigure(
    "table",
    (
        Control(
            "model",
            "Model",
            PAPER_MODELS,
            ASKED[0],
            "A row of figure 5.",
            tuple(model_name(model) for model in PAPER_MODELS),
        ),
        Control("devices", "Devices", _DEVICES, ASKED[1], "64 to 1,024."),
    ),
    _show,
    {
        "compute_ms": Given(10.0, 1e-3, 1e6),
        "size_MB": Given(100.0, 1e-3, 1e6),
        "rate_GBps": Given(50.0, 1e-3, 1e6),
    },
    {
        "cells": lambda given: len(FIGURES[FIGURE].cells),
        "model": lambda given: leads(*ASKED).model,
        "devices": lambda given: ASKED[1],
        "nest": lambda given: _printed("nest"),
        "manual": lambda given: _printed("manual"),
        "printed": lambda given: _ratios()[0],
        "in_order": lambda given: _ratios()[1],
        "lead": lambda given: _ratios()[0] - 1,
        "right": lambda given: _right(*_ratios()),
        "left": lambda given: _left(*_ratios()),
        "mixtral": lambda given: (
            "without a figure"
            if (lead := leads("mixtral", ASKED[1]).leads["manual"][2]) is None
            else f"{lead:.3g}"
        ),
        "transfer": _transfer_s,
        "transfer_s": _transfer_s,
        "factor": _factor,
        "per_second": lambda given: _PER_SECOND,
    },
    slow=True,
)
