"""Single operators: work, traffic and what is kept, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.workload import Graph, Node, Operator
from nest_core.workload.graph import SYMBOLS, Split
from nest_core.workload.operators import Accumulation, kept_bytes, operators

B, S, H = ("micro_batch",), ("sequence",), ("hidden",)
STREAM = (B, S, H)
SIZES = dict.fromkeys(SYMBOLS, 1.0) | {
    "micro_batch": 2.0, "sequence": 6.0, "keys": 6.0, "hidden": 5.0, "ffn": 7.0, "heads": 4.0,
    "kv_heads": 2.0, "head_dim": 8.0, "experts": 3.0, "slots": 8.0, "expert_ffn": 11.0,
    "vocabulary": 10.0, "rope_dim": 3.0, "value_dim": 9.0, "window": 0.0,
}  # fmt: skip
INPUT = Node("input", "input", shape=STREAM)


def one(*nodes: Node, width: float = 2.0, **sizes: float) -> Operator:
    """The last of some nodes."""
    return operators(Graph("block", nodes), SIZES | sizes, width)[-1]


def both(operator: Operator) -> tuple[float, float]:
    """Bytes of the forward and of the backward pass."""
    return operator.bytes, sum(kernel.bytes for kernel in operator.backward)


def heads(name: str, symbol: str = "heads", width: str = "head_dim") -> Node:
    return made(name, (B, (symbol,), S, (width,)))


def made(name: str, shape: Any) -> Node:
    """A tensor that somebody made."""
    return Node(name, "norm", shape=shape)


def test_a_projection_reads_two_matrices_and_writes_one():
    """(12, 5) x (5, 7) in 2 bytes; backward a product for the input and one for the weights."""
    node = Node(
        "p",
        "linear",
        inputs=("input",),
        shape=(B, S, ("ffn",)),
        weights=((("ffn",), H), (("ffn",),)),
    )
    found = one(INPUT, node)
    traffic = 2 * (12 * 5 + 5 * 7 + 12 * 7)
    assert (found.flops, found.bytes) == (2 * 12 * 5 * 7, traffic)
    assert [kernel.shape for kernel in found.backward] == [(1, 12, 5, 7), (1, 7, 5, 12)]
    assert sum(kernel.flops for kernel in found.backward) == 2 * found.flops
    assert sum(kernel.bytes for kernel in found.backward) == 2 * traffic
    assert {kernel.unit for kernel in (*found.forward, *found.backward)} == {"gemm"}
    assert found.parameters == 7 * 5 + 7
    assert found.kept == (("input", 2 * 12 * 5),)
    assert not found.core


def test_experts_read_all_of_their_weights():
    """Three products of 8 rows instead of one of 24: as many FLOP, three weight matrices."""
    shape = (("experts",), ("slots",), H)
    node = Node(
        "e",
        "grouped_linear",
        inputs=("slots",),
        shape=(*shape[:2], ("expert_ffn",)),
        weights=((("experts",), ("expert_ffn",), H),),
    )
    found = one(made("slots", shape), node)
    assert found.forward[0].shape == (3, 8, 11, 5)
    assert found.flops == 2 * 24 * 11 * 5
    assert found.bytes == 2 * 3 * (8 * 5 + 5 * 11 + 8 * 11)
    assert found.parameters == 3 * 11 * 5


def test_projections_that_run_together_are_one_wider_product():
    """Work is the sum, the input is read once; parameters and kept tensors stay where they are."""

    def node(name: str, width: str, together: str = "") -> Node:
        return Node(
            name,
            "linear",
            inputs=("input",),
            shape=(B, S, (width,)),
            weights=(((width,), H),),
            together=together,
        )

    apart = operators(Graph("block", (INPUT, node("a", "ffn"), node("b", "heads"))), SIZES, 2.0)
    joint = operators(
        Graph("block", (INPUT, node("a", "ffn"), node("b", "heads", "a"))), SIZES, 2.0
    )
    assert sum(each.flops for each in joint) == sum(each.flops for each in apart)
    assert joint[0].forward[0].shape == (1, 12, 11, 5)
    assert (joint[1].forward, joint[1].backward) == ((), ())
    assert sum(each.bytes for each in apart) - joint[0].bytes == 2 * 12 * 5
    assert [each.parameters for each in joint] == [each.parameters for each in apart]
    assert kept_bytes(joint) == kept_bytes(apart)


@pytest.mark.parametrize(
    ("function", "reads", "forward", "backward", "kept"),
    [
        # Backward reads the gradient and the inputs, and writes gradients of the inputs.
        ("gelu", 1, 2, 3, 1),
        ("swiglu", 2, 3, 5, 2),
        # A sum hands its gradient on; a rotation is undone.
        ("add", 2, 3, 2, 0),
        ("rope", 1, 2, 2, 0),
        ("scale", 1, 2, 2, 0),
    ],
)
def test_an_elementwise_pass_moves_its_reads(function, reads, forward, backward, kept):
    inputs = [replace(INPUT, name=f"x{number}") for number in range(reads)]
    names = tuple(node.name for node in inputs)
    found = one(*inputs, Node("e", "elementwise", function, names, STREAM))
    size = 2 * 2 * 6 * 5
    assert both(found) == (forward * size, backward * size)
    assert sum(bytes for _, bytes in found.kept) == kept * size
    assert found.flops == 0
    assert [kernel.unit for kernel in found.forward] == ["memory"]


def test_dropout_writes_a_byte_per_element_and_keeps_it():
    size = 2 * 6 * 5
    alone = one(INPUT, Node("d", "dropout", inputs=("input",), shape=STREAM))
    assert both(alone) == (5 * size, 5 * size)
    assert alone.kept == (("d:mask", size),)
    residual = replace(INPUT, name="residual")
    fused = one(
        INPUT, residual, Node("r", "elementwise", "dropout+add", ("input", "residual"), STREAM)
    )
    assert fused.bytes == 7 * size
    assert fused.kept == (("r:mask", size),)


def test_norm_embedding_and_loss():
    size = 2 * 6 * 5
    norm = one(INPUT, Node("n", "norm", "rmsnorm", ("input",), STREAM, ((H,),)))
    assert both(norm) == (2 * 2 * size, 3 * 2 * size)
    assert (norm.kept, norm.parameters) == ((("input", 2 * size),), 5)
    tokens = Node("input", "input", shape=(B, S))
    rows = Node("t", "embedding", inputs=("input",), shape=STREAM, weights=((("vocabulary",), H),))
    embedding = one(tokens, rows)
    assert embedding.bytes == 2 * 2 * size  # rows read and written
    assert (embedding.kept, embedding.parameters) == ((), 50)
    logits = Node("input", "input", shape=(B, S, ("vocabulary",)))
    loss = one(logits, Node("loss", "loss", inputs=("input",)), hidden=5)
    # Cast, maximum, three passes in place, sum; scale, cast back: 2 bytes, in fp32 4 of them.
    assert both(loss) == ((6 + 4 + 3 * 8 + 4) * 120, (8 + 6) * 120)
    assert loss.kept == (("loss:probabilities", 4 * 120),)


@pytest.mark.parametrize("causal", [True, False])
def test_fused_attention_moves_no_scores(causal):
    """b 2, s 6, a 4, kv 2, d 8: 4*2*36*4*8 FLOP, half with a mask; backward 2.5 times (Dao 2023).

    Queries, keys, values and the result: 12 tokens x (2*4 + 2*2) heads x 8 x 2 bytes.
    """
    node = Node(
        "c",
        "attention",
        inputs=("q", "k", "v"),
        shape=(B, ("heads",), S, ("head_dim",)),
        causal=causal,
        core=True,
    )
    found = one(heads("q"), heads("k", "kv_heads"), heads("v", "kv_heads"), node)
    assert found.flops == 9216 / (2 if causal else 1)
    assert found.backward[0].flops == 2.5 * found.flops
    assert found.bytes == 2 * 12 * 12 * 8
    assert found.forward[0].shape == (8, 6, 6, 8)
    assert sum(size for _, size in found.kept) == 2 * 12 * 12 * 8 + 4 * 12 * 4
    assert kept_bytes([found], {found.name}) == 2 * 12 * (4 + 2 * 2) * 8


def test_latent_attention_scores_both_parts():
    """Scores over 8 + 3, values of 9; the rotated key is one for all heads."""
    shared = made("kr", (B, (), S, ("rope_dim",)))
    parts = (
        heads("q"),
        heads("qr", width="rope_dim"),
        heads("k"),
        shared,
        heads("v", width="value_dim"),
    )
    node = Node(
        "c",
        "attention",
        inputs=("q", "qr", "k", "kr", "v"),
        shape=(B, ("heads",), S, ("value_dim",)),
    )
    found = one(*parts, node)
    assert found.flops == 2 * 2 * 4 * 36 * (8 + 3 + 9)
    assert found.bytes == 2 * 12 * (4 * (8 + 3 + 8 + 9 + 9) + 3)
    two = tuple(
        replace(each, split=(Split("sequence", "cp", 2.0),)) for each in (*parts, node)
    )  # a rank's own queries and results; all keys and values
    assert one(*two).bytes == 2 * 6 * 4 * (8 + 3 + 9) + 2 * 12 * (4 * (8 + 9) + 3)


def test_stored_scores_are_read_and_written():
    """b 2, s 6, a 4, d 8: 288 scores of 2 bytes, and both operands for every head."""
    scores = Node("s", "matmul", inputs=("q", "k"), shape=(B, ("heads",), S, ("keys",)), core=True)
    product = one(heads("q"), heads("k", "kv_heads"), scores)
    assert product.forward[0].shape == (8, 6, 6, 8)
    assert product.forward[0].unit == "batched"
    assert product.flops == 2 * 8 * 36 * 8
    assert product.bytes == 2 * 8 * (6 * 8 + 8 * 6 + 36)
    softmax = one(
        made("s", scores.shape), Node("p", "softmax", inputs=("s",), shape=scores.shape, core=True)
    )
    assert both(softmax) == (2 * 2 * 288, 3 * 2 * 288)
    assert softmax.kept == (("p", 2 * 288),)
    assert kept_bytes([softmax], {softmax.name}) == 0


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 6000))
def test_a_query_sees_as_many_keys_as_a_mask_shows(keys, window):
    """Counted on average over whole chunks: within half a key of the mask's own count."""
    from nest_core.workload.operators import _keys_seen

    reach = window or keys
    counted = sum(min(place + 1, reach) for place in range(keys)) / keys
    assert _keys_seen(keys, window, causal=True) == pytest.approx(counted, abs=0.51)
    assert _keys_seen(keys, window, causal=False) == keys


