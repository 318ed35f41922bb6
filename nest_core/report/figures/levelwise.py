"""NEST's level-wise program: its cost matrices as a heat table, what its plan loses by cause."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from nest_core.documents.units import (
    GB,
    MICROSECOND,
    capital,
    humanise,
    humanise_seconds,
    percent,
    signed,
)
from nest_core.planner.baselines import Baseline
from nest_core.planner.baselines.cost_matrices import MATRIX_CLASSES, CostMatrices, matrix_finding
from nest_core.report.figures.levels import LOAD_SCALE
from nest_core.report.figures.style import (
    ACCENT,
    LIMIT,
    MUTED,
    Chart,
    Trace,
    axis_unit,
    bare_axis,
    bars,
    empty,
    note,
    plain,
    plot,
    pointed,
    rows_axis,
    value_axis,
)

__all__ = ["CAUSES", "cost_matrices_figure", "fall_figure", "waterfall_figure"]

_MATRIX_ROW, _MATRIX_MARGIN = 58, (150, 8, 44, 10)
_RANKS = {"pp": "neighbours", "tied": "ends"}
_MATRICES = "Level-wise cost matrices of NEST's program"

CAUSES = {
    "schedule": "schedule: 1F1B alone",
    "memory_rule": "memory rule",
    "objective": "objective",
    "levels": "levels: not links",
    "widths": "widths: unequal",
}
"""Terms of a waterfall in the order in which they are drawn, and what they are called."""

_ROW, _MARGIN = 32, (170, 24, 8, 46)
_WATERFALL = "NEST, level-wise program (paper), beside the exact search (ours)"
_SAME = 5e-4
_MIN_AXIS = 0.01  # of an iteration; differences below it are drawn to this scale


def cost_matrices_figure(matrices: CostMatrices | None, reason: str = "") -> Chart:
    """Draw seconds of an iteration by class and level, outermost level at the top.

    Parameters
    ----------
    matrices : CostMatrices or None
        None: there is no plan.
    reason : str
        Why there is none.
    """
    if matrices is None or not matrices.ranks:
        why = "NEST's plan sends nothing" if matrices else reason or "NEST's program has no plan"
        return empty(capital(why), _MATRICES, 54 + 3 * _MATRIX_ROW, _MATRIX_MARGIN)
    scale, unit = axis_unit(float(np.nanmax(matrices.seconds)), "s")
    values = matrices.seconds.T[::-1] / scale
    with np.errstate(divide="ignore"):
        colours = np.log10(values)
    low, high = float(np.nanmin(colours)), float(np.nanmax(colours))
    rows, levels = len(matrices.ranks), range(len(matrices.levels) - 1, -1, -1)
    cells = {
        "type": "heatmap",
        "x": list(range(rows)),
        "y": list(range(len(levels))),
        "z": colours,
        "zmin": low,
        "zmax": max(high, low + 1.0),
        "text": [["" if np.isnan(value) else f"{value:.3g}" for value in row] for row in values],
        "texttemplate": "%{text}",
        "textfont": {"size": 14},
        "colorscale": LOAD_SCALE,
        "showscale": False,
        "xgap": 4,
        "ygap": 4,
        **pointed([_hover(matrices, row, level) for row in range(rows)] for level in levels),
    }
    grey = {"size": 14, "color": "rgba(128, 132, 138, 1)"}
    point = matrices.plan.point
    degrees = [
        f"{a} {getattr(point, a)}" for a in ("dp", "tp", "cp", "ep", "pp") if getattr(point, a) > 1
    ]
    plan = ", ".join([*degrees, f"micro-batch {point.micro_batch}"])
    return Chart(
        matrix_finding(matrices),
        f"{_MATRICES}: {unit} of an iteration if a class reaches up to a level",
        f"Outlined: the program's own plan, {plan}. –: no group of that size ends there. "
        "The colour is logarithmic. Nothing hides behind compute here.",
        plot(
            [cells],
            54 + _MATRIX_ROW * len(levels),
            _MATRIX_MARGIN,
            xaxis=bare_axis(
                side="top",
                tickvals=list(range(rows)),
                ticktext=[
                    f"<b>{MATRIX_CLASSES[name][1]}</b><br>{_RANKS.get(name, f'{size:,} ranks')}"
                    for name, size in matrices.ranks.items()
                ],
                tickangle=0,
                ticks="",
            ),
            yaxis=rows_axis([_level(matrices, level) for level in levels])
            | {"ticksuffix": " ", "ticks": ""},
            shapes=[
                {
                    "type": "rect",
                    "x0": column - 0.5,
                    "x1": column + 0.5,
                    "y0": row - 0.5,
                    "y1": row + 0.5,
                    "line": {"color": ACCENT, "width": 3},
                }
                for row, column in np.argwhere(matrices.own.T[::-1]).tolist()
            ],
            annotations=[
                note("–", column, row, font=grey)
                for row, column in np.argwhere(np.isnan(values)).tolist()
            ],
        ),
        table=partial(_table, matrices),
    )


def _level(matrices: CostMatrices, number: int) -> str:
    level = matrices.levels[number]
    rate, late = humanise(level.bandwidth_Bps / GB), f"{level.latency_s / MICROSECOND:.3g}"
    size = "" if level.name.endswith("devices") else f"{level.size:,} devices<br>"
    return f"<b>{plain(level.name)}</b><br>{size}{rate} GB/s, {late} µs"


def _hover(matrices: CostMatrices, row: int, level: int) -> str:
    name, size = list(matrices.ranks.items())[row]
    seconds = matrices.seconds[row, level]
    words = f"{capital(MATRIX_CLASSES[name][1])}, {plain(matrices.levels[level].name)}"
    if np.isnan(seconds):
        return f"{words}: no group of {size:,} ranks ends there"
    ending = "<br>the program's own plan" if matrices.own[row, level] else ""
    return f"{words}: {humanise_seconds(float(seconds))}{ending}"


def _table(matrices: CostMatrices) -> list[dict[str, Any]]:
    return [
        {
            "class": MATRIX_CLASSES[name][1],
            "ranks": size,
            "level": level.name,
            "bandwidth_GBps": level.bandwidth_Bps / GB,
            "latency_us": level.latency_s / MICROSECOND,
            "time_s": None if np.isnan(seconds) else float(seconds),
            "own_plan": bool(is_own),
        }
        for (name, size), times, marks in zip(
            matrices.ranks.items(), matrices.seconds, matrices.own, strict=True
        )
        for level, seconds, is_own in zip(matrices.levels, times, marks, strict=True)
    ]


def waterfall_figure(nest: Baseline | None, exact_s: float | None, why: str = "") -> Chart:
    """Draw seconds beyond the exact search's iteration, cause by cause.

    Parameters
    ----------
    nest : Baseline or None
        None: it is not there.
    exact_s : float or None
        Seconds of an iteration under the exact search's plan; None where there is none.
    why : str
        Why it is not there.
    """
    if nest is None or not nest.feasible or nest.report is None or exact_s is None:
        if nest is not None:
            why = nest.reason or "the exact search has no plan to compare with"
            why = f"No comparison: {why}"
        return empty(why, _WATERFALL, 54 + 8 * _ROW, _MARGIN)
    taken_s = nest.report.iteration_s
    falls = asdict(nest.waterfall) if nest.waterfall else {}
    promised_s = taken_s if nest.promised_s is None else nest.promised_s
    return fall_figure(taken_s, exact_s, promised_s, falls, nest.origin)


def fall_figure(
    taken_s: float, exact_s: float, promised_s: float, falls: Mapping[str, float], origin: str
) -> Chart:
    """Draw the same where both have a plan, from what was stored of them.

    Parameters
    ----------
    taken_s, exact_s, promised_s : float
        Seconds of an iteration under NEST's plan and ours, and what NEST's was thought to take.
    falls : mapping
        Seconds by term of a `Waterfall`; empty where none was drawn up.
    origin : str
        How NEST's program came to its plan.
    """
    # Name, where the bar begins, its length, colour, words.
    rows = [("Exact search (ours)", 0.0, 0.0, ACCENT, humanise_seconds(exact_s))]
    at = 0.0
    for key, name in CAUSES.items():
        if key in falls:
            is_none = abs(falls[key]) <= 1e-9 * exact_s
            text = "0" if is_none else signed(falls[key], humanise_seconds)
            rows.append((name, at, falls[key], LIMIT if falls[key] > 0 else ACCENT, text))
            at += falls[key]
    rows += [
        ("NEST takes", 0.0, taken_s - exact_s, MUTED, humanise_seconds(taken_s)),
        (
            "NEST promised",
            0.0,
            promised_s - exact_s,
            "rgba(0, 0, 0, 0)",
            humanise_seconds(promised_s),
        ),
    ]
    names, bases, lengths, colours, texts = map(list, zip(*rows, strict=True))
    ends = [base + length for base, length in zip(bases, lengths, strict=True)]
    low, high = min([*bases, *ends]), max([*bases, *ends])
    room = max(high - low, _MIN_AXIS * exact_s)
    scale, unit = axis_unit(room, "s")
    drawn: Trace = bars(
        [length / scale for length in lengths],
        list(range(len(rows))),
        {"color": colours, "line": {"color": MUTED, "width": 1.0}},
        base=[base / scale for base in bases],
        width=0.62,
        **pointed(f"{name}: {text}" for name, text in zip(names, texts, strict=True)),
    )
    upright = {"type": "line", "x0": 0, "x1": 0, "y0": -0.5, "y1": len(rows) - 0.5}
    return Chart(
        _finding(taken_s / exact_s - 1.0, falls),
        f"{_WATERFALL}: {unit} of an iteration beyond ours",
        "Blue line: the exact search's iteration. From it, cause by cause, to what the program's "
        "plan takes on the fabric; hollow: what the program promised on its levels. "
        f"That plan: {origin}.",
        plot(
            [drawn],
            54 + _ROW * len(rows),
            _MARGIN,
            xaxis=value_axis(
                f"over the exact search's iteration, {unit}",
                range=[(low - 0.04 * room) / scale, (low + 1.3 * room) / scale],
            ),
            yaxis=rows_axis(names),
            annotations=[
                note(text, max(base, end) / scale, number, xanchor="left", xshift=6)
                for number, (text, base, end) in enumerate(zip(texts, bases, ends, strict=True))
            ],
            shapes=[upright | {"line": {"color": ACCENT, "width": 2}}],
        ),
    )


def _finding(longer: float, falls: Mapping[str, float]) -> str:
    if abs(longer) < _SAME:
        return "NEST's level-wise program and the exact search tie"
    way = "faster" if longer < 0 else "slower"
    finding = f"NEST's level-wise program is {percent(abs(longer))} {way} than the exact search"
    if longer < 0 or not falls:
        return finding
    cause = max(falls, key=falls.__getitem__)
    most = "most of it" if 2 * falls[cause] > sum(falls.values()) else "most"
    return f"{finding}, {most} by its {CAUSES[cause].partition(':')[0]}"
