"""The level-wise cost matrix as a picture, its rows at the height of the fabric's tiers.

Columns are classes of traffic, rows are levels, the outermost on top. A cell says the seconds of
one iteration that its class takes if its groups reach up to that level
(`nest_core.planner.baselines.cost_matrices`); those of the plan itself are outlined. `lights` names
for every cell the classes of links that its traffic crosses: those of its level and of all within.
`pointed_picture` says what a pointer at a part of either picture reads and lights: parts are named
by their keys, links by the class of the bill that they belong to.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nest_core.costs.communication import CLASSES
from nest_core.costs.loads import Loads
from nest_core.documents.units import GB, humanise, humanise_seconds, percent
from nest_core.fabric.checks import IntArray
from nest_core.planner.baselines.cost_matrices import (
    MATRIX_CLASSES,
    CostMatrices,
    LevelOf,
    matrix_finding,
)
from nest_core.report.picture.aggregate import spread
from nest_core.report.picture.frame import TEXT
from nest_core.report.picture.marks import Box, Drawn, Mark, TierLabel, Words, wrapped
from nest_core.report.picture.svg import to_svg

__all__ = [
    "cell_key",
    "crossed",
    "lights",
    "matrix_picture",
    "pointed_picture",
]


_SHADES = 4
_SUBTITLE = (
    "Seconds of an iteration if a class's groups reach up to a level, at this plan's widths; "
    "outlined: the plan's own; –: no group of that size ends there"
)
_LABEL, _COLUMN, _ROW, _CELL, _HEADS = 104.0, 58.0, 56.0, 34.0, 44.0
_VALUE = 14.0
_HOPS = re.compile(r"\d+ hops?\b")
_LINKS = {"router": "links node", "group": "links local"}
"""By which levels of a dragonfly are reached, where links are not called as the level."""


def cell_key(name: str, level: str) -> str:
    """Return the key of a class' cell at a level."""
    return f"{MATRIX_CLASSES[name][1]} traffic at the {level}"


def _cells(matrices: CostMatrices) -> Iterator[tuple[str, int, int, float]]:
    """Yield class, column, row and seconds of every cell that has any."""
    names = list(matrices.ranks)
    for column, row in np.argwhere(~np.isnan(matrices.seconds)).tolist():
        yield names[column], column, row, float(matrices.seconds[column, row])


def lights(matrices: CostMatrices, labels: Sequence[TierLabel]) -> dict[str, tuple[str, ...]]:
    """Return classes of the bill whose marks a cell lights, by the cell's key.

    Parameters
    ----------
    matrices : CostMatrices
    labels : sequence of TierLabel
        Of the fabric's picture, top tier first.
    """
    reached = crossed([level.name for level in matrices.levels], labels)
    return {
        cell_key(name, matrices.levels[row].name): reached[row]
        for name, _, row, _ in _cells(matrices)
    }


def crossed(levels: Sequence[str], labels: Sequence[TierLabel]) -> list[tuple[str, ...]]:
    """Return tiers and links of a picture that traffic of every level crosses, innermost first.

    A level of a tier's name climbs the links up to that tier and all below them, also where the
    levels leave tiers out. On a torus every level crosses every class of links. Where no class has
    a level's name, as in drawings, each level crosses one more, and the last one all.

    Parameters
    ----------
    levels : sequence of str
        Names, innermost first.
    labels : sequence of TierLabel
        Of the fabric's picture, top tier first.
    """
    order = [label.what for label in reversed(labels)]
    links = [what for what in order if what.startswith("links ")]
    if any(_HOPS.match(level) for level in levels):
        return [tuple(links)] * len(levels)
    result: list[tuple[str, ...]] = []
    passed: dict[str, None] = {}
    for number, level in enumerate(levels):
        name = level.partition(",")[0]
        up = f"links {name}" if f"links {name}" in links else _LINKS.get(name, "")
        new = links if number + 1 == len(levels) else links[:number]
        if up in links and name != "node":
            below = order[: order.index(up) + 1]
            tiers = [what for what in below if what == "node" or f"links {what}" in links]
            new = [*tiers, *(what for what in below if what in links)]
            new += [name] if name in order else []
        elif number == 0:
            new = [what for what in order if what in ("node", "inside")]
        passed |= dict.fromkeys(new)
        result.append(tuple(passed))
    return result


