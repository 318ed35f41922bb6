"""What backward keeps: Korthikanti et al. 2022 (arXiv:2205.05198), and PyTorch's autograd."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import small

from nest_core.workload import Chain, Model, Strategy, chain
from nest_core.workload.graph import families

GIB = 2.0**30


def gpt(hidden: int, heads: int, blocks: int = 2, vocabulary: int = 51200) -> Model:
    """A GPT as the paper counts it: biases, dropout, layer norms, inner width 4 h."""
    return Model(
        "gpt",
        "gpt",
        blocks=blocks,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=4 * hidden,
        vocabulary=vocabulary,
        positions=10**6,
        tied=True,
    )


def kept(layers: Chain, recompute: str, kind: str = "block") -> float:
    """Bytes of one layer of a kind."""
    (layer,) = (layer for layer, _ in layers.runs if layer.kind == kind)
    return layer.kept_bytes(recompute)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[Model, Strategy]:
    tp = draw(st.sampled_from([1, 2, 4, 8]))
    heads = tp * draw(st.integers(1, 16))
    hidden = heads * draw(st.sampled_from([16, 64, 128]))
    strategy = Strategy(
        tp=tp,
        sp=False,
        micro_batch=draw(st.integers(1, 8)),
        sequence=draw(st.integers(1, 4096)),
        attention="unfused",
    )
    return gpt(hidden, heads), strategy


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(shapes())
@pytest.mark.check
def test_a_gpt_block_keeps_what_table_2_of_the_paper_says(shape):
    """All six rows, over random sizes. A failure: memory is planned on the wrong formula."""
    model, strategy = shape
    s, b, h, a, t = (
        strategy.sequence,
        strategy.micro_batch,
        model.hidden,
        model.heads,
        strategy.tp,
    )
    sbh = s * b * h
    whole = chain(model, replace(strategy, tp=1, etp=1))
    assert kept(whole, "none") == pytest.approx(sbh * (34 + 5 * a * s / h), rel=1e-12)
    assert kept(whole, "selective") == pytest.approx(34 * sbh, rel=1e-12)
    assert kept(whole, "full") == pytest.approx(2 * sbh, rel=1e-12)
    tensor = chain(model, strategy)
    expected = sbh * (10 + 24 / t + 5 * a * s / (h * t))
    assert kept(tensor, "none") == pytest.approx(expected, rel=1e-12)
    assert kept(tensor, "selective") == pytest.approx(sbh * (10 + 24 / t), rel=1e-12)
    assert kept(tensor, "full") == pytest.approx(2 * sbh, rel=1e-12)
    sequence = chain(model, replace(strategy, sp=True))
    expected = sbh / t * (34 + 5 * a * s / h)
    assert kept(sequence, "none") == pytest.approx(expected, rel=1e-12)
    assert kept(sequence, "selective") == pytest.approx(34 * sbh / t, rel=1e-12)
    assert kept(sequence, "full") == pytest.approx(2 * sbh / t, rel=1e-12)


@settings(max_examples=50, derandomize=True, database=None, deadline=None)
@given(shapes())
def test_both_ends_keep_what_section_4_3_says(shape):
    """Embedding dropout s b h; final norm, projection and fp32 logits 4 s b h (1 + v/h)."""
    model, strategy = shape
    layers = chain(model, replace(strategy, sp=True))
    sbh_t = strategy.sequence * strategy.micro_batch * model.hidden / strategy.tp
    for recompute in ("none", "selective", "full"):
        assert kept(layers, recompute, "embedding") == pytest.approx(sbh_t, rel=1e-12)
        assert kept(layers, recompute, "head") == pytest.approx(
            4 * sbh_t * (1 + model.vocabulary / model.hidden), rel=1e-12
        )


@settings(max_examples=50, derandomize=True, database=None, deadline=None)
@given(shapes())
def test_fused_attention_keeps_no_scores(shape):
    """Against the unfused block: the 5 a s / h term goes, 4 bytes per head and token come."""
    model, strategy = shape
    fused = kept(chain(model, replace(strategy, attention="flash")), "none")
    statistics = 4.0 * strategy.sequence * strategy.micro_batch * model.heads / strategy.tp
    without_scores = kept(chain(model, strategy), "selective")
    assert fused == pytest.approx(without_scores + statistics, rel=1e-12)


# Table 3 of the paper: hidden, heads, layers, interleaved chunks over the pipeline.
PAPER = {
    "22B": (6144, 64, 48, 1.0),
    "175B": (12288, 96, 96, 1 + 7 / (8 * 3)),
    "530B": (20480, 128, 105, 1 + 34 / (35 * 3)),
    "1T": (25600, 160, 128, 1.0),
}


def paper_rows(folder: Any) -> list[dict[str, str]]:
    with (folder / "memory_reference.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["model"] in PAPER]


def test_activation_memory_of_the_papers_models(shared_data):
    """Figures 1 and 7, GiB on the first stage, blocks only; tensor parallel 8, s = 2048.

    The first stage holds L blocks' worth of micro-batches under 1F1B whatever the depth, times
    1 + (p - 1)/(p v) where v chunks interleave.
    """
    seen = 0
    for row in paper_rows(shared_data):
        hidden, heads, blocks, interleaving = PAPER[row["model"]]
        micro_batch = int(row["config"].partition("mbs")[2])
        model = gpt(hidden, heads)
        tensor = Strategy(8, False, micro_batch, 2048, attention="unfused")
        sequence = replace(tensor, sp=True)
        for column, strategy, recompute in (
            ("act_none_GiB", tensor, "none"),
            ("act_sp_selective_GiB", sequence, "selective"),
        ):
            found = kept(chain(model, strategy), recompute) * blocks * interleaving / GIB
            assert found == pytest.approx(float(row[column]), abs=0.01), (row["model"], column)
        for column, strategy, recompute in (
            ("act_pct_sp", sequence, "none"),
            ("act_pct_selective", tensor, "selective"),
            ("act_pct_sp_selective", sequence, "selective"),
            ("act_pct_full", tensor, "full"),
        ):
            share = kept(chain(model, strategy), recompute) / kept(chain(model, tensor), "none")
            # They were read off a figure, and it has the two ends of the model too.
            assert 100 * share == pytest.approx(float(row[column]), abs=0.15)
        seen += 1
    assert seen == 4


@pytest.mark.parametrize("family", families())
def test_stronger_recomputation_keeps_less(family):
    """Every kind of block of every family, under every attention and division."""
    for case in ({}, {"tp": 2}, {"tp": 2, "sp": True}, {"cp": 2}, {"tp": 2, "sp": True, "cp": 2}):
        for attention in ("flash", "unfused"):
            strategy = Strategy(micro_batch=2, sequence=32, attention=attention, **case)
            layers = chain(small(family), strategy)
            for layer, _ in layers.runs:
                found = [layer.kept_bytes(name) for name in ("none", "selective", "full")]
                assert found == sorted(found, reverse=True)
                if layer.recomputable:
                    assert found[1] < found[0]
                    assert found[2] == layer.input_bytes
                else:
                    assert len(set(found)) == 1


def test_only_the_width_of_activations_scales_with_precision():
    """Masks, statistics and the loss's probabilities have widths of their own."""
    model = gpt(64, 4)
    for attention in ("flash", "unfused"):
        strategy = Strategy(micro_batch=2, sequence=32, attention=attention)
        for (half, _), (full, _) in zip(
            chain(model, strategy).runs,
            chain(model, replace(strategy, width=4.0)).runs,
            strict=True,
        ):
            for before, after in zip(half.operators, full.operators, strict=True):
                for (name, size), (other, wide) in zip(before.kept, after.kept, strict=True):
                    assert name == other
                    assert wide == size * (1 if ":" in name else 2)


