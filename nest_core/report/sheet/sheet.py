"""A decision sheet: what to build and why, on one printed page, with sources.

One HTML file with everything inside: it fetches nothing and runs nothing. ``@page`` is A4; who
wants a PDF prints it. All figures come from `nest_core.studies.whole_bill`, as the command line
prints them.

The table of differences says what sets designs apart from the choice: a difference stands before
its figure; inside the paired interval it is a tie (`nest_core.studies.break_evens`). Failures are
shares of a design's own throughput.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from nest_core.calibration.acceptance.expected import MESSAGE_BYTES
from nest_core.documents.units import GIB, NOTHING, humanise, percent, signed_percent, three_digits
from nest_core.hardware.posterior import SHARE
from nest_core.report.documents import html_document
from nest_core.report.picture import picture, to_svg
from nest_core.report.sheet.charts import curve_chart, sensitivity_chart
from nest_core.report.sheet.weighing import Weighing, paired_difference, weigh
from nest_core.report.sheet.words import (
    acceptance_table,
    accepted_by,
    answer,
    firmer,
    prices_table,
    rests_on,
    subject,
    title,
)
from nest_core.studies.break_evens import ordered
from nest_core.studies.whole_bill import WholeBill, typical

__all__ = [
    "DesignDifference",
    "decision_sheet",
    "differences",
    "differences_html",
    "differences_title",
]

_PICTURE_PX = 298.0
"""So wide that the silhouette is drawn; what words would say stands above it."""
_WIDE_FROM = 4
"""From so many designs on the table takes the whole width."""

_SAME = 5e-4
_BELOW_TABLE = (
    f"Best plan on each fabric; throughput against the first in {SHARE:.0%} paired intervals"
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
footer span:last-child, .nest-apart thead th, .wide .nest-apart th { white-space: nowrap; }
.sources { break-before: page; margin-top: 40px; }
.sign { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 24px; margin-top: 16px; }
.sign div { border-top: 1px solid var(--ink2); padding-top: 4px; color: var(--ink2);
  font-size: 12px; }
"""


def decision_sheet(bills: Sequence[WholeBill], again: str, at: datetime) -> str:
    """Return the sheet's text.

    Parameters
    ----------
    bills : sequence of WholeBill
        Of all designs, as they were asked for.
    again : str
        The command that makes it again.
    at : datetime
        When it is made.

    Raises
    ------
    InputError
        If no design has a plan.
    """
    weighing = weigh(bills)
    bills = (weighing.choice, *weighing.others)
    rows = differences(weighing, bills, full=True)
    table = _section(_table_title(weighing), _BELOW_TABLE, differences_html(weighing, bills, rows))
    words = "".join(
        _section(name, "", _list(lines))
        for name, lines in (
            ("What it rests on", rests_on(weighing)),
            ("What would make it firmer", firmer(weighing)),
        )
    )
    words, fabric, is_wide = f"<div>{words}</div>", _fabric(weighing), len(bills) >= _WIDE_FROM
    sentences = [line for line in (*answer(weighing), accepted_by(weighing)) if line]
    body = [
        f"<h1>{html.escape(title(weighing))}</h1>",
        *(f"<p>{html.escape(line)}</p>" for line in sentences),
        *([_two(fabric, words), _wide(table)] if is_wide else [_two(fabric, table)]),
    ]
    if weighing.rival is not None:
        charts = (curve_chart(weighing, height=_CHART_PX), sensitivity_chart(weighing))
        body.append(_two(*(_section(c.title, c.subtitle, to_svg(c, "light")) for c in charts)))
    prices = _prices(weighing, is_wide=is_wide)
    text = "".join([*body, _wide(prices) if is_wide else _two(words, prices)])
    number = hashlib.sha256(text.encode()).hexdigest()[:4]
    page = (
        f"<header><span><b>Decision sheet</b>{html.escape(subject(weighing))}</span>"
        f"<span>Nest Studio, {at.day} {at:%B %Y}, sheet {number}</span></header>\n{text}\n"
        f"<footer><span>Again: {html.escape(again)}</span>"
        f"<span>price list {html.escape(weighing.choice.owned.prices)}</span></footer>"
        '<div class="sign"><div>Decided</div><div>Name</div><div>Date</div></div>\n'
        f"{_second_page(weighing)}"
    )
    return html_document(title(weighing), _STYLE, page)


