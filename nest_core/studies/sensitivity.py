"""What the choice of a design rests on: prices, predictions, hours, the mix of models.

Every contender's time is a product of powers of what is not known exactly, by its slopes at the
centre (`nest_core.studies.uncertainty`), times the model's error from run to run; its price is the
sum of its lines, each between its ends. One thing is moved at a time, from one end of what is known
to the other, and the choice made again, ties and all (`nest_core.studies.ranking`): that is
the tornado, and where the choice first changes is found by bisection.

What it would be worth to know one thing is what the goal is expected to cost less if the choice may
follow it: the expected value of partial perfect information (Howard 1966, "Information value
theory", IEEE Transactions on Systems Science and Cybernetics 2(1)), over choosing what is expected
to cost least. That of a price is the same for a firm quote. Prices are as likely below as above the
typical one, evenly on either side.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.documents.units import percent
from nest_core.hardware.posterior import WIDTH
from nest_core.network import FloatArray
from nest_core.studies.design_choice import (
    DecisionModel,
    DesignChoice,
    decision_model,
    weigh,
)
from nest_core.studies.design_search import DesignCertificate, Designed
from nest_core.studies.engine import WorkerPool
from nest_core.studies.ranking import choose, first_change, ties_of
from nest_core.studies.study import Study
from nest_core.studies.uncertainty import how_measured, parameter_in_words

__all__ = [
    "DesignAnswer",
    "Information",
    "Sensitivity",
    "Swing",
    "choose_design",
    "information",
    "sensitivity",
]

DRAWS = 2000
QUADRATURE = 9
"""Values of what is known, for each of which the rest is drawn."""
WORTH = 1e-4
"""Of the goal's cost: what is worth less is noise of the draws."""


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


def information(
    model: DecisionModel, seed: int
) -> tuple[float, tuple[float, ...], tuple[Information, ...]]:
    """Regret of choosing now, how often each is best, and what it is worth to know one thing."""
    rng = np.random.default_rng(seed)
    theta = rng.multivariate_normal(
        np.zeros(len(model.parameters)), model.covariance, DRAWS, method="eigh"
    )
    errors = np.stack(
        [
            rng.multivariate_normal(np.zeros(len(model.names)), covariance, DRAWS, method="eigh")
            for covariance in model.run_covariance
        ],
        axis=2,
    )
    places = {part: rng.uniform(-1.0, 1.0, DRAWS) for part in model.part_usd}
    shifts = {part: model.shift_usd(part, at) for part, at in places.items()}
    paid = model.price_usd + sum(shifts.values(), np.zeros((DRAWS, len(model.names))))

    def costs(moved: FloatArray, price: FloatArray) -> FloatArray:
        logs = np.einsum("nmp,dp->dnm", model.slopes, moved) + errors
        return model.cost((model.seconds_per_token * np.exp(logs)) @ model.weights, price)

    everything = costs(theta, paid)
    now = float(everything.mean(axis=0).min())
    regret = 1.0 - float(everything.min(axis=1).mean()) / now
    wins = np.bincount(everything.argmin(axis=1), minlength=len(model.names)) / DRAWS
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    even, even_weights = np.polynomial.legendre.leggauss(QUADRATURE)
    rows = []
    for number, (name, device) in enumerate(model.parameters):
        variance = model.covariance[number, number]
        if variance == 0.0 or not model.slopes[:, :, number].any():
            continue
        along = model.covariance[:, number] / variance
        outcomes = [
            costs(theta + np.outer(np.sqrt(variance) * node - theta[:, number], along), paid)
            for node in nodes
        ]
        worth = _worth(outcomes, weights / weights.sum(), now)
        rows.append(Information(parameter_in_words(name, device), how_measured(name), worth))
    for part in model.part_usd:
        outcomes = [
            costs(theta, paid - shifts[part] + model.shift_usd(part, node)) for node in even
        ]
        worth = _worth(outcomes, even_weights / even_weights.sum(), now)
        rows.append(Information(f"the price of {part}", f"get a firm quote for {part}", worth))
    rows = sorted((row for row in rows if row.worth > WORTH), key=lambda row: -row.worth)
    return regret, tuple(wins.tolist()), tuple(rows)


def _worth(outcomes: Sequence[FloatArray], weights: FloatArray, now: float) -> float:
    """Return the share of the cost that is saved where the choice may follow what is known."""
    expected = np.array([costs.mean(axis=0) for costs in outcomes])
    return float((weights @ expected).min() - weights @ expected.min(axis=1)) / now


LEAST_HOURS = 0.05
"""The least share of its hours that a cluster is taken to train the study's models."""


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
        lines = [swing.changes for swing in self.swings if swing.changes] or [
            "Nothing that is not known exactly, moved alone to its ends, changes the choice."
        ]
        best = self.information[0] if self.information else None
        advice = (
            f"To know more before choosing, {best.measure}: it tells {best.name}, and is expected "
            f"to save {percent(best.worth)}."
            if best
            else f"No single measurement or quote is expected to save more than {percent(WORTH)}."
        )
        return *lines, advice


@dataclass(frozen=True, slots=True)
class _Factor:
    """What can be moved: from ``low`` to ``high`` about ``centre``, and what that is in words.

    ``shifts`` is what whole bills move by, and ``log_sd`` the widths of ties in costs.
    """

    name: str
    low: float
    centre: float
    high: float
    costs: Callable[[float], FloatArray]
    shifts: Callable[[float], FloatArray]
    log_sd: Callable[[float], FloatArray]
    words: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class DesignAnswer:
    """What a design study comes to.

    Parameters
    ----------
    searched : Designed
        With the certificate.
    choice : DesignChoice
    sensitivity : Sensitivity or None
        What the choice rests on; None where nothing was planned.
    """

    searched: Designed
    choice: DesignChoice
    sensitivity: Sensitivity | None

    @property
    def certificate(self) -> DesignCertificate:
        """Return how the set is known."""
        return self.searched.certificate


