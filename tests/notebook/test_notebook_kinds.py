"""What cells compute: the figures that the command line's JSON has, by another way."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys

import pytest

from nest_core.errors import InputError
from nest_core.figures.ratios import ratios_picture
from nest_core.notebook.kinds import compute, summarise
from nest_core.notebook.words import note_html
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.comparison import compared
from nest_core.studies.ratios import highest_ratios
from nest_core.studies.solving import never, silent
from nest_core.studies.sweeps import sweep


@pytest.fixture(scope="module")
def printed():
    """What ``nest-studio plan --json`` prints of the small scenario."""
    setting = "workload.global_batch_sequences=512"
    command = [sys.executable, "-m", "nest_studio", "plan", "llama2-7b-64-h100", "--set", setting]
    run = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def stages_on(drawn):
    """Looks of stages in a picture of a fabric."""
    return {mark.look for mark in drawn.marks if mark.look.startswith("stage-")}


def test_a_plans_row_is_what_the_command_prints(small_shown, printed):
    (row,) = small_shown.rows
    assert row["iteration time, s"] == pytest.approx(printed["iteration_time_s"], rel=1e-12)
    assert row["throughput, sequences/s"] == pytest.approx(printed["samples_per_s"], rel=1e-12)
    assert row["throughput, tokens/s"] == pytest.approx(
        printed["tokens_per_s_per_device"] * 64, rel=1e-12
    )
    assert row["MFU"] == pytest.approx(printed["mfu"], rel=1e-12)
    assert row["pipeline bubble"] == printed["bubble"]
    stages = [sum(stage["memory_bytes"].values()) for stage in printed["stages"]]
    assert row["fullest stage, bytes"] == pytest.approx(max(stages), rel=1e-12)
    rivals = [
        found["iteration_time_s"]
        for found in printed["baselines"]
        if found["feasible"] and found["name"] != "nest"  # a planner of ours
    ]
    assert row["speed-up over it"] == pytest.approx(
        min(rivals) / printed["iteration_time_s"], rel=1e-12
    )


def test_a_plan_shows_headlines_pictures_and_stages(small_shown):
    assert small_shown.headlines[0].name == "Throughput"
    assert all(entry.formula for entry in small_shown.headlines)
    assert len(small_shown.pictures) == 3
    assert len(small_shown.table.rows) == 1
    assert any("64 devices used" in line for line in small_shown.facts)
    assert stages_on(small_shown.fabric) == {"stage-4", "stage-4 bar"}  # of one stage alone


def test_what_a_cell_shows_crosses_between_processes(small_shown):
    again = pickle.loads(pickle.dumps(small_shown))
    assert again.rows == small_shown.rows
    assert again.pictures[0].title == small_shown.pictures[0].title


def test_a_plan_that_does_not_fit_says_why():
    document, _ = scenario_document("llama2-7b-64-h100")
    shown = compute("plan", {"document": document, "overrides": {"accelerator.memory_GiB": 3.0}})
    (row,) = shown.rows
    assert row["feasible"] is False
    assert row["reason"]
    assert any(line.startswith("No plan: ") for line in shown.facts)
    assert shown.table is None
    assert shown.fabric.said
    assert not stages_on(shown.fabric)


def test_progress_is_told_and_a_stop_ends_it(small_inputs):
    told = []
    compute("plan", small_inputs, progress=lambda share, words: told.append((share, words)))
    assert told[0] == (0.0, "searching plans")
    assert all(0 <= share <= 1 for share, _ in told)
    assert compute("plan", small_inputs, stop=lambda: True) is None


def swept(inputs):
    axes = [(inputs[axis]["parameter"], inputs[axis]["values"]) for axis in "xy" if inputs[axis]]
    return sweep(Scenario(inputs["document"], inputs["overrides"]), axes)


def side_by_side(inputs):
    return compared(inputs, progress=silent, stop=never)


@pytest.mark.parametrize(("kind", "run"), [("sweep", swept), ("comparison", side_by_side)])
def test_a_study_shows_its_own_rows_and_pictures(kind, run, study_inputs, study_shown):
    shown = study_shown[kind]
    study = run(study_inputs[kind])
    figures = importlib.import_module(f"nest_core.figures.{kind}").pictures(study)
    assert [dict(row) for row in shown.rows] == study.rows()
    assert [picture.title for picture in shown.pictures] == [one.title for one in figures]
    assert len(shown.rows) == 2
    assert shown.table.rows


def test_ratios_show_what_every_tier_bears(study_inputs, study_shown):
    shown = study_shown["ratios"]
    asked = study_inputs["ratios"]
    scenario = Scenario(asked["document"], asked["overrides"])
    found = highest_ratios(scenario, asked["mix"], asked["loss"])
    assert [dict(row) for row in shown.rows] == found.rows()
    (tier,) = found.tiers
    (row,) = shown.table.rows
    assert row["highest"] == f"{tier.highest.ratio:g}:1"
    assert [picture.title for picture in shown.pictures] == [ratios_picture(found).title]
    assert shown.facts[0].endswith("Llama 2 7B 75 %, Qwen2 7B 25 %.")


@pytest.mark.parametrize("kind", ["sweep", "comparison", "ratios"])
def test_a_stopped_study_shows_nothing(kind, study_inputs):
    assert compute(kind, study_inputs[kind], stop=lambda: True) is None


@pytest.mark.parametrize("kind", ["sweep", "comparison", "ratios"])
def test_rows_are_text_and_figures_only(kind, study_shown):
    rows = study_shown[kind].rows
    assert all(isinstance(v, str | int | float | None) for row in rows for v in row.values())


def test_a_file_in_the_inputs_is_refused_before_anything_is_read(small_inputs):
    document = {**small_inputs["document"], "fabric": "../fabrics/x.toml"}
    with pytest.raises(InputError, match="fabric must be a preset or a table"):
        compute("plan", {"document": document})


def test_a_summary_says_when_and_with_what(small_shown, noon):
    summary = summarise(small_shown, noon)
    assert summary.date == "2026-11-22T12:04:00+00:00"
    assert set(summary.versions) == {"nest-studio", "Python"}
    assert summary.rows == small_shown.rows


@pytest.mark.parametrize(
    ("note", "html"),
    [
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("![x](https://example.com/x.png)", '<p>!<a href="https://example.com/x.png">x</a></p>'),
        ("|a|\n|-|\n|1|", "<table>"),
    ],
)
def test_a_note_runs_nothing_and_fetches_nothing(note, html):
    assert note_html(note).startswith(html)