def test_a_window_never_adds_work():
    node = Node("c", "attention", inputs=("q", "q", "q"), shape=heads("q").shape, causal=True)
    before = 0.0
    for window in (1, 2, 4, 6):
        found = one(heads("q"), node, window=window).flops
        assert found >= before
        before = found
    assert before == one(heads("q"), node, window=0).flops == one(heads("q"), node, window=99).flops


def test_shared_tensors_count_once_and_views_nothing():
    """Two projections of one tensor, one of them of a view of it, keep it once."""
    view = Node("view", "reshape", inputs=("input",), shape=((*B, *S), H))
    weights: Any = ((("ffn",), H),)
    nodes = (
        INPUT,
        view,
        Node("a", "linear", inputs=("input",), shape=(B, S, ("ffn",)), weights=weights),
        Node("b", "linear", inputs=("view",), shape=((*B, *S), ("ffn",)), weights=weights),
    )
    found = operators(Graph("block", nodes), SIZES, 2.0)
    assert [each.name for each in found] == ["a", "b"]
    assert kept_bytes(found) == 2 * 60


def test_what_a_collective_made_is_kept_where_it_cannot_be_gathered_again():
    """Behind an all-gather a rank keeps its part, behind a reduce-scatter the part it got."""
    part = (Split("sequence", "tp", 2.0),)
    norm = Node("n", "norm", "rmsnorm", ("c",), STREAM, ((H,),), split=part)

    def kept(op: str, first: Node) -> tuple[tuple[str, float], ...]:
        sent = Node("c", "collective", inputs=(first.name,), shape=STREAM, axis="tp", forward=(op,))
        return one(first, sent, norm).kept

    assert kept("all_gather", replace(INPUT, split=part)) == (("input", 2 * 30),)
    summed = replace(INPUT, split=(Split("ffn", "tp", 2.0),))
    assert kept("reduce_scatter", summed) == (("c", 2 * 30),)
    assert kept("all_reduce", summed) == (("c", 2 * 60),)