def choose_design(
    study: Study, searched: Designed, pool: WorkerPool | None = None, seed: int = 0
) -> DesignAnswer:
    """Put the designs that no other beats in order, and say what the choice rests on."""
    choice = weigh(study, searched, pool)
    rests_on = sensitivity(study, choice, seed) if choice.contenders else None
    return DesignAnswer(searched, choice, rests_on)


def sensitivity(study: Study, choice: DesignChoice, seed: int = 0) -> Sensitivity:
    """Return the tornado of a choice, when it changes, and what would be worth knowing."""
    model = decision_model(study, choice)
    swings = [
        swing
        for factor in _factors(model)
        if (swing := _swing(model, factor)).changes or swing.low or swing.high
    ]
    swings.sort(key=lambda one: -max(abs(one.low), abs(one.high)))
    return Sensitivity(model.names[0], tuple(swings), *information(model, seed))


def _factors(model: DecisionModel) -> Iterator[_Factor]:
    """Yield all that can be moved."""
    centre, unmoved = model.times(), np.zeros(len(model.names))

    def price_of(part: str) -> _Factor:
        typical = model.part_usd[part][0, 1]

        def words(at: float) -> str:
            paid = typical + model.shift_usd(part, at)[0]
            return f"the price of {part} is {_times(paid / typical)} the typical one"

        return _Factor(
            f"price of {part}",
            -1.0,
            0.0,
            1.0,
            lambda at: model.cost(centre, model.price_usd + model.shift_usd(part, at)),
            lambda at: model.shift_usd(part, at) * model.is_priced,
            lambda _: model.log_sd,
            words,
        )

    def parameter_of(number: int) -> _Factor:
        sd = float(np.sqrt(model.covariance[number, number]))
        name = parameter_in_words(*model.parameters[number])

        def at_sd(at: float) -> FloatArray:
            theta = np.zeros(len(model.parameters))
            theta[number] = sd * at
            return model.cost(model.times(theta))

        return _Factor(
            name,
            -WIDTH,
            0.0,
            WIDTH,
            at_sd,
            lambda _: unmoved,
            lambda _: model.log_sd,
            lambda at: f"{name}: {_times(np.exp(sd * at))} what is predicted",
        )

    yield from (
        price_of(part)
        for part, ends in model.part_usd.items()
        if (ends[:, 0] < ends[:, 2]).any() and ends[0, 1] > 0
    )
    yield from (
        parameter_of(number)
        for number in range(len(model.parameters))
        if model.covariance[number, number] > 0 and model.slopes[:, :, number].any()
    )
    if model.goal == "tokens_per_usd":
        yield _Factor(
            "share of the hours for these models",
            LEAST_HOURS,
            1.0,  # what is not sold is nobody's, and changes no order
            1.0,
            lambda at: model.cost(centre, hours=at),
            lambda _: unmoved,
            model.cost_sd,
            lambda at: f"these models get {percent(at)} of the hours",
        )
    if len(model.models) > 1:
        yield from (_mixed(model, number) for number in range(len(model.models)))


def _times(ratio: float) -> str:
    """In two digits of what it differs from 1 by, at least.

    Examples
    --------
    >>> _times(1.351), _times(0.99984)
    ('1.35 times', '0.99984 times')
    """
    difference = abs(ratio - 1.0)
    digits = max(2, 1 - math.floor(math.log10(difference))) if difference else 2
    return f"{ratio:.{digits}f} times"


def _mixed(model: DecisionModel, number: int) -> _Factor:
    """Return a model's share of the tokens, the others in proportion."""
    present, name = float(model.weights[number]), model.models[number]

    def costs(at: float) -> FloatArray:
        weights = model.weights * (1.0 - at) / (1.0 - present)
        weights[number] = at
        return model.cost(model.times(weights=weights))

    return _Factor(
        f"share of {name}",
        0.0,
        present,
        1.0,
        costs,
        lambda _: np.zeros(len(model.names)),
        lambda _: model.log_sd,
        lambda at: f"{name} makes up {percent(at)} of the tokens",
    )


def _swing(model: DecisionModel, factor: _Factor) -> Swing:
    """Move one thing from end to end."""

    def chosen(at: float) -> int:
        pairs = zip(model.tie_orders, factor.shifts(at).tolist(), strict=True)
        orders = [order._replace(usd=order.usd + shift) for order, shift in pairs]
        return choose(factor.costs(at), factor.log_sd(at), orders)

    ends = factor.low, factor.high
    first = chosen(factor.centre)
    costs = factor.costs(factor.centre)
    centre, tied = costs[first], ties_of(costs, model.log_sd, first)
    low, high = (float(factor.costs(end)[first] / centre - 1.0) for end in ends)
    crossings = [
        crossing
        for end in ends
        if end != factor.centre
        and (crossing := first_change(chosen, first, factor.centre, end)) is not None
    ]
    sentences = [
        f"The choice changes to {model.names[other]}"
        + (", which ties with it," if other in tied else "")
        + f" where {factor.words(at)} or {'less' if at < factor.centre else 'more'}."
        for at, other in crossings
    ]
    low_choice, high_choice = (model.names[chosen(end)] for end in ends)
    return Swing(factor.name, low, high, low_choice, high_choice, " ".join(sentences))
