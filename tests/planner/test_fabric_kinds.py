"""The search on every kind of fabric: proven, and no excluded point beats its bound.

The enumerations run on trees; here the other kinds' links meet the planner's bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

from nest_core.api.answer import answer
from nest_core.costs import NO_OVERLAP, Point, price
from nest_core.costs.links import links
from nest_core.costs.parse import read_plan
from nest_core.network.clusters import graph_network
from nest_core.planner import audit, search
from nest_core.planner.space import ORDERS
from nest_core.planner.transfer_bounds import TransferBounds
from nest_core.scenario import load_scenario

KINDS = [
    "mi300x-mesh-64",
    "dgx1-v100-64",
    "torus-16x16",
    "mesh-8x8",
    "tpu-v4-4x4x8-twisted",
    "rail-only-1024",
    "dgx-superpod-h100-as-built",
    "unequal-racks-88",
    "dragonfly-1056",
    "drawn-8",
]
# Under a second each.
QUICK = ("torus-16x16", "rail-only-1024", "drawn-8")

PLAIN = ("search.cp=1", "search.schedule='1f1b'")


@pytest.mark.parametrize(
    "fabric",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.check) for kind in KINDS],
)
def test_no_excluded_point_is_faster(fabric):
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [f"fabric='{fabric}'", "workload.global_batch_sequences=16", "search.zero=[0, 1, 3]"],
    )
    problem = scenario.problem()
    result = search(problem, scenario.space)
    assert result.best is not None
    assert result.certificate.proven
    checked = audit(problem, scenario.space, result, 40, seed=2)
    assert checked.solved + checked.infeasible == 40
    assert not checked.violations


@pytest.mark.parametrize("fabric", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "dp=2,cp=2,tp=2,ep=4,zero=3,order=tp-dp-cp-pp",
        "dp=2,cp=2,pp=2,ep=2,zero=1,schedule=interleaved,interleave=2",
    ],
)
def test_context_and_experts_have_a_price(fabric, text):
    """Rings, exchanges and chunks on all links; what leaves a device takes its time there."""
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [
            f"fabric='{fabric}'",
            "workload.model='mixtral-8x7b'",
            "workload.global_batch_sequences=16",
        ],
    )
    problem = replace(scenario.problem(), overlap=NO_OVERLAP)
    report = price(problem, read_plan(text, problem.layers, problem.network.devices))
    point = report.plan.point
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    port = problem.network.link_map.port_Bps * problem.software.reach
    sent = sum(
        (1 - 1 / degree) * table.calls[axis].bytes.sum() / port
        for axis, degree in (("cp", point.cp), ("ep", point.ep))
    )
    loads = sum(stage.micro_batch_s for stage in report.stages)
    assert table.compute_s.sum() + sent <= loads < float("inf")


@pytest.mark.check
@pytest.mark.parametrize("order", ["snake", "hilbert"])
def test_a_device_order_on_offer_never_hurts(order):
    """More to choose from; on a torus a curve may place groups closer."""
    asked = ["fabric='torus-16x16'", "workload.global_batch_sequences=64", "search.zero=1"]
    seconds = []
    for orders in (["natural"], ["natural", order]):
        scenario = load_scenario(
            "llama2-7b-64-h100", [*asked, *PLAIN, f"search.device_order={orders}"]
        )
        result = search(scenario.problem(), scenario.space)
        assert result.best is not None
        seconds.append(result.best.iteration_s)
    assert seconds[1] <= seconds[0]


def test_one_drawn_device_is_a_fabric():
    """It sends to nobody; the model fits or it does not."""
    alone = "fabric={kind='graph', element=[{id='only', role='device'}]}"
    scenario = load_scenario("llama2-7b-64-h100", [alone, "accelerator.memory_GiB=1000.0"])
    result = search(scenario.problem(), scenario.space)
    assert result.best is not None
    assert result.best.plan.point.devices_used == 1


def drawn(node_of: Callable[[int], int], pairs: bool) -> nx.Graph[Any]:
    """Sixteen devices, each on its node's switch; a NIC per node; perhaps faster pairs."""
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(range(16), role="device")
    graph.add_nodes_from(["inside 0", "inside 1", "fabric"], role="switch")
    graph.add_nodes_from(["nic 0", "nic 1"], role="nic")
    for node in (0, 1):
        ends = (f"inside {node}", f"nic {node}", "fabric")
        for one, other in pairwise(ends):
            graph.add_edge(one, other, bandwidth_Bps=10e9, count=1, latency_s=3e-6)
    for device in range(16):
        inside = f"inside {node_of(device)}"
        graph.add_edge(device, inside, bandwidth_Bps=400e9, count=1, latency_s=1e-6)
    for device in range(0, 16, 2) if pairs else ():
        graph.add_edge(device, device + 1, bandwidth_Bps=600e9, count=1, latency_s=1e-7)
    return graph


