"""The curve of a person's own cluster: a log of nccl-tests on top of a shipped curve."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from nest_core.calibration.collectives.fit import Sample, fit_curve, local_sample, network_sample
from nest_core.documents.errors import InputError
from nest_core.hardware.collectives.curves import Curve
from nest_core.hardware.collectives.library import OWN, POOLED, Library
from nest_core.hardware.collectives.measurements import Measurement

__all__ = ["OwnFit", "fit_own", "fit_problem"]


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
    if shipped is None and bandwidth_Bps is None:
        raise InputError(
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
    words = re.findall(r"[A-Za-z0-9]+", accelerator)
    return next((word for word in words if re.search(r"\d", word)), accelerator)
