"""Fits a curve to measured collectives: robust, regularised, deterministic.

The parameters are the logarithms of a curve's figures, relative to a *prior* curve (NCCL's own
tuning constants for the pooled curve, the pooled curve for a family, the family's curve for a
pasted log). Minimised is::

    sum over rows     weight * soft_l1(log(predicted / measured) / SCALE)
  + sum over shifts   (shift / SPREAD[kind])^2

so that a handful of points moves what they determine and leaves the rest at the prior. Each
regime has one shift of its bases and one of its efficiencies that all collectives share, and a
narrower one per collective; a collective that was not measured moves with the others.

Weights: rows below 64 KiB count half. For a pooled curve every (family, collective) pair counts
the same, whatever its number of rows.

Host launch: some published runs start collectives one by one from one process, so that short
ones take as long as the host, not as long as the network (100 µs up to 4 MiB on eight devices).
That can only lengthen a time. The fit therefore gives every system a floor of its own,
``max(floor, curve)``, which is dropped afterwards: curves, and all errors reported, are those of
the collective alone.

The minimum over regimes (and the maximum with the floor) is smoothed by a power mean that
sharpens in three rounds. Figures are rounded to four digits, as presets store them.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import numpy.typing as npt

from nest_core.documents import InputError, require
from nest_core.hardware.collectives.curves import (
    IN_NETWORK_STEPS,
    Curve,
    FloatArray,
    Regime,
    between_bytes,
    sent_bytes,
    steps,
)
from nest_core.hardware.collectives.library import OWN, POOLED, Library
from nest_core.hardware.collectives.measurements import OPS, Measurement

__all__ = [
    "OwnFit",
    "Sample",
    "fit_curve",
    "fit_own",
    "fit_problem",
    "local_sample",
    "network_sample",
]

SMALL_BYTES = 65_536.0
SMALL_WEIGHT = 0.5
SCALE = 0.08
"""Relative error beyond which a row pulls linearly, not quadratically."""

SPREAD = {"base": 0.7, "base_op": 0.25, "step": 0.7, "rate": 0.3, "rate_op": 0.12, "own": 0.7}
"""Standard deviations of the shifts of logarithms that the prior expects."""

FLOOR_S = 20e-6
FLOOR_SPREAD = 1.0
ROUNDS = ((8.0, 4.0), (32.0, 12.0), (math.inf, 40.0))
"""Exponents of the power means over regimes and with the floor, round by round."""

EVALUATIONS = 60
"""Of the residuals, most per round."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A measurement reduced to what the fit needs; all rates at full link speed.

    Parameters
    ----------
    op : int
        Index into `OPS`.
    steps : int
    start_s : float
        Added to every regime: steps inside nodes, for a network.
    transfer_s : float
        Seconds of sending its bytes.
    own_block : float
        Factor of the curve's ``own_block``.
    least_transfer_s : float
        Seconds that another link needs for the same collective at the same time.
    in_network_s : float
        The same of in-network reduction; infinite where it is not open.
    size_bytes, seconds : float
    system, cell : str
        Rows of a system share a floor; cells weigh the same if asked.
    """

    op: int
    steps: int
    start_s: float
    transfer_s: float
    own_block: float
    least_transfer_s: float
    in_network_s: float
    size_bytes: float
    seconds: float
    system: str
    cell: str


def local_sample(row: Measurement, curve: Curve, bandwidth_Bps: float) -> Sample:
    """Return a measurement inside one node, with the facts of its family's curve."""
    share = curve.share(row.devices)
    sent = float(sent_bytes(row.op, row.devices, np.asarray(row.bytes)))
    reduces = row.in_network and curve.reduces_in_network(row.op, row.devices)
    multicast = row.bytes * (1 + 1 / row.devices) / bandwidth_Bps
    return Sample(
        op=OPS.index(row.op),
        steps=steps(row.op, row.devices)[0],
        start_s=0.0,
        transfer_s=sent / (bandwidth_Bps * share),
        own_block=share / (row.devices - 1),
        least_transfer_s=0.0,
        in_network_s=multicast if reduces else math.inf,
        size_bytes=row.bytes,
        seconds=row.seconds,
        system=f"{row.system}|{curve.name}",
        cell=f"{curve.name}|{row.op}",
    )


def network_sample(
    row: Measurement, kind: str, bandwidth_Bps: float, local: Curve, local_bandwidth_Bps: float
) -> Sample:
    """Return a measurement over several nodes; ``kind`` names its network."""
    start, per_byte = local.inside(row.op, row.devices, row.nodes, local_bandwidth_Bps)
    return Sample(
        op=OPS.index(row.op),
        steps=steps(row.op, row.devices, row.nodes)[1],
        start_s=start,
        transfer_s=between_bytes(row.op, row.devices, row.nodes) * row.bytes / bandwidth_Bps,
        own_block=1 / (row.devices - 1),
        least_transfer_s=per_byte * row.bytes,
        in_network_s=math.inf,
        size_bytes=row.bytes,
        seconds=row.seconds,
        system=f"{row.system}|{kind}",
        cell=f"{kind}|{row.op}",
    )


