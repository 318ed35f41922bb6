"""How far curves are from measurements, on rows that no fit saw.

Errors are relative, ``predicted / measured - 1``. The accuracy that is promised counts messages
of at least `LARGE_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from benchmarks.validation.collectives.errors import LARGE_BYTES, SEED, Compared, Group, summarise
from benchmarks.validation.collectives.tables import Skipped, half
from benchmarks.validation.collectives.training import (
    UNSEEN,
    curve_name,
    left_out,
    training_half,
)
from nest_core.hardware.collectives.library import KIND, Library
from nest_core.hardware.collectives.measurements import OPS, Measurement

__all__ = [
    "compare",
    "held_out",
    "held_out_groups",
    "left_out_groups",
    "predicted_seconds",
]

SIZES = (
    ("under 64 KiB", 0.0, 2.0**16),
    ("64 KiB to 1 MiB", 2.0**16, 2.0**20),
    ("1 to 16 MiB", 2.0**20, 2.0**24),
    ("16 to 256 MiB", 2.0**24, 2.0**28),
    ("256 MiB and more", 2.0**28, np.inf),
)


def predicted_seconds(row: Measurement, library: Library) -> float | str:
    """Return the seconds that a library's curves give a row, or why there is no prediction."""
    local = library.local(row.accelerator)
    if local is None:
        return f"the link rate of {row.accelerator} is not in any preset of {KIND}"
    curve, bandwidth = local
    if row.nodes == 1:
        seconds = curve.seconds(
            row.op, row.devices, row.bytes, bandwidth, in_network=row.in_network
        )
        return float(seconds)
    between = library.network(row.network, row.network_Bps)
    if between is None:
        return f"the rate per device of the network {row.network!r} is not stated"
    network, rate = between
    return float(
        network.seconds_between(row.op, row.devices, row.nodes, row.bytes, rate, curve, bandwidth)
    )


def compare(rows: Iterable[Measurement], library: Library) -> tuple[list[Compared], list[Skipped]]:
    """Predictions of the library, and the rows for which it has none."""
    found: list[Compared] = []
    skipped: list[Skipped] = []
    for row in rows:
        predicted = predicted_seconds(row, library)
        if isinstance(predicted, str):
            skipped.append(Skipped(row.id, predicted))
        else:
            found.append(Compared(row, curve_name(row, library) or "", predicted))
    return found, skipped


def held_out(rows: Iterable[Measurement], seed: int = SEED) -> list[Measurement]:
    """Rows that no fit saw: the other half, and the devices kept out of every fit."""
    return [row for row in rows if half(row, seed) == 1 or row.accelerator in UNSEEN]


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
