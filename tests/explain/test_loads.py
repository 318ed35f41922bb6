"""Load per link, against a count that walks explicit shortest paths with networkx.

The oracle knows the layer table (what a rank sends) and the fabric's link graph. Ranks, groups,
rings and hierarchies are written down here once more, and every flow is walked link by link.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from nest_core.costs import Plan, StageStrategy, price
from nest_core.costs.loads import link_loads
from nest_core.costs.parse import read_plan
from nest_core.costs.problem import RECOMPUTE
from nest_core.costs.software import LINKS_ALONE
from nest_core.network import link_group_name
from nest_core.network.link_map import ECMP_DRAWS
from nest_core.scenario import load_scenario

DENSE, EXPERTS = "llama2-7b-64-h100", "mixtral-8x7b-256-tpuv4like"
ON_64 = ('fabric="h100-spine-leaf-64"',)

CASES = {
    "one stage": (DENSE, "dp=32,tp=2,zero=1"),
    "zero 3": (DENSE, "dp=64,zero=3,recompute=full"),
    "zero 2, mixed recomputation": (
        DENSE,
        "dp=8,tp=2,pp=4,sp=true,zero=2,stage_recompute=full-selective-none-none",
    ),
    "whole tensors between stages": (DENSE, "dp=4,tp=4,pp=4,zero=0"),
    "context": (DENSE, "dp=4,cp=4,tp=2,pp=2,zero=1,recompute=selective"),
    "interleaved": (DENSE, "dp=4,tp=4,pp=4,interleave=2,micro_batch=2"),
    "in a V": (DENSE, "dp=4,tp=4,pp=4,schedule=zbv,micro_batch=2"),
    "stages side by side": (DENSE, "dp=8,tp=2,pp=4,cuts=0-4-10-20-34,order=tp-cp-pp-dp"),
    "idle devices": (DENSE, "dp=2,tp=4,pp=4"),
    "experts": (EXPERTS, "dp=16,tp=2,pp=2,ep=8,zero=1"),
}


@lru_cache
def asked(name, extra=()):
    settings = (*(ON_64 if name == EXPERTS else ()), *extra)
    scenario = load_scenario(name, settings)
    return scenario, replace(scenario.problem(), software=LINKS_ALONE)


def priced(case, extra=()):
    name, text = CASES[case]
    scenario, problem = asked(name, extra)
    return scenario, problem, price(problem, read_plan(text, problem.layers, 64))


class Walk:
    """Every flow over all of its shortest paths, evenly."""

    def __init__(self, fabric):
        self.graph = fabric.explicit()
        self.node = fabric.node_of()
        self.known = {}

    def way(self, source, target):
        if (source, target) not in self.known:
            paths = list(nx.all_shortest_paths(self.graph, source, target))
            found = Counter()
            for path in paths:
                for link in pairwise(path):
                    found[link] += 1 / len(paths)
            late = sum(self.graph.edges[link]["latency_s"] for link in pairwise(paths[0]))
            self.known[source, target] = found, late
        return self.known[source, target]

    def rate(self, link):
        edge = self.graph.edges[link]
        return edge["bandwidth_Bps"] * edge["count"]

    def loads(self, phase):
        """Bytes by link of flows (source, target, bytes)."""
        total = Counter()
        for source, target, size in phase:
            for link, share in self.way(source, target)[0].items():
                total[link] += share * size
        return total


def ring(groups, share):
    """``share`` of the buffer from every member to the next."""
    return [[(a, b, share) for group in groups for a, b in pairwise([*group, group[0]])]]


def hierarchy(groups, blocks):
    """Innermost block first: like member to like member of the next block, and halve."""
    phases = []
    for level, block in enumerate(blocks):
        phase, steps = [], 0
        for group in groups:
            inner = blocks[level - 1] if level else range(len(block))
            shard = 1 / max(Counter(inner[d] for d in group).values())
            whole = defaultdict(lambda: defaultdict(list))
            for device in sorted(group):
                whole[block[device]][inner[device]].append(device)
            for parts in whole.values():
                members = list(parts.values())
                fan = len(members)
                steps = max(steps, math.ceil(math.log2(fan)))
                if fan > 1:
                    for one, other in pairwise([*members, members[0]]):
                        phase += [
                            (a, b, (fan - 1) / fan * shard) for a, b in zip(one, other, strict=True)
                        ]
        phases.append((phase, steps))
    return [(phase, steps) for phase, steps in phases if phase]


def rails(groups, node):
    """A ring per member that a node has, on its part of the buffer, inside and between at once."""
    members, seated = (
        len(groups[0]),
        [sorted(group, key=lambda d: (node[d], d)) for group in groups],
    )
    held = {tuple(Counter(node[d] for d in group).values()) for group in seated}
    here = held.pop() if len(held) == 1 else ()
    if len(set(here)) != 1 or here[0] in (1, members):
        return [(phase, members - 1) for phase in ring(groups, (members - 1) / members)]
    g, inside, between = here[0], [], []
    for group in seated:
        nodes = [group[at : at + g] for at in range(0, members, g)]
        for own, beyond in pairwise([*nodes, nodes[0]]):
            part = (members - 1) / members / g
            inside += [(a, b, part * (g - 1)) for a, b in pairwise([*own, own[0]])]
            between += [(a, b, part) for a, b in zip(own, beyond, strict=True)]
    return [(inside, members - members // g), (between, members // g - 1)]


def collectives(walk, by_stage, blocks, size):
    """Loads of one reduce-scatter of ``size`` bytes of every group, stage by stage.

    All stages' groups run at once, each stage by what is faster for it.
    """
    groups = [group for of in by_stage for group in of]
    members = len(groups[0])
    if members == 1:
        return [Counter() for _ in by_stage]
    ways = [
        [[(phase, members - 1)] for phase in ring(groups, (members - 1) / members)],
        [rails(groups, blocks[0])],
        [[entry] for entry in hierarchy(groups, blocks)],
    ]
    found = []
    for of in by_stage:
        mine = {device for group in of for device in group}
        told = []
        for way in ways:
            seconds, sent = 0.0, Counter()
            for at_once in way:
                every = walk.loads([flow for phase, _ in at_once for flow in phase])
                own = [flow for phase, _ in at_once for flow in phase if flow[0] in mine]
                crossed = {link for a, b, _ in own for link in walk.way(a, b)[0]}
                for phase, steps in at_once:
                    waits = [walk.way(a, b)[1] for a, b, _ in phase if a in mine]
                    seconds += steps * max(waits, default=0.0)
                seconds += size * max(
                    (every[link] / walk.rate(link) for link in crossed), default=0
                )
                sent.update({link: size * load for link, load in walk.loads(own).items()})
            told.append((seconds, sent))
        found.append(min(told, key=lambda pair: pair[0])[1])
    return found


def oracle(scenario, problem, report):
    """Bytes on every link by class of traffic."""
    walk, plan = Walk(scenario.fabric), report.plan
    point, m = plan.point, plan.point.micro_batches(problem.batch)
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    stride, step = {}, 1
    for axis in point.order:
        stride[axis], step = step, step * getattr(point, axis)

    def device(s, d, c, t):
        return s * stride["pp"] + d * stride["dp"] + c * stride["cp"] + t * stride["tp"]

    degrees = [range(n) for n in (point.pp, point.dp, point.cp, point.tp)]
    stages, dps, cps, tps = degrees
    everyone = [sorted((device(s, d, c, 0), d, c) for d, c in product(dps, cps)) for s in stages]
    middle = [[(d, c) for _, d, c in ranks] for ranks in everyone]
    groups = {
        "tp": [[[device(s, d, c, t) for t in tps] for d, c in product(dps, cps)] for s in stages],
        "cp": [[[device(s, d, c, t) for c in cps] for d, t in product(dps, tps)] for s in stages],
        "data": [[[device(s, d, c, t) for d, c in middle[s]] for t in tps] for s in stages],
        "ep": [
            [
                [device(s, *rank, t) for rank in middle[s][i : i + point.ep]]
                for i in range(0, len(middle[s]), point.ep)
                for t in tps
            ]
            for s in stages
        ],
        "expert_data": [
            [
                [device(s, *rank, t) for rank in middle[s][i :: point.ep]]
                for i in range(point.ep)
                for t in tps
            ]
            for s in stages
        ],
    }
    blocks = [walk.node, scenario.fabric.group_of(1), np.zeros(64, int)]
    total = defaultdict(Counter)

    def add(name, loads, times):
        for link, size in loads.items():
            if size:
                total[name][link] += times * size

    def collective(name, axis, s, size, times):
        for number, sent in enumerate(cached(axis, size)):
            if number == s:
                add(name, sent, times)

    @lru_cache
    def cached(axis, size):
        return collectives(walk, groups[axis], blocks, size)

    dense, experts = table.parameters.copy(), table.expert_parameters
    if point.pp == 1:
        dense[-1] -= table.tied_parameters
    g, w = problem.state.gradients, problem.state.weights
    zero = 1 if point.zero == 2 and point.pp > 1 else point.zero  # gradients stay whole meanwhile
    often, once = {0: ([], [g, g]), 1: ([], [g, w]), 2: ([g], [w]), 3: ([g, w, w], [])}[zero]
    buckets = [("data", dense if point.ep > 1 else dense + experts)]
    if point.ep > 1:
        buckets.append(("expert_data", experts))
    for s in stages:
        again = RECOMPUTE.index(plan.recompute[s])
        for i, j in plan.virtual_stages(s):
            for layer in range(i, j):
                for axis, calls in table.calls.items():
                    if getattr(point, axis) == 1:
                        continue
                    for number, size in (
                        (calls.number[layer], calls.bytes[layer]),
                        (calls.replay_number[again, layer], calls.replay_bytes[again, layer]),
                    ):
                        if not number:
                            continue
                        members = getattr(point, axis)
                        if calls.kind == "ring":
                            (phase,) = ring(groups[axis][s], (members - 1) / members)
                            add(axis, walk.loads(phase), m * size)
                        elif calls.kind == "all_to_all":
                            phase = [
                                (a, b, 1 / members)
                                for group in groups[axis][s]
                                for a in group
                                for b in group
                                if a != b
                            ]
                            add(axis, walk.loads(phase), m * size)
                        else:
                            collective(axis, axis, s, float(size / number), m * number)
                for name, elements in buckets:
                    for size, times in [(x, m) for x in often] + [(x, 1) for x in once]:
                        if elements[layer]:
                            collective(name, name, s, float(size * elements[layer]), times)
            for end, before in ((i, True), (j, False)):
                size = table.boundary_bytes[end]
                beyond = [r for r in stages for span in plan.virtual_stages(r) if end in span]
                beyond.remove(s)
                if not size or beyond == [s]:  # which hands over to itself
                    continue
                alike = point.tp > 1 and not point.sp
                if alike:
                    collective("transfers", "tp", s, float(size), m)
                if before:
                    for d, c, t in product(dps, cps, tps):
                        one = device(beyond[0], d, c, t)
                        other = device(s, d, c, t)
                        sent = size / (point.tp if alike else 1)
                        add("transfers", walk.loads([(one, other, sent), (other, one, sent)]), m)
    return walk, total


def by_link_group(fabric, loads):
    """The oracle's links as pairs (up, down) of every child: devices, NICs, leaves."""
    kind = {"node": 0, "nic": 1, "spine": 2}
    found = [np.zeros((64, 2)), np.zeros((64, 2)), np.zeros((int(fabric.group_of(1).max()) + 1, 2))]
    for link, size in loads.items():
        for (below, above), way in ((link, 0), (link[::-1], 1)):
            if isinstance(below, int):
                found[kind[above[0]]][below, way] += size
            elif below[0] == "leaf" and above[0] == "spine":
                found[2][below[-1], way] += size
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_link_carries_what_walking_the_paths_counts(case):
    scenario, problem, report = priced(case)
    _, expected = oracle(scenario, problem, report)
    found = link_loads(problem, report)
    assert set(found.bytes) == set(expected)
    tier = problem.network.link_map.tier
    for name, loads in expected.items():
        for level, wanted in enumerate(by_link_group(scenario.fabric, loads)):
            counted = found.bytes[name][tier == level].reshape(-1, 2)
            assert counted == pytest.approx(wanted, rel=1e-9, abs=1.0), (name, level)


