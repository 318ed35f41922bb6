"""What is at stake between the contenders of a choice, as arrays that can be moved."""

from __future__ import annotations

import numpy as np

from nest_core.bill.prices import PriceRange
from nest_core.documents.schema.study import Goal
from nest_core.network import FloatArray
from nest_core.studies.design_choice import DesignChoice
from nest_core.studies.study import Study
from nest_core.studies.uncertainty import alikeness

__all__ = ["Stakes"]

_PARTS = {
    "nic": "NICs",
    "switch": "switches",
    "transceiver": "transceivers",
    "cable": "cables",
}
"""Lines of a network by what is counted."""


class Stakes:
    """The contenders as arrays.

    Parameters
    ----------
    study : Study
    found : DesignChoice

    Attributes
    ----------
    names : list of str
    worst : list of float
        Shares that the worst failed switch takes; infinite where unknown.
    apart : (n, n)
        Of `DesignChoice`.
    models : list of str
    weights : (models,)
        Their parts of the tokens.
    seconds : (n, models)
        Per token, at the centre.
    power : (n,)
        Watts.
    parts : dict of (n, 3)
        Low, typical and high dollars of what the goal pays, part by part.
    price : (n,)
        Typical, all parts.
    hours : float
        Share of the hours that is sold.
    parameters : list of (str, str)
        Names with the device of kernels, empty for those of the network.
    slopes : (n, models, parameters)
    covariance : (parameters, parameters)
        Of their logarithms.
    errors : (models, n, n)
        Covariance of the model's errors from run to run.

    Notes
    -----
    Times are ``weights @ (seconds * exp(slopes @ theta + error))``, theta normal.
    """

    def __init__(self, study: Study, found: DesignChoice) -> None:
        self.goal: Goal = found.goal
        rows = [one.bills for one in found.contenders]
        self.apart = found.apart
        self.names = [one.name for one in found.contenders]
        self.worst = [one.worst_loss[0] if one.worst_loss else np.inf for one in found.contenders]
        self.models = [member.name for member in study.members]
        self.weights = np.array([member.weight for member in study.members])
        self.seconds = np.array(
            [[1.0 / (bill.tokens_per_s or np.nan) for bill in row] for row in rows]
        )
        self.power = np.array([one.planned.design.power_W for one in found.contenders])
        self.parts = self._priced(found)
        self.price = sum((ends[:, 1] for ends in self.parts.values()), np.zeros(len(rows)))
        self.hours = rows[0][0].owned.sold_share or 1.0
        self.parameters, self.slopes, self.covariance = self._joint(found)
        self.errors = self._errors(found)

    def _priced(self, found: DesignChoice) -> dict[str, FloatArray]:
        """Low, typical and high of what the goal pays, part by part, (contenders, 3)."""
        parts: dict[str, FloatArray] = {}
        for place, one in enumerate(found.contenders):
            for line in one.planned.design.owned.lines:
                network = line.part.startswith("network")
                if line.usd is None or (found.goal == "tokens_per_network_usd" and not network):
                    continue
                name = _PARTS.get(line.unit, line.part) if network else line.part
                ends = parts.setdefault(name, np.zeros((len(found.contenders), 3)))
                ends[place] += _ends(line.usd)
        return parts

    def _joint(self, found: DesignChoice) -> tuple[list[tuple[str, str]], FloatArray, FloatArray]:
        """Parameters with their devices, their slopes, and their covariance."""
        names: dict[tuple[str, str], int] = {}
        blocks: list[tuple[list[int], FloatArray]] = []
        moved: list[tuple[int, int, list[int], FloatArray]] = []
        for place, one in enumerate(found.contenders):
            for model, bill in enumerate(one.bills):
                if bill.sureness is None or bill.scenario is None:
                    continue
                spread, along = bill.sureness.spread, bill.sureness.along
                family = bill.scenario.accelerator.name
                keys = [(name, family) for name in spread.kernels]
                keys += [(name, "") for _, name, _ in spread.network]
                at = [names.setdefault(key, len(names)) for key in keys]
                moved.append((place, model, at, along))
                blocks.append((at, spread.joint))
        covariance = np.zeros((len(names), len(names)))
        for at, joint in blocks:
            covariance[np.ix_(at, at)] = joint
        slopes = np.zeros((len(found.contenders), len(self.weights), len(names)))
        for place, model, at, along in moved:
            slopes[place, model, at] = along
        return list(names), slopes, covariance

    def _errors(self, found: DesignChoice) -> FloatArray:
        """Covariance of the model's errors from run to run, (models, contenders, contenders)."""
        each = []
        for model in range(len(self.weights)):
            bills = [one.bills[model] for one in found.contenders]
            plans = [bill.report.plan for bill in bills if bill.report]
            sd = np.array([bill.sureness.spread.run_sd for bill in bills if bill.sureness])
            each.append(alikeness(plans) * np.outer(sd, sd))
        return np.array(each)

    def times(
        self, theta: FloatArray | None = None, weights: FloatArray | None = None
    ) -> FloatArray:
        """Seconds per token of the mix, (contenders,)."""
        factor = 1.0 if theta is None else np.exp(self.slopes @ theta)
        return np.asarray((self.seconds * factor) @ (self.weights if weights is None else weights))

    def cost(
        self, times: FloatArray, price: FloatArray | None = None, hours: float | None = None
    ) -> FloatArray:
        """What the goal makes least, (..., contenders); ``times`` in s per token."""
        if self.goal == "days":
            return times
        if self.goal == "tokens_per_W":
            return np.asarray(times * self.power)
        paid = self.price if price is None else price
        if self.goal == "tokens_per_network_usd" or hours is None:
            return np.asarray(times * paid)
        work = hours * times[0] / times + (1.0 - hours)
        return np.asarray(paid / work)

    def shift(self, part: str, at: FloatArray | float) -> FloatArray:
        """What prices move by, (..., contenders), where a part's is at places from -1, its low
        end, through 0, typical, to 1.
        """
        low, typical, high = self.parts[part].T
        place = np.asarray(at)[..., None]
        return np.asarray(np.where(place < 0, typical - low, high - typical) * place)


def _ends(value: PriceRange) -> FloatArray:
    return np.array([value.low, value.typical, value.high])
