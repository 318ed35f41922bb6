"""What titles and sentences of a plan say is so, each held against the data by a rule of its own.

A title that no rule knows is a failure too: a new one needs its rule.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from nest_core.api.answer import Answer
from nest_core.costs.communication import iteration_parts
from nest_core.costs.loads import link_loads
from nest_core.documents.errors import InputError
from nest_core.documents.units import humanise_bytes, humanise_rate, humanise_seconds
from nest_core.planner import search
from nest_core.planner.baselines import NAMES, evaluate_baselines
from nest_core.report.explain.summary import certificate_line
from nest_core.report.explain.validity import rests_on
from nest_core.report.figures import (
    balance_figure,
    entries,
    level_figure,
    memory_figure,
    throughput_figure,
    timeline_figure,
)
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.report.figures.cards import Reference, iteration_part, plan_pills, throughput_card
from nest_core.report.figures.levels import linkload_figure
from nest_core.report.figures.levelwise import waterfall_figure
from nest_core.report.figures.timeline import rows_of_stages
from nest_core.report.picture.plan import plan_on_devices
from nest_core.scenario import load_scenario
from nest_core.simulator import simulate
from nest_core.simulator.activity import PARTS, slowest
from nest_core.studies.uncertainty import interval_of

PRESETS = (
    "llama2-7b-64-h100",
    "bert-large-64-v100",
    "llama2-7b-64-tpu-torus",
    "gpt3-175b-64-h100",
)
RIVALS = ("manual", "phaze", "alpa_e", "mist", "nest")
SCENARIOS = 64
LIMIT_S = 5.0


def scenario_of(draw):
    name = draw.choice(PRESETS)
    settings = [
        f"workload.global_batch_sequences={draw.choice((64, 96, 256, 640))}",
        f"workload.sequence_length_tokens={draw.choice((128, 512))}",
        f"accelerator.memory_GiB={draw.choice((2, 12, 32, 80))}",
        f"search.pp={draw.choice((1, 2, 3, 4, 8))}",
    ]
    if "torus" not in name:
        settings.append(f"fabric.clos.oversubscription=[{draw.choice((1, 2, 4))}]")
    return load_scenario(name, (draw.sample(settings, draw.randint(1, len(settings)))))


def planned(seed):
    """A random scenario's problem, answer and rows; of one in three the search is stopped."""
    draw = random.Random(seed)
    for _ in range(50):
        try:
            scenario = scenario_of(draw)
            problem = scenario.problem()
            break
        except InputError:
            continue
    calls = iter(range(10**9))
    stops = draw.choice((None, None, 3))
    result = search(
        problem,
        scenario.space,
        time_limit_s=LIMIT_S,
        stop=lambda: stops is not None and next(calls) > stops,
    )
    baselines = evaluate_baselines(
        problem, scenario.space, scenario.model, RIVALS, time_limit_s=LIMIT_S, ours=result.best
    )
    interval = interval_of(scenario, problem, result.best) if result.best else None
    found = Answer(scenario, problem.network.outline, result, tuple(baselines), interval)
    awaited = ("mcmc",) if draw.random() < 0.2 else ()
    return problem, found, entries(result, baselines, awaited)


def rates(rows):
    return {row.name: row.report.samples_per_s for row in rows if row.feasible}


def share(text):
    return float(text.replace("−", "-").replace(",", "")) / 100


