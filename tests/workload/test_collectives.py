"""Tensor-parallel collectives: Megatron-LM's closed forms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.scenario import load_model
from nest_core.workload import Collective, Strategy, chain

MODELS = ["bert-large", "gpt3-175b", "llama2-7b", "llama3-70b", "mixtral-8x7b"]


def calls(name: str, strategy: Strategy) -> dict[str, tuple[Collective, ...]]:
    """Collectives by kind of layer."""
    return {layer.kind: layer.collectives for layer, _ in chain(load_model(name), strategy).runs}


def volume(found: tuple[Collective, ...], *, backward: bool) -> float:
    """Bytes of buffers; an all-reduce is a reduce-scatter and an all-gather."""
    return sum(
        (call.backward if backward else call.forward)
        * call.bytes
        * (2 if call.op == "all_reduce" else 1)
        for call in found
    )


@pytest.mark.parametrize("name", MODELS)
def test_two_all_reduces_each_way_per_block(name):
    """Shoeybi et al. 2019, figure 4: f and g around attention and MLP, 2 b s h bytes each."""
    model = load_model(name)
    strategy = Strategy(tp=4, sp=False, micro_batch=2, sequence=128)
    size = 2 * 2 * 128 * model.hidden
    found = calls(name, strategy)
    assert found["block"] == (Collective("all_reduce", size, 2, 2),)
    # The embedding sums over its rows forward; the projection's input gradient backward.
    assert found["embedding"] == (Collective("all_reduce", size, 1, 0),)
    assert found["head"] == (Collective("all_reduce", size, 0, 1),)


@pytest.mark.parametrize("name", MODELS)
def test_sequence_parallelism_sends_the_same_bytes(name):
    """Korthikanti et al. 2022, section 4.2.2: an all-reduce becomes its two halves.

    At both ends of the model a sum becomes a scatter, undone by a gather in the other pass.
    """
    plain = Strategy(tp=8, sp=False, micro_batch=1, sequence=64)
    tensor, sequence = calls(name, plain), calls(name, replace(plain, sp=True))
    for backward in (False, True):
        assert volume(sequence["block"], backward=backward) == volume(
            tensor["block"], backward=backward
        )
    for kind in ("embedding", "head"):
        totals = [
            sum(volume(found[kind], backward=backward) for backward in (False, True))
            for found in (tensor, sequence)
        ]
        assert totals[0] == totals[1]
    assert {call.op for call in sequence["block"]} == {"all_gather", "reduce_scatter"}
    first = {call.op: (call.forward, call.backward) for call in sequence["embedding"]}
    last = {call.op: (call.forward, call.backward) for call in sequence["head"]}
    assert first == {"reduce_scatter": (1, 0), "all_gather": (0, 1)}
    assert last == {"reduce_scatter": (0, 1), "all_gather": (1, 0)}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sp", [False, True])
def test_one_rank_needs_no_collectives(name, sp):
    assert not any(calls(name, Strategy(tp=1, sp=sp, micro_batch=1, sequence=64)).values())


@pytest.mark.parametrize(("sp", "share"), [(False, 1), (True, 4)])
def test_the_boundary_is_the_residual_stream(sp, share):
    """What goes to the next stage: 2 b s h bytes, divided where the stream is."""
    model = load_model("llama2-7b")
    layers = chain(model, Strategy(tp=4, sp=sp, micro_batch=3, sequence=128))
    sizes = [layer.output_bytes for layer, _ in layers.runs]
    assert sizes == [2 * 3 * 128 * 4096 / share] * 2 + [0]
