"""The same question has the same answer, whatever else the machine does and however many work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from nest_core.api.answer import answer, with_draws
from nest_core.documents.text import plain
from nest_core.scenario import load_scenario
from nest_studio.jobs.workers import cores, processes

CLOCKED = ("solve_seconds", "search_seconds")
SMALL = ["search.pp=1", "search.tp=[1,2]", "baselines.names=[]"]


@pytest.fixture
def busy():
    """Two endless loops for every core."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * cores())
    ]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


def written(found):
    """All that an answer says, as bytes, but how long it took."""

    def unclocked(value):
        if isinstance(value, dict):
            return {key: unclocked(of) for key, of in value.items() if key not in CLOCKED}
        return [unclocked(entry) for entry in value] if isinstance(value, list) else value

    return json.dumps(unclocked(plain(found.to_json()))).encode()


@pytest.fixture(scope="module")
def cut_short():
    """A scenario whose search ends before its proof, with its answer on a machine as it is."""
    scenario = load_scenario("mixtral-8x7b-256-tpuv4like", ["baselines.names=['manual']"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["nest_core.planner.search"], "_WORK", 1e6)
        yield scenario, answer(scenario)


def test_an_answer_is_the_same_beside_other_work(cut_short, busy):
    """Plan, gap and certificate of a search that was cut short, and what every method chose."""
    scenario, calm = cut_short
    assert not calm.result.certificate.proven
    assert calm.best is not None
    assert written(answer(scenario)) == written(calm)


def test_draws_are_the_same_in_one_process_and_in_two():
    scenario = load_scenario("llama2-7b-64-h100", SMALL)
    problem, planned = scenario.problem(), answer(scenario)
    answers = []
    for count in (1, 2):
        with processes(count) as pool:
            answers.append(written(with_draws(planned, problem, 2, pool=pool)))
    assert answers == [written(with_draws(planned, problem, 2))] * 2
