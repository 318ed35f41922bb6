"""Section 5's claims: every verdict follows from its numbers, and those from other figures."""

from __future__ import annotations

import copy

import pytest

from benchmarks.paper.claims import NEAR_LINEAR, section5, section5_paragraph
from benchmarks.paper.iterations import mean_part
from nest_core.paper.cases import Cell, shipped_instance
from nest_core.paper.own import own_result, own_scenario
from nest_core.paper.published import StageOrder, evaluate
from nest_core.paper.reproduction import printed_rows

COSTS = ("published", "own")


def rows(costs: str, claim: str) -> list[dict]:
    return [row for row in section5(costs).rows if row["claim"] == claim]  # type: ignore[arg-type]


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.sampled(2)
def test_verdicts_follow_from_the_numbers(costs: str) -> None:
    found = section5(costs).rows  # type: ignore[arg-type]  # parametrised literals
    assert len(found) == 11
    for row in found:
        words = "holds" if row["holds"] else "does not hold"
        assert row["verdict"].startswith("not to be computed" if row["ours"] is None else words)
        assert (row["holds"] is None) == (row["ours"] is None)


def test_scaling_is_the_throughput_figure_s() -> None:
    shown = printed_rows("figure5")
    for row, model in zip(
        rows("published", "near-linear scaling"),
        ("bert", "llama2", "llama3", "mixtral", "gpt3"),
        strict=True,
    ):
        expected = shown[model, 1024, 1]["nest"] / shown[model, 64, 1]["nest"] / 16
        assert row["published"] == pytest.approx(expected)
        assert row["ours"] == pytest.approx(expected, rel=0.01)
        assert row["holds"] == (row["ours"] >= NEAR_LINEAR)


def test_the_artifact_s_bert_is_as_uneven_as_the_text_says() -> None:
    """Phaze's 13 stages hold one layer or two; of loads only the slowest makes the throughput."""
    row = rows("published", "balanced stages")[1]
    assert (min(row["phaze_layers"]), max(row["phaze_layers"])) == (1, 2)
    assert row["phaze_imbalance"] > 2
    assert row["our_imbalance"] < 1.02
    instance = shipped_instance(Cell("h100_spineLeaf", "bertlarge", 1024, 1))
    (phaze,) = (one for one in instance.baselines if one.name == "Phaze")
    right = evaluate(instance, phaze, StageOrder.RIGHT)
    assert len(right.loads) == 13
    assert right.time_per_batch is not None
    assert right.time_per_batch >= max(right.loads) * instance.micro_batches / phaze.data


@pytest.mark.check
def test_communication_is_the_plan_s() -> None:
    row = rows("own", "communication by fabric")[0]
    best = own_result(own_scenario("h100_spineLeaf", "mixtral", 128, 1)).best
    assert best is not None
    share = mean_part(best, "communication_s") / best.iteration_s
    assert row["spine_leaf_share"] == pytest.approx(share)
    assert row["ours"] == pytest.approx(share / row["fat_tree_share"])


@pytest.mark.check
def test_sentences_count_and_explain() -> None:
    found = copy.deepcopy(list(section5("own").rows))
    held = sum(row["holds"] for row in found)
    assert section5_paragraph(found)[0].startswith(f"{held} of 11 computed cases hold")
    for row in found:
        row["holds"] = True
        if "phaze_layers" in row:
            row |= {"phaze_layers": [1, 3], "phaze_imbalance": 3.5}
    text = " ".join(section5_paragraph(found))
    assert text.startswith("11 of 11 computed cases hold")
    assert "in 2 stages (3.00 times as many in the largest, 3.50 times as long" in text
    assert "falls short" not in text
