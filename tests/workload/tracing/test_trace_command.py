"""``nest-studio trace`` on presets and configurations: fields, options, messages, no torch."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from nest_core.documents.presets import preset_names
from nest_studio.cli import run


def asked(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert run(["trace", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", preset_names("models"))
def test_every_preset_can_be_asked_for(capsys, name):
    fields = asked(name, capsys=capsys)
    held = sum(layer["count"] * layer["parameters"] for layer in fields["layers"])
    # A tied head's projection stands in its layer and counts once in the model.
    assert 0 <= held - fields["parameters"] < 0.5 * fields["parameters"]
    for layer in fields["layers"]:
        assert {"kind", "count", "flops", "parameter_bytes", "activation_bytes"} <= layer.keys()
        assert layer["collectives"] == []
        assert layer["parameter_bytes"] == 2 * layer["parameters"]
        assert layer["flops"] == sum(entry["flops"] for entry in layer["operators"])


def test_flops_are_two_per_parameter_and_token_and_attention(capsys):
    """Llama 2 7B, one sequence of 1,024: 2 N T in products with weights, 2 T^2 h in scores."""
    fields = asked("llama2-7b", "--strategy", "sequence=1024", capsys=capsys)
    total = sum(layer["count"] * layer["flops"] for layer in fields["layers"])
    norms, embedding = 65 * 4096, 32000 * 4096
    weights = fields["parameters"] - norms - embedding
    assert total == 2 * weights * 1024 + 32 * 2 * 1024**2 * 4096


def test_a_strategy_is_one_ranks_share(capsys):
    whole = asked("llama2-7b", capsys=capsys)["layers"][1]
    rank = asked("llama2-7b", "--strategy", "tp=4,sp=true", capsys=capsys)["layers"][1]
    assert rank["flops"] == whole["flops"] / 4
    assert {(call["axis"], call["op"]) for call in rank["collectives"]} == {
        ("tp", "all_gather"),
        ("tp", "reduce_scatter"),
    }


def test_a_configuration_is_a_model(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
        "vocab_size": 128256, "hidden_act": "silu", "tie_word_embeddings": False,
    }))  # fmt: skip
    assert asked(str(path), capsys=capsys)["parameters"] == 8_030_261_248


def test_torch_is_neither_imported_nor_needed(tmp_path):
    """A failure: presets cannot be traced in an installation without torch."""
    script = """
import sys
sys.modules["torch"] = None  # importing it fails, as where it is missing
from nest_studio.cli import run
assert run(["trace", "mixtral-8x7b", "--strategy", "tp=2,ep=4", "--json"]) == 0
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["parameters"] == 46_702_792_704


def test_without_torch_tracing_says_what_to_install(monkeypatch, capsys):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run(["trace", "some.module:build"]) == 2
    assert "torch must be installed" in capsys.readouterr().err


def test_people_read_a_table(capsys):
    assert run(["trace", "llama3-8b", "--strategy", "tp=8"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Llama 3 8B: 8,030,261,248 parameters")
    assert "all_reduce" in text


WRONG = [
    ([], "MODEL must be given"),
    (["llama3-8c"], "must be a preset, a path to a config.json or trace or a table"),
    (["llama3-8b", "--output", "x.json"], "--output must come with package.module:build"),
    (["llama3-8b", "--strategy", "tp"], "--strategy must set each of tp, sp,"),
    (["llama3-8b", "--strategy", "tp=2,tp=4"], "at most once, but is 'tp=4'"),
    (["llama3-8b", "--strategy", "zz=2"], "but is 'zz=2'"),
    (["llama3-8b", "--strategy", "tp=0"], "--strategy tp must be at least 1, but is 0"),
    (["llama3-8b", "--strategy", "tp=two"], "--strategy tp must be a whole number"),
    (["llama3-8b", "--strategy", "tp=1.5"], "--strategy tp must be a whole number"),
    (["llama3-8b", "--strategy", "tp=true"], "--strategy tp must be a whole number"),
    (["llama3-8b", "--strategy", "sp=1"], "--strategy sp must be true or false"),
    (["llama3-8b", "--strategy", "imbalance=nan"], "--strategy imbalance must be a finite number"),
    (["llama3-8b", "--strategy", "width=0"], "--strategy width must lie between 0.125 and 8"),
    (
        ["llama3-8b", "--strategy", "attention=slow"],
        "--strategy attention must be 'flash' or 'unfused', but is 'slow'",
    ),
    (["llama3-8b", "--strategy", "sequence=99999999"], "sequence must be at most 10000000"),
    (["llama3-8b", "--strategy", "tp=5"], "tp must divide the model's 32 heads"),
    (["gpt3-175b", "--strategy", "sequence=4096"], "at most the model's 2048 positions"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_is_wrong_is_one_sentence(capsys, arguments, message):
    assert run(["trace", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1
