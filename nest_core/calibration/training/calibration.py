"""A software stack's parameters for a person's own cluster, from few runs.

What is known of the parameters of the runs' accelerator under their stack
(`nest_core.hardware.posterior`) is the prior: factors ``x`` on them, as logarithms around its
centre, with its covariance ``P``. One more, on whole runs, is as wide as sources are apart, since a
person's cluster is a source. With ``e(x) = ln(predicted / measured)`` and the spread ``s`` between
the runs of a source the most probable point minimises

    sum over runs of (e / s)^2 + x' P^-1 x

by Gauss-Newton; derivatives are differences of `predict` with one factor moved. In terms of runs,
with the Jacobian ``J`` and ``S = J P J' + diag(s^2)``, a step goes to ``P J' S^-1 (J x - e)``,
which holds where ``P`` knows some parameter exactly. There the posterior is taken for normal
(Laplace): its covariance is ``P - P J' S^-1 J P``, and the error of a run that was left out is
``e / (1 - h)`` with ``h`` the run's own share of its fitted value, the identity of ridge
regression. One run alone has nothing to be left out of.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.predict import predict
from nest_core.calibration.training.runs import MeasuredRow, Run, Unread
from nest_core.documents import InputError, percent, plural, require, signed_percent, toml_document
from nest_core.hardware import (
    BOUNDED,
    PARAMETERS,
    RUN_FACTOR,
    WIDTH,
    Curve,
    Knowledge,
    Stack,
    curve_document,
    known_of,
    load_stack,
    under,
)
from nest_core.network import FloatArray

__all__ = [
    "Calibrated",
    "Calibration",
    "FittedParameter",
    "calibrated",
    "stack_document",
    "stack_toml",
]

FAR = 5.0
"""A run that takes so many times what is predicted, or so little, was read wrongly."""

MAX_RUNS = 1_000

_MOVE = 0.05
_ROUNDS = 8
_SETTLED = 1e-4


@dataclass(frozen=True, slots=True)
class FittedParameter:
    """A parameter before and after.

    Parameters
    ----------
    name : str
    prior, value : float
    interval : (float, float)
        Holds 80 %.
    """

    name: str
    prior: float
    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A run and its three predictions, in seconds.

    Parameters
    ----------
    row : MeasuredRow
    before, after : float
    left_out : float or None
        With parameters from all others; None if there are none.
    before_spread, after_spread : float
        Standard deviations of the logarithms of ``before``, for a cluster not seen yet, and of
        ``after``, for another run of this one.
    """

    row: MeasuredRow
    before: float
    after: float
    left_out: float | None
    before_spread: float
    after_spread: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What runs say about a stack on a family of accelerators.

    Parameters
    ----------
    family : str
    stack : str
        That most of the runs are of.
    parameters : tuple of FittedParameter
        Figures of the family under the stack, then factors on the network between nodes and on
        whole runs.
    covariance : array (n, n)
        Of the logarithms of factors on `PARAMETERS` and `RUN_FACTOR`.
    curves : tuple of Curve
        As given.
    runs : tuple of Calibrated
    skipped : tuple of Unread
    """

    family: str
    stack: str
    parameters: tuple[FittedParameter, ...]
    covariance: FloatArray
    curves: tuple[Curve, ...]
    runs: tuple[Calibrated, ...]
    skipped: tuple[Unread, ...]


def calibrated(rows: Sequence[MeasuredRow], curves: tuple[Curve, ...] = ()) -> Calibration:
    """Return parameters of the runs' accelerator family, given the runs.

    Parameters
    ----------
    rows : sequence of MeasuredRow
        Of accelerators of one family. Those that were not measured, cannot be predicted or are
        far from any prediction are skipped.
    curves : tuple of Curve
        Measured on the runs' cluster, in place of the shipped ones.

    Raises
    ------
    InputError
        If no run is left, or they are of several families.
    """
    require(len(rows) <= MAX_RUNS, "runs", f"must be at most {MAX_RUNS:,}", len(rows), "drop some")
    usable, skipped = _usable(rows, curves)
    reason = f" ({skipped[0].id}: {skipped[0].reason.rstrip('.')})" if skipped else ""
    require(
        usable,
        "runs",
        f"must hold one that can be predicted{reason}",
        "without one",
        "correct them",
    )
    runs = [row.run for row, _ in usable]
    families = {accelerator_of(run.accelerator).family.name for run in runs}
    require(
        len(families) <= 1,
        "runs",
        "must be of one family of accelerators",
        ", ".join(sorted(families)),
        "calibrate each alone",
    )
    measured = np.log([row.outcome.seconds or 1.0 for row, _ in usable])
    stack = Counter(run.stack for run in runs).most_common(1)[0][0]
    prior = _prior(runs[0], stack, curves)

    def predicted(at: FloatArray) -> FloatArray:
        """Return logarithms of seconds with factors, as logarithms, away from each run's centre."""
        times = [
            predict(run, factors=_factors(run, at, curves), curves=curves).iteration_s
            for run in runs
        ]
        return np.asarray(np.log(times), dtype=np.float64)

    noise = np.array([prior.experts_sd if run.experts > 1 else prior.run_sd for run in runs])
    at, errors, start, jacobian = _most_probable(predicted, measured, prior.covariance, noise)
    among = jacobian @ prior.covariance @ jacobian.T + np.diag(noise**2)
    gain = np.linalg.solve(among, jacobian @ prior.covariance).T  # (parameters, runs)
    left_out = errors / (1.0 - np.minimum(np.einsum("ij,ji->i", jacobian, gain), 1.0 - 1e-9))
    covariance = prior.covariance - gain @ jacobian @ prior.covariance
    return Calibration(
        next(iter(families)),
        stack,
        tuple(
            _parameters(
                runs[0],
                replace(load_stack(stack), curves=curves),
                at,
                np.sqrt(np.maximum(np.diag(covariance), 0.0)),
            )
        ),
        (covariance + covariance.T) / 2.0,
        curves,
        tuple(
            Calibrated(
                row,
                seconds,
                float(np.exp(measured[i] + errors[i])),
                float(np.exp(measured[i] + left_out[i])) if len(usable) > 1 else None,
                _spread(start[i], prior.covariance, noise[i]),
                _spread(jacobian[i], covariance, noise[i]),
            )
            for i, (row, seconds) in enumerate(usable)
        ),
        tuple(skipped),
    )


