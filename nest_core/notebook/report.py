"""A notebook as one HTML file: for print on A4, and for who has no studio.

Everything is inside: style, figures, and plotly.js once. A content security policy in the file
keeps it from fetching anything, whatever stands in it.
"""

from __future__ import annotations

import html
import json

from nbformat import NotebookNode

from nest_core.notebook.parts import CellPart, cell_parts
from nest_core.notebook.report_style import STYLE
from nest_core.notebook.words import note_html
from nest_core.report.documents import html_document

__all__ = ["html_report"]

_DRAW = """
for (const place of document.querySelectorAll('div[data-plot]')) {
  const plot = JSON.parse(document.getElementById(place.dataset.plot).textContent);
  Plotly.newPlot(place, plot.data, plot.layout, {displayModeBar: false});
}
"""


def html_report(name: str, notebook: NotebookNode) -> str:
    """Return the report's text: words and outputs of all cells, their code at the end.

    Parameters
    ----------
    name : str
        The notebook's.
    notebook : NotebookNode
    """
    from plotly.offline import get_plotlyjs  # 5 MB of text

    body = "".join(_cell(cell) for cell in notebook.cells)
    drawn = "data-plot=" in body
    scripts = f"<script>{get_plotlyjs()}</script>\n<script>{_DRAW}</script>" if drawn else ""
    code = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    appendix = f"<section><h2>Code</h2><pre>{html.escape(code)}</pre></section>" if code else ""
    front = f"<header><h1>{html.escape(name)}</h1></header>"
    return html_document(name, STYLE, f"{front}{body}{appendix}\n{scripts}", scripts=True)


def _cell(cell: NotebookNode) -> str:
    if cell.cell_type == "markdown":
        return f'<div class="note">{note_html(cell.source)}</div>'
    if cell.cell_type == "raw":
        return f"<pre>{html.escape(cell.source)}</pre>"
    parts = (_part(part, f"plot-{cell.id}-{n}") for n, part in enumerate(cell_parts(cell)))
    return "".join(parts)


def _part(part: CellPart, name: str) -> str:
    if part.kind == "text" or part.figure is None:
        image = part.kind == "image"
        words = html.escape(part.text)
        return f'<figure><img src="{words}" alt=""></figure>' if image else f"<pre>{words}</pre>"
    plot = json.loads(part.figure.to_json())
    plot["layout"]["paper_bgcolor"] = plot["layout"]["plot_bgcolor"] = "#FFFFFF"
    # Inside a script element only "<" can end it.
    text = json.dumps(plot).replace("<", "\\u003c")
    height = plot["layout"].get("height", 450)
    return (
        f'<figure><div class="plot" data-plot="{name}" style="height: {height}px" role="img" '
        f'aria-label="{html.escape(part.text)}"></div>'
        f'<script type="application/json" id="{name}">{text}</script></figure>'
    )
