"""A collective at one of its steps: devices in their nodes, parts, links, and the time so far."""

import math
from collections.abc import Sequence

import numpy as np

from nest_core.documents.units import humanise_rate, humanise_seconds, percent
from nest_core.network import CollectiveStep, FloatArray
from nest_core.teaching.drawings.drawing import (
    CASING,
    IDLE,
    MOVES,
    PAPER,
    PART,
    TEXT_PX,
    Anchor,
    LessonDrawing,
    Pen,
    load_colour,
    number,
)
from nest_core.teaching.drawings.racks import Racks
from nest_core.teaching.lessons.walk import LINKS, Walk, bytes_in_words

__all__ = ["walk_drawing"]

_BARS = 8

_GUTTER = 84.0


def walk_drawing(walk: Walk, width: float = 648, *, wall: bool = True) -> LessonDrawing:
    """Draw a step of a collective.

    Parameters
    ----------
    walk : Walk
    width : float
        Pixels.
    wall : bool
        Whether text has a projector's size.
    """
    pen = Pen(TEXT_PX[wall])
    racks = Racks(width, walk.nodes, walk.per_node, (_rate(walk, 0), _rate(walk, 1)))
    if walk.nodes > 1:
        pen.switch(*racks.leaf, "leaf")
    for node in range(walk.nodes):
        pen.panel(racks.node_x(node), racks.top, racks.node_width, racks.bottom - racks.top, 4)
        name = f"node {node}" if racks.node_width > 60 else str(node)
        # NICs of one row cross the head of their node, so its name stands at the foot.
        y = racks.bottom - 10 if racks.rows == 1 else racks.top + 24
        pen.text(racks.node_x(node) + racks.node_width / 2, y, name, bold=True)
    if walk.nodes > 1:
        _nics(pen, walk, racks)
    _devices(pen, walk, racks)
    _inside(pen, walk, racks)
    pen.text(0, racks.bottom + 26, _parts_told(walk), anchor="start", quiet=True)
    height = _times(pen, walk, racks.bottom + 52, width)
    title = finding(walk)
    return LessonDrawing(title, _subtitle(walk), _reading(walk), pen.svg(width, height, title))


def finding(walk: Walk) -> str:
    """Who has waited for whom so far."""
    count = len(walk.steps.states)
    if walk.step == 0:
        return f"Before the first of {count} steps, every device holds its own"
    where = f"Step {walk.step} of {count}"
    busy = walk.steps.busy(walk.step)
    slow = int(busy.argmax())
    plural = {"NVLink": "NVLink", "NIC": "the NICs"}
    if walk.nodes == 1 or busy[1 - slow] <= 0:
        return (
            f"{where}: only {plural[LINKS[slow]]} sends, {percent(float(busy[slow]))} of the time"
        )
    verb = "has" if slow == 1 else "have"
    first = plural[LINKS[1 - slow]]
    waited = 1.0 - float(busy[1 - slow])
    share = f"{100 * waited:.0f} %" if waited > 0.01 else "hardly any"
    return (
        f"{where}: {first[0].upper()}{first[1:]} {verb} waited {share} of the time for "
        f"{plural[LINKS[slow]]}"
    )


def _subtitle(walk: Walk) -> str:
    message = bytes_in_words(float(_now(walk).flow_bytes.max()))
    nic = f", NIC {humanise_rate(_rate(walk, 1))}" if walk.nodes > 1 else ""
    rates = f"NVLink {humanise_rate(_rate(walk, 0))}{nic}".replace(".0 G", " G")
    return f"Link width: capacity, {rates} each way; colour: load; {message} a step"


def _reading(walk: Walk) -> str:
    if walk.step == 0:
        return "Step forward: the right arrow, or the button."
    return (
        f"{humanise_seconds(_now(walk).seconds)} of {humanise_seconds(walk.steps.seconds)}. "
        "Point at a link for its bytes."
    )


def _now(walk: Walk) -> CollectiveStep:
    return walk.steps.states[max(walk.step, 1) - 1]


