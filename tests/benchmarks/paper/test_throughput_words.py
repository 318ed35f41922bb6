"""Paragraphs are computed: they change with the rows, and quote the rows' numbers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks.paper.throughput_words import paragraph
from nest_core.paper.throughput import average_gains, throughput_rows

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rows5() -> Rows:
    return list(throughput_rows("figure5", "published"))


def told(rows: Rows, costs: Any = "published", template: Any = ()) -> str:
    return " ".join(paragraph("figure5", costs, rows, average_gains("figure5", rows), template))


def changed(rows: Rows, model: str, devices: int) -> tuple[Rows, dict[str, Any]]:
    """A copy, and one of its rows to change."""
    rows = copy.deepcopy(rows)
    return rows, next(r for r in rows if (r["model"], r["devices"]) == (model, devices))


def test_agreement_counts_cells(rows5: Rows) -> None:
    assert "25 of 25 printed NEST cells are met" in told(rows5)
    rows, row = changed(rows5, "bert", 64)
    row["ours"] += 0.5
    text = told(rows)
    assert "24 of 25 printed NEST cells are met" in text
    assert f"the largest difference is {row['ours'] - row['published']:.4f}." in text


def test_the_swapped_cells_are_named(rows5: Rows) -> None:
    assert "MCMC on GPT-3 175B, 1,024 devices (printed 8.70, computed 9.05)" in told(rows5)
    rows, row = changed(rows5, "gpt3", 1024)
    row["baselines"]["mcmc"]["published"] = 9.05
    assert "MCMC on GPT-3 175B" not in told(rows)


def test_the_reversal_quotes_both_averages(rows5: Rows) -> None:
    gain = average_gains("figure5", rows5)[0]
    expected = f"Manual from {gain['as_published']:.2f} to {gain['right_order']:.2f}"
    assert expected in told(rows5)
    rows = copy.deepcopy(rows5)
    for row in rows:
        row["baselines"]["manual"]["right_order"] = row["baselines"]["manual"]["as_published"]
    assert expected not in told(rows)


def test_the_cell_of_alpa_is_explained_by_its_numbers(rows5: Rows) -> None:
    text = told(rows5)
    (row,) = (r for r in rows5 if (r["model"], r["devices"]) == ("llama3", 128))
    assert "In print Alpa-E is ahead on Llama 3 70B, 128 devices: 3.00 against 2.97." in text
    assert f"would reach {row['even_division']:.2f}; Alpa-E shards inside layers" in text
    assert f"work on {row['plan']['devices_used']} of 128 devices" in text
    rows, row = changed(rows5, "llama3", 128)
    row["even_division"] = 2.99
    assert "Alpa-E's 3.00 exceeds even that" in told(rows)
    row["baselines"]["alpa_e"]["published"] = 2.9
    assert "In print" not in told(rows)


def test_a_faster_placement_would_be_named(rows5: Rows) -> None:
    assert "No placement priced here beats our optimum" in told(rows5)
    rows, row = changed(rows5, "bert", 64)
    row["baselines"]["phaze"]["right_order"] = 2 * row["ours"]
    assert "Ahead of our optimum: Phaze on BERT-large, 64 devices." in told(rows)


def test_the_reversal_counts_whom_it_slows(rows5: Rows) -> None:
    rows = copy.deepcopy(rows5)
    entries = [entry for row in rows for entry in row["baselines"].values()]
    priced = [entry for entry in entries if entry["right_order"] and entry["as_published"]]
    for entry in priced:
        entry["as_published"] = entry["right_order"]
    priced[0]["as_published"] *= 0.9
    priced[1]["as_published"] *= 1.1
    text = told(rows)
    assert f"Of {len(priced)} placements the reversal slows 1 and speeds up 1." in text


def own_rows(rows5: Rows) -> Rows:
    """Rows as own costs have them, with simple numbers."""
    rows = copy.deepcopy(rows5)
    for row in rows:
        row |= {"costs": "own", "ours": 2.0}
        row["plan"] = {"p": 1, "d": 1, "t": 8, "zero": 1, "recompute": "none"}
        for entry in row["baselines"].values():
            entry |= {"as_published": None, "right_order": 1.6}
    return rows


def template(whole: float, alpa: float | None) -> Rows:
    reason = None if alpa else "it does not fit"
    return [{"of_ours": whole}, {"of_ours": 1.0}, {"of_ours": alpa, "reason": reason}]


def test_own_gains_stand_beside_the_printed_ones(rows5: Rows) -> None:
    rows = own_rows(rows5)
    text = told(rows, "own", template(0.8, 0.9))
    assert "gains 1.25 over Manual (printed 1.59)" in text
    assert "over Manual, MCMC and Alpa-E it gains less than is printed" in text
    assert "25 of 25 optima use tensor parallelism" in text
    rows[0]["plan"]["t"] = 1
    for row in rows:
        row["baselines"]["manual"]["right_order"] = 0.5
    text = told(rows, "own", template(0.8, 0.9))
    assert "gains 4.00 over Manual" in text
    assert "over MCMC and Alpa-E it gains less" in text
    assert "24 of 25 optima use tensor parallelism" in text


def test_the_template_s_share_is_quoted(rows5: Rows) -> None:
    rows = own_rows(rows5)
    text = told(rows, "own", template(0.8, 0.9))
    assert "whole layers reaches 0.80 of what sharding inside layers" in text
    assert "Alpa-E's program reaches 0.90 of ours and is not ahead of ours" in text
    assert "sharding inside layers gains nothing" in told(rows, "own", template(1.0, 0.9))
    assert "gives no plan (it does not fit)" in told(rows, "own", template(0.8, None))


def test_micro_batches_name_the_fastest() -> None:
    rows = list(copy.deepcopy(throughput_rows("figure6", "published")))
    gains = average_gains("figure6", rows)
    assert (
        "BERT-large gains nothing beyond 1"
        in paragraph("figure6", "published", rows, gains, ())[-1]
    )
    next(r for r in rows if (r["model"], r["micro_batch"]) == ("bert", 4))["ours"] *= 2
    last = paragraph("figure6", "published", rows, gains, ())[-1]
    assert "BERT-large is fastest at 4 (100 % above 1)" in last
