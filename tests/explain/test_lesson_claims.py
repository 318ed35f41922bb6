"""What lessons and drawn graphs say in their titles is so: ties, counts, shares of time."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from why_cases import DENSE, PLANS, priced

from nest_core.documents.units import humanise_bytes, humanise_seconds
from nest_core.fabric.graph import Element, GraphFabric, Link
from nest_core.report.picture import picture
from nest_core.teaching.drawings import lesson_drawing, plan_pictures
from nest_core.teaching.lessons import lesson
from nest_core.teaching.lessons.figure import Plans
from nest_core.teaching.lessons.walk import ALGORITHMS, FABRICS, NICS

CASES = [case for case, (name, _) in PLANS.items() if name == DENSE]
SEEDS = 200


def names_of(words):
    return set(re.split(r", | and ", words))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_who_is_fastest_and_needs_least_among_plans_of_a_lesson_is_so(seed):
    draw = random.Random(seed)
    reports = {}
    for name in draw.sample(["none", "selective", "full", "ZeRO 1"], draw.randint(1, 4)):
        report = priced(draw.choice(CASES[:3]))[1]
        fits = draw.random() < 0.8
        reports[name] = replace(report, feasible=fits, reason="" if fits else "stage 1 lacks 1 GiB")
    reports = {**reports, "wide": None} if draw.random() < 0.3 else reports
    memory, time, rate = (
        chart.title for chart in plan_pictures(Plans(reports, ("memory", "time", "rate"), 4096))
    )
    solved = {name: report for name, report in reports.items() if report is not None}
    need = {name: max(s.memory.total for s in report.stages) for name, report in solved.items()}
    least = humanise_bytes(min(need.values()))
    leanest = {name for name, size in need.items() if humanise_bytes(size) == least}
    limit = humanise_bytes(next(iter(solved.values())).memory_limit_bytes)
    match = re.fullmatch(
        r"(.+) needs? (?:least, )?(.+) of (.+?)(?: on the fullest stage|; the most is (.+))", memory
    )
    assert names_of(match[1]) == leanest
    assert (match[2], match[3]) == (least, limit)
    assert match[4] == (None if len(leanest) == len(need) else humanise_bytes(max(need.values())))
    running = {name: report for name, report in solved.items() if report.feasible}
    if not running:
        assert time == rate == "Nothing fits"
        return
    first = humanise_seconds(min(report.iteration_s for report in running.values()))
    match = re.fullmatch(r"(.+) (is|are) fastest: (.+) an iteration", time)
    fastest = {n for n, report in running.items() if humanise_seconds(report.iteration_s) == first}
    assert names_of(match[1]) == fastest
    assert match[3] == first
    assert (match[2] == "is") == (len(fastest) == 1)
    tokens = {name: f"{4096 * report.samples_per_s:,.0f}" for name, report in running.items()}
    match = re.fullmatch(r"(.+) (trains?) most: (\S+) tokens/s", rate)
    most = max(4096 * report.samples_per_s for report in running.values())
    assert match[3] == f"{most:,.0f}"
    assert names_of(match[1]) == {name for name, text in tokens.items() if text == match[3]}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("schedule", ["1F1B", "interleaved"])
@pytest.mark.parametrize("pp", [2, 4, 8])
@pytest.mark.parametrize("step", [0, 1, 2, 5, 9, 14, 20, 30])
def test_who_works_and_waited_in_a_pipeline_is_so(schedule, pp, step):
    """Counted anew from the starts and the lengths of the passes."""
    content = lesson("passes").reveal({"schedule": schedule, "pp": pp, "step": step}).content
    title = lesson_drawing(content, 800, wall=False).title
    states, played = content.steps.states, content.steps
    count = len(states)
    if content.step == 0:
        assert title == f"Before the first of {count} steps, nothing runs"
        return
    now = states[content.step - 1].seconds
    before = states[content.step - 2].seconds if content.step > 1 else 0.0
    begins, ends = played.begins_s, played.ends_s
    middle = (before + now) / 2
    works = int(((begins <= middle) & (middle < ends)).any(axis=1).sum())
    busy = np.clip(np.minimum(ends, now) - np.minimum(begins, now), 0, None).sum()
    waited = round(100 * (1 - busy / (now * played.stages)))
    match = re.fullmatch(
        r"(?:Step (\d+) of (\d+): (\d+) of (\d+) stages work; |All (\d+) steps, ([^:]+): )"
        r"(\d+) % of the stages' time so far was waiting",
        title,
    )
    assert abs(int(match[7]) - waited) <= 1
    if match[5]:
        assert int(match[5]) == count == content.step
    else:
        assert tuple(map(int, match.groups()[:4])) == (content.step, count, works, pp)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_the_title_of_a_drawn_graph_counts_is_so(seed):
    draw = random.Random(seed)
    devices, rows = draw.randint(2, 6), draw.randint(0, 3)
    elements = [Element(f"d{n}", "device") for n in range(devices)]
    if not rows:
        pairs = [(f"d{n}", f"d{n + 1}") for n in range(devices - 1)]
    else:
        elements += [Element(f"s{n}", "switch") for n in range(rows)]
        pairs = [(f"d{n}", "s0") for n in range(devices)]
        pairs += [(f"s{n}", f"s{n + 1}") for n in range(rows - 1)]
    links = tuple(Link(a, b, 25e9, draw.randint(1, 4)) for a, b in pairs)
    fabric = GraphFabric("drawn", tuple(elements), links)
    title = picture(fabric, width=600).title
    cables = sum(link.count for link in fabric.links)
    if match := re.fullmatch(r"(\d+) devices joined by (\d+) direct links?", title):
        assert (int(match[1]), int(match[2]), rows) == (devices, cables, 0)
    elif match := re.match(r"A (\d+) x 1 mesh: .* at most (\d+) hops?$", title):
        assert (int(match[1]), int(match[2]), rows) == (devices, devices - 1, 0)
    else:
        match = re.fullmatch(
            r"(\d+) devices, drawn, and what joins them (?:in (\d+) ranks? above them|among them)",
            title,
        )
        graph = nx.Graph([(link.a, link.b) for link in fabric.links])
        hops = nx.multi_source_dijkstra_path_length(graph, {f"d{n}" for n in range(devices)})
        assert int(match[1]) == devices
        assert int(match[2] or 0) == len({hop for hop in hops.values() if hop}) or devices == 1


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_who_sends_and_waits_in_a_collective_is_so(seed):
    """By the bytes of every step over the rates of the links, in the title and in the formula."""
    draw = random.Random(seed)
    settings = {
        "algorithm": draw.choice(list(ALGORITHMS)),
        "fabric": draw.choice(FABRICS),
        "nic": draw.choice(NICS),
    }
    steps = lesson("steps").reveal({**settings, "step": 1}).content.steps
    step = draw.choice((0, 1, len(steps.states), draw.randint(1, len(steps.states))))
    reveal = lesson("steps").reveal({**settings, "step": step})
    links, before, spent = steps.network.link_map, 0.0, {0: [], 1: []}
    for state in steps.states:
        sent = state.sent_bytes - before
        before = state.sent_bytes
        for level, seconds in spent.items():
            of = links.tier == level
            seconds.append(float((sent[of] / links.link_Bps[of]).max()) if of.any() else 0.0)
    count, title = len(steps.states), lesson_drawing(reveal.content, 800, wall=False).title
    if step == 0:
        assert title == f"Before the first of {count} steps, every device holds its own"
    else:
        total = steps.states[step - 1].seconds
        busy = {name: sum(spent[n][:step]) / total for n, name in enumerate(("NVLink", "NICs"))}
        head = f"Step {step} of {count}: "
        assert title.startswith(head)
        rest = title.removeprefix(head)
        if match := re.fullmatch(r"only (?:the )?(NVLink|NICs) sends, (\S+) % of the time", rest):
            assert float(match[2]) == pytest.approx(100 * busy.pop(match[1]), rel=0.006)
            assert all(share < 1e-9 for share in busy.values())
        else:
            match = re.fullmatch(
                r"(NVLink|The NICs) ha(?:s|ve) waited (\d+ %|hardly any) of the time for "
                r"(NVLink|the NICs)",
                rest,
            )
            first, second = (match[n].split()[-1] for n in (1, 3))
            assert busy[first] < busy[second]
            waited = 0.5 if match[2] == "hardly any" else float(match[2].removesuffix(" %"))
            assert abs(100 * (1 - busy[first]) - waited) <= 0.6
    _, time = reveal.formulas
    total = steps.states[-1].seconds
    shares = [sum(seconds) / total for seconds in spent.values()]
    match = re.fullmatch(
        r"(.+); in (\S+) % of it (a NIC|an NVLink) sends at (.+), the rest is latency and other "
        r"links",
        time.numbers,
    )
    assert match[1] == humanise_seconds(total)
    level = ("an NVLink", "a NIC").index(match[3])
    assert shares[level] == max(shares)
    assert float(match[2]) == pytest.approx(100 * shares[level], rel=0.006)