def matrix_picture(
    matrices: CostMatrices, labels: Sequence[TierLabel] = (), height: float = 460.0
) -> Drawn:
    """Return seconds of an iteration by class and level.

    Parameters
    ----------
    matrices : CostMatrices
    labels : sequence of TierLabel
        Of the fabric's picture beside it: levels stand at the height of the tiers of their name.
    height : float
        Of that picture.
    """
    rows = _heights(matrices.levels, labels, height)
    marks: list[Mark] = []
    top = min(rows) - _CELL / 2 - 10
    for column, (name, size) in enumerate(matrices.ranks.items()):
        x = _middle(column)
        ranks = "ends" if name == "tied" else "stages" if name == "pp" else f"{size:,} ranks"
        head = wrapped(MATRIX_CLASSES[name][1], _COLUMN, TEXT, bold=True, max_lines=2)
        marks += [
            Words(text, "bold", x, top - 16 - 15 * line, anchor="middle")
            for line, text in enumerate(reversed(head))
        ]
        marks.append(Words(ranks, "soft", x, top - 1, anchor="middle"))
    for level, y in zip(matrices.levels, rows, strict=True):
        rate = f"{humanise(level.bandwidth_Bps / GB)} GB/s"
        marks += [
            Words(level.name, "bold", _LABEL - 10, y - 1, anchor="end"),
            Words(rate, "soft", _LABEL - 10, y + 14, anchor="end"),
        ]
    shades = _shades(matrices)
    for name, column, row, seconds in _cells(matrices):
        y, is_chosen = rows[row], bool(matrices.own[column, row])
        key = cell_key(name, matrices.levels[row].name)
        look = f"cell tint-{shades[column, row]}{' own' if is_chosen else ''}"
        inset = 1.0 if is_chosen else 0.0  # of the outline
        place = _LABEL + column * _COLUMN + inset, y - _CELL / 2 + inset
        marks.append(Box(key, look, *place, _COLUMN - 4 - 2 * inset, _CELL - 2 * inset))
        ink, at = "bold" if is_chosen else "", (_middle(column), y + 5)
        marks.append(Words(_digits(seconds), ink, *at, _VALUE, "middle", key))
    marks += [
        Words("–", "soft", _middle(column), rows[row] + 5, _VALUE, "middle")
        for column, row in np.argwhere(np.isnan(matrices.seconds)).tolist()
    ]
    width, below = _LABEL + _COLUMN * len(matrices.ranks), max(rows) + _CELL / 2 + 4
    return Drawn(matrix_finding(matrices), _SUBTITLE, width, below, tuple(marks))


def _middle(column: int) -> float:
    return _LABEL + column * _COLUMN + (_COLUMN - 4) / 2


def _digits(seconds: float) -> str:
    """Return three digits, none beyond a millisecond.

    Examples
    --------
    >>> _digits(1.6902), _digits(0.01532), _digits(0.0000213)
    ('1.69', '0.015', '< 0.001')
    """
    return f"{seconds:.3g}" if seconds >= 1 else f"{seconds:.3f}" if seconds >= 5e-4 else "< 0.001"


def _shades(matrices: CostMatrices) -> IntArray:
    """Return 0 (least) to `_SHADES` by the logarithm of the seconds."""
    with np.errstate(divide="ignore"):
        logs = np.log10(np.nan_to_num(matrices.seconds, nan=0.0))
    ends = logs[np.isfinite(logs)]
    low = float(ends.min(initial=np.inf)) if len(ends) else 0.0
    high = max(float(ends.max(initial=-np.inf)), low + 1.0)
    share = np.clip((np.nan_to_num(logs, neginf=low) - low) / (high - low), 0.0, 1.0)
    return np.rint(share * _SHADES).astype(np.int64)


