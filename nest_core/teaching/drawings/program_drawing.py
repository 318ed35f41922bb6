"""The level-wise program at one of its steps: stages on the drawn nodes, and the table beneath."""

from __future__ import annotations

from nest_core.report.figures.style import LIMIT
from nest_core.teaching.drawings.drawing import (
    CASING,
    COMPUTE,
    MOVES,
    PALE,
    Drawing,
    Pen,
    load_colour,
    number,
)
from nest_core.teaching.lessons.program import (
    LAYERS,
    SECONDS,
    UNITS,
    WIDTH,
    Fill,
    State,
    hop_seconds,
    iteration,
    places,
    states,
)
from nest_core.teaching.lessons.teaching import LEVEL_NAMES

__all__ = ["program_drawing"]

_TEXT = {False: 13, True: 16}
_PER_NODE, _NODES = 4, 2
_ROW, _NAMES = 24.0, 236.0
_SOFT = "#74AED3"


def program_drawing(found: Fill, width: float = 648, *, wall: bool = True) -> Drawing:
    """Draw a step of the program.

    Parameters
    ----------
    found : Fill
    width : float
        Pixels.
    wall : bool
        Whether text has a projector's size.
    """
    pen = Pen(_TEXT[wall])
    pen.switch(20, 4, width - 40, 28, "rack")
    node_width = (width - 16) / _NODES
    for node in range(_NODES):
        pen.panel(2 + node * (node_width + 12), 76, node_width, 96)
    _hops(pen, found, node_width)
    for slot, placed in enumerate(places().devices[:, 0].tolist()):
        for device in placed:
            _device(pen, found, slot, int(device), node_width)
    height = _table(pen, found, 204, width)
    inside, across = hop_seconds()
    title = _finding(found)
    subtitle = (
        f"A unit of data: {inside:g} s within a node, {across:g} s between nodes; "
        "below, seconds of the slowest stage"
    )
    reading = "Step forward: the right arrow, or the button."
    return Drawing(title, subtitle, reading, pen.svg(width, height, title))


def _finding(found: Fill) -> str:
    count = len(states())
    if found.done:
        best = found.shown[0]
        return (
            f"Read back: {best.stages} stages on {WIDTH * best.stages} of 8 devices, "
            f"{iteration(best):g} s an iteration"
        )
    if not found.filled:
        return f"{count} states to fill, the last stage first"
    last = found.filled[-1]
    ways = len(last.ways)
    how = "the only way" if ways == 1 else f"the least of {ways} ways"
    return f"State {len(found.filled)} of {count}: the slowest stage takes " + (
        f"{last.best.slowest:g} s, {how}"
    )


def _device_x(device: int, node_width: float) -> float:
    node, inside = divmod(device, _PER_NODE)
    return 2 + node * (node_width + 12) + 10 + inside * (node_width - 12) / _PER_NODE


def _device(pen: Pen, found: Fill, slot: int, device: int, node_width: float) -> None:
    """A device with the stage that it holds, or might hold."""
    wide = (node_width - 12) / _PER_NODE - 8
    x, y, tall = _device_x(device, node_width), 88.0, 48.0
    words, fill, on = "", "", False
    for order, state in enumerate(found.shown):
        if state.slot == slot:
            first = order == 0 or found.done
            words, fill, on = f"e = {state.stages}", COMPUTE if first else _SOFT, first
    head = found.shown[0] if found.shown else None
    producer = head is not None and head.level is not None and head.producer == slot
    if head is not None and not fill and not producer and (found.done or slot < head.producer):
        words = "idle"
    pen.frame(x, y, wide, tall)
    if fill:
        pen.rect(x, y, wide, tall, fill)
    if producer:
        words = "before?"
        pen.path(
            f"M{number(x)} {number(y)}h{number(wide)}v{number(tall)}h{number(-wide)}Z",
            line=LIMIT,
            width=2,
        )
    pen.text(x + wide / 2, y + tall / 2 + 6, words, on=on, quiet=words == "idle")
    pen.text(x + wide / 2, y + tall + 22, str(device), quiet=True)


