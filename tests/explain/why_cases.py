"""Scenarios and plans that explanations are tested on."""

from __future__ import annotations

from functools import lru_cache

from nest_core.costs import Problem, Report, price
from nest_core.costs.parse import read_plan
from nest_core.scenario import ScenarioValues, load_scenario

DENSE, LARGE, EXPERTS = "llama2-7b-64-h100", "gpt3-175b-64-h100", "mixtral-8x7b-256-tpuv4like"

PLANS = {
    "one stage": (DENSE, "dp=32,tp=2,zero=1"),
    "whole replicas": (DENSE, "dp=64,zero=3,recompute=full"),
    "pipeline": (DENSE, "dp=8,tp=2,pp=4,sp=true,zero=2,stage_recompute=full-selective-none-none"),
    "context": (DENSE, "dp=4,cp=4,tp=2,pp=2,zero=1,recompute=selective"),
    "interleaved": (DENSE, "dp=4,tp=4,pp=4,interleave=2,micro_batch=2"),
    "gpipe": (DENSE, "dp=16,pp=4,schedule=gpipe,micro_batch=4,zero=1"),
    "uneven": (DENSE, "dp=8,tp=2,pp=4,cuts=0-4-10-20-34,order=tp-cp-pp-dp"),
    "idle devices": (DENSE, "dp=2,tp=4,pp=4"),
    "experts": (EXPERTS, "dp=32,tp=2,pp=4,ep=8,zero=1"),
    "experts of one rank": (EXPERTS, "dp=8,pp=8,ep=8,micro_batch=2"),
    "does not fit": (LARGE, "dp=8,tp=8"),
}
"""Scenario and plan by what is peculiar about them."""


@lru_cache
def scenario(name: str) -> ScenarioValues:
    """A preset."""
    return load_scenario(name)


@lru_cache
def problem(name: str) -> Problem:
    """Its problem."""
    return scenario(name).problem()


@lru_cache
def priced(case: str) -> tuple[Problem, Report]:
    """One of `PLANS`, priced."""
    name, text = PLANS[case]
    asked = problem(name)
    return asked, price(asked, read_plan(text, asked.layers, asked.network.devices))
