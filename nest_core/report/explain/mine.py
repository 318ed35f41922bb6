"""'Why not mine?': a person's own plan, typed or pasted, priced and held against the best.

Memory depends on software: attention in separate kernels stores scores, and some frameworks keep
buffers of their own. So whoever is told that nothing fits is told under which stack it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nest_core.costs import Plan, Report, check_plan, price, state_bytes
from nest_core.costs.placement import read_placement
from nest_core.documents import (
    InputError,
    humanise,
    humanise_bytes,
    humanise_seconds,
    percent,
    require,
    signed,
)
from nest_core.hardware.stacks import Stack, stacks_of
from nest_core.planner import SearchResult, search
from nest_core.report.explain.summary import fullest
from nest_core.scenario import ScenarioValues
from nest_core.workload import Model

if TYPE_CHECKING:
    from nest_core.costs.megatron_job import Setting
    from nest_core.costs.parse import Pasted

__all__ = [
    "DifferenceRow",
    "Mine",
    "OtherJob",
    "PlanDifference",
    "check_heads",
    "check_job",
    "checked_plan",
    "difference",
    "name_stack_for_plan",
    "name_stack_for_search",
    "price_pasted",
    "withheld",
]

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


_VOCABULARY = 1024
"""Megatron-LM pads to 128 times the tensor-parallel degree, after a token that it may add."""


@dataclass(frozen=True, slots=True)
class Mine:
    """A pasted plan and its price."""

    pasted: Pasted
    report: Report


class OtherJob(InputError):
    """A command that trains something else than the scenario, or with other software.

    Parameters
    ----------
    settings : dict
        What the command says, by the keys of scenario files, where the scenario differs.
    found : dict
        The scenario's values for the same keys.
    """

    def __init__(self, settings: Mapping[str, Setting], found: Mapping[str, object]) -> None:
        stated, here = (
            ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in values.items())
            for values in (settings, found)
        )
        sets = " ".join(f"--set {key}={json.dumps(value)}" for key, value in settings.items())
        super().__init__(
            "your command",
            f"must train what is planned, {here}",
            stated,
            f"take its values over ({sets}), or give the plan's flags alone",
        )
        self.settings = dict(settings)
        self.found = dict(found)

    def __reduce__(self) -> tuple[type[OtherJob], tuple[object, ...]]:
        return OtherJob, (self.settings, self.found)


def price_pasted(scenario: ScenarioValues, text: str, placement: str = "") -> Mine:
    """Read fields or a Megatron-LM command, and price what it says.

    Parameters
    ----------
    placement : str
        The rank mapping (`nest_core.costs.placement.read_placement`); empty: as the
        plan's device order says.

    Raises
    ------
    InputError
        If the text is no plan, or not one on this problem, or the rank mapping does not fit it;
        `OtherJob` if the text is a command for another job. Not fitting is an answer.
    """
    from nest_core.costs.parse import read_pasted  # what a plan alone does without

    problem = scenario.problem()
    pasted = read_pasted(
        text, problem.layers, problem.network.devices, whole_experts=not scenario.expert_tensor
    )
    pasted = checked_plan(scenario, pasted, placement if placement.strip() else None)
    scenario = scenario.hiding(pasted.hidden)
    report = price(scenario.problem(pasted.plan.recompute), pasted.plan)
    return Mine(pasted, name_stack_for_plan(scenario, report))


def checked_plan(
    scenario: ScenarioValues, pasted: Pasted, placement: str | None, name: str = "placement"
) -> Pasted:
    """Return a plan that is one of the scenario's job, its ranks where a rank mapping puts them.

    Parameters
    ----------
    placement, name : str
        The rank mapping's text, or none, and what it is called.

    Raises
    ------
    InputError
        As of `price_pasted`.
    """
    check_job(scenario, pasted.settings)
    check_heads(scenario.model, pasted.plan)
    pasted = replace(pasted, notes=(*pasted.notes, *_other_overlap(scenario, pasted.hidden)))
    if placement is None:
        return pasted
    problem = scenario.problem(pasted.plan.recompute)
    check_plan(problem, pasted.plan)
    order = read_placement(placement, pasted.plan, problem.network.devices, name)
    return replace(
        pasted, plan=replace(pasted.plan, point=replace(pasted.plan.point, device_order=order))
    )


_TRAFFIC = {
    "tp": ("tensor-parallel traffic", "--tp-comm-overlap"),
    "pp": ("pipeline transfers", "--no-overlap-p2p-communication"),
    "dp": ("gradients and states", "--overlap-grad-reduce"),
}


def _other_overlap(scenario: ScenarioValues, hidden: Mapping[str, bool]) -> Iterator[str]:
    """Say what a command hides behind compute otherwise than the plans that it is held against."""
    software, command = scenario.hidden, scenario.hiding(hidden).hidden
    for traffic, (words, flag) in _TRAFFIC.items():
        share, usual = getattr(command, traffic), getattr(software, traffic)
        if share != usual:
            yield (
                f"The command hides {percent(share)} of {words} behind compute, the scenario's "
                f"software {percent(usual)} ({flag})."
            )


def check_job(scenario: ScenarioValues, settings: Mapping[str, Setting]) -> None:
    """Refuse a command that trains another model, sequence, batch or precision, or otherwise.

    Raises
    ------
    InputError
        If its MLPs are of another kind, which no setting changes.
    OtherJob
        With every setting in which the command and the scenario differ.
    """
    stated = dict(settings)
    gated = stated.pop("workload.model.gated", None)
    kinds = ("plain MLPs", "gated MLPs")
    require(
        gated is None or gated == _gated(scenario),
        "your command",
        f"must train what is planned, {kinds[not gated]}",
        kinds[bool(gated)],
        "choose a model of its family, or give the plan's flags alone",
    )
    if not scenario.model.ffn and "workload.model.ffn" in stated:  # the width of every MLP: experts
        stated.setdefault("workload.model.expert_ffn", stated.pop("workload.model.ffn"))
        stated.pop("workload.model.ffn", None)
    values = {key: _here(scenario, key) for key in stated}
    differing = {key: value for key, value in stated.items() if not _same(key, value, values[key])}
    if differing:
        raise OtherJob(differing, {key: values[key] for key in differing})


def _gated(scenario: ScenarioValues) -> bool:
    """Whether an MLP of the model multiplies two projections of its input."""
    kinds = scenario.model.trace.values()
    return any(node.name.endswith(".gate") for graph in kinds for node in graph.nodes)


def _here(scenario: ScenarioValues, key: str) -> object:
    """What a scenario has under a key of its file."""
    name = key.rpartition(".")[2]
    if key.startswith("workload.model."):
        return getattr(scenario.model, name)
    if name == "gradient_bytes":
        return state_bytes(
            scenario.precision, scenario.optimizer, scenario.gradient_bytes
        ).gradients
    renamed = {"sequence_length_tokens": "sequence", "global_batch_sequences": "batch"}
    return getattr(scenario, renamed.get(name, name))


def _same(key: str, stated: Setting, here: object) -> bool:
    """Whether a scenario has what a command says; Megatron-LM's flags say less of two things."""
    if key == "workload.overlap":
        return here != "none"
    if key == "workload.optimizer" and stated == "adam":
        return str(here).startswith("adam")
    if key == "workload.model.vocabulary" and isinstance(stated, int) and isinstance(here, int):
        return -(-here // _VOCABULARY) in (
            -(-stated // _VOCABULARY),
            -(-(stated + 1) // _VOCABULARY),
        )
    return stated == here


def withheld(pasted: Pasted) -> str | None:
    """Why no verdict stands beside a pasted plan; None where one does."""
    if not pasted.unpriced:
        return None
    flags = ", ".join(pasted.unpriced)
    many = len(pasted.unpriced) > 1
    return (
        f"No verdict: {flags} may change time or memory, and {'have' if many else 'has'} no price "
        f"here. The figures are those of the command without {'them' if many else 'it'}."
    )


def check_heads(model: Model, plan: Plan) -> None:
    """Refuse tensor-parallel degrees that do not divide the heads."""
    for tp in (plan.point.tp, *(strategy.tp for strategy in plan.strategies)):
        require(
            model.heads % tp == 0,
            "plan.tp",
            f"must divide the model's {model.heads} heads",
            tp,
            "choose another tp",
        )


_SAME = 5e-4  # of the iteration; smaller differences are none
_ROUNDING = 1e-12  # of an iteration
_PARTS = ("weights", "gradients", "optimizer", "activations", "stash", "buffers")


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One term or part in both plans, and the second's less the first's."""

    name: str
    ours: float
    theirs: float

    @property
    def difference(self) -> float:
        """What the second has more."""
        return self.theirs - self.ours


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """How another plan differs from the best.

    Parameters
    ----------
    relative : float
        Of the iteration time; negative where the other is faster.
    terms : tuple of DifferenceRow
        Seconds; the differences add up to that of the iteration times.
    memory : tuple of DifferenceRow
        Bytes of the fullest stage of each; the differences add up to that of their totals.
    finding : str
        Which one is faster, and the terms that add and save most.
    sentence : str
        The finding, and first of all what does not fit.
    """

    relative: float
    terms: tuple[DifferenceRow, ...]
    memory: tuple[DifferenceRow, ...]
    finding: str
    sentence: str


def difference(ours: Report, theirs: Report) -> PlanDifference:
    """Compare two plans for the same problem."""
    first, second = _terms(ours), _terms(theirs)
    terms = tuple(
        DifferenceRow(name, first.get(name, 0.0), second.get(name, 0.0)) for name in first | second
    )
    first_memory, second_memory = (fullest(report)[1].memory for report in (ours, theirs))
    memory = tuple(
        DifferenceRow(part, getattr(first_memory, part), getattr(second_memory, part))
        for part in _PARTS
    )
    relative = theirs.iteration_s / ours.iteration_s - 1
    finding = _finding(ours, theirs, relative, terms)
    sentence = finding if theirs.feasible else f"It does not fit: {theirs.reason}. {finding}"
    return PlanDifference(relative, terms, memory, finding, sentence)


def _terms(report: Report) -> dict[str, float]:
    """Seconds by term, without what is left of rounding."""
    least = _ROUNDING * report.iteration_s
    return {name: seconds if seconds > least else 0.0 for name, seconds in report.terms}


def _finding(
    ours: Report, theirs: Report, relative: float, terms: tuple[DifferenceRow, ...]
) -> str:
    if theirs.plan == ours.plan and abs(relative) < _SAME:
        return "This is the plan itself."
    gap = theirs.iteration_s - ours.iteration_s
    apart = f" ({signed(gap, humanise_seconds)})"
    verdict = (
        "as long as our plan"
        if abs(relative) < _SAME
        else f"{humanise(1 + relative)} times as long as our plan{apart}"
        if relative >= 1
        else f"{percent(abs(relative))} {'longer' if relative > 0 else 'less'} than our plan{apart}"
    )
    return f"It takes {verdict}{_because(terms, gap, _SAME * ours.iteration_s)}."


def _because(terms: tuple[DifferenceRow, ...], gap: float, least: float) -> str:
    """The term that most of the difference comes from, then the one that most stands against."""
    most = {
        "adds": max(terms, key=lambda row: row.difference),
        "saves": min(terms, key=lambda row: row.difference),
    }
    parts = [
        f"what {verb} most is {row.name} ({signed(row.difference, humanise_seconds)})"
        for verb, row in sorted(most.items(), reverse=gap < 0)
        if (row.difference if verb == "adds" else -row.difference) > least
    ]
    return "".join(f"{'; ' if place == 0 else ', '}{part}" for place, part in enumerate(parts))
