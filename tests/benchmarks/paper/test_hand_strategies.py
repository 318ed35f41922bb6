"""Figures 1 and 3: what strategies divide, and what taking one thing from our search costs."""

from __future__ import annotations

import pytest

from benchmarks.paper.strategies import figure1, figure3


def test_strategies_divide_what_they_shard() -> None:
    rows = {row["strategy"]: row for row in figure3("own").rows}
    for name, halved in (("tensor", True), ("pipeline", True), ("data", False), ("context", False)):
        assert (rows[name]["states"] < 0.6) == halved
    states = [rows[name]["states"] for name in ("data", "ZeRO-1", "ZeRO-2", "ZeRO-3")]
    assert states == sorted(states, reverse=True)
    assert rows["data"]["states"] == 1.0
    assert rows["ZeRO-3"]["states"] == pytest.approx(0.5, rel=0.01)
    assert rows["tensor with sequence"]["activations"] < rows["tensor"]["activations"]
    assert rows["recomputation"]["work"] > 1.2
    assert [name for name, row in rows.items() if row["communication_s"] < 1e-9] == [
        "recomputation"
    ]


@pytest.mark.check
def test_nothing_that_is_blind_beats_the_search_that_sees() -> None:
    for row in figure1("own").rows:
        assert row["fits"] == (row["of_ours"] is not None) == ("reason" not in row)
        assert row["of_ours"] is None or row["of_ours"] <= 1 + 1e-9
        if row["planner"] == "ours":
            assert row["of_ours"] == 1.0