def _rate(walk: Walk, level: int) -> float:
    links = walk.steps.network.link_map
    rates = links.link_Bps[links.tier == level]
    return float(rates.max()) if rates.size else 0.0


def _parts_told(walk: Walk) -> str:
    parts = walk.contents.added.shape[2]
    bars = min(parts, _BARS)
    if walk.steps.op == "all_to_all":
        return "In a device: blocks that are here, by their sender; orange: just in."
    if walk.steps.algorithm == "double_binary_tree":
        return "In a device: chunks in their order; full height: added up; orange: on its way."
    what, sums = (f"{bars} bars", "share") if bars < parts else (f"{parts} parts", "devices")
    return f"In a device: {what} of the gradient; height: {sums} added up; orange: just in."


def _pooled(values: FloatArray, bars: int) -> list[float]:
    return [float(values_of_bar.mean()) for values_of_bar in np.array_split(values, bars)]


def _devices(pen: Pen, walk: Walk, racks: Racks) -> None:
    contents = walk.contents
    bars = min(contents.added.shape[2], _BARS)
    width, height = racks.box
    edge = min(4.0, 0.08 * width)
    step = (width - 2 * edge) / bars
    for device in range(walk.steps.network.devices):
        x, y = racks.place(device)
        pen.panel(x, y, width, height)
        share = _pooled(contents.added[walk.step, device] / contents.full, bars)
        fresh = _pooled(contents.just[walk.step, device].astype(np.float64), bars)
        single = 1 / contents.full
        for bar in range(bars):
            tall = share[bar] * (height - (8 if racks.rows == 1 else 24))
            alone = share[bar] <= single * (1 + 1e-9) and contents.full > 1
            colour = MOVES if fresh[bar] > 0 else IDLE if alone else PART
            if tall > 0:
                pen.rect(
                    x + edge + bar * step,
                    y + height - 4 - tall,
                    max(step - min(1.0, 0.2 * step), 0.8),
                    tall,
                    colour,
                )
        inside = racks.rows > 1
        pen.text(x + width / 2, y + (17 if inside else height + 18), str(device), bold=not inside)


def _load(walk: Walk, bytes_sent: float, level: int) -> float:
    """Share of the step in which a flow's own link sends."""
    return bytes_sent / _rate(walk, level) / max(_now(walk).taken_s, 1e-300)


def _nics(pen: Pen, walk: Walk, racks: Racks) -> None:
    """Draw a line up and one down for every NIC; those that send are orange."""
    states, step = walk.steps.states, walk.step
    sent, total = _sent(walk, states[max(step - 1, 0) : step]), _sent(walk, states[:step])
    places = [
        (device, out) for device in range(walk.steps.network.devices) for out in (True, False)
    ]
    leaf, thick = racks.leaf[1] + racks.leaf[3], racks.thick(_rate(walk, 1))
    for device, out in places:
        size, (x, y) = float(sent[out][device]), racks.nic(device, out=out)
        colour = load_colour(_load(walk, size, 1))
        tooltip = (
            f"NIC {'out' if out else 'in'} of device {device}: "
            f"{bytes_in_words(float(total[out][device]))} so far, "
            f"{bytes_in_words(size)} in this step"
        )
        pen.line((x, x), (leaf, y), colour, thick, tooltip=tooltip)
        if size > 0:
            large = max(2.5, 2 * thick) if thick < 3 else thick + 3
            pen.head(x, leaf if out else y, up=out, colour=colour, size=large)
    if racks.rows == 1 and walk.nodes <= 2:
        for device, out in places:
            if sent[out][device] > 0 and np.count_nonzero(sent[out]) <= walk.nodes:
                _nic_words(pen, racks, (device, out), bytes_in_words(float(total[out][device])))