def _prior(run: Run, stack: str, curves: tuple[Curve, ...]) -> Knowledge:
    """Return what is known of a stack on a run's accelerator, and of a cluster as a source."""
    knowledge = known_of(accelerator_of(run.accelerator), replace(load_stack(stack), curves=curves))
    size = len(knowledge.parameters)
    covariance = np.zeros((size + 1, size + 1))
    covariance[:size, :size] = knowledge.covariance
    covariance[size, size] = knowledge.source_sd**2
    return replace(
        knowledge,
        parameters=(*knowledge.parameters, RUN_FACTOR),
        centre=np.append(knowledge.centre, 0.0),
        covariance=covariance,
    )


def _factors(run: Run, at: FloatArray, curves: tuple[Curve, ...]) -> dict[str, float]:
    """Return factors on the parameters of a run under its own stack."""
    knowledge = _prior(run, run.stack, curves)
    return knowledge.factors(knowledge.centre + at)


def _parameters(
    run: Run, stack: Stack, at: FloatArray, sd: FloatArray
) -> Iterator[FittedParameter]:
    """Yield figures under a stack, moved by logarithms; a host that issues nothing has none."""
    shipped = under(accelerator_of(run.accelerator), stack, run.precision)
    for name, step, reach in zip((*PARAMETERS, RUN_FACTOR), at, WIDTH * sd, strict=True):
        before = shipped.network_reach if name == "network" else getattr(shipped.family, name, 1.0)
        if before > 0.0:
            bound = 1.0 if name in BOUNDED else math.inf
            low, value, high = (
                min(bound, before * math.exp(step + side * reach)) for side in (-1, 0, 1)
            )
            yield FittedParameter(name, before, value, (low, high))


def _usable(
    rows: Sequence[MeasuredRow], curves: tuple[Curve, ...]
) -> tuple[list[tuple[MeasuredRow, float]], list[Unread]]:
    """Return measured rows with what is predicted for them, and the others with the reason."""
    usable: list[tuple[MeasuredRow, float]] = []
    skipped: list[Unread] = []
    for row in rows:
        reason, seconds = "states no time of an iteration", 0.0
        if row.outcome.seconds is not None:
            try:
                seconds = predict(
                    row.run, accelerator_of(row.run.accelerator), curves=curves
                ).iteration_s
                reason = _far(seconds, row.outcome.seconds)
            except InputError as error:
                reason = str(error)
        if reason:
            skipped.append(Unread(row.run.id, reason))
        else:
            usable.append((row, seconds))
    return usable, skipped


