"""The highest oversubscription that a mix of models bears, tier by tier.

A mix shares the cluster's time: model ``k`` runs for the share ``w_k`` of it, so that a ratio
``r`` costs ``1 - sum(w_k T_k(r) / T_k(r_0))`` of what is trained, with ``T_k`` the throughput of
the best plan on the fabric with that ratio and ``r_0`` the tier's least ratio, 1:1 as a rule. All
other tiers keep the ratio that they have. Throughput need not fall steadily with the ratio, because
ports are whole; so ratios are tried upwards, and the highest is the last before the first that
costs too much.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nest_core.costs.interval import Span
from nest_core.documents.columns import column_of
from nest_core.documents.errors import InputError, require
from nest_core.documents.schema import Parameter, StudyTable, parameter
from nest_core.scenario import Scenario
from nest_core.studies.engine import plan_points
from nest_core.studies.parameters import sweep_parameters, with_values
from nest_core.studies.rows import StudyRow
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.uncertainty import PairedRate, paired_mix
from nest_core.workload.model_files import load_model

__all__ = ["MAX_MODELS", "RatioStep", "Ratios", "TierRatios", "highest_ratios"]


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
