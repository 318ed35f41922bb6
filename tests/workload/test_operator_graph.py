"""Operator graphs: what a file says, and what sizes make of it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import FAMILIES, small

from nest_core.documents.errors import InputError
from nest_core.workload import Graph, Node, Split, load_trace
from nest_core.workload.graph import KINDS, SYMBOLS, count, extent, families, graph_of, weight_count
from nest_core.workload.models import sizes

OPS = {
    "input",
    "linear",
    "grouped_linear",
    "matmul",
    "attention",
    "embedding",
    "position",
    "norm",
    "elementwise",
    "dropout",
    "softmax",
    "reshape",
    "dispatch",
    "combine",
    "loss",
}


BALANCED = (
    "deepseek_v3",
    "deepseek_v3_lite",
    "deepseek_v32",
    "ernie4_5_moe",
    "glm4_moe",
    "glm4_moe_head_norm",
    "glm4_moe_head_norm_only",
    "glm4_moe_plain",
    "minimax_m2",
)
"""Families whose router has a bias for every expert."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shipped_trace_is_a_graph(family):
    """Names are unique, inputs stand before their readers, everything leads to the output."""
    trace = load_trace(family)
    assert [kind for kind in trace if kind in KINDS] == [kind for kind in KINDS if kind in trace]
    assert {"embedding", "head"} < set(trace)
    for kind, graph in trace.items():
        assert graph.kind == kind
        seen: dict[str, Node] = {}
        for node in graph.nodes:
            assert node.op in OPS
            assert node.name not in seen
            assert set(node.inputs) <= set(seen)
            assert {*node.symbols} <= {*SYMBOLS}
            assert not node.split
            assert not node.axis
            assert graph[node.name] is node
            assert graph.inputs(node) == [seen[name] for name in node.inputs]
            assert bool(node.weights) == (
                node.op in ("linear", "grouped_linear", "embedding", "position", "norm")
                or (node.op, node.function) == ("attention", "sinks")
                or node.function in ("convolution", "decay")
                or (node.name == "experts.scores" and family in BALANCED)
            )
            seen[node.name] = node
        read = {name for node in graph.nodes for name in node.inputs}
        assert {*seen} - read == {graph.output.name}
        (entry,) = (node for node in graph.nodes if node.op == "input")
        assert entry.is_tokens == (kind == "embedding")
        if kind != "head":
            stream = (("micro_batch",), ("sequence",), ("hidden",))
            assert graph.output.shape == stream


@pytest.mark.parametrize("family", FAMILIES)
def test_products_fit_together(family):
    """A projection sums over what it reads and writes what its matrix has as rows."""
    for graph in load_trace(family).values():
        for node in graph.nodes:
            read = [entry.shape for entry in graph.inputs(node)]
            if node.op in ("linear", "grouped_linear"):
                *groups, rows, columns = node.weights[0]
                assert read[0][-1] == columns
                assert node.shape == (*read[0][:-1], rows)
                assert tuple(groups) == node.shape[: len(groups)]
                for bias in node.weights[1:]:
                    assert bias == (*groups, rows)
            elif node.function in ("sigmoid_gate", "decay", "select"):
                assert len(read) == 2  # the second is broadcast
            elif node.function == "index":
                assert read[0][-1] == read[1][-1]
            elif node.op in ("norm", "elementwise", "dropout"):
                assert all(shape == node.shape for shape in read)
            elif node.op == "attention":
                assert len(read) in (3, 5)
                query, value = read[0], read[-1]
                assert node.shape == (*query[:-1], value[-1])
                keys = read[len(read) // 2 : -1]
                for one, other in zip(read, keys, strict=False):
                    assert one[-1] == other[-1]
            elif node.op == "reshape":
                parts = [
                    sorted(str(part) for dim in shape for part in dim)
                    for shape in (read[0], node.shape)
                ]
                if node.name == "attention.query_repeat":  # a head for every value head
                    parts[0] = [
                        "linear_value_heads" if p == "linear_key_heads" else p for p in parts[0]
                    ]
                    parts = [sorted(names) for names in parts]
                assert parts[0] == parts[1]
            elif node.op == "dispatch":
                assert [len(shape) for shape in read] == [3, 3]
                assert (read[0][-1], read[1][-1]) == (("hidden",), ("experts",))
                assert node.shape == (("experts",), ("slots",), ("hidden",))
            elif node.op == "combine":
                assert read[0] == (("experts",), ("slots",), ("hidden",))
                assert read[1][-1] == ("experts",)


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["hidden", "heads", "ffn", 2, 3]), max_size=3), max_size=4),
    st.sampled_from([1.0, 2.0, 4.0]), st.sampled_from([1.0, 2.0]),
)  # fmt: skip
def test_counts_are_products_divided_by_their_splits(shape, tp, ep):
    at = {"hidden": 12.0, "heads": 8.0, "ffn": 20.0}
    dims = tuple(map(tuple, shape))
    parts = [part for dim in dims for part in dim]
    whole = math.prod(at.get(part, part) if isinstance(part, str) else part for part in parts)
    assert count(dims, at) == pytest.approx(whole)
    assert count(dims, at) == pytest.approx(math.prod(extent(dim, at) for dim in dims))
    split = (Split("heads", "tp", tp), Split("heads", "ep", ep), Split("other", "tp", 9.0))
    share = (tp * ep) ** parts.count("heads")
    assert count(dims, at, split) == pytest.approx(whole / share)


