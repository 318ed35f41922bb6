"""The contenders of a choice as arrays that can be moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.documents.schema.study import Goal
from nest_core.network import FloatArray
from nest_core.studies.design_choice import DesignChoice
from nest_core.studies.study import Study
from nest_core.studies.uncertainty import alikeness

__all__ = ["DecisionModel", "decision_model"]

_PARTS = {
    "nic": "NICs",
    "switch": "switches",
    "transceiver": "transceivers",
    "cable": "cables",
}
"""Lines of a network by what is counted."""


@dataclass(frozen=True, slots=True, eq=False)
class DecisionModel:
    """The contenders as arrays.

    Parameters
    ----------
    goal : str
    names : list of str
    worst_losses : list of float
        Shares that the worst failed switch takes; infinite where unknown.
    log_sd : (n, n)
        Of `DesignChoice`.
    models : list of str
    weights : (models,)
        Their parts of the tokens.
    seconds_per_token : (n, models)
        At the centre.
    power_W : (n,)
    part_usd : dict of (n, 3)
        Low, typical and high dollars of what the goal pays, part by part.
    sold_share : float
        Share of the hours that is sold.
    parameters : list of (str, str)
        Names with the device of kernels, empty for those of the network.
    slopes : (n, models, parameters)
    covariance : (parameters, parameters)
        Of their logarithms.
    run_covariance : (models, n, n)
        Of the model's errors from run to run.

    Notes
    -----
    Times are ``weights @ (seconds_per_token * exp(slopes @ theta + error))``, theta normal.
    """

    goal: Goal
    names: list[str]
    worst_losses: list[float]
    log_sd: FloatArray
    models: list[str]
    weights: FloatArray
    seconds_per_token: FloatArray
    power_W: FloatArray
    part_usd: dict[str, FloatArray]
    sold_share: float
    parameters: list[tuple[str, str]]
    slopes: FloatArray
    covariance: FloatArray
    run_covariance: FloatArray

    @property
    def price_usd(self) -> FloatArray:
        """Typical dollars of all parts, (n,)."""
        return sum((ends[:, 1] for ends in self.part_usd.values()), np.zeros(len(self.names)))

    def times(
        self, theta: FloatArray | None = None, weights: FloatArray | None = None
    ) -> FloatArray:
        """Return the seconds per token of the mix, (n,)."""
        factor = 1.0 if theta is None else np.exp(self.slopes @ theta)
        mix = self.weights if weights is None else weights
        return np.asarray((self.seconds_per_token * factor) @ mix)

    def cost(
        self, times: FloatArray, price: FloatArray | None = None, hours: float | None = None
    ) -> FloatArray:
        """Return what the goal makes smallest, (..., n); ``times`` in s per token."""
        if self.goal == "days":
            return times
        if self.goal == "tokens_per_W":
            return np.asarray(times * self.power_W)
        paid = self.price_usd if price is None else price
        if self.goal == "tokens_per_network_usd" or hours is None:
            return np.asarray(times * paid)
        work = hours * times[0] / times + (1.0 - hours)
        return np.asarray(paid / work)

    def shift_usd(self, part: str, at: FloatArray | float) -> FloatArray:
        """Return what prices move by, (..., n).

        A part's price is at places from -1, its low end, through 0, typical, to 1.
        """
        low, typical, high = self.part_usd[part].T
        place = np.asarray(at)[..., None]
        return np.asarray(np.where(place < 0, typical - low, high - typical) * place)


def decision_model(study: Study, choice: DesignChoice) -> DecisionModel:
    """Return the arrays of a choice between designs."""
    contenders = choice.contenders
    rows = [contender.bills for contender in contenders]
    losses = [contender.worst_loss for contender in contenders]
    seconds = [[1.0 / (bill.tokens_per_s or np.nan) for bill in row] for row in rows]
    parameters, slopes, covariance = _joint(choice)
    return DecisionModel(
        goal=choice.goal,
        names=[contender.name for contender in contenders],
        worst_losses=[loss[0] if loss else np.inf for loss in losses],
        log_sd=choice.log_sd,
        models=[member.name for member in study.members],
        weights=np.array([member.weight for member in study.members]),
        seconds_per_token=np.array(seconds),
        power_W=np.array([contender.planned.design.power_W for contender in contenders]),
        part_usd=_part_usd(choice),
        sold_share=rows[0][0].owned.sold_share or 1.0,
        parameters=parameters,
        slopes=slopes,
        covariance=covariance,
        run_covariance=_run_covariance(choice),
    )


def _part_usd(choice: DesignChoice) -> dict[str, FloatArray]:
    """Return low, typical and high of what the goal pays, part by part, (contenders, 3)."""
    parts: dict[str, FloatArray] = {}
    for place, contender in enumerate(choice.contenders):
        for line in contender.planned.design.owned.lines:
            network = line.part.startswith("network")
            if line.usd is None or (choice.goal == "tokens_per_network_usd" and not network):
                continue
            name = _PARTS.get(line.unit, line.part) if network else line.part
            ends = parts.setdefault(name, np.zeros((len(choice.contenders), 3)))
            ends[place] += (line.usd.low, line.usd.typical, line.usd.high)
    return parts


def _joint(choice: DesignChoice) -> tuple[list[tuple[str, str]], FloatArray, FloatArray]:
    """Return parameters with their devices, their slopes, and their covariance."""
    numbers: dict[tuple[str, str], int] = {}
    moved = []
    for place, contender in enumerate(choice.contenders):
        for model, bill in enumerate(contender.bills):
            if bill.sureness is not None and bill.scenario is not None:
                spread, family = bill.sureness.spread, bill.scenario.accelerator.name
                keys = [(name, family) for name in spread.kernels]
                keys += [(name, "") for _, name, _ in spread.network]
                at = [numbers.setdefault(key, len(numbers)) for key in keys]
                moved.append((place, model, at, bill.sureness))
    covariance = np.zeros((len(numbers), len(numbers)))
    models = max((len(contender.bills) for contender in choice.contenders), default=0)
    slopes = np.zeros((len(choice.contenders), models, len(numbers)))
    for place, model, at, sureness in moved:
        covariance[np.ix_(at, at)] = sureness.spread.joint
        slopes[place, model, at] = sureness.along
    return list(numbers), slopes, covariance


def _run_covariance(choice: DesignChoice) -> FloatArray:
    """Return the covariance of errors from run to run, (models, contenders, contenders)."""
    matrices = []
    for bills in zip(*(contender.bills for contender in choice.contenders), strict=True):
        plans = [bill.report.plan for bill in bills if bill.report]
        sd = np.array([bill.sureness.spread.run_sd for bill in bills if bill.sureness])
        matrices.append(alikeness(plans) * np.outer(sd, sd))
    return np.array(matrices)
