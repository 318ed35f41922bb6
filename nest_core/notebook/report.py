"""A notebook as one HTML file: for print on A4, and for who has no studio.

Everything is inside: style, figures, and plotly.js once. A content security policy in the file
keeps it from fetching anything, whatever stands in it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nest_core.errors import InputError
from nest_core.explain.summary import Headline
from nest_core.figures import Picture
from nest_core.notebook.cells import Cell, Notebook, changes
from nest_core.notebook.kinds import KINDS, Shown, summarise, versions
from nest_core.notebook.report_style import STYLE
from nest_core.notebook.words import note_html
from nest_core.picture import to_svg
from nest_core.report.documents import html_document

__all__ = ["html_report"]

_INK = "#1B1F24"
_MOST_CHANGES = 12

_DRAW = """
for (const place of document.querySelectorAll('div[data-plot]')) {
  const plot = JSON.parse(document.getElementById(place.dataset.plot).textContent);
  Plotly.newPlot(place, plot.data, plot.layout, {displayModeBar: false});
}
"""

Results = Mapping[str, Shown | InputError | str]


def html_report(notebook: Notebook, results: Results, at: datetime) -> str:
    """The report's text.

    Parameters
    ----------
    notebook : Notebook
    results : mapping of str to Shown, InputError or str
        By cell id: what the cell shows, or why it shows nothing.
    at : datetime
        When it is written, with its zone.
    """
    from plotly.offline import get_plotlyjs  # 5 MB of text

    cells = "".join(
        _cell(cell, number, results.get(cell.id, "It was not computed."), at)
        for number, cell in enumerate(notebook.cells, start=1)
    )
    drawn = any(isinstance(found, Shown) and found.pictures for found in results.values())
    scripts = f"<script>{get_plotlyjs()}</script>\n<script>{_DRAW}</script>" if drawn else ""
    return html_document(
        notebook.name, STYLE, f"{_front(notebook, at)}{cells}\n{scripts}", scripts=True
    )


def _front(notebook: Notebook, at: datetime) -> str:
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    contents = "".join(
        f'<li><a href="#cell-{cell.id}">{html.escape(cell.title)}</a> '
        f'<span class="quiet">{KINDS[cell.kind].label}</span></li>'
        for cell in notebook.cells
    )
    return (
        f"<header><h1>{html.escape(notebook.name)}</h1>"
        f'<p class="quiet">{_date(at)}. Computed with {html.escape(made)}.</p>'
        f'<ol class="contents">{contents}</ol></header>'
    )


def _cell(cell: Cell, number: int, found: Shown | InputError | str, at: datetime) -> str:
    apart = " class='apart'" if number > 1 and cell.kind != "note" else ""
    note = f'<div class="note">{note_html(cell.note)}</div>' if cell.note else ""
    body = (
        _shown(cell, found, at)
        if isinstance(found, Shown)
        else f'<p class="changed">{html.escape(str(found))}</p>'
    )
    return (
        f'<section id="cell-{cell.id}"{apart}><h2>{number}. {html.escape(cell.title)}</h2>'
        f"{note}{body if cell.kind != 'note' else ''}</section>"
    )


def _shown(cell: Cell, found: Shown, at: datetime) -> str:
    facts = "".join(f'<p class="quiet">{html.escape(line)}</p>' for line in found.facts)
    pictures = "".join(
        _picture(picture, f"plot-{cell.id}-{index}") for index, picture in enumerate(found.pictures)
    )
    # The report is light wherever it is read, so its picture of a fabric is too.
    fabric = f"<figure>{to_svg(found.fabric, 'light')}</figure>" if found.fabric else ""
    return (
        _since(cell, found, at)
        + _headlines(found.headlines)
        + facts
        + _formulae(found.headlines)
        + fabric
        + pictures
        + (found.table.to_html() if found.table else "")
    )


def _since(cell: Cell, found: Shown, at: datetime) -> str:
    """What changed since the cell was pinned."""
    if cell.summary is None:
        return ""
    when = _date(datetime.fromisoformat(cell.summary.date))
    made = ", ".join(f"{name} {version}" for name, version in cell.summary.versions.items())
    told = changes(cell.summary, summarise(found, at))
    words = f"Pinned on {when} with {made}"
    if not told:
        return f'<p class="quiet">{html.escape(words)}; the same figures.</p>'
    more = len(told) - _MOST_CHANGES
    lines = [*told[:_MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]
    shown = "<br>".join(html.escape(line) for line in lines)
    return f'<p class="changed">{html.escape(words)}; since then:<br>{shown}</p>'


def _headlines(found: tuple[Headline, ...]) -> str:
    if not found:
        return ""
    entries = "".join(
        f'<div><dt>{html.escape(entry.name)}</dt><dd class="value">{html.escape(entry.value)}</dd>'
        f"<dd>{html.escape(entry.span)}</dd><dd>{html.escape(entry.note)}</dd></div>"
        for entry in found
    )
    return f'<dl class="headlines">{entries}</dl>'


def _formulae(found: tuple[Headline, ...]) -> str:
    told = "".join(
        f"<b>{html.escape(entry.name)}</b>"
        + "".join(f"<div>{html.escape(line)}</div>" for line in entry.formula)
        for entry in found
        if entry.formula
    )
    return f'<div class="formulae"><h3>Formulae</h3>{told}</div>' if told else ""


def _picture(picture: Picture, name: str) -> str:
    legend = "".join(
        f'<span><i style="background: {html.escape(colour)}"></i>{html.escape(label)}</span>'
        for label, colour in picture.legend
    )
    height = picture.plot.layout.height or 450
    return (
        f"<figure><h3>{html.escape(picture.title)}</h3>"
        f'<div class="nest-subtitle">{html.escape(picture.subtitle)}</div>'
        f'<div class="nest-legend">{legend}</div>'
        f'<div class="plot" data-plot="{name}" style="height: {height}px" role="img" '
        f'aria-label="{html.escape(picture.title)}"></div>'
        f'<script type="application/json" id="{name}">{_plot_json(picture)}</script>'
        f"<figcaption>{html.escape(picture.reading)}</figcaption></figure>"
    )


def _plot_json(picture: Picture) -> str:
    plot: dict[str, Any] = json.loads(picture.drawn().to_json())
    layout = plot["layout"]
    layout["paper_bgcolor"] = layout["plot_bgcolor"] = "#FFFFFF"
    layout["font"] = {"color": _INK, "family": "Liberation Sans, Arial, sans-serif"} | layout.get(
        "font", {}
    )
    text = json.dumps({"data": plot["data"], "layout": layout})
    # Inside a script element only "<" can end it.
    return text.replace("<", "\\u003c")


def _date(at: datetime) -> str:
    return f"{at.day} {at:%B %Y, %H:%M} {at:%Z}".strip()
