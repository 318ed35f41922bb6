"""What the choice of a design rests on: prices, predictions, hours, the mix of models.

Every contender's time is a product of powers of what is not known exactly, by its slopes at the
centre (`nest_core.studies.interval`), times the model's error from run to run; its price is the sum
of its lines, each between its ends. One thing is moved at a time, from one end of what is known to
the other, and the choice made again, ties and all (`nest_core.studies.design_choice`): that is the
tornado, and where the choice first changes is found by bisection.

What a measurement is worth is what the goal is expected to cost less if it is known before the
choice is made (expected value of partial perfect information, Howard 1966, "Information value
theory", IEEE Transactions on Systems Science and Cybernetics 2(1)); that of a price is the same for
a firm quote. Prices are taken for evenly spread between their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.bill.prices import Range
from nest_core.explain.summary import share
from nest_core.hardware.posterior import WIDTH
from nest_core.network import FloatArray
from nest_core.schema.study import Goal
from nest_core.studies.design_choice import Choice, choose, ties_of
from nest_core.studies.draws import alikeness
from nest_core.studies.study import Study

__all__ = ["Information", "Sensitivity", "Swing", "sensitivity"]

DRAWS = 2000
QUADRATURE = 9
STEPS = 40
"""Between the centre and an end, before bisection."""
WORTH = 1e-4
"""Of the goal's cost: what is worth less is noise of the draws."""
LEAST_HOURS = 0.05

_PARTS = {
    "nic": "NICs",
    "switch": "switches",
    "transceiver": "transceivers",
    "cable": "cables",
}
"""Lines of a network by what is counted."""
_KERNELS = {
    "gemm_efficiency": "what matrix products reach",
    "memory_efficiency": "what memory-bound kernels reach",
    "attention_efficiency": "what attention reaches",
    "biased_attention_efficiency": "what attention with a bias reaches",
    "host_s": "the time to launch a kernel",
    "network": "what collectives reach of the line rate",
}
_NETWORK = {
    "reach": "what collectives reach of the line rate",
    "incast": "incast of all-to-alls",
    "uplinks": "how evenly uplinks are used",
    "reduction": "what switches that reduce reach",
    "overlap": "overlap of traffic with computation",
}
_MEASURED = {
    **dict.fromkeys(_KERNELS, "profile one accelerator (nest-studio profile)"),
    "host_s": "trace an iteration on one node",
    "network": "run nccl-tests between two nodes",
    "reach": "run nccl-tests between two nodes",
    "incast": "run an all-to-all between nodes",
    "uplinks": "run an all-reduce across the spine, all nodes at once",
    "reduction": "run nccl-tests with and without in-network reduction",
    "overlap": "trace an iteration on several nodes",
}


@dataclass(frozen=True, slots=True)
class Swing:
    """One bar of the tornado.

    Parameters
    ----------
    name : str
        What is moved.
    low, high : float
        What the choice then costs at the ends, over what it costs at the centre, less one; of the
        goal's cost: days, or dollars or watts over what is trained.
    low_choice, high_choice : str
        What is chosen there.
    changes : str
        When the choice changes, as a sentence; empty where it does not.
    """

    name: str
    low: float
    high: float
    low_choice: str
    high_choice: str
    changes: str


