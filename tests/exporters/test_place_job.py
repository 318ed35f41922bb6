"""Hosts of an allocation in the plan's order: groups whole where there is room, else a price."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nest_core.costs import price
from nest_core.costs.parse import read_plan
from nest_core.costs.placement import read_placement
from nest_core.interop.exporters import place_job
from nest_core.interop.exporters.place_job import AllocationError, place, written
from nest_core.interop.exporters.shapes import allocation_shapes
from nest_core.scenario import load_scenario

FABRIC = (
    "fabric={kind='hierarchical', name='leaves', level=["
    "{name='node', group_size=2, bandwidth_GBps=450.0, latency_us=0.5, uplink_per='device'}, "
    "{name='leaf', group_size=4, bandwidth_GBps=50.0, latency_us=1.5, uplink_per='device'}, "
    "{name='spine', group_size=2, bandwidth_GBps=50.0, latency_us=3.0, uplink_per='device', "
    "oversubscription=8.0}]}"
)
JOB = (FABRIC, "workload.global_batch_sequences=48")
PLAN = "dp=4,tp=2,pp=2,zero=1,micro_batch=1,sp=true"


def shapes_of(size, count, pods=1, paths=None):
    """A table of so many groups of so many nodes, and of as many pods of groups."""
    nodes = size * count
    levels = [
        {
            "name": "leaf",
            "groups": [node // size for node in range(nodes)],
            "losses": [{"cut": cut, "loss": cut / 100} for cut in range(1, count + 1)],
            "other": None,
        }
    ]
    if pods > 1:
        upper = [node * pods // nodes for node in range(nodes)]
        losses = [{"cut": cut, "loss": 0.5} for cut in range(1, pods + 1)]
        levels.append({"name": "pod", "groups": upper, "losses": losses, "other": None})
    ranks = [[node, slot] for node in range(nodes) for slot in (0, 1)]
    return {"nodes": nodes, "ranks": ranks, "paths": paths or {}, "levels": levels}


def cut_by_hand(shapes, hosts, leaf_of, level=0):
    groups = {}
    for node, group in enumerate(shapes["levels"][level]["groups"]):
        groups.setdefault(group, set()).add(leaf_of[hosts[node]])
    return sum(len(leaves) > 1 for leaves in groups.values())


@pytest.mark.parametrize("seed", range(60))
def test_as_many_groups_are_whole_as_any_order_has(seed):
    """Against every way of giving whole groups to leaves, tried one by one."""
    rng = random.Random(seed)
    size, count = rng.randint(1, 4), rng.randint(1, 4)
    nodes = size * count
    room = []
    while sum(room) < nodes:
        room.append(rng.randint(1, 6))
    names = [f"h{number}" for number in range(sum(room))]
    rng.shuffle(names)
    leaf_of = dict(zip(names, (f"l{k}" for k, n in enumerate(room) for _ in range(n)), strict=True))
    shapes = shapes_of(size, count)
    found = place(shapes, [f"{host} spine.{leaf}.{host}" for host, leaf in leaf_of.items()])
    assert len({*found.hosts}) == nodes
    most = max(
        sum(counts)
        for counts in itertools.product(*(range(count + 1) for _ in room))
        if sum(counts) <= count
        and all(number * size <= n for number, n in zip(counts, room, strict=True))
    )
    assert cut_by_hand(shapes, found.hosts, leaf_of) == found.cut[0] == count - most
    assert found.loss == (count - most) / 100
    assert ("as planned" in found.words) == (count == most)


def test_pods_stay_whole_unless_a_leaf_would_be_cut():
    shapes = shapes_of(2, 4, pods=2)
    pods = {"a": "p0.l0 p0.l0 p0.l1 p0.l1", "b": "p1.l2 p1.l2 p1.l3 p1.l3"}
    paths = [path for entry in pods.values() for path in entry.split()]
    rng = random.Random(5)
    order = rng.sample(range(8), 8)
    found = place(shapes, [f"h{k} s.{paths[k]}.h{k}" for k in order])
    assert (found.cut, found.loss) == ([0, 0], 0.0)
    # A pod with room for four hosts, but for one whole group of two alone.
    lone = [
        "p0.l0",
        "p0.l0",
        "p0.l1",
        "p0.l2",
        "p1.l3",
        "p1.l3",
        "p1.l4",
        "p1.l4",
        "p2.l5",
        "p2.l5",
    ]
    found = place(shapes, [f"h{k} s.{path}.h{k}" for k, path in enumerate(lone)])
    assert found.cut == [0, 1]
    assert found.loss == 0.5


def test_levels_that_hosts_do_not_name_are_said():
    """Blocks have nothing above them in Slurm's addresses."""
    shapes = shapes_of(2, 4, pods=2)
    found = place(shapes, [f"h{k} b{k // 2}.h{k}" for k in range(8)])
    assert (found.loss, found.cut) == (0.0, [0, 0])
    assert found.words.endswith("lie as planned; no host says its pod")
    assert "no host says" not in place(shapes, [f"h{k} s.b{k // 2}.h{k}" for k in range(8)]).words


