"""One's own measurements: what is read of files and commands, kept, fitted and said."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from percent_columns import uneven

from nest_core.api.answer import answer
from nest_core.api.calibrate import calibrate, given_by
from nest_core.api.measurements import (
    MOST_ENTRIES,
    MeasuredEntry,
    Measurements,
    errors_in_words,
    fitted,
    moved_table,
    parameter_table,
    read_entries,
    run_table,
    signed,
)
from nest_core.api.scenario import load
from nest_core.calibration.logs import RunFacts
from nest_core.documents.errors import InputError
from nest_core.report.figures.measured import errors_picture

sys.path.append(str(Path(__file__).resolve().parents[1] / "logs"))
from printed_logs import deepspeed, megatron, text, torchtitan

DATA = Path(__file__).resolve().parents[2] / "data" / "calibration"
H100 = RunFacts(columns={"accelerator": "H100"})
SLOW = megatron([9.0, 8.0, 7.0, *[5.4] * 5])
SLOWER = megatron([9.0, 8.0, 7.0, *[5.6] * 5], micro_batch_size=2)
COMMAND = (
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --nnodes 4 --nproc-per-node 8 "
    "--micro-batch-size 1 --bf16 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--ffn-hidden-size 14336 --seq-length 8192 --global-batch-size 128"
)

PINNED = {
    "search.tp": 1,
    "search.cp": 1,
    "search.micro_batch_sequences": 1,
    "search.recompute": ["none"],
    "search.zero": [1],
    "baselines.names": [],
}


def content(lines):
    return text(lines).encode()


@pytest.fixture(scope="module")
def ours():
    """Two runs of Megatron-LM and a command."""
    return (
        Measurements("mine")
        .with_entries(read_entries(content(SLOW), "slow.log", H100))
        .with_entries(read_entries(content(SLOWER), "slower.log", H100))
        .with_entries(read_entries(b"", "", RunFacts(COMMAND, H100.columns)))
    )


@pytest.fixture(scope="module")
def fit(ours):
    return fitted(ours)


def test_files_fit_the_stack_that_the_command_fits(tmp_path, fit):
    for name, lines in (("slow.log", SLOW), ("slower.log", SLOWER)):
        (tmp_path / name).write_text(text(lines))
    files = [tmp_path / "slow.log", tmp_path / "slower.log"]
    assert fit.own_stack.toml == calibrate(files, "mine", accelerator="H100").toml
    assert fit.stack == {"name": "mine", **tomllib.loads(fit.own_stack.toml)}


def test_what_is_kept_is_read_back_whole(ours):
    assert Measurements.from_json(ours.to_json()) == ours
    again = read_entries(ours.to_csv().encode(), "runs.csv", RunFacts())
    assert [(each.name, each.kind) for each in again] == [
        ("slow.log", "run"),
        ("slower.log", "run"),
    ]
    assert [each.row for each in again] == [each.row for each in ours.runs]


def test_a_stack_in_a_scenario_plans_as_its_file_does(tmp_path, fit):
    (tmp_path / "mine.toml").write_text(fit.own_stack.toml)
    small = load("llama2-7b-64-h100", PINNED)
    inline, named = (
        load("llama2-7b-64-h100", {**PINNED, "stack": stack})
        for stack in (fit.stack, str(tmp_path / "mine.toml"))
    )
    assert inline.values == named.values
    assert inline.values.stack.name == "mine"
    assert inline.title == small.title
    before, after = answer(small.values), answer(inline.values)
    found = moved_table(before, after)
    assert [row["figure"] for row in found.rows] == [
        "throughput",
        "iteration",
        "MFU",
        "fullest stage",
    ]
    ratio = after.best.iteration_s / before.best.iteration_s - 1
    assert found.rows[1]["moved"] == signed(ratio)
    assert found.title.startswith("Iterations of ")


def test_every_run_stands_beside_its_prediction_and_interval(fit):
    rows = {row["run"]: row for row in run_table(fit).rows}
    (slow, _), (_, _), (command, wide) = fit.predicted
    assert rows["slow.log"]["measured"] == "5.40 s"
    assert rows["slow.log"]["error"] == signed(slow.seconds / 5.4 - 1)
    assert rows["slow.log"]["in it"] == "no"
    assert rows["launch command"]["measured"] == "–"
    assert wide.low_s < command.seconds < wide.high_s
    assert run_table(fit).title == "2 measured runs and 1 command, as read"


def test_differences_of_one_column_have_equal_decimals(fit):
    for table in (run_table(fit), parameter_table(fit.own_stack)):
        cells = (
            {name: cell.replace("\u00a0", " ") for name, cell in row.items()} for row in table.rows
        )
        moved = [row for row in cells if row.get("moved") != "0 %"]
        assert not uneven(moved)


@pytest.mark.parametrize("size", [0.0512, 0.123, -0.98])
def test_a_difference_has_one_decimal_at_any_size(size):
    assert signed(size).replace("\u00a0", " ").replace("−", "-") == f"{100 * size:+.1f} %"


def test_a_fit_moves_errors_and_says_so(fit):
    runs = fit.own_stack.calibration.runs
    picture = errors_picture(runs)
    inside = 0
    for run in runs:
        assert run.after_spread < run.before_spread
        assert abs(run.after / 5.5 - 1) < abs(run.before / 5.5 - 1)
        row = next(each for each in picture.rows() if each["run"] == run.row.run.id)
        assert row["yours_low_s"] < row["yours_s"] < row["yours_high_s"]
        inside += row["yours_low_s"] <= row["measured_s"] <= row["yours_high_s"]
    assert picture.title.endswith(f"{inside} of 2 in its interval")
    assert errors_in_words(fit.own_stack).startswith("Mean error ")
    moved = parameter_table(fit.own_stack)
    largest = max(
        fit.own_stack.calibration.parameters, key=lambda each: abs(each.value / each.prior - 1)
    )
    assert moved.title.endswith(signed(largest.value / largest.prior - 1))
    assert len(moved.rows) == len(fit.own_stack.calibration.parameters)


def test_what_no_log_says_is_said(ours):
    (entry,) = read_entries(content(torchtitan()), "titan.log", RunFacts())
    assert "Precision: as recipes have it, bf16." in entry.assumed
    assert any(line.startswith("From what was given") for line in ours.entries[0].assumed)


def test_a_scenario_says_what_a_log_does_not():
    small = load("llama2-7b-64-h100").values
    given = given_by(small)
    (entry,) = read_entries(content(deepspeed()), "ds.log", RunFacts("seq_len=4096", given.columns))
    assert entry.cells["model"] == small.model.name
    assert "model" in " ".join(entry.assumed)


def test_logs_of_nccl_tests_are_kept_as_they_are(ours):
    log = (DATA / "a100_all_reduce.txt").read_bytes()
    (entry,) = read_entries(log, "nccl.txt", RunFacts())
    assert (entry.kind, entry.text) == ("nccl", log.decode())
    without = fitted(Measurements("mine", (entry,)))
    assert without.own_stack is None
    assert "No run was measured" in without.unfitted


@pytest.mark.check
def test_a_log_of_nccl_tests_gives_the_stack_a_curve(ours):
    log = (DATA / "a100_all_reduce.txt").read_bytes()
    (entry,) = read_entries(log, "nccl.txt", RunFacts())
    with_curve = fitted(ours.with_entries((entry,)))
    (curve,) = with_curve.stack["curves"]
    assert curve["link"] == "nvlink"
    assert parameter_table(with_curve.own_stack).rows[-1]["figure"].startswith("nvlink curve")


@pytest.mark.parametrize(
    ("held", "name", "said"),
    [
        (b"epoch 1\nall done\n", "x.log", "without any"),
        (b"", "x.log", "empty"),
        (b"\x7fELF\x00\x00" * 90, "x.log", "binary"),
        (content(deepspeed()), "x.log", "its sequence length"),
        (b"model,layers\n", "x.csv", "without any"),
        (b"", "", "its global batch size"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(held, name, said):
    with pytest.raises(InputError) as error:
        read_entries(held, name, H100)
    assert said in str(error.value)
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize("name", ["", " mine", "a/b", ".mine", "two\nlines", "x" * 101])
def test_names_are_those_of_files(name):
    with pytest.raises(InputError, match="name must be"):
        Measurements(name)


@pytest.mark.parametrize(
    "document",
    [{}, {"name": "x", "entries": 3}, {"name": "x", "entries": [{"kind": "other"}]}],
)
def test_a_document_of_something_else_is_refused(document):
    with pytest.raises(InputError, match="measurements must be"):
        Measurements.from_json(document)


def test_entries_have_a_bound_and_the_last_of_a_name_stands(ours):
    (again,) = read_entries(content(SLOWER), "slow.log", H100)
    replaced = ours.with_entries((again,))
    assert len(replaced.entries) == len(ours.entries)
    assert replaced.without("slow.log").entries == ours.without("slow.log").entries
    many = tuple(MeasuredEntry(str(at), "command", {}) for at in range(MOST_ENTRIES + 1))
    with pytest.raises(InputError, match="at most"):
        Measurements("mine", many)
