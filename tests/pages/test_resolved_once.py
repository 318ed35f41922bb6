"""A slider's move resolves its scenario once: in the page, whose values travel to the worker."""

from __future__ import annotations

import pickle
from collections import Counter

from nest_core.scenario import document
from nest_studio.jobs import waiting as jobs

RATIO = "fabric.clos.oversubscription.0"


def as_in_a_worker(_queue, key, function, *args, urgent=True, wanted_by=None):
    """A job that is done at once, of what a worker process would be sent."""
    job = jobs.WorkerJob(key)
    sent = pickle.loads(pickle.dumps(args))
    job.set_result(function(*sent, progress=lambda share, words: None, stop=lambda: False))
    return job


def test_a_sliders_move_resolves_the_scenario_once(plan_page, monkeypatch):
    resolved = Counter()
    real = document.values_of

    def counted(table, overrides, folder):
        resolved[overrides.get(RATIO)] += 1
        return real(table, overrides, folder)

    monkeypatch.setattr(document, "values_of", counted)
    monkeypatch.setattr(document, "_resolved", document._resolved.__wrapped__)
    monkeypatch.setattr(jobs.JobQueue, "ask", as_in_a_worker)
    page = plan_page(scenario="llama2-7b-64-h100", tour="off")
    resolved.clear()
    next(slider for slider in page.slider if slider.key == RATIO).set_value(3.0).run()
    assert not page.exception
    assert resolved.pop(3.0) == 1
    assert set(resolved) <= {None}  # the preset itself, whose cache this test takes away
