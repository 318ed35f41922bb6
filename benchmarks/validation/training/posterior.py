r"""What measured runs say of kernels, links and software: a hierarchical model, fitted as a whole.

The logarithm of a measured time is that of its prediction, which depends on the logarithms
:math:`\theta` of factors on what kernels and links reach, plus what a source has in common, what a
cluster of it has, and what is a run's own:

    ln measured_i = ln predicted_i(theta) + u_source(i) + v_cluster(i) + e_i

``theta`` is a sum of effects with normal priors (`nest_core.hardware.posterior`): of a family of
accelerators, of a framework on it, of a stack on it. An effect exists where at least two sources
have runs of it: a stack or framework seen by one source only would be that source under another
name. ``u``, ``v`` and ``e`` are normal; runs far out count less (Student's t with
`FREEDOM` degrees of freedom, by reweighting).

Predictions are linearised at the centre (`slopes_of`) and the normal equations solved, a few
rounds (maximum a posteriori, Gauss-Newton); the covariance at the end is Laplace's. The spreads of
``u``, ``v`` and ``e`` maximise the marginal likelihood. A source left out is predicted from the
others by the same equations (`left_out`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from nest_core.calibration.training.machines import accelerator_of, machine_of
from nest_core.calibration.training.predict import knowledge_of, slopes_of
from nest_core.calibration.training.runs import MeasuredRow, Run
from nest_core.documents.errors import InputError
from nest_core.hardware.posterior import PARAMETERS, Effect, Posterior
from nest_core.hardware.stacks import load_stack

__all__ = [
    "Evidence",
    "Grouped",
    "LeftOut",
    "effects_of",
    "evidence",
    "grouped_without",
    "left_out",
    "posterior_toml",
    "refit",
    "source_name",
]

FloatArray = npt.NDArray[np.float64]

SPREADS: Mapping[str, tuple[float, float, float, float]] = {
    "gemm_efficiency": (0.0, 0.08, 0.10, 0.05),
    "memory_efficiency": (0.0, 0.15, 0.15, 0.0),
    "attention_efficiency": (0.0, 0.12, 0.0, 0.0),
    "biased_attention_efficiency": (0.0, 0.20, 0.0, 0.0),
    "host_s": (0.0, 0.2, 0.0, 0.0),
    "network": (0.15, 0.0, 0.0, 0.0),
}
"""Prior spread of the effects: of all, of a family, of a framework on it, of a stack on it.

