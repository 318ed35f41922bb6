"""The section of the plan page that says why: what it shows, and that it computes when opened."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import pytest

from nest_core.costs.placement import rank_mapping_of
from nest_core.costs.shapes import measured_words
from nest_core.documents.text import plain
from nest_core.documents.units import humanise_seconds
from nest_core.planner import head_room_steps, search
from nest_core.report.explain import bindings, next_best, training
from nest_core.report.explain.words import (
    axes_table,
    binding_table,
    head_room_table,
    training_headline,
)
from nest_core.scenario import load_scenario
from nest_core.studies.recommended import recommend
from nest_core.studies.uncertainty import interval_of
from nest_studio.jobs.waiting import JobQueue
from nest_studio.plan import certainty as sure_view
from nest_studio.plan import view as plan_export

PARTS = (
    "why-binding",
    "why-axes",
    "why-shadow",
    "why-head-room",
    "why-equations",
    "why-mine-part",
)
SMALL = {
    "scenario": "llama2-7b-64-h100",
    "search.tp": "up to 2",
    "search.micro_batch_sequences": "up to 2",
    "tab": "Why",
}
BATCH = "workload.global_batch_sequences"


def text_of(page):
    return " ".join(element.proto.body for element in page.get("html"))


def opened(page, *parts):
    for part in parts:
        page.session_state[part] = True
    return page.run()


def plan_of(page):
    sets = ("search.tp.max=2", "search.micro_batch_sequences.max=2")
    scenario = load_scenario("llama2-7b-64-h100", sets)
    problem = scenario.problem()
    return scenario, problem, search(problem, scenario.space).best


@pytest.fixture
def counted(monkeypatch):
    """Which of the costly parts are computed, or ordered from a worker."""
    calls = []
    asked = JobQueue.ask

    def ask(self, key, function, *args, **options):
        calls.append(function.__name__)
        return asked(self, key, function, *args, **options)

    monkeypatch.setattr(JobQueue, "ask", ask)
    return calls


def costly(calls):
    return sorted(
        {*calls}
        - {"best_plan", "plan_fabric", "plan_parts", "priced_baselines", "levelwise_program"}
    )


def test_nothing_is_computed_before_it_is_opened(plan_page, counted):
    page = plan_page(**SMALL)
    assert not page.exception
    assert costly(counted) == []
    assert "Why this plan" in text_of(page)
    opened(page, *PARTS)
    assert costly(counted) == [
        "next_best_choices",
        "plan_bindings",
        "plan_equations",
        "worth_of_head_room",
        "worth_of_more",
    ]


def test_opened_parts_show_what_the_core_says(plan_page):
    page = opened(plan_page(**SMALL), *PARTS)
    assert not page.exception
    shown = text_of(page)
    scenario, problem, best = plan_of(page)
    table = binding_table(bindings(problem, best), best)
    assert table.title.replace("'", "&#x27;") in shown
    for words in ("matters most", "1 % more", "Symbols stand in docs/method.md"):
        assert words in shown
    assert axes_table(next_best(problem, scenario.space, best)).title in shown
    steps = head_room_steps(problem, scenario.space, (best,))
    assert head_room_table(steps, best).title in shown


def test_how_sure_a_plan_is_comes_from_draws_that_workers_search(plan_page, counted, monkeypatch):
    monkeypatch.setattr(sure_view, "PARTS", ((0, 2), (2, 3)))
    page = opened(plan_page(**SMALL), "sure")
    assert not page.exception
    assert costly(counted) == ["recommended_plan", "searched_draws"]
    scenario, problem, best = plan_of(page)
    found = recommend(scenario, problem, best.plan, 3, seed=scenario.seed)
    shown = text_of(page)
    assert found.in_words in shown
    assert f"Expected {humanise_seconds(found.expected_s)} per iteration" in shown
    assert measured_words(found.measured, "h100", scenario.stack.name) in shown


def test_the_plan_that_is_downloaded_says_what_the_page_recommends(plan_page, monkeypatch):
    """It said ``"recommended": null`` beside the draws that the page had searched."""
    monkeypatch.setattr(sure_view, "PARTS", ((0, 1), (1, 2)))
    monkeypatch.setattr(plan_export.OtherPlans, "every", lambda others, patience_s=0.0: ())
    files = []
    monkeypatch.setattr(
        plan_export,
        "download",
        lambda label, data, *_, **__: files.append(data()) if "Plan" in label else None,
    )

    def recommended():
        return json.loads(files[-1])["recommended"]

    page = opened(plan_page(**SMALL), "sure", "export").run()
    assert not page.exception
    assert json.loads(files[0])["recommended"] is None
    scenario, problem, best = plan_of(page)
    found = recommend(scenario, problem, best.plan, 2, seed=scenario.seed).to_json()
    assert recommended() == plain(found)
    page.session_state["sure"] = False
    page.number_input(key="workload.global_batch_sequences").set_value(128).run()
    assert recommended() is None


def test_days_to_train_follow_the_input(plan_page):
    page = plan_page(**SMALL)
    scenario, problem, best = plan_of(page)
    interval = interval_of(scenario, problem, best)
    for trillions in (None, 0.3):
        page.number_input(key="run.tokens_T").set_value(trillions).run()
        tokens = 1e12 * trillions if trillions else 20 * scenario.model.parameters
        days = training_headline(training(scenario, best, tokens, interval)).value
        assert days in [metric.value for metric in page.metric]


def test_a_pasted_plan_is_priced_beside_ours(plan_page):
    page = opened(plan_page(**SMALL), "why-mine-part")
    assert "What is left out takes its default" in text_of(page)
    page.text_area(key="why-mine").set_value(
        "torchrun pretrain.py --tensor-model-parallel-size 2 \\\n"
        "  --pipeline-model-parallel-size 4 --nnodes 2 --nproc-per-node 8 --lr 3e-4"
    ).run()
    assert not page.exception
    assert not page.error
    shown = text_of(page)
    for words in (
        "per iteration",
        "The command starts 16 ranks",
        "Ignored: --lr.",
        "as long as our plan (",
        "Its fullest stage takes",
        "Yours − ours",
    ):
        assert words in shown
    page.text_area(key="why-mine").set_value("tp=3").run()
    assert [error.value for error in page.error] == [
        "plan.tp must divide the model's 32 heads, but is 3: choose another tp."
    ]
    assert "than our plan" not in text_of(page)


def test_a_pasted_plan_is_the_best_where_the_search_came_to_none(plan_page, monkeypatch):
    """The optimum of a search that had no work: its certificate says whose plan it is."""
    batch, sets = "576", ("search.tp.max=2", "search.micro_batch_sequences.max=2")
    scenario = load_scenario("llama2-7b-64-h100", (*sets, f"{BATCH}={batch}"))
    best = search(scenario.problem(), scenario.space).best
    monkeypatch.setattr(sys.modules["nest_core.planner.search"], "_WORK", 0.0)
    page = opened(plan_page(**SMALL, **{BATCH: batch}), "why-mine-part")
    assert "no feasible plan" in text_of(page)
    pasted = json.dumps(plain(best.plan.to_json()))
    page.text_area(key="why-mine").set_value(pasted).run()
    assert not page.exception
    assert "no feasible plan" not in text_of(page)
    assert f"{humanise_seconds(best.iteration_s)} per iteration" in text_of(page)
    assert "This is the plan itself" in text_of(page)
    assert (
        "Stopped after its share of work, its plan from you: best so far, optimum at most"
        in text_of(page)
    )


def test_what_another_command_trains_is_taken_over_on_request(plan_page):
    """Refused with what differs; one click, and the form plans the command's model and batch."""
    page = opened(plan_page(**SMALL), "why-mine-part")
    command = (
        "--tensor-model-parallel-size 2 --num-layers 16 --global-batch-size 512 --seq-length 2048"
    )
    page.text_area(key="why-mine").set_value(command).run()
    assert "must train what is planned" in page.error[0].value
    assert "than our plan" not in text_of(page)
    page.button(key="why-mine-take").click().run()
    assert not page.exception
    assert not page.error
    assert "than our plan" in text_of(page)
    assert page.number_input(key="workload.global_batch_sequences").value == 512
    assert page.number_input(key="workload.sequence_length_tokens").value == 2048
    assert page.session_state["OwnModel"].table["blocks"] == 16