def _nic_words(pen: Pen, racks: Racks, place: tuple[int, bool], size: str) -> None:
    """Draw what has gone over it, beside its line; idle lines pass beneath the words."""
    device, out = place
    x, leaf = racks.nic(device, out=out)[0], racks.leaf[1] + racks.leaf[3]
    side = -1 if out else 1
    anchor: Anchor = "end" if out else "start"
    wide = 0.5 * pen.text_px * len(size) + 6
    pen.rect(x + 10 if side > 0 else x - 10 - wide, leaf + 15, wide, 42, PAPER)
    for line, text in enumerate((f"NIC {'out' if out else 'in'}", size)):
        pen.text(x + side * 12, leaf + 32 + 20 * line, text, anchor=anchor, bold=line == 0)


def _sent(walk: Walk, states: Sequence[CollectiveStep]) -> dict[bool, FloatArray]:
    """Return bytes that every NIC sends (True) and receives (False) in some steps."""
    network, zero = walk.steps.network, np.zeros(walk.steps.network.devices)
    sent = {True: zero, False: zero}
    for step in states:
        leaves = network.node[step.source] != network.node[step.target]
        for out, ends in ((True, step.source), (False, step.target)):
            moved = np.bincount(ends[leaves], step.flow_bytes[leaves], network.devices)
            sent[out] = sent[out] + moved
    return sent


def _inside(pen: Pen, walk: Walk, racks: Racks) -> None:
    """Within nodes: bands between neighbours, curves to others, outlines where there is no room."""
    now, node = _now(walk), walk.steps.network.node
    sends = (node[now.source] == node[now.target]) & (now.flow_bytes > 0) & (walk.step > 0)
    inside = [now.source[sends], now.target[sends], now.flow_bytes[sends]]
    flows = list(zip(*(part.tolist() for part in inside), strict=True))
    pairs = {(source, target) for source, target, _ in flows}
    for source, target, size in flows:
        colour = load_colour(_load(walk, size, 0))
        tooltip = f"device {source} to {target}: {bytes_in_words(size)} in this step"
        (row, column), (to_row, to_column) = racks.cell(source), racks.cell(target)
        across, down = to_column - column, to_row - row
        if abs(across) + abs(down) == 1:
            aside = 0.0 if (target, source) not in pairs else 1.0 if source < target else -1.0
            thick = min(racks.thick(_rate(walk, 0)), 9.0 if aside else 99.0)
            _band(pen, racks, (source, target), aside * (thick / 2 + 1), thick, colour, tooltip)
        elif racks.rows == 1:
            _curve(pen, racks, source, target, colour, tooltip)
        elif across == column == 0:
            _bracket(pen, racks, source, target, tooltip)
        else:
            pen.rect(*racks.place(source), *racks.box, "none", line=MOVES, tooltip=tooltip)


def _band(
    pen: Pen,
    racks: Racks,
    ends: tuple[int, int],
    aside: float,
    thick: float,
    colour: str,
    tooltip: str,
) -> None:
    """Draw a link between neighbours as wide as its capacity, with a chevron."""
    (x, y), (to_x, to_y) = (racks.place(device) for device in ends)
    width, height = racks.box
    if y == to_y:
        x_start, gap = min(x, to_x) + width, abs(to_x - x) - width
        top = y + height / 2 + aside - thick / 2
        pen.rect(x_start, top, gap, thick, colour, tooltip=tooltip)
        middle = (x_start + gap / 2, top + thick / 2)
        turn = (1.0 if to_x > x else -1.0, 0.0)
    else:
        above, gap = min(y, to_y) + height, abs(to_y - y) - height
        x_start = x + width / 2 + aside - thick / 2
        pen.rect(x_start, above, thick, gap, colour, tooltip=tooltip)
        middle, turn = (x_start + thick / 2, above + gap / 2), (0.0, 1.0 if to_y > y else -1.0)
    pen.chevron(middle, turn, min(6.0, 0.42 * gap, 0.5 * thick + 1))


