"""Jobs in worker processes: results, progress, errors, and being stopped."""

from __future__ import annotations

import os
import time

import pytest

from nest_core.errors import InputError
from nest_studio.jobs import Desk, Lost, Stopped

LONG_S = 60.0


def squared(number, *, progress, stop):
    progress(0.5, "halfway")
    return number**2, os.getpid()


def refused(*, progress, stop):
    raise InputError("number", "must be even", 3, "take 4")


def patient(*, progress, stop):
    """Ends when it is told to."""
    progress(0.25, "a quarter")
    began = time.monotonic()
    while not stop() and time.monotonic() < began + LONG_S:
        time.sleep(0.01)
    return None if stop() else "ran to its end"


def halfway(*, progress, stop):
    """Gives what it has when it is told to end."""
    progress(0.5, "half")
    while not stop():
        time.sleep(0.01)
    return "half of it"


def deaf(*, progress, stop):
    progress(0.1, "not listening")
    time.sleep(LONG_S)
    return "ran to its end"


def unreadable(*, progress, stop):
    raise FileNotFoundError("nothing there")


def priority(*, progress, stop):
    return os.nice(0)


def vanished(*, progress, stop):
    os._exit(3)


@pytest.fixture
def desk():
    opened = Desk(workers=1)
    yield opened
    opened.close()


def running(*jobs):
    """Wait until a worker took one of them up."""
    for _ in range(3000):
        if any(job.share for job in jobs):
            return
        time.sleep(0.01)
    raise AssertionError("nobody took it up")


def test_work_is_done_elsewhere_and_once(desk):
    job = desk.ask("seven", squared, 7)
    number, process = job.result(LONG_S)
    assert number == 49
    assert process != os.getpid()
    assert desk.ask("seven", squared, 7) is job
    assert job.share == 0.5
    assert job.words == "halfway"


def test_an_error_reaches_whoever_asks_until_it_is_forgotten(desk):
    job = desk.ask("odd", refused)
    for _ in range(2):
        with pytest.raises(InputError, match="must be even"):
            desk.ask("odd", refused).result(LONG_S)
    assert desk.ask("odd", refused) is job
    desk.forget("odd")
    assert desk.ask("odd", refused) is not job


def test_an_error_of_the_system_is_the_jobs_own(desk):
    with pytest.raises(FileNotFoundError, match="nothing there"):
        desk.ask("file", unreadable).result(LONG_S)


def test_a_job_that_listens_is_stopped_and_its_worker_goes_on(desk):
    first = desk.ask("process", squared, 1).result(LONG_S)
    job = desk.ask("patient", patient)
    running(job)
    job.stop()
    with pytest.raises(Stopped):
        job.result(LONG_S)
    assert desk.ask("process again", squared, 1).result(LONG_S) == first


@pytest.mark.parametrize(("work", "end"), [(deaf, Stopped), (vanished, Lost)])
def test_a_worker_that_is_lost_is_replaced(desk, work, end):
    job = desk.ask("lost", work)
    if work is deaf:
        running(job)
        job.stop()
    with pytest.raises(end):
        job.result(LONG_S)
    assert (desk.ask("lost", squared, 2) is job) == (end is Stopped)
    assert desk.ask("after", squared, 3).result(LONG_S)[0] == 9


def test_what_a_stopped_job_has_is_its_result(desk):
    job = desk.ask("half", halfway)
    running(job)
    job.stop()
    assert job.result(LONG_S) == "half of it"
    assert job.stopped
    assert desk.ask("half", halfway) is job


def test_what_is_urgent_goes_first(desk):
    held = desk.ask("held", patient)
    running(held)
    later = desk.ask("later", patient, urgent=False)
    first = desk.ask("first", squared, 2)
    held.stop()
    assert first.result(LONG_S)[0] == 4
    assert not later.ended
    later.stop()


def noted(file, name, *, progress, stop):
    with open(file, "a") as notes:
        notes.write(name)


def test_of_what_nobody_waits_for_the_newest_and_the_oldest_go_by_turns(desk, tmp_path):
    """A failure: the oldest go first, when they are about to be given up; or the newest alone."""
    notes = tmp_path / "order"
    held = desk.ask("held", patient)
    running(held)
    jobs = {name: desk.ask(name, noted, notes, name, urgent=False) for name in "abcdefgh"}
    jobs["a"].stop()
    jobs["c"].stop()
    held.stop()
    for name, job in jobs.items():
        if name in "ac":
            with pytest.raises(Stopped):
                job.result(LONG_S)
        else:
            job.result(LONG_S)
    assert notes.read_text() == "hbgdfe"


def test_what_was_given_up_is_begun_anew(desk):
    """A failure: who comes back gets what a search had found when it was stopped."""
    given_up = desk.ask("plan", halfway)
    desk.want([given_up])
    running(given_up)
    other = desk.ask("other", squared, 3)
    desk.want([other], instead=[given_up])
    again = desk.ask("plan", squared, 2)
    assert again.result(LONG_S)[0] == 4
    assert given_up.result(LONG_S) == "half of it"


def test_what_another_session_wants_is_not_given_up(desk):
    job = desk.ask("plan", halfway)
    for _ in range(2):
        desk.want([job])
    desk.want([], instead=[job])
    assert not job.stopped
    assert desk.ask("plan", halfway) is job
    desk.want([], instead=[job])
    assert job.stopped
    assert desk.ask("plan", squared, 2) is not job


def test_what_has_ended_is_kept(desk):
    job = desk.ask("plan", squared, 2)
    desk.want([job])
    job.result(LONG_S)
    desk.want([], instead=[job])
    assert desk.ask("plan", squared, 2) is job


def test_a_job_that_waits_is_stopped_before_it_begins(desk):
    held = desk.ask("held", patient)
    waiting = desk.ask("waiting", squared, 2)
    waiting.stop()
    held.stop()
    with pytest.raises(Stopped):
        waiting.result(LONG_S)


@pytest.fixture
def two():
    opened = Desk(workers=2)
    yield opened
    opened.close()


def test_orders_given_in_one_go_are_worked_on_side_by_side(two):
    """A failure: the second waits for the worker that was idle when both were given."""
    two.ask("first", squared, 1).result(LONG_S)
    both = [two.ask(name, patient) for name in ("left", "right")]
    for job in both:
        running(job)
    assert not any(job.ended for job in both)


def test_a_plan_never_waits_for_two_sweeps(two):
    """A failure: what nobody waits for takes all workers, or the one that is kept for plans."""
    sweeps = [two.ask(f"sweep {place}", patient, urgent=False) for place in range(2)]
    running(*sweeps)
    assert two.ask("plan", squared, 2).result(LONG_S)[0] == 4
    assert not any(sweep.ended for sweep in sweeps)
    assert sum(sweep.share > 0 for sweep in sweeps) == 1


def test_plans_stay_with_the_worker_that_knows_them(two):
    """A failure: a plan goes to a slower worker while the first has nothing to do."""
    workers = {two.ask(f"plan {place}", squared, place).result(LONG_S)[1] for place in range(5)}
    assert len(workers) == 1


@pytest.mark.skipif(not hasattr(os, "nice"), reason="the system knows no priorities of this kind")
def test_what_nobody_waits_for_yields_to_plans(two):
    urgent, other = (
        two.ask(str(now), priority, urgent=now).result(LONG_S) for now in (True, False)
    )
    assert other > urgent
