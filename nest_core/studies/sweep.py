"""Sweeps: one or two parameters turned, and every point planned anew by the search.

A point that no fabric has, or that no plan fits, is a point with a reason and no failure. Prices
are those of the network alone (`nest_core.bill.bill`), with the shipped price list.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nest_core.bill.bill import bill
from nest_core.bill.prices import Prices, load_prices
from nest_core.costs.price import Report
from nest_core.costs.problem import Problem
from nest_core.errors import InputError
from nest_core.explain.summary import fullest, plan_in_words
from nest_core.planner import Result, search
from nest_core.scenario import ScenarioValues, resolve_scenario
from nest_core.scenario.titles import scenario_title
from nest_core.studies.interval import interval_of
from nest_core.studies.parameter import (
    SweepParameter,
    Value,
    distinct,
    parameter_named,
    renamed,
    with_values,
)
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.points import Axis, Outcome, Status, Sweep, changes
from nest_core.studies.solving import Stop, Tell, never, silent

__all__ = ["Axis", "Outcome", "Sweep", "changes", "figures_of", "run"]


MOST_POINTS = 400
MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "stash", "buffers")


def run(
    inputs: Mapping[str, Any],
    *,
    folder: Path | None = None,
    progress: Tell | None = None,
    stop: Stop | None = None,
) -> Sweep:
    """Plan a scenario at every value of one or two parameters.

    Parameters
    ----------
    inputs : mapping
        ``document`` and ``overrides`` of a scenario (`resolve_scenario`); ``x`` and ``y`` with
        ``parameter`` and ``values`` each, ``y`` None for one parameter. Plain JSON.
    folder : Path, optional
        Where the scenario's paths start; without it every name in it must be a preset's.
    progress : callable (share, words), optional
    stop : callable () -> bool, optional
        Asked between points and while searching; once true, what is there is returned.

    Raises
    ------
    InputError
        If the scenario is none, has no such parameter, or a value is out of its range.

    Examples
    --------
    >>> from nest_core.scenario import scenario_document
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> found = run({"document": document, "overrides": {},
    ...              "x": {"parameter": "zero", "values": [0, 1]}, "y": None})
    >>> [(point.x, point.feasible) for point in found.points]
    [(0, True), (1, True)]
    """
    base = _Base.of(inputs, folder)
    scenario = resolve_scenario(base.document, base.overrides, base.folder)
    turned = _turned(inputs, sweep_parameters(base.document, base.overrides, base.folder))
    tell, over = progress or silent, stop or never
    total = len(turned[0][1]) * (len(turned[1][1]) if len(turned) > 1 else 1)
    if total > MOST_POINTS:
        raise InputError(
            "values", f"must make at most {MOST_POINTS} points", total, "take some out"
        )
    prices, points = load_prices(), []
    for number, pairs in enumerate(_places(turned)):
        if over():
            break
        tell(number / total, f"point {number + 1} of {total}, {_told(pairs)}")
        points.append(_solved(base, pairs, prices, over))
    if over() and points and not points[-1].proven:
        points.pop()  # cut short
    x, *rest = (_axis(parameter, values) for parameter, values in turned)
    return Sweep(
        scenario_title(scenario), x, rest[0] if rest else None, tuple(points), len(points) == total
    )


@dataclass(frozen=True, slots=True)
class _Base:
    """The scenario that is turned."""

    document: Mapping[str, Any]
    overrides: Mapping[str, Any]
    folder: Path | None

    @classmethod
    def of(cls, inputs: Mapping[str, Any], folder: Path | None) -> _Base:
        for name in ("document", "overrides"):
            if not isinstance(inputs.get(name), Mapping):
                raise InputError(name, "must be a table", inputs.get(name), "give a scenario's")
        return cls(inputs["document"], inputs["overrides"], folder)


def _turned(
    inputs: Mapping[str, Any], known: tuple[SweepParameter, ...]
) -> list[tuple[SweepParameter, tuple[Value, ...]]]:
    """Parameters and their values as asked for, checked."""
    found = []
    for name in ("x", "y"):
        asked = renamed(inputs.get(name))
        if asked is None and name == "y":
            continue
        if not isinstance(asked, Mapping) or not isinstance(asked.get("values"), list | tuple):
            raise InputError(name, "must have a parameter and values", asked, "name both")
        parameter = parameter_named(known, asked.get("parameter"), f"{name}.parameter")
        found.append((parameter, distinct(parameter, asked["values"], f"{name}.values")))
    if len(found) > 1 and found[0][0].key == found[1][0].key:
        raise InputError(
            "y.parameter", "must differ from x.parameter", found[1][0].key, "pick another"
        )
    return found


def _places(
    turned: list[tuple[SweepParameter, tuple[Value, ...]]],
) -> Iterator[tuple[tuple[SweepParameter, Value], ...]]:
    """The parameters' values point by point, ``x`` fastest."""
    for values in itertools.product(*(values for _, values in reversed(turned))):
        yield tuple(
            (parameter, value)
            for (parameter, _), value in zip(turned, reversed(values), strict=True)
        )


