"""What sorting tokens by expert costs beside experts' products."""

from __future__ import annotations

import pytest

from nest_core.workload import Strategy, chain, load_model

MODEL = load_model("qwen3-30b-a3b")
TOKENS = 512
SLOTS = 2.0 * TOKENS * MODEL.top_k * MODEL.hidden
"""Bytes of every token's copies in 16 bits."""


def copied(direction, **strategy):
    """Bytes of passes over memory beside experts' products."""
    layers = chain(MODEL, Strategy(sequence=TOKENS, **strategy))
    block = next(layer for layer, times in layers.runs if times > 1)
    return sum(
        kernel.bytes
        for operator in block.operators
        for kernel in getattr(operator, direction)
        if operator.op == "grouped_linear" and kernel.unit == "memory"
    )


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("strategy", "times"),
    [
        ({"ep": 8}, 1.0),
        ({"ep": 8, "fused": False}, 1.0),
        ({"ep": 8, "imbalance": 1.5}, 1.5),
        ({"ep": 8, "tp": 4, "sp": True, "etp": 1}, 0.25),
        ({"ep": 8, "tp": 4, "sp": True}, 1.0),  # after the gather among those who share an expert
    ],
)
def test_what_an_all_to_all_brings_is_read_and_written_once_more_each_way(
    direction, strategy, times
):
    assert copied(direction, **strategy) == pytest.approx(times * 2 * 2 * SLOTS)


@pytest.mark.parametrize(
    "strategy",
    [
        {},
        {"ep": 128},  # one expert each: by rank is by expert
        {"ep": 8, "dispatch": "once_per_node"},
        {"ep": 8, "dispatch": "hybrid"},
    ],
)
def test_nothing_is_sorted_where_it_arrives_in_order(strategy):
    for direction in ("forward", "backward"):
        assert copied(direction, **strategy) == 0.0