@pytest.mark.parametrize("case", CASES)
def test_tiers_say_what_the_links_say(case):
    _, problem, report = priced(case)
    found = link_loads(problem, report)
    link_map = problem.network.link_map
    total = sum(found.bytes.values())
    busy = total / link_map.capacity_Bps / report.iteration_s
    assert found.busy == pytest.approx(busy)
    for tier in found.tiers:
        here = link_map.tier == tier.level
        assert tier.links == here.sum()
        worst = tier.busiest
        assert worst.utilisation == pytest.approx(busy[here].max())
        assert sum(worst.users.values()) == pytest.approx(worst.utilisation)
        assert worst.load_bytes == pytest.approx(
            worst.utilisation * worst.capacity_Bps * report.iteration_s
        )
        assert sum(tier.mean_busy.values()) == pytest.approx(busy[here].mean())
    assert found.busiest[0].utilisation == pytest.approx(busy.max())


@pytest.mark.parametrize("case", ["zero 3", "context", "interleaved", "experts"])
def test_curves_choose_among_the_same_algorithms(case):
    """What the library adds changes times, and what a message is at most divided into."""
    name, text = CASES[case]
    scenario, bare = asked(name)
    problem = scenario.problem()
    plan = read_plan(text, problem.layers, 64)
    found = link_loads(problem, price(problem, plan))
    ideal = link_loads(bare, price(bare, plan))
    assert set(found.bytes) == set(ideal.bytes)
    for key in found.bytes:
        assert found.bytes[key].sum() == pytest.approx(ideal.bytes[key].sum(), rel=0.5)