def _solved(
    base: _Base, pairs: tuple[tuple[SweepParameter, Value], ...], prices: Prices, over: Stop
) -> Outcome:
    """Plan one point."""
    (_, x), *rest = pairs
    y = rest[0][1] if rest else None
    try:
        overrides = with_values(base.overrides, pairs)
        scenario = resolve_scenario(base.document, overrides, base.folder)
        problem = scenario.problem()
        result = search(problem, scenario.space, time_limit_s=scenario.time_limit_s, stop=over)
    except InputError as error:
        return Outcome(x, y, "invalid", reason=str(error))
    interval = interval_of(scenario, problem, result.best) if result.best else None
    return Outcome(x, y, **figures_of(scenario, problem, result, prices), interval=interval)


def figures_of(
    scenario: ScenarioValues, problem: Problem, result: Result, prices: Prices
) -> dict[str, Any]:
    """What a search found, as fields of an `Outcome`; plain but for the tuples."""
    usd, watts = _network(scenario, prices)
    found: dict[str, Any] = {
        "devices": problem.network.devices,
        "realised": scenario.fabric.realised_ratios(),
        "limit_bytes": problem.memory_bytes,
        "network_usd": usd,
        "network_W": watts,
        "proven": result.certificate.proven,
        "gap": result.certificate.gap,
    }
    if result.best is None:
        reason = f"{result.reason[:1].upper()}{result.reason[1:]}."
        status: Status = "memory" if result.certificate.proven else "time limit"
        return found | {"status": status, "reason": reason, "needed_bytes": result.needed_bytes}
    return found | {"status": "solved"} | _of_plan(scenario, result.best)


def _of_plan(scenario: ScenarioValues, best: Report) -> dict[str, Any]:
    memory = fullest(best)[1].memory
    devices = scenario.fabric.devices
    return {
        "iteration_s": best.iteration_s,
        "samples_per_s": best.samples_per_s,
        "tokens_per_s": best.samples_per_s * scenario.sequence,
        "mfu": best.mfu,
        "bubble": best.bubble,
        "memory_bytes": memory.total,
        "memory_parts": tuple((part, float(getattr(memory, part))) for part in MEMORY_PARTS),
        "words": plan_in_words(best, scenario.batch, devices),
        "plan": json.loads(json.dumps(best.plan.to_json())),
    }


def _network(scenario: ScenarioValues, prices: Prices) -> tuple[float | None, float | None]:
    """Typical price and power of the network; None where its parts cannot be counted."""
    try:
        found = bill(scenario.fabric, prices)
    except InputError:
        return None, None
    return float(found.price_usd.typical), float(found.power_W.typical)


def _axis(parameter: SweepParameter, values: tuple[Value, ...]) -> Axis:
    shown = tuple(parameter.words(value) for value in values)
    return Axis(
        parameter.key,
        parameter.label,
        parameter.unit,
        values,
        shown,
        parameter.present,
        parameter.doubling,
        parameter.fabric,
    )


def _told(pairs: tuple[tuple[SweepParameter, Value], ...]) -> str:
    return ", ".join(f"{parameter.label} {parameter.words(value)}" for parameter, value in pairs)
