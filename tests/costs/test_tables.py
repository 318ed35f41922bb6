"""Layer tables: operators and collectives become seconds and bytes, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nest_core.costs import RECOMPUTE, StateBytes
from nest_core.costs.anatomy import anatomy
from nest_core.costs.tables import element_bytes, layer_table, model_flops, state_bytes
from nest_core.documents.schema import parameter
from nest_core.hardware import backward_seconds, forward_seconds, load_accelerator, seconds
from nest_core.workload import (
    Accumulation,
    Graph,
    Launching,
    Layer,
    Strategy,
    chain,
    load_trace,
    strategies,
)
from nest_core.workload.model_files import load_model

DENSE = ["bert-large", "gpt3-175b", "llama2-7b", "llama3-70b", "qwen3-8b"]
MIXTURES = ["mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"]
MODELS = [*DENSE, *MIXTURES]
DEVICE = load_accelerator("h100-80gb")


@pytest.mark.parametrize(
    ("precision", "optimizer", "expected"),
    [
        # Megatron-LM: bf16 weights, fp32 gradients, master and two moments: 18 bytes.
        ("bf16", "adam", StateBytes(2, 4, 12)),
        ("fp8", "adam", StateBytes(2, 4, 12)),
        # fp16 gradients: 16 bytes (Rajbhandari et al. 2020), 20 in the step (Megatron Core).
        ("fp16", "adam", StateBytes(2, 2, 12, temporary=4)),
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
    for precision in parameter("workload.precision").choices:
        for optimizer in parameter("workload.optimizer").choices:
            state = state_bytes(precision, optimizer)
            assert min(state.weights, state.gradients) > 0
            assert state.optimizer >= 0


def rows(name: str, strategy: Strategy) -> list[Layer]:
    """The chain, layer by layer."""
    return [layer for layer, count in chain(load_model(name), strategy).runs for _ in range(count)]


STRATEGIES = {
    "alone": Strategy(micro_batch=2, sequence=256),
    "tp 4": Strategy(tp=4, micro_batch=1, sequence=256, attention="unfused"),
    "tp 4 with sp": Strategy(tp=4, sp=True, micro_batch=1, sequence=512),
    "cp 2": Strategy(tp=2, sp=True, cp=2, micro_batch=2, sequence=256, context="all_gather"),
    "ep 4": Strategy(ep=4, tp=2, sp=True, cp=2, micro_batch=2, sequence=256, imbalance=1.2),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
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
        inner = layer.kind in ("block", "moe_block")
        again = [0.0, core, sum(forward)] if inner else [0.0] * 3
        assert table.compute_s[number] == pytest.approx(sum(forward) + sum(backward))
        assert table.forward_s[number] == pytest.approx(sum(forward))
        assert table.replay_s[:, number] == pytest.approx(again)
        assert table.parameters[number] == layer.parameters
        assert table.expert_parameters[number] == layer.expert_parameters
        kept = [layer.kept_bytes(choice) for choice in RECOMPUTE]
        assert table.kept_bytes[:, number] == pytest.approx(kept)
        # What recomputation dropped is there again while the layer's backward runs.
        again = table.working_bytes[:, number] + kept
        assert again == pytest.approx(kept[0] + layer.gradient_bytes)
        assert table.boundary_bytes[number + 1] == (
            layer.output_bytes if number + 1 < len(layers) else 0
        )


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("name", MODELS)
def test_the_host_issues_every_kernel_and_collective(name, strategy):
    """Both passes, and what is replayed once more; a kernel takes the family's host time."""
    table = layer_table(load_model(name), strategy, DEVICE, "bf16")
    for number, layer in enumerate(rows(name, strategy)):
        sent = [(call.forward, call.backward) for call in layer.collectives]
        forward = sum(len(entry.forward) for entry in layer.operators)
        forward += sum(first for first, _ in sent)
        backward = sum(len(entry.backward) for entry in layer.operators)
        backward += sum(second for _, second in sent)
        core = sum(len(entry.forward) for entry in layer.operators if entry.core)
        inner = layer.kind in ("block", "moe_block")
        again = np.array([0, core, forward] if inner else [0, 0, 0])
        expected = DEVICE.family.host_s * (forward + backward + again)
        assert table.launch_s[:, number] == pytest.approx(expected)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("name", MODELS)
