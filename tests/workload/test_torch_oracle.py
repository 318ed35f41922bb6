"""The traced modules on the meta device: parameters and FLOP, exactly.

PyTorch's counter counts every matrix product that really runs, forward and backward;
element-wise work it leaves out, as a kernel's FLOP do. It counts the whole score matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from small_models import FAMILIES, KINDS, small

from nest_core.costs.tables import model_flops
from nest_core.workload import Layer, Model, Strategy, chain

if TYPE_CHECKING:
    from torch import nn

    from benchmarks.traces.sizes import Sizes

pytestmark = pytest.mark.usefixtures("torch_installed")

BATCH, TOKENS = 2, 16


def sizes_of(model: Model, **changes: int) -> Sizes:
    from benchmarks.traces.sizes import Sizes

    names = ("hidden", "heads", "kv_heads", "head_dim", "vocabulary", "experts", "top_k")
    given = {name: getattr(model, name) for name in names}
    for name in (
        "ffn",
        "positions",
        "expert_ffn",
        "shared_ffn",
        "q_rank",
        "kv_rank",
        "rope_dim",
        "value_dim",
        "linear_key_heads",
        "linear_value_heads",
        "linear_key_dim",
        "linear_value_dim",
        "index_heads",
        "index_dim",
    ):
        given[name] = getattr(model, name) or 2
    slots = BATCH * TOKENS * model.top_k // model.experts
    return Sizes(micro_batch=BATCH, sequence=TOKENS, slots=slots, **given | changes)


def built(family: str, kind: str, **changes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """A module on the meta device, and its inputs."""
    import torch

    from benchmarks.traces.modules import FAMILIES as MODULES
    from benchmarks.traces.modules import example

    sizes = sizes_of(small(family), **changes)
    with torch.device("meta"):
        inputs = tuple(
            each.requires_grad_() if each.is_floating_point() else each
            for each in example(kind, sizes)
        )
        return MODULES[family][kind](sizes), inputs


def counted(module: nn.Module, inputs: tuple[Any, ...], *, backward: bool) -> int:
    """FLOP of the products that run."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        result = module(*inputs)
        if backward:
            result.sum().backward()
    return int(counter.get_total_flops())


def layer_of(model: Model, kind: str, **case: Any) -> Layer:
    strategy = Strategy(micro_batch=BATCH, sequence=TOKENS, **case)
    return next(layer for layer, _ in chain(model, strategy).runs if layer.kind == kind)


def flops(layer: Layer, *, backward: bool) -> float:
    total = sum(operator.flops for operator in layer.operators)
    if backward:
        total += sum(kernel.flops for each in layer.operators for kernel in each.backward)
    return total


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_parameters_are_those_of_torch(family, kind):
    """A failure: a projection, norm or bias is forgotten, or counted twice."""
    module, _ = built(family, kind)
    expected = sum(tensor.numel() for tensor in module.parameters())
    layer = layer_of(small(family), kind)
    assert layer.parameters + layer.expert_parameters == expected
    stacked = sum(
        tensor.numel()
        for name, tensor in module.named_parameters()
        if name.startswith(("experts.gate", "experts.up", "experts.down"))
    )
    assert layer.expert_parameters == stacked


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "both passes"])
@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_products_of_a_layer_are_those_of_torch(family, kind, backward):
    """Projections, scores, experts and router, exactly. A failure: compute time is wrong.

    On the meta device fused attention falls apart into its products; embeddings have none.
    """
    if kind == "embedding":
        assert flops(layer_of(small(family), kind), backward=True) == 0
        return
    if family == "deepseek_v32" or kind.startswith("local"):
        return  # indexers are causal, linear attention is no product of scores
    module, inputs = built(family, kind)
    found = flops(layer_of(small(family), kind, attention="unfused"), backward=backward)
    expected = counted(module, inputs, backward=backward)
    assert found == expected


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_fused_attention_does_the_same_forward(family, kind):
    """Half of it with a causal mask, and 2.5 times that backward (Dao 2023)."""
    if "block" not in kind or kind.startswith("local"):
        return
    model = small(family)
    width = model.head_dim + model.rope_dim + (model.value_dim or model.head_dim)
    scores = 2 * BATCH * TOKENS**2 * model.heads * width
    seen = scores if family == "bert" else scores / 2
    fused, stored = (layer_of(model, kind, attention=name) for name in ("flash", "unfused"))
    assert flops(stored, backward=False) - flops(fused, backward=False) == scores - seen
    both = flops(stored, backward=True) - flops(fused, backward=True)
    assert both == pytest.approx(3 * scores - 3.5 * seen)


@pytest.mark.parametrize("tp", [2, 4])
@pytest.mark.parametrize("family", ["llama", "gpt", "qwen2", "nemotron", "bert", "bloom"])
def test_a_rank_of_a_tensor_parallel_block_is_a_narrower_block(family, tp):
    """Heads and inner width divided; the residual stream whole."""
    model = replace(small(family), heads=8, kv_heads=4)
    module, inputs = built(family, "block", heads=8 // tp, kv_heads=4 // tp, ffn=12 // tp)
    rank = layer_of(model, "block", tp=tp, attention="unfused")
    assert flops(rank, backward=False) == counted(module, inputs, backward=False)
    assert rank.parameters == sum(tensor.numel() for tensor in module.parameters())


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"qwen3_next", "deepseek_v32"}))
def test_model_flops_are_one_forward_and_one_backward_pass(family):
    """What MFU divides by: one sequence with the head, no router, nothing again, all scores."""
    from benchmarks.traces.modules import FAMILIES as MODULES

    model = small(family)
    forward = sum(
        counted(*built(family, kind), backward=False)
        * {"block": model.plain_blocks, "moe_block": model.blocks - model.plain_blocks}.get(kind, 1)
        for kind in MODULES[family]
    )
    routed = (model.blocks - model.plain_blocks) * TOKENS * 2 * model.hidden * model.experts
    found = model_flops(model, TOKENS, whole_scores=True)
    assert found == pytest.approx(3 * (forward / BATCH - routed), rel=1e-12)