Products: cuBLAS versions and clocks of one device differ by 5 to 10 %. Element-wise kernels: what
STREAM-like kernels and framework kernels reach of the bandwidth lies between 0.5 and 0.9. Fused
attention: its versions differ by 10 to 15 % on one device. Hosts: by a third. Networks between
nodes: NCCL's bus bandwidth on 400 Gb/s ports is published between 0.75 and 0.97 of the line rate.
"""

WEIGHTS = {"A": 1.0, "B": 1.5}
OTHER = 1.5
"""Spread of a run's own error by the table's mark of quality, relative; C is not fitted."""

FREEDOM = 4.0
ROUNDS = 4
MOST_ROWS = 30
"""A source counts as at most so many runs."""

USUAL = np.array([0.10, 0.04, 0.055, 0.20])
USUAL_SD = 0.1
"""Prior of the spreads of source, cluster, run and run with experts, and of their logarithms:
two builders of one machine differ by some per cent by themselves, two tables of one model by up
to ten."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A measured run: what it took beside what is predicted at a point, and the slope there.

    Parameters
    ----------
    run : Run
    measured, predicted : float
        Logarithms of seconds.
    slopes : array (len(PARAMETERS),)
        Of the predicted logarithm by that of each factor.
    at : array (len(PARAMETERS),)
        Logarithms of the factors at that point.
    """

    run: Run
    measured: float
    predicted: float
    slopes: FloatArray
    at: FloatArray

    @property
    def family(self) -> str:
        """Of its accelerator."""
        return accelerator_of(self.run.accelerator).family.name

    @property
    def framework(self) -> str:
        """Of its stack."""
        return load_stack(self.run.stack).framework

    @property
    def source(self) -> str:
        """Who published it."""
        return source_name(self.run.source)


def source_name(text: str) -> str:
    """The repository or paper behind a source, whatever its revision.

    Examples
    --------
    >>> source_name("mlcommons/training_results_v4.1 @b87b9e39 NVIDIA/results/eos")
    'mlcommons/training_results'
    >>> source_name("arXiv:2104.04473 (Narayanan SC21) Table 1; read as NVIDIA/Megatron-LM images")
    'arXiv:2104.04473'
    """
    found = re.match(r"arXiv:[\d.]+|[\w.-]+/[\w.-]+", text.strip(), re.I)
    return re.sub(r"_v\d+(\.\d+)*$", "", found[0]) if found else text.strip()


def evidence(row: MeasuredRow, posterior: Posterior) -> Evidence | None:
    """A row's time, prediction and slopes at the posterior's centre; None without either."""
    seconds = row.outcome.seconds
    if seconds is None:
        return None
    known = knowledge_of(row.run, posterior)
    try:
        here, slopes = slopes_of(row.run, known)
    except InputError:
        return None
    return Evidence(row.run, float(np.log(seconds)), here, slopes, known.centre)


def effects_of(found: Sequence[Evidence]) -> tuple[Effect, ...]:
    """The effects that the runs can tell apart."""
    sources: dict[tuple[str, str, str], set[str]] = {}
    for item in found:
        for place in (
            (item.family, "", ""),
            (item.family, item.framework, ""),
            (item.family, item.framework, item.run.stack),
        ):
            sources.setdefault(place, set()).add(item.source)
    effects = []
    for name, (of_all, of_family, of_framework, of_stack) in SPREADS.items():
        if of_all:
            effects.append(Effect(name, "", "", "", of_all))
        for (family, framework, stack), who in sorted(sources.items()):
            spread = of_stack if stack else of_framework if framework else of_family
            if spread and (not framework or len(who) > 1):
                effects.append(Effect(name, family, framework, stack, spread))
    return tuple(effects)


@dataclass(frozen=True, slots=True)
class _Source:
    """The runs of one source in the linear model.

    ``target`` is the measured logarithm less the predicted one, the latter moved to where all
    factors are one; ``own`` a run's own spread in units of `Spreads`, by quality and number.
    """

    items: tuple[Evidence, ...]
    design: FloatArray  # (runs, effects)
    target: FloatArray
    cluster: npt.NDArray[np.bool_]  # (runs, runs): of one cluster
    experts: npt.NDArray[np.bool_]
    own: FloatArray
    weight: FloatArray  # of every run, 1 for what is no outlier
    shared: float  # the same of what the source has in common

    def covariance(self, spreads: FloatArray) -> FloatArray:
        """Of what effects leave."""
        source, cluster, run, experts = spreads
        own = np.where(self.experts, experts, run) * self.own * self.weight
        common = (source * self.shared) ** 2 + (cluster * self.shared) ** 2 * self.cluster
        return np.asarray(common + np.diag(np.square(own)))

    def only(self, kept: Sequence[bool]) -> _Source:
        """The same with some of its runs."""
        rows = np.flatnonzero(kept)
        return replace(
            self,
            items=tuple(self.items[row] for row in rows),
            design=self.design[rows],
            target=self.target[rows],
            cluster=self.cluster[np.ix_(rows, rows)],
            experts=self.experts[rows],
            own=self.own[rows],
            weight=self.weight[rows],
        )


def _sources(found: Sequence[Evidence], effects: Sequence[Effect]) -> list[_Source]:
    index = {name: place for place, name in enumerate(PARAMETERS)}
    groups: dict[str, list[Evidence]] = {}
    for item in found:
        groups.setdefault(item.source, []).append(item)
    answer = []
    for items in groups.values():
        design = [
            [
                item.slopes[index[effect.parameter]]
                * effect.of(item.family, item.framework, item.run.stack)
                for effect in effects
            ]
            for item in items
        ]
        target = [item.measured - item.predicted + item.slopes @ item.at for item in items]
        clusters = np.array(_numbered([(item.family, item.run.inter_Bps) for item in items]))
        answer.append(
            _Source(
                tuple(items),
                np.array(design),
                np.array(target),
                clusters[:, None] == clusters,
                np.array([item.run.experts > 1 for item in items]),
                np.array([WEIGHTS.get(item.run.quality, OTHER) for item in items]),
                np.ones(len(items)),
                1.0,
            )
        )
    return answer


def _fitted(found: Sequence[Evidence]) -> list[Evidence]:
    """The runs that count: none of quality C, and every n-th of a source that has too many."""
    groups: dict[str, list[Evidence]] = {}
    for item in found:
        if item.run.quality != "C":
            groups.setdefault(item.source, []).append(item)
    return [item for items in groups.values() for item in items[:: -(-len(items) // MOST_ROWS)]]


def _numbered(names: Sequence[Hashable]) -> list[int]:
    known = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return [known[name] for name in names]


Sums = tuple[FloatArray, FloatArray, float, float]
"""Of a source: design' V^-1 design, design' V^-1 target, target' V^-1 target, ln |V|."""


