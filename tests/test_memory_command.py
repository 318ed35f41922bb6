"""`nest-studio memory`: bytes per stage and component."""

from __future__ import annotations

import json

import pytest

from nest_studio.cli import run

SCENARIO = "llama2-7b-64-h100"
PLAN = "dp=8,tp=2,pp=4,zero=1"
PARTS = {"weights", "gradients", "optimizer", "activations", "stash", "buffers"}


@pytest.fixture
def ask(capsys):
    def asked(*arguments):
        assert run([*arguments, "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=pytest.fail)

    return asked


def test_parts_add_up_stage_by_stage(ask):
    fields = ask("memory", SCENARIO, "--plan", PLAN)
    assert fields["feasible"]
    assert fields["reason"] == ""
    assert len(fields["stages"]) == fields["plan"]["pp"] == 4
    for stage in fields["stages"]:
        assert set(stage["memory_bytes"]) == PARTS
        assert sum(stage["memory_bytes"].values()) == pytest.approx(stage["total_bytes"])
        assert sum(stage["buffers_bytes"].values()) == pytest.approx(
            stage["memory_bytes"]["buffers"]
        )
        assert stage["tensor_bytes"] < stage["total_bytes"] <= fields["memory_limit_bytes"]
    spans = [stage["layers"] for stage in fields["stages"]]
    assert [first for first, _ in spans[1:]] == [last for _, last in spans[:-1]]
    assert fields["fullest_bytes"] == max(stage["total_bytes"] for stage in fields["stages"])
    assert fields["memory"]["centre_bytes"] == fields["fullest_bytes"]
    assert 0.95 <= fields["memory"]["fits"] <= 1
    buffers = fields["stages"][0]["buffers_bytes"]
    assert buffers["communicators"] == fields["communicators"] * 688 * 2**20 == 5 * 688 * 2**20


def test_the_planner_says_the_same(ask, tmp_path):
    planned = ask("plan", SCENARIO, "--set", "baselines.names=[]")
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(planned["plan"]))
    fields = ask("memory", SCENARIO, "--plan", str(saved))
    told = [stage["memory_bytes"] for stage in fields["stages"]]
    assert told == [pytest.approx(stage["memory_bytes"]) for stage in planned["stages"]]


def test_not_fitting_is_an_answer(ask):
    fields = ask("memory", SCENARIO, "--plan", PLAN, "--set", "accelerator.memory_GiB=4")
    assert not fields["feasible"]
    assert "GiB" in fields["reason"]
    assert fields["fullest_bytes"] > fields["memory_limit_bytes"] == 4 * 2**30


def test_people_read_a_table(capsys):
    assert run(["memory", SCENARIO, "--plan", PLAN]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith("fits; 80.0 GiB per device")
    assert all(part in out for part in (*PARTS, "total"))
    assert len([line for line in out.splitlines() if " none " in line]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["memory", "nowhere", "--plan", PLAN], "nowhere"),
        (["memory", SCENARIO, "--plan", "dp=8,tp=3,pp=2"], "tp"),
        (["memory", SCENARIO, "--plan", "dp=eight"], "dp"),
        (["memory", SCENARIO, "--plan", PLAN, "--set", "workload.gradient_bytes=3"], "gradient"),
    ],
)
def test_bad_input_is_one_sentence(capsys, arguments, words):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert words in err
