"""``nest-studio export``: files, refusals and bad input."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nest_core.interop.exporters import TARGETS
from nest_studio.cli import run

PRESET = "llama2-7b-64-h100"


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """The one JSON object of a command that ends well."""
    assert run(["export", *words, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found: dict[str, object] = json.loads(out)
    return found


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"torchtitan"}))
def test_json_has_files_by_name(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts as they are, binary files in base64 and named."""
    fields = answered(capsys, PRESET, "--to", target, "--plan", "dp=64,zero=1")
    files, binary = fields["files"], fields["base64"]
    assert isinstance(files, dict)
    assert isinstance(binary, list)
    assert fields["refused"] is None
    assert files
    assert set(binary) == {name for name in files if name.endswith(".et")}
    assert all(base64.b64decode(files[name])[:2] == b"\x07\x0a" for name in binary)


def test_a_refusal_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, no files, one sentence."""
    fields = answered(capsys, PRESET, "--to", "megatron", "--plan", "dp=16,pp=4,schedule=gpipe")
    assert fields["files"] == {}
    assert str(fields["refused"]).startswith("Schedule must be 1F1B or interleaved")
    assert run(["export", PRESET, "--to", "megatron", "--plan", "dp=16,pp=4,schedule=gpipe"]) == 0
    assert capsys.readouterr().out.startswith(f"refused: {fields['refused']}")


def test_the_best_plan_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --plan the scenario is solved."""
    fields = answered(capsys, PRESET, "--to", "slurm", "--set", "search.pp=2")
    chosen = fields["plan"]
    assert isinstance(chosen, dict)
    assert chosen["pp"] == 2


def test_output_writes_what_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Into a folder that is made, byte for byte what --json prints."""
    folder = tmp_path / "new" / "folder"
    words = [PRESET, "--to", "astra-sim", "--plan", "dp=16,pp=2"]
    printed = answered(capsys, *words)
    written = answered(capsys, *words, "--output", str(folder))
    assert isinstance(printed["files"], dict)
    assert isinstance(printed["base64"], list)
    assert written["files"] == {name: str(folder / name) for name in printed["files"]}
    for name, content in printed["files"].items():
        raw = base64.b64decode(content) if name in printed["base64"] else content.encode()
        assert (folder / name).read_bytes() == raw
    assert run(["export", *words, "--output", str(folder)]) == 0
    assert "files in" in capsys.readouterr().out


def test_text_prints_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Every text file under its name, notes at the end."""
    assert run(["export", PRESET, "--to", "megatron", "--plan", "dp=64,zero=1"]) == 0
    out = capsys.readouterr().out
    assert "==> launch.sh <==\n#!/usr/bin/env bash\n" in out
    assert "==> plan.args <==\n--tensor-model-parallel-size 1\n" in out
    assert "\nnote: " in out
    assert run(["export", PRESET, "--to", "astra-sim", "--plan", "dp=64,zero=1"]) == 0
    assert "64 binary files not printed: write them into a folder." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--to", "jax"], "to must be a known target, but is 'jax'"),
        (["--to", "slurm", "--plan", "tp=5"], "plan.tp must divide the model's 32 heads"),
        (["--to", "slurm", "--plan", "dp=65"], "plan must use at most the fabric's 64 devices"),
        (["--to", "slurm", "--plan", "nothing.json"], "plan must be"),
        (
            [
                "--to",
                "slurm",
                *(f"--set=search.{pin}" for pin in ("tp=1", "pp=1", "cp=1", "zero=0")),
            ],
            "plan must be given, since no plan fits",
        ),
        (["--to", "slurm", "--placement", "x.csv"], "placement must come with a plan"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], match: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and nothing on standard output."""
    assert run(["export", PRESET, *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert match in shown.err
    assert shown.err.count("\n") == 1


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file stands where the folder should."""
    (tmp_path / "taken").write_text("")
    words = [PRESET, "--to", "slurm", "--plan", "dp=64", "--output", str(tmp_path / "taken")]
    assert run(["export", *words]) == 2
    assert "folder must be a folder that can be written" in capsys.readouterr().err


@pytest.mark.check
def test_the_command_stays_light() -> None:
    """Its module imports no core; exporting imports no torch and no Streamlit."""
    script = (
        "import sys; from nest_studio.cli import run; "
        f"run(['export', '{PRESET}', '--to', 'slurm', '--plan', 'dp=64', '--json']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"torch", "streamlit", "pandas", "plotly"} & set(ran.stderr.split())