def test_stages_that_repeat_the_point_send_what_it_sends():
    _, problem, report = priced("zero 2, mixed recomputation")
    plain = link_loads(problem, report)
    own = (StageStrategy.of(report.plan.point),) * 4
    plan = Plan(report.plan.point, report.plan.cuts, report.plan.recompute, own)
    mixed = link_loads(problem, price(problem, plan))
    for name, loads in plain.bytes.items():
        assert mixed.bytes[name] == pytest.approx(loads)


def test_a_stage_of_its_own_zero_sends_its_own_gradients():
    _, problem, report = priced("whole tensors between stages")
    point = report.plan.point
    own = [StageStrategy.of(point)] * 4
    own[2] = replace(own[2], zero=2)
    plan = Plan(point, report.plan.cuts, report.plan.recompute, tuple(own))
    loads = [link_loads(problem, price(problem, of)).bytes["data"] for of in (report.plan, plan)]
    changed = {
        int(group) // 2 % 64
        for group in np.flatnonzero(~np.isclose(*loads, rtol=1e-9, atol=1))
        if group < 256
    }
    assert changed == set(range(32, 48))


def test_tied_copies_meet_between_the_first_and_the_last_stage():
    scenario = load_scenario("bert-large-64-v100")
    problem = scenario.problem()
    report = price(problem, read_plan("dp=8,pp=8,order=tp-cp-dp-pp", problem.layers, 64))
    found = link_loads(problem, report)
    table = problem.table(1, False, 1, 1, 1, 1)
    sent = found.bytes["tied"][problem.network.link_map.tier == 0].reshape(-1, 2)
    # A reduce-scatter and an all-gather of the copy between two: half of it each.
    size = table.tied_parameters * problem.state.gradients
    assert sent.sum() in (0, pytest.approx(16 * 2 * size))
    outer = found.bytes["tied"].sum() - sent.sum()
    assert outer > 0


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        ("h100-spine-leaf-64", "devices 0 to 31"),
        ("tpu-v4-4x4x4", "device 0, dimension 1, upwards"),
        ("drawn-8", "to"),
        ("mi300x-mesh-64", "a link inside node 0"),
        ("dragonfly-1056", "group 0 to group 1"),
    ],
)
def test_every_kind_of_fabric_counts_and_names_its_links(fabric, words):
    scenario = load_scenario(DENSE, [f'fabric="{fabric}"'])
    problem = scenario.problem()
    plan = read_plan("dp=2,tp=2,pp=2,zero=1", problem.layers, problem.network.devices)
    found = link_loads(problem, price(problem, plan))
    assert found.tiers
    names = [link_group_name(problem.network, at) for at in range(len(found.busy))]
    assert any(words in name for name in names)
    assert all(names)


def test_ecmp_counts_one_draw():
    extra = ('fabric.routing="ecmp"',)
    _, problem, report = priced("stages side by side", extra)
    assert problem.network.link_map.variants == ECMP_DRAWS
    found, again = link_loads(problem, report), link_loads(problem, report)
    ideal = link_loads(*priced("stages side by side")[1:])
    for name, loads in found.bytes.items():
        assert np.array_equal(loads, again.bytes[name])
        assert loads.sum() == pytest.approx(ideal.bytes[name].sum(), rel=0.5)
