"""What strategies exchange: the closed forms of the literature, for every family."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import FAMILIES, MIXTURES, small

from nest_core.workload import Collective, Layer, Model, Strategy, chain, load_trace
from nest_core.workload.model_files import load_model

BATCH, TOKENS = 2, 32
# Latent projections enter the region apart from the residual stream; tested on their own.
PLAIN = [name for name in FAMILIES if not name.startswith("deepseek")]
LATENT = [name for name in FAMILIES if name.startswith("deepseek")]
SHARED = [name for name in MIXTURES if small(name).shared_ffn]
PRESETS = ["bert-large", "gpt3-175b", "llama2-7b", "llama3-70b", "qwen3-8b", "nemotron4-15b"]


def layers(model: Model, strategy: Strategy) -> dict[str, Layer]:
    return {layer.kind: layer for layer, _ in chain(model, strategy).runs}


def calls(layer: Layer, axis: str) -> dict[str, list[tuple[float, int, int]]]:
    """Bytes, times forward and times backward of an axis's collectives, by their kind."""
    found = defaultdict(list)
    for call in layer.collectives:
        if call.axis == axis:
            found[call.op].append((call.bytes, call.forward, call.backward))
    return dict(found)


def volume(found: tuple[Collective, ...], axis: str = "tp", *, backward: bool) -> float:
    """Bytes of buffers; an all-reduce is a reduce-scatter and an all-gather."""
    return sum(
        (call.backward if backward else call.forward)
        * call.bytes
        * (2 if call.op == "all_reduce" else 1)
        for call in found
        if call.axis == axis
    )


def of(**more: object) -> Strategy:
    return Strategy(**{"micro_batch": BATCH, "sequence": TOKENS, **more})  # type: ignore[arg-type]


# Tensor and sequence parallelism ----------------------------------------------------------------


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(
    st.sampled_from(PRESETS), st.sampled_from([2, 4, 8]), st.integers(1, 8),
    st.sampled_from([64, 2048]), st.sampled_from([2.0, 4.0]),
)  # fmt: skip
def test_two_all_reduces_each_way_per_block(name, tp, batch, tokens, width):
    """Shoeybi et al. 2019, figure 4: f and g around attention and MLP, b s h width bytes each."""
    model = load_model(name)
    strategy = Strategy(tp=tp, micro_batch=batch, sequence=tokens, width=width)
    found = layers(model, strategy)
    size = batch * tokens * model.hidden * width
    assert found["block"].collectives == (Collective("tp", "all_reduce", size, 2, 2),)
    # The embedding sums over its rows forward; the projection's input gradient backward.
    assert found["embedding"].collectives == (Collective("tp", "all_reduce", size, 1, 0),)
    exchanged = batch * tokens * width
    assert sorted(found["head"].collectives, key=lambda call: call.bytes) == [
        # Maximum, sum and target of every token (Megatron-LM's vocabulary-parallel loss).
        Collective("tp", "all_reduce", exchanged, 3, 0),
        Collective("tp", "all_reduce", size, 0, 1),
    ]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tp", [2, 4])
def test_sequence_parallelism_sends_the_same_bytes(family, tp):
    """Korthikanti et al. 2022, section 4.2.2: an all-reduce becomes its two parts.

    At both ends of the model a sum becomes a scatter, undone by a gather in the other pass. The
    latent projections of MLA run on a part of the tokens then, and what is gathered is narrower.
    Every rank has an indexer whole: its input is gathered, and gets no gradients, as it is detached
    (DeepSeek-V3.2, arXiv:2512.02556, section 2.1; Megatron-LM's dsa.py).
    """
    model = small(family)
    tensor, sequence = layers(model, of(tp=tp)), layers(model, of(tp=tp, sp=True))
    for kind, layer in sequence.items():
        ops = {call.op for call in layer.collectives if call.bytes > BATCH * TOKENS * 2}
        assert ops <= {"all_gather", "reduce_scatter"}
        both = [
            [volume(found[kind].collectives, backward=backward) for backward in (False, True)]
            for found in (tensor, sequence)
        ]
        indexed = bool(model.index_heads) and kind.endswith("block")
        assert sum(both[0]) + indexed * BATCH * TOKENS * 8 * 2 == sum(both[1])
        # Cohere's halves read one tensor, whose gradient is summed once.
        if kind.endswith("block") and family in PLAIN and family != "cohere2":
            assert both[0] == both[1]


def test_sequence_parallel_ends():
    """A scatter of the embedding, undone backward; a gather before the logits, likewise."""
    for family in PLAIN:
        found = layers(small(family), of(tp=2, sp=True))
        size = BATCH * TOKENS * 8 * 2
        first, last = calls(found["embedding"], "tp"), calls(found["head"], "tp")
        assert first == {"reduce_scatter": [(size, 1, 0)], "all_gather": [(size, 0, 1)]}
        last.pop("all_reduce")
        assert last == {"all_gather": [(size, 1, 0)], "reduce_scatter": [(size, 0, 1)]}


