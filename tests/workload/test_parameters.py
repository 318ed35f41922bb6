"""Parameters of models, layers and ranks against published totals and against sums."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.errors import InputError
from nest_core.scenario import load_model
from nest_core.workload import Model, Strategy, chain

PUBLISHED = {
    # Counted from the published checkpoints: sums of their tensors' shapes.
    "llama2-7b": (6_738_415_616, 0),
    "llama3-70b": (70_553_706_496, 0),
    "mixtral-8x7b": (46_702_792_704, 0),
    # BertForMaskedLM has 335,174,458: two token types and the norm after the embedding, four
    # rows of 1,024 in all, are not modelled.
    "bert-large": (335_174_458 - 4 * 1024, 0),
    # Table 2.1 prints 175.0 B, rounded, and the appendix 174,600 M: four digits are known.
    "gpt3-175b": (174_600_000_000, 0.002),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_have_as_many_parameters_as_published(name):
    """A failure: weights, gradients and optimizer states of every plan are off by the same."""
    total, tolerance = PUBLISHED[name]
    assert load_model(name).parameters == pytest.approx(total, rel=tolerance, abs=0)


def test_mixtral_uses_two_of_eight_experts():
    """12.9 B of 46.7 B parameters per token (Jiang et al. 2024)."""
    assert load_model("mixtral-8x7b").active_parameters == pytest.approx(12.9e9, rel=2e-3)


@st.composite
def models(draw: st.DrawFn) -> tuple[Model, int]:
    """A model, and a width that divides its heads, its inner width and its vocabulary."""
    tp = draw(st.sampled_from([1, 2, 3, 4, 8]))
    kv_heads = draw(st.sampled_from([1, tp, 2 * tp]))
    heads = kv_heads * (tp // kv_heads if kv_heads < tp else 1) * draw(st.integers(1, 3))
    experts = draw(st.sampled_from([1, 1, 2, 8]))
    flags = {name: draw(st.booleans()) for name in ("bias", "dropout", "tied", "head_transform")}
    model = Model(
        "m", blocks=draw(st.integers(1, 4)), hidden=draw(st.integers(1, 300)),
        heads=heads, kv_heads=kv_heads, head_dim=draw(st.integers(1, 64)),
        ffn=tp * draw(st.integers(1, 100)), vocabulary=tp * draw(st.integers(1, 1000)),
        positions=draw(st.sampled_from([0, 1, 512])),
        mlp=draw(st.sampled_from(["gelu", "swiglu"])),
        norm=draw(st.sampled_from(["layernorm", "rmsnorm"])),
        experts=experts, top_k=draw(st.integers(1, experts)), **flags,
    )  # fmt: skip
    return model, tp


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(models())
def test_ranks_hold_the_model_and_stated_copies(drawn):
    """Over all ranks: every parameter once, and again on each further rank what is not split.

    Not split are norms, position embeddings, routers, BERT's transform, biases of row
    projections, and key-value heads where there are fewer than ranks. A failure: memory and
    gradient traffic of tensor-parallel plans are wrong.
    """
    model, tp = drawn
    layers = chain(model, Strategy(tp, False, 1, 8))
    per_rank = sum(layer.parameters * count for layer, count in layers.runs)
    head, _ = layers.runs[-1]
    assert head.tied_parameters == (model.vocabulary * model.hidden / tp if model.tied else 0)
    row_biases = (1 + model.experts) * model.hidden if model.bias else 0
    router = model.experts * model.hidden if model.experts > 1 else 0
    copied = (
        model.blocks * (2 * model.norm_parameters + router + row_biases)
        + model.positions * model.hidden
        + model.norm_parameters
        + (model.hidden * (model.hidden + 1) if model.head_transform else 0)
    )
    kv_copies = max(tp / model.kv_heads, 1) - 1  # further copies of each key-value head
    key_value = 2 * model.kv_heads * model.head_dim * (model.hidden + (1 if model.bias else 0))
    expected = model.parameters + (tp - 1) * copied + model.blocks * kv_copies * key_value
    assert tp * (per_rank - head.tied_parameters) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(models())
def test_active_parameters_leave_out_idle_experts(drawn):
    """A dense model uses all of them; otherwise what the other experts weigh is missing."""
    model, _ = drawn
    gates = 3 if model.mlp == "swiglu" else 2
    idle = (model.experts - model.top_k) * model.blocks * gates * model.hidden * model.ffn
    assert model.parameters - model.active_parameters == idle


BAD: list[tuple[dict[str, Any], str]] = [
    ({"heads": 6}, "model.kv_heads must divide model.heads = 6, but is 4"),
    ({"blocks": 0}, "model.blocks must be at least 1, but is 0"),
    ({"hidden": -1}, "model.hidden must be at least 1, but is -1"),
    ({"top_k": 2}, "model.top_k must lie between 1 and experts = 1, but is 2"),
    ({"experts": 4, "top_k": 0}, "model.top_k must lie between 1 and experts = 4, but is 0"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_what_is_no_model_is_refused(change, message):
    figures: dict[str, Any] = {
        "name": "m", "blocks": 1, "hidden": 8, "heads": 8, "kv_heads": 4, "head_dim": 2,
        "ffn": 8, "vocabulary": 16, **change,
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        Model(**figures)
