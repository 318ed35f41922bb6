"""The level-wise cost matrix as a picture, its rows at the height of the fabric's tiers.

Columns are classes of traffic, rows are levels, the outermost on top. A cell says the seconds of
one iteration that its class takes if its groups reach up to that level
(`nest_core.explain.cost_matrices`); those of the plan itself are outlined. `lights` names, for
every cell, the classes of links that its traffic crosses: those of its level and of all within.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.documents.units import GB, humanise, humanise_seconds, percent
from nest_core.explain.cost_matrices import MATRIX_CLASSES, CostMatrices, LevelOf, matrix_finding
from nest_core.explain.loads import Loads, TierLoad
from nest_core.explain.traffic import CLASSES
from nest_core.report.picture.frame import TEXT
from nest_core.report.picture.marks import Box, Drawn, Mark, TierLabel, Words
from nest_core.report.picture.text import wrapped

__all__ = ["Pointing", "cell_key", "crossed", "lights", "matrix_picture", "pointing"]


SHADES = 4
SUBTITLE = (
    "Seconds of an iteration if a class's groups reach up to a level, at this plan's widths; "
    "outlined: the plan's own; –: no group of that size ends there"
)
_LABEL, _COLUMN, _ROW, _CELL, _HEADS = 104.0, 58.0, 56.0, 34.0, 44.0
_VALUE = 14.0
_HOPS = re.compile(r"\d+ hops?\b")
_LINKS = {"router": "links node", "group": "links local"}
"""By which levels of a dragonfly are reached, where links are not called as the level."""


def cell_key(name: str, level: str) -> str:
    """The key of a class' cell at a level."""
    return f"{MATRIX_CLASSES[name][1]} traffic at the {level}"


def lights(matrices: CostMatrices, said: Sequence[TierLabel]) -> dict[str, tuple[str, ...]]:
    """Classes of the bill whose marks a cell lights, by the cell's key.

    Parameters
    ----------
    matrices : CostMatrices
    said : sequence of TierLabel
        Of the fabric's picture, top tier first.
    """
    reached = crossed([level.name for level in matrices.levels], said)
    return {
        cell_key(name, level.name): reached[row]
        for column, name in enumerate(matrices.ranks)
        for row, level in enumerate(matrices.levels)
        if not np.isnan(matrices.seconds[column, row])
    }


def crossed(levels: Sequence[str], said: Sequence[TierLabel]) -> list[tuple[str, ...]]:
    """Tiers and links of a picture that traffic of every level crosses, innermost first.

    A level of a tier's name climbs the links up to that tier and all below them, also where the
    levels leave tiers out. On a torus every level crosses every class of links. Where no class has
    a level's name, as in drawings, each level crosses one more, and the last one all.

    Parameters
    ----------
    levels : sequence of str
        Names, innermost first.
    said : sequence of TierLabel
        Of the fabric's picture, top tier first.
    """
    order = [one.what for one in reversed(said)]
    links = [what for what in order if what.startswith("links ")]
    if any(_HOPS.match(level) for level in levels):
        return [tuple(links)] * len(levels)
    matrices: list[tuple[str, ...]] = []
    passed: dict[str, None] = {}
    for number, level in enumerate(levels):
        name = level.partition(",")[0]
        up = f"links {name}" if f"links {name}" in links else _LINKS.get(name, "")
        if up in links and name != "node":
            below = order[: order.index(up) + 1]
            tiers = [what for what in below if what == "node" or f"links {what}" in links]
            passed |= dict.fromkeys((*tiers, *(what for what in below if what in links)))
            passed |= dict.fromkeys([name] if name in order else [])
        elif number == 0:
            passed |= dict.fromkeys(what for what in order if what in ("node", "inside"))
        else:
            passed |= dict.fromkeys(links if number + 1 == len(levels) else links[:number])
        matrices.append(tuple(passed))
    return matrices


