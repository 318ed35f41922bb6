"""Drawings of the lessons: legible, inside their frame, widths to scale, colours by load."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from nest_core.teaching.drawings import lesson_drawing
from nest_core.teaching.drawings.drawing import MOVES
from nest_core.teaching.drawings.racks import Racks
from nest_core.teaching.lessons import lesson

CASES = [
    *[
        ("steps", {"algorithm": algorithm, "fabric": fabric, "step": 3})
        for algorithm in ("ring", "tree", "hierarchical", "all-to-all")
        for fabric in ("2 × 4", "2 × 8", "4 × 8", "8 × 8")
    ],
    ("steps", {"step": 0}),
    ("steps", {"step": 14}),
    *[("passes", {"pp": pp, "step": 30, "schedule": "interleaved"}) for pp in (2, 4, 8)],
    ("passes", {"step": 0}),
    *[("program", {"step": step}) for step in (0, 4, 12, 16)],
    *[("levels", {"step": step, "seats": "123"}) for step in (0, 4, 7, 9)],
]


def _marks(key, settings, width=648, *, wall=True):
    drawn = lesson_drawing(lesson(key).reveal(settings).content, width, wall=wall)
    return drawn, ElementTree.fromstring(drawn.svg)


@pytest.mark.parametrize("width", [648, 1000])
@pytest.mark.parametrize(("key", "settings"), CASES)
def test_words_and_boxes_stay_inside_and_are_large_enough(key, settings, width):
    drawn, root = _marks(key, settings, width, wall=width == 648)
    assert "nan" not in drawn.svg
    assert int(root.get("font-size")) == (16 if width == 648 else 13)
    assert drawn.title == root.get("aria-label")
    height = float(root.get("height"))
    assert height <= 520
    for rect in root.iter("rect"):
        x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= -0.01
        assert x + w <= width + 0.6
        assert y >= -0.01
        assert y + h <= height
    for text in root.iter("text"):
        long = 0.46 * float(root.get("font-size")) * len(text.text)
        x = float(text.get("x"))
        left = x - {"middle": long / 2, "end": long}.get(text.get("text-anchor"), 0)
        assert left >= -1, text.text
        assert left + long <= width + 1, text.text


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 8), (2, 4), (2, 8), (4, 8), (8, 8), (16, 4)])
@pytest.mark.parametrize("short", [True, False])
def test_devices_stand_in_their_nodes_and_do_not_overlap(nodes, per_node, short):
    racks = Racks(648, nodes, per_node, (450e9, 50e9), short=short)
    width, height = racks.box
    places = [racks.place(device) for device in range(nodes * per_node)]
    assert len({(round(x), round(y)) for x, y in places}) == nodes * per_node
    for device, (x, y) in enumerate(places):
        left = racks.node_x(device // per_node)
        assert left <= x
        assert x + width <= left + racks.node_width
        assert racks.top <= y
        assert y + height <= racks.bottom
        for other, (a, b) in enumerate(places):
            if other != device:
                assert abs(x - a) >= width or abs(y - b) >= height
    rows = [racks.cell(device) for device in range(per_node)]
    apart = [abs(a - c) + abs(b - d) for (a, b), (c, d) in itertools.pairwise(rows)]
    assert set(apart) == {1}  # neighbours of a ring stand side by side


def test_links_are_as_wide_as_their_capacity_and_coloured_by_their_load():
    racks = Racks(648, 2, 4, (450e9, 50e9))
    assert racks.thick(450e9) == pytest.approx(9 * racks.thick(50e9))
    _, root = _marks("steps", {"step": 5})
    nics = [line for line in root.iter("line") if line.find("title") is not None]
    assert len(nics) == 16
    assert {float(line.get("stroke-width")) for line in nics} == {round(racks.thick(50e9), 2)}
    busy = [line.find("title").text for line in nics if line.get("stroke") == MOVES]
    assert sorted(words.split(":")[0] for words in busy) == [
        "NIC in of device 0",
        "NIC in of device 4",
        "NIC out of device 3",
        "NIC out of device 7",
    ]
    assert all("0.625 GB so far, 125 MB in this step" in words for words in busy)


def test_titles_state_what_is_computed():
    ring, _ = _marks("steps", {"step": 5})
    # 125 MB: 0.278 + 0.001 ms of NVLink in a step of 2.505 ms.
    assert ring.title == "Step 5 of 14: NVLink has waited 89 % of the time for the NICs"
    fast, _ = _marks("steps", {"step": 5, "nic": 200, "algorithm": "hierarchical"})
    words = r"Step 5 of 8: The NICs have waited \d+ % of the time for NVLink"
    assert re.fullmatch(words, fast.title)
    done, _ = _marks("program", {"step": 16})
    assert done.title == "Read back: 3 stages on 6 of 8 devices, 66 s an iteration"
