"""The curve of a person's own cluster: a log of nccl-tests on top of a shipped curve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.calibration.collectives.errors import SEED, Compared, Group, summarise
from nest_core.calibration.collectives.fit import fit_curve, local_sample, network_sample
from nest_core.documents.errors import InputError
from nest_core.hardware.collectives.curves import Curve
from nest_core.hardware.collectives.library import OWN, POOLED, Library
from nest_core.hardware.collectives.measurements import Measurement, half

__all__ = ["OwnFit", "fit_own"]

ENOUGH_ROWS = 8
"""With fewer, half of them say nothing about the other half."""


@dataclass(frozen=True, slots=True)
class OwnFit:
    """A curve fitted to a few rows.

    Parameters
    ----------
    curve : Curve
        Named ``own``.
    prior : str
        The shipped curve that it started from.
    before, after : Group
        Errors of the shipped and of the fitted curve on all rows.
    held_out : Group or None
        Errors on a seeded half of the rows of a fit to the other half.
    compared : tuple of Compared
        All rows beside the fitted curve.
    """

    curve: Curve
    prior: str
    before: Group
    after: Group
    held_out: Group | None
    compared: tuple[Compared, ...]


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
    first = rows[0]
    found = library.local(first.accelerator)
    if bandwidth_Bps is not None:
        local, rate = (found[0] if found else library[POOLED["nvlink"]]), bandwidth_Bps
    elif found is None:
        raise InputError(
            "accelerator",
            "must be one whose link rate is known",
            first.accelerator,
            "give --link-rate in GB/s",
        )
    else:
        local, rate = found
    if first.nodes == 1:
        prior = local
        samples = [local_sample(row, local, rate) for row in rows]
    else:
        between = library.network(first.network, first.network_Bps)
        if between is None:
            raise InputError(
                "network",
                "must be one whose rate per device is known",
                first.network,
                "give --network-rate in GB/s",
            )
        prior, network_rate = between
        samples = [network_sample(row, prior.name, network_rate, local, rate) for row in rows]

    def against(curve: Curve, chosen: Sequence[Measurement]) -> list[Compared]:
        return [Compared(row, curve.name, seconds(curve, row)) for row in chosen]

    def seconds(curve: Curve, row: Measurement) -> float:
        if row.nodes == 1:
            return float(curve.seconds(row.op, row.devices, row.bytes, rate))
        return float(
            curve.seconds_between(
                row.op, row.devices, row.nodes, row.bytes, network_rate, local, rate
            )
        )

    fitted = replace(fit_curve(samples, prior), name=OWN)
    if first.nodes == 1 and found is None:
        fitted = replace(fitted, bandwidths=((_word(first.accelerator), rate),))
    in_other_half = [half(row, SEED) for row in rows]
    held_out = None
    if len(rows) >= ENOUGH_ROWS and 0 < sum(in_other_half) < len(rows):
        partial = fit_curve(
            [s for s, other in zip(samples, in_other_half, strict=True) if not other], prior
        )
        tested = [row for row, other in zip(rows, in_other_half, strict=True) if other]
        held_out = summarise("held out", against(partial, tested))
    compared = against(fitted, rows)
    return OwnFit(
        curve=fitted,
        prior=prior.name,
        before=summarise("shipped", against(prior, rows)),
        after=summarise("fitted", compared),
        held_out=held_out,
        compared=tuple(compared),
    )


def _word(accelerator: str) -> str:
    """The word of a name that tells accelerators apart: the first with a digit.

    Examples
    --------
    >>> _word("AMD MI300A APU")
    'MI300A'
    """
    words = re.findall(r"[A-Za-z0-9]+", accelerator)
    return next((word for word in words if re.search(r"\d", word)), accelerator)
