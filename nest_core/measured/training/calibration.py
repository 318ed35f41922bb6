"""A family's parameters for a person's own cluster and software, from few runs.

What moves are the parameters of `PRIORS`, as logarithms around what the family ships with, and one
factor on whole runs. With ``e(x) = ln(predicted / measured)`` the most probable point minimises

    sum over runs of (e / NOISE)^2 + sum over parameters of (x / spread)^2

by Gauss-Newton; derivatives are differences of `predict` under a family with one parameter moved.
There the posterior is taken for normal (Laplace): with the Jacobian ``J`` its covariance is
``(J'J / NOISE^2 + spread^-2)^-1``, and the error of a run that was left out is ``e / (1 - h)``
with ``h`` the run's own share ``J C J' / NOISE^2`` of its fitted value, the identity of ridge
regression. One run alone has nothing to be left out of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nest_core.costs.software import Software, software_of
from nest_core.errors import InputError
from nest_core.hardware import Accelerator, Family
from nest_core.hardware.stacks import load_stack, under
from nest_core.measured.training.machines import accelerator_of
from nest_core.measured.training.predict import predict
from nest_core.measured.training.runs import Row, Unread

__all__ = ["FACTOR", "PRIORS", "Calibrated", "Calibration", "Parameter", "calibrated"]

PRIORS: Mapping[str, float] = {
    "gemm_efficiency": 0.10,
    "attention_efficiency": 0.15,
    "memory_efficiency": 0.15,
    "host_s": 0.50,
}
"""Spread of the logarithm by parameter of `Family`: how far clusters and releases of software are
apart that were measured (docs/validation.md); hosts differ most."""

SHARES = ("memory_efficiency", "attention_efficiency")
"""Of the memory bandwidth: at most one."""

FACTOR = "run_factor"
FACTOR_SPREAD = 0.05
"""Of the logarithm of the factor on whole runs: what no other parameter explains."""

NOISE = 0.03
"""Relative error of a run beside its own cluster's others: two builders of one design differ by
0.8 to 2.6 % by themselves."""

FAR = 5.0
"""A run that takes so many times what is predicted, or so little, was read wrongly."""

MOST_RUNS = 1_000

_MOVE = 0.05
_ROUNDS = 8
_Z80 = 1.2816
"""Standard deviations to either side that hold 80 % of a normal distribution."""

Array = npt.NDArray[np.float64]
Library = Callable[[Accelerator], Software]


@dataclass(frozen=True, slots=True)
class Parameter:
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
    row : Row
    before, after : float
    left_out : float or None
        With parameters from all others; None if there are none.
    """

    row: Row
    before: float
    after: float
    left_out: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What runs say about a family.

    Parameters
    ----------
    family : Family
        The runs' own, moved; stacks still adjust it (`nest_core.hardware.stacks.under`).
    stack : str
        That most of the runs are of.
    parameters : tuple of Parameter
        Of the family under the stack, then `FACTOR`.
    runs : tuple of Calibrated
    skipped : tuple of Unread
    """

    family: Family
    stack: str
    parameters: tuple[Parameter, ...]
    runs: tuple[Calibrated, ...]
    skipped: tuple[Unread, ...]

    @property
    def factor(self) -> float:
        """What every predicted time is multiplied with."""
        return self.parameters[-1].value


def calibrated(rows: Sequence[Row], library: Library = software_of) -> Calibration:
    """Parameters of the runs' accelerator family, given the runs.

    Parameters
    ----------
    rows : sequence of Row
        Of accelerators of one family. Those that were not measured, cannot be predicted or are
        far from any prediction are skipped.
    library : callable (Accelerator) -> Software
        The communication library on an accelerator; as shipped, or one's own measured.

    Raises
    ------
    InputError
        If no run is left, or they are of several families.
    """
    if len(rows) > MOST_RUNS:
        raise InputError("runs", f"must be at most {MOST_RUNS:,}", len(rows), "drop some")
    kept, skipped = _usable(rows, library)
    if not kept:
        reason = f" ({skipped[0].id}: {skipped[0].reason.rstrip('.')})" if skipped else ""
        raise InputError(
            "runs", f"must hold one that can be predicted{reason}", "without one", "correct them"
        )
    runs = [row.run for row, _ in kept]
    families = {accelerator_of(run.accelerator).family.name for run in runs}
    if len(families) > 1:
        raise InputError(
            "runs",
            "must be of one family of accelerators",
            ", ".join(sorted(families)),
            "calibrate each alone",
        )
    measured = np.log([row.outcome.seconds or 1.0 for row, _ in kept])
    start = accelerator_of(runs[0].accelerator).family
    stack = Counter(run.stack for run in runs).most_common(1)[0][0]
    device = accelerator_of(runs[0].accelerator)
    shipped = under(device, load_stack(stack), runs[0].precision).family
    names = [name for name in PRIORS if getattr(start, name) > 0 and getattr(shipped, name) > 0]

    def predicted(at: Array) -> Array:
        """Logarithms of seconds, those of the factor included."""
        family = _moved(start, names, at)
        devices = (replace(accelerator_of(run.accelerator), family=family) for run in runs)
        times = [
            predict(run, device, library=library).iteration_s
            for run, device in zip(runs, devices, strict=True)
        ]
        return np.asarray(np.log(times) + at[-1], dtype=np.float64)

    spread = np.array([*(PRIORS[name] for name in names), FACTOR_SPREAD])
    before = np.log([seconds for _, seconds in kept])
    at, errors, jacobian = _most_probable(predicted, measured, before, spread)
    covariance = np.linalg.inv(jacobian.T @ jacobian / NOISE**2 + np.diag(spread**-2.0))
    own = np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian) / NOISE**2
    left = errors / (1.0 - np.minimum(own, 1.0 - 1e-9))
    reach = _Z80 * np.sqrt(np.diag(covariance))
    parameters = [
        _parameter(name, getattr(shipped, name), moved, wide)
        for name, moved, wide in zip(names, at, reach, strict=False)
    ]
    parameters.append(_parameter(FACTOR, 1.0, at[-1], reach[-1]))
    return Calibration(
        _moved(start, names, at),
        stack,
        tuple(parameters),
        tuple(
            Calibrated(
                row,
                seconds,
                float(np.exp(measured[i] + errors[i])),
                float(np.exp(measured[i] + left[i])) if len(kept) > 1 else None,
            )
            for i, (row, seconds) in enumerate(kept)
        ),
        tuple(skipped),
    )


def _parameter(name: str, shipped: float, moved: float, reach: float) -> Parameter:
    """A parameter that moved by a logarithm, known within ``reach`` to either side."""
    low, value, high = (
        _bounded(name, shipped * math.exp(moved + side * reach)) for side in (-1, 0, 1)
    )
    return Parameter(name, shipped, value, (low, high))


def _usable(rows: Sequence[Row], library: Library) -> tuple[list[tuple[Row, float]], list[Unread]]:
    """Measured rows with what is predicted for them, and the others with the reason."""
    kept: list[tuple[Row, float]] = []
    skipped: list[Unread] = []
    for row in rows:
        reason, seconds = "states no time of an iteration", 0.0
        if row.outcome.seconds is not None:
            try:
                device = accelerator_of(row.run.accelerator)
                seconds = predict(row.run, device, library=library).iteration_s
                reason = _far(seconds, row.outcome.seconds)
            except InputError as error:
                reason = str(error)
        if reason:
            skipped.append(Unread(row.run.id, reason))
        else:
            kept.append((row, seconds))
    return kept, skipped


def _far(predicted: float, measured: float) -> str:
    if math.isfinite(predicted) and measured / FAR < predicted < measured * FAR:
        return ""
    return (
        f"takes {measured:.3g} s where {predicted:.3g} s are predicted, more than a factor of "
        f"{FAR:g} apart: its unit, its accelerator or its plan is another than it says"
    )


def _most_probable(
    predicted: Callable[[Array], Array], measured: Array, before: Array, spread: Array
) -> tuple[Array, Array, Array]:
    """The point, errors and Jacobian there; steps that make it worse are halved."""
    at: Array = np.zeros(len(spread))
    errors = before - measured
    cost = float(np.sum((errors / NOISE) ** 2))
    jacobian = _jacobian(predicted, at, before)
    for _ in range(_ROUNDS):
        normal = jacobian.T @ jacobian / NOISE**2 + np.diag(spread**-2.0)
        step = np.linalg.solve(normal, -(jacobian.T @ errors / NOISE**2 + at / spread**2))
        if float(np.abs(step / spread).max()) < 1e-3:
            break
        for part in (1.0, 0.5, 0.25, 0.125):
            point = at + part * step
            found = predicted(point) - measured
            value = float(np.sum((found / NOISE) ** 2) + np.sum((point / spread) ** 2))
            if value < cost:
                break
        else:
            break
        at, errors, cost = point, found, value
        jacobian = _jacobian(predicted, at, errors + measured)
    return at, errors, jacobian


def _jacobian(predicted: Callable[[Array], Array], at: Array, here: Array) -> Array:
    """Derivatives of the logarithms of predicted times; those of the factor are one."""
    columns = []
    for index in range(len(at) - 1):
        moved = at.copy()
        moved[index] -= _MOVE
        columns.append((here - predicted(moved)) / _MOVE)
    return np.column_stack([*columns, np.ones(len(here))])


def _moved(start: Family, names: Sequence[str], at: Array) -> Family:
    """The family with parameters moved."""
    values = {
        name: float(getattr(start, name)) * math.exp(step)
        for name, step in zip(names, at[:-1], strict=True)
    }
    changed: Mapping[str, Any] = {name: _bounded(name, value) for name, value in values.items()}
    return replace(start, **changed)


def _bounded(name: str, value: float) -> float:
    return min(1.0, value) if name in SHARES else value
