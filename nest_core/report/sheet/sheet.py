"""A decision sheet: what to build and why, on one printed page, with sources.

One HTML file with everything inside: it fetches nothing and runs nothing. ``@page`` is A4; who
wants a PDF prints it. All figures come from `nest_core.studies.whole_bill`, as the command line
prints them.

All of it renders one `nest_core.studies.decision.Decision`. In the table a difference to the best
design stands before its figure; where the paired interval holds zero it is a tie. Failures are
shares of a design's own throughput.
"""

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from nest_core.calibration.acceptance.expected import MESSAGE_BYTES
from nest_core.documents import (
    GIB,
    NOTHING,
    Claim,
    Fact,
    InputError,
    agreeing,
    capital,
    does,
    humanise,
    joined,
    parsed_json,
    percent,
    signed,
    signed_percent,
    three_digits,
)
from nest_core.documents.schema import check_plain
from nest_core.hardware.posterior import SHARE
from nest_core.report.documents import font_faces, html_document
from nest_core.report.picture import picture, to_svg
from nest_core.report.sheet.charts import curve_chart, sensitivity_chart
from nest_core.report.sheet.words import (
    acceptance_table,
    accepted_by,
    answer,
    firmer,
    loss_words,
    magnitude,
    prices_table,
    rests_on,
    subject,
    title,
)
from nest_core.studies.decision import FIGURES, Decision, Difference

__all__ = [
    "DesignDifference",
    "decision_sheet",
    "differences",
    "differences_html",
    "differences_title",
    "question_of",
]

_PICTURE_PX = 298.0
"""So wide that the silhouette is drawn; what words would say stands above it."""
_WIDE_FROM = 4
"""From so many designs on the table takes the whole width."""

_AGAIN = "nest-studio compare decision-sheet.html --sheet FILE.html"
"""A sheet is a question, too."""
_BELOW_TABLE = (
    f"Best plan on each fabric; differences to the first with {percent(SHARE)} paired intervals"
)
_FEW = 6
"""Prices on the first page where the table of designs takes its width."""
_CHART_PX = 140.0
"""How high the curves are."""

_STYLE = """
@page { size: A4; margin: 9mm 12mm; }
html { color-scheme: light; }
body { margin: 0 auto; padding: 24px; max-width: 752px;
  font: 12.5px/1.25 'Source Sans 3', 'Source Sans', Arial, Helvetica, 'Liberation Sans', sans-serif;
  font-variant-numeric: tabular-nums; }
@media print { body { padding: 0; max-width: none; } }
header, footer { display: flex; justify-content: space-between; gap: 16px; color: var(--ink2); }
header { border-bottom: 1px solid var(--ink); padding-bottom: 4px; }
header b { color: var(--ink); margin-right: 8px; }
h1 { font-size: 22px; line-height: 1.15; margin: 8px 0 4px; }
h2 { font-size: 13px; margin: 0; }
p { margin: 0 0 3px; }
.sub { color: var(--ink2); font-size: 12px; margin-bottom: 3px; }
.two { display: grid; grid-template-columns: 5fr 6fr; gap: 16px; margin: 6px 0; }
.wide { margin: 6px 0; }
.two .two, .wide .two { margin: 0; grid-template-columns: 1fr 1fr; align-items: start; }
section { break-inside: avoid; min-width: 0; }
svg { max-width: 100%; height: auto; }
table { width: 100%; border-collapse: collapse; font-size: 11px; line-height: 1.3; }
th, td { text-align: right; padding: 1px 0 1px 6px; border-bottom: 1px solid var(--line);
  vertical-align: top; font-weight: 400; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th, td.ours { font-weight: 600; }
.nest-apart small { margin-right: 4px; font-size: 10px; }
.prices td:last-child { text-align: left; color: var(--ink2); }
.prices td:nth-child(2) { white-space: nowrap; }
.sources td { white-space: normal; }
ul { margin: 2px 0; padding-left: 16px; }
li { margin-bottom: 2px; break-inside: avoid; }
.two li, .wide li { font-size: 11px; }
footer { border-top: 1px solid var(--ink); margin-top: 8px; padding-top: 4px; font-size: 11px; }
footer span:last-child { white-space: nowrap; }
.nest-apart :is(th, td) { overflow-wrap: anywhere; }
.nest-apart thead th { min-width: 44px; }
.sources { break-before: page; margin-top: 40px; }
.sign { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 24px; margin-top: 16px; }
.sign div { border-top: 1px solid var(--ink2); padding-top: 4px; color: var(--ink2);
  font-size: 12px; }
"""


