"""Sweeps: one or two parameters turned, every point planned anew, and where the plan changes.

A point that no fabric has, or that no plan fits, is a point with a reason and no failure. Prices
are those of the network alone (`nest_core.bill.bill`), with the shipped price list.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nest_core.costs.plan_words import plan_columns
from nest_core.documents import InputError, require, to_gib
from nest_core.documents.schema import Parameter
from nest_core.scenario import Scenario
from nest_core.studies.engine import plan_points
from nest_core.studies.parameters import (
    distinct,
    parameter_named,
    sweep_parameters,
    with_values,
)
from nest_core.studies.rows import StudyRow
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.uncertainty import PairedRate, paired_rate

__all__ = ["Sweep", "changes", "sweep"]

MAX_POINTS = 400
_DEGREES = ("tp", "pp", "dp", "cp", "ep")
_NAMES = {
    "micro_batch": "micro-batch",
    "interleave": "virtual stages",
    "zero": "ZeRO",
    "recompute": "recompute",
    "schedule": "",
    "zero_group": "ZeRO group",
    "etp": "etp",
    "order": "order",
    "device_order": "seating",
    "offload": "offload",
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep's answer.

    Parameters
    ----------
    scenario : str
        Title of the scenario that was turned (`nest_core.scenario.document`).
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

    @property
    def reference(self) -> StudyRow | None:
        """What points are read against: the scenario itself, else the first with a plan."""
        return next((point for point in self.points if point.paired and not point.paired.sd), None)

    def named(self, point: StudyRow) -> str:
        """Return a point by its values: ``leaf oversubscription 2:1, ZeRO 3``."""
        pairs = zip(self.axes, point.values, strict=True)
        return ", ".join(axis.named(value) for axis, value in pairs)

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain row per point; units stand in the column names."""
        return [self._row(point) for point in self.points]

    def _row(self, point: StudyRow) -> dict[str, Any]:
        memory, limit = point.memory_bytes, point.limit_bytes
        turned = {axis.column: value for axis, value in zip(self.axes, point.values, strict=True)}
        figures = {
            "feasible": point.feasible,
            "reason": point.reason,
            "tokens_per_s": point.tokens_per_s,
            "samples_per_s": point.samples_per_s,
            "iteration_time_s": point.iteration_s,
            "iteration_time_low_s": point.interval and point.interval.low_s,
            "iteration_time_high_s": point.interval and point.interval.high_s,
            "paired_difference": point.paired and point.paired.ratio - 1,
            "paired_low": point.paired and point.paired.span[0],
            "paired_high": point.paired and point.paired.span[1],
            "mfu": point.mfu,
            "bubble": point.bubble,
            "memory_GiB": None if memory is None else to_gib(memory),
            "memory_per_device_GiB": None if limit is None else to_gib(limit),
            "devices": point.devices,
            **plan_columns(point.plan),
            "network_usd": point.network_usd,
            "network_kW": point.network_W and point.network_W / 1e3,
            "realised_ratios": "; ".join(point.realised),
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
        One or two names of parameters with their values, each once and in the order asked.
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
    turned: list[Parameter] = []
    for name, values in axes:
        parameter = parameter_named(available, name, name)
        require(
            parameter.name not in [axis.name for axis in turned],
            name,
            "must be swept once",
            parameter.name,
            "pick another",
        )
        turned.append(replace(parameter, values=distinct(parameter, values, name)))
    places = [place[::-1] for place in itertools.product(*(axis.values for axis in turned[::-1]))]
    total = len(places)
    require(
        total <= MAX_POINTS,
        "values",
        f"must make at most {MAX_POINTS} points",
        total,
        "take some out",
    )
    rows: list[StudyRow] = []
    for number, place in enumerate(places):
        pairs = list(zip(turned, place, strict=True))
        words = ", ".join(f"{axis.label} {axis.words(value)}" for axis, value in pairs)
        progress(number / total, f"point {number + 1} of {total}, {words}")
        try:
            planned = plan_points(
                scenario, [with_values(scenario.overrides, pairs)], [math.inf], ("interval",), stop
            )
        except InputError as error:
            planned = [StudyRow("invalid", str(error))]
        if not planned:
            break
        rows.append(replace(planned[0], values=place))
    swept = tuple(replace(axis, changes=None) for axis in turned)  # functions cross no process
    reference = min(  # the first with a plan of those with the fewest parameters that were moved
        rows,
        key=lambda row: (
            not row.feasible,
            sum(axis.present not in (None, v) for axis, v in zip(turned, row.values, strict=True)),
        ),
        default=None,
    )
    points = tuple(replace(row, paired=_beside(row, reference)) for row in rows)
    return Sweep(title, swept, points, len(rows) == total)


def _beside(row: StudyRow, reference: StudyRow | None) -> PairedRate | None:
    """Return a point's throughput beside the reference's; None where one has no plan."""
    if reference is None or not (row.tokens_per_s and reference.tokens_per_s):
        return None
    ratio = row.tokens_per_s / reference.tokens_per_s
    return paired_rate(ratio, row.sureness, reference.sureness)


def changes(before: StudyRow, after: StudyRow, turned: Collection[str] = ()) -> tuple[str, ...]:
    """Return what the plans of two points differ in: ``("tp 4 → 8", "pp 16 → 8")``; degrees first.

    Empty where they do the same or one has no plan; cuts alone are no difference, nor is what
    the parameters whose keys are ``turned`` pin.
    """
    if before.plan is None or after.plan is None:
        return ()
    differences = [
        f"{_NAMES.get(key, key)} {chosen} → {changed}".strip()
        for key in (*_DEGREES, *_NAMES)
        if key not in turned
        and (chosen := _choice(before.plan, key)) != (changed := _choice(after.plan, key))
    ]
    if before.plan["sp"] != after.plan["sp"]:
        differences.append("with sp" if after.plan["sp"] else "without sp")
    return tuple(differences)


def _choice(plan: Mapping[str, Any], key: str) -> object:
    """Return what a plan's JSON says under a key; of the order, the axes that divide anything."""
    return (
        " ".join(axis for axis in plan.get(key, ()) if plan[axis] > 1)
        if key == "order"
        else plan.get(key, "none")
    )
