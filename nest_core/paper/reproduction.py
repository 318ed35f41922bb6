"""What a figure or table of the paper is once it has been computed again.

Throughputs are relative, times seconds, sizes bytes unless a field's name carries its unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nest_core.documents.units import NOTHING

__all__ = [
    "Costs",
    "Reproduction",
    "ResultTable",
    "Row",
    "geometric_mean",
    "plan_words",
    "ratio",
]

Costs = Literal["published", "own"]
"""The artifact's cost model, or this project's physics."""

Row = dict[str, Any]
"""Plain values by field, as the command line prints them."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows as values and in words.

    Parameters
    ----------
    key : str
        Field of the command line's answer.
    title : str
    rows : tuple of Row
    words : tuple of dict
        The same content as text under the names of columns, the paper's columns beside ours;
        one row may become several lines.
    """

    key: str
    title: str
    rows: tuple[Row, ...]
    words: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A figure or table of the paper, computed again.

    Parameters
    ----------
    name : str
        ``figure5``, ``table7``.
    title : str
    costs : {"published", "own"}
    printed : str
        One sentence: what the paper prints of it, and where the numbers come from.
    tables : tuple of ResultTable
        The first, with key ``rows``, is the figure or table itself.
    paragraph : tuple of str
        Sentences: what agrees, what differs and why; every number in them is computed.
    """

    name: str
    title: str
    costs: Costs
    printed: str
    tables: tuple[ResultTable, ...]
    paragraph: tuple[str, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Of the figure or table itself."""
        return self.tables[0].rows

    def to_json(self) -> dict[str, Any]:
        """The fields of the command line's ``paper``."""
        return {
            "name": self.name,
            "title": self.title,
            "costs": self.costs,
            "printed": self.printed,
            **{table.key: list(table.rows) for table in self.tables},
            "paragraph": " ".join(self.paragraph),
        }


def geometric_mean(values: Iterable[float]) -> float | None:
    """Of positive values; None of none.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def ratio(value: float | None, digits: int = 2) -> str:
    """A relative throughput or gain; a dash where there is none."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def plan_words(plan: Mapping[str, Any] | None) -> str:
    """A plan's degrees in the paper's letters; what is 1 or none is left out beyond p, d and t.

    Examples
    --------
    >>> plan_words({"p": 8, "d": 64, "t": 1, "s": 1, "zero": 1, "recompute": "none"})
    'p 8, d 64, t 1, ZeRO-1'
    """
    if plan is None:
        return "no plan"
    parts = [
        f"{key} {plan[key]}"
        for key in ("p", "d", "t", "s", "e", "c")
        if key in plan and (plan[key] != 1 or key in ("p", "d", "t"))
    ]
    if plan.get("zero"):
        parts.append(f"ZeRO-{plan['zero']}")
    if plan.get("recompute", "none") != "none":
        parts.append(f"recomputation {plan['recompute']}")
    return ", ".join(parts)
