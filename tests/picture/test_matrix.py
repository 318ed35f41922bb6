"""The cost matrix beside its fabric: its cells, what they light, what pointing at links says."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from nest_core.costs import price
from nest_core.costs.loads import link_loads
from nest_core.costs.parse import read_plan
from nest_core.planner.baselines.cost_matrices import cost_matrices, matrix_finding
from nest_core.report.picture import Band, Box, Line, Words, picture, untitled
from nest_core.report.picture.matrix import (
    cell_key,
    crossed,
    lights,
    matrix_picture,
    pointed_picture,
)
from nest_core.report.picture.svg import STYLE
from nest_core.scenario import load_fabric, load_scenario

PLANS = {
    "clos": ("llama2-7b-64-h100", "dp=4,tp=4,pp=4,zero=1"),
    "tpu": ("llama2-7b-64-tpu-torus", "dp=8,tp=2,pp=4,zero=1"),
    "one group": ("llama2-7b-64-h100", "dp=64"),
}
EVERY = pytest.mark.parametrize("name", PLANS)
LEAST_APART = 56.0


@lru_cache
def found(name):
    """The matrices of a plan, its loads, and its fabric's picture."""
    scenario, text = PLANS[name]
    asked = load_scenario(scenario)
    problem = asked.problem()
    report = price(problem, read_plan(text, problem.layers, problem.network.devices))
    drawn = untitled(picture(asked.fabric, report.plan, width=520))
    return cost_matrices(problem, report.plan), link_loads(problem, report), drawn


def cells(name):
    read, _, drawn = found(name)
    shown = matrix_picture(read, drawn.labels, drawn.height)
    return shown, {mark.key: mark for mark in shown.marks if isinstance(mark, Box)}


@EVERY
def test_every_cell_is_a_box_or_a_dash_and_the_plans_own_are_outlined(name):
    read, _, _ = found(name)
    shown, boxes = cells(name)
    keys = {
        (column, row): cell_key(one, level.name)
        for column, one in enumerate(read.ranks)
        for row, level in enumerate(read.levels)
    }
    there = {key for place, key in keys.items() if not np.isnan(read.seconds[place])}
    assert set(boxes) == there
    dashes = [mark for mark in shown.marks if isinstance(mark, Words) and mark.text == "–"]
    assert len(dashes) == np.isnan(read.seconds).sum()
    own = {keys[place] for place in zip(*np.nonzero(read.own), strict=True)}
    assert {key for key, box in boxes.items() if "own" in box.look.split()} == own != set()
    assert shown.title == matrix_finding(read)


@pytest.mark.parametrize("height", [100.0, 180.0, 281.0, 460.0])
@EVERY
def test_rows_stand_apart_the_outermost_on_top_and_seconds_are_legible(name, height):
    """Also beside a picture that is lower than they are."""
    read, _, drawn = found(name)
    shown = matrix_picture(read, drawn.labels, height)
    boxes = {mark.key: mark for mark in shown.marks if isinstance(mark, Box)}
    heights = [
        next(mark.y for mark in shown.marks if isinstance(mark, Words) and mark.text == level.name)
        for level in read.levels
    ]
    assert all(np.diff(heights) <= -LEAST_APART)
    assert min(heights) > 0
    assert all(box.x >= 0 and box.x + box.width <= shown.width for box in boxes.values())
    assert all(box.y >= 0 and box.y + box.height <= shown.height for box in boxes.values())
    assert all(mark.size >= 12 for mark in shown.marks if isinstance(mark, Words))


def test_a_cell_lights_its_level_and_all_within():
    read, _, drawn = found("clos")
    lit = lights(read, drawn.labels)
    assert set(lit) == set(cells("clos")[1])
    within = {
        "node": {"node"},
        "leaf": {"node", "leaf", "links leaf"},
        "spine": {"node", "leaf", "links leaf", "spine", "links spine"},
    }
    for one in read.ranks:
        for level, classes in within.items():
            assert set(lit.get(cell_key(one, level), classes)) == classes
    read, _, drawn = found("tpu")
    links = {one.what for one in drawn.labels if one.what.startswith("links ")}
    assert {frozenset(classes) for classes in lights(read, drawn.labels).values()} == {
        frozenset(links)
    }


@pytest.mark.parametrize(
    ("fabric", "levels", "links"),
    [
        ("dgx-superpod-h100", ("node", "spine, 256 devices", "spine"), ("leaf", "spine")),
        ("gb200-nvl72-rails", ("node", "spine"), ("leaf", "spine")),
        ("dragonfly-1056", ("node", "router", "group", "global"), ("node", "local", "global")),
        ("drawn-8", ("nvswitch", "spine"), ("leaf", "spine")),
        ("nest-v100-8", ("node", "switch"), ("switch",)),
    ],
)
def test_the_outermost_level_crosses_every_link_and_a_node_none(fabric, levels, links):
    """Also where levels leave tiers out, or links are called otherwise."""
    inner, *outer = crossed(levels, picture(load_fabric(fabric), width=520).labels)
    assert not [what for what in inner if what.startswith("links ")]
    reached = {what for what in outer[-1] if what.startswith("links ")}
    assert reached == {f"links {one}" for one in links}
    assert all(set(one) <= set(other) for one, other in pairwise(outer))


