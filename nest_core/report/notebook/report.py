"""A notebook as one HTML file: for print on A4, and for who has no studio.

Everything is inside: style, figures, and plotly.js once. A content security policy in the file
keeps it from fetching anything, whatever stands in it.

A notebook comes from anybody. HTML and JavaScript in its outputs are shown as text or not at all,
pictures as data, in which no browser runs a script, and figures without what plotly would fetch.
Notes are Markdown that fetches nothing and runs nothing, as HTML and for Jupyter.
"""

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import plotly.graph_objects as go
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from nbformat import NotebookNode

from nest_core.documents.text import as_plot
from nest_core.report.documents import html_document

__all__ = ["CellPart", "cell_parts", "html_report", "note_html", "note_markdown"]

_DATA = re.compile(r"data:image/(?:png|gif|jpeg|webp);base64,[A-Za-z0-9+/=]+")


def note_html(text: str) -> str:
    """Return a note in HTML: CommonMark with tables and strike-through.

    HTML in the note is shown as text, addresses that could run something are no links, and of
    pictures only those stand that the note holds as data; the others become links: whoever opens a
    notebook must not be made to load what it names.

    Examples
    --------
    >>> note_html("*less* is <b>more</b>")
    '<p><em>less</em> is &lt;b&gt;more&lt;/b&gt;</p>\\n'
    >>> note_html("![a rack](//elsewhere.example/x.png)")
    '<p>!<a href="//elsewhere.example/x.png">a rack</a></p>\\n'
    """
    return str(_reader().render(text))


def note_markdown(text: str) -> str:
    """A note for a Markdown cell of Jupyter, which takes HTML, loads pictures and draws diagrams.

    As it was written, unless there is something in it that could be one of these: then as
    `note_html` in one block, which a blank line would end.

    Examples
    --------
    >>> note_markdown("*less* is more")
    '*less* is more'
    >>> note_markdown("![x](//elsewhere.example/x.png)")
    '<p>!<a href="//elsewhere.example/x.png">x</a></p>'
    """
    if not any(mark in text for mark in ("<", "![", "```", "~~~")):
        return text
    return re.sub(r"\n(?=\n)", "&#10;", note_html(text).strip())


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False})
    reader.add_render_rule("image", _picture)
    return reader.enable(["table", "strikethrough"])


def _picture(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """Return a picture that is data as one; another as a link to it."""
    address = str(tokens[index].attrs["src"])
    words = renderer.renderInlineAsText(tokens[index].children, options, env)
    if _DATA.fullmatch(address):
        return f'<img src="{html.escape(address)}" alt="{html.escape(words)}">'
    return f'!<a href="{html.escape(address)}">{html.escape(words)}</a>'


_PLOT = "application/vnd.plotly.v1+json"
_TRACES = ("bar", "box", "contour", "heatmap", "histogram", "pie", "scatter", "scattergl", "violin")
_LAYOUT = re.compile(
    "[xy]axis[0-9]*|coloraxis[0-9]*|annotations|shapes|title|margin|width|height|font|legend|"
    "showlegend|bar(mode|gap|groupgap|norm)|boxmode|colorway|dragmode|hovermode|uniformtext|"
    "(paper|plot)_bgcolor"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class CellPart:
    """One output of a cell.

    Parameters
    ----------
    kind : {"text", "figure", "image"}
    text : str
        The words; of a figure what stands for it; of an image a ``data:`` address.
    figure : plotly figure or None
    """

    kind: Literal["text", "figure", "image"]
    text: str
    figure: go.Figure | None = None


def cell_parts(cell: NotebookNode) -> Iterator[CellPart]:
    """Yield the outputs of a code cell in their order."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield CellPart("text", _ANSI.sub("", output.text))
        elif output.output_type == "error":
            yield CellPart("text", f"{output.ename}: {output.evalue}")
        else:
            yield _output_part(output.data)


def _output_part(data: Mapping[str, Any]) -> CellPart:
    words = str(data.get("text/plain", "")) or ", ".join(f"an output of {kind}" for kind in data)
    if isinstance(data.get(_PLOT), Mapping) and (figure := _figure(data[_PLOT])):
        return CellPart("figure", words, figure)
    for kind in ("image/png", "image/jpeg"):
        if _BASE64.fullmatch(str(data.get(kind, ""))):
            return CellPart("image", f"data:{kind};base64,{''.join(str(data[kind]).split())}")
    if isinstance(svg := data.get("image/svg+xml"), str):
        code = base64.b64encode(svg.encode()).decode()
        return CellPart("image", f"data:image/svg+xml;base64,{code}")
    return CellPart("text", words)


def _figure(spec: Mapping[str, Any]) -> go.Figure | None:
    """Return a figure of plain traces without pictures, maps and templates.

    None if it is no such one.
    """
    layout = spec.get("layout", {})
    try:
        plain = {name: value for name, value in layout.items() if _LAYOUT.fullmatch(name)}
        figure = go.Figure(as_plot({"data": spec.get("data", []), "layout": plain}))
    except (AttributeError, TypeError, ValueError):
        return None
    figure.update_layout(template="none")
    return figure if all(trace.type in _TRACES for trace in figure.data) else None


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
