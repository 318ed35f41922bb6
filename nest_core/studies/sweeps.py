"""Sweeps: one or two parameters turned, every point planned anew, and where the plan changes.

A point that no fabric has, or that no plan fits, is a point with a reason and no failure. Prices
are those of the network alone (`nest_core.bill.bill`), with the shipped price list.

The highest oversubscription that a mix of models bears is sought tier by tier. A mix shares the
cluster's time: model ``k`` runs for the share ``w_k`` of it, so that a ratio ``r`` costs ``1 -
sum(w_k T_k(r) / T_k(r_0))`` of what is trained, with ``T_k`` the throughput of the best plan on the
fabric with that ratio and ``r_0`` the tier's least ratio, 1:1 as a rule. All other tiers keep the
ratio that they have. Throughput need not fall steadily with the ratio, because ports are whole; so
ratios are tried upwards, and the highest is the last before the first that costs too much.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nest_core.costs import Span, plan_columns
from nest_core.documents import InputError, require, to_gib
from nest_core.documents.columns import column_of
from nest_core.documents.schema import Parameter, StudyTable, parameter
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
from nest_core.studies.uncertainty import PairedRate, paired_mix, paired_rate
from nest_core.workload.model_files import load_model

__all__ = [
    "MAX_MODELS",
    "RatioStep",
    "Ratios",
    "Sweep",
    "TierRatios",
    "changes",
    "highest_ratios",
    "sweep",
]

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


STEP = 0.5
_LOSS, _SHARE = (parameter(key, StudyTable) for key in ("loss", "share"))
MAX_MODELS = 6

MixModel = tuple[str, Any, float]
"""A name, a model as files have it, and its share of the time."""


@dataclass(frozen=True, slots=True)
class RatioStep:
    """One ratio of one tier.

    Parameters
    ----------
    ratio : float
        Asked for, down : up.
    realised : str
        What it becomes in whole ports.
    loss : float or None
        Share of what the mix trains at the tier's least ratio; None where there is no such fabric
        or no plan.
    losses : tuple of float
        Model by model, in the mix's order.
    reason : str
        Why there is no loss; empty where there is one.
    network_usd : float or None
        Typical price of the network; None where it cannot be priced.
    trained : PairedRate or None
        What the mix trains beside the tier's least ratio, on one cluster; None without a loss.
    """

    ratio: float
    realised: str
    loss: float | None
    losses: tuple[float, ...]
    reason: str
    network_usd: float | None = None
    trained: PairedRate | None = None

    @property
    def span(self) -> Span:
        """Between which shares the loss lies in four cases of five."""
        low, high = self.trained.span if self.trained else (-(self.loss or 0.0),) * 2
        return 0.0 - high, 0.0 - low

    def chance_below(self, limit: float) -> float:
        """Return the probability that it costs less than a limit."""
        return self.trained.chance_above(1 - limit) if self.trained else 0.0


@dataclass(frozen=True, slots=True)
class TierRatios:
    """What one tier bears.

    Parameters
    ----------
    key, label : str
        Of the tier's parameter.
    present : float
        The ratio that the scenario has.
    steps : tuple of RatioStep
        From the least ratio up to the first that costs too much, or to the largest.
    highest : RatioStep
        The last that costs less than the limit.
    beyond : Step or None
        The first that costs the limit or more; None where none does.
    price_usd : tuple of (float, float) or None
        Of the network at the least and at the highest ratio; None where it cannot be priced.
    """

    key: str
    label: str
    present: float
    steps: tuple[RatioStep, ...]
    highest: RatioStep
    beyond: RatioStep | None
    price_usd: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Ratios:
    """The answer.

    Parameters
    ----------
    scenario : str
    mix : tuple of (str, float)
        Models and their shares of the time, which sum to 1.
    limit : float
        The loss that every tier stays below.
    tiers : tuple of TierRatios
        Innermost first; all of them only if ``complete``.
    complete : bool
        False where it was given up on the way.
    """

    scenario: str
    mix: tuple[tuple[str, float], ...]
    limit: float
    tiers: tuple[TierRatios, ...]
    complete: bool

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain row per tier and ratio tried."""
        return [
            {
                "tier": tier.label,
                "ratio": step.ratio,
                "realised_ratios": step.realised,
                "loss": step.loss,
                **{
                    column_of(f"loss of {name}"): step.losses[number] if step.losses else None
                    for number, (name, _) in enumerate(self.mix)
                },
                "loss_low": step.trained and step.span[0],
                "loss_high": step.trained and step.span[1],
                "chance_below_limit": step.trained and step.chance_below(self.limit),
                "below_limit": step.loss is not None and step.loss < self.limit,
                "reason": step.reason,
            }
            for tier in self.tiers
            for step in tier.steps
        ]