def decision_sheet(
    decision: Decision, at: datetime, *, again: str = "", question: Mapping[str, Any] | None = None
) -> str:
    """Return the sheet's text.

    Parameters
    ----------
    decision : Decision
    at : datetime
        When it is made.
    again : str
        The command that makes it again; empty where the sheet itself holds what was asked.
    question : mapping, optional
        Scenarios, prices and limits, as `question_of` reads them back.
    """
    bills = decision.bills
    table = _section(
        _table_title(decision),
        _BELOW_TABLE,
        differences_html(decision, differences(decision, full=True)),
    )
    words = "".join(
        _section(name, "", _list(lines))
        for name, lines in (
            ("What it rests on", rests_on(decision)),
            ("What would make it firmer", firmer(decision)),
        )
    )
    words, fabric, is_wide = f"<div>{words}</div>", _fabric(decision), len(bills) >= _WIDE_FROM
    sentences = [line for line in (*answer(decision), accepted_by(decision)) if line]
    body = [
        f"<h1>{html.escape(title(decision))}</h1>",
        *(f"<p>{html.escape(line)}</p>" for line in sentences),
        *([_two(fabric, words), _wide(table)] if is_wide else [_two(fabric, table)]),
    ]
    if decision.rival is not None and decision.goal == "tokens_per_usd":
        charts = (curve_chart(decision, height=_CHART_PX), sensitivity_chart(decision))
        drawn = [_section(c.title, c.subtitle, to_svg(c, "light")) for c in charts if c.marks]
        body += [_two("", "".join(drawn))] if len(drawn) == 1 else [_two(*drawn)] if drawn else []
    prices = _prices(decision, is_wide=is_wide)
    text = "".join([*body, _wide(prices) if is_wide else _two(words, prices)])
    number = hashlib.sha256(text.encode()).hexdigest()[:4]
    template = f'<template id="question">{html.escape(json.dumps(question))}</template>\n'
    page = (
        f"<header><span><b>Decision sheet</b>{html.escape(subject(decision))}</span>"
        f"<span>Nest Studio, {at.day} {at:%B %Y}, sheet {number}</span></header>\n{text}\n"
        f"<footer><span>Again: {html.escape(again or _AGAIN)}</span>"
        f"<span>price list {html.escape(decision.best.owned.prices)}</span></footer>"
        '<div class="sign"><div>Decided</div><div>Name</div><div>Date</div></div>\n'
        f"{_second_page(decision)}{'' if question is None else template}"
    )
    return html_document(title(decision), font_faces() + _STYLE, page)


def question_of(sheet: str) -> Any:
    """Return what a sheet was asked.

    Raises
    ------
    InputError
        If it does not say so.
    """
    match = re.search(r'<template id="question">(.*?)</template>', sheet, re.S)
    is_cut = sheet.startswith("<!doctype html>") and not sheet.rstrip().endswith("</html>")
    if match is None or is_cut:
        raise InputError(
            "sheet",
            "must be one that Compare saved",
            "one that was cut off before its end" if is_cut else "another document",
            "run the command at the sheet's foot",
        )
    question = parsed_json(html.unescape(match[1]), "sheet", "save it again from Compare")
    check_plain("sheet", question)
    return question


def _two(first: str, second: str) -> str:
    return f'<div class="two">{first}{second}</div>'


def _wide(part: str) -> str:
    return f'<div class="wide">{part}</div>'


def _section(name: str, subtitle: str, body: str) -> str:
    below = f'<div class="sub">{html.escape(subtitle)}</div>' if subtitle else ""
    return f"<section><h2>{html.escape(name)}</h2>{below}{body}</section>"


def _fabric(decision: Decision) -> str:
    choice = decision.best
    if choice.scenario is None or choice.report is None:
        return "<section></section>"
    fabric = choice.scenario.fabric
    drawn = picture(fabric, choice.report.plan, width=_PICTURE_PX)
    parts = ", ".join(label.head for label in drawn.labels if label.head)
    name = ", ".join(filter(None, (parts, fabric.ratio_words().strip())))
    return _section(name, drawn.title, to_svg(drawn, "light"))


