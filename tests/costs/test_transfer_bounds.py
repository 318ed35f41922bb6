"""What transfers take at least, against what they take where a layout really puts them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from plain_chain import chain, problem

from nest_core.costs import Point
from nest_core.costs.layout import places, ranks_in_nodes, seatings
from nest_core.costs.links import links
from nest_core.fabric import Clos, Hierarchical, Tier
from nest_core.network import Dispatch, collapse
from nest_core.planner.node_bounds import RankColumns
from nest_core.planner.transfer_bounds import (
    TransferBounds,
    beyond_blocks,
    call_bound,
    hop_seconds,
)
from nest_core.scenario import load_scenario

BYTES = 1000.0

# A device sends 4 bytes/s, a node of 8 as much as one and a half, a rack of 32 half as much.
TIERS = (
    Tier("node", 8, 4.0, 1e-3),
    Tier("rack", 4, 6.0, 2e-3, "child"),
    Tier("all", 16, 2.0, 3e-3, "child"),
)
FABRIC = collapse(Hierarchical("racks", TIERS))

NODE = np.array([8])
SEAT = np.array([0]), ("natural",)

LAYOUTS = [
    (tp, dp, pp, order)
    for order in (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))
    for tp in (1, 2, 3, 4, 8, 16)
    for dp in (1, 2, 3, 4, 8)
    for pp in (2, 3, 5, 8, 11, 13, 16)
    if tp * dp * pp <= 512
]


def told(tp: int, dp: int, pp: int, order: tuple[str, ...]) -> tuple[float, float, float, float]:
    """The least transfer and the sum of all forward ones, as bounded and as placed."""
    case = replace(problem(chain(pp)), network=FABRIC)
    point = Point(tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=order)
    placed = links(case, point).forward.seconds(BYTES)[1:]
    outer = order.index("dp") > order.index("pp")
    apart = np.array([tp if outer else tp * dp])
    hops, forward = hop_seconds(
        case,
        np.array([BYTES]),
        apart,
        tp * dp // apart,
        np.array([pp]),
        np.array([True]),
        NODE,
        np.array([True]),
    )
    return float(hops.near[0]), float(forward[0]), float(placed.min()), float(placed.sum())


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("tp", "dp", "pp", "order"), LAYOUTS)
def test_no_transfer_takes_less_than_its_bound(tp, dp, pp, order):
    near, forward, least, total = told(tp, dp, pp, order)
    assert near <= least * (1 + 1e-12)
    assert forward <= total * (1 + 1e-12)


def test_where_stages_fill_nodes_evenly_the_bound_is_what_they_take():
    """But for latency: the bound knows the fabric's least."""
    tight = [
        (tp, dp, pp, order)
        for tp, dp, pp, order in LAYOUTS
        if 8 % tp == 0 and order.index("dp") > order.index("pp") and tp * pp % 32 == 0
    ]
    assert len(tight) > 5
    for layout in tight:
        _, forward, _, total = told(*layout)
        assert forward > 0.999 * total, layout