def test_calls_are_the_chains_collectives(name, strategy):
    """By axis: numbers and bytes, an all-reduce as its two parts; forward again when replayed."""
    table = layer_table(load_model(name), strategy, DEVICE, "bf16")
    layers = rows(name, strategy)
    axes = {call.axis for layer in layers for call in layer.collectives}
    assert set(table.calls) == axes
    kinds = {
        "tp": "reduce_scatter" if strategy.sp else "all_reduce",
        "ep": "all_to_all",
        "cp": "ring" if strategy.context == "ring" else "reduce_scatter",
    }
    for axis, calls in table.calls.items():
        assert calls.kind == kinds[axis]
        for number, layer in enumerate(layers):
            inner = layer.kind in ("block", "moe_block")
            total = sent = once = again = 0.0
            for call in layer.collectives:
                if call.axis == axis:
                    parts = 2 if call.op == "all_reduce" else 1
                    total += parts * (call.forward + call.backward)
                    sent += parts * (call.forward + call.backward) * call.bytes
                    once += parts * call.forward * inner
                    again += parts * call.forward * call.bytes * inner
            assert (calls.number[number], calls.bytes[number]) == (total, sent)
            assert calls.replay_number[:, number].tolist() == [0, 0, once]
            assert calls.replay_bytes[:, number].tolist() == [0, 0, again]


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("sp", [False, True])
def test_blocks_send_eight_collectives_and_replay_four(name, sp):
    """Four all-reduces of 2 b s h per block and micro-batch; at the ends one, and the loss's."""
    model = load_model(name)
    size = 2 * 256 * model.hidden
    calls = layer_table(model, Strategy(tp=4, sp=sp, sequence=256), DEVICE, "bf16").calls["tp"]
    assert (calls.number[1:-1] == 8).all()
    assert (calls.bytes[1:-1] == 8 * size).all()
    assert (calls.replay_number[:, 1:-1].T == [0, 0, 4]).all()
    assert (np.array([0, 0, 4 * size]) == calls.replay_bytes[:, 1:-1].T).all()
    assert (calls.number[0], calls.bytes[0]) == (2, 2 * size)
    assert (calls.number[-1], calls.bytes[-1]) == (2 + 6, 2 * size + 6 * 2 * 256)
    assert not calls.replay_number[:, [0, -1]].any()
    assert not layer_table(model, Strategy(sp=sp, sequence=256), DEVICE, "bf16").calls


@pytest.mark.parametrize("name", MIXTURES)
def test_experts_have_parameters_of_their_own(name):
    """Expert-parallel ranks hold their part of the experts and all of the rest; dense blocks
    come first and have none."""
    model = load_model(name)
    one = layer_table(model, Strategy(sequence=256), DEVICE, "bf16")
    four = layer_table(model, Strategy(ep=4, sequence=256), DEVICE, "bf16")
    dense = 1 + model.dense_blocks
    each = 3 * model.experts * model.hidden * model.expert_ffn
    assert not one.expert_parameters[:dense].any()
    assert not one.expert_parameters[-1:].any()
    assert (one.expert_parameters[dense:-1] == each).all()
    assert (four.expert_parameters * 4 == one.expert_parameters).all()
    assert (four.parameters == one.parameters).all()
    assert one.parameters.sum() + one.expert_parameters.sum() == model.parameters
    # Under expert-tensor parallelism experts are divided by both.
    both, whole = (
        layer_table(model, Strategy(ep=2, tp=2, sequence=256, etp=2 if cut else 1), DEVICE, "bf16")
        for cut in (True, False)
    )
    assert (both.expert_parameters * 4 == one.expert_parameters).all()
    assert (whole.expert_parameters * 2 == one.expert_parameters).all()


