"""What a plot draws, as rows: one per bar, point or cell, read from the plot itself."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go

__all__ = ["plot_rows"]

_COLUMNS = ("series", "x", "y", "z", "from", "below", "above", "label")
_ERRORS = (("above", "array"), ("below", "arrayminus"))
_TAG = re.compile(r"<[^>]+>")
_DECORATION = ("stage number",)  # traces that only name what others draw


def plot_rows(plot: go.Figure) -> list[dict[str, object]]:
    """Return everything that the traces of a plot draw.

    Columns are ``series``, ``x``, ``y``, ``z`` (of maps), ``from`` (where a bar does not begin at
    zero), ``below`` and ``above`` (lengths of error bars) and ``label`` (what pointing at it
    tells); those that nothing fills are left out. Points without a value, and traces that carry
    text alone or are hidden, are no rows.
    """
    rows = [row for trace in go.Figure(_read(plot.to_dict())).data for row in _rows(trace)]
    filled = [name for name in _COLUMNS if any(row.get(name) is not None for row in rows)]
    return [{name: row.get(name) for name in filled} for row in rows]


def _read(value: Any) -> Any:
    """Return arrays as such: plotly writes them in base64, and pickles figures as it does."""
    if isinstance(value, list | tuple):
        return [_read(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "bdata" not in value:
        return {name: _read(entry) for name, entry in value.items()}
    flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return flat.reshape([int(n) for n in str(value.get("shape", len(flat))).split(",")])


def _rows(trace: Any) -> Iterator[dict[str, object]]:
    drawn = {"heatmap": _cells, "bar": _points, "scatter": _points}.get(trace.type)
    is_hidden = trace.visible is False or trace.opacity == 0 or trace.name in _DECORATION
    is_text = trace.type == "scatter" and trace.mode == "text"
    return iter(()) if drawn is None or is_hidden or is_text else drawn(trace)


def _cells(trace: Any) -> Iterator[dict[str, object]]:
    z = np.asarray(trace.z)
    xs, ys = _places(trace, "x", z.shape[1]), _places(trace, "y", z.shape[0])
    text = np.asarray(trace.text, dtype=object)
    for i, j in np.argwhere(~np.isnan(np.asarray(z, np.float64))):
        label = _words(text[i][j]) if text.ndim > 1 else None
        yield {"series": trace.name, "x": xs[j], "y": ys[i], "z": _plain(z[i, j]), "label": label}


def _places(trace: Any, axis: str, count: int) -> list[object]:
    """Return where a map's columns or rows stand; the middle where their edges are given."""
    values = trace[axis]
    if values is None:
        first, step = trace[f"{axis}0"] or 0, trace[f"d{axis}"] or 1
        values = [first + step * number for number in range(count)]
    if len(values) == count + 1:
        values = (np.asarray(values[:-1]) + np.asarray(values[1:])) / 2
    return [_plain(value) for value in values]


def _points(trace: Any) -> Iterator[dict[str, object]]:
    across, up = _ends(trace.x), _ends(trace.y)
    lengths = [
        ("from", trace.base if trace.type == "bar" else None),
        *((name, error[key]) for error in (trace.error_x, trace.error_y) for name, key in _ERRORS),
    ]
    columns = {
        name: [_plain(value) for value in np.broadcast_to(np.asarray(values, object), len(across))]
        for name, values in lengths
        if values is not None
    }
    columns["label"] = _labels(trace, len(across))
    for number, (x, y) in enumerate(zip(across, up, strict=True)):
        if not _missing(x) and not _missing(y):
            more = {name: values[number] for name, values in columns.items()}
            yield {"series": trace.name, "x": _plain(x), "y": _plain(y)} | more


def _ends(places: Any) -> list[Any]:
    """Return where points stand on an axis; of two rows of categories, the outer and the inner."""
    return (
        [", ".join(pair) for pair in zip(*places, strict=True)]
        if np.ndim(places) == 2
        else list(places if places is not None else ())
    )


def _labels(trace: Any, count: int) -> list[object]:
    """Return what stands at the points, or what is told where they are pointed at."""
    for texts in (trace.customdata, trace.hovertext, trace.text):
        if (
            texts is not None
            and not isinstance(texts, str)
            and len(texts) == count
            and all(isinstance(entry, str | int | np.integer) for entry in texts)
        ):
            return [_words(entry) for entry in texts]
    return [None] * count


def _words(text: object) -> str | None:
    """Return a label without its tags."""
    return (
        None
        if text is None
        else _TAG.sub("", str(text).replace("<br>", "; ")).replace("&lt;", "<").strip()
    )


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _plain(value: Any) -> object:
    """Return a number of Python's, rounded to what the plot can show; text without tags."""
    if isinstance(value, str):
        return _words(value)
    number = value.item() if isinstance(value, np.generic) else value
    return float(f"{number:.9g}") if isinstance(number, float) else number
