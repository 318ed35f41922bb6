"""How every figure looks: colours by meaning, units by size, and the frame around a plot.

Colours are Okabe and Ito's (2008), safe for colour-blind readers; one meaning has one colour
everywhere. Nothing here fixes text or background colours: those come from the page's light or
dark theme, so shades that must work on both are translucent greys.

A reason why there is no plan is a sentence of any length: beside a bar stand its first words, the
whole of it is told where the row is pointed at.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from nest_core.documents.text import as_plot, csv_text
from nest_core.report.figures.data import plot_rows

__all__ = [
    "ACCENT",
    "BALANCED",
    "FAINT",
    "HATCH",
    "KIND_COLOURS",
    "LIMIT",
    "MARK",
    "MEMORY_COLOURS",
    "MUTED",
    "PAPER",
    "SILENT",
    "STASH_OUTLINE",
    "TIME_COLOURS",
    "Chart",
    "Legend",
    "Margin",
    "Trace",
    "axis_names",
    "axis_title",
    "axis_unit",
    "bare_axis",
    "bars",
    "broken",
    "curve",
    "dots",
    "empty",
    "frame",
    "hidden_axis",
    "hovered",
    "note",
    "plain",
    "plot",
    "pointed",
    "pointed_rows",
    "rows_axis",
    "ruler",
    "shade",
    "shortened",
    "stepped_scale",
    "value_axis",
    "wrapped",
]

ACCENT = "#0072B2"
MUTED = "rgba(128, 132, 138, 0.75)"
FAINT = "rgba(128, 132, 138, 0.25)"
LIMIT = "#D55E00"
HATCH = "/"
STASH_OUTLINE = "#8C8400"
MARK = "▼"
"""Stands at the stage that binds: the slowest one, or where memory is shown the fullest."""

BALANCED = 0.005
"""A slowest stage that is no further above the mean carries no mark."""

TIME_COLOURS = {
    "compute": "#0072B2",
    "recomputation": "#56B4E9",
    "communication": "#E69F00",
    "idle": "rgba(128, 132, 138, 0.28)",
}
KIND_COLOURS = {
    "tensor": "#E69F00",
    "context": "#FFC14D",
    "expert": "#C07800",
    "pipeline": "#F7D794",
    "data": "#9C5F00",
}
"""Kinds of communication, where they are told apart: all of them around its colour."""
MEMORY_COLOURS = {
    "weights": "#0072B2",
    "gradients": "#56B4E9",
    "optimizer": "#CC79A7",
    "activations": "#009E73",
    "stash": "#F0E442",
    "buffers": "rgba(128, 132, 138, 0.6)",
}

Trace = dict[str, Any]
"""What plotly draws as one, or places on a plot."""
SILENT: Trace = {"hoverinfo": "skip", "showlegend": False}
"""Of traces that neither the pointer nor a legend names."""
PAPER: Trace = {"xref": "paper", "yref": "paper"}
"""Of notes whose places are shares of the plot."""
Margin = tuple[int, int, int, int]
"""Left, right, top, bottom; pixels."""
Legend = tuple[tuple[str, str], ...]

_NAME_LENGTH = 60

_UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")),
    "tokens/s": (
        (1e9, "G tokens/s"),
        (1e6, "M tokens/s"),
        (1e3, "k tokens/s"),
        (1.0, "tokens/s"),
    ),
    "$": ((1e9, "G$"), (1e6, "M$"), (1e3, "k$"), (1.0, "$")),
    "W": ((1e6, "MW"), (1e3, "kW"), (1.0, "W")),
}


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A plot with the words around it.

    Parameters
    ----------
    title : str
        The finding, computed from the data.
    subtitle : str
        Quantity and unit.
    reading : str
        One sentence that says how to read it.
    plot : plotly.graph_objects.Figure
        Without a title of its own; its height is fixed, its width follows the page.
    legend : tuple of (str, str)
        What each colour means where the plot does not say it itself: name and colour.
    table : callable, optional
        The data as rows, where what the plot draws says less: logarithms, names of places.
    """

    title: str
    subtitle: str
    reading: str
    plot: go.Figure
    legend: Legend = ()
    table: Callable[[], list[dict[str, Any]]] | None = None

    @property
    def file_name(self) -> str:
        """The title as a file's name, without an ending.

        Examples
        --------
        >>> Chart("Stage 4 is slow, 12 % above", "time, s", "", go.Figure()).file_name
        'stage-4-is-slow-12-above'
        """
        return (
            "-".join(re.findall(r"[a-z0-9.]+", self.title.lower()))[:_NAME_LENGTH].strip("-.")
            or "figure"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the data, or what the plot draws (`figures.data`); columns are equal."""
        return self.table() if self.table else plot_rows(self.plot)

    def to_csv(self) -> str:
        """Return the rows with a header."""
        rows = self.rows()
        return csv_text(list(rows[0]), (list(row.values()) for row in rows)) if rows else ""

    def drawn(self) -> go.Figure:
        """Return the plot as whoever draws it gets it: names in it are text (`quoting.as_plot`)."""
        plain = json.loads(self.plot.to_json())
        quoted = as_plot(plain)
        return self.plot if quoted == plain else go.Figure(quoted)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return what a notebook shows: the plot with its title, the reading help as text."""
        return {
            "application/vnd.plotly.v1+json": json.loads(self.titled().to_json()),
            "text/plain": f"{self.title}\n{self.subtitle}\n{self.reading}",
        }

    def titled(self) -> go.Figure:
        """Return the plot with title, subtitle and legend inside, for notebooks and reports."""
        room = 90 if self.legend else 60
        return go.Figure(self.drawn()).update_layout(
            title={
                "text": as_plot(self.title),
                "subtitle": {"text": as_plot(self.subtitle)},
                "x": 0.0,
                "pad_l": 8,
            },
            margin_t=(self.plot.layout.margin.t or 0) + room,
            height=(self.plot.layout.height or 450) + room,
            showlegend=bool(self.legend),
        )


LABEL_PX = 12
"""No text of a figure is smaller."""


def axis_unit(largest: float, base: str) -> tuple[float, str]:
    """Divisor and unit that bring the largest value of an axis to 1 or above.

    Examples
    --------
    >>> axis_unit(0.02, "s"), axis_unit(1.2e6, "tokens/s")
    ((0.001, 'ms'), (1000000.0, 'M tokens/s'))
    """
    scales = _UNITS[base]
    return next((pair for pair in scales if largest >= pair[0]), scales[-1])


def frame(height: int, margin: Margin, **layout: Any) -> dict[str, Any]:
    """Return the layout that all figures share.

    Sizes of type are stated: a page's theme has smaller ones for ticks.
    """
    axes = {
        name: {"tickfont": {"size": LABEL_PX}} | axis
        for name, axis in layout.items()
        if name.startswith(("xaxis", "yaxis"))
    }
    return {
        "template": "none",
        "font": {"size": LABEL_PX},
        "height": height,
        "margin": dict(zip("lrtb", margin, strict=True)) | {"pad": 0},
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": False,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": LABEL_PX},
        },
    } | (layout | axes)


