"""Figures, tables and sentences on the paper that were computed once, as they are stored.

``presets/paper/results/NAME-COSTS.json`` holds one, with where its numbers come from and the
command that computes it again. JSON, since rows have null where nothing fits, which TOML lacks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nest_core.documents.presets import load_toml, preset_path
from nest_core.paper.reproduction import Costs, Reproduction, ResultTable

__all__ = ["STORED", "result_document", "stored", "stored_paragraph"]

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
    sentences = load_toml(preset_path("paper", "paragraphs.toml"))[name][costs]
    return (*sentences, _again(name))


def _again(name: str) -> str:
    return f"Stored; computed again by `python -m benchmarks.paper {name}`."


def result_document(result: Reproduction) -> str:
    """Return the text of a result's file, which `stored` reads."""
    document = {
        "source": "NEST, MLSys 2026, and its artifact scai-tech/Nest (MIT), as printed.toml says",
        "command": f"python -m benchmarks.paper {result.name}",
        "title": result.title,
        "printed": result.printed,
        "tables": [
            {"key": table.key, "title": table.title, "rows": table.rows, "words": table.words}
            for table in result.tables
        ],
        "paragraph": result.paragraph,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
