"""Which curves are fitted to which rows, and in which order.

The seed halves the rows (`half`): the *training half* is fitted, the other is never read here.
First the pooled curve from all families, every (family, collective) pair weighing the same; then
every family from the pooled curve; then the networks, likewise, on the fitted families. Devices
of `UNSEEN` are kept out of every fit, to test curves on a device that they never saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks.validation.collectives.errors import SEED
from benchmarks.validation.collectives.tables import half
from nest_core.calibration.collectives.fit import Sample, fit_curve, local_sample, network_sample
from nest_core.hardware.collectives.curves import Curve
from nest_core.hardware.collectives.library import POOLED, Library
from nest_core.hardware.collectives.measurements import Measurement

__all__ = ["UNSEEN", "curve_name", "fit_library", "left_out", "training_half"]

UNSEEN = ("H20",)
START = {"nvlink": "start", "network": "network-start"}
"""The curve that a fit of each link starts from."""


def curve_name(row: Measurement, library: Library) -> str | None:
    """The curve that a row tests: its family's on one node, its network's on several."""
    if row.nodes > 1:
        between = library.network(row.network, row.network_Bps)
        known = library.local(row.accelerator) is not None
        return between[0].name if between and known else None
    found = library.local(row.accelerator)
    return found[0].name if found else None


def training_half(rows: Iterable[Measurement], seed: int = SEED) -> list[Measurement]:
    """Rows that may be fitted."""
    return [row for row in rows if half(row, seed) == 0 and row.accelerator not in UNSEEN]


def fit_library(rows: Sequence[Measurement], library: Library) -> Library:
    """All curves fitted to rows; nothing is held out here.

    Parameters
    ----------
    rows : sequence of Measurement
        The training half.
    library : Library
        Gives facts and starting points; fitted figures in it are not read, except those of
        curves that no row measures.
    """
    for link in ("nvlink", "network"):  # networks are fitted on fitted families
        items = _samples(rows, library, link)
        if not items:
            continue
        pooled = _pooled(items, library, link)
        library = library.replaced(_figures(library[POOLED[link]], pooled))
        measured = {item.curve for item in items} - {POOLED[link]}
        if link == "nvlink":  # unmeasured networks keep the figures that people gave them
            for curve in library.curves:
                if curve.link == link and curve.bandwidths and curve.name not in measured:
                    library = library.replaced(_figures(curve, pooled))
        for name in sorted(measured):
            own = [item.sample for item in items if item.curve == name]
            library = library.replaced(fit_curve(own, _figures(library[name], pooled)))
    return library


def left_out(rows: Sequence[Measurement], library: Library, name: str) -> Library:
    """The library as it would be if a family (or kind of network) had never been measured.

    Its curve gets the pooled figures of a fit without it, and keeps its own facts.
    """
    link = library[name].link
    items = [item for item in _samples(rows, library, link) if item.curve != name]
    return library.replaced(_figures(library[name], _pooled(items, library, link)))


@dataclass(frozen=True, slots=True)
class _Named:
    """A sample and the curve that it is for."""

    curve: str
    sample: Sample


def _samples(rows: Iterable[Measurement], library: Library, link: str) -> list[_Named]:
    found = []
    for row in rows:
        local = library.local(row.accelerator)
        if local is None or (row.nodes > 1) != (link == "network"):
            continue
        if link == "nvlink":
            found.append(_Named(local[0].name, local_sample(row, *local)))
        elif between := library.network(row.network, row.network_Bps):
            network, rate = between
            found.append(_Named(network.name, network_sample(row, network.name, rate, *local)))
    return found


def _pooled(items: Sequence[_Named], library: Library, link: str) -> Curve:
    return fit_curve([item.sample for item in items], library[START[link]], balanced=True)


def _figures(facts: Curve, fitted: Curve) -> Curve:
    """A curve with the facts of one and the fitted figures of another."""
    return replace(facts, regimes=fitted.regimes, own_block=fitted.own_block)
