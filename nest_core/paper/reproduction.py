"""What a figure or table of the paper is once it has been computed again, and what is stored of it.

What the paper and its artifact print, and what stands here for its clusters and models.

From ``presets/paper/printed.toml`` and ``presets/paper/own.toml``.

References
----------
NEST, MLSys 2026 (figures, tables, text); scai-tech/Nest (MIT), reference results and README.

What a figure or table of the paper is once it has been computed again.

Throughputs are relative, times seconds, sizes bytes unless a field's name carries its unit.

Figures, tables and sentences on the paper that were computed once, as they are stored.

``presets/paper/results/NAME-COSTS.json`` holds one, with where its numbers come from and the
command that computes it again. JSON, since rows have null where nothing fits, which TOML lacks.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from nest_core.documents import NOTHING, load_toml, preset_path

__all__ = [
    "STORED",
    "Costs",
    "Reproduction",
    "ResultTable",
    "Row",
    "cluster_name",
    "geometric_mean",
    "model_name",
    "plan_words",
    "printed",
    "printed_rows",
    "ratio",
    "settings",
    "stored",
    "stored_paragraph",
]


@cache
def settings() -> dict[str, Any]:
    """Return the whole document; do not change it."""
    return load_toml(preset_path("paper", "own.toml"))


def cluster_name(setup: str) -> str:
    """Return a cluster's name for people."""
    return str(settings()["cluster"][setup]["name"])


def model_name(model: str) -> str:
    """Return a model's name for people."""
    return str(settings()["model"][model]["name"])


@cache
def printed() -> dict[str, Any]:
    """Return the whole document; do not change it."""
    return load_toml(preset_path("paper", "printed.toml"))


def printed_rows(figure: str) -> dict[tuple[str, int, int], dict[str, float]]:
    """Relative throughputs of a figure, and NEST's search seconds, by cell.

    Returns
    -------
    dict
        From model, devices and micro-batch to ``{planner: figure}``; empty where the paper
        shows a picture and the artifact prints nothing.
    """
    return {
        (row["model"], row["devices"], row["micro_batch"]): {
            key: value
            for key, value in row.items()
            if key not in ("model", "devices", "micro_batch")
        }
        for row in printed()["figures"][figure]["rows"]
    }


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
        """Return the rows of the figure or table itself."""
        return self.tables[0].rows

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the command line's ``paper``."""
        return {
            "name": self.name,
            "title": self.title,
            "costs": self.costs,
            "printed": self.printed,
            **{table.key: list(table.rows) for table in self.tables},
            "paragraph": " ".join(self.paragraph),
        }


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the mean of positive values; None of none.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def ratio(value: float | None, digits: int = 2) -> str:
    """Return a relative throughput or gain; a dash where there is none."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def plan_words(plan: Mapping[str, Any] | None) -> str:
    """Return degrees in the paper's letters, without what is 1 or none beyond p, d and t.

    Examples
    --------
    >>> plan_words({"p": 8, "d": 64, "t": 1, "s": 1, "zero": 1, "recompute": "none"})
    'p 8, d 64, t 1, ZeRO-1'
    """
    if plan is None:
        return "no plan"
    zero, recompute = plan.get("zero"), plan.get("recompute", "none")
    parts = (
        *(
            f"{key} {plan[key]}"
            for key in ("p", "d", "t", "s", "e", "c")
            if key in plan and (plan[key] != 1 or key in ("p", "d", "t"))
        ),
        f"ZeRO-{zero}" if zero else "",
        f"recomputation {recompute}" if recompute != "none" else "",
    )
    return ", ".join(filter(None, parts))


STORED = (
    "figure1",
    "figure2",
    "figure3",
    "figure8",
    "figure9",
    "figure10",
    "section5",
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "table6",
    "table7",
)
"""Names of what is stored; everything else is computed when it is wanted."""


def stored(name: str, costs: Costs) -> Reproduction:
    """Return a stored figure or table."""
    path = preset_path("paper", "results", f"{name}-{costs}.json")
    document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tables = (
        ResultTable(table["key"], table["title"], tuple(table["rows"]), tuple(table["words"]))
        for table in document["tables"]
    )
    return Reproduction(
        name,
        document["title"],
        costs,
        document["printed"],
        tuple(tables),
        (*document["paragraph"], _again(name)),
    )


def stored_paragraph(name: str, costs: Costs) -> tuple[str, ...]:
    """Return the sentences under a figure whose rows are computed when they are wanted."""
    return (*load_toml(preset_path("paper", "paragraphs.toml"))[name][costs], _again(name))


def _again(name: str) -> str:
    return f"Stored; computed again by `python -m benchmarks.paper {name}`."
