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
from nest_core.report.picture import Drawn, picture, to_svg
from nest_core.report.sheet.charts import curve_chart, sensitivity_chart
from nest_core.report.sheet.differences import differences, differences_html
from nest_core.report.sheet.rows import (
    acceptance_table,
    accepted_by,
    answer,
    firmer,
    prices_table,
    rests_on,
    subject,
    title,
)
from nest_core.report.sheet.weighing import Weighing, weigh
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
    """The sheet's text.

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
    found = weigh(bills)
    bills = (found.choice, *(one for one in found.bills if one is not found.choice))
    rows = differences(found, bills, full=True)
    table = (
        f"<section>{_head(_table_title(found), _BELOW_TABLE)}"
        f"{differences_html(found, bills, rows)}</section>"
    )
    body = [
        f"<h1>{html.escape(title(found))}</h1>",
        *(f"<p>{html.escape(line)}</p>" for line in (*answer(found), accepted_by(found)) if line),
    ]
    if len(found.bills) < _WIDE_FROM:
        body.append(_two(_fabric(found), table))
    else:
        beside = _words(found)
        body += [_two(_fabric(found), beside), _wide(table)]
    if found.rival is not None:
        body.append(
            _two(_chart(curve_chart(found, height=_CHART_PX)), _chart(sensitivity_chart(found)))
        )
    if len(found.bills) < _WIDE_FROM:
        beside = _words(found)
        body.append(_two(beside, _prices(found)))
    else:
        body.append(_wide(_prices(found, abreast=2)))
    text = "".join(body)
    number = hashlib.sha256(text.encode()).hexdigest()[:4]
    date = f"{at.day} {at:%B %Y}"
    page = (
        f"<header><span><b>Decision sheet</b>{html.escape(subject(found))}</span>"
        f"<span>Nest Studio, {date}, sheet {number}</span></header>\n{text}\n"
        f"<footer><span>Again: {html.escape(again)}</span>"
        f"<span>price list {html.escape(found.choice.owned.prices)}</span></footer>"
        '<div class="sign"><div>Decided</div><div>Name</div><div>Date</div></div>\n'
        f"{_second_page(found)}"
    )
    return html_document(title(found), _STYLE, page)


def _two(left: str, right: str) -> str:
    return f'<div class="two">{left}{right}</div>'


def _fabric(found: Weighing) -> str:
    mine = found.choice
    if mine.scenario is None or mine.report is None:
        return "<section></section>"
    drawn = picture(mine.scenario.fabric, mine.report.plan, width=_PICTURE_PX)
    parts = ", ".join(label.head for label in drawn.labels if label.head)
    ratio = mine.scenario.fabric.ratio_words().strip()
    said = f"{parts}, {ratio}" if ratio else parts
    return f"<section>{_head(said, drawn.title)}{to_svg(drawn, 'light')}</section>"


def _chart(drawn: Drawn) -> str:
    return f"<section>{_head(drawn.title, drawn.subtitle)}{to_svg(drawn, 'light')}</section>"


def _head(name: str, subtitle: str = "") -> str:
    below = f'<div class="sub">{html.escape(subtitle)}</div>' if subtitle else ""
    return f"<h2>{html.escape(name)}</h2>{below}"


def _table_title(found: Weighing) -> str:
    """What the rival saves, and loses."""
    mine, other = found.choice, found.rival
    if other is None or not mine.tokens_per_s or not other.tokens_per_s:
        return f"{mine.name} in figures"
    bill = other.owned.total_usd.typical / mine.owned.total_usd.typical - 1
    work = other.tokens_per_s / mine.tokens_per_s - 1
    speed = "as fast" if abs(work) < _SAME else _more(work)
    return f"{other.name} costs {_more(bill)} and trains {speed}"


def _more(share: float) -> str:
    return f"{abs(100 * share):.2g} % {'more' if share > 0 else 'less'}"


def _words(found: Weighing) -> str:
    """The evidence, and what would be firmer."""
    parts = {"What it rests on": rests_on(found), "What would make it firmer": firmer(found)}
    told = (f"<section>{_head(name)}{_list(lines)}</section>" for name, lines in parts.items())
    return f"<div>{''.join(told)}</div>"


def _prices(found: Weighing, abreast: int = 1) -> str:
    most = _FEW if abreast > 1 else None
    rows = prices_table(found.choice.owned, full=False, most=most)
    each = -(-len(rows) // abreast)
    tables = [_price_rows(rows[at : at + each]) for at in range(0, len(rows), each)]
    beside = f'<div class="two">{"".join(tables)}</div>' if abreast > 1 else tables[0]
    which = "Each of one" if most is None else "Each of one, of what costs most"
    head = _head("Assumptions and prices", f"{which}; all with their sources on the next page")
    return f"<section>{head}{beside}</section>"


def _second_page(found: Weighing) -> str:
    """Sources of prices, and what the built fabric is held to."""
    name = f"Prices and their sources, {found.choice.name}"
    head = _head(name, "Typical (low to high); fibre by the rack layout")
    rows = _price_rows(prices_table(found.choice.owned, full=True))
    caveats = (f"{one.name}: {one.caveat}" for one in found.bills if one.caveat)
    assumed = _list([*found.choice.owned.assumed, *caveats])
    return (
        f'<div class="sources"><section>{head}{rows}</section>{assumed}{_acceptance(found)}</div>'
    )


def _acceptance(found: Weighing) -> str:
    rows = acceptance_table(found)
    if not rows:
        return ""
    below = (
        f"Bus bandwidth that nccl-tests reach at least at {MESSAGE_BYTES / GIB:g} GiB (expected); "
        "nine healthy fabrics in ten reach each. nest-studio accept writes the commands and judges "
        "their logs"
    )
    head = _head(f"How {found.choice.name} is accepted", below)
    return f'<div class="wide"><section>{head}{_price_rows(rows)}</section></div>'


def _price_rows(rows: Sequence[Sequence[str]]) -> str:
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<table class="prices"><tbody>{body}</tbody></table>'


def _wide(part: str) -> str:
    return f'<div class="wide">{part}</div>'


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"
