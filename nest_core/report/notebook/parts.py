"""What of a cell may be shown to others: text, figures and pictures that run and load nothing.

A notebook comes from anybody. HTML and JavaScript in its outputs are shown as text or not at all,
pictures as data, in which no browser runs a script, and figures without what plotly would fetch.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go
from nbformat import NotebookNode

from nest_core.documents.text import as_plot

__all__ = ["CellPart", "cell_parts"]

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
            yield _part(output.data)


def _part(data: Mapping[str, Any]) -> CellPart:
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