def test_a_flag_without_a_price_withholds_the_verdict(plan_page):
    page = opened(plan_page(**SMALL), "why-mine-part")
    page.text_area(key="why-mine").set_value(
        "--tensor-model-parallel-size 2 --recompute-granularity selective"
        " --recompute-modules mlp_act pre_mlp"
    ).run()
    assert "No verdict: --recompute-modules mlp_act pre_mlp" in text_of(page)
    assert "than our plan" not in text_of(page)


def test_a_placement_by_hand_is_priced_with_the_plan(plan_page):
    """As it is, it changes nothing; torn apart, the plan takes longer; a fault is named."""
    page = opened(plan_page(**SMALL), "why-mine-part")
    page.text_area(key="why-mine").set_value("tp=2 dp=32").run()

    def told(content):
        page.file_uploader(key="why-mine-mapping").set_value(
            ("mapping.json", content, "application/json")
        ).run()
        assert not page.exception
        times = re.findall(r"([\d.]+ m?s) per iteration, [\d.,]+ sequences", text_of(page))
        return times, [e.value for e in page.error]

    natural, none = told(json.dumps(list(range(64))).encode())
    torn, _ = told(json.dumps([8 * (rank % 8) + rank // 8 for rank in range(64)]).encode())
    assert none == []
    assert len(natural) == len(torn) == 1
    assert natural != torn
    assert "row 2, device must differ" in told(json.dumps([5] * 64).encode())[1][0]
    assert "must be UTF-8 text" in told(b"\xff\xfe")[1][0]


def test_a_pasted_name_of_a_file_opens_nothing(plan_page, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text('{"dp": 8}')
    page = opened(plan_page(**SMALL), "why-mine-part")
    page.text_area(key="why-mine").set_value(str(file)).run()
    assert [error.value for error in page.error]
    assert "Fits:" not in text_of(page)


def test_without_a_plan_only_ones_own_can_be_asked_for(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100", tab="Why", **{"accelerator.memory_GiB": "2"})
    opened(page, *PARTS)
    assert not page.exception
    shown = text_of(page)
    assert "Your own plan" in shown
    assert "matters most" not in shown
    page.text_area(key="why-mine").set_value("tp=2 dp=32").run()
    assert "Does not fit" in text_of(page)


def test_the_placement_is_that_of_the_plan(plan_page):
    page = plan_page(**SMALL)
    labels = [button.label for button in page.get("download_button")]
    assert {"↓ Placement (CSV)", "↓ Placement (JSON)"} <= set(labels)
    _, problem, best = plan_of(page)
    rows = list(csv.DictReader(io.StringIO(rank_mapping_of(problem.network, best.plan).to_csv())))
    assert len(rows) == problem.network.devices
