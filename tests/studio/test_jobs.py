"""Jobs in worker processes: results, progress, errors, and being stopped."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from worker_tasks import (
    AWKWARD,
    LONG_S,
    after,
    awkward,
    deaf,
    early,
    halfway,
    hungry,
    loaded_kernels,
    noted,
    patient,
    priority,
    refused,
    sized,
    squared,
    unreadable,
    unreadable_error,
    vanished,
    was_early,
)

from nest_core.documents.errors import InputError
from nest_core.scenario import Scenario, scenario_document
from nest_studio.jobs import waiting, workers
from nest_studio.jobs.tasks.requests import warm_up
from nest_studio.jobs.waiting import JobQueue, Stopped, WorkerCrash, _key
from nest_studio.jobs.waiting import job_queue as queue_of_the_server
from nest_studio.jobs.workers import Limits
from nest_studio.server import system


@pytest.fixture(autouse=True)
def soon_ended(monkeypatch):
    """Whoever does not hear is waited for half a second, not two."""
    monkeypatch.setattr(workers, "PATIENCE_S", 0.5)


@pytest.fixture
def job_queue():
    opened = JobQueue(workers=1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def held_queue():
    """One for several tests: a worker takes a second to start."""
    opened = JobQueue(workers=1)
    yield opened
    opened.close()


def running(*jobs):
    """Wait until a worker took one of them up."""
    for _ in range(3000):
        if any(job.share for job in jobs):
            return
        time.sleep(0.01)
    raise AssertionError("nobody took it up")


def test_work_is_done_elsewhere_and_once(held_queue):
    job = held_queue.ask("seven", squared, 7)
    number, process = job.result(LONG_S)
    assert number == 49
    assert process != os.getpid()
    assert held_queue.ask("seven", squared, 7) is job
    assert job.share == 0.5
    assert job.words == "halfway"


def test_every_worker_may_begin_before_its_first_job(job_queue):
    job_queue.start(early)
    for urgent in (True, False):
        assert job_queue.ask(f"early {urgent}", was_early, urgent=urgent).result(LONG_S) == "yes"


def test_a_worker_in_place_of_another_begins_as_that_did(job_queue):
    """A failure: who edits after a job was ended waits for a new worker's imports."""
    job_queue.start(early)
    job = job_queue.ask("deaf", deaf)
    running(job)
    job.stop()
    assert job_queue.ask("early", was_early).result(LONG_S) == "yes"


def test_an_error_reaches_whoever_asks_until_it_is_forgotten(held_queue):
    job = held_queue.ask("odd", refused)
    for _ in range(2):
        with pytest.raises(InputError, match="must be even"):
            held_queue.ask("odd", refused).result(LONG_S)
    assert held_queue.ask("odd", refused) is job
    held_queue.forget("odd")
    assert held_queue.ask("odd", refused) is not job


def test_an_error_of_the_system_is_the_jobs_own(held_queue):
    with pytest.raises(FileNotFoundError, match="nothing there"):
        held_queue.ask("file", unreadable).result(LONG_S)


def test_a_job_that_listens_is_stopped_and_its_worker_goes_on(held_queue):
    first = held_queue.ask("process", squared, 1).result(LONG_S)
    job = held_queue.ask("patient", patient)
    running(job)
    job.stop()
    with pytest.raises(Stopped):
        job.result(LONG_S)
    assert held_queue.ask("process again", squared, 1).result(LONG_S) == first


def test_a_worker_that_does_not_listen_is_replaced(job_queue):
    job = job_queue.ask("deaf", deaf)
    running(job)
    job.stop()
    with pytest.raises(Stopped):
        job.result(LONG_S)
    assert job_queue.ask("after", squared, 3).result(LONG_S)[0] == 9


def test_a_job_whose_worker_dies_is_tried_once_more_and_then_said(job_queue, tmp_path):
    """A failure: it is begun again whenever a page asks, for ever."""
    notes = tmp_path / "tries"
    for _ in range(5):
        with pytest.raises(WorkerCrash, match="ended twice"):
            job_queue.ask("lost", vanished, notes).result(LONG_S)
    assert notes.read_text() == "xx"
    job_queue.forget("lost")
    assert job_queue.ask("lost", squared, 2).result(LONG_S)[0] == 4


def test_a_worker_that_is_killed_once_is_missed_by_nobody(job_queue, tmp_path):
    """A failure: pages tell of a crash although nothing is wrong with what they asked for."""
    first = job_queue.ask("first", squared, 1).result(LONG_S)
    job = job_queue.ask("second", after, tmp_path / "go", 2)
    running(job)
    os.kill(first[1], signal.SIGKILL)
    (tmp_path / "go").touch()
    assert job.result(LONG_S) == 2