@dataclass(frozen=True, slots=True)
class Information:
    """What it is worth to know one thing before the choice.

    Parameters
    ----------
    name : str
    measure : str
        How one comes to know it.
    worth : float
        Share of the goal's cost that is expected to be saved.
    """

    name: str
    measure: str
    worth: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What a choice rests on.

    Parameters
    ----------
    choice : str
        At the centre.
    swings : tuple of Swing
        The widest first.
    regret : float
        Share of the goal's cost that knowing everything is expected to save.
    wins : tuple of float
        Of every contender, the share of draws in which it is the best.
    information : tuple of Information
        What is worth most first; only what changes a choice.
    """

    choice: str
    swings: tuple[Swing, ...]
    regret: float
    wins: tuple[float, ...]
    information: tuple[Information, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """When the choice changes, and which measurement would tell."""
        found = [one.changes for one in self.swings if one.changes]
        if not found:
            found = [
                "Nothing that is not known exactly, moved alone to its ends, changes the choice."
            ]
        if self.information:
            best = self.information[0]
            found.append(
                f"To know more before choosing, {best.measure}: it tells {best.name}, and is "
                f"expected to save {share(best.worth)}."
            )
        else:
            found.append("No single measurement or quote is expected to change the choice.")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Factor:
    """What can be moved: from ``low`` to ``high`` about ``centre``, and what that is in words."""

    name: str
    low: float
    centre: float
    high: float
    costs: Callable[[float], FloatArray]
    prices: Callable[[float], FloatArray]
    words: Callable[[float], str]


def sensitivity(study: Study, found: Choice, seed: int = 0) -> Sensitivity:
    """The tornado of a choice, when it changes, and what would be worth knowing."""
    stakes = _Stakes(study, found)
    swings = [
        swing
        for factor in _factors(stakes)
        if (swing := _swing(stakes, factor)).changes or swing.low or swing.high
    ]
    swings.sort(key=lambda one: -max(abs(one.low), abs(one.high)))
    return Sensitivity(stakes.names[0], tuple(swings), *_information(stakes, seed))


class _Stakes:
    """The contenders as arrays.

    Times are ``weights @ (seconds * exp(slopes @ theta + error))``, theta normal with `covariance`.
    """

    def __init__(self, study: Study, found: Choice) -> None:
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

    def _priced(self, found: Choice) -> dict[str, FloatArray]:
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

    def _joint(self, found: Choice) -> tuple[list[str], FloatArray, FloatArray]:
        """Parameters by name, slopes (contenders, models, parameters), and their covariance."""
        names: dict[str, int] = {}
        blocks: list[tuple[list[int], FloatArray]] = []
        moved: list[tuple[int, int, list[int], FloatArray]] = []
        for place, one in enumerate(found.contenders):
            for model, bill in enumerate(one.bills):
                if bill.sureness is None or bill.scenario is None:
                    continue
                spread, along = bill.sureness.spread, bill.sureness.along
                family = bill.scenario.accelerator.name
                keys = [f"{name} of {family}" for name in spread.kernels]
                keys += [name for _, name, _ in spread.network]
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

    def _errors(self, found: Choice) -> FloatArray:
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

    def moved_price(self, part: str, at: float) -> FloatArray:
        """All prices typical but a part's, at a place from -1, its low end, to 1."""
        ends = self.parts[part]
        low, typical, high = ends.T
        moved = typical + np.where(at < 0, typical - low, high - typical) * at
        return np.asarray(self.price - typical + moved)


def _ends(value: Range) -> FloatArray:
    return np.array([value.low, value.typical, value.high])


def _factors(stakes: _Stakes) -> Iterator[_Factor]:
    """All that can be moved."""
    centre = stakes.times()

    def price_of(part: str) -> _Factor:
        typical = stakes.parts[part][0, 1]

        def words(at: float) -> str:
            paid = typical + stakes.moved_price(part, at)[0] - stakes.price[0]
            return f"the price of {part} is {paid / typical:.3f} times the typical one"

        return _Factor(
            f"price of {part}",
            -1.0,
            0.0,
            1.0,
            lambda at: stakes.cost(centre, stakes.moved_price(part, at)),
            lambda at: stakes.moved_price(part, at),
            words,
        )

    def parameter_of(number: int) -> _Factor:
        sd = float(np.sqrt(stakes.covariance[number, number]))
        name = _told(stakes.parameters[number])

        def at_sd(at: float) -> FloatArray:
            theta = np.zeros(len(stakes.parameters))
            theta[number] = sd * at
            return stakes.cost(stakes.times(theta))

        return _Factor(
            name,
            -WIDTH,
            0.0,
            WIDTH,
            at_sd,
            lambda _: stakes.price,
            lambda at: f"{name}: {np.exp(sd * at):.2f} times what is predicted",
        )

    for part, ends in stakes.parts.items():
        if (ends[:, 0] < ends[:, 2]).any() and ends[0, 1] > 0:
            yield price_of(part)
    for number in range(len(stakes.parameters)):
        if stakes.covariance[number, number] > 0 and stakes.slopes[:, :, number].any():
            yield parameter_of(number)
    if stakes.goal == "tokens_per_usd":
        yield _Factor(
            "share of the hours that is sold to these models",
            LEAST_HOURS,
            stakes.hours,
            1.0,
            lambda at: stakes.cost(centre, hours=at),
            lambda _: stakes.price,
            lambda at: f"these models get {share(at)} of the hours",
        )
    if len(stakes.models) > 1:
        yield from (_mixed(stakes, model) for model in range(len(stakes.models)))


def _mixed(stakes: _Stakes, model: int) -> _Factor:
    """A model's share of the tokens, the others in proportion."""
    own = float(stakes.weights[model])

    def costs(at: float) -> FloatArray:
        weights = stakes.weights * (1.0 - at) / (1.0 - own)
        weights[model] = at
        return stakes.cost(stakes.times(weights=weights))

    name = stakes.models[model]
    return _Factor(
        f"share of {name}",
        0.0,
        own,
        1.0,
        costs,
        lambda _: stakes.price,
        lambda at: f"{name} makes up {share(at)} of the tokens",
    )


def _told(parameter: str) -> str:
    """A parameter in words."""
    name, of, device = parameter.partition(" of ")
    if of:
        return f"{_KERNELS.get(name, name)} on {device}"
    kind, _, which = name.partition(".")
    words = _NETWORK.get(kind, kind)
    return f"{words} ({which})" if which else words


