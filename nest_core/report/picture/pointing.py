"""What pointing at a part of a picture says and lights.

Parts are named by their keys, links by the class of the bill that they belong to. Loads are those
of the busiest link of each tier (`nest_core.explain.loads`), in milliseconds and as shares of an
iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.documents.units import humanise_seconds, percent
from nest_core.explain.cost_matrices import MATRIX_CLASSES, CostMatrices
from nest_core.explain.loads import Loads, TierLoad
from nest_core.explain.traffic import CLASSES
from nest_core.report.picture.marks import Drawn, TierLabel
from nest_core.report.picture.matrix import cell_key, crossed, lights

__all__ = ["Pointing", "pointing"]


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