def test_pointing_at_links_says_their_load_and_at_a_cell_its_seconds():
    read, loads, drawn = found("clos")
    told = pointed_picture(drawn, read, loads)
    for tier in loads.tiers:
        name = loads.network.levels[tier.level].name
        if f"links {name}" in told["tips"]:
            said = " ".join(told["tips"][f"links {name}"])
            assert f"{1e3 * tier.busiest.utilisation * loads.iteration_s:.3g}" in said
            assert f"{100 * tier.busiest.utilisation:.3g} % of an iteration" in said
    assert told["lights"] == lights(read, drawn.labels)
    assert set(cells("clos")[1]) <= set(told["tips"])
    assert "1.58 s of an iteration" in told["tips"][cell_key("tp", "node")][0]
    assert "own level" in told["tips"][cell_key("tp", "node")][-1]
    spine = dict(told["said"])["1 spine"]
    assert spine.startswith("64 of 64 ports each, the busiest link is busy 21.5")
    nothing = pointed_picture(drawn)
    assert not nothing["lights"]
    assert not any("busy" in line for line in nothing["tips"]["links leaf"][1:])


@EVERY
def test_every_class_of_links_carries_a_load(name):
    read, loads, drawn = found(name)
    told = pointed_picture(drawn, read, loads)
    for what in (one.what for one in drawn.labels if one.what.startswith("links ")):
        assert any("of an iteration" in line for line in told["tips"][what]), what


@pytest.mark.parametrize("width", [216, 448, 640, 1200])
@pytest.mark.parametrize("fabric", ["h100-spine-leaf-64", "torus-16x16"])
def test_without_its_title_a_picture_is_the_same_higher_up(fabric, width):
    whole = picture(load_fabric(fabric), width=width)
    bare = untitled(whole)
    if width < 300:
        assert bare == whole
        return
    kept = [mark for mark in whole.marks if "title" not in mark.look.split()]
    legend = len(kept) - len(bare.marks)
    assert legend >= 0
    assert not bare.legend
    (shift,) = {
        round(one.top - other.top, 6) for one, other in zip(whole.labels, bare.labels, strict=True)
    }
    assert shift > 0
    for one, other in zip(kept, bare.marks, strict=False):
        assert raised(one, shift) == pytest.approx(flat(other))
    words = {one.words for one in whole.legend}
    assert all(mark.text in words for mark in kept[len(bare.marks) :] if isinstance(mark, Words))
    assert not words & {mark.text for mark in bare.marks if isinstance(mark, Words)}
    assert bare.height < whole.height


def flat(mark):
    """Where a mark is."""
    points = mark.points if isinstance(mark, Line | Band) else ((mark.x, mark.y),)
    return [value for point in points for value in point]


def raised(mark, shift):
    found = flat(mark)
    return [value - shift if place % 2 else value for place, value in enumerate(found)]


def test_the_finding_names_the_class_that_a_level_further_out_costs_most():
    read, _, _ = found("clos")
    cost = {
        one: read.seconds[row, further] - read.seconds[row, further - 1]
        for row, one in enumerate(read.ranks)
        if (further := int(np.flatnonzero(read.own[row]).max()) + 1) < len(read.levels)
    }
    assert max(cost, key=cost.get) == "tp"
    ratio = read.seconds[0, 1] / read.seconds[0, 0]
    assert matrix_finding(read) == (
        f"Tensor traffic stays at level node; one level out it takes {ratio:.3g} × as long"
    )
    outermost = np.zeros_like(read.own)
    outermost[:, -1] = True
    longest = list(read.ranks)[int(read.seconds[:, -1].argmax())]
    assert longest == "tp"
    assert matrix_finding(replace(read, own=outermost)).startswith(
        f"Tensor traffic has to reach level spine and takes {read.seconds[0, -1]:.3g} s"
    )


def luminance(colour: str) -> float:
    """Relative luminance of a colour, WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_cells_are_tints_of_the_page_on_which_its_ink_can_be_read(theme):
    """In the dark, cells were as white as by day: boxes of light with dark words."""
    colours = {
        name: (light, dark)[theme]
        for name, light, dark in re.findall(r"--fabric-([\w-]+):light-dark\((#\w+),(#\w+)\)", STYLE)
    }
    tints = [colours[f"tint-{number}"] for number in range(5)]
    apart = [contrast(tint, colours["bg"]) for tint in tints]
    assert apart == sorted(apart)
    assert apart[0] < 1.3
    assert min(contrast(tint, colours["ink"]) for tint in tints) >= 4.5
