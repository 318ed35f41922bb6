"""Answers that the figures are drawn from."""

from __future__ import annotations

from functools import cache

import pytest

from nest_core.api.answer import Answer, answer
from nest_core.documents.presets import preset_names
from nest_core.scenario import load_scenario

# NEST's program, which takes longest, has figures and tests of its own.
RIVALS = 'baselines.names=["manual", "mcmc", "phaze", "alpa_e", "mist"]'
# One stage and a tie; stages out of balance; as fast as one that is not simple; faster than all.
QUICK = (
    "llama2-7b-64-h100",
    "llama3-70b-1024-h100",
    "gpt3-175b-64-h100",
    "llama3-70b-1024-h100-4to1",
)


@cache
def _answered(name: str, settings: tuple[str, ...]) -> Answer:
    return answer(load_scenario(name, (RIVALS, *settings)))


@pytest.fixture(scope="session")
def answered():
    """``answered(preset, *settings)``: the answer, computed once."""
    return lambda name, *settings: _answered(name, settings)


@pytest.fixture(
    params=[
        name if name in QUICK else pytest.param(name, marks=pytest.mark.check)
        for name in preset_names("scenarios")
    ]
)
def preset_answer(request, answered) -> Answer:
    """The answer of every scenario preset."""
    return answered(request.param)


@pytest.fixture
def infeasible(answered) -> Answer:
    """A request that no plan fits."""
    narrow = ("accelerator.memory_GiB=2.0", "search.pp={max=2}", "search.tp={max=2}")
    return answered("llama2-7b-64-h100", *narrow)