def test_weights_are_counted_on_their_rank():
    node = Node(
        "p",
        "linear",
        weights=((("ffn",), ("hidden",)), (("ffn",),)),
        split=(Split("ffn", "tp", 4.0),),
    )
    assert weight_count(node, {"ffn": 20.0, "hidden": 6.0}) == 5 * 6 + 5


@pytest.mark.parametrize("family", FAMILIES)
def test_every_symbol_has_a_size(family):
    """Slots are tokens that one expert gets when all get equally many."""
    model = small(family)
    at = sizes(model, 2, 32)
    assert set(SYMBOLS) < set(at)
    assert at["slots"] * model.experts == 2 * 32 * model.top_k
    assert (at["sequence"], at["keys"], at["micro_batch"]) == (32, 32, 2)
    for name in (
        "hidden",
        "heads",
        "kv_heads",
        "head_dim",
        "ffn",
        "vocabulary",
        "positions",
        "experts",
        "top_k",
        "expert_ffn",
        "shared_ffn",
        "q_rank",
        "kv_rank",
        "rope_dim",
        "value_dim",
        "window",
    ):
        assert at[name] == getattr(model, name)


@pytest.mark.parametrize("family", FAMILIES)
def test_files_say_what_graphs_hold(family, root):
    """Nodes as they stand in the file, keys that are empty left out; reading it costs no torch."""
    document = json.loads((root / "presets" / "traces" / f"{family}.json").read_text())
    assert document["family"] == family
    for kind, nodes in document["layers"].items():
        graph = load_trace(family)[kind]
        assert graph_of(kind, nodes) == graph
        for entry, node in zip(nodes, graph.nodes, strict=True):
            assert entry["name"] == node.name
            assert [list(dim) for dim in node.shape] == entry["shape"]
            assert node.core == (node.op == "attention")


def test_sources_are_behind_views_and_gathers():
    nodes = (
        Node("input", "input"),
        Node("view", "reshape", inputs=("input",)),
        Node("gathered", "collective", inputs=("view",), forward=("all_gather",)),
        Node("entered", "collective", inputs=("gathered",), backward=("all_reduce",)),
        Node("sum", "collective", inputs=("entered",), forward=("all_reduce",)),
    )
    graph = Graph("block", nodes)
    for node in nodes[:-1]:
        assert graph.source(node) is nodes[0]
    assert graph.source(nodes[-1]) is nodes[-1]
    assert graph.output is nodes[-1]
    with pytest.raises(KeyError):
        graph["nobody"]


def test_an_unknown_family_is_refused_with_what_to_do():
    with pytest.raises(InputError) as caught:
        load_trace("perceptron")
    assert str(caught.value) == (
        "model.family must be one whose operators were traced, but is 'perceptron': pick "
        + ", ".join(families())
        + ", or trace its module with nest-studio trace."
    )
    assert caught.value.field == "model.family"
