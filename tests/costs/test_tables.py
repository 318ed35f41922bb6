"""Layer tables: operators and collectives become seconds and bytes, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nest_core.costs import RECOMPUTE, StateBytes
from nest_core.costs.tables import (
    OPTIMIZERS,
    element_bytes,
    layer_table,
    model_flops,
    state_bytes,
)
from nest_core.hardware import PRECISIONS, Accelerator, backward_seconds, forward_seconds
from nest_core.scenario import load_model
from nest_core.workload import Layer, Strategy, chain

MODELS = ["bert-large", "gpt3-175b", "llama2-7b", "llama3-70b", "mixtral-8x7b"]
DEVICE = Accelerator(
    name="round figures",
    peak_flops=(("bf16", 1000e12), ("fp8", 2000e12)),
    memory_bytes=80e9,
    memory_bandwidth_Bps=2e12,
    matmul_efficiency=0.8,
    attention_efficiency=0.5,
    memory_efficiency=0.9,
    reserved_bytes=0.0,
    source="test",
)


@pytest.mark.parametrize(
    ("precision", "optimizer", "expected"),
    [
        # Megatron-LM: bf16 weights, fp32 gradients, master and two moments: 18 bytes.
        ("bf16", "adam", StateBytes(2, 4, 12)),
        ("fp8", "adam", StateBytes(2, 4, 12)),
        # fp16 gradients: 16 bytes, as Rajbhandari et al. 2020 count.
        ("fp16", "adam", StateBytes(2, 2, 12)),
        ("fp32", "adam", StateBytes(4, 4, 8)),
        ("tf32", "adam", StateBytes(4, 4, 8)),
        # No master copy, moments in bf16.
        ("bf16", "adam_bf16", StateBytes(2, 2, 4)),
        ("fp32", "adam_bf16", StateBytes(4, 4, 4)),
        # Two moments of one byte beside the master copy.
        ("bf16", "adam_8bit", StateBytes(2, 4, 6)),
        ("fp32", "adam_8bit", StateBytes(4, 4, 2)),
        # No moments: the master copy is left.
        ("bf16", "sgd", StateBytes(2, 4, 4)),
        ("fp32", "sgd", StateBytes(4, 4, 0)),
    ],
)
def test_bytes_per_parameter(precision, optimizer, expected):
    """A failure: memory of every plan in this precision is wrong."""
    assert state_bytes(precision, optimizer) == expected
    assert element_bytes(precision) == expected.weights


def test_every_pair_of_precision_and_optimizer_has_its_bytes():
    """What a scenario may ask for is answered."""
    for precision in PRECISIONS:
        for optimizer in OPTIMIZERS:
            state = state_bytes(precision, optimizer)
            assert min(state.weights, state.gradients) > 0
            assert state.optimizer >= 0


def rows(name: str, strategy: Strategy) -> list[Layer]:
    """The chain, layer by layer."""
    return [layer for layer, count in chain(load_model(name), strategy).runs for _ in range(count)]


STRATEGIES = [
    Strategy(1, False, 2, 256),
    Strategy(4, False, 1, 256, attention="unfused"),
    Strategy(8, True, 1, 512),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=["alone", "tp 4", "tp 8 with sp"])
@pytest.mark.parametrize("name", MODELS)
def test_a_row_is_the_sum_of_its_operators(name, strategy):
    """Time, bytes and parameters of every layer, added up here from the chain itself."""
    model = load_model(name)
    table = layer_table(model, strategy, DEVICE, "bf16")
    layers = rows(name, strategy)
    assert table.layers == len(layers) == model.blocks + 2
    for number, layer in enumerate(layers):
        forward = [forward_seconds(entry, DEVICE, "bf16") for entry in layer.operators]
        backward = [backward_seconds(entry, DEVICE, "bf16") for entry in layer.operators]
        core = sum(s for s, entry in zip(forward, layer.operators, strict=True) if entry.core)
        again = [0.0, core, sum(forward)] if layer.kind == "block" else [0.0] * 3
        assert table.compute_s[number] == pytest.approx(sum(forward) + sum(backward))
        assert table.replay_s[:, number] == pytest.approx(again)
        assert table.parameters[number] == layer.parameters
        kept = [layer.kept_bytes(choice) for choice in RECOMPUTE]
        assert table.kept_bytes[:, number] == pytest.approx(kept)
        # What recomputation dropped is there again while the layer's backward runs.
        assert table.working_bytes[:, number] + kept == pytest.approx(kept[0])


@pytest.mark.parametrize("name", MODELS)
def test_halves_count_all_reduces_twice_and_full_recomputation_repeats_forward(name):
    """Four all-reduces of 2 b s h per block and micro-batch are eight halves; two again."""
    model = load_model(name)
    size = 2 * 256 * model.hidden
    for sp in (False, True):
        table = layer_table(model, Strategy(4, sp, 1, 256), DEVICE, "bf16")
        assert (table.tp_halves[1:-1] == 8).all()
        assert (table.tp_bytes[1:-1] == 8 * size).all()
        assert (table.tp_halves[[0, -1]] == 2).all()
        assert (table.tp_bytes[[0, -1]] == 2 * size).all()
        assert (table.tp_replay_halves[:, 1:-1].T == [0, 0, 4]).all()
        assert (np.array([0, 0, 4 * size]) == table.tp_replay_bytes[:, 1:-1].T).all()
        assert not table.tp_replay_halves[:, [0, -1]].any()
    alone = layer_table(model, Strategy(1, False, 1, 256), DEVICE, "bf16")
    assert not alone.tp_halves.any()
    assert not alone.tp_bytes.any()


def test_boundaries_lie_between_layers():
    """Nothing is sent before the first layer or after the last; the stream in between."""
    table = layer_table(load_model("llama2-7b"), Strategy(1, False, 3, 128), DEVICE, "bf16")
    assert table.boundary_bytes.shape == (table.layers + 1,)
    assert table.boundary_bytes[[0, -1]].tolist() == [0, 0]
    assert (table.boundary_bytes[1:-1] == 2 * 3 * 128 * 4096).all()


def test_only_a_tied_head_has_a_copy():
    for name in MODELS:
        model = load_model(name)
        table = layer_table(model, Strategy(2, False, 1, 128), DEVICE, "bf16")
        copy = model.vocabulary * model.hidden / 2 if model.tied else 0
        assert table.tied_parameters == copy
        # Every parameter once, and copies of norms and the like on top.
        assert 2 * (table.parameters.sum() - copy) >= model.parameters


@pytest.mark.parametrize("name", MODELS)
def test_model_flops_are_six_per_weight_and_token_and_the_scores(name):
    """6 s N over the weights that a token multiplies, and 12 L s^2 a d (no causal discount).

    The formula of Narayanan et al. 2021, appendix, in its exact form: N leaves out
    embeddings, norms and biases.
    """
    model, s = load_model(name), 128
    gates = 3 if model.mlp == "swiglu" else 2
    rows_ = (model.heads + 2 * model.kv_heads + model.heads) * model.head_dim
    router = model.experts if model.experts > 1 else 0
    block = model.hidden * (rows_ + model.top_k * gates * model.ffn + router)
    transform = model.hidden**2 if model.head_transform else 0
    weights = model.blocks * block + model.vocabulary * model.hidden + transform
    scores = 12 * model.blocks * s**2 * model.heads * model.head_dim
    assert model_flops(model, s) == pytest.approx(6 * s * weights + scores, rel=1e-12)


def test_wider_and_faster_are_never_slower():
    """More ranks or a better device never add compute time to a layer."""
    model = load_model("llama3-70b")
    before = layer_table(model, Strategy(1, False, 1, 1024), DEVICE, "bf16")
    for tp in (2, 4, 8):
        after = layer_table(model, Strategy(tp, False, 1, 1024), DEVICE, "bf16")
        assert (after.compute_s < before.compute_s + 1e-15).all()
        assert (after.kept_bytes <= before.kept_bytes).all()
        before = after
    quick = replace(DEVICE, memory_bandwidth_Bps=4e12)
    plain = layer_table(model, Strategy(8, True, 1, 1024), DEVICE, "bf16")
    assert (
        layer_table(model, Strategy(8, True, 1, 1024), quick, "bf16").compute_s <= plain.compute_s
    ).all()
    eight = layer_table(model, Strategy(8, True, 1, 1024), DEVICE, "fp8")
    assert (eight.compute_s <= plain.compute_s).all()
    assert np.array_equal(eight.kept_bytes, plain.kept_bytes)
