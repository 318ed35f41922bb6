"""The blackboard example: who sits where, and the table as it fills."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    LIMIT,
    MUTED,
    Picture,
    frame,
    hidden_axis,
    note,
)
from nest_core.teaching.lessons.levels import (
    LAYERS,
    SECONDS,
    STAGES,
    UNITS,
    Cell,
    DynamicTable,
    hop_seconds,
)
from nest_core.teaching.lessons.teaching import LEVEL_NAMES

__all__ = [
    "LATER",
    "ON",
    "box",
    "drawing",
    "mapping_picture",
    "table_picture",
    "values_trace",
    "words",
]

_DEVICES = 4
_PER_NODE = 2
LATER = "#A6CCE3"
"""A tint of the accent: stages placed before."""
_WHITE, _DARK = "#FFFFFF", "#12212B"
ON = {ACCENT: _WHITE, LATER: _DARK}
"""Text on a filled box."""


def mapping_picture(found: DynamicTable) -> Picture:
    """The devices with the stages placed so far, and the layers beneath them."""
    cell = found.filled[-1] if found.filled else None
    shapes, notes = _nodes(found, cell)
    layer_shapes, layer_notes = _layers(found, cell)
    return Picture(
        _mapping_finding(found, cell),
        "Above, devices in two nodes; below, layers with their seconds, and units of data between",
        "Dark: the stage being placed; pale: stages placed before; dashed: a stage without a "
        "device yet, at the distance that the row assumes.",
        drawing(250, [0, _DEVICES], [-0.05, 2.25], shapes + layer_shapes, notes + layer_notes),
        (("being placed", ACCENT), ("placed before", LATER), ("unknown", LIMIT)),
    )


def drawing(
    height: int,
    x: list[float],
    y: list[float],
    shapes: list[dict[str, Any]],
    notes: list[dict[str, Any]],
) -> go.Figure:
    """Shapes and words on a plane without axes; ``x`` and ``y`` are its ends."""
    # Plotly draws axes only where there is a trace.
    corner = {"type": "scatter", "x": [x[0]], "y": [y[0]], "mode": "markers", "opacity": 0}
    return go.Figure(
        data=[corner | {"hoverinfo": "skip"}],
        layout=frame(
            height,
            (6, 6, 4, 4),
            xaxis=hidden_axis() | {"range": x},
            yaxis=hidden_axis() | {"range": y},
            shapes=shapes,
            annotations=notes,
        ),
    )


def _mapping_finding(found: DynamicTable, cell: Cell | None) -> str:
    if cell is None:
        return f"{STAGES} stages to place, the last one first"
    if found.cuts:
        return f"All {STAGES} stages are placed"
    if cell.level is None:
        return "The first stage has no producer: one row is enough"
    return f"Where stage {cell.stage} will sit is unknown; two levels stand for all devices"


def _nodes(
    found: DynamicTable, cell: Cell | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    shapes = [
        box(node * _PER_NODE + 0.04, (node + 1) * _PER_NODE - 0.04, 1.02, 1.95, FAINT, None)
        for node in range(_DEVICES // _PER_NODE)
    ]
    notes = [
        words(f"node {node + 1}", (node + 0.5) * _PER_NODE, 2.08)
        for node in range(_DEVICES // _PER_NODE)
    ]
    taken = {} if cell is None else _placed(found, cell)
    asked = None if cell is None else _assumed_device(found, cell)
    for device in range(_DEVICES):
        notes.append(words(f"device {device}", device + 0.5, 1.17, size=12))
        shape = box(device + 0.12, device + 0.88, 1.32, 1.8, MUTED, None)
        if cell is not None and device == asked:
            shape["line"] = {"color": LIMIT, "width": 1.5, "dash": "dash"}
            notes.append(words(f"stage {cell.stage}?", device + 0.5, 1.55, colour=LIMIT))
        elif cell is not None and device in taken:
            stage = taken[device]
            shape["fillcolor"] = ACCENT if stage == cell.stage else LATER
            text, colour = f"<b>stage {stage + 1}</b>", ON[shape["fillcolor"]]
            notes.append(words(text, device + 0.5, 1.55, colour=colour))
        shapes.append(shape)
    if cell is not None and cell.level is not None:
        notes.append(_assumption(found, cell))
    return shapes, notes


def _placed(found: DynamicTable, cell: Cell) -> dict[int, int]:
    """Stages that have a device, by device."""
    return {device: s for s, device in enumerate(found.devices) if s >= cell.stage}


def _assumed_device(found: DynamicTable, cell: Cell) -> int | None:
    """A device at the level that the cell assumes, the real one where it fits.

    None where all of them are taken.
    """
    if cell.level is None:
        return None
    here = found.devices[cell.stage]
    fitting = [
        device
        for device in range(_DEVICES)
        if device not in _placed(found, cell)
        and (device // _PER_NODE != here // _PER_NODE) == bool(cell.level)
    ]
    real = found.devices[cell.stage - 1]
    return real if real in fitting else next(iter(fitting), None)


def _assumption(found: DynamicTable, cell: Cell) -> dict[str, Any]:
    """What the row takes for granted, beside the stage being placed."""
    level = cell.level or 0
    full = " (full)" if _assumed_device(found, cell) is None else ""
    text = (
        f"this row: producer in the {LEVEL_NAMES[level]}{full}, {hop_seconds()[level]:g} s per unit"
    )
    if cell.stage < STAGES - 1:
        after = found.between[cell.stage]
        text += (
            f"<br>known: consumer in the {LEVEL_NAMES[after]}, {hop_seconds()[after]:g} s per unit"
        )
    return words(text, _DEVICES / 2, 0.83, colour=LIMIT)


def _layers(
    found: DynamicTable, cell: Cell | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    owner = _owners(found, cell)
    shapes, notes = [], []
    for layer in range(LAYERS):
        fill = None
        if cell is not None and owner[layer] is not None:
            fill = ACCENT if owner[layer] == cell.stage else LATER
        shapes.append(box(layer + 0.16, layer + 0.84, 0.2, 0.62, MUTED, fill))
        notes.append(
            words(
                f"layer {layer + 1}: {SECONDS[layer]:g} s",
                layer + 0.5,
                0.41,
                colour=ON.get(fill or ""),
            )
        )
        if layer:
            notes.append(words(f"{UNITS[layer]:g}", layer, 0.41, size=12))
    return shapes, notes


def _owners(found: DynamicTable, cell: Cell | None) -> list[int | None]:
    """Stage of every layer as the cell just filled has it; None where it says nothing."""
    owner: list[int | None] = [None] * LAYERS
    if cell is None:
        return owner
    table = {(one.stage, one.first, one.level): one for one in found.filled}
    while True:
        end = cell.best.end
        owner[cell.first : end] = [cell.stage] * (end - cell.first)
        if cell.stage == STAGES - 1:
            return owner
        cell = table[cell.stage + 1, end, found.between[cell.stage]]


def table_picture(found: DynamicTable) -> Picture:
    """Rows are stages and the level of the link to their producer, columns first layers."""
    rows = [
        (stage, level)
        for stage in reversed(range(STAGES))
        for level in (range(len(LEVEL_NAMES)) if stage else [None])
    ]
    filled = {(one.stage, one.level, one.first): one for one in found.filled}
    possible = {(one.stage, one.level, one.first) for one in found.whole}
    last = found.filled[-1] if found.filled else None
    shapes, notes = [], []
    values = values_trace()
    for row, (stage, level) in enumerate(rows):
        high = float(len(rows) - row)
        notes.append(_row_name(stage, level, high))
        for first in range(LAYERS):
            key = (stage, level, first)
            if key not in possible:
                continue
            one, read = filled.get(key), _is_read(found, key, last)
            now = one is not None and one is last
            shape = box(
                first + 0.04,
                first + 0.96,
                high - 0.92,
                high - 0.08,
                ACCENT if read else FAINT,
                ACCENT if now else None,
                2.5 if read else 1.0,
            )
            shapes.append(shape)
            if one is not None:
                _add_value(values, one, high, bold=now or read)
                if now:
                    notes.append(words(_bold(one), first + 0.5, high - 0.5, 15, _WHITE))
    top = len(rows) + 0.3
    notes += [words(f"from layer {layer + 1}", layer + 0.5, top) for layer in range(LAYERS)]
    plot = drawing(
        54 + 36 * len(rows), [-1.75, float(LAYERS)], [-0.02, len(rows) + 0.6], shapes, notes
    )
    plot.add_trace(values)
    return Picture(
        _table_finding(found, last),
        "Least seconds from a stage on: "
        + ("sum of the stages" if found.objective == "sum" else "slowest stage"),
        "Filled: the cell just computed; outlined: the cells that it compared. Empty places "
        "cannot occur: every stage keeps a layer.",
        plot,
    )


def values_trace() -> dict[str, Any]:
    """The trace that carries the cells' values, for pointing at and for their data."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": "seconds",
        "x": [],
        "y": [],
        "text": [],
        "customdata": [],
        "marker": {"size": 24, "opacity": 0},
        "textfont": {"size": 15},
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _bold(one: Cell) -> str:
    return f"<b>{one.best.total:g}</b>"


