"""How surely a plan's time is known: draws of what is not known exactly, and intervals.

What a scenario states is the centre. A draw moves parameters away from it: those of kernels as far
and as jointly as their posterior lets them (`nest_core.hardware.posterior`), those of the network
each by its published spread (`nest_core.hardware.network_spread`), whose share of the line rate
stands in for the posterior's, which knows no transports, but not for that of a person's own stack;
and memory, of which all plans of a draw hold as much more than predicted, for it is software that
errs (`nest_core.costs.head_room`).

What parameters make of a plan's time are its slopes at the centre. What no parameter explains is
the spread between sources, that is between clusters and between people who measure, and between the
runs of one. Two plans share parameters: what makes both slower says nothing of which is faster. Of
their ratio the variance is that of the difference of their slopes, a parameter of one name counted
once; of what the model errs by from run to run, less the more alike the plans are (`alikeness`),
nothing for one plan on two networks; and of what repeated runs differ by on either side, as in
`nest_core.studies.next_runs`. The spread between sources is no part of it, for one cluster measures
both. That is the paired interval.

Rates beside a reference on one cluster (`PairedRate`) follow: what both share cancels. A mix sums
such ratios, whose errors share the parameters of kernels and
network; what one model errs by from run to run says nothing of another's. The sum of lognormals is
taken for one with its mean and its variance (Fenton and Wilkinson): of one model that is exact, and
of several within a percentage point where each is known within some 10 %.

Names of parameters are those of a spread: figures of an accelerator's kernels, and ``kind.which``
of the network (`nest_core.hardware.network_spread`); `parameter_in_words` says what they are, and
`how_measured` how one would come to know them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import erf, exp, log, sqrt
from zlib import crc32

import numpy as np

from nest_core.costs import Interval, Plan, Problem, Report, Span, price, spread_where
from nest_core.costs.network_draw import routing_of, under
from nest_core.hardware import WIDTH, NetworkParameters, adjusted, known_of, load_spread
from nest_core.network import FloatArray, Network
from nest_core.scenario import ScenarioValues

__all__ = [
    "REPEATED_SD",
    "Draw",
    "PairedRate",
    "ParameterSpread",
    "Sureness",
    "alikeness",
    "how_measured",
    "interval_of",
    "paired_mix",
    "paired_rate",
    "paired_sd",
    "parameter_in_words",
    "slopes",
    "spread_of",
    "sureness_of",
]

_REACH = "network"
"""The posterior's parameter that the catalogue of networks replaces."""
REPEATED_SD = 0.015
"""Of the logarithm of a time: between repetitions of one run (docs/method.md, "Next runs")."""
ALIKE = 0.8
"""Correlation of the model's errors on plans that differ on one of `AXES`."""
AXES = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "zero", "schedule", "interleave")
STEP = 0.05
"""Of a factor's logarithm, between the two prices of a slope."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A state of the world.

    Parameters
    ----------
    kernels : tuple of (str, float)
        Factors on figures of the accelerator's family.
    network : NetworkParameters
    memory : float
        By how many standard deviations plans hold more than predicted.
    """

    kernels: tuple[tuple[str, float], ...]
    network: NetworkParameters
    memory: float = 0.0

    def problem(
        self, scenario: ScenarioValues, network: Network, recompute: Iterable[str] = ()
    ) -> Problem:
        """Return the arrays that a scenario's plans are priced from in it.

        A plan fits if it does so as surely as plans must, and in the draw as well.

        Parameters
        ----------
        network : Network
            The scenario's fabric, collapsed.
        recompute : iterable of str
            Recomputations beside those of the search space, as of a plan that is given.
        """
        moved = replace(scenario, accelerator=adjusted(scenario.accelerator, dict(self.kernels)))
        problem = moved.problem(recompute, network)
        return under(
            replace(problem, memory_spread=spread_where(problem.memory_spread, self.memory)),
            self.network,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ParameterSpread:
    """How surely the parameters of a scenario are known.

    Parameters
    ----------
    kernels : tuple of str
        Figures of the accelerator's family, known jointly.
    covariance : (kernels, kernels)
        Of the logarithms of their factors.
    network : tuple of (str, str, float)
        Fields of `NetworkParameters`, each with the name that networks share it under and the
        standard deviation of its logarithm.
    run_sd, source_sd : float
        Of the logarithm of a time: between the runs of one source, and between sources. What all
        plans on a cluster share says nothing of which is faster.
    """

    kernels: tuple[str, ...]
    covariance: FloatArray
    network: tuple[tuple[str, str, float], ...]
    run_sd: float
    source_sd: float

    @property
    def joint(self) -> FloatArray:
        """Covariance of all parameters, kernels first, (n, n)."""
        covariance = np.diag(np.square(self.sd))
        covariance[: len(self.kernels), : len(self.kernels)] = self.covariance
        return covariance

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of each parameter, kernels first, (n,)."""
        return np.concatenate(
            [np.sqrt(np.diag(self.covariance)), [sd for _, _, sd in self.network]]
        )

    def rows(self, count: int, seed: int) -> FloatArray:
        """Logarithms of factors, (count, n); of the same seed the first ones stay the same."""
        joint = np.random.default_rng(seed).multivariate_normal(
            np.zeros(len(self.kernels)), self.covariance, count, method="eigh"
        )
        network = [
            sd * np.random.default_rng((seed, crc32(name.encode()))).standard_normal(count)
            for _, name, sd in self.network
        ]
        return np.column_stack([joint, *network])

    def memory(self, count: int, seed: int) -> FloatArray:
        """`Draw.memory` of the same draws, (count,)."""
        return np.random.default_rng((seed, crc32(b"memory"))).standard_normal(count)

    def draws(self, count: int, seed: int) -> list[Draw]:
        """Return the first draws of a seed."""
        pairs = zip(self.rows(count, seed), self.memory(count, seed).tolist(), strict=True)
        return [replace(self.draw(row), memory=memory) for row, memory in pairs]

    def draw(self, row: FloatArray) -> Draw:
        """Return one row of `rows` as a draw, memory as predicted."""
        factors = np.exp(row).tolist()
        fields = [field for field, _, _ in self.network]
        return Draw(
            tuple(zip(self.kernels, factors, strict=False)),
            NetworkParameters(**dict(zip(fields, factors[len(self.kernels) :], strict=True))),
        )


def spread_of(scenario: ScenarioValues, problem: Problem) -> ParameterSpread:
    """Return what is known of a scenario's accelerator under its stack, and of its network.

    Parameters
    ----------
    problem : Problem
        The scenario's.
    """
    posterior, catalogue = known_of(scenario.accelerator, scenario.stack), load_spread()
    fits_network = bool(scenario.stack.covariance)
    places = [
        place for place, name in enumerate(posterior.parameters) if fits_network or name != _REACH
    ]
    transport, spreads = catalogue.of_curve(problem.software.between), dict(catalogue.spreads)
    names = {
        "incast": "incast",
        "uplinks": f"uplinks.{routing_of(problem.network)}",
        "reduction": "reduction",
        **{f"overlap_{traffic}": f"overlap.{traffic}" for traffic in ("tp", "pp", "dp")},
    }
    return ParameterSpread(
        tuple(posterior.parameters[place] for place in places),
        posterior.covariance[np.ix_(places, places)],
        (
            *(() if fits_network else (("reach", f"reach.{transport.name}", transport.spread),)),
            *((field, name, spreads[name]) for field, name in names.items()),
        ),
        posterior.experts_sd if scenario.model.experts > 1 else posterior.run_sd,
        posterior.source_sd,
    )


def slopes(
    scenario: ScenarioValues, network: Network, spread: ParameterSpread, reports: Sequence[Report]
) -> FloatArray:
    """Return how the logarithms of plans' times follow those of parameters, (plans, parameters).

    Parameters
    ----------
    network : Network
        The scenario's fabric, collapsed.
    reports : sequence of Report
        Plans priced at the centre; they are priced once more for every parameter.
    """
    before = np.log([report.iteration_s for report in reports])
    recompute = [name for report in reports for name in report.plan.recompute]
    result = np.zeros((len(reports), len(spread.sd)))
    for place in np.flatnonzero(spread.sd):
        moved = spread.draw(STEP * np.eye(len(spread.sd))[place]).problem(
            scenario, network, recompute
        )
        after = np.log([price(moved, report.plan).iteration_s for report in reports])
        result[:, place] = (after - before) / STEP
    return result


def alikeness(plans: Sequence[Plan]) -> FloatArray:
    """Return the correlation of the model's errors on plans, (plans, plans).

    `ALIKE` for every axis on which two differ, multiplied: 1 for plans that differ on none. The
    value is that of the grids of Megatron-LM on A100s over several nodes
    (``docs/method.md``, "How sure").
    """
    points = [plan.point for plan in plans]
    correlation = np.ones((len(plans), len(plans)))
    for axis in AXES:
        values = np.array([str(getattr(point, axis)) for point in points])
        correlation *= np.where(values[:, None] == values, 1.0, ALIKE)
    return correlation


@dataclass(frozen=True, slots=True, eq=False)
class Sureness:
    """How a plan's time follows what is not known exactly.

    Parameters
    ----------
    plan : Plan
    iteration_s : float
    spread : ParameterSpread
    along : (parameters,)
        Slopes of the time's logarithm along the logarithms of the spread's parameters.
    """

    plan: Plan
    iteration_s: float
    spread: ParameterSpread
    along: FloatArray

    @property
    def interval(self) -> Interval:
        """Where the time will lie."""
        spread = self.spread
        variance = self.along @ spread.joint @ self.along + spread.source_sd**2 + spread.run_sd**2
        return Interval(self.iteration_s, float(np.sqrt(variance)))

    @property
    def moves(self) -> dict[tuple[object, ...], float]:
        """How far a standard deviation of everything independent moves the time's logarithm.

        Kernels, which are known jointly, by the axes of their covariance: shared by all that are
        known alike, as of one accelerator under one stack. The network's parameters by name.
        """
        spread, count = self.spread, len(self.spread.kernels)
        variances, axes = np.linalg.eigh(spread.covariance)
        kernels = self.along[:count] @ (axes * np.sqrt(np.maximum(variances, 0.0)))
        content = spread.kernels, spread.covariance.tobytes()
        network = zip(spread.network, self.along[count:].tolist(), strict=True)
        return {
            **{(*content, axis): moved for axis, moved in enumerate(kernels.tolist())},
            **{(name,): slope * sd for (_, name, sd), slope in network},
        }


def sureness_of(scenario: ScenarioValues, problem: Problem, report: Report) -> Sureness:
    """How surely a feasible report of a scenario is known; one price per uncertain parameter."""
    spread = spread_of(scenario, problem)
    (along,) = slopes(scenario, problem.network, spread, (report,))
    return Sureness(report.plan, report.iteration_s, spread, along)


def interval_of(scenario: ScenarioValues, problem: Problem, report: Report) -> Interval:
    """Return the interval of a feasible report of a scenario.

    Parameters
    ----------
    scenario : ScenarioValues
    problem : Problem
        The scenario's.
    report : Report

    Notes
    -----
    One price per uncertain parameter.
    """
    return sureness_of(scenario, problem, report).interval


def paired_sd(first: Sureness | None, second: Sureness | None) -> float:
    """Return the standard deviation of the logarithm of the ratio of two plans' times.

    On one cluster; 0 where one has no plan. Kernels are shared where both know them alike, as of
    one accelerator under one stack.
    """
    if first is None or second is None:
        return 0.0
    mine, theirs = first.moves, second.moves
    shared = float(alikeness((first.plan, second.plan))[0, 1])
    first_sd, second_sd = first.spread.run_sd, second.spread.run_sd
    variance = (
        sum((mine.get(name, 0.0) - theirs.get(name, 0.0)) ** 2 for name in {**mine, **theirs})
        + first_sd**2
        + second_sd**2
        - 2 * shared * first_sd * second_sd
    )
    return float(np.sqrt(variance + 2 * REPEATED_SD**2))


@dataclass(frozen=True, slots=True)
class PairedRate:
    """A rate over the reference's, both on one cluster.

    Parameters
    ----------
    ratio : float
        As predicted: the median.
    sd : float
        Standard deviation of its logarithm; 0 for the reference itself.
    """

    ratio: float
    sd: float

    def around(self, rate: float) -> Span:
        """Return between which rates one lies in four cases of five, if this is its median."""
        width = exp(WIDTH * self.sd)
        return rate / width, rate * width

    @property
    def span(self) -> Span:
        """Between which differences it lies in four cases of five."""
        low, high = self.around(self.ratio)
        return low - 1, high - 1

    def chance_above(self, ratio: float) -> float:
        """Return the probability that it is more than so many times the reference."""
        off = log(self.ratio / ratio)
        return float(off > 0) if not self.sd else 0.5 * (1 + erf(off / self.sd / sqrt(2)))


def paired_rate(ratio: float, this: Sureness | None, reference: Sureness | None) -> PairedRate:
    """Return the ratio of two rates; of the reference to itself it is known."""
    return PairedRate(ratio, 0.0 if this is reference else paired_sd(this, reference))


def paired_mix(
    ratios: Sequence[float],
    weights: Sequence[float],
    pairs: Sequence[tuple[Sureness | None, Sureness | None]],
) -> PairedRate:
    """Return the weighted sum of the ratios of several models' rates.

    The sum of log-normals is taken as the log-normal of its mean and variance (Fenton 1960): a
    probability is right to 0.02.

    Parameters
    ----------
    ratios, weights : sequence of float
        Of the models; weights sum to 1.
    pairs : sequence of (Sureness, Sureness)
        Of every model's plan, and of its reference's.
    """
    alone = [paired_rate(*entry) for entry in zip(ratios, *zip(*pairs, strict=True), strict=True)]
    moves = [
        {name: a.moves.get(name, 0.0) - b.moves.get(name, 0.0) for name in (*a.moves, *b.moves)}
        if a and b
        else {}
        for a, b in pairs
    ]
    covariance = np.array(
        [[sum(f.get(n, 0.0) * m for n, m in g.items()) for g in moves] for f in moves]
    )
    np.fill_diagonal(covariance, [rate.sd**2 for rate in alone])
    means = np.array(weights) * ratios * np.exp(np.diag(covariance) / 2)
    variance = float(np.log1p(means @ np.expm1(covariance) @ means / means.sum() ** 2))
    return PairedRate(float(means.sum()) * exp(-variance / 2), sqrt(max(variance, 0.0)))


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


def parameter_in_words(name: str, device: str = "") -> str:
    """Return a parameter to be read; of kernels with their device.

    Examples
    --------
    >>> parameter_in_words("gemm_efficiency", "H100"), parameter_in_words("overlap.dp")
    ('what matrix products reach on H100', 'overlap of traffic with computation (dp)')
    """
    if device:
        return f"{_KERNELS.get(name, name)} on {device}"
    kind, _, which = name.partition(".")
    words = _NETWORK.get(kind, kind)
    return f"{words} ({which})" if which else words


def how_measured(name: str) -> str:
    """Return what to run to know a parameter.

    Examples
    --------
    >>> how_measured("reach.roce")
    'run nccl-tests between two nodes'
    """
    return _MEASURED[name.partition(".")[0]]
