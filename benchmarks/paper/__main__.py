"""Compute stored figures and tables of the paper again.

``python -m benchmarks.paper [NAME...]`` writes ``presets/paper/results`` of the names, or of all,
under both costs, and ``presets/paper/paragraphs.toml`` with the sentences under throughputs. Do it
when costs, presets of the paper or the planner change what they hold; ``benchmarks/compare.py``
lists the rows that moved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from benchmarks.paper.throughput_words import paragraph
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import load_toml, preset_path
from nest_core.paper import reproduce
from nest_core.paper.cases import FIGURES
from nest_core.paper.reproduction import STORED, Costs, Reproduction
from nest_studio.cli import console, execute

__all__ = ["compute", "run", "sentences"]

NAME = "python -m benchmarks.paper"
HEAD = "# Sentences under figures of throughputs; written by python -m benchmarks.paper.\n"
COSTS: tuple[Costs, ...] = ("published", "own")
MODULES = {
    "figure1": "strategies",
    "figure2": "iterations",
    "figure3": "strategies",
    "figure8": "topologies",
    "figure9": "topologies",
    "figure10": "iterations",
    "section5": "claims",
    "table1": "planners",
    "table2": "planners",
    "table3": "scaled_models",
    "table4": "planners",
    "table5": "scaled_models",
    "table6": "layer_memory",
    "table7": "zero_ablation",
}


def compute(name: str, costs: Costs) -> Reproduction:
    """Return a figure or table, computed now."""
    result: Reproduction = getattr(import_module(f"benchmarks.paper.{MODULES[name]}"), name)(costs)
    return result


def result_document(result: Reproduction) -> str:
    """Return the text of a result's file, which `nest_core.paper.reproduction.stored` reads."""
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


def sentences(name: str, costs: Costs) -> list[str]:
    """Return what is to be said under a throughput figure, computed from its rows."""
    tables = {table.key: table.rows for table in reproduce(name, costs).tables}
    return list(
        paragraph(name, costs, tables["rows"], tables["averages"], tables.get("template", ()))
    )


def write(
    names: Annotated[
        list[str] | None, typer.Argument(help="Of what is stored; all if none.")
    ] = None,
) -> None:
    """Compute stored figures and tables again, and write them."""
    every = (*STORED, *FIGURES)
    for name in names or every:
        if name not in every:
            rule = f"must be one of {', '.join(every)}"
            raise InputError("NAME", rule, name, "name one of them, or none for all")
        if name in FIGURES:
            path = preset_path("paper", "paragraphs.toml")
            document = load_toml(path) | {name: {costs: sentences(name, costs) for costs in COSTS}}
            path.write_text(HEAD + toml_document(document), encoding="utf-8")
            print(path.name, name, flush=True)
            continue
        for costs in COSTS:
            path = preset_path("paper", "results", f"{name}-{costs}.json")
            path.write_text(result_document(compute(name, costs)), encoding="utf-8")
            print(path.name, flush=True)


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code."""
    application = typer.Typer(add_completion=False, rich_markup_mode=None)
    application.command()(write)
    return execute(typer.main.get_command(application), arguments, NAME)


if __name__ == "__main__":
    console(run)
