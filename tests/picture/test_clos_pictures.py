"""Pictures of Clos fabrics: eight properties, for all presets and for sizes from 8 to 131,072."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest
from clos_specs import clos, link_counts
from properties import bill_counts, drawn_counts, everything_wrong, moved

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.fabric import Clos
from nest_core.report.picture import Box, picture, to_svg
from nest_core.scenario import load_fabric

WIDTHS = (216, 448, 640, 900, 1200)
PRESETS = [name for name in preset_names("fabrics") if isinstance(load_fabric(name), Clos)]
RAILS = {"kind": "rail_optimised"}
SIZES = {
    "8 devices, one leaf": clos(8, 64, 1),
    "64, one leaf": clos(64, 64, 1),
    "256 at 2:1": clos(256, 64, 2, 2.0),
    "1,000 at 3:1, a short last leaf": clos(1000, 64, 2, 3.0),
    "2,048": clos(2048, 64, 2),
    "8,192 at 4:1": clos(8192, 128, 2, 4.0),
    "131,072 on two tiers": clos(131072, 1024, 2),
    "16,384": clos(16384, 64, 3, kind="fat_tree"),
    "65,536 at 2:1 above the pod": clos(65536, 64, 3, 1.0, 2.0),
    "131,072": clos(131072, 128, 3, kind="fat_tree"),
    "24,832 at 3:1 and 1.5:1": clos(24832, 64, 3, 3.0, 1.5),
    "rails, 64": clos(64, 64, 2, **RAILS),
    "rails, 16,384": clos(16384, 256, 2, **RAILS),
    "rails, 5,000, unequal pods": clos(5000, 32, 3, **RAILS),
    "rails, 131,072": clos(131072, 128, 3, **RAILS),
    "pods of one rail": clos(4096, 64, 3, 2.0, 1.0, pods="rails", **RAILS),
    "rail-only, one leaf each": clos(512, 64, 1, kind="rail_only"),
    "rail-only at 2:1": clos(2048, 64, 2, 2.0, kind="rail_only"),
    "rail-only, three tiers": clos(16384, 64, 3, kind="rail_only"),
    "two planes": clos(1024, 64, 2, planes=2),
    "two planes, rail-only": clos(2048, 64, 2, planes=2, kind="rail_only"),
    "two planes, three tiers": clos(16384, 64, 3, planes=2),
    "four planes": clos(1024, 64, 2, planes=4, **RAILS),
    "eight planes": clos(1024, 64, 2, planes=8),
}
FAILED = {
    "a spine, a node, a device": (clos(1024, 64, 2), ("spine 5", "node 17", "device 9")),
    "a core, a spine, a leaf": (
        clos(16384, 64, 3),
        ("core 3", "spine 40", "leaf 400", "node 1600", "node 1601", "node 1602", "node 1603"),
    ),
    "of rails": (clos(1024, 64, 2, **RAILS), ("leaf 3", "spine 2", "node 5")),
    "of rails apart": (clos(1024, 64, 2, kind="rail_only"), ("spine 2", "leaf 9")),
    "of two planes": (
        clos(15360, 256, 2, planes=2, **RAILS),
        ("spine 2", "leaf 9", "node 7"),
    ),
    "of pods of one rail": (clos(1120, 40, 3, pods="rails", **RAILS), ("core 2", "spine 9")),
    "in tiles": (clos(131072, 1024, 2), ("spine 2", "node 7")),
    "in a further plane": (clos(1024, 64, 2, planes=4), ("spine 20", "leaf 9")),
}
FEW = (("rails, 16,384", 448), ("131,072", 900), ("rail-only at 2:1", 900), ("two planes", 640))


def _whole(fabric: Clos) -> Clos:
    if not fabric.missing:
        return fabric
    return replace(fabric, missing=(), installed=0, devices=fabric.slots)


def _failed(name: str) -> Clos:
    fabric, missing = FAILED[name]
    return replace(fabric, missing=missing)


@pytest.mark.parametrize(("name", "width"), FEW)
def test_a_picture_keeps_its_rules(name, width):
    assert not everything_wrong(picture(SIZES[name], width=width), SIZES[name])


@pytest.mark.parametrize("name", FAILED)
@pytest.mark.sampled(2)
def test_what_is_drawn_and_what_is_gone_are_the_whole_bill(name):
    fabric = _failed(name)
    assert not everything_wrong(picture(fabric), fabric, _whole(fabric))


@pytest.mark.check
@pytest.mark.parametrize(("name", "width"), list(product((*SIZES, *PRESETS, *FAILED), WIDTHS)))
def test_every_picture_keeps_its_rules(name, width):
    fabric = SIZES.get(name) or (_failed(name) if name in FAILED else load_fabric(name))
    assert not everything_wrong(picture(fabric, width=width), fabric, _whole(fabric))


def _row(drawn, name):
    """Feet and heads of a tier, summed over its boxes that stand for switches."""
    boxes = [
        mark
        for mark in drawn.marks
        if isinstance(mark, Box) and mark.stands and mark.stands[0][0] == name
    ]
    feet = sum(box.width if box.foot is None else box.foot for box in boxes)
    heads = sum(box.width if box.head is None else box.head for box in boxes)
    return feet, heads


@pytest.mark.parametrize(
    ("fabric", "width"),
    [
        *product((clos(1024, 64, 2, ratio) for ratio in (1.0, 2.0, 4.0, 5.0)), (448, 900)),
        (clos(8192, 128, 2, 3.0, **RAILS), 900),
        (clos(1024, 64, 2, 2.0, kind="rail_only"), 1200),
    ],
)
def test_widths_are_capacities(fabric, width):
    drawn = picture(fabric, width=width)
    below, above = link_counts(fabric).values()
    feet, heads = _row(drawn, "leaf")
    assert heads == pytest.approx(feet * above / below, abs=1.0)
    assert _row(drawn, "spine")[0] == pytest.approx(heads, abs=1.0)


def test_pods_and_core_switches_are_as_wide_as_their_links():
    fabric = clos(4096, 64, 3, 1.0, 2.0)
    drawn = picture(fabric, width=448)
    feet, heads = _row(drawn, "spine")
    assert heads == pytest.approx(feet / 2, abs=1.0)
    assert _row(drawn, "core")[0] == pytest.approx(heads, abs=1.0)


def test_the_same_fabric_has_the_same_bytes():
    first, second = (to_svg(picture(clos(1024, 64, 2, 2.0), width=900)) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert 'role="img"' in first


@pytest.mark.parametrize(
    ("fabric", "missing"),
    [
        (clos(1024, 64, 2), "spine 5"),
        (clos(1024, 64, 2, **RAILS), "leaf 11"),
        (clos(1024, 64, 2, kind="rail_only"), "spine 3"),
        (clos(16384, 64, 3), "core 7"),
    ],
)
@pytest.mark.parametrize("width", [448, 900])
def test_a_failed_switch_moves_nothing(fabric, missing, width):
    before = picture(fabric, width=width)
    after = picture(replace(fabric, missing=(missing,)), width=width)
    assert not moved(before, after)
    assert (before.width, before.height) == (after.width, after.height)


def _silhouette(fabric, width=216):
    """Looks and shapes, without any word."""
    return {
        (mark.look, round(mark.width), mark.head is None)
        for mark in picture(fabric, width=width).marks
        if isinstance(mark, Box)
    }


def test_kinds_of_equal_bill_differ_without_words():
    rows, rails = clos(1024, 64, 2), clos(1024, 64, 2, **RAILS)
    apart = clos(1024, 64, 2, kind="rail_only")
    assert bill_counts(rows) == bill_counts(rails) == bill_counts(apart)
    seen = [_silhouette(fabric) for fabric in (rows, rails, apart)]
    assert not any("rail" in look for look, *_ in seen[0])
    assert sum("rail" in look for look, *_ in seen[1]) >= 8
    assert any("nothing" in look for look, *_ in seen[2])
    assert not any("nothing" in look for look, *_ in seen[1])


def test_a_ratio_is_seen_without_words():
    even, four = (_silhouette(clos(1024, 64, 2, ratio)) for ratio in (1.0, 4.0))
    assert all(whole for look, _, whole in even if look == "switch")
    assert any(not whole for look, _, whole in four if look == "switch")


def test_a_picture_says_its_finding_and_its_counts():
    drawn = picture(clos(1024, 64, 2, 4.0))
    assert drawn.title == "4:1: above the leaf a device keeps 12.5 of its 50\u00a0GB/s"
    rows = {one.what: one for one in drawn.labels}
    assert rows["spine"].head == "4 spines"
    assert rows["links spine"].words == ("256 links: every leaf to every spine, x 2",)
    assert rows["links spine"].ratio == 4.0
    assert rows["node"].count == 128


def test_what_is_left_after_a_failure_is_said():
    drawn = picture(replace(clos(1024, 64, 2), missing=("spine 5",)))
    assert drawn.title == "With spine 5 down, devices keep 46.9 of their 50\u00a0GB/s at the worst"
    rows = {one.what: one for one in drawn.labels}
    assert rows["spine"].head == "15 of 16 spines"
    assert rows["links spine"].ratio == pytest.approx(16 / 15)
    assert "960 of 1,024 links" in rows["links spine"].words[0]


@pytest.mark.parametrize("width", [100.0, 1e5, float("nan")])
def test_a_width_out_of_range_is_refused(width):
    with pytest.raises(InputError, match=r"width must be 160 to 4096 pixels"):
        picture(clos(64, 64, 2), width=width)


def test_names_of_people_cannot_leave_the_text():
    fabric = replace(clos(64, 64, 2), name="</svg><script>")
    assert not re.search("<script", to_svg(picture(fabric)))


def test_aggregates_are_said():
    drawn = picture(clos(131072, 1024, 2), width=448)
    here, gone = drawn_counts(drawn)
    assert here["leaf"] == 256
    assert not gone
    said = next(one for one in drawn.labels if one.what == "leaf")
    assert any("tiles of" in words for words in said.words)