def _swing(stakes: _Stakes, factor: _Factor) -> Swing:
    """Move one thing from end to end."""

    def chosen(at: float) -> int:
        prices = factor.prices(at).tolist()
        places = list(zip(prices, stakes.worst, strict=True))
        return choose(factor.costs(at), stakes.apart, places)

    ends = factor.low, factor.high
    first = chosen(factor.centre)
    costs = factor.costs(factor.centre)
    centre, tied = costs[first], ties_of(costs, stakes.apart, first)
    low, high = (float(factor.costs(end)[first] / centre - 1.0) for end in ends)
    crossings = [
        crossing
        for end in ends
        if (crossing := _crossing(chosen, first, factor.centre, end)) is not None
    ]
    told = [
        f"The choice changes to {stakes.names[other]}"
        + (", which ties with it," if other in tied else "")
        + f" where {factor.words(at)} or {'less' if at < factor.centre else 'more'}."
        for at, other in crossings
    ]
    low_choice, high_choice = (stakes.names[chosen(end)] for end in ends)
    return Swing(factor.name, low, high, low_choice, high_choice, " ".join(told))


def _crossing(
    chosen: Callable[[float], int], first: int, centre: float, end: float
) -> tuple[float, int] | None:
    """Where between the centre and an end the choice first is another, and which."""
    before = centre
    for step in range(1, STEPS + 1):
        at = centre + (end - centre) * step / STEPS
        if chosen(at) != first:
            break
        before = at
    else:
        return None
    for _ in range(STEPS):
        middle = (before + at) / 2.0
        before, at = (middle, at) if chosen(middle) == first else (before, middle)
    return at, chosen(at)


def _information(
    stakes: _Stakes, seed: int
) -> tuple[float, tuple[float, ...], tuple[Information, ...]]:
    """Regret of choosing now, how often each is best, and what it is worth to know one thing."""
    rng = np.random.default_rng(seed)
    count = len(stakes.parameters)
    theta = rng.multivariate_normal(np.zeros(count), stakes.covariance, DRAWS, method="eigh")
    errors = np.stack(
        [
            rng.multivariate_normal(np.zeros(len(stakes.names)), each, DRAWS, method="eigh")
            for each in stakes.errors
        ],
        axis=2,
    )
    places = {part: rng.uniform(-1.0, 1.0, DRAWS) for part in stakes.parts}
    shifts = {part: _shift(stakes, part, at) for part, at in places.items()}
    paid = stakes.price + sum(shifts.values(), np.zeros((DRAWS, len(stakes.names))))

    def costs(moved: FloatArray, price: FloatArray) -> FloatArray:
        logs = np.einsum("nmp,dp->dnm", stakes.slopes, moved) + errors
        return stakes.cost((stakes.seconds * np.exp(logs)) @ stakes.weights, price)

    everything = costs(theta, paid)
    expected = everything.mean(axis=0)
    now = float(expected.min())
    regret = 1.0 - float(everything.min(axis=1).mean()) / now
    wins = np.bincount(everything.argmin(axis=1), minlength=len(stakes.names)) / DRAWS
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    even, even_weights = np.polynomial.legendre.leggauss(QUADRATURE)
    found = []
    for number, name in enumerate(stakes.parameters):
        variance = stakes.covariance[number, number]
        if variance == 0.0 or not stakes.slopes[:, :, number].any():
            continue
        along = stakes.covariance[:, number] / variance
        known = [
            costs(theta + np.outer(np.sqrt(variance) * node - theta[:, number], along), paid)
            for node in nodes
        ]
        worth = _worth(known, weights / weights.sum(), now)
        found.append(Information(_told(name), _measure(name), worth))
    for part in stakes.parts:
        known = [costs(theta, paid - shifts[part] + _shift(stakes, part, node)) for node in even]
        worth = _worth(known, even_weights / even_weights.sum(), now)
        found.append(Information(f"the price of {part}", f"get a firm quote for {part}", worth))
    worthy = [one for one in found if one.worth > WORTH]
    worthy.sort(key=lambda one: -one.worth)
    return regret, tuple(wins.tolist()), tuple(worthy)


def _shift(stakes: _Stakes, part: str, at: FloatArray | float) -> FloatArray:
    """What prices move by where a part's is at places from its low to its high end."""
    low, typical, high = stakes.parts[part].T
    place = np.asarray(at)[..., None]
    return np.asarray(np.where(place < 0, typical - low, high - typical) * place)


def _worth(known: Sequence[FloatArray], weights: FloatArray, now: float) -> float:
    """Share of the cost that is saved where the choice may follow what is known."""
    expected = np.array([each.mean(axis=0) for each in known])
    without = float((weights @ expected).min())
    return float(without - weights @ expected.min(axis=1)) / now


def _measure(parameter: str) -> str:
    name = parameter.partition(" of ")[0]
    return _MEASURED.get(name.partition(".")[0], "measure it")
