"""`nest-studio simulate` and `nest.simulate`: fields of the contract, and what is refused."""

from __future__ import annotations

import json

import pytest

import nest_core as nest
from nest_core.studies.comparison import compare
from nest_studio.cli import run

SMALL, PLAN = "llama2-7b-64-h100", "dp=8,tp=2,pp=4,zero=1"


def ask(capsys, *words):
    assert run(["simulate", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_fields_are_those_of_the_contract(capsys):
    fields = ask(capsys, SMALL, "--plan", PLAN)
    assert {
        "iteration_time_s",
        "planned_iteration_time_s",
        "difference",
        "terms",
        "busiest_links",
        "replanned_iteration_time_s",
        "wall_s",
    } <= set(fields)
    assert run(["price", SMALL, "--plan", PLAN, "--json"]) == 0
    priced = json.loads(capsys.readouterr().out)
    assert fields["planned_iteration_time_s"] == priced["iteration_time_s"]
    ratio = fields["iteration_time_s"] / fields["planned_iteration_time_s"]
    assert fields["difference"] == pytest.approx(ratio - 1)
    for terms in (fields["terms"], *(stage["terms"] for stage in fields["stages"])):
        for side in ("planned", "simulated"):
            total = fields[
                "iteration_time_s" if side == "simulated" else f"{side}_iteration_time_s"
            ]
            assert sum(term[f"{side}_s"] for term in terms.values()) == pytest.approx(total)
    assert fields["terms"] == fields["stages"][fields["stage"]]["terms"]
    waits = [stage["terms"].get("waiting", {"simulated_s": 0})["simulated_s"]
             for stage in fields["stages"]]  # fmt: skip
    assert waits[fields["stage"]] == min(waits)
    assert 0 < len(fields["busiest_links"]) <= 10
    for link in fields["busiest_links"]:
        assert sum(link["users"].values()) == pytest.approx(link["utilisation"])
    assert fields["wall_s"] > 0


def test_what_fails_is_in_the_fields(capsys):
    whole = ask(capsys, SMALL, "--plan", PLAN)
    fields = ask(capsys, SMALL, "--plan", PLAN, "--fail", "nic 3", "--slow", "device 9=20")
    (failure,) = fields["failures"]
    assert failure["elements"] == ["nic 3", "device 9"]
    assert fields["iteration_time_s"] > whole["iteration_time_s"]
    assert failure["loss"] == pytest.approx(
        1 - whole["iteration_time_s"] / fields["iteration_time_s"]
    )
    assert fields["planned_iteration_time_s"] == whole["planned_iteration_time_s"]
    assert fields["replanned_iteration_time_s"] is None


def test_a_plan_that_cannot_run_says_why_and_is_planned_anew(capsys):
    pins = ("--set", "search.tp=1", "--set", "search.pp=1", "--set", "search.zero=[2]")
    fields = ask(capsys, SMALL, *pins, "--fail", "leaf 0", "--replan")
    assert fields["iteration_time_s"] is fields["difference"] is None
    assert fields["reason"] == "the plan needs 64 devices, 32 are left"
    assert fields["replanned_iteration_time_s"] > fields["planned_iteration_time_s"]


def test_static_routes_have_a_median_and_a_bad_draw(capsys):
    hashed = ("--set", 'fabric.routing="ecmp"')
    draws = ask(capsys, SMALL, *hashed, "--plan", PLAN)["draws"]
    assert 4 <= draws["number"] <= 32
    assert 0 < draws["p50_s"] <= draws["p95_s"]
    assert ask(capsys, SMALL, "--plan", PLAN)["draws"] is None


def test_the_worst_single_failure_is_that_of_compare():
    """One value: the best plan of a scenario, alone and among two."""
    few = {"search.tp": 1, "search.pp": 1, "search.zero": [2], "fabric": "dgx-superpod-h100"}
    scenario = nest.load(SMALL, few)
    worst = nest.simulate(scenario, fail=["each"]).to_json()["worst_failure"]
    for candidate in compare([("a", scenario), ("b", scenario)]).candidates:
        lost, what = candidate.worst_loss
        assert {"lost": lost, "what": what} == worst
        assert candidate.to_json()["worst_failure"] == worst


def test_every_element_may_fail_in_turn(capsys):
    fields = ask(capsys, SMALL, "--plan", PLAN, "--fail", "each")
    names = [name for failure in fields["failures"] for name in failure["elements"]]
    assert {"device 0", "node 0", "leaf 0", "nic 0", "spine 0"} <= {*names}
    assert run(["simulate", SMALL, "--plan", PLAN, "--fail", "each"]) == 0
    assert "devices 0 to 31 up to spine and 1 other" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--fail", "leef 1"), 'the nearest named is "leaf 1"'),
        (("--fail", "spine 0"), "must leave a path between"),
        (("--slow", "device 1=100"), "must be above 0 and below 100"),
        (("--slow", 'device 1="much"'), "must be above 0 and below 100"),
    ],
)
def test_elements_that_are_none_are_refused_in_a_sentence(capsys, words, sentence):
    assert run(["simulate", SMALL, "--plan", PLAN, *words]) == 2
    captured = capsys.readouterr().err
    assert sentence in captured
    assert captured.count("\n") == 1