def test_boundaries_lie_between_layers():
    """Nothing is sent before the first layer or after the last; the stream in between."""
    for case, share in (({}, 1), ({"tp": 4, "sp": True}, 4), ({"tp": 2, "cp": 2}, 2)):
        strategy = Strategy(micro_batch=3, sequence=128, **case)
        table = layer_table(load_model("llama2-7b"), strategy, DEVICE, "bf16")
        assert table.boundary_bytes.shape == (table.layers + 1,)
        assert table.boundary_bytes[[0, -1]].tolist() == [0, 0]
        assert (table.boundary_bytes[1:-1] == 2 * 3 * 128 * 4096 / share).all()


def test_only_a_tied_head_has_a_copy():
    for name in MODELS:
        model = load_model(name)
        table = layer_table(model, Strategy(tp=2, sequence=128), DEVICE, "bf16")
        copy = model.vocabulary * model.hidden / 2 if model.tied else 0
        assert table.tied_parameters == copy
        # Every parameter once, and copies of norms and the like on top.
        held = table.parameters.sum() + table.expert_parameters.sum()
        assert 2 * (held - copy) >= model.parameters
        assert held <= model.parameters


@pytest.mark.parametrize("name", MODELS)
def test_model_flops_are_six_per_weight_and_token_and_the_scores(name):
    """6 s N over the weights that a token multiplies, and 6 L s^2 a (d_qk + d_v) with all scores.

    The formula of Narayanan et al. 2021, appendix, in its exact form: N leaves out
    embeddings, norms, biases and what routes tokens to experts. Of causal attention half counts.
    """
    model, s = load_model(name), 128
    trace = load_trace(model.family)
    size = {field: getattr(model, field) for field in model.__slots__}
    weights = 0.0
    for kind, times in model.runs:
        for node in trace[kind].nodes:
            plain = node.op == "linear" and node.weights[0][0] != ("experts",)
            if plain or node.op == "grouped_linear":
                matrix = 1.0
                for dim in node.weights[0]:
                    for part in dim:
                        matrix *= size[part]
                share = model.top_k / model.experts if node.op == "grouped_linear" else 1.0
                weights += times * share * matrix
    width = model.head_dim + model.rope_dim + (model.value_dim or model.head_dim)
    scores = 6 * model.blocks * s**2 * model.heads * width
    whole = model_flops(model, s, whole_scores=True)
    assert whole == pytest.approx(6 * s * weights + scores, rel=1e-12)
    if model.family != "bert" and not model.window:
        assert model_flops(model, s) == pytest.approx(6 * s * weights + scores / 2, rel=1e-12)


def test_wider_and_faster_are_never_slower():
    """More ranks or a better device never add compute time to a layer."""
    model = load_model("llama3-70b")
    before = layer_table(model, Strategy(sequence=1024), DEVICE, "bf16")
    for tp in (2, 4, 8):
        after = layer_table(model, Strategy(tp=tp, sequence=1024), DEVICE, "bf16")
        assert (after.compute_s < before.compute_s + 1e-15).all()
        assert (after.kept_bytes <= before.kept_bytes).all()
        before = after
    quick = replace(DEVICE, memory_bandwidth_Bps=2 * DEVICE.memory_bandwidth_Bps)
    strategy = Strategy(tp=8, sp=True, sequence=4096, micro_batch=2)
    plain = layer_table(model, strategy, DEVICE, "bf16")
    assert (layer_table(model, strategy, quick, "bf16").compute_s <= plain.compute_s).all()
    eight = layer_table(model, strategy, DEVICE, "fp8")
    assert (eight.compute_s <= plain.compute_s).all()
    assert (eight.kept_bytes <= plain.kept_bytes).all()


def test_a_strategy_of_ones_own_reaches_the_table(monkeypatch):
    """What is registered after a table was made enters the next one."""
    asked = load_model("llama2-7b"), Strategy(sequence=64), DEVICE, "bf16"
    before = layer_table(*asked)

    def bare(graph, strategy, sizes):
        nodes = (replace(node, weights=()) if node.op == "norm" else node for node in graph.nodes)
        return Graph(graph.kind, tuple(nodes))

    monkeypatch.setitem(strategies.STRATEGIES, "bare norms", bare)
    after = layer_table(*asked)
    assert (after.parameters[1:] < before.parameters[1:]).all()


