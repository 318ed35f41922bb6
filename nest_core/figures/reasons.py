"""Why there is no plan, beside a bar and under the pointer.

A reason is a sentence of any length. Beside a bar stand its first words; the whole of it is told
where the row is pointed at.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

__all__ = ["pointed_rows", "shortened", "wrapped"]

_SHORT = 48
_WIDE = 70


def shortened(reason: str) -> str:
    """What a reason says before its first colon, cut between words after 48 characters.

    Examples
    --------
    >>> shortened("no plan fits into memory: the leanest found needs 90 GiB")
    'no plan fits into memory'
    """
    return textwrap.shorten(reason.partition(":")[0], _SHORT, placeholder=" …")


def wrapped(reason: str) -> str:
    """A reason in lines of 70 characters at most, as plotly breaks them.

    Examples
    --------
    >>> wrapped("no plan fits into memory")
    'no plan fits into memory'
    """
    return "<br>".join(textwrap.wrap(reason, _WIDE))


def pointed_rows(told: Mapping[int, str], end: float) -> list[dict[str, Any]]:
    """Invisible bars over whole rows, which a bar of no length cannot be pointed at.

    Parameters
    ----------
    told : mapping of int to str
        What the pointer is told, by row.
    end : float
        Where the axis ends.
    """
    if not told:
        return []
    return [
        {
            "type": "bar",
            "name": "reasons",
            "orientation": "h",
            "x": [end] * len(told),
            "y": list(told),
            "opacity": 0,
            "customdata": list(told.values()),
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    ]