def test_without_a_plan_the_best_is_simulated(capsys):
    best = nest.plan(SMALL).best
    fields = ask(capsys, SMALL)
    assert fields["planned_iteration_time_s"] == best.iteration_s
    assert fields["plan"]["dp"] == best.plan.point.dp


def test_the_text_has_every_term_and_the_busiest_links(capsys):
    assert run(["simulate", SMALL, "--plan", PLAN]) == 0
    text = capsys.readouterr().out
    result = nest.simulate(SMALL, PLAN)
    assert all(f"\n{name} " in text for name in result.slowest.terms)
    assert result.tables()[0].title in text
    assert len(result.rows()) == sum(len(terms.terms) for terms in result.terms)
    assert [len(picture.plot.data) > 0 for picture in result.pictures()] == [True, True]


def test_a_trace_is_written(capsys, tmp_path):
    file = tmp_path / "out.json"
    fields = ask(capsys, SMALL, "--plan", PLAN, "--trace", str(file))
    assert fields["trace"] == str(file)
    assert json.loads(file.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((SMALL, "--plan", "dp=3"), "must divide the batch of 1024"),
        ((SMALL, "--plan", PLAN, "--trace", "no/such/folder/out.json"), "--trace"),
        ((SMALL, "--set", "accelerator.memory_GiB=2.0"), "plan must fit"),
        (
            (SMALL, "--plan", "dp=1,tp=8,pp=8", "--set", "workload.global_batch_sequences=1000000"),
            "must have at most 1,000,000 passes of layers to be simulated",
        ),
        ((SMALL, "--placement", "ranks.csv"), "placement must come with a plan"),
    ],
)
def test_what_cannot_be_is_one_sentence(capsys, words, sentence):
    assert run(["simulate", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("simulate", "llama2-7b-64-h100", "--slow", "device 3"), "--slow must read KEY=VALUE"),
        (("sweep", "llama2-7b-64-h100", "--axis", "zero"), "--axis must read KEY=VALUE"),
        (("ratios", "llama2-7b-64-h100", "--mix", "llama2-7b"), "--mix must read KEY=VALUE"),
    ],
)
def test_an_option_is_called_by_its_name(capsys, words, sentence):
    assert run(list(words)) == 2
    assert sentence in capsys.readouterr().err


def test_all_spines_that_fail_are_named_as_they_were_written(capsys):
    assert run(["simulate", SMALL, "--plan", PLAN, "--fail", "spine 0"]) == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("--fail must leave a path") or ": --fail must leave" in sentence
    assert "but is 'spine 0'" in sentence