def plot(data: Iterable[Trace], height: int, margin: Margin, **layout: Any) -> go.Figure:
    """Return traces in the frame that all figures share."""
    return go.Figure(data=list(data), layout=frame(height, margin, **layout))


def curve(x: Any, y: Any, colour: str, width: float | None = 2.0, **more: Any) -> Trace:
    """Return a line; ``more`` are plotly's own fields."""
    line = {"color": colour, "width": width} | more.pop("line", {})
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line} | more


def dots(x: Any, y: Any, marker: Mapping[str, Any], **more: Any) -> Trace:
    """Return points; ``more`` are plotly's own fields."""
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": dict(marker)} | more


def bars(x: Any, y: Any, marker: Mapping[str, Any], **more: Any) -> Trace:
    """Return a bar per row, drawn across; ``more`` are plotly's own fields."""
    return {"type": "bar", "orientation": "h", "x": x, "y": y, "marker": dict(marker)} | more


def hovered(texts: Iterable[str]) -> Trace:
    """Return what is read beside the pointer, for traces whose ``customdata`` is taken."""
    return {"hovertext": list(texts), "hovertemplate": "%{hovertext}<extra></extra>"}


def pointed(texts: Iterable[Any]) -> Trace:
    """Return what is read beside the pointer."""
    return {"customdata": list(texts), "hovertemplate": "%{customdata}<extra></extra>"}


def broken(
    lines: Iterable[tuple[Sequence[float], Sequence[float]]],
) -> Trace:
    """Lines, each its places across and up, as the one trace that plotly draws fastest."""
    x: list[float | None] = []
    y: list[float | None] = []
    for across, up in lines:
        x += [*across, None]
        y += [*up, None]
    return {"x": x, "y": y}