def _two(first: str, second: str) -> str:
    return f'<div class="two">{first}{second}</div>'


def _wide(part: str) -> str:
    return f'<div class="wide">{part}</div>'


def _section(name: str, subtitle: str, body: str) -> str:
    below = f'<div class="sub">{html.escape(subtitle)}</div>' if subtitle else ""
    return f"<section><h2>{html.escape(name)}</h2>{below}{body}</section>"


def _fabric(weighing: Weighing) -> str:
    choice = weighing.choice
    if choice.scenario is None or choice.report is None:
        return "<section></section>"
    fabric = choice.scenario.fabric
    drawn = picture(fabric, choice.report.plan, width=_PICTURE_PX)
    parts = ", ".join(label.head for label in drawn.labels if label.head)
    name = ", ".join(filter(None, (parts, fabric.ratio_words().strip())))
    return _section(name, drawn.title, to_svg(drawn, "light"))


def _table_title(weighing: Weighing) -> str:
    """Return what the rival saves, and loses."""
    mine, other = weighing.choice, weighing.rival
    if other is None or not mine.tokens_per_s or not other.tokens_per_s:
        return f"{mine.name} in figures"
    bill = other.owned.total_usd.typical / mine.owned.total_usd.typical - 1
    work = other.tokens_per_s / mine.tokens_per_s - 1
    speed = "as fast" if abs(work) < _SAME else _more(work)
    return f"{other.name} costs {_more(bill)} and trains {speed}"


def _more(share: float) -> str:
    return f"{abs(100 * share):.2g} % {'more' if share > 0 else 'less'}"


