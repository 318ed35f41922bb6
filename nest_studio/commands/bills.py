"""Commands on what a fabric is built of and costs: ``bom``, ``bill``, ``compare``, ``cables``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nest_core.documents import (
    format_money,
    humanise,
    humanise_power,
    read_text,
    require,
    settings,
    summed,
    table,
    write_file,
)
from nest_studio.commands.output import (
    Failures,
    JsonFlag,
    Sets,
    emit,
    emit_parts,
    failure_tables,
    watched,
)

if TYPE_CHECKING:
    from nest_core.bill.cables import Cable
    from nest_core.documents.schema.study import Goal
    from nest_core.studies.decision import Decision
    from nest_core.studies.whole_bill import WholeBill

__all__ = ["again_of", "bill", "bom", "cables", "compare"]

MaxLoss = Annotated[
    float | None,
    typer.Option(
        help="Share of the throughput that the worst single failure may cost where designs tie, "
        "0 to 1."
    ),
]
Sheet = Annotated[
    Path | None, typer.Option(help="Also write the decision sheet, an HTML file to print.")
]


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

    from nest_core.bill.bill import bill
    from nest_core.bill.prices import load_prices
    from nest_core.network import bisection_Bps, collapse
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    parts = bill(specification, load_prices(prices, settings or (), Path()))
    fields = {
        "name": parts.name,
        "prices": parts.prices,
        "switches": summed((total.role, total.count) for total in parts.switches),
        "links": summed((total.tier, total.count) for total in parts.links),
        "nics": parts.nics,
        "transceivers": parts.transceivers,
        "transceiver_modules": parts.modules,
        "cables": parts.cables,
        "cables_by_kind": summed(
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
    emit(fields, as_json, _bom_text)


def _bom_text(fields: Mapping[str, Any]) -> str:
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
    failures: Failures = None,
    max_loss: MaxLoss = None,
    sheet: Sheet = None,
    as_json: JsonFlag = False,
) -> None:
    """Bill a scenario or a fabric as a whole, line by line, with its break-evens."""
    from nest_core.scenario import scenario_or_fabric
    from nest_core.studies.break_evens import of_design
    from nest_core.studies.comparison import assumptions_of
    from nest_core.studies.decision import decide
    from nest_core.studies.designs import whole_bills

    changes = failure_tables(failures) | settings(sets or ())
    if prices is not None:  # a file of the person's, wherever the scenario's file is
        changes["prices"] = str(Path(prices).absolute()) if prices.endswith(".toml") else prices
    others = [] if compare is None else [part.strip() for part in compare.split(",")]
    first_design = scenario_or_fabric(design, changes, Path())
    with watched() as (_, stop):
        bills = whole_bills(first_design, others, tokens=tokens, failures=bool(others), stop=stop)
    again = again_of(design, sets or (), prices, compare, tokens, failures, max_loss)
    is_planned = "workload" in first_design.document and bool(others)
    decision = None
    if is_planned or sheet is not None:
        _, assumed, _ = assumptions_of({"max_loss": max_loss})
        decision = _decided(decide(bills, assumed), sheet, again)
    first, *_ = bills
    fields = first.to_json() | {
        "break_even": decision["break_even"]
        if decision
        else [asdict(entry) for entry in ([] if others else of_design(first))],
        "compared": [entry.to_json() for entry in bills] if others else [],
        "decision": decision,
    }
    emit(fields, as_json, _bill_text)


def compare(
    scenarios: Annotated[
        list[str], typer.Argument(help="Two to six presets or files; or a decision sheet.")
    ],
    sets: Sets = None,
    max_loss: MaxLoss = None,
    hours: Annotated[
        float | None,
        typer.Option(help="Share of its hours that the cluster trains this model, 0 to 1."),
    ] = None,
    failures: Failures = None,
    lost_switch: Annotated[
        bool, typer.Option(help="Plan without one switch of every tier, too.")
    ] = True,
    sheet: Sheet = None,
    as_json: JsonFlag = False,
) -> None:
    """Decide between scenarios: which design is to be built, and what that rests on."""
    from nest_core.report.notebook.inputs import checked_inputs
    from nest_core.report.sheet import question_of
    from nest_core.scenario import Scenario, scenario_document
    from nest_core.studies import comparison
    from nest_core.studies.decision import decide
    from nest_core.studies.ranking import GOAL_FIGURES

    changes, again = failure_tables(failures) | settings(sets or ()), ""
    given = {
        name: value
        for name, value in {"hours": hours, "max_loss": max_loss}.items()
        if value is not None
    }
    question: dict[str, Any] = {}
    goal: Goal = "tokens_per_usd"
    if len(scenarios) == 1 and scenarios[0].endswith(".html"):
        question = question_of(read_text(Path(scenarios[0])))
        goal = question.pop("goal", goal)
        require(goal in GOAL_FIGURES, "goal", "must be one of a study", goal, "change it")
        question = checked_inputs("comparison", question)
        entries = [
            (entry["name"], Scenario(entry["document"], {**entry["overrides"], **changes}))
            for entry in question["entries"]
        ]
    else:  # files say more than a sheet can hold: where their fabrics and models are
        documents = [(Path(name).stem, *scenario_document(name, Path())) for name in scenarios]
        entries = [(name, Scenario(text, changes, folder)) for name, text, folder in documents]
        flags = [f"--{name.replace('_', '-')}={value:g}" for name, value in given.items()]
        flags += [f"--set={setting}" for setting in sets or ()]
        flags += [f"--failures={failures}"] * (failures is not None)
        flags += ["--no-lost-switch"] * (not lost_switch)
        again = shlex.join(["nest-studio", "compare", *scenarios, *flags, "--sheet=FILE.html"])
    result = comparison.compare(
        entries,
        budget=question.get("budget"),
        failures=lost_switch and question.get("failures", True),
        prices=question.get("prices"),
        assumed={**(question.get("assumed") or {}), **given},
        one_job=True,
    )
    decision = decide(result.candidates, result.assumed, goal)
    designs = [_design(candidate) for candidate in result.candidates]
    fields = {
        "decision": _decided(decision, sheet, again, {**question, "goal": goal}),
        "designs": designs,
    }
    emit(fields, as_json, _decision_text)


def _design(bill: WholeBill) -> dict[str, Any]:
    report, run, worst = bill.report, bill.training, bill.worst_loss
    return {
        "name": bill.name,
        "iteration_time_s": report.iteration_s if report else None,
        "days": run and run.days,
        "days_without_failures": run and run.days_without_failures,
        "effective_share": run and run.effective_share,
        "usd": bill.owned.total_usd.typical,
        "power_w": bill.owned.power_W.typical,
        "worst_failure": {"lost": worst[0], "what": worst[1]} if worst else None,
        "plan": report.plan.to_json() if report else None,
        "reason": bill.reason,
    }


def _decided(
    decision: Decision, sheet: Path | None, again: str, question: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the fields of a decision, with its table; write its sheet where one is wanted."""
    from nest_core.report.sheet import decision_sheet
    from nest_core.report.sheet.sheet import differences
    from nest_core.report.sheet.words import title, why

    if sheet is not None:
        text = decision_sheet(
            decision, datetime.now(), again=again, question=None if again else question
        )
        write_file(sheet, text, "--sheet")
    words = {"title": title(decision), "why": list(why(decision))}
    rows = [[name, *(" ".join(cell) for cell in cells)] for name, cells in differences(decision)]
    return decision.to_json() | words | {"table": rows}


