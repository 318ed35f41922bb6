"""Cancel, with two visitors who asked for the same."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from plan_cards import big_figures

from nest_studio.jobs import waiting as jobs
from nest_studio.jobs import workers
from nest_studio.jobs.tasks.requests import best_plan
from nest_studio.plan import state as plan_state

pytestmark = pytest.mark.workers

HELD = {"scenario": "llama2-7b-64-h100", "workload.global_batch_sequences": "896"}
PATIENCE_S = 60.0


def held(gate, scenario, *, progress, stop):
    """Plans of one batch wait for a file; without it, what a search had at its first plan."""
    progress(0.5, "held")
    while scenario.values.batch == 896 and not Path(gate).exists() and not stop():
        time.sleep(0.01)
    found = []
    return best_plan(
        scenario,
        progress=lambda share, words: found.append("none yet" not in words),
        stop=lambda: stop() and any(found),
    )


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """The file that searches wait for."""
    found = tmp_path / "gate"
    monkeypatch.setattr(plan_state, "best_plan", partial(held, str(found)))
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)
    # Searches begin only once they are let go or stopped, and on a busy machine take their time.
    monkeypatch.setattr(workers, "PATIENCE_S", PATIENCE_S)
    return found


def words(page):
    return " ".join(element.value for element in (*page.info, *page.markdown))


def labels(page):
    return [button.label for button in page.button]


def until(page, condition):
    """Run a page until something is so."""
    ends = time.monotonic() + PATIENCE_S
    while not condition(page):
        assert time.monotonic() < ends, (labels(page), words(page))
        time.sleep(0.2)
        page.run()
    assert not page.exception


def throughput(page):
    shown = "".join(element.proto.body for element in page.get("html"))
    return next(iter(big_figures(shown)), None)


def stands(page):
    """Whether the page shows the plan that it was asked for, and all of it."""
    return throughput(page) is not None and not {"Cancel", "Run", "Continue"} & set(labels(page))


def test_cancel_takes_back_nobody_elses_wish(plan_page, gate):
    """A failure: one visitor's Cancel ends the search of everybody who asked for the same."""
    ann, ben = plan_page(**HELD), plan_page(**HELD)
    until(ben, lambda page: "Cancel" in labels(page))
    ann.button(key="stop-plan").click().run()
    until(ann, lambda page: "Cancel" not in labels(page))
    assert "cancelled" in words(ann)
    ben.run()
    assert "Cancel" in labels(ben)
    assert "cancelled" not in words(ben)
    gate.touch()
    until(ben, stands)
    ann.button(key="run-plan").click().run()
    until(ann, stands)
    assert throughput(ann) == throughput(ben)


def test_a_partial_answer_belongs_to_who_cancelled_and_can_be_continued(plan_page, gate):
    """A failure: who asks next gets what was found by then, as if it were the answer."""
    ann = plan_page(**HELD | {"search.micro_batch_sequences": "exactly 4"})
    until(ann, lambda page: "Cancel" in labels(page))
    ann.button(key="stop-plan").click().run()
    until(ann, lambda page: "Cancel" not in labels(page))
    assert "what was found by then is shown" in words(ann)
    assert throughput(ann) is not None
    ben = plan_page(**HELD | {"search.micro_batch_sequences": "exactly 4"})
    assert "Cancel" in labels(ben)
    gate.touch()
    until(ben, stands)
    ann.run()
    assert "Continue" in labels(ann)
    ann.button(key="run-plan").click().run()
    until(ann, stands)
    assert throughput(ann) == throughput(ben)
