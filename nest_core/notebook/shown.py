"""What a cell shows: the value that pages, reports and Jupyter notebooks draw from."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.explain.summary import Headline
from nest_core.figures import Picture
from nest_core.notebook.cells import Row
from nest_core.picture import Drawn
from nest_core.report.tables import Table

__all__ = ["FABRIC_PX", "Shown"]

FABRIC_PX = 687.0
"""Width of a fabric's picture: the column of a report, 182 mm, so that words keep their size."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a cell shows.

    Parameters
    ----------
    rows : tuple of Row
        The results as plain figures; what `Summary` keeps.
    headlines : tuple of Headline
        With the formula behind each.
    facts : tuple of str
        Sentences.
    pictures : tuple of Picture
    table : Table or None
    fabric : Drawn or None
        The fabric, coloured by the plan where there is one; `FABRIC_PX` wide.
    """

    rows: tuple[Row, ...] = ()
    headlines: tuple[Headline, ...] = ()
    facts: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    table: Table | None = None
    fabric: Drawn | None = None