@pytest.mark.parametrize("raised", [False, True], ids=["result", "error"])
@pytest.mark.parametrize("kind", AWKWARD)
def test_what_cannot_be_handed_over_is_said_and_costs_no_worker(held_queue, kind, raised):
    """A failure: it counts as a death of the worker, and is computed again for ever."""
    process = held_queue.ask("process", squared, 1).result(LONG_S)[1]
    with pytest.raises(WorkerCrash, match="cannot be handed over"):
        held_queue.ask(f"{kind} {raised}", awkward, kind, raised).result(LONG_S)
    assert held_queue.ask(f"after {kind} {raised}", squared, 2).result(LONG_S) == (4, process)


def test_an_error_that_cannot_be_read_is_said(held_queue):
    with pytest.raises(WorkerCrash, match=r"Unreadable: 1 2"):
        held_queue.ask("unreadable", unreadable_error).result(LONG_S)


def test_limits_hold_whatever_a_job_does():
    """A failure: a job computes for as long as it likes."""
    opened = JobQueue(workers=1, limits=Limits(seconds=1.0))
    try:
        cut = opened.ask("half", halfway)
        assert cut.result(LONG_S) == "half of it"
        assert cut.late
        for work in (deaf, patient):
            with pytest.raises(WorkerCrash, match="takes more than 1 s"):
                opened.ask(work.__name__, work).result(LONG_S)
    finally:
        opened.close()


@pytest.mark.parametrize("refuses", [system.REFUSES_MEMORY, False], ids=["refused", "watched"])
@pytest.mark.sampled(2)
def test_a_job_takes_no_more_memory_than_it_may(refuses, monkeypatch):
    """A failure: it does, where the system refuses it or where somebody has to look."""
    monkeypatch.setattr(system, "REFUSES_MEMORY", refuses)
    opened = JobQueue(workers=1, limits=Limits(seconds=LONG_S, memory_bytes=1e9))
    try:
        with pytest.raises(WorkerCrash, match=r"takes more than 0\.931 GiB"):
            opened.ask("hungry", hungry).result(LONG_S)
    finally:
        opened.close()


def test_small_requests_are_answered_whoever_asks_for_long_ones():
    """A failure: plans that take long, for tabs that may be closed, keep all workers."""
    opened = JobQueue(limits=Limits(quick_s=0.5))
    try:
        long = [opened.ask(f"long {place}", patient) for place in range(4)]
        running(*long)
        sweeps = [opened.ask(f"sweep {place}", patient, urgent=False) for place in range(4)]
        for number in range(3):
            assert opened.ask(f"plan {number}", squared, number).result(20.0)[0] == number**2
        small = [opened.ask(f"small {number}", squared, number, urgent=False) for number in (5, 6)]
        assert [job.result(30.0)[0] for job in small] == [25, 36]
        assert not any(job.done() for job in (*long, *sweeps)), "what makes way is not lost"
    finally:
        opened.close()


def test_what_made_way_is_done_in_turn(tmp_path):
    """A failure: short requests keep a long one from ever being finished."""
    opened = JobQueue(limits=Limits(quick_s=0.2))
    try:
        files = [tmp_path / name for name in "abc"]
        long = [opened.ask(str(file), after, file, file.name) for file in files]
        running(*long)
        for number in range(4):
            opened.ask(f"plan {number}", squared, number).result(LONG_S)
        for file in files:
            file.touch()
        assert [job.result(LONG_S) for job in long] == ["a", "b", "c"]
    finally:
        opened.close()


class Wishes(RuleBasedStateMachine):
    """Any visitors who order, cancel, leave and come back: a job runs while somebody wants it.

    The queue has no workers, so that nothing ends by itself. What is wanted is kept here a second
    time, as a plain set.
    """

    names = st.sampled_from("abc")
    places = st.sampled_from(["left", "right"])

    def __init__(self):
        super().__init__()
        self.here = {"Ann", "Ben", "Cem"}
        self.job_queue = JobQueue(workers=0, present=self.here.__contains__)
        self.wants = {}
        self.jobs = []

    @rule(who=st.sampled_from(["Ann", "Ben", "Cem"]), place=places, key=names)
    def order(self, who, place, key):
        job = self.job_queue.ask(key, squared, 1, wanted_by=(who, place))
        assert not job.stopped, "who asks gets no job that is being given up"
        self.jobs = [*(one for one in self.jobs if one is not job), job]
        self.wants[who, place] = job

    @rule(who=st.sampled_from(["Ann", "Ben", "Cem"]), number=st.integers(0, 5))
    def cancel(self, who, number):
        mine = [job for (one, _), job in self.wants.items() if one == who]
        if not mine:
            return
        job = mine[number % len(mine)]
        self.wants = {
            at: one for at, one in self.wants.items() if not (at[0] == who and one is job)
        }
        kept = self.job_queue.cancel(who, job)
        assert kept.stopped
        assert (kept is job) == (job not in self.wants.values())

    @rule(who=st.sampled_from(["Ann", "Ben", "Cem"]))
    def leave(self, who):
        self.here.discard(who)
        self.job_queue.look(at=1e6)
        self.job_queue.look(at=2e6)
        self.here.add(who)
        self.wants = {at: job for at, job in self.wants.items() if at[0] != who}

    @invariant()
    def runs_while_somebody_wants_it(self):
        for job in self.jobs:
            assert job.stopped == (job not in self.wants.values())

    def teardown(self):
        self.job_queue.close()


