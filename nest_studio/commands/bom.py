"""``nest-studio bom``: what a fabric's network consists of, costs and draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["bom"]


def bom(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file.")],
    prices: Annotated[
        str, typer.Option(help="Price list: a preset or a TOML file, whole or with a base.")
    ] = "2026",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE over the price list; the value is TOML."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Count and price the switches, cards, transceivers and cables of a fabric."""
    from dataclasses import asdict

    from nest_core.bill.bill import bill
    from nest_core.bill.prices import load_prices
    from nest_core.network import collapse
    from nest_core.network.bisection import bisection_Bps
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    parts = bill(specification, load_prices(prices, settings or (), Path()))
    fields = {
        "name": parts.name,
        "prices": parts.prices,
        "switches": _summed((total.role, total.count) for total in parts.switches),
        "links": _summed((total.tier, total.count) for total in parts.links),
        "nics": parts.nics,
        "transceivers": parts.transceivers,
        "transceiver_modules": parts.modules,
        "cables": parts.cables,
        "cables_by_kind": _summed(
            (run.kind, run.count) for total in parts.links for run in total.runs
        ),
        "price_usd": parts.price_usd.typical,
        "price_usd_low": parts.price_usd.low,
        "price_usd_high": parts.price_usd.high,
        "power_w": parts.power_W.typical,
        "power_w_low": parts.power_W.low,
        "power_w_high": parts.power_W.high,
        "bisection_Bps": bisection_Bps(specification, collapse(specification)),
        "switch_ports": [asdict(total) for total in parts.switches],
        "link_tiers": [asdict(total) for total in parts.links],
        "lines": [asdict(line) for line in parts.lines],
        "nodes": parts.nodes,
        "racks": parts.racks,
        "network_racks": parts.network_racks,
        "nodes_per_rack": parts.nodes_per_rack,
        "node_power_w": parts.node_power_W,
        "rack_power_w": parts.rack_power_W,
        "server": parts.server,
        "checks": list(parts.checks),
    }
    emit(fields, as_json, _as_text)


def _summed(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return counts of one name together."""
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return sums


def _as_text(fields: Mapping[str, Any]) -> str:
    bisection = fields["bisection_Bps"]
    rows = [
        [
            line["item"],
            line["place"],
            f"{line['count']:,}",
            f"{line['price_usd']['typical']:,.0f}" if line["priced"] else "no source",
            f"{line['price_usd']['low']:,.0f}",
            f"{line['price_usd']['high']:,.0f}",
            f"{line['power_W']['typical']:,.0f}",
            "estimate" if line["estimate"] else "listed",
        ]
        for line in fields["lines"]
    ]
    rows.append(
        [
            "together",
            "",
            "–",
            f"{fields['price_usd']:,.0f}",
            f"{fields['price_usd_low']:,.0f}",
            f"{fields['price_usd_high']:,.0f}",
            f"{fields['power_w']:,.0f}",
            "",
        ]
    )
    header = ["part", "for", "number", "price, $", "low, $", "high, $", "power, W", "figures"]
    lines = [
        f"{fields['name']}, price list {fields['prices']}",
        "",
        table(header, rows),
        "",
        f"{fields['nics']:,} NICs, {fields['cables']:,} cables, {fields['transceivers']:,} "
        f"transceivers in {fields['transceiver_modules']:,} modules",
        "bisection unknown"
        if bisection is None
        else f"bisection {bisection / 1e12:,.4g} TB/s, one direction",
        f"{fields['racks']:,} racks of {fields['nodes_per_rack']} {fields['server']}, "
        f"{fields['rack_power_w'] / 1e3:,.4g} kW each, and {fields['network_racks']:,} of switches",
        *(f"! {check}" for check in fields["checks"]),
    ]
    return "\n".join(lines)