def test_tokens_go_to_experts_and_back():
    """Slots (3, 8, 5), tokens (12, 5), weights (12, 3); combine keeps what the experts made, for
    the gradient of the weights."""
    tokens, gates = made("x", STREAM), made("w", (B, S, ("experts",)))
    slots = (("experts",), ("slots",), H)
    dispatch = one(tokens, gates, Node("d", "dispatch", inputs=("x", "w"), shape=slots))
    assert both(dispatch) == (2 * (60 + 36 + 120), 2 * (120 + 60 + 36))
    assert dispatch.kept == ()
    combine = one(made("y", slots), gates, Node("c", "combine", inputs=("y", "w"), shape=STREAM))
    assert combine.bytes == 2 * (120 + 36 + 60)
    assert combine.kept == (("y", 2 * 120),)
    assert (dispatch.flops, combine.flops) == (0, 0)


# Gradients of weights ---------------------------------------------------------------------------

PROJECTION = Node(
    "p", "linear", inputs=("input",), shape=(B, S, ("ffn",)), weights=((("ffn",), H),)
)
EMBEDDING = Node("e", "embedding", inputs=("input",), shape=STREAM, weights=((("vocabulary",), H),))


def added(node: Node, accumulation: Accumulation, tokens: float = 6.0) -> float:
    """Bytes that a node's backward pass moves to add its weights' gradient up."""
    graph = Graph("block", (INPUT, node))
    found = operators(graph, SIZES | {"sequence": tokens}, 2.0, accumulation)[-1]
    return sum(kernel.added_bytes for kernel in found.backward)


