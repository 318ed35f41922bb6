"""Table 1: what planners can do, with this project beside the printed columns.

Our column is read from the code: the axes of a search, the sharding stages, the kinds of fabric
that become levels, the largest fabric that is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from nest_core.costs.plan import SCHEDULES, Point
from nest_core.paper.printed import printed
from nest_core.paper.reproduction import Costs, Reproduction, Row, Table, listed
from nest_core.planner import SearchSpace
from nest_core.presets import load_toml, preset_names, preset_path
from nest_core.topology.checks import MAX_DEVICES

__all__ = ["table1", "table1_paragraph"]

_AXES = {"dp": "data", "pp": "pipeline", "tp": "tensor", "sp": "sequence", "cp": "context",
         "ep": "expert", "zero": "ZeRO"}  # fmt: skip
_PRINTED = {"topoopt": "TopoOpt", "alpa": "Alpa", "mist": "Mist", "nest": "NEST"}


def table1(costs: Costs) -> Reproduction:
    """The printed features with our column for the chosen costs."""
    ours = _published() if costs == "published" else _own()
    rows: tuple[Row, ...] = tuple(
        {
            "costs": costs,
            "feature": entry["feature"],
            "published": {name: entry[name] for name in _PRINTED},
            "ours": text,
        }
        for entry, text in zip(printed()["table1"], ours, strict=True)
    )
    return Reproduction(
        "table1",
        "Table 1: features of planners",
        costs,
        "The paper prints this table; the words here are shortened from it.",
        (Table("rows", "Features", rows, tuple(map(_words, rows))),),
        table1_paragraph(rows),
    )


def _own() -> tuple[str, ...]:
    kinds = {
        load_toml(preset_path("fabrics", f"{name}.toml"))["kind"]
        for name in preset_names("fabrics")
    }
    searched = {field.name for field in fields(SearchSpace)}
    axes = [word for name, word in _AXES.items() if name in searched]
    names = {field.name for field in fields(Point)}
    return (
        f"{', '.join(axes)}; schedules {', '.join(SCHEDULES)}",
        "best-first search with bounds over outer points, dynamic program per point",
        f"yes: levels with shared links; {len(kinds)} kinds of fabric in the presets",
        "yes: states, activations, stash and buffers inside the program",
        f"up to {MAX_DEVICES:,} devices",
        "yes: both" if {"ep", "zero"} <= names else "in part",
        "exact over a documented set, with a certificate and its gap",
    )


def _published() -> tuple[str, ...]:
    return (
        "those of the artifact's instances: data, pipeline, tensor; one expert degree each",
        "the artifact's dynamic program, solved exactly",
        "yes: the artifact's nested levels",
        "yes: the artifact's equation 1",
        "its instances: up to 1,024 devices",
        "a fixed expert degree; ZeRO on top (table 7)",
        "exact for the artifact's metric and placement",
    )


def table1_paragraph(rows: Sequence[Row]) -> tuple[str, ...]:
    """What of the NEST column holds for the artifact, and what ours adds."""
    axes = next(row for row in rows if row["feature"] == "Parallelism strategies")
    mine = [word.strip() for word in str(axes["ours"]).split(";")[0].split(",")]
    theirs = [word.strip() for word in axes["published"]["nest"].split(",")]
    shared = [word for word in theirs if word in mine]
    return (
        f"Of the {len(theirs)} strategies printed for NEST {len(shared)} are axes of the search "
        f"priced here ({listed(shared)}).",
        "What differs: the artifact's instances fix the expert and context degrees, so these two "
        "are inputs there and not searched.",
        "Optimality: the artifact's program is exactly optimal for its own metric (see "
        "figure 5), which is the largest stage time; over a whole iteration that is not "
        "enough, so the own program keeps the Pareto set of sum and maximum.",
    )


def _words(row: Row) -> dict[str, str]:
    return {
        "feature": row["feature"],
        **{f"{label}, printed": row["published"][name] for name, label in _PRINTED.items()},
        "here": row["ours"],
    }