def _heights(levels: Sequence[LevelOf], labels: Sequence[TierLabel], height: float) -> list[float]:
    """Return the middle of every level's row, innermost first: at its tier, at least a row apart.

    Where the picture is too low for all rows they go on below it.
    """
    tiers = {label.what: (label.top + label.bottom) / 2 for label in labels}
    parts = [label for label in labels if label.bottom > label.top]
    top = min((label.top for label in parts), default=0.0)
    bottom = max((label.bottom for label in parts), default=height)
    count, step = len(levels), (bottom - top) / len(levels)
    wanted = [
        tiers.get(levels[number].name, bottom - (number + 0.5) * step)
        for number in reversed(range(count))
    ]
    low = max(top, _HEADS) + _CELL / 2
    high = max(height - 2, _HEADS + (count - 1) * _ROW + _CELL) - _CELL / 2 + _ROW
    return spread(wanted, [_ROW] * count, low, high)[::-1]


def pointed_picture(
    drawn: Drawn, matrices: CostMatrices | None = None, loads: Loads | None = None
) -> dict[str, Any]:
    """Return what a browser is told of a picture, its matrix, and what pointing at them says.

    That is: lines by key, or by class of links, of which the first is the head; classes of the bill
    that a cell of the matrix lights; and the same as rows for who does not see the picture.

    Parameters
    ----------
    drawn : Drawn
        The fabric's picture.
    matrices : CostMatrices, optional
        What the matrix beside it draws.
    loads : Loads, optional
        Of the plan that the picture has.
    """
    busy = _busy(loads, drawn.labels) if loads else {}
    tips: dict[str, tuple[str, ...]] = {}
    for label in drawn.labels:
        ratio = "" if label.ratio is None else f"{label.ratio:.3g} down : 1 up"
        gone = f"{label.gone:,} more have failed" if label.gone else ""
        load = busy.get(label.what) or busy.get(f"links {label.what}", ())
        tips[label.what] = tuple(filter(None, (label.head, *label.words, ratio, gone, *load)))
    matrix = None
    if matrices is not None:
        tips |= _cell_tips(matrices)
        matrix = matrix_picture(matrices, drawn.labels, drawn.height) if matrices.ranks else None
    return {
        "title": drawn.title,
        "subtitle": drawn.subtitle,
        "svg": to_svg(drawn),
        "finding": matrix.title if matrix else "",
        "reading": matrix.subtitle if matrix else "",
        "matrix": to_svg(matrix) if matrix else "",
        "tips": tips,
        "lights": lights(matrices, drawn.labels) if matrices else {},
        "said": tuple((words[0], ", ".join(words[1:])) for words in tips.values() if words),
        "width": drawn.width,
    }


def _busy(loads: Loads, labels: Sequence[TierLabel]) -> dict[str, tuple[str, ...]]:
    """Return loads by class of links; classes that one tier has together share its busiest link."""
    reached = crossed([level.name for level in loads.network.levels], labels)
    busy: dict[str, tuple[str, ...]] = {}
    for tier in loads.tiers:
        before = reached[tier.level - 1] if tier.level else ()
        new = [what for what in reached[tier.level] if what not in before]
        links = [what for what in new if what.startswith("links ")]
        which = "the busiest link" if len(links) == 1 else "the busiest of all links"
        worst = tier.busiest
        time = humanise_seconds(worst.utilisation * loads.iteration_s)
        lines = [f"{CLASSES[name]}: {percent(part)}" for name, part in worst.users.items()]
        first = f"{which} is busy {time}, {percent(worst.utilisation)} of an iteration"
        busy |= dict.fromkeys(links, (first, worst.link, *lines))
    return busy


def _cell_tips(matrices: CostMatrices) -> dict[str, tuple[str, ...]]:
    tips: dict[str, tuple[str, ...]] = {}
    for name, column, row, seconds in _cells(matrices):
        level, ranks = matrices.levels[row].name, matrices.ranks[name]
        who = "neighbouring stages" if name == "pp" else f"groups of {ranks:,} ranks"
        time = f"{humanise_seconds(seconds)} of an iteration"
        tips[cell_key(name, level)] = (
            f"{MATRIX_CLASSES[name][1].capitalize()}, {level}: {time}",
            f"if {who} reach up to level {level}, all sending at once",
            *(("this is the plan's own level",) if matrices.own[column, row] else ()),
        )
    return tips
