"""Of what a page shows, all belongs to one request: a title never stands above other figures.

What a page has drawn is held against what it draws for either request alone.
"""

from __future__ import annotations

import pytest
from page_parts import fabrics, grey_parts, unseen_parts

from nest_studio.jobs import waiting as jobs

SMALL = {"scenario": "llama2-7b-64-h100", "tab": "Timeline"}
BATCH = "workload.global_batch_sequences"
PARTS = {"results", "results-middle", "results-methods"}


def drawn(page):
    """All that a page draws of its answer: figures, cards, tables, the fabric, sentences."""
    texts = {element.proto.body for element in page.main.get("html")}
    texts -= {text for text in texts if "<style>" in text}
    texts |= {chart.proto.spec for chart in page.get("plotly_chart")}
    return texts | {str(fabric) for fabric in fabrics(page)}


def title_of(page):
    (title,) = [one.proto.body for one in page.get("html") if "<h1" in one.proto.body]
    return title


def batch(page, count):
    next(one for one in page.number_input if one.key == BATCH).set_value(count).run()


@pytest.fixture
def both(plan_page):
    """What the page draws for 512 sequences, and for 640."""
    page = plan_page(**SMALL)
    before = drawn(page)
    batch(page, 640)
    return before, drawn(page)


def waits_for(monkeypatch, *names):
    """Have jobs of these functions never end, where they are new."""
    ask = jobs.JobQueue.ask
    pending = {}

    def asked(queue, key, function, *args, **how):
        if function.__name__ in names:
            return pending.setdefault(key, jobs.WorkerJob(key))
        return ask(queue, key, function, *args, **how)

    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)
    monkeypatch.setattr(jobs.JobQueue, "ask", asked)
    return pending


WORKED = ("plan_fabric", "plan_parts", "plan_pictures", "priced_baselines", "levelwise_program")


@pytest.mark.baselines
@pytest.mark.parametrize("name", WORKED)
def test_what_is_awaited_is_not_there_in_an_older_form(plan_page, both, monkeypatch, name):
    """The fabric, the matrix and the rows of the last request stood under the new title."""
    before, after = both
    page = plan_page(**SMALL)
    waits_for(monkeypatch, name)
    batch(page, 640)
    assert not page.exception
    assert not grey_parts(page)
    assert not unseen_parts(page)
    assert not drawn(page) & (before - after)


@pytest.mark.baselines
def test_while_a_plan_is_awaited_all_of_the_last_one_is_grey(plan_page, both, monkeypatch):
    before, after = both
    page = plan_page(**SMALL)
    title = title_of(page)
    pending = waits_for(monkeypatch)
    ask = jobs.JobQueue.ask

    def asked(queue, key, function, *args, **how):
        if function.__name__ == "best_plan" and args[0].values.batch == 640:
            return pending.setdefault(key, jobs.WorkerJob(key))
        return ask(queue, key, function, *args, **how)

    monkeypatch.setattr(jobs.JobQueue, "ask", asked)
    batch(page, 640)
    assert title_of(page) == title
    assert grey_parts(page) == PARTS
    assert not drawn(page) & (after - before)
    page.button(key="stop-plan").click().run()
    assert grey_parts(page) == PARTS, "a plan that was stopped before it began is none"
    (job,) = pending.values()
    job.set_exception(jobs.WorkerCrash("its worker process ended twice"))
    page.run()
    assert grey_parts(page) == PARTS, "nor is one that failed"
    assert not drawn(page) & (after - before)


def test_where_nothing_fits_nothing_of_the_last_plan_is_left(plan_page, both):
    before, _ = both
    page = plan_page(**SMALL)
    alone = plan_page(**SMALL, **{"accelerator.memory_GiB": "2"})
    next(one for one in page.number_input if one.key == "accelerator.memory_GiB").set_value(
        2.0
    ).run()
    assert not page.exception
    assert not grey_parts(page)
    assert not drawn(page) & (before - drawn(alone))


def test_a_run_that_is_ended_while_it_draws_leaves_no_two_requests_side_by_side(
    plan_page, monkeypatch
):
    """A slider that was moved on showed the new title above the old fabric."""
    page = plan_page(**SMALL)
    monkeypatch.setattr("nest_studio.plan.view.middle", None)
    batch(page, 640)
    assert page.exception or page.error
    assert unseen_parts(page) == {"results-middle", "results-methods"}
