"""How the command line ends: codes, one sentence, one JSON object."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nest_core.documents.text import plain, table
from nest_core.paper import NAMES
from nest_studio.cli import run

BAD_LINES = [
    [],
    ["--json"],
    ["slove"],
    ["solve"],
    ["solve", "a.json", "b.json"],
    ["solve", "missing.json"],
    ["solve", "missing.json", "--josn"],
    ["paper"],
    ["paper", "figure99"],
    ["paper", "figure5", "--costs", "imagined"],
    ["app", "--port"],
    ["app", "--port", "many"],
    ["app", "--port", "0"],
    ["app", "--port", "65536"],
    ["app", "--port", "8501", "more"],
    ["app", "--address", "192.0.2.1"],
    ["app", "--address", "a..b"],
    ["app", "--address", ""],
    ["app", "--address", " ", "--port", "8501"],
    ["app", "--prefix", "a b"],
    ["app", "--prefix", "/a/../b"],
    ["app", "--prefix", "."],
    ["app", "--prefix", "https://elsewhere"],
]


@pytest.mark.parametrize("arguments", BAD_LINES, ids=" ".join)
def test_bad_input_is_one_sentence_and_code_2(arguments, capsys):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(".\n")
    assert err.count("\n") == 1
    assert ". " not in err
    assert "│" not in err


def test_a_misspelt_command_is_answered_with_the_nearest(capsys):
    run(["slove"])
    assert "did you mean 'solve'?" in capsys.readouterr().err


def test_a_taken_port_is_named(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["app", "--port", str(port)]) == 2
    assert f"--port must be free, but is {port}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["app", "-h"], ["solve", "--help"]])
def test_help_goes_to_standard_output(arguments, capsys):
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: nest-studio")
    assert err == ""


def test_the_process_ends_as_run_says():
    ended = subprocess.run(
        [sys.executable, "-m", "nest_studio", "paper", "figure99"], capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == (
        "NAME must be a figure or table that is computed here, but is 'figure99': "
        f"pick {', '.join(NAMES)}.\n"
    )


def test_solve_prints_one_json_object(shared_data, capsys):
    instance = shared_data / "nest_instances" / "h100_spineLeaf_bert_d128_mbs1.json"
    assert run(["solve", str(instance), "--json"]) == 0
    out, err = capsys.readouterr()
    fields = json.loads(out, parse_constant=pytest.fail)
    assert out.count("\n") == 1
    assert err == ""
    assert fields["feasible"] is True
    assert {"layers", "devices", "level_to_producer", "load", "memory_bytes"} <= set(
        fields["stages"][0]
    )


def test_solve_prints_a_table_for_people(shared_data, capsys):
    instance = shared_data / "nest_instances" / "h100_spineLeaf_bert_d128_mbs1.json"
    assert run(["solve", str(instance)]) == 0
    out = capsys.readouterr().out
    assert "time per batch" in out
    assert "level to producer" in out


def test_figure5_has_the_fields_of_the_contract(capsys):
    assert run(["paper", "figure5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["rows"]
    assert rows
    assert all(
        {"model", "devices", "micro_batch", "ours", "published", "baselines"} <= set(row)
        for row in rows
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        ({"a": (1, -math.inf)}, {"a": [1, None]}),
        ({2: np.float32(0.5)}, {"2": 0.5}),
        (np.array([1.0, np.nan]), [1.0, None]),
        ([np.int64(3), np.bool_(True), True, "µ"], [3, True, True, "µ"]),
    ],
)
def test_plain_is_what_json_can_say(value, expected):
    found = plain(value)
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_plain_refuses_what_it_cannot_say():
    with pytest.raises(TypeError, match="no JSON form for PosixPath"):
        plain({"path": Path("x")})


def test_tables_align_numbers_right():
    assert table(["model", "x"], [["bert", 1], ["b", 12.5], ["c", None]]) == (
        "model     x\nbert      1\nb      12.5\nc         –"
    )
