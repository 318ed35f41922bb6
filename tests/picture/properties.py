"""What holds for every picture of a fabric, whatever its kind and width.

Nothing here asks the layout: geometry is measured on the marks alone, text by a table of its own,
counts come from the fabric's inventory. A function returns what is wrong, one line each; none if
the property holds. `everything_wrong` joins all of them.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from xml.etree import ElementTree

import numpy as np

from nest_core.bill.bill import inventory
from nest_core.bill.prices import load_prices
from nest_core.report.picture import Band, Box, Drawn, Line, Words, to_svg

__all__ = [
    "counts_wrong",
    "drawn_counts",
    "everything_wrong",
    "lines_wrong",
    "moved",
    "overlaps",
    "sizes_wrong",
    "text_wrong",
]

SLACK = 0.6
TOUCH = 1.6
MOST_MARKS = 4000
LEAST = 2.0
MOST_BYTES = 250 * 1024


def _keyed(drawn: Drawn) -> list[Box]:
    return [mark for mark in drawn.marks if isinstance(mark, Box) and mark.key]


def _ancestors(boxes: list[Box]) -> dict[str, set[str]]:
    above: dict[str, set[str]] = defaultdict(set)
    for box in boxes:
        if box.inside:
            above[box.key].add(box.inside)
    for key in list(above):
        todo = list(above[key])
        while todo:
            for outer in above.get(todo.pop(), ()):
                if outer not in above[key]:
                    above[key].add(outer)
                    todo.append(outer)
    return above


def _rectangles(boxes: list[Box]) -> np.ndarray:
    found = np.array([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes])
    return found.reshape(-1, 4)


def overlaps(drawn: Drawn) -> list[str]:
    """Pairs of boxes that cover each other and are not nested; and nested ones that stick out."""
    boxes = _keyed(drawn)
    above, place = _ancestors(boxes), _rectangles(boxes)
    if not boxes:
        return []
    x0, y0, x1, y1 = place.T
    across = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    down = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    wrong = []
    for a, b in np.argwhere((across > SLACK) & (down > SLACK)).tolist():
        one, other = boxes[a], boxes[b]
        if a >= b or one.key in above[other.key] or other.key in above[one.key]:
            continue
        if _discs_apart(one, other):
            continue
        wrong.append(f"{one.key} overlaps {other.key}")
    for number, box in enumerate(boxes):
        outer = [i for i, o in enumerate(boxes) if box.inside and o.key == box.inside]
        if box.inside and not any(
            (place[i][:2] <= place[number][:2] + TOUCH).all()
            and (place[i][2:] >= place[number][2:] - TOUCH).all()
            for i in outer
        ):
            wrong.append(f"{box.key} is not in {box.inside}")
    return wrong


def _discs_apart(one: Box, other: Box) -> bool:
    """Whether two round boxes leave each other alone, though their frames do not."""
    if min(2 * one.radius - one.width, 2 * other.radius - other.width) < -SLACK:
        return False
    return math.dist(one.centre, other.centre) >= one.radius + other.radius - SLACK


def _away(point: tuple[float, float], box: Box) -> float:
    """Pixels between a point and a box."""
    x, y = point
    return math.hypot(
        max(box.x - x, 0.0, x - box.x - box.width), max(box.y - y, 0.0, y - box.y - box.height)
    )


def lines_wrong(drawn: Drawn) -> list[str]:
    """Lines and bands that do not end on their boxes; lines that cross another box."""
    boxes = _keyed(drawn)
    by_key: dict[str, list[Box]] = defaultdict(list)
    for box in boxes:
        by_key[box.key].append(box)
    wrong = []
    for mark in drawn.marks:
        if isinstance(mark, Line | Band) and mark.ends:
            reached = [mark.points] * len(mark.ends)
            if isinstance(mark, Line):
                reached = [mark.points[:1], mark.points[-1:]][: len(mark.ends)]
            for end, points in zip(mark.ends, reached, strict=True):
                near = [_away(point, box) for box in by_key[end] for point in points]
                if min(near, default=math.inf) > TOUCH:
                    wrong.append(f"{mark.key or mark.look} does not end on {end}")
    return wrong + _crossings(drawn, boxes)


def _crossings(drawn: Drawn, boxes: list[Box]) -> list[str]:
    lines = [mark for mark in drawn.marks if isinstance(mark, Line) and len(mark.ends) == 2]
    if not lines or not boxes:
        return []
    above, keys = _ancestors(boxes), [box.key for box in boxes]
    inner = _rectangles(boxes) + np.array([1, 1, -1, -1]) * 0.8
    thin = (inner[:, 2] <= inner[:, 0]) | (inner[:, 3] <= inner[:, 1])
    wrong = []
    for line in lines:
        allowed = {*line.ends, *(outer for end in line.ends for outer in above[end])}
        for a, b in zip(line.points, line.points[1:], strict=False):
            hits = [keys[hit] for hit in np.flatnonzero(_hits(a, b, inner) & ~thin).tolist()]
            wrong += [
                f"{line.key} crosses {key}"
                for key in hits
                if key not in allowed and not allowed & above[key]
            ]
    return wrong


def _hits(a: tuple[float, float], b: tuple[float, float], boxes: np.ndarray) -> np.ndarray:
    """Whether a segment passes through each of the rectangles."""
    enter, leave = np.zeros(len(boxes)), np.ones(len(boxes))
    for axis in (0, 1):
        step = b[axis] - a[axis]
        low, high = boxes[:, axis] - a[axis], boxes[:, axis + 2] - a[axis]
        if abs(step) < 1e-9:
            leave = np.where((low > 0) | (high < 0), -1.0, leave)
            continue
        first, last = np.sort(np.stack([low, high]) / step, axis=0)
        enter, leave = np.maximum(enter, first), np.minimum(leave, last)
    return enter < leave - 1e-9


_NARROW, _WIDE = set("ijltfI.,:;'|!() -\u00a0"), set("mwMW%@")


def _wide(words: Words) -> float:
    ems = sum(
        0.29 if c in _NARROW else 0.86 if c in _WIDE else 0.66 if c.isupper() else 0.55
        for c in words.text
    )
    return ems * words.size


def _frames(texts: list[Words]) -> np.ndarray:
    found = []
    for words in texts:
        width = _wide(words)
        left = words.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor] * width
        found.append((left, words.y - 0.72 * words.size, left + width, words.y + 0.2 * words.size))
    return np.array(found).reshape(-1, 4)


def text_wrong(drawn: Drawn) -> list[str]:
    """Text that is too small, sticks out of the picture or its box, or covers other text."""
    texts = [mark for mark in drawn.marks if isinstance(mark, Words)]
    wrong = [f"{words.text!r} has {words.size} px" for words in texts if words.size < 12]
    frames = _frames(texts)
    for words, (left, top, right, bottom) in zip(texts, frames.tolist(), strict=True):
        if left < -1 or top < -1 or right > drawn.width + 1 or bottom > drawn.height + 1:
            wrong.append(f"{words.text!r} sticks out")
    if len(texts) > 1:
        x0, y0, x1, y1 = frames.T
        across = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
        down = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
        pairs = np.argwhere(np.triu((across > 1) & (down > 1), 1)).tolist()
        wrong += [f"{texts[a].text!r} covers {texts[b].text!r}" for a, b in pairs]
    boxes = defaultdict(list)
    for box in _keyed(drawn):
        boxes[box.key].append(box)
    for words, (left, top, right, bottom) in zip(texts, frames.tolist(), strict=True):
        for box in boxes.get(words.key, ()):
            x, y = (left + right) / 2, (top + bottom) / 2
            if _away((x, y), box) == 0 and right - left > box.width + 2:
                wrong.append(f"{words.text!r} is wider than {box.key}")
    return wrong


def drawn_counts(drawn: Drawn) -> tuple[Counter[str], Counter[str]]:
    """What the marks stand for by class, and what of it is gone."""
    here: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    for mark in drawn.marks:
        if not isinstance(mark, Words):
            into = gone if "gone" in mark.look.split() else here
            for name, count in mark.stands:
                into[name] += count
    return here, gone


def bill_counts(fabric: object) -> Counter[str]:
    """The fabric's inventory by class."""
    parts = inventory(fabric, load_prices())  # type: ignore[arg-type]
    found = Counter({one.role: one.count for one in parts.switches})
    for one in parts.links:
        found[f"links {one.tier}"] += one.count
    found.update({"node": parts.nodes, "device": fabric.devices})  # type: ignore[attr-defined]
    return +found