def beyond(tp: int, dp: int, pp: int, order: tuple[str, ...], cp: int = 1) -> tuple[float, float]:
    """Seconds per byte of a half among the sharers of weights: as bounded, and the least placed."""
    case = replace(problem(chain(pp)), network=FABRIC)
    point = Point(tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=order, cp=cp)
    placed = links(case, point).time("data", "reduce_scatter").beta_s_per_byte.min(axis=0)
    outer, parted = (np.array([order.index(axis) > order.index("pp")]) for axis in ("dp", "cp"))
    degrees = (np.array([degree]) for degree in (tp, cp, 1, dp, pp))
    dense, _ = beyond_blocks(
        case, RankColumns(*degrees, outer, parted, np.array([True]), NODE, np.array([True]), *SEAT)
    )
    return float(dense[0]), float(placed.min())


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("tp", "dp", "pp", "order"), [entry for entry in LAYOUTS if entry[1] > 1])
def test_no_half_leaves_its_node_faster_than_its_bound(tp, dp, pp, order):
    """Not even where some groups have more members in a rack than others, and one more phase."""
    bounded, placed = beyond(tp, dp, pp, order)
    assert bounded <= placed * (1 + 1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "order", [("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"), ("tp", "pp", "dp", "cp")]
)
@pytest.mark.parametrize("cp", [2, 3, 4, 8])
def test_no_half_of_context_parallel_ranks_is_faster_than_its_bound(cp, order):
    cases = [
        (tp, dp, pp) for tp, dp, pp, _ in LAYOUTS[: len(LAYOUTS) // 2] if tp * dp * pp * cp <= 512
    ]
    assert len(cases) > 30
    for tp, dp, pp in cases:
        bounded, placed = beyond(tp, dp, pp, order, cp)
        assert bounded <= placed * (1 + 1e-12), (tp, dp, pp)


def test_replicas_that_straddle_racks_are_bounded_by_the_links_of_their_racks():
    """A failure: pipelines of 7 or 31 stages seem to synchronise for nothing."""
    order = ("tp", "cp", "pp", "dp")
    for tp, dp, pp, cp in ((4, 4, 28, 1), (2, 4, 31, 2), (2, 8, 7, 4), (1, 4, 15, 8)):
        bounded, placed = beyond(tp, dp, pp, order, cp)
        assert bounded > 0.4 * placed, (tp, dp, pp, cp)


def test_collectives_that_leave_nodes_evenly_take_at_most_twice_their_bound():
    """Where racks share few links, pipelines that straddle them keep the bound of their node."""
    order = ("tp", "cp", "pp", "dp")
    for bounded, placed in (beyond(2, 8, 16, order), beyond(8, 4, 16, order)):
        assert bounded > 0.5 * placed
    for tp, dp, pp, cp in ((1, 64, 2, 1), (2, 64, 2, 1), (2, 32, 4, 1), (1, 32, 4, 2)):
        bounded, placed = beyond(tp, dp, pp, ("tp", "cp", "dp", "pp"), cp)
        assert bounded > 0.5 * placed
    for pp in (11, 13):
        bounded, placed = beyond(1, 8, pp, order)
        assert bounded > 0.15 * placed


EXPERTS = [
    (tp, ep, dp, pp)
    for tp in (1, 2, 3, 4, 8)
    for ep in (2, 4, 8)
    for dp in (ep, 2 * ep)
    for pp in (1, 2, 3, 5, 8, 16)
    if tp * dp * pp <= 512
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("tp", "ep", "dp", "pp"), EXPERTS)
def test_collectives_of_experts_do_not_leave_nodes_faster_than_bounded(tp, ep, dp, pp):
    case = replace(problem(chain(pp)), network=FABRIC)
    for order in (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp")):
        point = Point(tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=order, ep=ep)
        placed = (
            links(case, point).time("expert_data", "reduce_scatter").beta_s_per_byte.min(axis=0)
        )
        outer = np.array([order.index("dp") > order.index("pp")])
        degrees = (np.array([degree]) for degree in (tp, 1, ep, dp, pp))
        _, experts = beyond_blocks(
            case,
            RankColumns(
                *degrees, outer, ~outer & outer, np.array([True]), NODE, np.array([True]), *SEAT
            ),
        )
        assert experts[0] <= placed.min() * (1 + 1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("tp", "ep", "dp", "pp"), EXPERTS)
def test_no_exchange_of_experts_is_faster_than_its_bound(tp, ep, dp, pp):
    """Pipelines lie between the experts of a group: what they exchange leaves their nodes."""
    case = replace(problem(chain(pp)), network=FABRIC)
    point = Point(
        tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=("tp", "cp", "pp", "dp"), ep=ep
    )
    placed = links(case, point).time("ep", "all_to_all").seconds(BYTES)
    bound = call_bound(
        case, TransferBounds(case), "ep", "all_to_all", ep, tp * pp, np.array([BYTES]), ("natural",)
    )
    assert bound[0] <= placed.min() * (1 + 1e-12)
    if tp * pp % 32 == 0:  # every expert in a rack of its own
        assert bound[0] > 0.99 * placed.max()


@pytest.mark.parametrize(
    "dispatch", [Dispatch(8, 1), Dispatch(24, 6), Dispatch(24, 4, 4, 2)], ids=str
)
@pytest.mark.parametrize("order", [("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp")])
@pytest.mark.sampled(2)
def test_no_dispatch_is_faster_than_its_bound(dispatch, order):
    """Nor is the bound far off where whole nodes, or no two in a rack, share the experts."""
    tight = 0
    for tp, ep, dp, pp in EXPERTS:
        if dispatch.experts % ep:
            continue
        case = replace(problem(chain(pp)), network=FABRIC, dispatch=dispatch)
        point = Point(tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=order, ep=ep)
        placed = links(case, point).time("ep", "all_to_all").seconds(BYTES)
        stride = tp * pp if order[2] == "pp" else tp
        bound = call_bound(
            case,
            TransferBounds(case),
            "ep",
            "all_to_all",
            ep,
            stride,
            np.array([BYTES]),
            ("natural",),
        )
        assert bound[0] <= placed.min() * (1 + 1e-12), (tp, ep, dp, pp)
        tight += bound[0] > 0.99 * placed.max()
    assert tight > 10


def clos(**changes):
    """Ports of 1 byte/s; nodes of 16."""
    return Clos(
        name="clos",
        nic_bandwidth_Bps=1.0,
        hop_latency_s=1e-3,
        intra_bandwidth_Bps=16.0,
        intra_latency_s=1e-3,
        **changes,
    )


def preset(name, *sets):
    return load_scenario("llama2-7b-64-h100", [f"fabric='{name}'", *sets]).fabric


# Where a block's ways out fill unequally, a stage may find one that the others leave free.
UNEQUAL_WAYS = {
    "rails of a pool": (
        lambda: clos(kind="rail_optimised", devices=24, devices_per_node=6, nics_per_node=2,
                     radix=12, tiers=2, oversubscription=(1.0,)),
        (1, 1, 8, 3),
    ),
    "rails that never meet": (
        lambda: clos(kind="rail_only", devices=96, devices_per_node=6, nics_per_node=2, radix=16,
                     tiers=1, oversubscription=()),
        (1, 1, 32, 3),
    ),
    "a pool that lost members": (
        lambda: clos(kind="leaf_spine", devices=64, devices_per_node=8, nics_per_node=4, radix=32,
                     tiers=2, oversubscription=(1.0,),
                     missing=tuple(f"device {d}" for d in range(0, 64, 8))),
        (1, 1, 8, 7),
    ),
    "links fixed by the target": (
        lambda: clos(kind="leaf_spine", devices=64, devices_per_node=8, nics_per_node=8, radix=32,
                     tiers=2, oversubscription=(3.0,), routing="shortest_path"),
        (1, 1, 4, 16),
    ),
    "through another device": (
        lambda: preset("mi300x-mesh-64", "fabric.missing=['leaf 0']"), (1, 1, 8, 8)
    ),
    "unevenly through another device": (
        lambda: preset("mi300x-mesh-64", "fabric.missing=['leaf 0']"), (1, 1, 3, 12)
    ),
    "experts through another device": (
        lambda: preset("gb200-nvl72-rails", "fabric.missing=['leaf 0']"), (4, 2, 4, 16)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEQUAL_WAYS)
def test_no_stage_is_faster_than_its_bound_where_ways_out_fill_unequally(name):
    make, (tp, ep, dp, pp) = UNEQUAL_WAYS[name]
    case = replace(problem(chain(pp)), network=collapse(make()))
    point = Point(
        tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=("tp", "cp", "pp", "dp"), ep=ep
    )
    placed = links(case, point)
    yes, degrees = np.array([True]), (np.array([degree]) for degree in (tp, 1, ep, dp, pp))
    fewest, most = (np.array([count]) for count in ranks_in_nodes(case.network, "natural"))
    columns = RankColumns(*degrees, yes, ~yes, yes, most, fewest == most, *SEAT)
    bounded = beyond_blocks(case, columns)
    for least, axis in zip(bounded, ("data", "expert_data") if ep > 1 else ("data",), strict=False):
        assert least[0] <= placed.time(axis, "reduce_scatter").beta_s_per_byte.min() * (1 + 1e-12)


# Nodes that no power of two fills, leaves that are unequal, nodes with holes.
SEATED = {
    "nodes of 6": lambda: Hierarchical(
        "six", (Tier("node", 6, 4.0, 1e-3), Tier("all", 8, 1.5, 2e-3, "child"))
    ),
    "a node with two holes": lambda: Hierarchical(
        "holes",
        (Tier("node", 8, 4.0, 1e-3), Tier("rack", 3, 2.0, 2e-3), Tier("all", 3, 1.0, 3e-3)),
        missing=("device 9", "device 11"),
    ),
    "a leaf that is half full": lambda: clos(
        kind="rail_optimised", devices=60, devices_per_node=6, nics_per_node=6, radix=8, tiers=3,
        oversubscription=(1.0, 1.0), rails=3,
    ),
    "one way out of a node": lambda: clos(
        kind="leaf_spine", devices=72, devices_per_node=12, nics_per_node=1, radix=8, tiers=2,
        oversubscription=(1.0,),
    ),
    "through other devices": lambda: preset("mi300x-mesh-64", "fabric.missing=['leaf 0']"),
}  # fmt: skip


def test_a_device_that_receives_from_several_at_once_is_as_slow_as_all_of_them():
    """Stages that begin and end within nodes, of which each device has a way out of its own."""
    tiers = Tier("node", 8, 40.0, 1e-3), Tier("leaf", 3, 2.0, 2e-3), Tier("all", 3, 2.0, 3e-3)
    network = collapse(Hierarchical("own ways", tiers))
    yes, close = np.array([True]), 0
    for tp, dp, pp in itertools.product((1, 2), range(9, 36), (1, 2, 3)):
        if tp * dp * pp > network.devices:
            continue
        case = replace(problem(chain(pp)), network=network)
        point = Point(tp, True, dp, pp, 1, 0, ("tp", "cp", "dp", "pp"))
        placed = links(case, point).time("data", "reduce_scatter").beta_s_per_byte.min()
        degrees = (np.array([degree]) for degree in (tp, 1, 1, dp, pp))
        ranks = RankColumns(*degrees, ~yes, ~yes, yes, NODE, yes, *SEAT)
        bounded = beyond_blocks(case, ranks)[0][0]
        assert bounded <= placed * (1 + 1e-12), point
        close += bounded > 0.99 * placed
    assert close > 25


DEGREES = [
    (tp, cp, ep, dp, pp)
    for tp in (1, 2, 3, 4, 6, 16)
    for cp in (1, 2, 3)
    for ep in (1, 2, 4)
    for dp in (1, 2, 3, 4, 6, 8)
    for pp in (1, 2, 3, 5, 7)
    if cp * dp % ep == 0 and 1 < tp * cp * dp * pp <= 72
]
ORDERS = [("tp", *rest) for rest in itertools.permutations(("cp", "dp", "pp"))]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SEATED)
@pytest.mark.parametrize("axes", ORDERS, ids="-".join)
def test_nothing_leaves_a_node_faster_than_bounded_wherever_ranks_are_seated(name, axes):
    """Where a fabric's orders leave gaps, and where its leaves are unequal."""
    network = collapse(SEATED[name]())
    said = 0
    for degrees, seat in itertools.product(DEGREES, ("natural", *seatings(network))):
        tp, cp, ep, dp, pp = degrees
        if (tp * cp * dp * pp * 7 + len(seat)) % 5 or tp * cp * dp * pp > places(network, seat):
            continue
        case = replace(problem(chain(pp)), network=network)
        point = Point(
            tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=axes, cp=cp, ep=ep,
            device_order=seat,
        )  # fmt: skip
        placed = links(case, point)
        columns = (np.array([degree]) for degree in (tp, cp, ep, dp, pp))
        beyond_stages = (np.array([axes.index(axis) > axes.index("pp")]) for axis in ("dp", "cp"))
        fewest, most = (np.array([count]) for count in ranks_in_nodes(network, seat))
        alike = (fewest == most) & (most > 0)
        natural = np.array([seat == "natural"])
        seated = np.array([0]), (seat,)
        ranks = RankColumns(*columns, *beyond_stages, natural, most, alike, *seated)
        bounded = beyond_blocks(case, ranks)
        for least, axis in zip(bounded, ("data", "expert_data"), strict=True):
            actual = placed.time(axis, "reduce_scatter").beta_s_per_byte.min()
            assert least[0] <= actual * (1 + 1e-12), (axis, point)
            said += least[0] > 0
        calls = [("tp", "all_reduce", tp, 1), ("cp", "ring", cp, tp), ("ep", "all_to_all", ep, tp)]
        for axis, kind, n, stride in calls:
            if n > 1:
                least = call_bound(
                    case, TransferBounds(case), axis, kind, n, stride, np.array([BYTES]), (seat,)
                )
                actual = placed.time(axis, kind).seconds(BYTES).min()
                assert least[0] <= actual * (1 + 1e-12), (axis, point)
        if pp > 1:
            inside = tp * (cp if axes.index("cp") < axes.index("pp") else 1)
            inside *= dp if axes.index("dp") < axes.index("pp") else 1
            hops, forward = hop_seconds(
                case,
                np.array([BYTES]),
                np.array([inside]),
                np.array([tp * cp * dp // inside]),
                np.array([pp]),
                natural,
                most,
                alike,
            )
            actual = placed.forward.seconds(BYTES)[1:]
            assert hops.near[0] <= actual.min() * (1 + 1e-12), point
            assert forward[0] <= actual.sum() * (1 + 1e-12), point
    assert said > 10
