"""A walk of a plan's page through random states of its search: what is shown then is so.

A search is done, stopped early, awaited, failed, or finds that nothing fits, whatever came before.
What is drawn is held against what the page draws of every request alone.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from page_parts import grey_parts, unseen_parts
from test_one_state import PARTS, batch, drawn, title_of

from nest_studio.jobs import waiting as jobs

SMALL = {"scenario": "llama2-7b-64-h100", "tab": "Timeline"}
BATCHES = (512, 640, 768, 896, 1024, 1152)
STATES = ("done", "stopped", "awaited", "failed", "infeasible")


@pytest.fixture(scope="module")
def alone():
    """What the page draws of each request by itself, filled in as tests ask for it."""
    return {}


def is_card_of(text, name):
    return f">{name}<" in text and "nest-big" in text


@pytest.mark.parametrize("seed", range(6))
def test_what_a_page_shows_in_any_state_is_so(plan_page, alone, monkeypatch, seed):
    draw = random.Random(seed)
    key = "workload.global_batch_sequences"
    for count in BATCHES:
        if count not in alone:
            alone[count] = drawn(plan_page(**SMALL, **{key: str(count)}))
    ask, searches = jobs.JobQueue.ask, {}

    def asked(queue, name, function, *args, **how):
        job = ask(queue, name, function, *args, **how)
        now, gap = searches.get(args[0].values.batch, ("done", 0.0)) if args else ("done", 0.0)
        if function.__name__ != "best_plan" or now == "done":
            return job
        other = searches.setdefault(name, jobs.WorkerJob(name))
        if other.done() or now == "awaited":
            return other
        if now == "failed":
            other.set_exception(jobs.WorkerCrash("its worker process ended twice"))
            return other
        result, *rest = job.result()
        if now == "stopped":
            proof = replace(result.certificate, proven=False, gap=gap, ended="when cancelled")
            result = replace(result, certificate=proof)
        else:
            result = replace(result, best=None, reason="no plan fits into memory")
        other.set_result((result, *rest))
        return other

    page, shown = plan_page(**SMALL, **{key: "512"}), 512
    monkeypatch.setattr(jobs.JobQueue, "ask", asked)
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)
    title = title_of(page)
    for count in draw.sample(BATCHES[1:], 5):
        now, gap = draw.choice(STATES), draw.choice((1e-6, 0.0123456, 0.4))
        searches[count], where = (now, gap), (seed, count, now)
        batch(page, count)
        assert not unseen_parts(page), where
        texts = drawn(page)
        own = {
            other: alone[other].difference(*(alone[n] for n in BATCHES if n != other))
            for other in BATCHES
        }
        there = {other for other, unique in own.items() if texts & unique}
        if now in ("awaited", "failed"):
            # What the last request left is grey as a whole, under its own title.
            assert there <= {shown}, where
            assert (grey_parts(page), title_of(page)) == (PARTS, title), where
            continue
        assert not grey_parts(page), where
        card = [text for text in texts if is_card_of(text, "Throughput")]
        assert there <= {count}, where
        shown, title = count, title_of(page)
        if now == "infeasible":
            assert "no feasible plan" in card[0], where
            continue
        assert there, where
        match = re.search(r"best so far, optimum at most (\S+) % faster", *card)
        assert (match is not None) == (now == "stopped"), where
        if now == "stopped":
            room = gap / (1 - gap)
            assert room * (1 - 1e-8) <= float(match[1]) / 100 <= 1.01 * room + 5e-6, where
