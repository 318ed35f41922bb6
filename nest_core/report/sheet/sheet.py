"""A decision sheet: what to build and why, on one printed page, with sources.

One HTML file with everything inside: it fetches nothing and runs nothing. ``@page`` is A4; who
wants a PDF prints it. All figures come from `nest_core.studies.whole_bill`, as the command line
prints them.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable, Sequence
from datetime import datetime

from nest_core.calibration.acceptance.expected import MESSAGE_BYTES
from nest_core.documents.units import GIB
from nest_core.hardware.posterior import SHARE
from nest_core.report.documents import html_document
from nest_core.report.picture import picture, to_svg
from nest_core.report.sheet.charts import curve_chart, sensitivity_chart
from nest_core.report.sheet.differences import differences, differences_html
from nest_core.report.sheet.weighing import Weighing, weigh
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
from nest_core.studies.whole_bill import WholeBill

__all__ = ["decision_sheet"]

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
