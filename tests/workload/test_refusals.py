"""What no rank could hold is refused in one sentence, on every way in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.costs.tables import model_flops
from nest_core.documents.errors import InputError
from nest_core.scenario import load_scenario
from nest_core.workload import Strategy, chain
from nest_core.workload.model_files import load_model
from nest_core.workload.report import report_model


def test_a_dense_model_has_no_experts_to_spread():
    told = r"ep must be 1 for a dense model, .* but is 8"
    with pytest.raises(InputError, match=told):
        report_model(load_model("llama3-8b"), Strategy(sequence=64, ep=8))
    with pytest.raises(InputError, match=told):
        load_scenario("llama2-7b-64-h100").table(1, False, 1, 1, 8, 1)


def test_inner_widths_divide():
    odd = replace(load_model("llama3-8b"), ffn=14338)
    chain(odd, Strategy(sequence=64, tp=2))
    with pytest.raises(InputError, match="tp must divide the model's ffn of 14338, but is 4"):
        chain(odd, Strategy(sequence=64, tp=4))
    mixture = replace(load_model("mixtral-8x7b"), expert_ffn=14338)
    with pytest.raises(InputError, match="tp must divide the model's expert_ffn of 14338"):
        chain(mixture, Strategy(sequence=64, tp=4))
    chain(mixture, Strategy(sequence=64, tp=4, etp=1))


def test_the_search_leaves_such_widths_out():
    plain = load_scenario("llama2-7b-64-h100")
    assert 8 in plain.space.tp
    odd = load_scenario("llama2-7b-64-h100", ["workload.model.ffn=11010"])
    assert odd.space.tp == (1, 2)


def test_model_flops_of_a_window_are_what_a_query_may_see():
    """Else MFU could exceed 1 where sequences are longer than the window."""
    model, tokens = load_model("mistral-7b"), 131072
    full = replace(model, window=0)
    scores = 3 * 4 * tokens * model.heads * model.head_dim * model.blocks
    saved = model_flops(full, tokens, whole_scores=True)
    saved -= model_flops(model, tokens, whole_scores=True)
    assert saved == pytest.approx(scores * (tokens - model.window))
    seen = model.window - model.window**2 / (2 * tokens)
    saved = model_flops(full, tokens) - model_flops(model, tokens)
    assert saved == pytest.approx(scores * (tokens / 2 - seen))
    assert model_flops(full, 512) == model_flops(model, 512)
