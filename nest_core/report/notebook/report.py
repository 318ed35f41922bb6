"""A notebook as one HTML file: for print on A4, and for who has no studio.

Everything is inside: style, figures, and plotly.js once. A content security policy in the file
keeps it from fetching anything, whatever stands in it.
"""

import html
import json

from nbformat import NotebookNode

from nest_core.report.documents import html_document
from nest_core.report.notebook.parts import CellPart, cell_parts
from nest_core.report.notebook.words import note_html

__all__ = ["html_report"]

_STYLE = """
@page { size: A4; margin: 16mm 14mm 18mm; }
html { color-scheme: light; font: 10pt/1.45 system-ui, "Segoe UI", Roboto,
  "Liberation Sans", Arial, sans-serif; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
body { width: 182mm; margin: 0 auto; padding: 10mm 0 16mm; }
h1 { font-size: 20pt; line-height: 1.2; margin: 0 0 1mm; }
h2 { font-size: 13.5pt; line-height: 1.25; margin: 0 0 1mm; }
h3 { font-size: 10.5pt; line-height: 1.3; margin: 0; }
p { margin: 0 0 2mm; }
a { color: var(--accent); }
.quiet { color: var(--ink3); font-size: 8.8pt; }
section { border-top: 0.3mm solid var(--line); margin-top: 8mm; padding-top: 5mm; }
.note { margin: 2mm 0 3mm; max-width: 150mm; }
.note table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.note :is(h3, h4, h5, h6) { font-size: 10.5pt; margin: 2.5mm 0 1mm; }
pre { font-size: 8.4pt; line-height: 1.3; overflow-wrap: anywhere; white-space: pre-wrap; }
.note pre { background: var(--panel); padding: 2mm 3mm; overflow-x: auto; }
.note code { font-size: 9pt; }
.note blockquote { border-left: 0.8mm solid var(--line); margin: 2mm 0; padding-left: 3mm; }
.note :is(td, th) { border: 0.2mm solid var(--line); padding: 0.6mm 2mm; }
figure { margin: 5mm 0 0; break-inside: avoid; }
figure img { display: block; max-width: 100%; height: auto; }
/* Drawn as wide as on a page of the studio, and made to fit. */
figure .plot { width: 905px; zoom: 0.76; }
h1, h2, h3 { break-after: avoid; }
@media print { body { padding: 0; width: auto; } }
"""
"""Light, A4, one column as wide on screen as on paper."""
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
    return html_document(name, _STYLE, f"{front}{body}{appendix}\n{scripts}", scripts=True)


def _cell(cell: NotebookNode) -> str:
    if cell.cell_type == "markdown":
        return f'<div class="note">{note_html(cell.source)}</div>'
    if cell.cell_type == "raw":
        return f"<pre>{html.escape(cell.source)}</pre>"
    return "".join(_part(part, f"plot-{cell.id}-{n}") for n, part in enumerate(cell_parts(cell)))


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