def _add_value(values: dict[str, Any], one: Cell, high: float, *, bold: bool) -> None:
    producer = "" if one.level is None else f", producer in the {LEVEL_NAMES[one.level]}"
    values["x"].append(one.first + 0.5)
    values["y"].append(high - 0.5)
    values["text"].append(_bold(one) if bold else f"{one.best.total:g}")
    values["customdata"].append(
        f"stage {one.stage + 1}, from layer {one.first + 1}{producer}: {one.best.total:g} s"
    )


def _is_read(found: DynamicTable, key: tuple[int, int | None, int], last: Cell | None) -> bool:
    """Whether the cell just filled was computed from this one."""
    if last is None or last.stage == STAGES - 1:
        return False
    stage, level, first = key
    ends = [one.end for one in last.candidates]
    return stage == last.stage + 1 and level == found.between[last.stage] and first in ends


def _table_finding(found: DynamicTable, last: Cell | None) -> str:
    if last is None:
        return f"{len(found.whole)} cells to fill"
    count = f"{len(found.filled)} of {len(found.whole)} cells"
    least = f"{last.best.total:g} s"
    ways = len(last.candidates)
    if ways == 1:
        return f"{count}: {least}, the only way"
    return f"{count}: {least}, the least of {ways}"


def _row_name(stage: int, level: int | None, high: float) -> dict[str, Any]:
    producer = "no producer" if level is None else f"producer in the {LEVEL_NAMES[level]}"
    return words(f"<b>stage {stage + 1}</b>, {producer}", -1.72, high - 0.5) | {"xanchor": "left"}


def box(
    left: float,
    right: float,
    low: float,
    high: float,
    line: str,
    fill: str | None,
    width: float = 1.0,
) -> dict[str, Any]:
    """A rectangle; ``fill`` None: empty."""
    return {
        "type": "rect",
        "x0": left,
        "x1": right,
        "y0": low,
        "y1": high,
        "line": {"color": line, "width": width},
        "fillcolor": fill or "rgba(0, 0, 0, 0)",
    }


def words(
    text: str, x: float, y: float, size: int = 13, colour: str | None = None
) -> dict[str, Any]:
    """Words at a place."""
    return note(text, x, y, font={"size": size} | ({"color": colour} if colour else {}))