def _far(predicted: float, measured: float) -> str:
    return (
        ""
        if math.isfinite(predicted) and measured / FAR < predicted < measured * FAR
        else f"takes {measured:.3g} s where {predicted:.3g} s are predicted, more than a factor of "
        f"{FAR:g} apart: its unit, its accelerator or its plan is another than it says"
    )


def _most_probable(
    predicted: Callable[[FloatArray], FloatArray],
    measured: FloatArray,
    prior: FloatArray,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the point, errors there, and Jacobians at the start and there.

    Steps that make it worse are halved.
    A point is ``prior @ pull``, so that ``pull @ point`` is what the prior holds against it.
    """
    at = pull = np.zeros(len(prior))
    errors = predicted(at) - measured
    cost = float(np.sum((errors / noise) ** 2))
    start = jacobian = _jacobian(predicted, at, errors + measured)
    for _ in range(_ROUNDS):
        among = jacobian @ prior @ jacobian.T + np.diag(noise**2)
        step = jacobian.T @ np.linalg.solve(among, jacobian @ at - errors) - pull
        if float(np.abs(prior @ step).max()) < _SETTLED:
            break
        for part in (1.0, 0.5, 0.25, 0.125):
            point = prior @ (pull + part * step)
            trial = predicted(point) - measured
            value = float(np.sum((trial / noise) ** 2) + point @ (pull + part * step))
            if value < cost:
                break
        else:
            break
        at, pull, errors, cost = point, pull + part * step, trial, value
        jacobian = _jacobian(predicted, at, errors + measured)
    return at, errors, start, jacobian


def _spread(slopes: FloatArray, covariance: FloatArray, noise: float) -> float:
    """Return standard deviation of the logarithm of a run's time."""
    return float(np.sqrt(slopes @ covariance @ slopes + noise**2))


def _jacobian(
    predicted: Callable[[FloatArray], FloatArray], at: FloatArray, here: FloatArray
) -> FloatArray:
    """Return derivatives of the logarithms of predicted times, (runs, parameters)."""
    return np.column_stack(
        [(here - predicted(at - step)) / _MOVE for step in _MOVE * np.eye(len(at))]
    )


def stack_toml(calibration: Calibration, name: str) -> str:
    """Return the stack of most of the runs as a file of one's own, which scenarios may name.

    Parameters
    ----------
    calibration : Calibration
    name : str
        What the person calls the stack.
    """
    return toml_document(stack_document(calibration, name))


def stack_document(calibration: Calibration, name: str) -> dict[str, Any]:
    """Return the same as the table that the file holds."""
    runs = [run.row.run for run in calibration.runs]
    errors = [run.after / (run.row.outcome.seconds or 1.0) - 1 for run in calibration.runs]
    ids = ", ".join(run.id for run in runs[:20]) + (", …" if len(runs) > 20 else "")
    base = load_stack(calibration.stack)
    counted = plural(len(runs), "own run")
    source = (
        f"{name}: {base.name} fitted to {counted} ({ids[:1000]}), mean error "
        f"{percent(sum(map(abs, errors)) / len(runs))}, "
        f"bias {signed_percent(sum(errors) / len(runs))}"
    )
    return {
        "framework": base.framework,
        "year": base.year,
        "release": base.release,
        "families": [calibration.family],
        "model_parallel": base.model_parallel,
        "attention": base.attention,
        "fused": base.fused,
        "joined": base.joined,
        "checkpoint": base.checkpoint,
        "launch": base.launch,
        "eager_experts": base.eager_experts,
        "scaled_activations": base.scaled_activations,
        "fp8": base.fp8,
        "deepspeed_zero": base.memory.deepspeed_zero,
        "eager_loss": base.memory.eager_loss,
        "accumulation": base.accumulation,
        "copies": list(base.copies),
        "sharded_gradients": base.sharded_gradients,
        "source": source,
        "covariance": [[float(f"{x:.4g}") for x in row] for row in calibration.covariance],
        "overlap": {traffic: list(precisions) for traffic, precisions in base.overlap},
        **(
            {"curves": [curve_document(curve) for curve in calibration.curves]}
            if calibration.curves
            else {}
        ),
        "parameters": {
            parameter.name: float(f"{parameter.value:.5g}") for parameter in calibration.parameters
        },
    }
