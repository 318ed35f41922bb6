"""What failures leave of a plan, and the days that training takes with them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nest_core.api.price import Given, given_or_best
from nest_core.api.results import Result
from nest_core.api.scenario import Named, load
from nest_core.costs import Report
from nest_core.costs import price as price_plan
from nest_core.documents import (
    DAY_S,
    NOTHING,
    format_days,
    humanise_bytes,
    humanise_seconds,
    percent,
    plural,
    require,
    table,
)
from nest_core.documents.failures import load_failures
from nest_core.hardware.posterior import SHARE
from nest_core.network import FloatArray
from nest_core.reliability.goodput import GoodputEstimate
from nest_core.reliability.process import LOSSES
from nest_core.reliability.simulation import simulate
from nest_core.report.explain import Training, name_stack_for_plan, training
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.studies.uncertainty import interval_of

__all__ = ["Goodput", "goodput"]

DRAWS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Goodput(Result):
    """What failures leave of a plan.

    Parameters
    ----------
    report : Report or None
        The plan's price; None where none fits.
    reason : str
        Why there is no plan, or why it does not fit; empty where it does.
    training : Training or None
    simulated : float array (draws, 1 + losses) or None
        Where the time of a year went.
    """

    report: Report | None
    reason: str = ""
    training: Training | None = None
    simulated: FloatArray | None = None

    @property
    def estimate(self) -> GoodputEstimate | None:
        """What failures leave of the time."""
        return self.training.goodput if self.training else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio goodput --json``."""
        run, simulated = self.training, self.simulated
        fields: dict[str, Any] = {
            "feasible": self.report is not None and self.report.feasible,
            "reason": self.reason or None,
            "plan": self.report.plan.to_json() if self.report else None,
        }
        if run is None or simulated is None:
            return fields
        of, (low, high) = run.goodput, run.span
        file, process = of.file, of.process
        return fields | {
            "failures": file.name,
            "source": file.source,
            "notes": list(file.notes),
            "mtbf_s": _finite(of.mtbf_s),
            "checkpoint_interval_s": _finite(of.interval_s),
            "checkpoint_intervals_s": {
                name: _finite(seconds) for name, seconds in of.intervals_s.items()
            },
            "checkpoint_write_s": of.saving.write_s,
            "checkpoint_blocking_s": of.saving.blocking_s,
            "checkpoint_bytes": of.state.total_bytes,
            "restart_s": process.restart_s,
            "effective_share": run.effective_share,
            "effective_interval": {"low": of.span[0], "high": of.span[1], "share": SHARE},
            "effective_share_simulated": float(simulated[:, 0].mean()),
            "losses": dict(zip(LOSSES, of.shares.losses, strict=True)),
            "losses_simulated": dict(zip(LOSSES, simulated[:, 1:].mean(0).tolist(), strict=True)),
            "causes": self.rows(),
            "parts": dict(of.parts),
            "spares": {
                "hosts": process.spares,
                "idle_hosts": of.idle_hosts,
                "share_of_time_exhausted": of.shares.exhausted,
                "when_exhausted": file.recovery.when_exhausted,
            },
            "tokens": run.tokens,
            "days": run.days,
            "days_interval": {"low": low, "high": high, "share": SHARE},
            "days_without_failures": run.days_without_failures,
            "days_by_part": dict(run.parts),
            "assumed": _assumed(of),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the causes of failures, with how often they strike what the plan uses."""
        if self.estimate is None:
            return []
        return [
            {
                "name": rate.cause.name,
                "strikes": rate.cause.strikes,
                "parts": rate.parts,
                "events": rate.cause.events,
                "per_day": rate.per_s * DAY_S,
                "share": rate.per_s / self.estimate.process.rate if rate.per_s else 0.0,
                "takes_host": rate.cause.needs_spare,
                "counted": rate.cause.counted,
            }
            for rate in self.estimate.rates
        ]

    def tables(self) -> tuple[Table, ...]:
        """Return the causes of failures."""
        rows = [
            {
                "cause": str(row["name"]),
                "strikes": str(row["strikes"]),
                "in use": f"{row['parts']:,.5g}",
                "a day": f"{row['per_day']:.3g}",
                "share": percent(row["share"]),
            }
            for row in self.rows()
        ]
        mtbf = humanise_seconds(_finite(self.estimate.mtbf_s)) if self.estimate else NOTHING
        return (Table(f"A failure every {mtbf}", "causes, and how often they strike", rows),)

    def __str__(self) -> str:
        run, simulated = self.training, self.simulated
        if run is None or simulated is None:
            return f"infeasible: {self.reason}"
        of, process, (low, high) = run.goodput, run.goodput.process, run.span
        shares = zip(LOSSES, of.shares.losses, simulated[:, 1:].mean(0).tolist(), strict=True)
        rows = [("effective", of.shares.effective, float(simulated[:, 0].mean())), *shares]
        fits = f"the plan does not fit: {self.reason}; " if self.reason else ""
        return "\n".join(
            [
                f"{fits}{percent(run.effective_share)} of the time trains: {format_days(run.days)} "
                f"({format_days(low)} to {format_days(high)}) in place of "
                f"{format_days(run.days_without_failures)}",
                f"{humanise_bytes(of.state.total_bytes)} saved every "
                f"{humanise_seconds(_finite(of.interval_s))}, written in "
                f"{humanise_seconds(of.saving.write_s)}, "
                f"{humanise_seconds(of.saving.blocking_s)} of it blocking; recovery takes "
                f"{humanise_seconds(process.restart_s)}",
                f"failures as of {of.file.name}; {plural(process.spares, 'spare host')}, "
                f"{of.idle_hosts:,} of them idle in the fabric; exhausted "
                f"{percent(of.shares.exhausted)} of the time",
                "",
                table(
                    ["share of the time", "closed form", "simulated"],
                    [[name, percent(share), percent(other)] for name, share, other in rows],
                ),
                "",
                *map(str, self.tables()),
                "",
                *_assumed(of),
                *of.file.notes,
            ]
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _assumed(of: GoodputEstimate) -> list[str]:
    """Return what of recovery no source states, a sentence each."""
    recovery = of.file.recovery
    return [
        f"{name} = {figure.value:g} is {figure.source}."
        for name in type(recovery).model_fields
        if (figure := getattr(recovery, name))
        and str(getattr(figure, "source", "")).startswith("assumed")
    ]


def goodput(
    scenario: Scenario | Named,
    plan: Given | None = None,
    *,
    failures: str | Path | Mapping[str, Any] | None = None,
    tokens: float | None = None,
    seed: int = 0,
) -> Goodput:
    """Return what failures leave of a plan, and the days that training takes with them.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    plan : optional
        As `price` takes it; the best plan without it.
    failures : str, Path or mapping, optional
        Published failure rates by name, a file, or its tables; the scenario's without it.
    tokens : float, optional
        Of the training run; 20 per parameter without it.
    seed : int
        Of the simulation: 1,000 draws of a year.

    Raises
    ------
    InputError
        If it is no plan of this scenario, or the failure file breaks a rule. That no plan fits is
        an answer.

    Examples
    --------
    >>> left = goodput("llama2-7b-64-h100", "dp=32,tp=2,zero=1")
    >>> 0.98 < left.estimate.shares.effective < 1
    True
    """
    require(
        isinstance(seed, int) and seed >= 0,
        "seed",
        "must be a whole number from 0",
        seed,
        "change it",
    )
    values = load(scenario).values
    if failures is not None:
        name = failures if isinstance(failures, Mapping) else str(failures)
        values = replace(values, failures=load_failures(name, Path()))
    given, reason = given_or_best(values, plan)
    if given is None:
        return Goodput(None, reason)
    values = values.hiding(given.hidden)
    problem = values.problem(given.plan.recompute)
    report = name_stack_for_plan(values, price_plan(problem, given.plan))
    run = training(values, report, tokens, interval_of(values, problem, report))
    return Goodput(report, report.reason, run, simulate(run.goodput.process, DRAWS, seed))