@pytest.mark.parametrize("name", ["moe", "moe_act", "layernorm+mla_up_proj", "mlp", "full"])
def test_a_row_per_recomputation_is_the_layer_taken_apart(name):
    """Table and anatomy count replays by themselves; an all-to-all runs again once, not twice."""
    model, device = load_model("deepseek-v3"), load_accelerator("h100-80gb")
    strategy = Strategy(sequence=1024, tp=2, sp=True, ep=8)
    rows = ("none", "selective", name)
    table = layer_table(model, strategy, device, "bf16", recomputations=rows)
    for layer, kind in ((1, "block"), (-2, "moe_block")):
        found = anatomy(model, kind, strategy, device, "bf16", name)
        assert table.replay_s[2, layer] == pytest.approx(found.replay_s)
        assert table.launch_s[2, layer] == pytest.approx(found.host_s)
        assert table.kept_bytes[2, layer] == found.kept_bytes
    again = table.calls["ep"].replay_number[:, -2]
    assert again.tolist() == [0.0, 0.0, 2.0 if name in ("moe", "full") else 0.0]
    assert table.calls["ep"].number[-2] == 4.0


def test_copies_of_tokens_are_no_gradients_of_weights():
    """Zero-bubble schedules delay the latter alone."""
    model, device = load_model("qwen3-30b-a3b"), load_accelerator("h100-80gb")
    sorts, placed = (
        layer_table(model, Strategy(sequence=512, ep=8, dispatch=dispatch), device, "bf16")
        for dispatch in ("all_to_all", "hybrid")
    )
    np.testing.assert_allclose(sorts.weight_s, placed.weight_s, rtol=1e-12)
    assert (sorts.compute_s >= placed.compute_s).all()
    assert sorts.compute_s.sum() > placed.compute_s.sum()


def test_experts_with_few_tokens_pay_for_their_sum_of_gradients():
    """Qwen3-30B-A3B at ep 1, by hand: 128 experts of 3 x 2,048 x 768 weights, 256 tokens each."""
    model, weights = load_model("qwen3-30b-a3b"), 128 * 3 * 2048 * 768
    plain, summed = (
        layer_table(model, Strategy(sequence=4096, accumulation=Accumulation(size)), DEVICE, "bf16")
        for size in (0.0, 4.0)
    )
    assert (plain.expert_parameters[1:-1] == weights).all()
    hbm = DEVICE.memory_bandwidth_Bps * DEVICE.family.memory_efficiency
    more = summed.compute_s[1] - plain.compute_s[1]
    # Gradients of weights read tokens and their gradients, and read and write the sum: bound by
    # memory with it. Without it they took at least a write in 2 bytes, and at most what is left.
    assert more < 6 * weights / hbm
    products = [
        kernel
        for operator in rows("qwen3-30b-a3b", Strategy(sequence=4096))[1].operators
        if operator.op == "grouped_linear"
        for kernel in operator.backward[-1:]
    ]
    by_hand = sum(
        (kernel.bytes + 6 * kernel.shape[0] * kernel.shape[1] * kernel.shape[2]) / hbm
        - seconds(kernel, DEVICE, "bf16")
        for kernel in products
    )
    assert more == pytest.approx(by_hand, rel=0.05)  # the attention's weights are few
    assert more > 0.15 * plain.compute_s[1]


@pytest.mark.parametrize("name", MODELS)
def test_sums_of_gradients_do_not_shrink_with_the_tokens(name):
    """Never more than their bytes take, and all of that where few tokens are left."""
    model, seconds_more = load_model(name), []
    hbm = DEVICE.memory_bandwidth_Bps * DEVICE.family.memory_efficiency
    for tokens in (1, 4096):
        plain, summed = (
            layer_table(
                model, Strategy(sequence=tokens, accumulation=Accumulation(size)), DEVICE, "bf16"
            )
            for size in (0.0, 4.0)
        )
        layers = slice(1, -1)  # the embedding's are added by a pass of their own
        weights = (summed.parameters + summed.expert_parameters)[layers]
        more = (summed.compute_s - plain.compute_s)[layers]
        assert (more <= 6 * weights / hbm * (1 + 1e-9)).all()
        seconds_more.append((more / (6 * weights / hbm)).min())
        assert (summed.weight_s <= summed.forward_s).all()
        assert (summed.weight_s <= (summed.compute_s - summed.forward_s - summed.weight_s)).all()
    assert seconds_more[0] > 0.9
    assert seconds_more[1] <= seconds_more[0]