@pytest.mark.parametrize(
    ("node", "fused", "per_weight"),
    [
        # The product reads the fp32 sum and writes it in place of a gradient in 2 bytes.
        (PROJECTION, True, 4 + 4 - 2),
        # A pass reads the gradient and the sum, and writes the sum.
        (PROJECTION, False, 2 + 4 + 4),
        # The table's gradient is cleared, and always added by a pass.
        (EMBEDDING, True, 2 + 2 + 4 + 4),
        (EMBEDDING, False, 2 + 2 + 4 + 4),
    ],
)
def test_gradients_of_weights_are_added_to_their_sum(node, fused, per_weight):
    """As many bytes however many tokens there are; none where nothing is added up."""
    weights = 5 * 7 if node is PROJECTION else 10 * 5
    for tokens in (6.0, 600.0):
        assert added(node, Accumulation(4.0, fused), tokens) == weights * per_weight
    assert added(node, Accumulation(0.0, fused)) == 0.0


def test_projections_that_run_together_add_all_their_gradients():
    pair = PROJECTION, replace(PROJECTION, name="q", together="p")
    apart = PROJECTION, replace(PROJECTION, name="q")
    sums = [
        sum(
            kernel.added_bytes
            for operator in operators(Graph("block", (INPUT, *nodes)), SIZES, 2.0, Accumulation(4))
            for kernel in operator.backward
        )
        for nodes in (pair, apart)
    ]
    assert sums[0] == sums[1] > 0
