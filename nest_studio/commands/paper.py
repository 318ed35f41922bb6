"""``nest-studio paper``: the paper's figures, computed again and beside what was published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from nest_core.errors import InputError
from nest_studio.commands.output import JsonFlag, emit, table

__all__ = ["paper"]

FIGURES = ("figure5",)


def paper(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(FIGURES)}.")],
    costs: Annotated[
        Literal["published", "own"], typer.Option(help="The artifact's costs, or this studio's.")
    ] = "published",
    as_json: JsonFlag = False,
) -> None:
    """Compute a figure of the paper again."""
    if name not in FIGURES:
        raise InputError("NAME", "must be a figure that is known here", name, f"try {FIGURES[0]}")
    if costs != "published":
        raise InputError("--costs", f"must be published for {name}", costs, "leave the option out")
    from nest_core.published import figure5

    emit({"rows": figure5()}, as_json, _as_text)


def _as_text(result: Mapping[str, Any]) -> str:
    rows = result["rows"]
    baselines = [name for name in rows[0]["baselines"] if name != "alpa_e"]
    return (
        "Throughput relative to the model's first feasible manual plan. Each baseline: printed in "
        "the paper / evaluated\nas its artifact does, stages in reverse order / in their right "
        "order; a dash is infeasible.\n\n"
    ) + table(
        ["model", "devices", "ours", "printed", *baselines, "alpa_e, printed"],
        [
            [
                row["model"],
                row["devices"],
                _ratio(row["ours"]),
                _ratio(row["published"]),
                *(_three(row["baselines"][name]) for name in baselines),
                _ratio(row["baselines"]["alpa_e"]["published"]),
            ]
            for row in rows
        ],
    )


def _three(entry: Mapping[str, Any]) -> str:
    shown = (entry["published"], entry["as_published"], entry["right_order"])
    return " / ".join(_ratio(value) or "–" for value in shown)


def _ratio(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"
