"""The highest oversubscription that a mix of models bears, tier by tier.

A mix shares the cluster's time: model ``k`` runs for the share ``w_k`` of it, so that a ratio
``r`` costs ``1 - sum(w_k T_k(r) / T_k(r_0))`` of what is trained, with ``T_k`` the throughput of
the best plan on the fabric with that ratio and ``r_0`` the tier's least ratio, 1:1 as a rule. All
other tiers keep the ratio that they have. Throughput need not fall steadily with the ratio, because
ports are whole; so ratios are tried upwards, and the highest is the last before the first that
costs too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nest_core.bill.bill import bill
from nest_core.bill.prices import Prices, load_prices
from nest_core.errors import InputError
from nest_core.planner import search
from nest_core.scenario import ScenarioValues, resolve_scenario
from nest_core.scenario.titles import scenario_title
from nest_core.schema import Parameter, StudyTable, parameter
from nest_core.studies.parameter import with_values
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.solving import Stop, Tell, never
from nest_core.topology import Fabric
from nest_core.workload.model_files import load_model

__all__ = ["MOST_MODELS", "Ratios", "Step", "Tier", "highest_ratios"]


STEP = 0.5
_LOSS, _SHARE = (parameter(key, StudyTable) for key in ("loss", "share"))
MOST_MODELS = 6


@dataclass(frozen=True, slots=True)
class Step:
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
    """

    ratio: float
    realised: str
    loss: float | None
    losses: tuple[float, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Tier:
    """What one tier bears.

    Parameters
    ----------
    key, label : str
        Of the tier's parameter.
    present : float
        The ratio that the scenario has.
    steps : tuple of Step
        From the least ratio up to the first that costs too much, or to the largest.
    highest : Step
        The last that costs less than the limit.
    beyond : Step or None
        The first that costs the limit or more; None where none does.
    price_usd : tuple of (float, float) or None
        Of the network at the least and at the highest ratio; None where it cannot be priced.
    """

    key: str
    label: str
    present: float
    steps: tuple[Step, ...]
    highest: Step
    beyond: Step | None
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
    tiers : tuple of Tier
        Innermost first; all of them only if ``complete``.
    complete : bool
        False where it was given up on the way.
    """

    scenario: str
    mix: tuple[tuple[str, float], ...]
    limit: float
    tiers: tuple[Tier, ...]
    complete: bool

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per tier and ratio tried."""
        return [
            {
                "tier": tier.label,
                "ratio, down : up": step.ratio,
                "becomes": step.realised,
                "loss of the mix": step.loss,
                **{
                    f"loss of {name}": step.losses[number] if step.losses else None
                    for number, (name, _) in enumerate(self.mix)
                },
                "below the limit": step.loss is not None and step.loss < self.limit,
                "reason": step.reason,
            }
            for tier in self.tiers
            for step in tier.steps
        ]


def highest_ratios(
    inputs: Mapping[str, Any],
    *,
    folder: Path | None = None,
    progress: Tell | None = None,
    stop: Stop | None = None,
) -> Ratios:
    """The highest ratio of every tier that costs a mix of models less than a limit.

    Parameters
    ----------
    inputs : mapping
        ``document`` and ``overrides`` of a scenario; ``mix``, a list of tables with ``model`` (a
        preset's name or a table) and ``share``; ``loss``, the limit as a share.
    folder : Path, optional
        Where paths in them start; without it every name in them must be a preset's.
    progress : callable (share, words), optional
    stop : callable () -> bool, optional
        Asked between searches; once true, the tiers that are done are returned.

    Raises
    ------
    InputError
        If the scenario is none, its fabric has no ratios, or a model does not fit at the least.
    """
    document, overrides = inputs["document"], inputs["overrides"]
    limit, mix = _LOSS.checked(inputs.get("loss")), _mix(inputs.get("mix"), folder)
    ladder = [
        swept
        for swept in sweep_parameters(document, overrides, folder)
        if swept.name.startswith("oversubscription.")
    ]
    if not ladder:
        raise InputError(
            "fabric", "must have tiers to oversubscribe", document.get("fabric"), "pick another"
        )
    plain = {key: value for key, value in overrides.items() if not _of_model(key)}
    title = scenario_title(resolve_scenario(document, overrides, folder))
    tiers: list[Tier] = []
    for number, swept in enumerate(ladder):
        trial = _Trial(document, plain, folder, mix, swept, number, stop or never)

        def tell(share: float, words: str, done: int = number) -> None:
            if progress is not None:
                progress((done + share) / len(ladder), words)

        steps = _climb(trial, limit, tell)
        if steps is None:
            break
        tiers.append(_tier(trial, steps, limit))
    shares = tuple((entry.name, entry.share) for entry in mix)
    return Ratios(title, shares, limit, tuple(tiers), len(tiers) == len(ladder))


@dataclass(frozen=True, slots=True)
class _Part:
    """A model of the mix and its share of the time."""

    name: str
    model: Any
    share: float


@dataclass(slots=True)
class _Trial:
    """One tier's ratios put to the test; ratios that become the same fabric are planned once."""

    document: Mapping[str, Any]
    overrides: Mapping[str, Any]
    folder: Path | None
    mix: tuple[_Part, ...]
    parameter: Parameter
    place: int
    stop: Stop
    known: dict[object, tuple[float, ...] | str] = field(default_factory=dict)

    def scenario(self, ratio: float, part: _Part) -> ScenarioValues:
        turned = with_values(self.overrides, [(self.parameter, ratio)])
        return resolve_scenario(self.document, turned | {"workload.model": part.model}, self.folder)

    def rates(self, ratio: float, fabric: Fabric) -> tuple[float, ...] | str:
        """Sequences/s of every model, or why one has no plan."""
        same = ratio if fabric.sizing is None else fabric.sizing
        if same not in self.known:
            self.known[same] = self._search(ratio)
        return self.known[same]

    def _search(self, ratio: float) -> tuple[float, ...] | str:
        found = []
        for part in self.mix:
            scenario = self.scenario(ratio, part)
            result = search(
                scenario.problem(),
                scenario.space,
                time_limit_s=scenario.time_limit_s,
                stop=self.stop,
            )
            if result.best is None:
                return f"{part.name}: {result.reason}"
            found.append(result.best.samples_per_s)
        return tuple(found)


def _climb(trial: _Trial, limit: float, tell: Tell) -> list[Step] | None:
    """Ratios upwards until one costs too much; None once stopped."""
    steps: list[Step] = []
    reference: tuple[float, ...] = ()
    for share, ratio in _ladder(trial.parameter):
        tell(share, f"{trial.parameter.label} {trial.parameter.words(ratio)}")
        try:
            fabric = trial.scenario(ratio, trial.mix[0]).fabric
        except InputError as error:
            if not reference:
                raise
            steps.append(Step(ratio, "", None, (), str(error)))
            continue
        rates = trial.rates(ratio, fabric)
        if trial.stop():
            return None
        if isinstance(rates, str) and not reference:
            raise InputError("mix", "must hold models that fit", rates, "raise the memory, or drop")
        reference = reference or _numbers(rates)
        steps.append(_step(trial, ratio, fabric, rates, reference))
        loss = steps[-1].loss
        if loss is None or loss >= limit:
            break
    return steps


def _numbers(rates: tuple[float, ...] | str) -> tuple[float, ...]:
    return () if isinstance(rates, str) else rates


def _ladder(parameter: Parameter) -> Iterator[tuple[float, float]]:
    """Every ratio with how far up it is."""
    present = float(parameter.present or 1)
    least, most = min(1.0, present), max(parameter.usual or 1.0, present)
    count = round((most - least) / STEP) + 1
    for number in range(count):
        yield number / count, least + number * STEP


def _step(
    trial: _Trial,
    ratio: float,
    fabric: Fabric,
    rates: tuple[float, ...] | str,
    reference: tuple[float, ...],
) -> Step:
    realised = fabric.realised_ratios()[trial.place]
    if isinstance(rates, str):
        return Step(ratio, realised, None, (), rates)
    losses = tuple(1 - rate / least for rate, least in zip(rates, reference, strict=True))
    loss = sum(part.share * lost for part, lost in zip(trial.mix, losses, strict=True))
    return Step(ratio, realised, loss, losses, "")


def _tier(trial: _Trial, steps: list[Step], limit: float) -> Tier:
    borne = [step for step in steps if step.loss is not None and step.loss < limit]
    last = steps[-1]
    prices = load_prices()
    least, most = (_price(trial, step.ratio, prices) for step in (steps[0], borne[-1]))
    present = trial.parameter.present
    return Tier(
        key=trial.parameter.name,
        label=trial.parameter.label.removesuffix(" oversubscription"),
        present=float(present) if isinstance(present, int | float) else steps[0].ratio,
        steps=tuple(steps),
        highest=borne[-1],
        beyond=last if last.realised and last is not borne[-1] else None,
        price_usd=None if least is None or most is None else (least, most),
    )


def _price(trial: _Trial, ratio: float, prices: Prices) -> float | None:
    """Typical price of the network; None where its parts cannot be counted."""
    try:
        return float(bill(trial.scenario(ratio, trial.mix[0]).fabric, prices).price_usd.typical)
    except InputError:
        return None


def _mix(asked: object, folder: Path | None) -> tuple[_Part, ...]:
    """The models with shares that sum to 1."""
    if not isinstance(asked, list | tuple) or not 1 <= len(asked) <= MOST_MODELS:
        raise InputError("mix", f"must list 1 to {MOST_MODELS} models", asked, "name the models")
    parts = []
    for number, entry in enumerate(asked):
        table = entry if isinstance(entry, Mapping) else {}
        share, named = (
            _SHARE.checked(table.get("share"), f"mix[{number}].share"),
            table.get("model"),
        )
        if not isinstance(named, str | Mapping):
            raise InputError("mix", "must name every model, or hold its table", entry, "name it")
        parts.append(_Part(load_model(named, folder).name, named, share))
    total = sum(part.share for part in parts)
    return tuple(_Part(part.name, part.model, part.share / total) for part in parts)


def _of_model(key: str) -> bool:
    return key == "workload.model" or key.startswith("workload.model.")
