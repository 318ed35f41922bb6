"""Pictures of tori, dragonflies, hierarchies, drawn graphs and racks: the eight properties.

Switches of hierarchies are not given and optical ones are a service of the pod: both are said, not
drawn; what a drawing calls a node is said where boxes are elements.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from properties import drawn_counts, everything_wrong, lines_wrong, moved

from nest_core.bill.bill import inventory
from nest_core.bill.prices import load_prices
from nest_core.costs import price
from nest_core.costs.loads import link_loads
from nest_core.costs.parse import read_plan
from nest_core.costs.placement import rank_mapping_of
from nest_core.documents.presets import preset_names
from nest_core.fabric import Clos, Dragonfly, GraphFabric, Torus
from nest_core.fabric.graph import Element, Link, as_graph
from nest_core.network import collapse
from nest_core.report.picture import Band, Box, Line, picture, to_svg
from nest_core.report.picture.drawn_graph import folded, ranks_of
from nest_core.report.picture.lattice import LatticeBlocks
from nest_core.report.picture.plan import stage_look
from nest_core.scenario import load_fabric, load_scenario

WIDTHS = (216, 448, 640, 900, 1200)
PRESETS = [name for name in preset_names("fabrics") if not isinstance(load_fabric(name), Clos)]


def torus(*shape, wrap=True, twisted=False, missing=()):
    return Torus("torus", shape, (wrap,) * len(shape), 50e9, 1e-6, twisted, missing=missing)


def dragonfly(a, p, h, groups=0, devices=1):
    rates = 50e9, 25e9, 6e-7
    return Dragonfly("dragonfly", a, p, h, *rates, groups=groups, devices_per_node=devices)


def graph(devices, switches, joined):
    """Devices on switches in turn; switches joined as told."""
    elements = [Element(f"gpu {n}", "device") for n in range(devices)]
    elements += [Element(f"sw {n}", "switch") for n in range(switches)]
    links = [Link(f"gpu {n}", f"sw {n % switches}", 50e9) for n in range(devices)]
    links += [Link(f"sw {a}", f"sw {b}", 100e9, 2) for a, b in joined]
    return GraphFabric("drawn", tuple(elements), tuple(links))


def clique(devices):
    elements = tuple(Element(f"gpu {n}", "device") for n in range(devices))
    pairs = itertools.combinations(range(devices), 2)
    return GraphFabric("all", elements, tuple(Link(f"gpu {a}", f"gpu {b}", 5e9) for a, b in pairs))


def irregular():
    """Two hundred switches that nothing makes alike."""
    draw = np.random.default_rng(1)
    pairs = {tuple(sorted(draw.choice(200, 2, replace=False).tolist())) for _ in range(800)}
    return graph(400, 200, sorted(pairs))


SIZES = {
    "8 devices": torus(2, 2, 2),
    "a ring": torus(9, 1),
    "a line": torus(2, 1),
    "7 x 5 x 3": torus(7, 5, 3),
    "6 x 6 x 6": torus(6, 6, 6),
    "17 x 17 x 17, blocks with remainders": torus(17, 17, 17),
    "2 x 64": torus(2, 64),
    "twisted, least": torus(2, 2, 4, twisted=True),
    "65,536 in a plane": torus(256, 256),
    "131,072": torus(32, 64, 64),
    "four devices of a dragonfly": dragonfly(2, 1, 1, 2),
    "one group": dragonfly(8, 4, 4, 1),
    "nodes of eight": dragonfly(4, 2, 2, 5, 8),
    "nodes of eight with eight NICs": replace(dragonfly(4, 2, 2, 5, 8), nics_per_node=8),
    "30 groups, several links a pair": dragonfly(16, 8, 8, 30),
    "83,232 devices of a dragonfly": dragonfly(24, 12, 12),
    "a ring of switches": graph(8, 8, [(n, (n + 1) % 8) for n in range(8)]),
    "six devices, all linked": clique(6),
    "drawn rails": as_graph(load_fabric("mi300x-mesh-64")),
    "drawn spines and leaves": as_graph(load_fabric("h100-spine-leaf-64")),
    "drawn torus": as_graph(torus(4, 4, 4)),
    "irregular": irregular(),
    "racks without hosts": replace(load_fabric("gb200-nvl72-rails"), devices_per_host=0),
}
FAILED = {
    "a device of a cube": torus(4, 4, 4, missing=("device 9",)),
    "a device of a block": torus(10, 10, 10, missing=("device 9",)),
    "a rack": replace(load_fabric("unequal-racks-88"), missing=("rack 1", "device 3")),
    "a pod": replace(load_fabric("meta-3tier-7to1"), missing=("pod 2", "rack 3")),
}
FEW = (
    ("tpu-v4-4x4x4", 448),
    ("torus-16x16", 900),
    ("tpu-v4-4x4x8-twisted", 640),
    ("dragonfly-1056", 900),
    ("meta-3tier-7to1", 448),
    ("drawn-8", 900),
    ("17 x 17 x 17, blocks with remainders", 900),
    ("30 groups, several links a pair", 448),
    ("drawn rails", 640),
    ("nodes of eight with eight NICs", 900),
    ("racks without hosts", 640),
)


def fabric_of(name):
    return SIZES.get(name) or FAILED.get(name) or load_fabric(name)


def wrong(fabric, width, whole=None):
    parts = inventory(fabric, load_prices())
    told = {one.role for one in parts.switches if one.estimate or one.optical}
    told |= {"node"} if isinstance(fabric, GraphFabric) else set()
    found = everything_wrong(picture(fabric, width=width), fabric, whole or fabric)
    return [one for one in found if one.partition(":")[0] not in told]


@pytest.mark.parametrize(("name", "width"), FEW)
def test_a_picture_keeps_its_rules(name, width):
    assert not wrong(fabric_of(name), width)


@pytest.mark.parametrize("name", FAILED)
def test_what_is_drawn_and_what_is_gone_are_the_whole_bill(name):
    fabric = FAILED[name]
    assert not wrong(fabric, 900, replace(fabric, missing=()))


@pytest.mark.check
@pytest.mark.parametrize(("name", "width"), list(itertools.product((*SIZES, *PRESETS), WIDTHS)))
def test_every_picture_keeps_its_rules(name, width):
    assert not wrong(fabric_of(name), width)


@pytest.mark.parametrize("name", ["a device of a cube", "a rack"])
def test_a_failure_moves_no_box(name):
    fabric = FAILED[name]
    after = picture(fabric)
    assert not moved(picture(replace(fabric, missing=())), after)
    assert drawn_counts(after)[1]


def test_kinds_are_told_apart_without_words():
    names = ("torus-16x16", "dragonfly-1056", "meta-3tier-7to1", "gb200-nvl72-rails", "drawn-8")
    shapes = {
        tuple(sorted(Counter(type(mark).__name__ + mark.look for mark in drawn.marks).items()))
        for drawn in (picture(load_fabric(name), width=216) for name in names)
    }
    assert len(shapes) == len(names)
    same = (to_svg(picture(load_fabric("dragonfly-1056"))) for _ in range(2))
    assert len(set(same)) == 1


@pytest.mark.parametrize(
    "fabric",
    [
        torus(4, 4, 4),
        torus(16, 8),
        torus(8, 8, wrap=False),
        torus(4, 4, 8, twisted=True),
        torus(3, 2, 5),
    ],
)
def test_blocks_of_one_device_have_the_links_of_the_bill(fabric):
    blocks = LatticeBlocks(fabric, (1,) * len(fabric.shape))
    joints = blocks.joints
    assert not blocks.inside.any()
    for axis, size in enumerate(fabric.shape):
        inner = [n for joint, n in joints.items() if joint.axis == axis and not joint.wraps]
        assert sum(inner) == fabric.places // size * (size - 1)
    parts = inventory(fabric, load_prices())
    assert sum(joints.values()) == sum(one.count for one in parts.links)


def test_a_route_on_the_picture_has_as_many_hops_as_the_torus_says():
    for fabric in (torus(4, 4, 4), torus(4, 4, 8, twisted=True), torus(6, 5, wrap=False)):
        blocks = LatticeBlocks(fabric, (1,) * len(fabric.shape))
        for start, end in ((0, 1), (3, fabric.places - 1), (2, fabric.places // 2)):
            hops = int(collapse(fabric).link_map.level(np.array([start]), np.array([end]))[0] + 1)
            assert len(blocks.way(start, end)) == hops


def test_global_links_of_a_dragonfly_add_up():
    fabric = load_fabric("dragonfly-1056")
    drawn = picture(fabric)
    chords = [
        mark
        for mark in drawn.marks
        if isinstance(mark, Line) and "links global" in dict(mark.stands)
    ]
    ends = Counter(end for mark in chords for end in mark.ends)
    assert len(chords) == 33 * 32 // 2
    assert set(ends.values()) == {32}


def test_widths_of_a_hierarchy_are_its_capacities():
    fabric = load_fabric("meta-3tier-7to1")
    drawn = picture(fabric)
    boxes = [mark for mark in drawn.marks if isinstance(mark, Box) and mark.head and mark.foot]
    for level, name in ((1, "rack"), (2, "pod")):
        own = [box for box in boxes if box.key.startswith(name)]
        ratio = fabric.capacity_Bps(level + 1).sum() / fabric.capacity_Bps(level).sum()
        assert sum(b.head for b in own) == pytest.approx(ratio * sum(b.foot for b in own), abs=1.0)


def test_what_is_alike_is_folded_only_where_there_is_no_room():
    drawn = as_graph(load_fabric("h100-spine-leaf-64"))
    roomy, narrow = folded(drawn, 80, 640), folded(drawn, 40, 640)
    assert all(len(own) == 1 for own in roomy.members)
    assert {
        len(own) for own, rank in zip(narrow.members, narrow.rank, strict=True) if rank == 0
    } == {32}
    assert sum(narrow.joins.values()) == pytest.approx(
        sum(link.count * link.bandwidth_Bps for link in drawn.links)
    )
    assert folded(irregular(), 80, 640) is None


def test_links_join_neighbouring_ranks():
    for fabric in (load_fabric("drawn-8"), irregular(), as_graph(load_fabric("dragonfly-1056"))):
        rank = ranks_of(fabric)
        assert all(abs(rank[link.a] - rank[link.b]) <= 1 for link in fabric.links)
        assert all(rank[name] == 0 for name in fabric.device_ids)


PLANS = {
    "torus": ("llama2-7b-64-tpu-torus", "dp=4,tp=4,pp=4", ()),
    "hierarchy": ("gpt3-175b-256-tpuv4like", "dp=8,tp=8,pp=4", ()),
    "drawn": ("llama2-7b-64-h100", "dp=1,tp=4,pp=2", ('fabric="drawn-8"',)),
}


@lru_cache
def planned(name):
    scenario, text, changes = PLANS[name]
    asked = load_scenario(scenario, changes)
    problem = asked.problem()
    report = price(problem, read_plan(text, problem.layers, problem.network.devices))
    return asked.fabric, problem.network, report.plan, link_loads(problem, report)


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_colours_devices_and_lights_links_that_are_there(name):
    fabric, network, plan, loads = planned(name)
    drawn = picture(fabric, plan, loads=loads)
    assert not [one for one in lines_wrong(drawn) if "crosses" in one]
    stage = rank_mapping_of(network, plan).pp.tolist()
    looks = {mark.key: mark.look for mark in drawn.marks if isinstance(mark, Box) and mark.key}
    expected = {
        f"device {device}": stage_look(own, plan.point.pp) for device, own in enumerate(stage)
    }
    assert {key: looks[key] for key in expected} == expected
    lit = {mark.key for mark in drawn.marks if isinstance(mark, Line) and mark.look == "lit"}
    bare = {mark.key for mark in picture(fabric).marks if isinstance(mark, Line | Band)}
    assert lit - {""} <= bare
    busiest = [mark for mark in drawn.marks if "load-5" in mark.look.split()]
    assert busiest


def test_stubs_and_links_of_a_torus_are_as_busy_as_the_loads_say():
    fabric, network, _, loads = planned("torus")
    blocks = LatticeBlocks(fabric, (1, 1, 1))
    found = blocks.busiest(loads.busy)
    assert max(found.values()) == pytest.approx(loads.busy.max())
    joint = next(one for one in found if one.axis == 1 and not one.wraps)
    group = (joint.a * 3 + 1) * 2
    back = (joint.b * 3 + 1) * 2 + 1
    assert found[joint] == pytest.approx(max(loads.busy[group], loads.busy[back]))
    assert network.link_map.capacity_Bps[group] == fabric.link_bandwidth_Bps


def one_node(inside, nics):
    changes = {"devices": 8, "tiers": 1, "oversubscription": (), "nics_per_node": nics}
    return replace(load_fabric("h100-spine-leaf-64"), interconnect=inside, **changes)


@pytest.mark.parametrize(
    ("inside", "nics", "arcs"),
    [("switch", 8, 0), ("mesh", 8, 28), ("ring", 4, 8), ("hybrid_cube_mesh", 4, 16)],
)
def test_one_node_shows_what_joins_its_devices(inside, nics, arcs):
    fabric = one_node(inside, nics)
    assert not wrong(fabric, 640)
    lines = [mark for mark in picture(fabric).marks if isinstance(mark, Line)]
    assert (
        sum(all(end.startswith("device") for end in line.ends) for line in lines if line.ends)
        == arcs
    )
