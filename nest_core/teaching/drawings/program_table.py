"""NEST's level-wise program on eight devices: who sits where, and the table as it fills."""

from __future__ import annotations

from typing import Any

from nest_core.documents.units import plural
from nest_core.report.figures.style import ACCENT, FAINT, LIMIT, MUTED, Picture
from nest_core.teaching.drawings.dynamic_table import LATER, ON, box, drawing, values_trace, words
from nest_core.teaching.lessons.program import (
    LAYERS,
    SECONDS,
    UNITS,
    WIDTH,
    Fill,
    State,
    iteration,
    places,
    states,
)
from nest_core.teaching.lessons.teaching import LEVEL_NAMES

__all__ = ["program_devices_picture", "program_table_picture"]

_PER_NODE = 4
_WHITE = "#FFFFFF"
_ROW_NAMES = -1.95


def program_devices_picture(found: Fill) -> Picture:
    """Stages on the devices, as the state just filled or the answer has them; layers beneath."""
    devices = WIDTH * len(places())
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for node in range(devices // _PER_NODE):
        left, right = node * _PER_NODE, (node + 1) * _PER_NODE
        shapes.append(box(left + 0.06, right - 0.06, 1.0, 1.95, FAINT, None))
        notes.append(words(f"node {node + 1}", (left + right) / 2, 2.08))
    for slot, placed in enumerate(places().devices[:, 0].tolist()):
        text, fill, dashed = _standing(found, slot)
        for device in placed:
            shape = box(device + 0.1, device + 0.9, 1.32, 1.8, MUTED, fill)
            if dashed:
                shape["line"] = {"color": LIMIT, "width": 1.5, "dash": "dash"}
            shapes.append(shape)
            notes.append(words(f"device {device}", device + 0.5, 1.16, size=12))
            colour = LIMIT if dashed else ON.get(fill or "")
            notes.append(words(text, device + 0.5, 1.56, size=12, colour=colour))
    layer_shapes, layer_notes = _layers(found, devices)
    return Picture(
        _devices_finding(found),
        "Above, eight devices in two nodes; below, layers with their seconds, and units of data "
        "between",
        "Dark: the first of the stages so far; pale: stages after it; dashed: where its producer "
        "would be. Stages are numbered from the last.",
        drawing(250, [0, devices], [-0.05, 2.25], shapes + layer_shapes, notes + layer_notes),
        (("first so far", ACCENT), ("after it", LATER), ("its producer", LIMIT)),
    )


def _standing(found: Fill, slot: int) -> tuple[str, str | None, bool]:
    """What stands on the devices of a slot, its fill, and whether it is only assumed."""
    for number, state in enumerate(found.shown):
        if state.slot == slot:
            pale = number > 0 and not found.done
            return f"<b>e = {state.stages}</b>", LATER if pale else ACCENT, False
    first = found.shown[0] if found.shown else None
    if first is not None and first.level is not None and first.producer == slot:
        return "producer?", None, True
    passed = first is not None and slot < first.producer
    return "idle" if passed or found.done else "", None, False


def _devices_finding(found: Fill) -> str:
    if not found.shown:
        return "No stage is placed yet"
    first = found.shown[0]
    if found.done:
        return f"{first.stages} stages on {WIDTH * first.stages} of 8 devices: the program's plan"
    many = plural(first.stages, "stage")
    if first.level is None:
        return f"{many} with all layers, on {first.devices} devices from the far end"
    return (
        f"{many} and their gaps take {first.devices} devices; the next sits in the "
        f"{LEVEL_NAMES[first.level]}"
    )


def _layers(found: Fill, devices: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    owner: list[str | None] = [None] * LAYERS
    stage: list[str] = [""] * LAYERS
    for number, state in enumerate(found.shown):
        for layer in range(state.first, state.best.end):
            owner[layer] = LATER if number and not found.done else ACCENT
            stage[layer] = f", e = {state.stages}"
    shapes, notes = [], []
    step = devices / LAYERS
    for layer, fill in enumerate(owner):
        middle = (layer + 0.5) * step
        shapes.append(box(layer * step + 0.3, (layer + 1) * step - 0.3, 0.2, 0.62, MUTED, fill))
        notes.append(
            words(
                f"layer {layer + 1}: {SECONDS[layer]:g} s{stage[layer]}",
                middle,
                0.41,
                colour=ON.get(fill or ""),
            )
        )
        if layer:
            notes.append(words(f"{UNITS[layer]:g}", layer * step, 0.41, size=12))
    return shapes, notes


def program_table_picture(found: Fill) -> Picture:
    """Rows are stages, devices and the level of the producer; columns first layers."""
    rows = list(dict.fromkeys((one.stages, one.level) for one in states()))
    filled = {(one.stages, one.level, one.first): one for one in found.filled}
    read = _read(found)
    last = None if found.done or not found.filled else found.filled[-1]
    shapes, notes, values = [], [], values_trace()
    for number, (stages, level) in enumerate(rows):
        high = float(len(rows) - number)
        whole = [one for one in states() if (one.stages, one.level) == (stages, level)]
        notes.append(words(_row_name(whole[0]), _ROW_NAMES, high - 0.5) | {"xanchor": "left"})
        for one in whole:
            state = filled.get((stages, level, one.first))
            now, outlined = state is not None and state is last, one in read
            shapes.append(
                box(
                    one.first + 0.04,
                    one.first + 0.96,
                    high - 0.92,
                    high - 0.08,
                    ACCENT if outlined else FAINT,
                    ACCENT if now else None,
                    2.5 if outlined else 1.0,
                )
            )
            if state is None:
                continue
            text = (
                f"<b>{state.best.slowest:g}</b>" if now or outlined else f"{state.best.slowest:g}"
            )
            values["x"].append(one.first + 0.5)
            values["y"].append(high - 0.5)
            values["text"].append("" if now else text)
            values["customdata"].append(f"{_row_name(one)}, from layer {one.first + 1}: {text} s")
            if now:
                notes.append(words(text, one.first + 0.5, high - 0.5, 15, _WHITE))
            if level is None:
                notes.append(
                    words(f"iteration {iteration(state):g} s", 1.1, high - 0.5, 12)
                    | {"xanchor": "left"}
                )
    top = len(rows) + 0.35
    notes += [words(f"from layer {layer + 1}", layer + 0.5, top) for layer in range(LAYERS)]
    plot = drawing(
        54 + 34 * len(rows), [-2.0, float(LAYERS)], [-0.02, len(rows) + 0.65], shapes, notes
    )
    plot.add_trace(values)
    return Picture(
        _table_finding(found, last),
        "dp[l][i][k][e]: seconds of the slowest of e stages that hold layers i to the end on k "
        "devices",
        "Filled: the state just computed; outlined: those that it compared, at the end the answer. "
        "Empty places cannot occur.",
        plot,
    )


def _read(found: Fill) -> list[State]:
    """States that the one just filled compared; of the answer its whole path."""
    if found.done:
        return list(found.shown)
    if not found.filled:
        return []
    keys = {(*way.after, way.end) for way in found.filled[-1].ways if way.after}
    return [one for one in states() if (one.stages, one.level, one.first) in keys]


def _row_name(state: State) -> str:
    producer = (
        "no producer" if state.level is None else f"producer in the {LEVEL_NAMES[state.level]}"
    )
    return f"<b>e = {state.stages}</b>, k = {state.devices}, {producer}"


def _table_finding(found: Fill, last: State | None) -> str:
    if found.done:
        return f"Read back: {iteration(found.shown[0]):g} s an iteration"
    if last is None:
        return f"{len(states())} states to fill"
    ways = len(last.ways)
    how = "the only way" if ways == 1 else f"the least of {ways}"
    return f"{len(found.filled)} of {len(states())} states: {last.best.slowest:g} s, {how}"