def fit_curve(samples: Sequence[Sample], prior: Curve, *, balanced: bool = False) -> Curve:
    """Return the prior moved towards the samples; its facts stay as they are.

    Parameters
    ----------
    samples : sequence of Sample
        At least one.
    prior : Curve
    balanced : bool
        Let every cell weigh the same.

    Raises
    ------
    InputError
        If there are no samples.
    """
    from scipy.optimize import least_squares  # slow to load, and few start to fit

    require(samples, "measurements", "must hold a row to fit", 0, "add measurements")
    model = _Model(samples, prior)
    weights = np.sqrt(_weights(samples, balanced))
    shifts = np.zeros(model.size)
    for over_regimes, with_floor in ROUNDS:

        def residuals(
            x: FloatArray, regime_power: float = over_regimes, floor_power: float = with_floor
        ) -> FloatArray:
            error = np.log(model.observed(x, regime_power, floor_power) / model.measured) / SCALE
            # The signed root of soft-l1: quadratic when small, linear when large.
            soft = np.copysign(np.sqrt(2 * (np.hypot(1, error) - 1)), error)
            return np.concatenate([weights * soft, x])

        shifts = least_squares(residuals, shifts, method="trf", max_nfev=EVALUATIONS).x
    return model.curve(shifts)


def _weights(samples: Sequence[Sample], balanced: bool) -> FloatArray:
    counts = Counter(sample.cell for sample in samples)
    share = len(samples) / len(counts)
    return np.array(
        [
            (share / counts[sample.cell] if balanced else 1.0)
            * (SMALL_WEIGHT if sample.size_bytes < SMALL_BYTES else 1.0)
            for sample in samples
        ]
    )


