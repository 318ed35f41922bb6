"""The Plan page collapses and prices nothing itself: whatever may take long is a worker's."""

from __future__ import annotations

import html
import json
import sys

import pytest
from page_parts import fabrics

from nest_core.costs.problem import Problem
from nest_core.network import Network
from nest_core.scenario import fabric_document
from nest_studio.jobs import waiting as jobs
from nest_studio.jobs.job_queue import JobQueue
from nest_studio.jobs.tasks.requests import best_plan
from nest_studio.jobs.workers import GIB, Limits
from nest_studio.session.own_fabric import OWN
from nest_studio.session.stored import links

pytestmark = pytest.mark.workers

SMALL = {
    "scenario": "llama2-7b-64-h100",
    "search.tp": "exactly 2",
    "search.micro_batch_sequences": "exactly 2",
}
WHY = (
    "why-binding",
    "why-axes",
    "why-shadow",
    "why-head-room",
    "why-equations",
    "why-mine-part",
)


@pytest.fixture
def light_page(not_made_here, plan_page):
    """The page in a process where no network and no problem can be made."""
    not_made_here(Network, Problem)
    return plan_page


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


@pytest.mark.baselines
def test_the_server_makes_no_part_of_an_answer(light_page):
    page = light_page(**SMALL)
    assert not page.exception
    shown = text_of(page)
    for words in ("tokens/s", "of an iteration is not compute", "Manual"):
        assert words in shown
    (drawn,) = fabrics(page)
    assert drawn["svg"]
    assert drawn["matrix"]
    for tab, words in (
        ("Timeline", "Level at which two devices meet"),
        ("Memory", "GiB"),
        ("Stages", "Stages of our plan in figures"),
        ("Why", "Why this plan"),
    ):
        assert words in text_of(light_page(**SMALL, tab=tab))
    page.session_state["tab"] = "Timeline"
    for paint in ("stage", "link load"):
        next(group for group in page.button_group if group.key == "paint").set_value(paint).run()
        assert not page.exception
    assert "Load per link" in text_of(page)
    for part in ("tab", *WHY):
        page.session_state[part] = part != "tab" or "Why"
    page.run()
    page.text_area(key="why-mine").set_value("tp=2 dp=32").run()
    assert not page.exception
    assert not page.error
    shown = text_of(page)
    for words in ("Symbols stand in docs/method.md", "matters most", "1 % more", "Yours − ours"):
        assert words in shown


def test_where_there_is_no_plan_nothing_is_made_here_either(light_page):
    page = light_page(**SMALL, **{"accelerator.memory_GiB": "2"})
    assert not page.exception
    (drawn,) = fabrics(page)
    assert drawn["svg"]
    assert not drawn["matrix"]


def test_a_fabric_of_ones_own_is_planned_on_elsewhere(light_page):
    document = json.loads(json.dumps(fabric_document("drawn-8")))
    page = light_page(**SMALL, fabric=OWN, own=links().put({"document": document, "notes": []}))
    assert not page.exception
    assert "· 8 H100 · drawn ·" in text_of(page)
    assert len(fabrics(page)) == 1


def test_fabrics_are_compared_elsewhere(light_page):
    page = light_page(**SMALL)
    page.switch_page("../../pages/compare.py").run()
    assert not page.exception
    assert "Whole bill per token against" in text_of(page)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where memory has a limit")
@pytest.mark.check
def test_pictures_that_take_too_much_are_one_sentence_and_the_page_stands(plan_page, monkeypatch):
    ask = jobs.JobQueue.ask
    small, held = jobs.JobQueue(limits=Limits(memory_bytes=0.001 * GIB)), jobs.JobQueue()

    def divided(self, key, function, *args, **options):
        chosen = small if function.__name__ == "plan_fabric" else self
        return ask(chosen, key, function, *args, **options)

    monkeypatch.setattr(jobs, "_queue", held)
    monkeypatch.setattr(jobs.JobQueue, "ask", divided)
    page = plan_page(**SMALL)
    small.close()
    held.close()
    assert not page.exception
    (notice,) = page.info
    assert notice.value == (
        "Drawing the fabric has no result: it takes more than 0.001 GiB, the most that this studio "
        "gives one request."
    )
    assert "tokens/s" in text_of(page)
    assert not fabrics(page)
    assert "Rests on" in text_of(page)


def test_an_edit_is_planned_once_and_nothing_else_is(plan_page, monkeypatch):
    """The step after it was planned too, in case somebody moved the slider further."""
    planned, ask = [], JobQueue.ask

    def counted(queue, key, function, *args, **how):
        if function is best_plan:
            planned.append(key)
        return ask(queue, key, function, *args, **how)

    monkeypatch.setattr(JobQueue, "ask", counted)
    page = plan_page(**SMALL)
    planned.clear()
    page.slider(key="fabric.clos.oversubscription.0").set_value(1.5).run()
    assert len(set(planned)) == 1