def _decision_text(fields: Mapping[str, Any]) -> str:
    decision = fields["decision"]
    header = ["", *(row["name"] for row in decision["order"])]
    return "\n".join(
        [
            decision["title"],
            "",
            table(header, decision["table"]),
            "",
            *decision["why"],
            "",
            decision["rule"],
        ]
    )


def again_of(
    design: str,
    sets: Sequence[str],
    prices: str | None,
    compare: str | None,
    tokens: float | None,
    failures: str | None,
    max_loss: float | None,
) -> str:
    """Return the command that makes a sheet again, as one types it."""
    options = (
        *(("--set", setting) for setting in sets),
        ("--prices", prices),
        ("--compare", compare),
        ("--tokens", None if tokens is None else f"{tokens:.10g}"),
        ("--failures", failures),
        ("--max-loss", None if max_loss is None else f"{max_loss:g}"),
        ("--sheet", "FILE.html"),
    )
    given = (word for name, value in options if value is not None for word in (name, value))
    return shlex.join(["nest-studio", "bill", design, *given])


def _bill_text(fields: Mapping[str, Any]) -> str:
    parts = [
        f"{fields['name']}, {fields['devices']:,} devices, price list {fields['prices']}",
        "",
        _lines(fields["lines"]),
        "",
        *_figures(fields),
        "",
        *(entry["sentence"] for entry in fields["break_even"]),
    ]
    if fields["decision"]:
        parts += ["", _decision_text(fields)]
    elif fields["compared"]:
        bills = [[entry["name"], format_money(entry["total_usd"])] for entry in fields["compared"]]
        parts += ["", table(["design", "whole bill"], bills)]
    parts += ["", "Sources of prices:"]
    sources = {line["source"]: line["name"] for line in reversed(fields["lines"])}
    parts += [
        *(f"  {name}: {source}" for source, name in reversed(sources.items())),
        "",
        *fields["assumed"],
        *(f"! {check}" for check in fields["checks"]),
        *(
            f"! {entry['name']}: {entry['caveat']}"
            for entry in fields["compared"] or [fields]
            if entry["caveat"]
        ),
    ]
    return "\n".join(parts)


def _lines(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            line["part"],
            line["name"],
            f"{line['count']:,}",
            line["unit"],
            None if line["unit_usd"] is None else f"{line['unit_usd'][1]:,.6g}",
            "no source" if line["usd"] is None else f"{line['usd']:,.0f}",
            line["usd_range"] and f"{line['usd_range'][0]:,.0f} to {line['usd_range'][2]:,.0f}",
            None if line["power_w"] is None else f"{line['power_w']:,.0f}",
            None if line["failures_per_year"] is None else f"{line['failures_per_year']:.3g}",
        ]
        for line in lines
    ]
    header = ["part", "item", "number", "of", "each, $", "all, $", "low to high, $", "power, W"]
    return table([*header, "failures a year"], rows)


def _figures(fields: Mapping[str, Any]) -> list[str]:
    low, typical, high = fields["total_usd_range"]
    lines = [
        f"together {format_money(typical)} ({format_money(low)} to {format_money(high)}) over "
        f"{fields['years']:g} years, at most {humanise_power(fields['power_w'])}"
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
            f"{high:.3g}){price}, {run['days_without_failures']:.3g} without failures as of "
            f"{run['failures']}"
        )
        if run["spares"]:
            from nest_core.report.explain.words import spares_in_words

            lines.append(f"by spare nodes: {spares_in_words(run['spares'])}")
    if fields["gap"]:
        lines.append(f"plan not proven: up to {100 * fields['gap']:.3g} % from the best")
    if fields["reason"]:
        lines.append(f"no plan: {fields['reason']}")
    return lines


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
