"""`nest-studio price` term by term, and `nest-studio place`."""

from __future__ import annotations

import csv
import json

import pytest

from nest_studio.cli import run

SCENARIO = "llama2-7b-64-h100"
PLAN = "dp=8,tp=2,pp=4,zero=1"
SETS = ("--set", "search.tp=[1,2]", "--set", "search.pp=[1,2,4]")


@pytest.fixture
def ask(capsys):
    def asked(*arguments):
        assert run([*arguments, "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return json.loads(out, parse_constant=pytest.fail)

    return asked


def test_price_tells_the_difference_term_by_term(ask):
    fields = ask("price", SCENARIO, "--plan", PLAN, *SETS)
    rows = fields["term_differences"]
    apart = fields["iteration_time_s"] - fields["best_iteration_time_s"]
    assert sum(row["difference_s"] for row in rows) == pytest.approx(apart)
    assert {row["name"]: row["this_s"] for row in rows if row["name"] in fields["terms"]} == (
        pytest.approx(fields["terms"])
    )
    assert sum(fields["terms"].values()) == pytest.approx(fields["iteration_time_s"])
    assert len(fields["bindings"]) == 4
    for entry in fields["bindings"]:
        seconds = sum(part["seconds"] for part in entry["constraints"])
        assert seconds == pytest.approx(fields["iteration_time_s"])
        assert entry["kind"] == entry["constraints"][0]["kind"]
    assert len(fields["equations"]) >= len(fields["terms"]) + 3
    assert fields["why_not"].startswith("It takes ")


@pytest.mark.check
def test_price_reads_a_command_and_says_what_it_left_out(ask, tmp_path, capsys):
    script = tmp_path / "run.sh"
    script.write_text(
        "torchrun pretrain.py --tensor-model-parallel-size 2 --lr 3e-4 \\\n"
        " --pipeline-model-parallel-size 4 --use-distributed-optimizer \\\n"
        " --data-parallel-size 8 --nnodes 9 --nproc-per-node 8\n"
    )
    fields = ask("price", SCENARIO, "--plan", str(script), *SETS)
    assert fields["ignored"] == ["--lr"]
    assert fields["notes"] == ["The command starts 72 ranks; the fabric has 64 devices."]
    assert fields["plan"] == ask("price", SCENARIO, "--plan", PLAN, *SETS)["plan"]
    assert run(["price", SCENARIO, "--plan", str(script), *SETS]) == 0
    out, _ = capsys.readouterr()
    assert "ignored: --lr" in out
    assert "note: The command starts 72 ranks" in out
    assert "Stage 4 is bound by" in out
    assert out.count("\n") > 14


def test_price_where_nothing_fits_has_no_difference(ask):
    fields = ask("price", SCENARIO, "--plan", PLAN, "--set", "accelerator.memory_GiB=2")
    assert not fields["feasible"]
    assert (
        fields["best_iteration_time_s"] is fields["term_differences"] is fields["why_not"] is None
    )
    assert fields["bindings"][0]["kind"] == "memory"


def test_a_placement_goes_out_and_comes_back(ask, tmp_path):
    """As it is, it costs the same; torn apart, more; and the plan keeps it."""
    table = tmp_path / "mapping.csv"
    told = ask("place", SCENARIO, "--plan", PLAN, "--output", str(table))
    assert told["output"] == str(table)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert (
        [int(row["device"]) for row in rows]
        == list(range(64))
        == ([row["device"] for row in told["placement"]])
    )
    before = ask("price", SCENARIO, "--plan", PLAN, *SETS)
    again = ask("price", SCENARIO, "--plan", PLAN, "--placement", str(table), *SETS)
    assert again["iteration_time_s"] == before["iteration_time_s"]
    assert again["plan"]["device_order"] == list(range(64))
    torn = tmp_path / "torn.json"
    torn.write_text(json.dumps([8 * (rank % 8) + rank // 8 for rank in range(64)]))
    worse = ask("price", SCENARIO, "--plan", PLAN, "--placement", str(torn), *SETS)
    assert worse["iteration_time_s"] > before["iteration_time_s"]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(worse["plan"]))
    kept = ask("price", SCENARIO, "--plan", str(plan), *SETS)
    assert kept["iteration_time_s"] == worse["iteration_time_s"]


def test_place_without_a_plan_places_the_best(ask, tmp_path, capsys):
    best = ask("plan", SCENARIO, *SETS, "--set", "baselines.names=[]")["plan"]
    file = tmp_path / "mapping.JSON"
    told = ask("place", SCENARIO, *SETS, "--output", str(file))
    assert told["plan"] == best == json.loads(file.read_text())["plan"]
    assert json.loads(file.read_text())["placement"] == told["placement"]
    assert run(["place", SCENARIO, *SETS]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[0].split() == list(told["placement"][0])
    assert len(out.splitlines()) == 65
    nothing = ask("place", SCENARIO, "--set", "accelerator.memory_GiB=2")
    assert nothing["plan"] is None
    assert nothing["reason"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["place", SCENARIO, "--output", "mapping.txt"], "--output must end in .csv or .json"),
        (["place", SCENARIO, "--placement", "x.csv"], "placement must come with a plan"),
        (["place", SCENARIO, "--plan", "dp=65"], "plan"),
        (["place", SCENARIO, "--plan", PLAN, "--output", "no/where.csv"], "can be written"),
        (["price", SCENARIO, "--plan", PLAN, "--placement", "nowhere.csv"], "nowhere.csv"),
        (["price", SCENARIO, "--plan", "tp=3"], "must divide the model's 32 heads"),
    ],
)
def test_bad_input_is_one_sentence(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