@pytest.mark.parametrize(
    ("graph", "node_size"),
    [
        (drawn(lambda device: device // 8, pairs=False), 8),
        (drawn(lambda device: device // 8, pairs=True), 8),
        (drawn(lambda device: device % 2, pairs=False), 0),
    ],
    ids=["nodes", "pairs inside nodes", "nodes that alternate"],
)
@pytest.mark.sampled(3)
def test_nodes_of_a_drawing_are_what_bounds_take_them_for(graph, node_size):
    """Groups finer than a node, and nodes that are not runs of devices, are no way out."""
    scenario = load_scenario(
        "llama2-7b-64-h100", ["workload.global_batch_sequences=16", "search.tp=[1, 2, 4]"]
    )
    counts = tuple(range(1, 17))
    space = replace(scenario.space, dp=counts, pp=counts)
    problem = replace(scenario.problem(), network=graph_network(graph))
    assert problem.network.node_size == node_size
    result = search(problem, space)
    assert result.certificate.proven
    checked = audit(problem, space, result, 60, seed=1)
    assert checked.solved > 40
    assert not checked.violations


def test_nodes_of_one_device_behind_nics_are_planned():
    """All that belongs together is one innermost group there, though nobody shares a node."""
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_node("leaf", role="switch")
    for device in range(2):
        graph.add_node(device, role="device")
        graph.add_node(f"nic {device}", role="nic")
        for one, other in pairwise((device, f"nic {device}", "leaf")):
            graph.add_edge(one, other, bandwidth_Bps=50e9, count=1, latency_s=1e-6)
    scenario = load_scenario("llama2-7b-64-h100", ["search.tp=[1, 2]", "search.dp=[1, 2]"])
    problem = replace(scenario.problem(), network=graph_network(graph))
    assert problem.network.node.tolist() == [0, 1]
    result = search(problem, scenario.space)
    assert result.certificate.proven
    assert not audit(problem, scenario.space, result, 60, seed=1).violations


@pytest.mark.parametrize("sizes", ["group_sizes=[5,4,3]", "group_sizes=[2,8,2]"])
@pytest.mark.sampled(2)
def test_neighbours_in_unequal_nodes_need_not_leave_them(sizes):
    """Context-parallel rings of two may sit inside a node, whatever the nodes' sizes."""
    fabric = (
        'fabric={schema=1, name="racks", kind="hierarchical", level=['
        f'{{name="node", {sizes}, uplink_per="device", bandwidth_GBps=400.0, latency_us=1.0}},'
        '{name="rack", group_size=3, uplink_per="child", bandwidth_GBps=10.0, latency_us=5.0}]}'
    )
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [fabric, "workload.global_batch_sequences=16", "search.cp=[1, 2]", "search.tp=[1, 2]"],
    )
    problem = scenario.problem()
    assert problem.network.node_size == 0
    result = search(problem, scenario.space)
    checked = audit(problem, scenario.space, result, 120, seed=4)
    assert checked.solved > 80
    assert not checked.violations


@pytest.mark.parametrize(
    ("figures", "missing"),
    [
        # The last leaf has no device left; nobody needs the spines whose links are all gone.
        (
            "devices=24,devices_per_node=8,nics_per_node=4,radix=8,oversubscription=[1.0,4.0]",
            ["device 23", "node 2"],
        ),
        (
            "devices=4,devices_per_node=2,nics_per_node=2,radix=64,oversubscription=[1.0,1.0]",
            ["device 2", "spine 0"],
        ),
    ],
    ids=["an empty leaf", "no way out of the only leaf"],
)
@pytest.mark.sampled(2)
def test_what_nobody_uses_may_fail(figures, missing):
    fabric = (
        f'fabric={{schema=1,name="f",kind="leaf_spine",missing={missing},'
        f"clos={{{figures},nic_bandwidth_GBps=100.0,tiers=3,hop_latency_us=3.0}},"
        "intra_node={bandwidth_GBps=150.0,latency_us=2.0}}"
    )
    scenario = load_scenario(
        "llama2-7b-64-h100", [fabric, "workload.global_batch_sequences=16", "search.cp=1"]
    )
    found = answer(scenario)
    assert found.result.certificate.proven
    assert all(entry.report for entry in found.baselines)
    assert not audit(scenario.problem(), scenario.space, found.result, 40, seed=1).violations


def test_groups_in_racks_of_different_sizes_have_phases_of_their_own():
    """Two replicas share a rack, or do not: those that do wait for fewer."""
    fabric = (
        'fabric={schema=1, name="racks", kind="hierarchical", level=['
        '{name="node", group_size=3, uplink_per="device", bandwidth_GBps=400.0, latency_us=1.0},'
        '{name="rack", group_sizes=[2,4], uplink_per="child", bandwidth_GBps=10.0, latency_us=5.0},'
        '{name="all", group_size=2, uplink_per="child", bandwidth_GBps=40.0, latency_us=6.0}]}'
    )
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [fabric, "workload.global_batch_sequences=16", "search.cp=1", "search.zero=[0,1,2,3]"],
    )
    problem = scenario.problem()
    assert not problem.network.regular
    result = search(problem, scenario.space)
    assert not audit(problem, scenario.space, result, 40, seed=5).violations


def test_flows_that_leave_by_two_nics_are_not_bounded_by_one():
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(range(4), role="device")
    graph.add_nodes_from(["leaf", "inside 0", "inside 1"], role="switch")
    for device in range(4):
        graph.add_edge(
            device, f"inside {device // 2}", bandwidth_Bps=400e9, count=1, latency_s=1e-6
        )
        for one in range(2):
            nic = f"nic {device} {one}"
            graph.add_node(nic, role="nic")
            graph.add_edge(device, nic, bandwidth_Bps=25e9, count=1, latency_s=1e-7)
            graph.add_edge(nic, "leaf", bandwidth_Bps=25e9, count=1, latency_s=1e-6)
    scenario = load_scenario("llama2-7b-64-h100", ["search.tp=[1, 2]", "search.cp=1"])
    problem = replace(
        scenario.problem(), network=graph_network(graph), overlap=NO_OVERLAP, memory_bytes=1e13
    )
    space = replace(scenario.space, dp=(1, 2, 4), pp=(1, 2, 4))
    result = search(problem, space)
    assert not audit(problem, space, result, 200, seed=5).violations


@pytest.mark.parametrize(("tp", "pp"), [(3, 5), (5, 3), (6, 2)])
def test_groups_inside_a_node_take_no_steps_between_nodes(tp, pp):
    """All groups run the protocol of the widest, which may count no steps inside."""
    scenario = load_scenario("llama2-7b-64-h100")
    whole = scenario.problem()
    point = Point(tp=tp, sp=False, dp=1, pp=pp, micro_batch=1, zero=0, order=ORDERS[1])
    placed = links(whole, point)
    bounds = TransferBounds(whole)
    for kind, op in (("all_reduce", "all_reduce"), ("reduce_scatter", "reduce_scatter")):
        for size in (1e4, 1e5, 1e6, 1e8):
            took = placed.time("tp", kind).seconds(size).min()
            share = (1 - 1 / tp) * size / whole.network.link_map.port_Bps
            least = min(start + share / reach for start, reach in bounds.lines(op, tp))
            assert least <= took * (1 + 1e-12)