def counts_wrong(drawn: Drawn, fabric: object, whole: object) -> list[str]:
    """Classes whose drawn elements, times what each stands for, are not the bill's.

    Parameters
    ----------
    whole : Fabric
        The same without failures: what is drawn and what is gone make it up.
    """
    here, gone = drawn_counts(drawn)
    expected, all_of_it = bill_counts(fabric), bill_counts(whole)
    wrong = [
        f"{name}: {here[name]:,} drawn, {count:,} in the bill"
        for name, count in expected.items()
        if here[name] != count
    ]
    wrong += [
        f"{name}: {here[name]:,} and {gone[name]:,} gone, {count:,} in all"
        for name, count in all_of_it.items()
        if here[name] + gone[name] != count
    ]
    said = Counter[str]()
    for one in drawn.labels:
        said[one.what] += one.count
    wrong += [
        f"{name}: {said[name]:,} said, {count:,} in the bill"
        for name, count in expected.items()
        if name != "device" and said[name] != count
    ]
    return wrong


def sizes_wrong(drawn: Drawn) -> list[str]:
    """Boxes too small to be seen, and pictures too large to be sent; and SVG that is none."""
    wrong = []
    if len(drawn.marks) > MOST_MARKS:
        wrong.append(f"{len(drawn.marks):,} marks")
    text = to_svg(drawn)
    if len(text.encode()) > MOST_BYTES:
        wrong.append(f"{len(text.encode()) // 1024} KiB")
    if re.search(r"\bnan\b|\binf\b", text):
        wrong.append("a coordinate is no number")
    ElementTree.fromstring(text)
    for mark in drawn.marks:
        if isinstance(mark, Box) and (mark.width < 0 or mark.height < 0):
            wrong.append(f"{mark.key or mark.look} has a negative size")
        seen = isinstance(mark, Box) and mark.stands and drawn.width >= 300
        if seen and min(mark.width, mark.height) < LEAST:
            wrong.append(f"{mark.key} is {mark.width:.1f} x {mark.height:.1f}")
    return wrong


def everything_wrong(drawn: Drawn, fabric: object, whole: object | None = None) -> list[str]:
    """All of the above."""
    return [
        *overlaps(drawn),
        *lines_wrong(drawn),
        *text_wrong(drawn),
        *counts_wrong(drawn, fabric, whole or fabric),
        *sizes_wrong(drawn),
    ]


def moved(before: Drawn, after: Drawn) -> list[str]:
    """Boxes that are elsewhere, or of another size, in the second picture."""
    places = {
        (box.key, number): (box.x, box.y, box.width, box.height, box.head, box.foot)
        for number, box in _numbered(before)
    }
    return [
        box.key
        for number, box in _numbered(after)
        if places.get((box.key, number))
        not in (None, (box.x, box.y, box.width, box.height, box.head, box.foot))
    ]


def _numbered(drawn: Drawn) -> list[tuple[int, Box]]:
    """Boxes, each with how many of its key come before it."""
    seen: Counter[str] = Counter()
    found = []
    for box in _keyed(drawn):
        found.append((seen[box.key], box))
        seen[box.key] += 1
    return found
