"""What sorting tokens by expert costs beside experts' products."""

from __future__ import annotations

import pytest

from nest_core.workload import Strategy, chain, layer_graph, load_model
from nest_core.workload.explain import gradients_in_words, kernel_in_words
from nest_core.workload.models import sizes
from nest_core.workload.operators import operators

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


def test_a_copy_is_told_in_words():
    strategy = Strategy(sequence=TOKENS, ep=8)
    graph = layer_graph(MODEL, "moe_block", strategy)
    at = sizes(MODEL, 1, TOKENS)
    (down,) = (each for each in operators(graph, at, 2.0) if each.name == "experts.down")
    node = graph["experts.down"]
    (line,) = kernel_in_words(down.forward[0], node, graph.inputs(node), at, 2.0)
    assert "copied into another order" in line
    told = gradients_in_words(down.backward, node)
    assert len(told) == len(down.backward) == 3
    assert told[0] == "the same copy of gradients"