# PyTorch ----------------------------------------------------------------------------------------

TORCH = {"micro_batch": 3, "sequence": 16, "hidden": 24, "heads": 4, "kv_heads": 4, "head_dim": 6,
         "ffn": 40, "vocabulary": 50, "positions": 16}  # fmt: skip


def saved_bytes(family: str, kind: str) -> int:
    """Storages that autograd holds after a forward pass of the traced module, parameters not."""
    import torch

    from benchmarks.traces.modules import FAMILIES, example
    from benchmarks.traces.sizes import Sizes

    sizes = Sizes(**TORCH)
    module = FAMILIES[family][kind](sizes).eval()
    inputs = [
        each.requires_grad_() if each.is_floating_point() else each for each in example(kind, sizes)
    ]
    held: dict[int, int] = {}
    own = {each.untyped_storage().data_ptr() for each in module.parameters()}
    tokens = {each.untyped_storage().data_ptr() for each in inputs if not each.requires_grad}
    alive = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own | tokens and tensor.dim():
            held[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(*inputs)
    return sum(held.values())


def ours(family: str, kind: str) -> dict[str, float]:
    names = ("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocabulary")
    model = Model(
        family,
        family,
        blocks=1,
        positions=16 if family == "gpt" else 0,
        **{name: TORCH[name] for name in names},
    )
    strategy = Strategy(micro_batch=3, sequence=16, width=4.0)
    (layer,) = (layer for layer, _ in chain(model, strategy).runs if layer.kind == kind)
    tensors = dict(entry for operator in layer.operators for entry in operator.kept)
    assert sum(tensors.values()) == layer.kept_bytes("none")
    # Modules are compared as in evaluation: on a CPU dropout keeps more than a byte.
    return {name: size for name, size in tensors.items() if not name.endswith(":mask")}


@pytest.mark.usefixtures("torch_installed")
def test_a_gpt_block_keeps_what_autograd_does():
    """To the byte, but for mean and deviation of every token in both norms."""
    tokens = 3 * 16
    statistics = 2 * 2 * 4 * tokens
    assert saved_bytes("gpt", "block") - statistics == sum(ours("gpt", "block").values())


@pytest.mark.usefixtures("torch_installed")
def test_a_llama_block_keeps_what_autograd_does():
    """To the byte, but for what fused kernels do not keep and plain PyTorch does.

    Both norms' normalised tensor and deviation, the activated gate, cosines and sines, and the
    result of attention once more with the tokens in front (fused kernels write it so).
    """
    tokens = 3 * 16
    norms = 2 * 4 * (tokens * 24 + tokens)
    gate = 4 * tokens * 40
    rotations = 2 * 2 * 4 * 16 * 3
    merged = 4 * tokens * 24
    expected = sum(ours("llama", "block").values()) + norms + gate + rotations + merged
    assert saved_bytes("llama", "block") == expected


@pytest.mark.usefixtures("torch_installed")
def test_a_gpt_head_keeps_what_autograd_does():
    """To the byte, but for the norm's statistics and what the loss counts of its targets."""
    tokens = 3 * 16
    statistics = 2 * 4 * tokens
    assert saved_bytes("gpt", "head") - statistics == sum(ours("gpt", "head").values())