def _sums(source: _Source, spreads: FloatArray) -> Sums:
    factor = cho_factor(source.covariance(spreads), lower=True)
    weighted = cho_solve(factor, np.column_stack([source.design, source.target]))
    both = source.design.T @ weighted
    return (
        both[:, :-1],
        both[:, -1],
        float(source.target @ weighted[:, -1]),
        2.0 * float(np.log(np.diag(factor[0])).sum()),
    )


def _solved(sums: Iterable[Sums], prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Effects and their covariance."""
    parts = list(sums)
    precision = sum((part[0] for part in parts), np.diag(prior**-2))
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    return covariance @ sum(part[1] for part in parts), covariance


def _spreads(sources: Sequence[_Source], prior: FloatArray) -> FloatArray:
    """Those of source, cluster, run and run with experts that make runs and `USUAL` likeliest."""

    def unlikely(logs: FloatArray) -> float:
        parts = [_sums(source, np.exp(logs)) for source in sources]
        inner = sum((part[0] for part in parts), np.diag(prior**-2))
        right = sum(part[1] for part in parts)
        factor = cho_factor(inner, lower=True)
        explained = float(right @ cho_solve(factor, right))
        spread = 2.0 * float(np.log(np.diag(factor[0])).sum())
        fit = sum(part[2] + part[3] for part in parts)
        usual = float(np.square((logs - np.log(USUAL)) / USUAL_SD).sum())
        return 0.5 * (fit + spread - explained + usual)

    found = minimize(unlikely, np.log(USUAL), method="L-BFGS-B", options={"maxiter": 20})
    return np.asarray(np.exp(found.x))


def _reweighted(source: _Source, spreads: FloatArray, values: FloatArray) -> _Source:
    """A source whose runs count as much as they agree with the others, and so itself."""
    covariance = source.covariance(spreads)
    pull = np.linalg.solve(covariance, source.target - source.design @ values)
    own = np.where(source.experts, spreads[3], spreads[2]) * source.own
    error = np.square(own * source.weight) * pull / own
    common = (spreads[0] * source.shared) ** 2 * float(pull.sum()) / spreads[0]
    return replace(
        source,
        weight=np.sqrt((FREEDOM + np.square(error)) / (FREEDOM + 1.0)),
        shared=float(np.sqrt((FREEDOM + common**2) / (FREEDOM + 1.0))),
    )


def _robust(sources: Sequence[_Source], prior: FloatArray) -> tuple[list[_Source], FloatArray]:
    """Weights and spreads that agree with one another."""
    weighted = list(sources)
    for _ in range(ROUNDS):
        spreads = _spreads(weighted, prior)
        values, _ = _solved((_sums(source, spreads) for source in weighted), prior)
        weighted = [_reweighted(source, spreads, values) for source in weighted]
    return weighted, spreads


def refit(found: Sequence[Evidence]) -> Posterior:
    """The posterior of runs whose slopes are known at one point.

    Parameters
    ----------
    found : sequence of Evidence
        Those of quality C are left out.
    """
    fitted = _fitted(found)
    effects = effects_of(fitted)
    prior = np.array([effect.prior_sd for effect in effects])
    sources, spreads = _robust(_sources(fitted, effects), prior)
    values, covariance = _solved((_sums(source, spreads) for source in sources), prior)
    return Posterior(
        effects,
        values,
        covariance,
        {name: of[3] for name, of in SPREADS.items()},
        {name: of[1] for name, of in SPREADS.items()},
        float(np.hypot(spreads[0], spreads[1])),
        float(spreads[2]),
        float(spreads[3]),
        _measured(found),
    )


def _measured(found: Sequence[Evidence]) -> tuple[tuple[str, str, int], ...]:
    """Runs of quality A over several nodes, by family and stack."""
    counts: dict[tuple[str, str], int] = {}
    for item in found:
        nodes = item.run.per_node or machine_of(item.run.accelerator).per_node
        if item.run.quality == "A" and item.run.devices > nodes:
            place = (item.family, item.run.stack)
            counts[place] = counts.get(place, 0) + 1
    return tuple((family, stack, count) for (family, stack), count in sorted(counts.items()))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run as others predict it.

    Parameters
    ----------
    run : Run
    measured, predicted, spread : float
        Logarithms of seconds, and the standard deviation of the predicted one.
    """

    run: Run
    measured: float
    predicted: float
    spread: float


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Runs of one source that were left out together, as the others predict them.

    Parameters
    ----------
    source : str
    items : tuple of Evidence
    off : array (n,)
        Measured logarithms less those predicted.
    covariance : array (n, n)
        Of ``off``: of the effects, what the source and each cluster of it share, and each run's
        own.
    """

    source: str
    items: tuple[Evidence, ...]
    off: FloatArray
    covariance: FloatArray


def grouped_without(
    found: Sequence[Evidence], place: Callable[[Evidence], Hashable] = lambda item: item.source
) -> list[Grouped]:
    """The runs of every place predicted without them; spreads and weights are those of all.

    Parameters
    ----------
    found : sequence of Evidence
    place : callable
        What is left out together: a source unless told otherwise.
    """
    fitted = _fitted(found)
    effects = effects_of(fitted)
    prior = np.array([effect.prior_sd for effect in effects])
    sources, spreads = _robust(_sources(fitted, effects), prior)
    every = [(source, _sums(source, spreads)) for source in sources]
    answers = []
    for here in dict.fromkeys(place(item) for item in found):
        sums = []
        for source, whole in every:
            others = [place(item) != here for item in source.items]
            if all(others):
                sums.append(whole)
            elif any(others):
                sums.append(_sums(source.only(others), spreads))
        values, covariance = _solved(sums, prior)
        for source in _sources([item for item in found if place(item) == here], effects):
            spread = source.design @ covariance @ source.design.T + source.covariance(spreads)
            off = source.target - source.design @ values
            answers.append(Grouped(source.items[0].source, source.items, off, spread))
    return answers


def left_out(
    found: Sequence[Evidence], place: Callable[[Evidence], Hashable] = lambda item: item.source
) -> list[LeftOut]:
    """Every run predicted without those of its place, as `grouped_without` takes it."""
    return [
        LeftOut(item.run, item.measured, item.measured - off, float(np.sqrt(variance)))
        for group in grouped_without(found, place)
        for item, off, variance in zip(
            group.items, group.off.tolist(), np.diag(group.covariance), strict=True
        )
    ]


def posterior_toml(found: Posterior, source: str) -> str:
    """The text of ``presets/validation/posterior.toml``."""
    lines = [
        "# Written by `python -m benchmarks.validation regenerate posterior`; do not edit.",
        f'source = "{source}"',
        f"source_sd = {found.source_sd:.4f}",
        f"run_sd = {found.run_sd:.4f}",
        f"experts_sd = {found.experts_sd:.4f}",
        "covariance = [",
        *("    [" + ", ".join(f"{x:.3g}" for x in row) + "]," for row in found.covariance),
        "]",
        "",
        "[stack_sd]",
        *(f"{name} = {spread}" for name, spread in found.stack_sd.items() if spread),
        "",
        "[family_sd]",
        *(f"{name} = {spread}" for name, spread in found.family_sd.items() if spread),
    ]
    for effect, value in zip(found.effects, found.values, strict=True):
        whose = (
            ("family", effect.family),
            ("framework", effect.framework),
            ("stack", effect.stack),
        )
        lines += [
            "",
            "[[effect]]",
            f'parameter = "{effect.parameter}"',
            *(f'{key} = "{name}"' for key, name in whose if name),
            f"value = {value:.4f}",
            f"prior_sd = {effect.prior_sd}",
        ]
    for family, stack, count in found.measured:
        lines += [
            "",
            "[[measured]]",
            f'family = "{family}"',
            f'stack = "{stack}"',
            f"rows = {count}",
        ]
    return "\n".join(lines) + "\n"
