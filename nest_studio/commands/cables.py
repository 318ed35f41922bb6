"""``nest-studio cables``: one row per cable of a fabric, for an order or NetBox's bulk import."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nest_studio.commands.output import JsonFlag, emit_parts

if TYPE_CHECKING:
    from nest_core.bill.cables import Cable

__all__ = ["cables"]


def cables(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file.")],
    format_: Annotated[
        Literal["csv", "netbox"],
        typer.Option("--format", help="Every column, or those of NetBox's bulk import of cables."),
    ] = "csv",
    prices: Annotated[
        str, typer.Option(help="Price list, whose floor gives the lengths: a preset or a file.")
    ] = "2026",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE over the price list; the value is TOML."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List every cable of a fabric: from port to port, its kind and its length."""
    from nest_core.bill.cables import cable_schedule, csv_lines
    from nest_core.bill.prices import load_prices
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    schedule = cable_schedule(specification, load_prices(prices, settings or (), Path()))
    if not as_json:
        emit_parts(csv_lines(schedule.cables, format_))
        return
    head = {
        "name": specification.name,
        "count": schedule.count,
        "tiers": dict(schedule.tiers),
        "notes": list(schedule.notes),
    }
    emit_parts(_object(json.dumps(head), schedule.cables))


def _object(head: str, rows: Iterable[Cable]) -> Iterator[str]:
    """Return one JSON object on one line, its rows written as they are made."""
    from nest_core.bill.cables import COLUMNS

    texts = (json.dumps(dict(zip(COLUMNS, row.cells(), strict=True))) for row in rows)
    yield f'{head[:-1]}, "cables": ['
    yield from chain(islice(texts, 1), (f", {text}" for text in texts))
    yield "]}\n"