# Launches ---------------------------------------------------------------------------------------


def launched(ep: int, **launching: float) -> float:
    """Launches of a mixture's layer, in kernels."""
    strategy = Strategy(sequence=4096, ep=ep, launching=Launching(**launching))
    table = layer_table(load_model("qwen3-30b-a3b"), strategy, DEVICE, "bf16")
    return float(table.launch_s[0, 1]) / DEVICE.family.host_s


def test_every_expert_is_launched_for_itself():
    """128 experts, two products forward and four backward: a fifth of a kernel for each more."""
    few, many = (launched(ep, is_eager=1) - launched(ep) for ep in (8, 2))
    assert many - few == pytest.approx(0.2 * 6 * (64 - 16))
    # What routes tokens is issued on top, as much whatever a rank holds.
    assert few - 0.2 * 6 * (16 - 1) == pytest.approx(7 + 5 + 8 + 3 + 3 + 2)


def test_experts_in_8_bits_launch_their_conversions_too():
    """Forward and for the inputs' gradients; those of weights read what these converted."""
    more = launched(8, is_eager=1, casts=1) - launched(8, is_eager=1)
    assert more == pytest.approx(0.2 * 4 * 16 * 3)
    assert launched(8, casts=1) == launched(8)


def test_graphs_of_layers_leave_the_experts_to_the_host():
    """Attention, norms before it and the router are replayed; dispatch and experts are not."""
    eager, captured = (launched(8, is_eager=1, is_captured=flag) for flag in (0, 1))
    experts = [
        operator
        for operator in rows("qwen3-30b-a3b", Strategy(sequence=4096, ep=8))[1].operators
        if operator.name.startswith(("experts.", "mlp_"))
        and not operator.name.endswith(("router", "scores"))
    ]
    left = sum(len(op.forward) + len(op.backward) for op in experts) + 4  # all-to-alls
    assert captured == pytest.approx(left + 0.2 * 6 * (16 - 1) + 8 + 3 + 3 + 2)
    assert captured < eager


def test_dense_layers_are_launched_as_before():
    model = load_model("llama3-70b")
    plain, eager = (
        layer_table(model, Strategy(sequence=4096, launching=launching), DEVICE, "bf16")
        for launching in (Launching(), Launching(is_eager=True))
    )
    np.testing.assert_array_equal(plain.launch_s, eager.launch_s)
    np.testing.assert_array_equal(plain.compute_s, eager.compute_s)


def test_small_products_of_experts_fill_no_waves_together():
    """On as many streams as the library has: never faster, and alike for one expert a rank."""
    model = load_model("qwen3-30b-a3b")
    for ep, slower in ((8, True), (128, False)):
        plain, streams = (
            layer_table(model, Strategy(sequence=512, ep=ep, launching=launching), DEVICE, "bf16")
            for launching in (Launching(), Launching(is_eager=True))
        )
        assert (streams.compute_s[1] > plain.compute_s[1]) == slower


@pytest.mark.parametrize("casts", [1.0, 1.5, 2.0])
def test_operands_are_converted_as_the_software_does(casts):
    """In proportion, and in 16 bits not at all."""
    model = load_model("llama3-70b")

    def seconds_of(precision: str, times: float) -> float:
        strategy = Strategy(sequence=4096, launching=Launching(casts=times))
        return float(layer_table(model, strategy, DEVICE, precision).compute_s[1])

    once = seconds_of("fp8", 2.0) - seconds_of("fp8", 1.0)
    assert seconds_of("fp8", casts) - seconds_of("fp8", 1.0) == pytest.approx((casts - 1) * once)
    assert seconds_of("bf16", casts) == seconds_of("bf16", 1.0)
