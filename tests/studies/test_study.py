"""Studies: their files, their points, and how answers come from workers that may die."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from inline import Inline
from studies import STUDY, TINY, written

from nest_core.documents.errors import InputError
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies import engine
from nest_core.studies.engine import WorkerPool
from nest_core.studies.rows import rows_from, rows_of, to_parquet
from nest_core.studies.study import load_study
from nest_core.studies.sweeps import sweep
from nest_studio.session.store import Database, StoredAnswers

MIX = STUDY.replace(
    'scenario = "tiny.toml"',
    '[[mix]]\nscenario = "tiny.toml"\nweight = 3\n[[mix]]\nscenario = "long.toml"\n',
)


@pytest.fixture
def answers(tmp_path):
    return StoredAnswers(Database(f"sqlite:///{tmp_path}/store.sqlite"))


def ran(study, answers, executor=None, workers=2, stop=lambda: False):
    pool = WorkerPool.of(executor or Inline(), workers)
    return engine.run(study.points(), answers, pool, stop=stop)


def test_points_are_the_product_of_the_axes_and_equal_a_sweep(tmp_path, answers):
    study = load_study(str(written(tmp_path)), tmp_path)
    ended = ran(study, answers)
    assert (ended.points, ended.computed, ended.reused, ended.failed) == (12, 12, 0, 0)
    rows = list(rows_of(study, answers))
    assert [(row["global_batch_sequences"], row["zero"]) for row in rows] == [
        (batch, zero) for batch in (16, 32, 48, 64) for zero in (0, 1, 3)
    ]
    document, folder = scenario_document("tiny.toml", tmp_path)
    axes = [("zero", [0, 1, 3]), ("batch", [16, 32, 48, 64])]
    swept = sweep(Scenario(document, {}, folder), axes)
    assert [row["iteration_time_s"] for row in rows] == [
        point.iteration_s for point in swept.points
    ]
    assert len({row["iteration_time_s"] for row in rows}) > 4


def test_what_is_there_is_not_computed_again(tmp_path, answers):
    file = written(tmp_path)
    ran(load_study(str(file), tmp_path), answers)
    more = file.read_text().replace("[0, 1, 3]", "[0, 1, 2, 3]")
    file.write_text(more)
    ended = ran(load_study(str(file), tmp_path), answers)
    assert (ended.computed, ended.reused) == (4, 12)
    (tmp_path / "tiny.toml").write_text(
        TINY.replace("sequence_length_tokens = 512", "sequence_length_tokens = 256")
    )
    assert ran(load_study(str(file), tmp_path), answers).reused == 0


def test_a_stopped_study_keeps_what_it_has(tmp_path, answers):
    study = load_study(str(written(tmp_path)), tmp_path)
    asked = []
    ended = ran(study, answers, workers=1, stop=lambda: len(asked.append(1) or asked) > 1)
    assert not ended.complete
    assert 0 < ended.computed < 12
    assert len(list(rows_of(study, answers))) == ended.computed
    rest = ran(study, answers)
    assert (rest.computed, rest.reused) == (12 - ended.computed, ended.computed)


def test_a_task_whose_worker_dies_is_tried_three_times_and_costs_only_itself(tmp_path, answers):
    study = load_study(str(written(tmp_path)), tmp_path)
    mortal = Inline(lambda turned: any(each.get("search.zero") == 3 for each in turned))
    ended = ran(study, answers, mortal, workers=3)
    rows = list(rows_of(study, answers))
    assert ended.failed == sum(row["status"] == "failed" for row in rows)
    assert {row["zero"] for row in rows if row["status"] == "failed"} == {3}
    assert mortal.deaths == engine.TRIES * ended.failed  # a point a task
    healed = ran(study, answers)
    assert healed.failed == 0


class Cut(Inline):
    """Workers whose tasks end after one point, or before it where that is slow."""

    def submit(self, function, base, asked, within_s, *more):
        left = 0 if asked[0].get("search.zero") == 3 else 1
        return super().submit(function, base, asked[:left], within_s[:left], *more)


def test_tasks_that_are_cut_short_go_on_and_a_point_that_never_ends_has_failed(tmp_path, answers):
    study = load_study(str(written(tmp_path)), tmp_path)
    ended = ran(study, answers, Cut(), workers=1)
    rows = list(rows_of(study, answers))
    assert len(rows) == ended.points == 12
    slow = {row["point"] for row in rows if row["zero"] == 3}
    assert {row["point"] for row in rows if row["status"] == "failed"} == slow
    assert ended.failed == len(slow)


def test_a_mix_trains_its_tokens_in_the_time_of_all(tmp_path, answers):
    long = TINY.replace("512", "256")
    study = load_study(str(written(tmp_path, MIX, long=long)), tmp_path)
    ran(study, answers)
    row = next(iter(rows_of(study, answers)))
    rates = []
    for name in ("tiny.toml", "long.toml"):
        document, folder = scenario_document(name, tmp_path)
        scenario = Scenario(document, study.overrides(0), folder).values
        (found,) = engine.plan_points(
            Scenario(document, {}, folder), [study.overrides(0)], [math.inf]
        )
        rates.append(scenario.batch * scenario.sequence / found.iteration_s)
    assert row["tokens_per_s"] == pytest.approx(1 / (0.75 / rates[0] + 0.25 / rates[1]))


def test_constraints_say_by_how_much_they_are_missed(tmp_path, answers):
    bound = "[constraints]\nmemory_GiB = { max = 5 }\n"
    study = load_study(str(written(tmp_path, STUDY + bound)), tmp_path)
    ran(study, answers)
    for row in rows_of(study, answers):
        assert row["meets"] == (row["memory_GiB"] <= 5)
        assert row["meets"] or row["reason"].endswith("over 5")
    assert len({row["meets"] for row in rows_of(study, answers)}) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"batch"',
            '"bach"',
            "axes[0].parameter must be a parameter of the scenario, but is 'bach': write batch",
        ),
        (
            '"zero"\nvalues = [0, 1, 3]',
            '"batch"\nvalues = [16]',
            "axes[1].parameter must stand once",
        ),
        ("[0, 1, 3]", "[0, 9]", "axes[1].values[1] must be"),
        (
            "from = 16, to = 64",
            "from = 64, to = 16",
            "axes[0].range must be a range that goes up, from above 0 where by a factor, but is",
        ),
        (
            "step = 16",
            "step = 16, factor = 2",
            "axes[0].range must be a range with a step or a factor, not both, but is",
        ),
        ('"tiny.toml"', '"gone.toml"', "gone.toml"),
        ("step = 16", "step = 0.00001", "axes[0].range must have at most 10,000 values"),
        ("[0, 1, 3]", "[0]\n[constraints]\nspeed = { max = 1 }", "constraints.speed"),
    ],
)
def test_bad_studies_end_in_a_sentence(tmp_path, old, new, said):
    with pytest.raises(InputError) as error:
        load_study(str(written(tmp_path, STUDY.replace(old, new))), tmp_path)
    assert said in str(error.value)


def test_a_result_is_read_again_and_another_is_refused(tmp_path, answers):
    study = load_study(str(written(tmp_path)), tmp_path)
    ran(study, answers)
    rows = list(rows_of(study, answers))
    file = to_parquet(study, rows, "1.0")
    assert rows_from(study, file, "1.1") == rows
    other = load_study(str(written(tmp_path, STUDY.replace("[0, 1, 3]", "[0, 1]"))), tmp_path)
    with pytest.raises(InputError, match=r"must be of this study"):
        rows_from(other, file, "1.0")
    with pytest.raises(InputError, match="must be a Parquet file that nest-studio sweep wrote"):
        rows_from(study, b"PAR1 no more", "1.0")
    newer = replace(study, members=(replace(study.members[0], content="as it was"),))
    with pytest.raises(InputError, match=r"version 1.1 .* but is 'of Tiny, version 1\.0': run"):
        rows_from(newer, file, "1.1")


def command(tmp_path, *more):
    own = os.environ | {"NEST_STUDIO_DATABASE": f"sqlite:///{tmp_path}/store.sqlite"}
    words = ["-m", "nest_studio", "sweep", "study.toml", "--workers", "1", "--json", *more]
    return subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, env=own, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.check
def test_a_study_killed_by_minus_9_goes_on_where_it_was(tmp_path):
    written(tmp_path, STUDY.replace("step = 16", "step = 2"))
    (tmp_path / "store.sqlite").touch()
    answers = StoredAnswers(Database(f"sqlite:///{tmp_path}/store.sqlite"))
    study = load_study("study.toml", tmp_path)
    keys = [study.key(study.members[0], study.overrides(number)) for number in range(len(study))]
    killed = command(tmp_path, "--output", "one.csv")
    until = time.monotonic() + 60
    while not answers.get(keys) and time.monotonic() < until:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    there = len(answers.get(keys))
    assert 0 < there < len(keys)
    resumed = command(tmp_path, "--output", "two.csv")
    ended = json.loads(resumed.communicate()[0])
    assert (ended["computed"], ended["reused"]) == (len(keys) - there, there)
    fresh = StoredAnswers(Database(f"sqlite:///{tmp_path}/fresh.sqlite"))
    ran(study, fresh)
    with (tmp_path / "two.csv").open() as file:
        found = [float(row["iteration_time_s"]) for row in csv.DictReader(file)]
    assert found == [row["iteration_time_s"] for row in rows_of(study, fresh)]