@pytest.mark.parametrize("family", [name for name in LATENT if small(name).q_rank])
def test_latent_projections_gather_their_latents(family):
    """With sequence parallelism: both latents and the key's position, narrower than the stream.

    Outside the region are the down projections; what enters is q_rank + kv_rank + rope_dim wide.
    The MLP, dense, shared or experts', has its own pair. An indexer reads the whole stream.
    """
    model = small(family)
    wide = BATCH * TOKENS * 2
    widths = [model.q_rank, model.kv_rank, model.rope_dim]
    plain = layers(model, of(tp=2, etp=1))
    found = layers(model, of(tp=2, sp=True, etp=1))
    for kind in ("block", "moe_block"):
        gathered = calls(found[kind], "tp")["all_gather"]
        stream = (wide * 8, 1 + bool(model.index_heads), 2)
        expected = sorted([*((wide * width, 1, 0) for width in widths), stream])
        assert sorted(gathered) == expected
        reduced = calls(plain[kind], "tp")["all_reduce"]
        expected = sorted([*((wide * width, 0, 1) for width in widths), (wide * 8, 2, 1)])
        assert sorted(reduced) == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sp", [False, True])
def test_one_rank_needs_no_collectives(family, sp):
    for layer in layers(small(family), of(sp=sp)).values():
        assert not layer.collectives


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("case", "share"),
    [
        ({"tp": 2}, 1),
        ({"tp": 4, "sp": True}, 4),
        ({"cp": 2}, 2),
        ({"cp": 2, "tp": 2}, 2),
        ({"cp": 2, "tp": 2, "sp": True}, 4),
        ({"ep": 2}, 1),
    ],
    ids=str,
)
def test_the_boundary_is_the_residual_stream(family, case, share):
    """What goes to the next stage: b s h width bytes, divided where the stream is."""
    size = 2 * BATCH * TOKENS * 8 / share
    if "moe_block" not in load_trace(family):
        case = case | {"ep": 1}
    for kind, layer in layers(small(family), of(**case)).items():
        assert layer.output_bytes == (0 if kind == "head" else size), kind
        assert layer.input_bytes == (size if kind.endswith("block") else 0)


# Context parallelism ----------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("attention", ["flash", "unfused"])
@pytest.mark.parametrize(("tp", "sp"), [(1, False), (2, False), (4, True)])
def test_keys_and_values_pass_once_forward_and_twice_backward(family, attention, tp, sp):
    """Liu et al. 2023: a rank sends (cp - 1)/cp of the sequence's keys and values, 2 b s kv d.

    Backward they pass again, and their gradients with them. The buffer is the whole sequence's.
    Where key and value heads are fewer than ranks, each passes on its copy.
    """
    model = small(family)
    heads = max(model.kv_heads / tp, 1)
    widths = [model.head_dim * heads, (model.value_dim or model.head_dim) * heads]
    if model.rope_dim:
        widths.append(model.rope_dim)
    if model.index_heads:  # one key for all of the indexer's heads, and their weights
        widths += [model.index_dim, model.index_heads]
    linear = model.linear_value_heads / tp
    for kind, layer in layers(model, of(tp=tp, sp=sp, cp=4, attention=attention)).items():
        found = calls(layer, "cp")
        if kind in ("embedding", "head"):
            assert not found
            continue
        states = [linear * model.linear_key_dim, linear * model.linear_value_dim]
        expected = defaultdict(int)
        for width in states if kind.startswith("local") else widths:
            expected[2 * BATCH * TOKENS * width] += 1
        assert set(found) == {"ring"}
        assert sorted(found["ring"]) == sorted((n, t, 2 * t) for n, t in expected.items())


@pytest.mark.parametrize("family", FAMILIES)
def test_gathered_keys_and_values(family):
    """Llama 3, section 3.3.2: gathered forward; backward gathered again, gradients scattered."""
    model = small(family)
    for kind, layer in layers(model, of(cp=2, context="all_gather")).items():
        if kind in ("embedding", "head"):
            continue
        ring = calls(layers(model, of(cp=2))[kind], "cp")["ring"]
        found = calls(layer, "cp")
        assert sorted(found["all_gather"]) == sorted((n, t, t) for n, t, _ in ring)
        assert sorted(found["reduce_scatter"]) == sorted((n, 0, t) for n, t, _ in ring)


def test_context_parallelism_divides_what_tensor_parallelism_sends():
    for family in FAMILIES:
        model = small(family)
        for sp in (False, True):
            one, two = layers(model, of(tp=2, sp=sp)), layers(model, of(tp=2, sp=sp, cp=2))
            for kind in one:
                for backward in (False, True):
                    whole = volume(one[kind].collectives, backward=backward)
                    assert volume(two[kind].collectives, backward=backward) == whole / 2