def holds_of_alternatives(title, found, rows, reference):
    """Whether the finding of the table is so."""
    every, (ours, *_) = rates(rows), rows
    first, _, twins = title.partition("; ")
    if ours.name not in every:
        return title == "There is no plan of ours"
    if twins:
        names = re.split(r", | and ", re.sub(r" finds? the same plan here$", "", twins))
        plans = {row.name: row.report.plan for row in rows if row.feasible}
        assert all(plans[name] == ours.report.plan for name in names), title
        same = {name for name, plan in plans.items() if plan == ours.report.plan}
        assert same == {ours.name, *names}, title
    mine = every[ours.name]
    if match := re.fullmatch(r"(.+) is (\S+) % faster than (our plan|what the search).*", first):
        assert (match[3] == "our plan") == found.result.certificate.proven, title
        assert every[match[1]] == max(every.values())
        return every[match[1]] / mine - 1 == pytest.approx(share(match[2]), abs=0.0051)
    assert max(every.values()) <= 1.0051 * mine, title
    if match := re.fullmatch(r"Exact search is (\S+) % (faster|slower) than (.+)", first):
        sign = 1 if match[2] == "faster" else -1
        assert match[3] == reference
        return mine / every[reference] - 1 == pytest.approx(sign * share(match[1]), abs=0.0051)
    if first == f"Exact search and {reference} tie":
        return mine / every[reference] == pytest.approx(1, abs=0.0051)
    if first == "The exact search's plan is the reference":
        plans = [row.report.plan for row in rows if row.name == reference and row.feasible]
        return plans == [ours.report.plan]
    if first == "The baselines are being priced":
        return any(row.is_pending for row in rows) and reference not in every
    return first == "No reference has a plan here" and reference not in every


def holds_of_throughput(title, rows):
    every, (ours, *others) = rates(rows), rows
    if ours.report is None:
        return title == "There is no plan for this request"
    if title == "Our plan is found; the baselines are being priced":
        return any(row.is_pending for row in others)
    mine, program = every[ours.name], NAMES["nest"]
    rivals = {n: rate for n, rate in every.items() if n not in (ours.name, program)}
    if title == "Ours is the only feasible plan":
        return set(every) == {ours.name}
    if title == "No baseline has a feasible plan here to compare with":
        return not rivals
    if match := re.fullmatch(r"NEST's program is (\S+) % faster than our plan.*", title):
        return every[program] / mine - 1 == pytest.approx(share(match[1]), rel=0.01)
    best = max(rivals, key=rivals.__getitem__)
    if match := re.fullmatch(r"The best baseline, (.+), is as fast as our plan", title):
        return every[match[1]] == rivals[best] == pytest.approx(mine, rel=0.0051)
    if match := re.fullmatch(r"(.+) is (\S+) × as fast as our plan", title):
        return every[match[1]] == rivals[best] == pytest.approx(mine * float(match[2]), rel=0.006)
    match = re.fullmatch(r"Our plan is (\S+) × as fast as the best baseline, (.+)", title)
    return every[match[2]] == rivals[best] and mine == pytest.approx(
        float(match[1]) * rivals[best], abs=0.0051 * rivals[best]
    )


def holds_of_balance(title, best):
    if best is None:
        return title == "There is no plan to balance"
    loads = [stage.micro_batch_s for stage in best.stages]
    if match := re.fullmatch(r"One stage: communication takes (\S+) %", title):
        spent = best.stages[0].communication_s / best.iteration_s
        return len(loads) == 1 and spent == pytest.approx(share(match[1]), rel=0.006)
    if match := re.fullmatch(r"All (\d+) stages are balanced within 0.5 %", title):
        apart = max(abs(b / a - 1) for a, b in pairwise(sorted(loads)))
        return len(loads) == int(match[1]) and apart <= max(loads) / min(loads) - 1 < 0.0051
    match = re.fullmatch(
        r"(?:Stage (\d+) is the bottleneck|(\d+) of (\d+) stages are slowest), (\S+) % .*", title
    )
    above = max(loads) * len(loads) / sum(loads) - 1
    slow = [n + 1 for n, load in enumerate(loads) if load > 0.995 * max(loads)]
    which = slow == [int(match[1])] if match[1] else len(slow) == int(match[2]) > 1
    return which and above == pytest.approx(share(match[4]), rel=0.006, abs=1e-6)


