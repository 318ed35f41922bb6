"""MFU and the bubble fraction as others print them, by formulae of their own.

The FLOP of Megatron-LM's throughput (NVIDIA/Megatron-LM@001b00c, num_floating_point_operations):
per token 6 for every weight that it is multiplied with, and half the scores of attention. The
bubble fraction of Narayanan et al. 2021 (SC), section 2.2.
"""

from __future__ import annotations

import json

import pytest

from nest_core.api.answer import answer
from nest_core.scenario import load_scenario
from nest_core.workload.model_files import load_model
from nest_studio.cli import run

SMALL = "llama2-7b-64-h100"
PEAK = 989e12
MODELS = (
    "llama2-7b",
    "llama3-8b",
    "gpt3-175b",
    "nemotron4-15b",
    "mixtral-8x7b",
    "qwen3-30b-a3b",
    "deepseek-v2",
    "deepseek-v3",
    "kimi-k2",
)


def as_megatron_prints(name, tokens):
    """FLOP of one sequence of a dense or routed decoder, grouped queries or latent attention."""
    model = load_model(name)
    gated = 2 if model.family in ("gpt", "nemotron") else 3
    if model.kv_rank:
        query, value = (
            model.heads * (model.head_dim + model.rope_dim),
            model.heads * model.value_dim,
        )
        low = model.q_rank * (model.hidden + query) if model.q_rank else model.hidden * query
        pair = model.kv_rank * (model.hidden + model.heads * model.head_dim + value)
        attention = low + pair + model.hidden * model.rope_dim + value * model.hidden
        attention += (query + value) * tokens / 2
    else:
        query, pair = model.heads * model.head_dim, 2 * model.kv_heads * model.head_dim
        attention = model.hidden * (query + pair) + query * model.hidden + query * tokens
    dense = model.dense_blocks if model.experts > 1 else model.blocks
    routed = (model.blocks - dense) * (model.expert_ffn * model.top_k + model.shared_ffn)
    mlps = gated * model.hidden * (dense * model.ffn + routed)
    return 6 * tokens * (model.blocks * attention + mlps + model.hidden * model.vocabulary)


def printed(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tokens", [2048, pytest.param(131072, marks=pytest.mark.check)])
@pytest.mark.parametrize("name", MODELS)
def test_mfu_is_what_megatron_lm_would_print(capsys, name, tokens):
    """It leaves out what routes tokens to experts; of latent attention it counts norms."""
    if load_model(name).positions and tokens > load_model(name).positions:
        pytest.skip("has learned fewer positions")
    fields = printed(
        capsys,
        "price",
        SMALL,
        "--plan",
        "dp=8,tp=8,pp=1,sp=true",
        "--set",
        f'workload.model="{name}"',
        "--set",
        f"workload.sequence_length_tokens={tokens}",
        "--set",
        "accelerator.memory_GiB=1000000",
    )
    rate = as_megatron_prints(name, tokens) * fields["samples_per_s"] / (64 * PEAK)
    assert fields["mfu"] == pytest.approx(rate, rel=1e-4)
    assert fields["mfu_convention"].startswith("as Megatron-LM prints it")


@pytest.mark.parametrize("name", ["mistral-7b", "bert-large"])
def test_what_megatron_lm_counts_otherwise_is_not_called_so(capsys, name):
    """It takes windows, and attention without a mask, for half of all scores."""
    fields = printed(
        capsys,
        "price",
        SMALL,
        "--plan",
        "dp=64",
        "--set",
        f'workload.model="{name}"',
        "--set",
        "workload.sequence_length_tokens=512",
    )
    assert fields["mfu_convention"] == (
        "attention is the scores that a query sees; Megatron-LM prints half of all"
    )


@pytest.fixture(scope="module")
def deep():
    """The best plan of four stages at least."""
    return answer(
        load_scenario(SMALL, ["search.pp=4", 'search.schedule=["1f1b"]', "baselines.names=[]"])
    )


def test_the_card_shows_what_the_command_prints_and_the_other_beside_it(deep):
    best = deep.result.best
    card = deep.headlines()[2]
    assert f"MFU {100 * best.mfu:.1f} % as Megatron-LM prints it" in card.note
    (line,) = (line for line in card.formula if "with all scores counted" in line)
    model, tokens = deep.scenario.model, deep.scenario.sequence
    scores = 6 * model.blocks * tokens**2 * model.hidden
    whole = 1 + scores / as_megatron_prints("llama2-7b", tokens)
    assert f"{100 * best.mfu * whole:.3g} % with all scores counted" in line


@pytest.mark.check
def test_the_bubble_is_the_fraction_of_the_papers(capsys):
    """(p - 1) / (v m), but for what the ends of the chain do more."""
    for pairs, expected in (
        ("dp=8,pp=8,micro_batch=1", 7 / 128),
        ("dp=8,pp=8,micro_batch=4", 7 / 32),
        ("dp=8,pp=8,micro_batch=1,schedule=interleaved,interleave=4", 7 / 128 / 4),
    ):
        fields = printed(capsys, "price", SMALL, "--plan", pairs)
        assert fields["bubble"] == pytest.approx(expected, rel=0.2), pairs


def test_the_card_says_which_fraction_the_bubble_is(deep):
    card = deep.headlines()[3]
    assert card.formula[0].startswith("bubble fraction = (Σ t − max t) / (m · max t)")
    loads = [stage.micro_batch_s for stage in deep.result.best.stages]
    m = deep.result.best.plan.point.micro_batches(deep.scenario.batch)
    expected = (sum(loads) - max(loads)) / (m * max(loads))
    assert deep.result.best.bubble == pytest.approx(expected)
