"""What backward runs again under PyTorch's checkpoints, against PyTorch and by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.workload import Layer, Strategy, chain, load_model

AT = Strategy(sequence=4096, micro_batch=2, joined=False, checkpoint="per_operator")
PRODUCTS = ("query", "key", "value", "output", "gate", "up", "down")
"""Of a Llama block, in the order in which modules call them."""


def block(strategy: Strategy) -> Layer:
    made = chain(load_model("llama3-8b"), strategy)
    return next(layer for layer, _ in made.runs if layer.kind == "block")


def products(layer: Layer, recompute: str) -> list[str]:
    names = (operator.name for operator in layer.replayed(recompute)[0] if operator.op == "linear")
    return [name.partition(".")[2] for name in names]


def counted_by_torch(policy: bool) -> int:
    """Products of a block of seven that PyTorch runs again in backward."""
    import torch
    from torch.utils.checkpoint import (
        CheckpointPolicy,
        checkpoint,
        create_selective_checkpoint_contexts,
    )
    from torch.utils.flop_counter import FlopCounterMode

    width = 8
    weights = [torch.randn(width, width, requires_grad=True) for _ in PRODUCTS]

    def run(x: torch.Tensor) -> torch.Tensor:
        q, k, v, out, gate, up, down = weights
        attended = torch.softmax((x @ q) * (x @ k), -1) * (x @ v)
        x = x + attended @ out
        return x + (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down

    def contexts() -> tuple[object, object]:
        seen = {True: 0, False: 0}

        def choose(context, op, *_args, **_more):  # every second product is not saved
            seen[context.is_recompute] += op is torch.ops.aten.mm.default
            odd = seen[context.is_recompute] % 2
            saved = op is torch.ops.aten.mm.default and odd
            return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(choose)

    more = {"context_fn": contexts} if policy else {}
    with FlopCounterMode(display=False) as counter:
        x = torch.randn(width, width, requires_grad=True)
        checkpoint(run, x, use_reentrant=False, **more).sum().backward()
    whole = counter.get_total_flops() / (2 * width**3)
    return round(whole) - 3 * len(PRODUCTS)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("recompute", ["full", "selective"])
def test_as_many_products_run_again_as_in_pytorch(recompute):
    assert len(products(block(AT), recompute)) == counted_by_torch(recompute == "selective")


def test_a_checkpoint_stops_before_the_down_projection():
    layer, whole = block(AT), block(replace(AT, checkpoint="whole"))
    again, all_of_it = (each.replayed("full")[0] for each in (layer, whole))
    left_out = {operator.name for operator in all_of_it} - {operator.name for operator in again}
    assert left_out == {"mlp.down", "mlp_residual"}
    assert layer.kept_bytes("full") == whole.kept_bytes("full")


def test_by_operator_every_second_product_runs_again_and_in_8_bits_all_but_the_last():
    assert products(block(AT), "selective") == ["key", "output", "up"]
    narrow = block(replace(AT, checkpoint="per_operator_narrow"))
    assert products(narrow, "selective") == list(PRODUCTS[:-1])
    assert products(narrow, "full") == list(PRODUCTS[:-1])
    for layer in (block(AT), narrow):
        assert "attention.core" not in {op.name for op in layer.replayed("selective")[0]}


def test_by_operator_the_input_and_what_is_saved_stay():
    model, tokens = load_model("llama3-8b"), 2 * 4096
    value = model.hidden // model.heads * model.kv_heads
    saved = 2 * model.hidden + value + model.ffn + model.hidden  # query, down, value, gate; core
    assert block(AT).kept_bytes("selective") == 2.0 * tokens * (model.hidden + saved)
    narrow = block(replace(AT, checkpoint="per_operator_narrow"))
    assert narrow.kept_bytes("selective") == 2.0 * tokens * 2 * model.hidden


def test_reduce_scatters_are_saved_by_operator_and_the_last_is_never_repeated():
    layer = block(replace(AT, tp=2, sp=True))
    calls = {
        one: {c.op: c.forward for c in layer.replayed(one)[1]} for one in ("full", "selective")
    }
    assert calls["full"] == {"all_gather": 2, "reduce_scatter": 1}
    assert calls["selective"].get("reduce_scatter", 0) == 0
    assert "output" not in products(layer, "selective")  # nobody reads it but what is saved


def test_embedding_and_head_are_not_run_again():
    first, *_, last = (layer for layer, _ in chain(load_model("llama3-8b"), AT).runs)
    for layer in (first, last):
        assert layer.replayed("full") == layer.replayed("selective") == ((), ())