def holds_of_memory(title, best, limit):
    if best is None:
        return title == f"There is no plan to hold in {humanise_bytes(limit)} per device"
    needs = [humanise_bytes(stage.memory.total) for stage in best.stages]
    most = max(stage.memory.total for stage in best.stages)
    full = [n + 1 for n, text in enumerate(needs) if text == humanise_bytes(most)]
    match = re.fullmatch(
        r"(?:(The one stage) fits|Stage (\d+) is fullest|(\d+) of (\d+) stages are fullest): "
        r"(.+) of (.+), (.+) free",
        title,
    )
    which = (
        len(needs) == 1
        if match[1]
        else full == [int(match[2])]
        if match[2]
        else (len(full), len(needs)) == (int(match[3]), int(match[4])) and len(full) > 1
    )
    return (
        which
        and most <= limit
        and match.groups()[4:]
        == (humanise_bytes(most), humanise_bytes(limit), humanise_bytes(limit - most))
    )


def holds_of_proof(text, result):
    """Whether what is said of the proof is so: of a card, of a line, of a row."""
    proof = result.certificate
    if match := re.search(r"optimum at most (\S+) % faster", text):
        limit = result.best.iteration_s / proof.lower_bound_s - 1
        return not proof.proven and limit <= share(match[1]) * (1 + 1e-9) <= 1.02 * limit + 1e-9
    if "best so far" in text.lower():
        return not proof.proven and result.best is not None
    if "no plan until then" in text:
        return not proof.proven and result.best is None
    if match := re.search(r"None of (\S+) plans is feasible", text):
        return proof.proven and result.best is None and match[1] == f"{proof.points:,}"
    match = re.search(r"none of (\S+) plans is faster", text, re.IGNORECASE)
    return (
        proof.proven
        and match[1] == f"{proof.points:,}"
        and proof.lower_bound_s == pytest.approx(result.best.iteration_s)
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_every_claim_of_a_random_plan_is_so(seed):
    problem, found, rows = planned(seed)
    result, best, scenario = found.result, found.best, found.scenario
    reference = NAMES[random.Random(len(rows)).choice(("manual", "phaze", "mist"))]
    table = alternatives_table(
        rows, scenario.sequence, found.interval, reference, result.certificate
    )
    title = re.search(r'class="nest-title">([^<]*)<', table)[1].replace("&#x27;", "'")
    assert holds_of_alternatives(title, found, rows, reference), title
    if best is not None:
        assert holds_of_proof(re.search(r'nest-words">([^<]*)</td></tr>', table)[1], result)
    title = throughput_figure(rows, scenario.sequence, found.interval).title
    assert holds_of_throughput(title, rows), title
    assert holds_of_balance(balance_figure(rows).title, best), balance_figure(rows).title
    limit = scenario.accelerator.memory_bytes
    title = memory_figure(rows, limit).title
    assert holds_of_memory(title, best, limit), title
    line = rests_on(found.validity_of(best) if best else None, result)
    assert holds_of_proof(line, result), line
    assert ("Proven optimal" in certificate_line(result)) == (
        result.certificate.proven and best is not None
    )
    if best is not None:
        claims_of_a_plan(problem, found)


def claims_of_levels(bars, title, network):
    """The bar said "data, leaf" where the fabric's title says that data crosses the spine: links
    that bind a class of traffic are links that it crosses."""
    order = [level.name for level in network.levels]
    reach = {
        axis: order.index(where)
        for axes, where in re.findall(
            r"([\w, ]+) traffic (?:stays in|turns at|crosses) the ([\w -]+)", title
        )
        for axis in re.findall(r"tensor|context|data|pipeline", axes.lower())
    }
    assert reach or title == "One device holds the whole model"
    named = re.findall(r'<b>(\w+)</b><br><span class="nest-dim">([^<]+)</span>', bars)
    for axis, under in (pair for pair in named if pair[0] != "bubble"):
        ends = [axis, "pipeline"] if axis == "data" else [axis]  # tied copies are at both ends
        ends = ["tensor", "context", "data"] if axis == "expert" else ends  # which lie in these
        level = order.index(under.removesuffix("-bound"))
        assert level <= max(reach[end] for end in ends if end in reach), (axis, under, title)
        assert under.endswith("-bound")


def claims_of_a_plan(problem, found):
    result, best, scenario = found.result, found.best, found.scenario
    proof, network = result.certificate, problem.network
    pills = plan_pills(best, scenario.fabric.devices, is_proven=proof.proven)
    assert ("Best plan so far" in pills) == (not proof.proven)
    card = throughput_card(1.0, found.interval, Reference("Mine"), proof.room)
    assert ("best so far" in card) == (not proof.proven)
    assert proof.proven or holds_of_proof(card, result)
    parts = iteration_parts(problem, best)
    text = iteration_part(parts, best.iteration_s, "")
    spent = share(re.search(r'nest-title">(\S+) % of an iteration is not compute', text)[1])
    assert 1 - parts[0].seconds / best.iteration_s == pytest.approx(spent, abs=0.006)
    tail = humanise_seconds(best.iteration_s - parts[0].seconds)
    assert f"its last {tail}" in text or len(parts) == 1
    if network.torus is None:
        claims_of_levels(text, plan_on_devices(network, best.plan).finding, network)
    title = level_figure(network).title
    speeds = [level.bandwidth_Bps for level in network.levels]
    if title.startswith("Full bandwidth at every level"):
        assert max(speeds) == pytest.approx(min(speeds), rel=2e-3)
    elif match := re.fullmatch(r"Bandwidth per device (falls|rises) (\S+)-fold, .+", title):
        times = speeds[0] / speeds[-1] if match[1] == "falls" else speeds[-1] / speeds[0]
        assert times == pytest.approx(float(match[2]), rel=0.006)
    elif match := re.fullmatch(r"Bandwidth per device is least at (.+): (.+)", title):
        assert humanise_rate(min(speeds)) == match[2]
    else:
        assert title == f"One level: {humanise_rate(speeds[0])} between any two devices"
    iteration = simulate(problem, best.plan)
    activities = slowest(iteration)
    title = timeline_figure(iteration, best, rows_of_stages(iteration, activities)).title
    waits = [each.seconds[PARTS.index("waiting")] / iteration.seconds for each in activities]
    loads = [stage.micro_batch_s for stage in best.stages]
    if match := re.fullmatch(
        r"Stage (\d+) sets the pace and waits (\S+) %; others to (\S+) %", title
    ):
        assert loads[int(match[1]) - 1] == max(loads)
        assert waits[int(match[1]) - 1] == pytest.approx(share(match[2]), rel=0.006, abs=1e-6)
        assert max(waits) == pytest.approx(share(match[3]), rel=0.006, abs=1e-6)
    elif match := re.fullmatch(r"Stages wait (?:(\S+) % to )?(\S+) % of the time", title):
        assert max(waits) == pytest.approx(share(match[2]), rel=0.006, abs=1e-6)
        assert min(waits) == pytest.approx(share(match[1] or match[2]), rel=0.02, abs=1e-6)
    else:
        assert title == "One stage: no stage waits for another"
        assert len(loads) == 1
    every = link_loads(problem, best)
    title = linkload_figure(every).title
    tiers = [max(tier.busiest.users.values(), default=0.0) for tier in every.tiers]
    if match := re.search(r"busy up to (\S+) %, (mostly|most) with", title):
        worst = max(every.tiers, key=lambda tier: tier.busiest.utilisation)
        assert worst.busiest.utilisation == pytest.approx(share(match[1]), rel=0.006)
        half = max(worst.busiest.users.values()) > 0.5 * sum(worst.busiest.users.values())
        assert half == (match[2] == "mostly")
    else:
        assert title == "No link is busy for long"
        assert max(tiers) < 0.01
    program = next(b for b in found.baselines if b.name == "nest")
    title = waterfall_figure(program, best.iteration_s).title
    if match := re.fullmatch(
        r"NEST's level-wise program is (\S+) % (faster|slower) than .*", title
    ):
        sign = 1 if match[2] == "slower" else -1
        longer = program.report.iteration_s / best.iteration_s - 1
        assert longer == pytest.approx(sign * share(match[1]), rel=0.006)
    elif title == "NEST's level-wise program and the exact search tie":
        assert program.report.iteration_s == pytest.approx(best.iteration_s, rel=0.01)
