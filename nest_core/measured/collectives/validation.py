"""How far curves are from measurements, on rows that no fit saw.

Errors are relative, ``predicted / measured - 1``. The accuracy that is promised counts messages
of at least `LARGE_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.hardware.collectives.library import Library
from nest_core.hardware.collectives.measurements import OPS, Measurement, Skipped, half
from nest_core.measured import spearman
from nest_core.measured.collectives.training import (
    SEED,
    UNSEEN,
    curve_name,
    left_out,
    training_half,
)

__all__ = [
    "LARGE_BYTES",
    "Compared",
    "Group",
    "compare",
    "held_out",
    "held_out_groups",
    "left_out_groups",
    "summarise",
]

LARGE_BYTES = 65_536.0
SIZES = (
    ("under 64 KiB", 0.0, 2.0**16),
    ("64 KiB to 1 MiB", 2.0**16, 2.0**20),
    ("1 to 16 MiB", 2.0**20, 2.0**24),
    ("16 to 256 MiB", 2.0**24, 2.0**28),
    ("256 MiB and more", 2.0**28, np.inf),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A measurement beside its prediction."""

    row: Measurement
    curve: str
    predicted_s: float

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.predicted_s / self.row.seconds - 1

    @property
    def large(self) -> bool:
        """Whether the message counts for the promised accuracy."""
        return self.row.bytes >= LARGE_BYTES


@dataclass(frozen=True, slots=True)
class Group:
    """Errors of several rows.

    Parameters
    ----------
    name : str
    n : int
    median, p90 : float
        Of the absolute relative error.
    mape, bias : float
        Mean of the absolute and of the signed relative error.
    spearman : float or None
        Rank correlation of predicted and measured times; None where it has no meaning.
    """

    name: str
    n: int
    median: float
    p90: float
    mape: float
    bias: float
    spearman: float | None


def compare(rows: Iterable[Measurement], library: Library) -> tuple[list[Compared], list[Skipped]]:
    """Predictions of the library, and the rows for which it has none."""
    found: list[Compared] = []
    skipped: list[Skipped] = []
    for row in rows:
        predicted = library.predict(row)
        if isinstance(predicted, str):
            skipped.append(Skipped(row.id, predicted))
        else:
            found.append(Compared(row, curve_name(row, library) or "", predicted))
    return found, skipped


def held_out(rows: Iterable[Measurement], seed: int = SEED) -> list[Measurement]:
    """Rows that no fit saw: the other half, and the devices kept out of every fit."""
    return [row for row in rows if half(row, seed) == 1 or row.accelerator in UNSEEN]


def summarise(name: str, compared: Sequence[Compared]) -> Group:
    """Errors of a group; at least one row.

    Examples
    --------
    >>> row = Measurement("a", "all_reduce", "H100", 8, 1, 1e6, 1e-3)
    >>> summarise("one", [Compared(row, "h100", 1.1e-3)]).median
    0.1
    """
    error = np.array([item.error for item in compared])
    size = np.abs(error)
    measured = np.array([item.row.seconds for item in compared])
    predicted = np.array([item.predicted_s for item in compared])
    return Group(
        name,
        len(compared),
        round(float(np.median(size)), 6),
        round(float(np.quantile(size, 0.9)), 6),
        round(float(size.mean()), 6),
        round(float(error.mean()), 6),
        spearman(measured, predicted, 6),
    )


def held_out_groups(compared: Sequence[Compared]) -> dict[str, list[Group]]:
    """Groups of held-out rows by heading: in all, by curve, collective and message size."""
    seen = [item for item in compared if item.row.accelerator not in UNSEEN]
    large = [item for item in seen if item.large]
    tables = {
        "In all": [
            *_groups(large, {"64 KiB and more": lambda item: True}),
            *_groups(seen, {"every size": lambda item: True}),
        ],
        "By family and network (64 KiB and more)": _by(large, lambda item: item.curve),
        "By collective (64 KiB and more)": _by(large, lambda item: item.row.op, OPS),
        "By devices (64 KiB and more)": _by(large, lambda item: f"{item.row.devices:2d} devices"),
        "By message size": _groups(seen, {name: _between(low, high) for name, low, high in SIZES}),
    }
    unseen = [item for item in compared if item.row.accelerator in UNSEEN and item.large]
    tables["Devices kept out of every fit"] = _by(unseen, lambda item: item.row.accelerator)
    return {heading: groups for heading, groups in tables.items() if groups}


def left_out_groups(rows: Sequence[Measurement], library: Library) -> list[Group]:
    """Errors on every family and kind of network after a fit that never saw it.

    All of its rows of 64 KiB and more are predicted, both halves, from the pooled curve and the
    family's own facts (link rate, wiring, whether its switches reduce).
    """
    usable = [row for row in rows if row.accelerator not in UNSEEN and row.bytes >= LARGE_BYTES]
    names = sorted({name for row in usable if (name := curve_name(row, library))})
    fitted = training_half(rows)
    by_link: dict[str, list[Compared]] = {}
    groups = []
    for name in names:
        others = left_out(fitted, library, name)
        own = [row for row in usable if curve_name(row, library) == name]
        compared, _ = compare(own, others)
        groups.append(summarise(name, compared))
        by_link.setdefault(library[name].link, []).extend(compared)
    if "nvlink" in by_link:
        groups.insert(0, summarise("all families together", by_link["nvlink"]))
    return groups


def _between(low: float, high: float) -> Callable[[Compared], bool]:
    return lambda item: low <= item.row.bytes < high


def _groups(
    compared: Sequence[Compared], tests: Mapping[str, Callable[[Compared], bool]]
) -> list[Group]:
    found = ((name, [item for item in compared if test(item)]) for name, test in tests.items())
    return [summarise(name, items) for name, items in found if items]


def _by(
    compared: Sequence[Compared], key: Callable[[Compared], str], order: Sequence[str] = ()
) -> list[Group]:
    names = order or sorted({key(item) for item in compared})
    found = ((name, [item for item in compared if key(item) == name]) for name in names)
    return [summarise(name.strip(), items) for name, items in found if items]