def _hops(pen: Pen, found: Fill, node_width: float) -> None:
    """Data between the stages placed so far, and to the one before."""
    slots = places().devices[:, 0].tolist()
    wide = (node_width - 12) / _PER_NODE - 8
    for state in found.shown:
        if state.level is None:
            continue
        source, target = slots[state.producer], slots[state.slot]
        units, seconds = UNITS[state.first], UNITS[state.first] * hop_seconds()[state.level]
        start = _device_x(int(source[-1]), node_width) + wide / 2
        end = _device_x(int(target[0]), node_width) + wide / 2
        told = f"{_units(units)} to layer {state.first + 1}: {seconds:g} s"
        colour = load_colour(1.0)
        if state.level == 0:
            d = f"M{number(start)} 88Q{number((start + end) / 2)} 62 {number(end)} 85"
            pen.path(d, line=colour, width=8, told=told)
            pen.head(end, 88, up=False, colour=CASING, size=5)
            pen.text((start + end) / 2, 70, f"{units:g}", bold=True)
        else:
            for x, up in ((start, True), (end, False)):
                pen.line((x, x), (32, 88), colour, 4, told=told)
                pen.head(x, 32 if up else 88, up=up, colour=colour, size=6)
            pen.text(start + 10, 56, f"{_units(units)}, {seconds:g} s", anchor="start", bold=True)


def _units(count: float) -> str:
    return f"{count:g} unit{'' if count == 1 else 's'}"


def _table(pen: Pen, found: Fill, top: float, width: float) -> float:
    """The cells filled so far; rows are stages, devices and the level of the producer."""
    rows = list(dict.fromkeys((one.stages, one.level) for one in states()))
    cell = (width - _NAMES) / LAYERS
    read = _read(found)
    for layer in range(LAYERS):
        words = f"layer {layer + 1}: {SECONDS[layer]:g} s"
        pen.text(_NAMES + (layer + 0.5) * cell, top, words, quiet=True)
    for row, (stages, level) in enumerate(rows):
        y = top + 10 + row * _ROW
        some = next(one for one in states() if (one.stages, one.level) == (stages, level))
        where = "no stage before" if level is None else f"before: {LEVEL_NAMES[level]}"
        pen.text(0, y + 17, f"e = {stages}, k = {some.devices}, {where}", anchor="start")
        for one in states():
            if (one.stages, one.level) == (stages, level):
                _cell(pen, found, one, (_NAMES + one.first * cell, y, cell), one in read)
    return top + 18 + len(rows) * _ROW


def _cell(
    pen: Pen, found: Fill, state: State, place: tuple[float, float, float], read: bool
) -> None:
    x, y, wide = place
    filled = state in found.filled
    now = filled and not found.done and state is found.filled[-1]
    fill = COMPUTE if now else PALE if read and filled else ""
    pen.frame(x + 2, y + 1, wide - 4, _ROW - 3)
    if fill:
        pen.rect(x + 2, y + 1, wide - 4, _ROW - 3, fill, line=MOVES if read else "")
    if filled:
        words = f"{state.best.slowest:g}"
        if state.level is None:
            words += f" · iteration {iteration(state):g}" if wide > 130 else ""
        if fill == PALE:
            pen.dark(x + wide / 2, y + 17, words)
        else:
            pen.text(x + wide / 2, y + 17, words, bold=now, on=now)


def _read(found: Fill) -> list[State]:
    """States that the one just filled compared; of the answer its whole path."""
    if found.done:
        return list(found.shown)
    if not found.filled:
        return []
    keys = {(*way.after, way.end) for way in found.filled[-1].ways if way.after}
    return [one for one in states() if (one.stages, one.level, one.first) in keys]
