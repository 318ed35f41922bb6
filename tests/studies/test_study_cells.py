"""A study as a notebook's cell: the rows of the command, and no more than a cell can compute."""

from __future__ import annotations

import tomllib

import pytest
from inline import Inline

from nest_core.errors import InputError
from nest_core.notebook.kinds import compute
from nest_core.store import Database, StoredAnswers
from nest_core.studies import engine
from nest_core.studies.pool import WorkerPool
from nest_core.studies.rows import rows_of
from nest_core.studies.study import study_of

BASE = """
schema = 1
name = "Small"
question = "Which?"
scenario = "llama2-7b-64-h100"

[overrides]
"search.tp" = [8]
"search.pp" = [1]
"search.micro_batch_sequences" = [1]
"search.recompute" = ["none"]
"""
AXES = """
[[axes]]
parameter = "batch"
values = [128, 256, 512]
"""
DESIGN = """
[design]
families = ["spine-leaf", "rail-only"]
ratios = [1.0, 4.0]
"""


def test_a_cell_has_the_rows_of_the_study(tmp_path):
    document = tomllib.loads(BASE + AXES)
    shown = compute("study", {"study": document})
    study = study_of(document)
    answers = StoredAnswers(Database(f"sqlite:///{tmp_path}/store.sqlite"))

    engine.run(study.points(), answers, WorkerPool.of(Inline()))
    assert list(shown.rows) == list(rows_of(study, answers))
    assert len(shown.table.rows) == 3
    assert shown.facts == ("Which?",)
    (line,) = shown.pictures[0].plot.data
    assert list(line.y) == [row["tokens_per_s"] for row in shown.rows]


def test_a_cell_of_a_design_shows_the_choice_on_its_fabric():
    shown = compute("study", {"study": tomllib.loads(BASE + DESIGN)})
    assert shown.rows[0]["rank"] == 1
    ratio = shown.rows[0]["design"].partition(",")[0]
    assert ratio.lower() in shown.pictures[0].title.lower()
    assert shown.fabric is not None
    assert len(shown.facts) >= 2


def test_a_cell_refuses_what_it_cannot_compute_in_its_time():
    many = AXES.replace("[128, 256, 512]", str(list(range(64, 64 + 401))))
    with pytest.raises(InputError, match="at most 400 points in a notebook, but is 401"):
        compute("study", {"study": tomllib.loads(BASE + many)})