TestWishes = Wishes.TestCase
TestWishes.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.check
class TestWishesAtLength(Wishes.TestCase):
    settings = settings(max_examples=1500, stateful_step_count=60, deadline=None)


def test_who_is_away_for_a_moment_loses_nothing():
    """A failure: a browser that lost its line for a second finds its search begun anew."""
    here = {"Ann"}
    opened = JobQueue(workers=0, present=here.__contains__)
    job = opened.ask("plan", squared, 1, wanted_by=("Ann", "plan"))
    here.clear()
    opened.look(at=100.0)
    opened.look(at=105.0)
    assert not job.stopped
    here.add("Ann")
    opened.look(at=109.0)
    here.clear()
    opened.look(at=112.0)
    opened.look(at=121.0)
    assert not job.stopped
    opened.look(at=123.0)
    assert job.stopped


def test_what_was_cancelled_is_no_answer_for_others(held_queue):
    """A failure: who asks later gets what a search had found when somebody else stopped it."""
    job = held_queue.ask("plan", halfway, wanted_by=("Ann", "plan"))
    running(job)
    assert held_queue.cancel("Ann", job) is job
    assert job.result(LONG_S) == "half of it"
    assert held_queue.ask("plan", squared, 2, wanted_by=("Ben", "plan")).result(LONG_S)[0] == 4


def test_results_are_kept_up_to_a_number_of_bytes(held_queue, monkeypatch):
    """A failure: the server's memory grows with whatever was asked for."""
    monkeypatch.setattr("nest_studio.jobs.job_queue.KEPT_BYTES", 1e6)
    jobs = [held_queue.ask(str(number), sized, 300_000) for number in range(8)]
    for job in jobs:
        job.result(LONG_S)
    assert held_queue.ask("7", sized, 300_000) is jobs[7]
    assert (
        sum(held_queue.ask(str(number), sized, 300_000) is jobs[number] for number in (7, 6, 5))
        == 3
    )
    assert held_queue.ask("0", sized, 300_000) is not jobs[0]


def test_long_keys_count_as_what_is_kept(held_queue, monkeypatch):
    """A failure: keys that hold drawn fabrics are kept by the hundred."""
    monkeypatch.setattr("nest_studio.jobs.job_queue.KEPT_BYTES", 1e6)
    jobs = [held_queue.ask(f"{number}" * 300_000, sized, 1) for number in range(8)]
    for job in jobs:
        job.result(LONG_S)
    assert held_queue.ask("7" * 300_000, sized, 1) is jobs[7]
    assert held_queue.ask("0" * 300_000, sized, 1) is not jobs[0]