class _Model:
    """Predictions of all samples from one vector of standardised shifts."""

    def __init__(self, samples: Sequence[Sample], prior: Curve) -> None:
        self.prior = prior
        self.measured = _column(samples, "seconds")
        self.op = np.array([sample.op for sample in samples])
        self.steps, self.start = _column(samples, "steps"), _column(samples, "start_s")
        self.transfer, self.own_block = (
            _column(samples, "transfer_s"),
            _column(samples, "own_block"),
        )
        self.least = _column(samples, "least_transfer_s")
        self.multicast = _column(samples, "in_network_s")
        self.inner = np.array([regime.algorithm == "in_network" for regime in prior.regimes])
        names = sorted({sample.system for sample in samples})
        self.system = np.array([names.index(sample.system) for sample in samples])
        self.base = _table(prior, "base_s")
        self.rate = _table(prior, "efficiency")
        self.step = np.array([regime.step_s for regime in prior.regimes])
        regimes, ops = self.base.shape
        sizes = (regimes, regimes * ops, regimes, regimes, regimes * ops, ops, len(names))
        self.bounds = np.cumsum(sizes)
        self.size = int(self.bounds[-1])

    def _figures(
        self, x: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        base, base_op, step, rate, rate_op, block, floor = np.split(x, self.bounds[:-1])
        table = self.base.shape
        bases = SPREAD["base"] * base[:, None] + SPREAD["base_op"] * base_op.reshape(table)
        rates = SPREAD["rate"] * rate[:, None] + SPREAD["rate_op"] * rate_op.reshape(table)
        return (
            self.base * np.exp(bases),
            self.step * np.exp(SPREAD["step"] * step),
            self.rate * np.exp(rates),
            np.array(self.prior.own_block) * np.exp(SPREAD["own"] * block),
            FLOOR_S * np.exp(FLOOR_SPREAD * floor),
        )

    def observed(self, x: FloatArray, regime_power: float, floor_power: float) -> FloatArray:
        """Return seconds that the systems would report."""
        base, step, rate, block, floor = self._figures(x)
        count = np.where(self.inner[:, None], IN_NETWORK_STEPS, self.steps)
        alpha = base[:, self.op] + count * (self.prior.latency_s + step[:, None]) + self.start
        ring = self.transfer * (1 + block[self.op] * self.own_block)
        transfer = np.where(self.inner[:, None], self.multicast, ring)
        with np.errstate(divide="ignore"):
            seconds = alpha + np.maximum(transfer / rate[:, self.op], self.least)
        return _largest(_smallest(seconds, regime_power), floor[self.system], floor_power)

    def curve(self, x: FloatArray) -> Curve:
        """Return the fitted curve, in the digits that presets keep."""
        base, step, rate, block, _ = self._figures(x)
        regimes = tuple(
            Regime(
                old.name,
                old.algorithm,
                tuple(_rounded(value, 1e-6) for value in base[index]),
                _rounded(step[index], 1e-6),
                tuple(_rounded(value) for value in rate[index]),
            )
            for index, old in enumerate(self.prior.regimes)
        )
        return replace(
            self.prior, regimes=regimes, own_block=tuple(_rounded(value) for value in block)
        )


def _column(samples: Sequence[Sample], name: str) -> FloatArray:
    return np.array([getattr(sample, name) for sample in samples], dtype=np.float64)


def _table(curve: Curve, name: str) -> FloatArray:
    return np.array([getattr(regime, name) for regime in curve.regimes], dtype=np.float64)


def _smallest(seconds: FloatArray, power: float) -> FloatArray:
    least: FloatArray = seconds.min(axis=0)
    if math.isinf(power):
        return least
    total: FloatArray = np.sum((least / seconds) ** power, axis=0)
    return least * total ** (-1 / power)


def _largest(first: FloatArray, second: FloatArray, power: float) -> FloatArray:
    most = np.maximum(first, second)
    total: FloatArray = (first / most) ** power + (second / most) ** power
    return most * total ** (1 / power)


def _rounded(value: npt.ArrayLike, unit: float = 1.0) -> float:
    return float(f"{float(np.asarray(value)) / unit:.4g}") * unit


@dataclass(frozen=True, slots=True)
class OwnFit:
    """A curve fitted to a few rows.

    Parameters
    ----------
    curve : Curve
        Named ``own``.
    prior : str
        The shipped curve that it started from.
    rows : int
    before, after : float
        Median absolute relative errors of the shipped and of the fitted curve on all rows.
    """

    curve: Curve
    prior: str
    rows: int
    before: float
    after: float


def fit_own(
    rows: Sequence[Measurement], library: Library, bandwidth_Bps: float | None = None
) -> OwnFit:
    """Fit the curve of one node, or of the network if the rows span several.

    Parameters
    ----------
    rows : sequence of Measurement
        Of one accelerator and one number of nodes, as a log has them.
    library : Library
    bandwidth_Bps : float, optional
        Link rate of the accelerator, for one that no preset names.

    Raises
    ------
    InputError
        If a link rate is needed and unknown.
    """
    samples, prior, seconds = fit_problem(rows, library, bandwidth_Bps)
    fitted = replace(fit_curve(samples, prior), name=OWN)
    if rows[0].nodes == 1 and library.local(rows[0].accelerator) is None and bandwidth_Bps:
        fitted = replace(fitted, bandwidths=((_word(rows[0].accelerator), bandwidth_Bps),))
    before, after = (
        median(abs(seconds(curve, row) / row.seconds - 1) for row in rows)
        for curve in (prior, fitted)
    )
    return OwnFit(fitted, prior.name, len(rows), before, after)


def fit_problem(
    rows: Sequence[Measurement], library: Library, bandwidth_Bps: float | None = None
) -> tuple[list[Sample], Curve, Callable[[Curve, Measurement], float]]:
    """Return what a fit reads of the rows, where it starts, and the seconds of a row by a curve.

    Parameters and errors are those of `fit_own`.
    """
    first = rows[0]
    shipped = library.local(first.accelerator)
    require(
        shipped is not None or bandwidth_Bps is not None,
        "accelerator",
        "must be one whose link rate is known",
        first.accelerator,
        "give --link-rate in GB/s",
    )
    local, shipped_Bps = shipped or (library[POOLED["nvlink"]], 0.0)
    rate = shipped_Bps if bandwidth_Bps is None else bandwidth_Bps
    if first.nodes == 1:
        samples = [local_sample(row, local, rate) for row in rows]
        return (
            samples,
            local,
            lambda curve, row: float(curve.seconds(row.op, row.devices, row.bytes, rate)),
        )
    between = library.network(first.network, first.network_Bps)
    if between is None:
        raise InputError(
            "network",
            "must be one whose rate per device is known",
            first.network,
            "give --network-rate in GB/s",
        )
    prior, port = between
    samples = [network_sample(row, prior.name, port, local, rate) for row in rows]
    return (
        samples,
        prior,
        lambda curve, row: float(
            curve.seconds_between(row.op, row.devices, row.nodes, row.bytes, port, local, rate)
        ),
    )


def _word(accelerator: str) -> str:
    """Return the word of a name that tells accelerators apart: the first with a digit.

    Examples
    --------
    >>> _word("AMD MI300A APU")
    'MI300A'
    """
    return next(
        (word for word in re.findall(r"[A-Za-z0-9]+", accelerator) if re.search(r"\d", word)),
        accelerator,
    )
