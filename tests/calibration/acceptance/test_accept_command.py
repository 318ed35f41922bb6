"""`nest-studio accept`: the contract's fields, a verdict from files, refusals."""

from __future__ import annotations

import json

import pytest
from nccl_text import log_of

from nest_core.calibration.acceptance.expected import expected_of, library_of
from nest_core.network import collapse
from nest_core.scenario import load_fabric
from nest_studio.cli import run

NAME = "h100-spine-leaf-64"
FIELDS = {
    "command",
    "scope",
    "predicted_busbw_Bps",
    "threshold_Bps",
    "measured_busbw_Bps",
    "passed",
}


@pytest.fixture
def logs(tmp_path):
    """Files of a fabric whose spine carries half."""
    fabric = load_fabric(NAME)
    files = []
    for test in expected_of(fabric, collapse(fabric), library_of(fabric)):
        share = 0.5 if test.scope.tier == "spine" else 1.0
        files.append(tmp_path / f"{test.scope.name}.log")
        files[-1].write_text(log_of(test, share * test.predicted_busbw_Bps))
    return [str(file) for file in files]


def test_fields_and_verdict(logs, capsys):
    assert run(["accept", NAME, "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert all(set(test) >= FIELDS for test in before["tests"])
    assert before["fault"] is None
    assert {test["passed"] for test in before["tests"]} == {None}
    assert run(["accept", NAME, "--json", "--logs", *logs]) == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    after = json.loads(out)
    assert after["fault"] == "spine"
    assert [test["passed"] for test in after["tests"]] == [True, True, False]
    assert [test["command"] for test in after["tests"]] == [
        test["command"] for test in before["tests"]
    ]


def test_people_read_commands_and_the_finding(logs, capsys):
    assert run(["accept", NAME, "--logs", logs[0]]) == 0
    out = capsys.readouterr().out
    assert "all_reduce_perf -b 512M -e 4G -f 2 -g 8" in out
    assert "No fault in what was run (1 command of 3); leaf is to come." in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nest-fat-tree-64"], "name tells none"),
        ([NAME, "--accelerator", "abacus"], "abacus"),
        (["tpu-v4-4x4x4"], "must have hosts behind NICs"),
        ([NAME, "--logs", "README.md"], "must be the output of nccl-tests"),
        ([NAME, "--logs", "no-such-log"], "no-such-log"),
    ],
)
def test_refusals_are_one_sentence(arguments, sentence, capsys):
    assert run(["accept", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