# Expert parallelism -----------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", MIXTURES)
@pytest.mark.parametrize(
    ("case", "ranks"),
    [
        ({}, 1),
        ({"cp": 2}, 2),
        ({"tp": 2}, 1),
        ({"tp": 2, "sp": True}, 2),
        ({"tp": 2, "sp": True, "etp": 1}, 2),
        ({"tp": 2, "sp": True, "cp": 2}, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("ep", [2, 4])
def test_two_all_to_alls_each_way_of_every_tokens_copies(family, case, ranks, ep):
    """Lepikhin et al. 2020: tokens x top k x hidden x width bytes to the experts and back.

    Of the tokens that a rank holds; how many experts share them does not matter.
    """
    model = small(family)
    layer = layers(model, of(ep=ep, **case))["moe_block"]
    size = 2 * BATCH * TOKENS * model.top_k * model.hidden / ranks
    assert calls(layer, "ep") == {"all_to_all": [(size, 2, 2)]}
    busy = layers(model, of(ep=ep, imbalance=1.5, **case))["moe_block"]
    assert calls(busy, "ep") == {"all_to_all": [(1.5 * size, 2, 2)]}


@pytest.mark.parametrize("family", [name for name in MIXTURES if name not in SHARED])
@pytest.mark.parametrize("ep", [1, 2])
def test_expert_tensor_parallelism_gathers_and_reduces_slots(family, ep):
    """Megatron-LM: slots are gathered before the experts and their sums scattered behind.

    b s top_k h width bytes per gather instead of b s h; without sequence parallelism all-reduced.
    """
    model = small(family)
    attention = 2 * BATCH * TOKENS * model.hidden
    slots = attention * model.top_k
    sequence = layers(model, of(tp=2, sp=True, ep=ep))["moe_block"]
    assert calls(sequence, "tp") == {
        "all_gather": [(attention, 1, 1), (slots, 1, 1)],
        "reduce_scatter": [(attention, 1, 1), (slots, 1, 1)],
    }
    tensor = layers(model, of(tp=2, ep=ep))["moe_block"]
    assert calls(tensor, "tp") == {"all_reduce": [(attention, 1, 1), (slots, 1, 1)]}
    alone = layers(model, of(tp=2, sp=True, ep=ep, etp=1))["moe_block"]
    assert calls(alone, "tp") == {
        "all_gather": [(attention, 1, 1)],
        "reduce_scatter": [(attention, 1, 1)],
    }


def test_shared_experts_enter_once():
    """Both projections of the shared experts read one gathered tensor."""
    for family in (name for name in SHARED if "block" in load_trace(name)):
        model = small(family)
        for sp in (False, True):
            strategy = of(tp=2, sp=sp, etp=1)
            dense, mixture = (layers(model, strategy)[kind] for kind in ("block", "moe_block"))
            assert dense.collectives == mixture.collectives


def test_width_scales_every_buffer():
    for family in FAMILIES:
        strategy = of(tp=2, sp=True, cp=2, ep=2)
        narrow = layers(small(family), strategy)
        wide = layers(small(family), replace(strategy, width=4.0))
        for kind, layer in narrow.items():
            doubled = tuple(replace(call, bytes=2 * call.bytes) for call in layer.collectives)
            assert wide[kind].collectives == doubled


@pytest.mark.parametrize("family", [name for name in MIXTURES if name not in SHARED])
@pytest.mark.parametrize("ep", [1, 2])
def test_experts_divided_among_fewer_ranks_gather_what_those_received(family, ep):
    """Megatron-LM with ``--expert-tensor-parallel-size`` 2 of 4: two ranks gather their slots.

    The exchange sends the tokens that a rank holds, whoever shares experts; attention's part stays
    among all four. Every rank has a part of experts twice as wide, and as much to multiply.
    """
    model = small(family)
    four = layers(model, of(tp=4, sp=True, ep=ep))["moe_block"]
    two = layers(model, of(tp=4, sp=True, ep=ep, etp=2))["moe_block"]
    attention = 2 * BATCH * TOKENS * model.hidden
    assert calls(two, "ep") == calls(four, "ep")
    assert calls(two, "tp") == {
        "all_gather": [(attention, 1, 1)],
        "reduce_scatter": [(attention, 1, 1)],
    }
    slots = attention * model.top_k * 2 / 4
    assert calls(two, "etp") == {
        "all_gather": [(slots, 1, 1)],
        "reduce_scatter": [(slots, 1, 1)],
    }
    assert two.expert_parameters == pytest.approx(2 * four.expert_parameters, rel=0.05)  # biases
    flops = [sum(each.flops for each in layer.operators) for layer in (four, two)]
    assert flops[0] == pytest.approx(flops[1])