def bare_axis(**more: Any) -> dict[str, Any]:
    """Return an axis without lines; ``more`` are plotly's own fields."""
    return {"showgrid": False, "zeroline": False, "fixedrange": True} | more


def axis_title(text: str, standoff: int = 8) -> dict[str, Any]:
    """Return the title of an axis."""
    return {"text": text, "standoff": standoff, "font": {"size": LABEL_PX}}


def rows_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis of rows with their labels, the first at the top."""
    return bare_axis(
        range=[len(labels) - 0.5, -0.5], tickvals=list(range(len(labels))), ticktext=list(labels)
    )


def hidden_axis() -> dict[str, Any]:
    """Return an axis that is not drawn."""
    return {"visible": False, "fixedrange": True}


def empty(title: str, subtitle: str, height: int, margin: Margin) -> Chart:
    """Return a picture of nothing: the title says why."""
    return Chart(
        title,
        subtitle,
        "",
        plot((), height, margin, **{"xaxis": hidden_axis(), "yaxis": hidden_axis()}),
    )


def plain(name: str) -> str:
    """Return a person's text without what plotly would take for a tag."""
    return name.replace("&", "&amp;").replace("<", "&lt;")


def value_axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis for quantities: few ticks, a faint grid; ``more`` are plotly's own fields."""
    return {
        "title": axis_title(title),
        "gridcolor": FAINT,
        "gridwidth": 0.5,
        "showgrid": True,
        "zeroline": False,
        "nticks": 5,
        "fixedrange": True,
    } | more


def ruler(height: float, colour: str = LIMIT, width: float = 1.5, **more: Any) -> dict[str, Any]:
    """Return a line across the plot at a height; ``more`` are plotly's own fields."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": {"color": colour, "width": width, "dash": "dash"},
    } | more


def note(text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    """Words in the plot; ``more`` are plotly's own fields."""
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"size": 12}} | more


def axis_names(number: int) -> tuple[str, str]:
    """Return plotly's names of the axes of the part with a number, from 0."""
    suffix = "" if number == 0 else str(number + 1)
    return f"x{suffix}", f"y{suffix}"


def shade(low: Sequence[int], high: Sequence[int], share: float) -> str:
    """Return the colour at a share of the way from one to another, each red, green and blue."""
    mixed = (round(a + share * (b - a)) for a, b in zip(low, high, strict=True))
    return "rgb({}, {}, {})".format(*mixed)


def stepped_scale(colours: Sequence[str]) -> list[tuple[float, str]]:
    """Return a colour scale of equal steps, one per class."""
    count = len(colours)
    return [
        (edge / count, colour)
        for index, colour in enumerate(colours)
        for edge in (index, index + 1)
    ]


def class_bar(positions: Iterable[float], labels: list[str]) -> dict[str, Any]:
    """Return a flat colour bar below a map of classes, with the classes' names on it."""
    return {
        "orientation": "h",
        "tickvals": list(positions),
        "ticktext": labels,
        "thickness": 12,
        "outlinewidth": 0,
        "len": 1.0,
        "yref": "container",
        "y": 0.03,
        "yanchor": "bottom",
        "ypad": 0,
        "ticks": "",
        "tickfont": {"size": LABEL_PX},
    }


_SHORT = 48
_WIDE = 70


def shortened(reason: str) -> str:
    """Return what a reason says before its first colon, cut between words after 48 characters.

    Examples
    --------
    >>> shortened("no plan fits into memory: the leanest found needs 90 GiB")
    'no plan fits into memory'
    """
    return textwrap.shorten(reason.partition(":")[0], _SHORT, placeholder=" …")


def wrapped(reason: str) -> str:
    """Return a reason in lines of 70 characters at most, as plotly breaks them.

    Examples
    --------
    >>> wrapped("no plan fits into memory")
    'no plan fits into memory'
    """
    return "<br>".join(textwrap.wrap(reason, _WIDE))


def pointed_rows(texts: Mapping[int, str], end: float) -> list[Trace]:
    """Return invisible bars over whole rows, where a bar of no length cannot be pointed at.

    Parameters
    ----------
    texts : mapping of int to str
        What is read beside the pointer, by row.
    end : float
        Where the axis ends.
    """
    if not texts:
        return []
    return [
        bars(
            [end] * len(texts),
            list(texts),
            {},
            name="reasons",
            opacity=0,
            **pointed(texts.values()),
        )
    ]
