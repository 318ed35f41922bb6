"""ASTRA-sim: traces are read back field by field and replayed."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from export_cases import drawn_plans, exported, plan, priced, scenario
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.costs import Point
from nest_core.costs.schedules import in_flight, iteration_seconds
from nest_core.interop.exporters import ExportRefused, chakra, export_plan
from nest_core.interop.exporters.astra_sim import _npus
from nest_core.interop.exporters.astra_workload import passes
from nest_core.interop.exporters.values import host_mapping
from nest_core.network import collapse

TAGS = {
    "is_cpu_op": 27, "involved_dim": 28, "pg_name": 29, "comm_type": 9, "comm_size": 9,
    "comm_src": 7, "comm_dst": 7, "comm_tag": 7,
}  # fmt: skip
SMALL = "workload.global_batch_sequences=32"


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where the next field starts."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift, more = at + 1, shift + 7, data[at] > 127
        if not more:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    """Fields of a message by number: varints as int, the rest as bytes."""
    found: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            size, value = value, b""
            value, at = data[at : at + size], at + size
        else:
            assert key & 7 == 0
        found[key >> 3].append(value)
    return found


def messages(data: bytes) -> list[bytes]:
    """Messages behind their lengths."""
    found, at = [], 0
    while at < len(data):
        size, at = varint(data, at)
        found.append(data[at : at + size])
        assert at + size <= len(data)
        at += size
    return found


def decoded(trace: bytes) -> list[dict[str, Any]]:
    """Nodes of a trace, attributes beside fields."""
    first, *rest = messages(trace)
    assert fields(first) == {1: [b"0.0.4"]}
    nodes = []
    for message in rest:
        raw = fields(message)
        assert set(raw) <= {1, 2, 3, 5, 7, 10}
        after, at = [], 0
        packed = raw.get(5, [b""])[0]
        while at < len(packed):
            value, at = varint(packed, at)
            after.append(value)
        node: dict[str, Any] = {
            "id": raw.get(1, [0])[0], "name": raw[2][0].decode(), "type": raw[3][0],
            "after": after, "micros": raw.get(7, [0])[0],
        }  # fmt: skip
        for attribute in raw[10]:
            parts = fields(attribute)
            ((tag, (value,)),) = [item for item in parts.items() if item[0] != 1]
            name = parts[1][0].decode()
            assert tag == TAGS[name]
            node[name] = value.decode() if tag == 29 else value
        nodes.append(node)
    return nodes


def traces(files: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """Nodes of every NPU."""
    names = [name for name in files if name.endswith(".et")]
    return {int(name.split(".")[1]): decoded(files[name]) for name in names}


def replayed(found: dict[int, list[dict[str, Any]]], groups: dict[str, list[int]]) -> float:
    """Seconds that the traces take where links take none.

    One compute node at a time per NPU; a collective starts when all members have come to it, a
    receive ends when its message was sent. Fails if something waits for ever.
    """
    ended: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int, int, int, int], list[float]] = defaultdict(list)
    joined: dict[tuple[str, int], dict[int, tuple[int, float]]] = defaultdict(dict)
    turn: dict[tuple[int, str], int] = defaultdict(int)
    position = dict.fromkeys(found, 0)
    busy = dict.fromkeys(found, 0.0)
    left = sum(map(len, found.values()))
    while left:
        moved = False
        for npu, nodes in found.items():
            while position[npu] < len(nodes):
                node = nodes[position[npu]]
                start = max((ended[npu, one] for one in node["after"]), default=0.0)
                end = start
                if node["type"] == chakra.COMPUTE:
                    end = max(start, busy[npu]) + node["micros"] * 1e-6
                    busy[npu] = end
                elif node["type"] == chakra.SEND:
                    key = (npu, node["comm_dst"], node["comm_tag"], node["comm_size"])
                    assert node["comm_src"] == npu
                    sent[key].append(start)
                elif node["type"] == chakra.RECEIVE:
                    assert node["comm_dst"] == npu
                    key = (node["comm_src"], npu, node["comm_tag"], node["comm_size"])
                    if not sent[key]:
                        break
                    end = max(start, sent[key].pop(0))
                else:
                    name = node["pg_name"]
                    assert npu in groups[name]
                    call = joined[name, turn[npu, name]]
                    call[npu] = (node["comm_type"], start)
                    if len(call) < len(groups[name]):
                        break
                    assert len({kind for kind, _ in call.values()}) == 1
                    end = max(moment for _, moment in call.values())
                    turn[npu, name] += 1
                ended[npu, node["id"]] = end
                position[npu] += 1
                left -= 1
                moved = True
        assert moved, "something waits for ever"
    assert not any(sent.values()), "a message was never received"
    return max(ended.values(), default=0.0)


@settings(max_examples=25, derandomize=True, database=None, deadline=None)
@given(st.data())
@pytest.mark.check
def test_traces_of_any_plan_run_to_their_end(data: st.DataObject) -> None:
    """Nothing waits for ever, every message arrives, members of a group call the same."""
    model = data.draw(st.sampled_from(["llama3-8b", "mixtral-8x7b"]))
    asked = scenario(model, "h100-spine-leaf-64", SMALL)
    chosen = data.draw(drawn_plans(asked, 16))
    point = chosen.point
    assume(asked.batch % (point.dp * point.micro_batch) == 0)
    assume(point.interleave == 1 or point.micro_batches(asked.batch) % point.pp == 0)
    report = priced(asked, chosen)
    files = dict(export_plan("astra-sim", asked, report).files)
    found = traces(files)
    assert sorted(found) == list(range(64))
    groups = json.loads(files.get("groups.json", "{}"))
    seconds = replayed(found, groups)
    rounding = 1e-6 * max(map(len, found.values()))
    assert seconds <= report.iteration_s + rounding
    idle = [npu for npu, nodes in found.items() if not nodes]
    assert len(idle) == 64 - point.devices_used


@pytest.mark.parametrize(
    ("schedule", "pp", "v", "batch"),
    [("1f1b", 4, 1, 32), ("gpipe", 4, 1, 32), ("interleaved", 4, 2, 32), ("1f1b", 4, 1, 8)],
)
def test_compute_alone_takes_what_the_schedule_says(
    schedule: str, pp: int, v: int, batch: int
) -> None:
    """With equal stages, free links and no update: the fill and drain of `costs.schedules`."""
    asked = scenario(
        "gpt3-13b",
        "h100-spine-leaf-64",
        f"workload.global_batch_sequences={batch}",
        "workload.model.blocks=38",
    )
    even = tuple(40 // (pp * v) * k for k in range(pp * v + 1))
    chosen = plan(asked, dp=4, pp=pp, interleave=v, schedule=schedule, cuts=list(even))
    files = dict(export_plan("astra-sim", asked, priced(asked, chosen)).files)
    found = traces(files)
    per_stage = []
    for npu in range(0, 16, 4):
        for node in found[npu]:
            if node["name"] == "update":
                node["micros"] = 0
            elif node["type"] == chakra.COMPUTE:
                node["micros"] = 200 if node["name"][0] == "B" else 100
        per_stage.append(300e-6 * v)
    for npu, nodes in found.items():
        if npu % 4 and npu < 16:
            for node, model in zip(nodes, found[npu - npu % 4], strict=True):
                node["micros"] = model["micros"]
    seconds = replayed(found, json.loads(files["groups.json"]))
    m = chosen.point.micro_batches(batch)
    expected = iteration_seconds(chosen.point, m, np.array(per_stage), *3 * [np.zeros(pp)])
    assert math.isclose(seconds, expected, rel_tol=1e-9)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_passes_are_all_there_and_hold_what_costs_say(
    pp: int, v: int, rounds: int, gpipe: bool
) -> None:
    """Every virtual stage once forward and once backward; as many in flight as `in_flight` has."""
    name = "interleaved" if v > 1 and pp > 1 else "gpipe" if gpipe else "1f1b"
    v = v if name == "interleaved" else 1
    m = rounds * pp
    point = Point(1, False, 1, pp, 1, 0, ("tp", "cp", "dp", "pp"), schedule=name, interleave=v)
    limits = in_flight(point, m)
    for stage in range(pp):
        order = passes(point, m, stage)
        virtual_stages = range(stage, pp * v, pp)
        for forward in (True, False):
            ran = [(p.micro_batch, p.virtual_stage) for p in order if p.forward == forward]
            assert sorted(ran) == sorted((b, c) for b in range(m) for c in virtual_stages)
        held = most = 0
        for one in order:
            held += 1 if one.forward else -1
            most = max(most, held)
        assert most / v == limits[stage]


def test_groups_and_peers_are_the_layouts() -> None:
    """Tensor-parallel groups sit side by side; stages talk to the stage next door."""
    asked = scenario("llama3-8b", "h100-spine-leaf-64", SMALL)
    files = exported("astra-sim", asked, dp=4, tp=4, pp=4, order=["tp", "pp", "cp", "dp"]).files
    groups = json.loads(str(files["groups.json"]))
    by_size = defaultdict(set)
    for members in groups.values():
        by_size[len(members), members[1] - members[0]].add(tuple(members))
    assert by_size[4, 1] == {tuple(range(n, n + 4)) for n in range(0, 64, 4)}
    assert by_size[4, 16] == {tuple(range(n, 64, 16)) for n in range(16)}
    found = traces(dict(files))
    pairs = {
        (npu, node["comm_dst"])
        for npu, nodes in found.items()
        for node in nodes
        if node["type"] == chakra.SEND
    }
    assert pairs == {
        (n, n + step) for n in range(64) for step in (4, -4) if (n // 4) % 4 + step // 4 in range(4)
    }


@pytest.mark.parametrize(
    ("fabric", "chosen"),
    [
        ('"h100-spine-leaf-64"', {"dp": 64, "device_order": "rail"}),
        (
            '{kind="torus", torus={shape=[2, 4, 8], wrap=[true, true, true], '
            "link_bandwidth_GBps=50.0, hop_latency_us=1.0}}",
            {"dp": 16, "device_order": "snake"},
        ),
        ('"torus-16x16"', {"dp": 64}),
        ('"nest-fat-tree-256"', {"dp": 128, "device_order": "rack"}),
    ],
)
def test_npus_are_numbered_innermost_dimension_first(fabric: str, chosen: dict[str, Any]) -> None:
    """The network's dimensions multiply to the devices; ranks keep their places in them."""
    asked = scenario("llama3-8b", "h100-spine-leaf-64", f"fabric={fabric}")
    files = exported("astra-sim", asked, **chosen).files
    network = json.loads(str(files["network.json"]))
    counts = network["npus_count"]
    assert math.prod(counts) == asked.fabric.devices
    collapsed = collapse(asked.fabric)
    npu = _npus(collapsed)
    assert sorted(npu) == list(range(asked.fabric.devices))
    if collapsed.torus is not None:
        place = collapsed.torus.coordinates(collapsed.place)
        inner = place[[size > 1 for size in collapsed.torus.shape]]
        assert all(
            (npu // math.prod(counts[:k]) % counts[k] == inner[k]).all() for k in range(len(counts))
        )
    else:
        node = collapsed.nesting[0]
        assert (npu // counts[0] == npu[np.searchsorted(node, node)] // counts[0]).all()
    where = host_mapping(collapsed, plan(asked, **chosen).point)
    ring = json.loads(str(files["groups.json"]))["1"] if "groups.json" in files else []
    assert ring == npu[where.devices].tolist()


def test_bytes_add_up() -> None:
    """Gradients once round, activations at every boundary, weights gathered by ZeRO 3."""
    asked = scenario("llama3-8b", "h100-spine-leaf-64", SMALL)
    problem = asked.problem()
    table = problem.table(1, False, 1, 1, 1, 1)
    nodes = traces(dict(exported("astra-sim", asked, dp=8, pp=4, zero=0).files))
    cuts = plan(asked, dp=8, pp=4).cuts
    for stage, npu in enumerate((0, 8, 16, 24)):
        gradients = sum(node["comm_size"] for node in nodes[npu] if node["name"][0] == "G")
        owned = float(table.parameters[cuts[stage] : cuts[stage + 1]].sum())
        assert math.isclose(gradients, owned * problem.state.gradients, rel_tol=1e-6)
        sends = [node for node in nodes[npu] if node["type"] == chakra.SEND]
        ways = (stage < 3) + (stage > 0)
        assert len(sends) == 4 * ways
        assert {node["comm_size"] for node in sends} == {round(float(table.boundary_bytes[1]))}
    gathered = traces(dict(exported("astra-sim", asked, dp=8, zero=3).files))[0]
    gathers = [node for node in gathered if node.get("comm_type") == chakra.ALL_GATHER]
    assert len(gathers) == 2 * 4
    own = float(table.parameters.sum()) * problem.state.weights / 8
    assert all(math.isclose(node["comm_size"], own, rel_tol=1e-6) for node in gathers)


@pytest.mark.parametrize("recompute", ["full", "block:3"])
def test_seconds_are_those_of_the_price(recompute: str) -> None:
    """Compute nodes of a stage add up to what the report says it computes."""
    asked = scenario("mixtral-8x7b", "h100-spine-leaf-64", SMALL)
    asked = replace(asked, space=replace(asked.space, recompute=("none", recompute)))
    chosen = plan(asked, dp=8, pp=4, ep=8, zero=1, recompute=recompute)
    report = priced(asked, chosen)
    found = traces(dict(export_plan("astra-sim", asked, report).files))
    for stage, priced_stage in enumerate(report.stages):
        nodes = found[stage * 8]
        ran = sum(node["micros"] for node in nodes if node["type"] == chakra.COMPUTE) * 1e-6
        said = priced_stage.compute_s + priced_stage.recompute_s - priced_stage.launch_s
        assert math.isclose(ran, said, rel_tol=1e-3)


NODES = [
    (
        (0, "B0.1 dp", chakra.COLLECTIVE, (300,), 0),
        {
            "is_cpu_op": False,
            "comm_type": chakra.ALL_REDUCE,
            "comm_size": 2**40,
            "pg_name": "17",
            "involved_dim": {"values": [True] * 5},
        },
        "6c120742302e3120647018072a02ac02520e0a0969735f6370755f6f70d80100520d0a09636f6d6d5f74797065"
        "480052120a09636f6d6d5f73697a6548808080808020520e0a0770675f6e616d65ea0102313752180a0c696e76"
        "6f6c7665645f64696de201070a050101010101",
    ),
    (
        (129, "F", chakra.SEND, (), 0),
        {"is_cpu_op": False, "comm_src": 0, "comm_dst": 131_071, "comm_size": 1, "comm_tag": 3},
        "530881011201461805520e0a0969735f6370755f6f70d80100520c0a08636f6d6d5f7372633800520e0a08636f"
        "6d6d5f64737438ffff07520d0a09636f6d6d5f73697a654801520c0a08636f6d6d5f7461673803",
    ),
    (
        (3, "F", chakra.COMPUTE, (1,), 7),
        {"is_cpu_op": False},
        "1c080312014618042a01013807520e0a0969735f6370755f6f70d80100",
    ),
]


@pytest.mark.parametrize(("fields_of_node", "attributes", "encoded"), NODES)
def test_bytes_are_those_of_the_wire_format_by_hand(
    fields_of_node: Any, attributes: dict[str, Any], encoded: str
) -> None:
    """Attributes of value zero are encoded, other fields of zero are not."""
    message = chakra.node(*fields_of_node, attributes)
    assert chakra.delimited(message).hex() == encoded


def test_a_network_of_many_dimensions_names_them() -> None:
    """ASTRA-sim assumes four; of more, collectives say that they may use all."""
    levels = ", ".join(
        f'{{name="l{k}", group_size=2, bandwidth_GBps=50.0, latency_us=1.0}}' for k in range(5)
    )
    asked = scenario(
        "llama3-8b",
        "h100-spine-leaf-64",
        SMALL,
        f'fabric={{kind="hierarchical", level=[{levels}]}}',
    )
    node = next(
        node
        for node in traces(dict(exported("astra-sim", asked, dp=32).files))[0]
        if node["type"] == chakra.COLLECTIVE
    )
    assert fields(node["involved_dim"]) == {1: [b"\x01" * 5]}


def test_mixtures_are_left_to_the_price() -> None:
    """Traces are of uniform plans only."""
    with pytest.raises(ExportRefused):
        exported(
            "astra-sim", scenario("llama3-8b", "h100-spine-leaf-64", SMALL), dp=8, pp=2,
            stage_strategies=[
                {"tp": 1, "sp": False, "cp": 1, "ep": 1, "zero": 0},
                {"tp": 1, "sp": False, "cp": 1, "ep": 1, "zero": 3},
            ],
        )  # fmt: skip