def test_workers_end_with_a_server_that_is_killed(tmp_path, root):
    """A failure: they compute on, for nobody."""
    script = tmp_path / "server.py"
    script.write_text(
        "import sys, time\n"
        "from tests_jobs import patient\n"
        "from nest_studio.jobs.waiting import JobQueue\n"
        "if __name__ == '__main__':\n"
        "    job = JobQueue(workers=1).ask('long', patient)\n"
        "    while not job.share: time.sleep(0.01)\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"
    )
    (tmp_path / "tests_jobs.py").write_text(
        "import os\n"
        "def patient(*, progress, stop):\n"
        "    open('pid', 'w').write(str(os.getpid()))\n"
        "    progress(0.5, 'at it')\n"
        "    while True: sum(range(1000))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout.readline().strip() == b"begun"
        worker = int((tmp_path / "pid").read_text())
        server.kill()
    until = time.monotonic() + 10
    while running_process(worker) and time.monotonic() < until:
        time.sleep(0.05)
    left = running_process(worker)
    if left:
        os.kill(worker, signal.SIGKILL)
    assert not left


def running_process(pid):
    """Whether a process runs, on Linux; what has ended and nobody asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_no_visitor_opens_a_second_queue():
    """A failure: every "clear cache" that a browser sends starts workers beside the old ones."""
    before = queue_of_the_server()
    streamlit.cache_resource.clear()
    streamlit.cache_data.clear()
    assert queue_of_the_server() is before
    found = set()
    threads = [threading.Thread(target=lambda: found.add(queue_of_the_server())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {before}


def test_of_what_nobody_waits_for_the_newest_and_the_oldest_go_by_turns(job_queue, tmp_path):
    """A failure: the oldest go first, when they are about to be given up; or the newest alone."""
    notes = tmp_path / "order"
    held = job_queue.ask("held", patient, urgent=False)
    running(held)
    jobs = {name: job_queue.ask(name, noted, notes, name, urgent=False) for name in "abcdefgh"}
    for name in "ac":
        job_queue.cancel("somebody", jobs[name])
    held.stop()
    for name, job in jobs.items():
        if name in "ac":
            with pytest.raises(Stopped):
                job.result(LONG_S)
        else:
            job.result(LONG_S)
    assert notes.read_text() == "bhdgef"


def test_what_was_for_later_is_begun_at_once_when_somebody_waits_for_it(job_queue):
    """A plan made ahead stands behind baselines and yields to others; who asks for it does not."""
    held = job_queue.ask("held", patient, urgent=False)
    running(held)
    later = job_queue.ask("later", squared, 3, urgent=False)
    now = job_queue.ask("later", squared, 3)
    assert now.result(LONG_S)[0] == 9
    assert now.began > later.began
    assert job_queue.ask("later", squared, 3, urgent=False) is now
    assert not held.done()
    anew = job_queue.ask("held", halfway)
    with pytest.raises(Stopped):
        held.result(LONG_S)
    running(anew)
    anew.stop()


def test_a_worker_has_run_what_is_compiled_before_its_first_job(job_queue):
    """A failure: 1.2 s for a step of a slider that a new worker answers, 0.5 s for others."""
    job_queue.start(partial(warm_up, Scenario(scenario_document("llama2-7b-64-h100")[0])))
    assert job_queue.ask("loaded", loaded_kernels).result(LONG_S) > 10


def test_a_job_that_waits_is_stopped_before_it_begins(job_queue):
    held = job_queue.ask("held", patient)
    waiting = job_queue.ask("waiting", squared, 2)
    waiting.stop()
    held.stop()
    with pytest.raises(Stopped):
        waiting.result(LONG_S)


class NewerRun(Exception):
    """What Streamlit ends a run with whose visitor has asked for another."""


def test_edits_that_follow_one_another_are_one_request(job_queue, tmp_path, monkeypatch):
    """The first is begun at once and ended by the second; the last alone is begun after it."""
    visitor, begun = waiting._Visitor(), []

    def ask(key, function, *args, **options):
        begun.append(args[-1])
        return job_queue.ask(key, function, *args, **options)

    def page_run(number, *, is_last):
        looks = itertools.count()

        def look():
            if next(looks) and not is_last:
                raise NewerRun
            return visitor

        monkeypatch.setattr(waiting, "_visitor", look)
        file = tmp_path / ("never" if number == 1 else "there")
        return waiting.submitted(after, file, number, place="plan", edited=True)

    job_queue.ask("its worker", squared, 1).result(LONG_S)
    (tmp_path / "there").touch()
    shared = SimpleNamespace(ask=ask, give_up=job_queue.give_up)
    monkeypatch.setattr(waiting, "job_queue", lambda: shared)
    monkeypatch.setattr(waiting, "QUIET_S", 2.0)
    first = page_run(1, is_last=True)
    for number in (2, 3):
        with pytest.raises(NewerRun):
            page_run(number, is_last=False)
    with pytest.raises(Stopped):
        first.result(LONG_S)
    assert page_run(4, is_last=True).result(LONG_S) == 4
    assert page_run(4, is_last=True).done()
    assert begun == [1, 4, 4]


@pytest.fixture
def two():
    opened = JobQueue(workers=2)
    yield opened
    opened.close()


def test_orders_given_in_one_go_are_worked_on_side_by_side(two):
    """A failure: the second waits for the worker that was idle when both were given."""
    two.ask("first", squared, 1).result(LONG_S)
    both = [two.ask(name, patient) for name in ("left", "right")]
    for job in both:
        running(job)
    assert not any(job.done() for job in both)


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


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((squared, {"a": 1, "b": (1, 2)}), (squared, {"b": [1, 2], "a": 1}), True),
        ((squared, "1", "2"), (squared, "1 1 2", ""), False),
        ((squared, 1.0), (patient, 1.0), False),
        ((squared, b"\x00"), (squared, b"\x01"), False),
        ((squared, "\ud800"), (squared, "\ud800"), True),
    ],
)
def test_a_job_is_known_by_its_task_and_by_what_that_is_asked(one, other, same):
    """By content: what is asked is made anew by every run of a page."""
    keys = [_key(function, args) for function, *args in (one, other)]
    assert (keys[0] == keys[1]) is same