def _prices(weighing: Weighing, *, is_wide: bool) -> str:
    owned = weighing.choice.owned
    below, table = "Each of one", _rows(prices_table(owned, full=False))
    if is_wide:
        below += ", of what costs most"
        rows = prices_table(owned, full=False, max_lines=_FEW)
        half = -(-len(rows) // 2)
        table = f'<div class="two">{_rows(rows[:half])}{_rows(rows[half:])}</div>'
    below += "; all with their sources on the next page"
    return _section("Assumptions and prices", below, table)


def _second_page(weighing: Weighing) -> str:
    """Return sources of prices, and what the built fabric is held to."""
    owned, name = weighing.choice.owned, weighing.choice.name
    sources = _section(
        f"Prices and their sources, {name}",
        "Typical (low to high); fibre by the rack layout",
        _rows(prices_table(owned, full=True)),
    )
    caveats = (f"{bill.name}: {bill.caveat}" for bill in weighing.bills if bill.caveat)
    rows = acceptance_table(weighing)
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
"""A figure, and for every design what sets it apart (empty for the choice) and its value."""


def differences(
    weighing: Weighing, bills: Sequence[WholeBill], *, full: bool = False
) -> tuple[DesignDifference, ...]:
    """Return the rows of a table of designs that have a plan, in the order of ``bills``.

    Parameters
    ----------
    weighing : Weighing
    bills : sequence of WholeBill
    full : bool
        Whether with throughput, dollars, energy and failures of a year too, as on a sheet.
    """
    choice = weighing.choice
    tokens = choice.training.tokens if choice.training else 0.0

    def row(
        figure: str,
        read: Callable[[WholeBill], float | None],
        words: Callable[[float], str] = three_digits,
        compared: Callable[[WholeBill, float, float], str] = lambda _, more, first: (
            signed_percent(more / first) if first else ""
        ),
        ties: Sequence[str] = (),
    ) -> DesignDifference:
        first = read(choice)
        cells = []
        for bill in bills:
            value, difference = read(bill), ""
            if bill is not choice and value is not None and first is not None:
                is_tie = bill.name in ties
                difference = "tie" if is_tie else compared(bill, value - first, first)
            cells.append((difference, NOTHING if value is None else words(value)))
        return figure, tuple(cells)

    days = row(
        f"Days for {humanise(tokens)} tokens",
        lambda bill: bill.training.days if bill.training else None,
        compared=lambda bill, more, _: f"{more:+.2g}".replace("-", "−"),
        ties=_ties(weighing, "days"),
    )
    money = [
        row(
            "$ per M tokens, all in",
            lambda bill: typical(bill.usd_per_million_tokens),
            ties=_ties(weighing, "price"),
        ),
        row(
            "$ per GPU-hour, all in",
            lambda bill: typical(bill.owned.usd_per_device_hour),
            lambda value: f"{value:.2f}",
        ),
    ]
    tiers = dict.fromkeys(loss.tier for bill in bills for loss in bill.losses)
    lost = [
        row(f"One {tier} lost", _lost(tier), lambda value: signed_percent(-value), lambda *_: "")
        for tier in tiers
    ]
    if full:
        return (
            row(
                "Throughput, M tokens/s",
                lambda bill: bill.tokens_per_s and bill.tokens_per_s / _MILLION,
                compared=lambda bill, *_: _paired(weighing, bill),
            ),
            days,
            row("Network, M$", lambda bill: bill.owned.network.price_usd.typical / _MILLION),
            row(
                f"Bill over {choice.owned.years:g} years, M$",
                lambda bill: bill.owned.total_usd.typical / _MILLION,
            ),
            *money,
            row(
                "Tokens per kWh, M",
                lambda bill: bill.tokens_per_kWh and bill.tokens_per_kWh / _MILLION,
            ),
            row("Failures a year", lambda bill: bill.owned.failures_per_year.typical),
            *lost,
        )
    if tiers:
        worst = choice.worst_loss
        lost.append(
            row(
                f"Worst single failure{f': {worst[1]}' if worst else ''}",
                lambda bill: bill.worst_loss[0] if bill.worst_loss else None,
                lambda value: signed_percent(-value),
                lambda *_: "",
                _ties(weighing, "failure"),
            )
        )
    return (days, *money, *lost)


def differences_html(
    weighing: Weighing, bills: Sequence[WholeBill], rows: Sequence[DesignDifference]
) -> str:
    """Return the rows as a table in the classes of the page and of the sheet."""
    head = "".join(f'<th scope="col">{html.escape(bill.name)}</th>' for bill in bills)
    body = ""
    for figure, values in rows:
        cells = ""
        for bill, (difference, text) in zip(bills, values, strict=True):
            kind = ' class="ours"' if bill is weighing.choice else ""
            small = f"<small>{html.escape(difference)}</small>" if difference else ""
            cells += f"<td{kind}>{small}{html.escape(text)}</td>".replace(" %", "\u00a0%")
        body += f'<tr><th scope="row">{html.escape(figure)}</th>{cells}</tr>'
    return (
        f'<table class="nest-apart"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def differences_title(weighing: Weighing, bills: Sequence[WholeBill]) -> str:
    """Return who takes longest, and who feels a failure most."""
    choice, ties = weighing.choice, _ties(weighing, "days")
    timed = [(bill.training.days, bill) for bill in bills if bill.training]
    parts = []
    if choice.training and len(timed) > 1:
        longest, slowest = max(timed, key=lambda pair: pair[0])
        shortest, fastest = min(timed, key=lambda pair: pair[0])
        if slowest is not choice and slowest.name not in ties:
            parts.append(f"{slowest.name} takes {longest - choice.training.days:.2g} days longer")
        elif slowest is choice and fastest.name not in ties:
            parts.append(f"{fastest.name} takes {longest - shortest:.2g} days less")
        else:
            parts.append("All take as many days for all that is known")
    lost = [(bill.worst_loss[0], bill.name) for bill in bills if bill.worst_loss]
    if len(lost) > 1:
        worst, weakest = max(lost, key=lambda pair: pair[0])
        is_tie = len(_ties(weighing, "failure")) == len(lost) - 1
        parts.append(
            "a failure costs all alike" if is_tie else f"{weakest} loses {percent(worst)} to one"
        )
    return " and ".join(parts) or f"{choice.name} alone"


def _paired(weighing: Weighing, bill: WholeBill) -> str:
    ratio, low, high = paired_difference(weighing.choice, bill)
    if low == high:
        return signed_percent(ratio)
    words = f"{signed_percent(low).removesuffix(' %')} to {signed_percent(high)}"
    return f"{words} tie" if low < 0 < high else words


def _ties(weighing: Weighing, by: str) -> tuple[str, ...]:
    return next(row.ties for row in ordered(weighing.bills, by) if row.name == weighing.choice.name)


def _lost(tier: str) -> Callable[[WholeBill], float | None]:
    def read(bill: WholeBill) -> float | None:
        losses = (loss.replanned for loss in bill.losses if loss.tier == tier)
        return next((1.0 if share is None else share for share in losses), None)

    return read
