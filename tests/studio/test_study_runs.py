"""The studio's workers as an executor: studies on them are those of any other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nest_core.studies.engine import WorkerPool
from nest_core.studies.rows import rows_of
from nest_core.studies.study import load_study
from nest_studio.jobs import study_runs
from nest_studio.jobs.waiting import JobQueue
from nest_studio.session.store import Database, StoredAnswers

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
from inline import Inline
from studies import written


@pytest.fixture
def queue():
    opened = JobQueue(workers=2)
    yield opened
    opened.close()


def run_of(study, folder, name, queue):
    answers = StoredAnswers(Database(f"sqlite:///{folder}/{name}.sqlite"))
    run = study_runs.begin(name, queue, answers, study_runs.swept(study))
    assert run.wait(120)
    assert run.error is None
    return run, answers


def test_a_study_on_the_studios_workers_is_that_of_this_process(tmp_path, queue):
    study = load_study(str(written(tmp_path)), tmp_path)
    run, answers = run_of(study, tmp_path, "here", queue)
    assert run.result.complete
    assert (run.answered, run.points) == (12, 12)
    alone = StoredAnswers(Database(f"sqlite:///{tmp_path}/alone.sqlite"))
    study_runs.swept(study)(WorkerPool.of(Inline()), alone, lambda *_: None, lambda: False)
    assert list(rows_of(study, answers)) == list(rows_of(study, alone))
    again, _ = run_of(study, tmp_path, "here", queue)
    assert (again.result.computed, again.result.reused) == (0, 12)
    assert not queue._jobs  # the results are in the store


@pytest.mark.check
def test_a_cancelled_study_keeps_what_it_has_and_goes_on(tmp_path, queue):
    study = load_study(str(written(tmp_path)), tmp_path)
    answers = StoredAnswers(Database(f"sqlite:///{tmp_path}/cut.sqlite"))
    told = []

    def stop():
        return len(told) > 1

    pool = WorkerPool.of(study_runs.QueueExecutor(queue))
    ended = study_runs.swept(study)(pool, answers, lambda *known: told.append(known), stop)
    assert not ended.complete
    rest, _ = run_of(study, tmp_path, "cut", queue)
    assert rest.result.computed == 12 - ended.computed
    assert rest.result.complete
