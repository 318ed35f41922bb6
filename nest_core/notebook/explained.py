"""What cells show of one thing looked into: a fabric, a layer, why a plan, a lesson's figure.

As the kinds of `nest_core.notebook.kinds`: from plain inputs to `Shown`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nest_core.api.layer import LayerRequest, layer
from nest_core.costs import Problem, Report
from nest_core.errors import InputError
from nest_core.explain import bindings, equations, gains, next_best
from nest_core.explain.fabric_summary import fabric_headlines, levels_table
from nest_core.explain.layer_summary import kept_finding, layer_headlines, operator_rows
from nest_core.explain.summary import Headline, plan_in_words
from nest_core.explain.words import (
    axes_table,
    binding_table,
    equation_table,
    head_room_table,
    shadow_table,
)
from nest_core.figures.lessons import lesson_pictures
from nest_core.figures.levels import level_figure
from nest_core.figures.operators import graph_figure
from nest_core.figures.roofline import roofline_figure
from nest_core.lessons import lesson
from nest_core.network import collapse
from nest_core.network.bisection import bisection_Bps
from nest_core.notebook.cells import Row
from nest_core.notebook.shown import FABRIC_PX, Shown
from nest_core.overrides import assign
from nest_core.picture import picture
from nest_core.planner import head_room_steps, search, shadow_prices
from nest_core.report.tables import Table
from nest_core.scenario import ScenarioValues, resolve_scenario
from nest_core.scenario.titles import scenario_title
from nest_core.schema import FabricFile, checked
from nest_core.studies.solving import Stop, Tell
from nest_core.topology.files import build_fabric

__all__ = ["WHY", "fabric_shown", "layer_shown", "lesson_shown", "why_shown"]

PATIENCE_S = 30.0
"""What all searches for one explanation may take together."""


def fabric_shown(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    """A fabric's picture, its levels and who meets whom where, as Design shows them."""
    tell(0.0, "collapsing it into levels")
    merged = {"fabric": copy.deepcopy(inputs["document"])}
    for key, value in inputs.get("overrides", {}).items():
        assign(merged, key, value)
    fabric = build_fabric(checked(FabricFile, merged["fabric"], "fabric."))
    network = collapse(fabric)
    if stop():
        return None
    tell(0.5, "cutting it into halves")
    cut = bisection_Bps(fabric, network)
    row: Row = {
        "devices": fabric.devices,
        "levels": len(network.levels),
        "bisection, bytes/s": cut,
    }
    return Shown(
        (row,),
        fabric_headlines(fabric, network, cut, None),
        (fabric.contents(),),
        (level_figure(network),),
        levels_table(network),
        picture(fabric, width=FABRIC_PX),
    )


def layer_shown(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown:
    """A layer before and after a strategy, as Workload shows it."""
    before, after = layer(LayerRequest(**inputs))
    headlines = layer_headlines(after)
    row: Row = {
        "forward, s": after.forward_s,
        "backward, s": after.backward_s,
        "kept, bytes": after.kept_bytes,
    }
    table = Table(
        kept_finding(after),
        "Operators of one rank for one micro-batch",
        tuple(operator_rows(after)),
    )
    pictures = (graph_figure(before, after), roofline_figure(after))
    return Shown((row,), headlines, (), pictures, table)


def lesson_shown(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown:
    """A lesson's figure under settings of its controls, which may leave some out."""
    tell(0.0, "computing the lesson's figure")
    shown = lesson(inputs["lesson"])
    settings = {control.key: control.standard for control in shown.controls}
    for key, value in inputs.get("settings", {}).items():
        control = next((one for one in shown.controls if one.key == key), None)
        if control is None or value not in control.values:
            known = ", ".join(f"{one.key} ({len(one.values)} values)" for one in shown.controls)
            raise InputError(
                f"settings.{key}",
                f"must be a control of the lesson {shown.key} and one of its values",
                value,
                f"pick {known or 'none: it has no control'}",
            )
        settings[key] = value
    found = shown.reveal(settings)
    row: Row = {"lesson": shown.key, **settings}
    table = found.tables[0] if found.tables else None
    formulas = tuple(
        Headline(one.name, one.numbers, one.symbols, (one.symbols, one.numbers))
        for one in found.formulas
    )
    return Shown((row,), formulas, found.texts, lesson_pictures(found.found), table)


@dataclass(frozen=True, slots=True)
class _Why:
    """An explanation of a plan: what it is called, and what computes it."""

    label: str
    table: Callable[[ScenarioValues, Problem, Report], Table]


def _axes(scenario: ScenarioValues, problem: Problem, best: Report) -> Table:
    limit = min(PATIENCE_S, scenario.time_limit_s)
    return axes_table(next_best(problem, scenario.space, best, time_limit_s=limit))


def _shadow(scenario: ScenarioValues, problem: Problem, best: Report) -> Table:
    limit = min(PATIENCE_S, scenario.time_limit_s)
    prices = shadow_prices(problem, scenario.space, best.iteration_s, limit)
    return shadow_table(prices, gains(problem, best.plan))


def _head_room(scenario: ScenarioValues, problem: Problem, best: Report) -> Table:
    limit = min(PATIENCE_S, scenario.time_limit_s)
    return head_room_table(head_room_steps(problem, scenario.space, (best,), limit), best)


WHY: Mapping[str, _Why] = {
    "binding": _Why(
        "What binds each stage",
        lambda _, problem, best: binding_table(bindings(problem, best), best),
    ),
    "axes": _Why("What the next-best choice on each axis costs", _axes),
    "shadow": _Why("What 1 % more of each resource is worth", _shadow),
    "head-room": _Why("What one step of memory head-room costs", _head_room),
    "equations": _Why(
        "The equation behind each term",
        lambda _, problem, best: equation_table(equations(problem, best), best),
    ),
}
"""Explanations of a plan by the keys that the Plan page has for them."""


def why_shown(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    """One explanation of a scenario's plan, as the Plan page shows it."""
    tell(0.0, "searching plans")
    scenario = resolve_scenario(inputs["document"], inputs.get("overrides"))
    problem = scenario.problem()
    found = search(problem, scenario.space, time_limit_s=scenario.time_limit_s, stop=stop)
    best = found.best
    if stop():
        return None
    if best is None:
        row: Row = {"feasible": False, "reason": found.reason}
        return Shown((row,), facts=(f"No plan: {found.reason}.",))
    part = WHY[inputs["part"]]
    tell(0.6, part.label)
    row = {"feasible": True, "iteration time, s": best.iteration_s}
    words = plan_in_words(best, scenario.batch, scenario.fabric.devices)
    table = part.table(scenario, problem, best)
    return Shown((row,), facts=(f"{scenario_title(scenario)}: {words}",), table=table)
