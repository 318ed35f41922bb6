"""Refusals of memory that another software stack would lift.

Memory depends on software: attention in separate kernels stores scores, and some frameworks keep
buffers of their own. So whoever is told that nothing fits is told under which stack it does.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from nest_core.costs import Report, price
from nest_core.documents.units import humanise_bytes
from nest_core.hardware.stacks import Stack, stacks_of
from nest_core.planner import SearchResult, search
from nest_core.scenario import ScenarioValues

__all__ = ["name_stack_for_plan", "name_stack_for_search"]

_MAX_TURNS = 600
"""A stack under which no plan is found in so many turns of the search is not named. That is some
five seconds; turns are counted, as what a clock says would make the answer depend on the load."""


def name_stack_for_plan(scenario: ScenarioValues, report: Report) -> Report:
    """Return the report of a plan, whose reason names the newest stack under which it fits."""
    if report.feasible:
        return report
    for stack, other in _other_scenarios(scenario):
        priced = price(other.problem(report.plan.recompute), report.plan)
        if priced.feasible:
            needed = humanise_bytes(priced.fullest_bytes)
            return replace(
                report, reason=f"{report.reason}; under {stack.name} it fits, in {needed}"
            )
    return report


def name_stack_for_search(scenario: ScenarioValues, result: SearchResult) -> SearchResult:
    """Return the result of a search, whose reason names the newest stack that has a plan."""
    if result.best is not None or not result.needed_bytes:
        return result
    for stack, other in _other_scenarios(scenario):
        if search(other.problem(), other.space, stop=_after(_MAX_TURNS)).best is not None:
            return replace(result, reason=f"{result.reason}; under {stack.name} it fits")
    return result


def _after(turns: int) -> Callable[[], bool]:
    """Return what stops a search when it has asked so often whether to go on."""
    remaining = iter(range(turns))
    return lambda: next(remaining, None) is None


def _other_scenarios(scenario: ScenarioValues) -> Iterator[tuple[Stack, ScenarioValues]]:
    """Yield the scenario under stacks that hold memory otherwise, the newest of each kind.

    Only their memory is right: kernels and links stay those of the scenario's own stack.
    """
    seen = {_memory_of(scenario.stack, scenario)}
    for stack in stacks_of(scenario.accelerator.family.name):
        kind = _memory_of(stack, scenario)
        if stack.model_parallel and kind not in seen:
            seen.add(kind)
            is_usual = scenario.attention == scenario.stack.attention
            attention = stack.attention if is_usual else scenario.attention
            space = replace(scenario.space, sharded_gradients=stack.sharded_gradients)
            yield stack, replace(scenario, stack=stack, attention=attention, space=space)


def _memory_of(stack: Stack, scenario: ScenarioValues) -> tuple[object, ...]:
    """Return what of a stack a scenario's memory depends on."""
    return (
        stack.attention,
        stack.fused,
        stack.joined,
        stack.checkpointing(scenario.precision),
        stack.fp8,
        stack.memory,
        stack.sharded_gradients,
    )