def matrix_picture(
    matrices: CostMatrices, said: Sequence[TierLabel] = (), height: float = 460.0
) -> Drawn:
    """Seconds of an iteration by class and level.

    Parameters
    ----------
    matrices : CostMatrices
    said : sequence of TierLabel
        Of the fabric's picture beside it: levels stand at the height of the tiers of their name.
    height : float
        Of that picture.
    """
    rows = _heights(matrices.levels, said, height)
    marks: list[Mark] = []
    top = min(rows) - _CELL / 2 - 10
    for column, (name, size) in enumerate(matrices.ranks.items()):
        x = _LABEL + column * _COLUMN + (_COLUMN - 4) / 2
        ranks = "ends" if name == "tied" else "stages" if name == "pp" else f"{size:,} ranks"
        head = wrapped(MATRIX_CLASSES[name][1], _COLUMN, TEXT, bold=True, most=2)
        for line, text in enumerate(reversed(head)):
            marks.append(Words(text, "bold", x, top - 16 - 15 * line, anchor="middle"))
        marks.append(Words(ranks, "soft", x, top - 1, anchor="middle"))
    shades = _shades(matrices)
    for row, (level, y) in enumerate(zip(matrices.levels, rows, strict=True)):
        marks.append(Words(level.name, "bold", _LABEL - 10, y - 1, anchor="end"))
        rate = f"{humanise(level.bandwidth_Bps / GB)} GB/s"
        marks.append(Words(rate, "soft", _LABEL - 10, y + 14, anchor="end"))
        for column, name in enumerate(matrices.ranks):
            marks += _cell(matrices, (column, row), name, y, int(shades[column, row]))
    width = _LABEL + _COLUMN * len(matrices.ranks)
    below = max(rows) + _CELL / 2 + 4
    return Drawn(matrix_finding(matrices), SUBTITLE, width, below, tuple(marks))


def _cell(
    matrices: CostMatrices, place: tuple[int, int], name: str, y: float, shade: int
) -> list[Mark]:
    column, row = place
    x, middle = _LABEL + column * _COLUMN, y + 5
    seconds = float(matrices.seconds[place])
    if np.isnan(seconds):
        return [Words("–", "soft", x + (_COLUMN - 4) / 2, middle, _VALUE, "middle")]
    key = cell_key(name, matrices.levels[row].name)
    look = f"cell tint-{shade}{' own' if matrices.own[place] else ''}"
    inset = 1.0 if matrices.own[place] else 0.0
    return [
        Box(
            key, look, x + inset, y - _CELL / 2 + inset, _COLUMN - 4 - 2 * inset, _CELL - 2 * inset
        ),
        Words(
            _digits(seconds),
            "cell-text bold" if matrices.own[place] else "cell-text",
            x + (_COLUMN - 4) / 2,
            middle,
            _VALUE,
            "middle",
            key,
        ),
    ]


def _digits(seconds: float) -> str:
    """Three digits, none beyond a millisecond.

    Examples
    --------
    >>> _digits(1.6902), _digits(0.01532), _digits(0.0000213)
    ('1.69', '0.015', '< 0.001')
    """
    if seconds >= 1:
        return f"{seconds:.3g}"
    return f"{seconds:.3f}" if seconds >= 5e-4 else "< 0.001"


def _shades(matrices: CostMatrices) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """0 (least) to `SHADES` by the logarithm of the seconds."""
    with np.errstate(divide="ignore"):
        logs = np.log10(np.nan_to_num(matrices.seconds, nan=0.0))
    ends = logs[np.isfinite(logs)]
    if not len(ends):
        return np.zeros(matrices.seconds.shape, np.int64)
    low, high = float(ends.min()), max(float(ends.max()), float(ends.min()) + 1.0)
    share = np.clip((np.nan_to_num(logs, neginf=low) - low) / (high - low), 0.0, 1.0)
    return np.rint(share * SHADES).astype(np.int64)


def _heights(levels: Sequence[LevelOf], said: Sequence[TierLabel], height: float) -> list[float]:
    """Middle of every level's row, innermost first: at its tier, at least a row apart.

    Where the picture is too low for all rows they go on below it.
    """
    tiers = {one.what: (one.top + one.bottom) / 2 for one in said}
    parts = [one for one in said if one.bottom > one.top]
    top = min((one.top for one in parts), default=0.0)
    bottom = max((one.bottom for one in parts), default=height)
    count = len(levels)
    even = [bottom - (number + 0.5) * (bottom - top) / count for number in range(count)]
    wanted = [tiers.get(level.name, at) for level, at in zip(levels, even, strict=True)]
    least = max(top + _CELL / 2, _HEADS + _CELL / 2)
    matrices: list[float] = []
    for at in reversed(wanted):  # from the top down
        matrices.append(max(at, least))
        least = matrices[-1] + _ROW
    most = max(height - 2, _HEADS + (count - 1) * _ROW + _CELL) - _CELL / 2
    for number in range(count - 1, -1, -1):
        matrices[number] = min(matrices[number], most)
        most = matrices[number] - _ROW
    return matrices[::-1]