def _table_title(decision: Decision) -> Claim:
    """Return what the second saves, and loses."""
    rival = decision.rival
    bill = decision.difference(rival, "total_usd") if rival else None
    speed = decision.difference(rival, "tokens_per_s") if rival else None
    if rival is None or bill is None or speed is None:
        return Claim(f"{decision.best.name} in figures")
    names = rival.name, decision.best.name
    facts = [Fact("less" if bill.value < 0 else "more", names, "total_usd", bill.value)]
    words = f"{does(rival.name, 'costs')} {magnitude(bill.value)} {facts[0].relation} and "
    if bill.value == 0:
        facts, words = (
            [Fact("same", names)],
            f"{does(rival.name, 'costs')} the same and ",
        )
    if speed.is_tie:
        facts.append(Fact("ties", (names[1], names[0]), "tokens_per_s"))
        return Claim(f"{words}{agreeing(rival.name, 'ties')} in speed", *facts)
    facts.append(Fact("less" if speed.value < 0 else "more", names, "tokens_per_s", speed.value))
    verb = agreeing(rival.name, "trains")
    return Claim(f"{words}{verb} {magnitude(speed.value)} {facts[1].relation}", *facts)


def _prices(decision: Decision, *, is_wide: bool) -> str:
    owned = decision.best.owned
    below, table = "Each of one", _rows(prices_table(owned, full=False))
    if is_wide:
        below += ", of what costs most"
        rows = prices_table(owned, full=False, max_lines=_FEW)
        half = -(-len(rows) // 2)
        table = f'<div class="two">{_rows(rows[:half])}{_rows(rows[half:])}</div>'
    below += "; all with their sources on the next page"
    return _section("Assumptions and prices", below, table)


def _second_page(decision: Decision) -> str:
    """Return sources of prices, and what the built fabric is held to."""
    owned, name = decision.best.owned, decision.best.name
    sources = _section(
        f"Prices and their sources, {name}",
        "Typical (low to high); fibre by the rack layout",
        _rows(prices_table(owned, full=True)),
    )
    caveats = (f"{bill.name}: {bill.caveat}" for bill in decision.listed if bill.caveat)
    rows = acceptance_table(decision)
    below = (
        f"Bus bandwidth that nccl-tests reach at least at {MESSAGE_BYTES / GIB:g} GiB (expected); "
        "nine healthy fabrics in ten reach each. nest-studio accept writes the commands and judges "
        "their logs"
    )
    accepted = _wide(_section(f"How {name} is accepted", below, _rows(rows))) if rows else ""
    return f'<div class="sources">{sources}{_list([*owned.assumed, *caveats])}{accepted}</div>'


def _rows(rows: Sequence[Sequence[str]]) -> str:
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<table class="prices"><tbody>{body}</tbody></table>'


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


_MILLION = 1e6


DesignDifference = tuple[str, tuple[tuple[str, str], ...]]
"""A figure, and for every design what sets it apart (empty for the best) and its value."""


def differences(decision: Decision, *, full: bool = False) -> tuple[DesignDifference, ...]:
    """Return the rows of a table of designs, the best first.

    Parameters
    ----------
    decision : Decision
    full : bool
        Whether with throughput, dollars, energy and failures of a year too, as on a sheet.
    """
    best = decision.best

    def row(
        title: str, figure: str, scale: float = 1.0, words: Callable[[float], str] = three_digits
    ) -> DesignDifference:
        return title, tuple(
            (
                _difference_text(difference) if difference else "",
                NOTHING if value is None else words(value / scale),
            )
            for bill in decision.bills
            for value in [FIGURES[figure].read(bill)]
            for difference in [decision.difference(bill, figure)]
        )

    tokens = humanise(best.training.tokens) if best.training else ""
    all_in = "" if any(bill.owned.missing for bill in decision.bills) else ", all in"
    money = [
        row(f"Bill over {best.owned.years:g} years, M$", "total_usd", _MILLION),
        row(f"$ per M tokens{all_in}", "usd_per_million_tokens"),
        row(f"$ per GPU-hour{all_in}", "usd_per_gpu_hour", words="{:.2f}".format),
    ]
    lost = [row for row in _failures(decision) if any(text != NOTHING for _, text in row[1])]
    if decision.assumed.hours < 1.0:
        cells = tuple(
            (
                "" if difference is None or bill is best else _difference_text(difference),
                three_digits(1.0 + decision.dearer(bill)),
            )
            for bill in decision.bills
            for difference in [decision.difference(bill)]
        )
        money.insert(0, (f"{capital(decision.figure)}, over the best's", cells))
    energy = row("Tokens per kWh, M", "tokens_per_kWh", _MILLION)
    return (
        *([row("Throughput, M tokens/s", "tokens_per_s", _MILLION)] if full else []),
        row(f"Days for {tokens} tokens", "days"),
        *([row("Time that trains, %", "effective_share", 0.01)] if full else []),
        *([row("Network, M$", "network_usd", _MILLION)] if full else []),
        *money,
        *([energy, row("Failures a year", "failures_per_year")] if full else []),
        *lost,
        *_in_budget(decision),
    )


def _difference_text(difference: Difference) -> str:
    """Return a difference as cells have it; a tie with the ends of its interval."""
    if not difference.is_tie:
        return signed_percent(difference.value)
    low = signed_percent(difference.low).removesuffix(" %")
    return f"tie, {low} to {signed_percent(difference.high)}"


def differences_html(decision: Decision, rows: Sequence[DesignDifference]) -> str:
    """Return the rows as a table in the classes of the page and of the sheet."""
    head = "".join(f'<th scope="col">{html.escape(bill.name)}</th>' for bill in decision.bills)
    kinds = [' class="ours"' if bill is decision.best else "" for bill in decision.bills]
    body = ""
    for figure, values in rows:
        cells = "".join(
            f"<td{kind}>{f'<small>{html.escape(difference)}</small>' if difference else ''}"
            f"{html.escape(text)}</td>".replace(" %", "\u00a0%")
            for kind, (difference, text) in zip(kinds, values, strict=True)
        )
        body += f'<tr><th scope="row">{html.escape(figure)}</th>{cells}</tr>'
    return (
        f'<table class="nest-apart"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def differences_title(decision: Decision) -> Claim:
    """Return from which design to which days and failures go, as the table has them."""
    parts = []
    timed = [(bill.training.days, bill.name) for bill in decision.bills if bill.training]
    lost = [(bill.worst_loss[0], bill.name) for bill in decision.bills if bill.worst_loss]
    for figures, words, relation in (
        (timed, lambda days: f"{three_digits(days)} days", "takes"),
        (lost, loss_words(decision), "loses"),
    ):
        if len(figures) < 2:
            continue
        (least, first), (most, last) = min(figures), max(figures)
        of = "" if relation == "takes" else " to one failure"
        facts = (Fact(relation, (first,), "", least), Fact(relation, (last,), "", most))
        if words(least) == words(most):
            parts.append(Claim(f"each {relation.removesuffix('s')}s {words(least)}{of}", *facts))
        else:
            text = f"{does(last, relation)} {words(most)}{of}, {first} {words(least)}"
            parts.append(Claim(text, *facts))
    title = joined(parts, "; ") if parts else Claim(f"{decision.best.name} alone")
    return Claim(capital(title), *title.facts)


def _failures(decision: Decision) -> Iterator[DesignDifference]:
    """Yield what the worst single failure costs, and what of that is not its doing."""
    failures = [bill.failure for bill in decision.bills]
    yield (
        "Worst single failure",
        tuple(
            (", ".join(f.elements), _lost_text(f.least_loss, decision)) if f else ("", NOTHING)
            for f in failures
        ),
    )
    yield (
        "of that, as the batch does not divide",
        tuple(
            ("", _lost_text(f.by_batch, decision) if f and f.by_batch else NOTHING)
            for f in failures
        ),
    )


def _lost_text(share: float, decision: Decision) -> str:
    """Return a loss as cells have it: with a sign where it is one."""
    return "0 %" if signed_percent(share) == "0 %" else signed(-share, loss_words(decision))


def _in_budget(decision: Decision) -> tuple[DesignDifference, ...]:
    """Return what each design joins and reaches on a network of the budget, if there is one."""
    sized = [bill.at_budget for bill in decision.bills]
    if (first := sized[0]) is None:
        return ()
    rates = [at.tokens_per_s if at else None for at in sized]
    return (
        (
            f"Devices on a network of {first.budget.words}",
            tuple(("", f"{at.devices:,}" if at else NOTHING) for at in sized),
        ),
        (
            "M tokens/s on them",
            tuple(
                (
                    signed_percent(rate / rates[0] - 1) if place and rate and rates[0] else "",
                    three_digits(rate / _MILLION) if rate else NOTHING,
                )
                for place, rate in enumerate(rates)
            ),
        ),
    )