def test_hosts_without_an_address_among_others_count_as_apart():
    found = place(shapes_of(2, 2), ["a s.l1.a", "b", "c s.l1.c", "d"])
    assert sorted(found.hosts[:2]) == ["a", "c"]
    assert (found.cut, found.loss) == ([1], 0.01)
    assert found.words.endswith("; hosts without a switch above them (b, ...) count as apart: 2")


def test_a_cut_is_said_with_its_price_and_the_plan_that_loses_less():
    shapes = shapes_of(4, 2)
    shapes["levels"][0]["other"] = {"plan": "dp 16, tp 4", "loss": 0.004}
    lines = [f"h{k} s.l{int(k > 4)}.h{k}" for k in range(8)]
    assert place(shapes, lines).words == (
        "8 nodes ordered: 1.0 % slower here than planned; 1 of 2 groups of 4 nodes lie below more "
        "than one leaf; dp 16, tp 4 would lose 0.4 %"
    )


def test_hosts_that_say_nothing_are_looked_up_in_slurms_topology():
    shapes = shapes_of(2, 2)
    topology = [
        "SwitchName=l1 Level=0 LinkSpeed=1 Nodes=n[1,3]",
        "SwitchName=l2 Level=0 LinkSpeed=1 Nodes=n02,n[04-04]",
        "SwitchName=s Level=1 LinkSpeed=1 Nodes=n[1,3],n02,n04 Switches=l[1-2]",
    ]
    found = place(shapes, ["n1", "n02", "n3", "n04", *topology])
    assert sorted(map(sorted, (found.hosts[:2], found.hosts[2:]))) == [["n02", "n04"], ["n1", "n3"]]
    blocks = ["BlockName=b1 BlockIndex=0 Nodes=n[1,3] BlockSize=2", "BlockName=b2 Nodes=x"]
    assert place(shapes, ["n1", "n02", "n3", "n04", *blocks]).hosts[:2] == ["n1", "n3"]
    unsaid = place(shapes, ["n1", "n2", "n3", "n4"])
    assert unsaid.loss is None
    assert "none says which switch" in unsaid.words


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["a", "b"], "the allocation must have 4 hosts, but has 2: ask for more."),
        (
            ["x", "y", "z", "w"],
            "the allocation must have hosts of the plan's fabric, but has x, y,",
        ),
        (
            ["a", "b", "c", "x"],
            "must have no host that the plan's fabric does not know, but has x:",
        ),
        (["a", "b", "a", "c"], "must have every host once, but has a twice: take one out."),
    ],
)
def test_what_is_no_allocation_for_the_plan_is_one_sentence(lines, sentence):
    paths = {name: ["s", f"l{k // 2}"] for k, name in enumerate("abcde")}
    with pytest.raises(AllocationError, match="allocation") as caught:
        place(shapes_of(2, 2, paths=paths), lines)
    assert sentence in f"{caught.value}"


def test_forms_name_every_rank_or_node():
    shapes = shapes_of(2, 1)
    assert written(shapes, ["b", "a"], "nodes") == "b\na\n"
    assert written(shapes, ["b", "a"], "ranks") == "b\nb\na\na\n"
    assert written(shapes, ["b", "a"], "rankfile").splitlines() == [
        "rank 0=b slot=0", "rank 1=b slot=1", "rank 2=a slot=0", "rank 3=a slot=1",
    ]  # fmt: skip


@pytest.mark.parametrize("stops", [False, True])
def test_the_file_runs_alone_and_stops_where_it_is_told_to(tmp_path: Path, stops):
    (tmp_path / "shapes.json").write_text(json.dumps(shapes_of(2, 2)))
    (tmp_path / "got.txt").write_text("".join(f"h{k} s.l{k % 3}.h{k}\n" for k in range(4)))
    copy = tmp_path / "place_job.py"
    copy.write_text(Path(place_job.__file__).read_text())
    command = [sys.executable, "-I", copy, "shapes.json", "got.txt", "nodes"]
    environment = {"NEST_OTHER_SHAPE": "stop"} if stops else {}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "1.0 % slower here than planned" in done.stderr
    assert (done.returncode, len(done.stdout.split())) == ((3, 0) if stops else (0, 4))


def test_a_loss_is_the_price_of_the_plan_with_its_nodes_under_the_other_leaf():
    """Nodes 0, 1, 2, ... of either stage under both leaves by turns, written as a placement."""
    values = load_scenario("llama2-7b-64-h100", JOB)
    problem = values.problem()
    plan = read_plan(PLAN, problem.layers, 16)
    report = price(problem, plan)
    (level,) = allocation_shapes(values, report)["levels"]
    assert level["groups"] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [row["cut"] for row in level["losses"]] == [2]
    nodes = [0, 4, 1, 5, 2, 6, 3, 7]
    rows = [
        "device,rank",
        *(f"{2 * node + k},{2 * n + k}" for n, node in enumerate(nodes) for k in (0, 1)),
    ]
    order = read_placement("\n".join(rows), plan, 16)
    moved = price(problem, replace(plan, point=replace(plan.point, device_order=order)))
    assert level["losses"][0]["loss"] == pytest.approx(
        moved.iteration_s / report.iteration_s - 1, rel=1e-12
    )
    assert level["losses"][0]["loss"] > 0.01