def _curve(pen: Pen, racks: Racks, source: int, target: int, colour: str, tooltip: str) -> None:
    """From a device over its neighbours to another one of its row."""
    (x, y), (to_x, _) = racks.place(source), racks.place(target)
    start, end = x + racks.box[0] / 2, to_x + racks.box[0] / 2
    rise = min(racks.first_row - racks.top - 8, 8 + 0.18 * abs(end - start))
    d = (
        f"M{number(start)} {number(y)}Q{number((start + end) / 2)} {number(y - 2 * rise)} "
        f"{number(end)} {number(y - 3)}"
    )
    pen.path(d, line=CASING if colour == MOVES else colour, width=3, tooltip=tooltip)
    pen.head(end, y, up=False, colour=CASING, size=4)


def _bracket(pen: Pen, racks: Racks, source: int, target: int, tooltip: str) -> None:
    """Along the edge of a node, past the rows between."""
    (x, y), (_, to_y) = racks.place(source), racks.place(target)
    half = racks.box[1] / 2
    out = min(6.0, x - racks.node_x(source // racks.per_node) - 2)
    d = f"M{number(x)} {number(y + half)}h{number(-out)}V{number(to_y + half)}h{number(out)}"
    pen.path(d, line=CASING, width=2, tooltip=tooltip)


def _times(pen: Pen, walk: Walk, top: float, width: float) -> float:
    """Draw a row per kind of link with the steps in which it sends; return where all ends."""
    states = walk.steps.states
    total = walk.steps.seconds
    room = width - _GUTTER
    level_names = LINKS[: 2 if walk.nodes > 1 else 1]
    gap = 1.5 if len(states) <= 40 else 0.0
    most = _most_sent(walk)
    for row, name in enumerate(level_names):
        y = top + 40 * row
        pen.text(0, y + 12, name, anchor="start", bold=True)
        pen.text(0, y + 28, bytes_in_words(most[row]), anchor="start", quiet=True)
        if not gap:
            pen.track(_GUTTER, y, room, 26)
        for state in states:
            start = _GUTTER + room * (state.seconds - state.taken_s) / total
            long = room * state.taken_s / total
            if gap:
                pen.track(start, y, long - gap, 26)
            if state.number <= walk.step and state.busy_s[row] > 0:
                share = float(state.busy_s[row]) / state.taken_s
                pen.rect(start, y, max(0.4, (long - gap) * share), 26, MOVES)
    return _clock(pen, walk, top, top + 40 * len(level_names) - 14, width)


def _clock(pen: Pen, walk: Walk, top: float, end: float, width: float) -> float:
    """Where time stands, and where sums are done."""
    states, total = walk.steps.states, walk.steps.seconds
    room = width - _GUTTER
    now = states[walk.step - 1].seconds if walk.step else 0.0
    x = _GUTTER + room * now / total
    pen.line((x, x), (top - 8, end + 10), "currentColor", 2)
    last = f"{humanise_seconds(total)}, step {len(states)}"
    words = end + 30
    marks = [(x, humanise_seconds(now) if walk.step else "0", True)]
    if walk.steps.op == "all_reduce" and walk.steps.algorithm != "double_binary_tree":
        # After half of the steps every part is added up somewhere.
        turn = _GUTTER + room * states[math.ceil(len(states) / 2) - 1].seconds / total
        pen.line((turn, turn), (top - 8, end + 10), "currentColor", 1, dashed=True)
        marks.append((turn, "sums done", False))
    marks += [(width, last, False), (_GUTTER, "0", False)]
    taken: list[tuple[float, float]] = []
    for at, text, bold in marks:
        long = 0.52 * len(text) * pen.text_px
        start = min(max(at - long / 2, 0.0), width - long)
        if any(start < b + 8 and a < start + long + 8 for a, b in taken):
            continue
        taken.append((start, start + long))
        anchor: Anchor = "end" if start + long > width - 1 else "middle"
        pen.text(
            width if anchor == "end" else max(at, long / 2),
            words,
            text,
            anchor=anchor,
            bold=bold,
            quiet=not bold,
        )
    return words + 8


def _most_sent(walk: Walk) -> list[float]:
    sent, tier = _now(walk).sent_bytes * (walk.step > 0), walk.steps.network.link_map.tier
    return [float(sent[tier == level].max(initial=0.0)) for level in range(2)]
