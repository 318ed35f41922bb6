"""A pipeline at one of its steps: stages on their nodes, messages on NICs, passes so far."""

from collections import Counter

from nest_core.documents.units import from_gbps_bytes, humanise_seconds
from nest_core.teaching.drawings.drawing import (
    COMPUTE,
    IDLE,
    MOVES,
    TEXT_PX,
    LessonDrawing,
    Pen,
    load_colour,
)
from nest_core.teaching.drawings.racks import Racks
from nest_core.teaching.lessons.figure import NODE_GBPS
from nest_core.teaching.lessons.walk import MESSAGE, PER_NODE, PassWalk, bytes_in_words

__all__ = ["pass_drawing"]


_GUTTER = 84.0
_ROWS_PX = 176.0
_WAYS = ("forward", "backward", "weights")
_READING = "Step forward: the right arrow, or the button. Point at a pass for what it is."


def pass_drawing(walk: PassWalk, width: float = 648, *, wall: bool = True) -> LessonDrawing:
    """Draw a step of an iteration.

    Parameters
    ----------
    walk : PassWalk
    width : float
        Pixels.
    wall : bool
        Whether text has a projector's size.
    """
    pen = Pen(TEXT_PX[wall])
    stages = walk.steps.stages
    racks = Racks(width, stages, PER_NODE, (from_gbps_bytes(NODE_GBPS), walk.nic_Bps), short=True)
    pen.switch(*racks.leaf, "leaf")
    for stage in range(stages):
        _stage(pen, walk, racks, stage)
    _messages(pen, walk, racks)
    height = _timeline(pen, walk, racks.bottom + 24, width)
    title = finding(walk)
    subtitle = (
        f"Blue: computes, low forward, high backward; orange: receives, "
        f"{bytes_in_words(MESSAGE)} a device; grey: waits"
    )
    return LessonDrawing(title, subtitle, _READING, pen.svg(width, height, title))


def finding(walk: PassWalk) -> str:
    """Who works, and how much was waiting so far."""
    states, stages = walk.steps.states, walk.steps.stages
    if walk.step == 0:
        return f"Before the first of {len(states)} steps, nothing runs"
    now = states[walk.step - 1]
    waited = f"{100 * walk.waited:.0f} % of the stages' time so far was waiting"
    if walk.step == len(states):
        return f"All {len(states)} steps, {humanise_seconds(now.seconds)}: {waited}"
    return (
        f"Step {walk.step} of {len(states)}: {(now.running >= 0).sum()} of {stages} stages work; "
        f"{waited}"
    )


def _stage(pen: Pen, walk: PassWalk, racks: Racks, stage: int) -> None:
    order, point = walk.steps.iteration.order, walk.steps.report.plan.point
    place = int(walk.steps.states[walk.step - 1].running[stage]) if walk.step else -1
    x, width = racks.node_x(stage), racks.node_width
    pen.panel(x, racks.top, width, racks.bottom - racks.top)
    pen.text(x + width / 2, racks.top + 24, f"stage {stage}", bold=True)
    box, height = racks.box
    for device in range(stage * PER_NODE, (stage + 1) * PER_NODE):
        edge, top = racks.place(device)
        pen.panel(edge, top, box, height)
        if place >= 0:
            tall = (0.6 if order.way[stage, place] == 0 else 1.0) * (height - 6)
            pen.rect(edge + 3, top + height - 3 - tall, box - 6, tall, COMPUTE)
    words = "waits"
    if place >= 0:
        batch = int(order.micro_batch[stage, place])
        way = _WAYS[int(order.way[stage, place])]
        words = f"{way} {batch}" if width > 110 else f"{way[0].upper()}{batch}"
        if point.interleave > 1 and width > 150:
            words += f", piece {int(order.virtual_stage[stage, place])}"
    pen.text(x + width / 2, racks.bottom - 10, words, quiet=place < 0)


def _messages(pen: Pen, walk: PassWalk, racks: Racks) -> None:
    """Draw NICs; those are orange over which a message starts in the step."""
    states = walk.steps.states[: walk.step]
    active = {(end, pair[end]) for state in states[-1:] for pair in state.sent for end in (0, 1)}
    count = Counter((end, pair[end]) for state in states for pair in state.sent for end in (0, 1))
    thick, leaf = racks.thick(walk.nic_Bps), racks.leaf[1] + racks.leaf[3]
    for device in range(walk.steps.stages * PER_NODE):
        for end, way in enumerate(("out", "in")):
            side = (end, device // PER_NODE)
            x, y = racks.nic(device, out=end == 0)
            size = bytes_in_words(count[side] * MESSAGE)
            tooltip = f"NIC {way} of device {device}: {size} so far"
            colour = load_colour(1.0 if side in active else 0.0)
            pen.line((x, x), (leaf, y), colour, thick, tooltip=tooltip)
            if side in active:
                pen.head(
                    x, y if end else leaf, up=end == 0, colour=colour, size=max(2.5, thick + 1)
                )


def _timeline(pen: Pen, walk: PassWalk, top: float, width: float) -> float:
    """Draw a row per stage with its passes, those to come pale, and return where all ends."""
    played, order = walk.steps, walk.steps.iteration.order
    total, room = played.seconds, width - _GUTTER
    now = walk.steps.states[walk.step - 1].seconds if walk.step else 0.0
    pitch = min(40.0, _ROWS_PX / played.stages)
    tall = pitch - 4
    begins, ends = played.begins_s, played.ends_s
    receives = played.received_s - begins
    for stage in range(played.stages):
        y = top + pitch * stage
        pen.text(0, y + tall / 2 + 6, f"stage {stage}", anchor="start", bold=True)
        pen.track(_GUTTER, y, room, tall)
        for place in range(begins.shape[1]):
            start, end = float(begins[stage, place]), float(ends[stage, place])
            x, long = _GUTTER + room * start / total, room * (end - start) / total
            begun, forward = start < now * (1 - 1e-9), order.way[stage, place] == 0
            high = tall * (0.6 if forward else 1.0)
            first = room * float(receives[stage, place]) / total
            tooltip = (
                f"stage {stage}, {_WAYS[int(order.way[stage, place])]} of micro-batch "
                f"{int(order.micro_batch[stage, place])}: {humanise_seconds(end - start)}, of it "
                f"{humanise_seconds(float(receives[stage, place]))} receiving"
            )
            low = y + tall - high
            pen.rect(x + 0.4, low, max(0.4, long - 0.8), high, IDLE, tooltip=tooltip)
            if not begun:
                continue
            here = min(long - 0.8, _GUTTER + room * now / total - x)  # what of it is over
            pen.rect(x + 0.4, low, max(0.4, here), high, COMPUTE)
            if first > 0:
                pen.rect(x + 0.4, low, min(first, max(0.4, here)), high, MOVES)
    bottom = top + pitch * played.stages
    x = _GUTTER + room * now / total
    pen.line((x, x), (top - 6, bottom + 6), "currentColor", 2)
    pen.text(width, bottom + 24, humanise_seconds(total), anchor="end", quiet=True)
    if x < width - 130:
        pen.text(max(x, _GUTTER), bottom + 24, humanise_seconds(now) if now else "0", bold=True)
    return bottom + 32
