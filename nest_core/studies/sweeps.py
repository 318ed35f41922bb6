"""Sweeps: one or two parameters turned, every point planned anew, and where the plan changes.

A point that no fabric has, or that no plan fits, is a point with a reason and no failure. Prices
are those of the network alone (`nest_core.bill.bill`), with the shipped price list.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nest_core.documents import InputError, require, to_gib
from nest_core.documents.schema import Parameter
from nest_core.scenario import Scenario
from nest_core.studies.engine import run
from nest_core.studies.parameters import (
    distinct,
    parameter_named,
    sweep_parameters,
    with_values,
)
from nest_core.studies.rows import RowCache, StudyRow
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.study import Member, StudyPoint

__all__ = ["Sweep", "changes", "sweep"]

MAX_POINTS = 400
_DEGREES = ("tp", "pp", "dp", "cp", "ep")
_NAMES = {
    "micro_batch": "micro-batch",
    "zero": "ZeRO",
    "recompute": "recompute",
    "schedule": "",
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep's answer.

    Parameters
    ----------
    scenario : str
        Title of the scenario that was turned (`nest_core.scenario.titles`).
    axes : tuple of Parameter
        One or two.
    points : tuple of StudyRow
        The first axis fastest. All of them only if ``complete``.
    complete : bool
        False where it was given up on the way.
    """

    scenario: str
    axes: tuple[Parameter, ...]
    points: tuple[StudyRow, ...]
    complete: bool

    @property
    def x(self) -> Parameter:
        """The first axis."""
        return self.axes[0]

    @property
    def y(self) -> Parameter | None:
        """The second axis, if there is one."""
        return self.axes[1] if len(self.axes) > 1 else None

    def named(self, point: StudyRow) -> str:
        """Return a point by its values: ``leaf oversubscription 2:1, ZeRO 3``."""
        pairs = zip(self.axes, point.values, strict=True)
        return ", ".join(axis.named(value) for axis, value in pairs)

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain row per point; units stand in the column names."""
        return [self._row(point) for point in self.points]

    def _row(self, point: StudyRow) -> dict[str, Any]:
        memory, limit = point.memory_bytes, point.limit_bytes
        plan = point.plan or {}
        turned = {axis.title: value for axis, value in zip(self.axes, point.values, strict=True)}
        figures = {
            "feasible": point.feasible,
            "reason": point.reason,
            "throughput, tokens/s": point.tokens_per_s,
            "throughput, sequences/s": point.samples_per_s,
            "iteration, s": point.iteration_s,
            "iteration, low, s": point.interval and point.interval.low_s,
            "iteration, high, s": point.interval and point.interval.high_s,
            "MFU": point.mfu,
            "bubble": point.bubble,
            "fullest stage, GiB": None if memory is None else to_gib(memory),
            "memory per device, GiB": None if limit is None else to_gib(limit),
            "devices": point.devices,
            **{name: plan.get(name) for name in _DEGREES},
            "micro-batch, sequences": plan.get("micro_batch"),
            "ZeRO": plan.get("zero"),
            "recomputation": plan.get("recompute"),
            "schedule": plan.get("schedule"),
            "network price, $": point.network_usd,
            "network power, W": point.network_W,
            "ratios become": "; ".join(point.realised),
            "proven": point.proven,
            "plan": point.words,
        }
        return turned | figures | turned  # a parameter may be called like a result


def sweep(
    scenario: Scenario,
    axes: Sequence[tuple[str, Sequence[object]]],
    *,
    progress: Tell = silent,
    stop: Stop = never,
) -> Sweep:
    """Plan a scenario at every value of one or two parameters.

    Parameters
    ----------
    scenario : Scenario
    axes : sequence of (str, sequence of value)
        One or two names of parameters with their values, which are put in order.
    progress : callable (share, words), optional
    stop : callable () -> bool, optional
        Asked between points and while searching; once true, what is there is returned.

    Raises
    ------
    InputError
        If the scenario is none, has no such parameter, or a value is out of its range.

    Examples
    --------
    >>> from nest_core.scenario import Scenario, scenario_document
    >>> scenario = Scenario(scenario_document("llama2-7b-64-h100")[0])
    >>> [(row.values, row.feasible) for row in sweep(scenario, [("zero", [0, 1])]).points]
    [((0,), True), ((1,), True)]
    """
    title, available = scenario.title, sweep_parameters(scenario)
    by_name: dict[str, Parameter] = {}
    for name, values in axes:
        parameter = parameter_named(available, name, name)
        require(
            parameter.name not in by_name,
            name,
            "must be swept once",
            parameter.name,
            "pick another",
        )
        by_name[parameter.name] = replace(parameter, values=distinct(parameter, values, name))
    turned = tuple(by_name.values())
    places = [place[::-1] for place in itertools.product(*(axis.values for axis in turned[::-1]))]
    total = len(places)
    require(
        total <= MAX_POINTS,
        "values",
        f"must make at most {MAX_POINTS} points",
        total,
        "take some out",
    )
    member, rows, points = Member(title, scenario), RowCache(), []
    for number, place in enumerate(places):
        try:
            setting = with_values(scenario.overrides, zip(turned, place, strict=True))
        except InputError as error:
            rows.put({str(number): StudyRow("invalid", str(error))})
        else:
            points.append(StudyPoint(str(number), number, member, setting, ("interval",)))

    def tell(answered: int, _: int) -> None:
        if answered < len(points):
            number = points[answered].number
            pairs = zip(turned, places[number], strict=True)
            words = ", ".join(f"{axis.label} {axis.words(value)}" for axis, value in pairs)
            progress(number / total, f"point {number + 1} of {total}, {words}")

    ended = run(points, rows, tell=tell, stop=stop)
    planned = itertools.takewhile(rows.rows.__contains__, map(str, range(total)))
    results = (replace(rows.rows[key], values=places[int(key)]) for key in planned)
    swept = tuple(replace(axis, changes=None) for axis in turned)  # functions cross no process
    return Sweep(title, swept, tuple(results), ended.complete)


def changes(before: StudyRow, after: StudyRow, turned: Collection[str] = ()) -> tuple[str, ...]:
    """Return what the plans of two points differ in: ``("tp 4 → 8", "pp 16 → 8")``; degrees first.

    Empty where they do the same or one has no plan; cuts alone are no difference, nor is what
    the parameters whose keys are ``turned`` pin.
    """
    if before.plan is None or after.plan is None:
        return ()
    differences = [
        f"{_NAMES.get(key, key)} {before.plan[key]} → {after.plan[key]}".strip()
        for key in (*_DEGREES, *_NAMES)
        if key not in turned and before.plan[key] != after.plan[key]
    ]
    if before.plan["sp"] != after.plan["sp"]:
        differences.append("with sp" if after.plan["sp"] else "without sp")
    return tuple(differences)