def highest_ratios(
    scenario: Scenario,
    mix: Sequence[Mapping[str, Any]],
    loss: float,
    *,
    progress: Tell = silent,
    stop: Stop = never,
) -> Ratios:
    """Find the highest ratio of every tier that costs a mix of models less than a limit.

    Parameters
    ----------
    scenario : Scenario
    mix : sequence of mapping
        With ``model``, a preset's name or a table, and ``share``.
    loss : float
        The limit, as a share.
    progress : callable (share, words), optional
    stop : callable () -> bool, optional
        Asked between searches; once true, the tiers that are done are returned.

    Raises
    ------
    InputError
        If the scenario is none, its fabric has no ratios, or a model does not fit at the least.
    """
    limit, models = _LOSS.checked(loss), _mix(mix, scenario.folder)
    ladder = [
        parameter
        for parameter in sweep_parameters(scenario)
        if parameter.name.startswith("oversubscription.")
    ]
    require(
        ladder,
        "fabric",
        "must have tiers to oversubscribe",
        scenario.document.get("fabric"),
        "pick another",
    )
    others = {
        key: value
        for key, value in scenario.overrides.items()
        if key != "workload.model" and not key.startswith("workload.model.")
    }
    plain = replace(scenario, overrides=others)
    tiers: list[TierRatios] = []
    for number, turned in enumerate(ladder):

        def tell(share: float, words: str, done: int = number) -> None:
            progress((done + share) / len(ladder), words)

        steps = _climb(plain, models, turned, number, limit, tell, stop)
        if stop():
            break
        highest = [step for step in steps if step.loss is not None and step.loss < limit][-1]
        first_usd, highest_usd, last = steps[0].network_usd, highest.network_usd, steps[-1]
        tiers.append(
            TierRatios(
                key=turned.name,
                label=turned.label.removesuffix(" oversubscription"),
                present=float(turned.present),
                steps=tuple(steps),
                highest=highest,
                beyond=last if last.realised and last is not highest else None,
                price_usd=None
                if first_usd is None or highest_usd is None
                else (first_usd, highest_usd),
            )
        )
    shares = tuple((name, share) for name, _, share in models)
    return Ratios(scenario.title, shares, limit, tuple(tiers), len(tiers) == len(ladder))


def _climb(
    scenario: Scenario,
    models: Sequence[MixModel],
    turned: Parameter,
    tier: int,
    limit: float,
    tell: Tell,
    stop: Stop,
) -> list[RatioStep]:
    """Try ratios upwards until one costs too much; ratios of one fabric are planned once."""
    steps: list[RatioStep] = []
    reference: list[StudyRow] = []
    planned: dict[object, list[StudyRow]] = {}
    first, last = min(1.0, float(turned.present)), max(turned.usual or 1.0, float(turned.present))
    count = round((last - first) / STEP) + 1
    shares = [share for *_, share in models]
    for number in range(count):
        ratio = first + number * STEP
        tell(number / count, f"{turned.label} {turned.words(ratio)}")
        overrides = with_values(scenario.overrides, [(turned, ratio)])
        members = [{**overrides, "workload.model": model} for _, model, _ in models]
        try:
            fabric = replace(scenario, overrides=members[0]).values.fabric
        except InputError as error:
            if not reference:
                raise
            steps.append(RatioStep(ratio, "", None, (), str(error)))
            continue
        same = ratio if fabric.sizing is None else fabric.sizing
        if same not in planned:
            planned[same] = plan_points(
                scenario, members, [math.inf] * len(members), ("interval",), stop
            )
        rows = planned[same]
        if stop():
            break
        bad = next((n for n, row in enumerate(rows) if not row.feasible), None)
        why = "" if bad is None else f"{models[bad][0]}: {rows[bad].reason.rstrip('.')}"
        require(
            not why or reference,
            "mix",
            "must hold models that fit",
            why,
            "raise the memory, or drop",
        )
        reference = reference or rows
        pairs = list(zip(rows, reference, strict=True))
        rates = [(row.samples_per_s or 0.0) / (least.samples_per_s or 1.0) for row, least in pairs]
        sureness = [(row.sureness, least.sureness) for row, least in pairs]
        trained = None if why else paired_mix(rates, shares, sureness)
        losses = () if why else tuple(1 - rate for rate in rates)
        loss = (
            sum(part * lost for part, lost in zip(shares, losses, strict=True)) if losses else None
        )
        realised, usd = fabric.realised_ratios()[tier], rows[0].network_usd
        steps.append(RatioStep(ratio, realised, loss, losses, why, usd, trained))
        if loss is None or loss >= limit:
            break
    return steps


def _mix(listed: Sequence[Mapping[str, Any]], folder: Path | None) -> list[MixModel]:
    """Return the models with shares that sum to 1."""
    require(
        1 <= len(listed) <= MAX_MODELS,
        "mix",
        f"must list 1 to {MAX_MODELS} models",
        listed,
        "name the models",
    )
    models: list[MixModel] = []
    for number, entry in enumerate(listed):
        require(
            isinstance(entry, Mapping) and isinstance(entry.get("model"), str | Mapping),
            "mix",
            "must name every model, or hold its table",
            entry,
            "name it",
        )
        share = _SHARE.checked(entry.get("share"), f"mix[{number}].share")
        models.append((load_model(entry["model"], folder).name, entry["model"], share))
    total = sum(share for *_, share in models)
    return [(name, model, share / total) for name, model, share in models]