@dataclass(frozen=True, slots=True)
class Pointing:
    """What a picture and its matrix answer to a pointer.

    Parameters
    ----------
    tips : dict of str to tuple of str
        Lines by key, or by class of links; the first is the head.
    lights : dict of str to tuple of str
        Classes of the bill that a cell of the matrix lights, by its key.
    said : tuple of tuple of str
        Rows of the table for who does not see the picture: what, and its words.
    """

    tips: dict[str, tuple[str, ...]]
    lights: dict[str, tuple[str, ...]]
    said: tuple[tuple[str, ...], ...]


def pointing(drawn: Drawn, matrices: CostMatrices | None, loads: Loads | None = None) -> Pointing:
    """Words of every tier, class of links and cell.

    Parameters
    ----------
    drawn : Drawn
        The fabric's picture.
    matrices : CostMatrices or None
        The matrix beside it.
    loads : Loads, optional
        Of the plan that it shows.
    """
    busy = _busy(loads, drawn.labels) if loads else {}
    tips = {one.what: (*_words(one), *_load_at(one.what, busy)) for one in drawn.labels}
    if matrices is not None:
        tips |= _cells(matrices)
    rows = tuple((words[0], ", ".join(words[1:])) for words in tips.values() if words)
    return Pointing(tips, lights(matrices, drawn.labels) if matrices else {}, rows)


def _words(one: TierLabel) -> tuple[str, ...]:
    """The gutter's words in full, and the ratio in words."""
    ratio = (f"{one.ratio:.3g} down : 1 up",) if one.ratio is not None else ()
    gone = (f"{one.gone:,} more have failed",) if one.gone else ()
    return tuple(word for word in (one.head, *one.words) if word) + ratio + gone


def _busy(loads: Loads, said: Sequence[TierLabel]) -> dict[str, tuple[str, ...]]:
    """Loads by class of links; classes that one tier has together share its busiest link."""
    reached = crossed([level.name for level in loads.network.levels], said)
    matrices: dict[str, tuple[str, ...]] = {}
    for tier in loads.tiers:
        before = reached[tier.level - 1] if tier.level else ()
        new = [what for what in reached[tier.level] if what not in before]
        links = [what for what in new if what.startswith("links ")]
        matrices |= dict.fromkeys(links, _load(loads, tier, alone=len(links) == 1))
    return matrices


def _load_at(what: str, busy: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Of a class of links, or of the links up to a tier of switches."""
    return busy.get(what) or busy.get(f"links {what}", ())


def _load(loads: Loads, tier: TierLoad, *, alone: bool) -> tuple[str, ...]:
    which = "the busiest link" if alone else "the busiest of all links"
    whole = humanise_seconds(tier.share * loads.iteration_s)
    users = sorted(tier.busiest_busy.items(), key=lambda pair: -pair[1])
    return (
        f"{which} is busy {whole}, {percent(tier.share)} of an iteration",
        *(f"{CLASSES[name]}: {percent(part)}" for name, part in users if part),
    )


def _cells(matrices: CostMatrices) -> dict[str, tuple[str, ...]]:
    tips_of: dict[str, tuple[str, ...]] = {}
    for column, (name, size) in enumerate(matrices.ranks.items()):
        for row, level in enumerate(matrices.levels):
            seconds = float(matrices.seconds[column, row])
            if np.isnan(seconds):
                continue
            who = "neighbouring stages" if name == "pp" else f"groups of {size:,} ranks"
            tips_of[cell_key(name, level.name)] = (
                f"{MATRIX_CLASSES[name][1].capitalize()}, {level.name}: "
                f"{humanise_seconds(seconds)} of an iteration",
                f"if {who} reach up to level {level.name}, all sending at once",
                *(("this is the plan's own level",) if matrices.own[column, row] else ()),
            )
    return tips_of
