"""``nest-studio bill``: what a cluster costs to buy and keep, and what decides between designs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.documents.overrides import settings
from nest_core.documents.text import table
from nest_core.documents.units import format_money, humanise
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.plan import Sets

if TYPE_CHECKING:
    from nest_core.studies.whole_bill import WholeBill

__all__ = ["again_of", "bill"]


def bill(
    design: Annotated[str, typer.Argument(help="Scenario or fabric: a preset or a file.")],
    sets: Sets = None,
    prices: Annotated[
        str | None, typer.Option(help="Price list: a preset or a TOML file, whole or with a base.")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            help="Designs beside each other, by commas: ratios (1:1,2:1), topologies of this size "
            "(rail-only, torus, …), fabrics."
        ),
    ] = None,
    tokens: Annotated[float | None, typer.Option(help="Of the training run.")] = None,
    order: Annotated[
        str, typer.Option(help="Compared designs by price, days or failure.")
    ] = "price",
    sheet: Annotated[
        Path | None,
        typer.Option(
            help="Also write the decision sheet of compared scenarios, an HTML file to print; "
            "with failed switches where --order failure plans them."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """The whole bill of a scenario or a fabric, line by line, and its break-evens."""
    from nest_core.scenario import scenario_or_fabric
    from nest_core.studies.break_evens import with_break_evens
    from nest_core.studies.designs import whole_bills
    from nest_core.studies.ordering import ordered
    from nest_studio.commands.watching import watched

    changes = settings(sets or ())
    if prices is not None:  # a file of the person's, wherever the scenario's file is
        changes["prices"] = str(Path(prices).absolute()) if prices.endswith(".toml") else prices
    others = [] if compare is None else [part.strip() for part in compare.split(",")]
    first_design = scenario_or_fabric(design, changes, Path())
    with watched() as (_, stop):
        bills = whole_bills(
            first_design, others, tokens=tokens, failures=order == "failure", stop=stop
        )
    if sheet is not None:
        _write(sheet, bills, again_of(design, sets or (), prices, compare, tokens, order))
    first, *_ = bills
    rows = ordered(bills, order) if others else ()
    fields = first.to_json() | {
        "break_even": [
            {
                "quantity": entry.quantity,
                "value": entry.value,
                "low": entry.low,
                "high": entry.high,
                "winner": entry.winner,
                "sentence": entry.sentence,
            }
            for entry in with_break_evens(bills)
        ],
        "compared": [entry.to_json() for entry in bills] if others else [],
        "order": [asdict(row) for row in rows],
    }
    emit(fields, as_json, _as_text)


def again_of(
    design: str,
    sets: Sequence[str],
    prices: str | None,
    compare: str | None,
    tokens: float | None,
    order: str,
) -> str:
    """Return the command that makes a sheet again, as one types it."""
    words = ["nest-studio", "bill", design]
    for setting in sets:
        words += ["--set", setting]
    given = (("--prices", prices), ("--compare", compare))
    words += [word for name, value in given if value is not None for word in (name, value)]
    words += [] if tokens is None else ["--tokens", f"{tokens:.10g}"]
    words += [] if order == "price" else ["--order", order]
    return shlex.join([*words, "--sheet", "FILE.html"])


def _write(file: Path, bills: Sequence[WholeBill], again: str) -> None:
    from datetime import datetime

    from nest_core.documents.files import write_file
    from nest_core.report.sheet import decision_sheet

    write_file(file, decision_sheet(bills, again, datetime.now()), "--sheet")


def _as_text(fields: Mapping[str, Any]) -> str:
    parts = [
        f"{fields['name']}, {fields['devices']:,} devices, price list {fields['prices']}",
        "",
        _lines(fields["lines"]),
        "",
        *_figures(fields),
    ]
    parts += ["", *(entry["sentence"] for entry in fields["break_even"])]
    if fields["order"]:
        parts += ["", _ordered(fields["order"])]
    parts += ["", "Sources of prices:"]
    sources = {line["source"]: line["name"] for line in reversed(fields["lines"])}
    parts += [f"  {name}: {source}" for source, name in reversed(sources.items())]
    parts += ["", *fields["assumed"], *(f"! {check}" for check in fields["checks"])]
    parts += [
        f"! {entry['name']}: {entry['caveat']}" for entry in _designs(fields) if entry["caveat"]
    ]
    return "\n".join(parts)


def _designs(fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Those that are compared, or the one alone."""
    return fields["compared"] or [fields]


def _lines(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            line["part"],
            line["name"],
            f"{line['count']:,}",
            line["unit"],
            None if line["unit_usd"] is None else f"{line['unit_usd'][1]:,.6g}",
            "no source" if line["usd"] is None else f"{line['usd']:,.0f}",
            _ends(line["usd_range"]),
            None if line["power_w"] is None else f"{line['power_w']:,.0f}",
            None if line["failures_per_year"] is None else f"{line['failures_per_year']:.3g}",
        ]
        for line in lines
    ]
    header = ["part", "item", "number", "of", "each, $", "all, $", "low to high, $", "power, W"]
    return table([*header, "failures a year"], rows)


def _ends(value: Sequence[float] | None) -> str | None:
    return None if value is None else f"{value[0]:,.0f} to {value[2]:,.0f}"


def _figures(fields: Mapping[str, Any]) -> list[str]:
    low, typical, high = fields["total_usd_range"]
    lines = [
        f"together {format_money(typical)} ({format_money(low)} to {format_money(high)}) over "
        f"{fields['years']:g} years, at most {humanise(fields['power_w'], 'W')}"
    ]
    if fields["missing"]:
        lines.append(f"without {', '.join(fields['missing'])}: no source")
    hourly = fields["usd_per_gpu_hour_range"]
    if hourly:
        sold = fields["sold_share"]
        share = "every hour used" if sold is None else f"{100 * sold:.3g} % of the hours sold"
        lines.append(
            f"${hourly[1]:.2f} (${hourly[0]:.2f} to ${hourly[2]:.2f}) per accelerator-hour, {share}"
        )
    cost = fields["usd_per_million_tokens_range"]
    if cost:
        lines.append(f"${cost[1]:.3g} (${cost[0]:.3g} to ${cost[2]:.3g}) per million tokens")
    if fields["tokens_per_kwh"]:
        lines.append(f"{humanise(fields['tokens_per_kwh'])} tokens per kWh")
    run = fields["training"]
    if run:
        low, high = run["days_range"]
        price = "" if run["usd"] is None else f" and {format_money(run['usd'])}"
        lines.append(
            f"{humanise(run['tokens'])} tokens take {run['days']:.3g} days ({low:.3g} to "
            f"{high:.3g}){price}"
        )
    if fields["gap"]:
        lines.append(f"plan not proven: up to {100 * fields['gap']:.3g} % from the best")
    if fields["reason"]:
        lines.append(f"no plan: {fields['reason']}")
    return lines


def _ordered(rows: Sequence[Mapping[str, Any]]) -> str:
    return table(
        ["rank", "design", "figure", "", "ties with"],
        [
            [row["rank"], row["name"], row["text"], row["note"], ", ".join(row["ties"]) or None]
            for row in rows
        ],
    )
