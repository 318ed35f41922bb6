"""Ratios of two networks: measured beside predicted, with the interval that the network leaves.

What was measured is the ratio of the *times* on network b and on a, above 1 where b is slower. Both
are priced; draws of the network's parameters (`nest_core.hardware.network_spread`), the same for
both networks where they share a transport or a way of routing, give the interval. Nothing is fitted
to any row.

Where the time on network a was measured, a second ratio is predicted from it: the device is as slow
as makes the price on a equal to the measurement, and the price on b follows. It asks the network
alone, where the first asks the device's compute too.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from benchmarks.validation.fabric.experiments import COLUMNS, Experiment, experiment_of, published
from benchmarks.validation.fabric.worlds import NetworkDraw, drawn_worlds
from nest_core.calibration.training.cells import NotNumber, figure
from nest_core.calibration.training.rows import Unusable
from nest_core.calibration.training.runs import Unread
from nest_core.documents.errors import InputError

__all__ = ["DRAWS", "RATIO_COLUMNS", "NetworkRatio", "predict_ratios"]

RATIO_COLUMNS = ("id", "network_a", "network_b", "metric", "ratio_b_over_a")
"""A table of two networks has these; kind, confidence, values and notes may be missing."""

DRAWS, SEED, SHARE = 64, 0, 0.8
MAX_ROWS = 1_000
ROUNDED = 0.02
"""What printed values and their printed ratio may differ by."""

RATE = re.compile(r"throughput|per second|/s\b|flop|busbw|bandwidth", re.I)
TIME = re.compile(r"\btime|latency|duration|\((s|ms|us)\)", re.I)
NOTED = re.compile(r"\s*time_ratio_b_over_a=([0-9.]+)")
SLOWEST = 30.0
"""Devices are looked for that compute up to so many times slower, or faster, than predicted."""


@dataclass(frozen=True, slots=True)
class NetworkRatio:
    """One experiment on two networks.

    Parameters
    ----------
    id, kind, confidence : str
        As written; ``kind`` is measured or simulated.
    complete : bool
        Whether the published row is complete enough for an end-to-end prediction.
    measured, predicted : float
        Time on network b over time on a.
    interval : (float, float)
        10 and 90 % quantiles of the predicted ratio over draws of the network's parameters.
    anchored : float or None
        The ratio where the time on network a is as measured; None where it was not, or where the
        predicted traffic alone takes longer.
    anchored_interval : (float, float) or None
    assumed : str
    """

    id: str
    kind: str
    confidence: str
    complete: bool
    measured: float
    predicted: float
    interval: tuple[float, float]
    anchored: float | None
    anchored_interval: tuple[float, float] | None
    assumed: str

    @property
    def error(self) -> float:
        """Relative and signed."""
        return self.predicted / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether the measured ratio lies in the interval."""
        return self.interval[0] <= self.measured <= self.interval[1]

    @property
    def anchored_inside(self) -> bool:
        """The same of the interval from the time on network a."""
        held = self.anchored_interval
        return held is not None and held[0] <= self.measured <= held[1]


def predict_ratios(
    text: str, name: str, folder: Path | None = None, draws: int = DRAWS
) -> tuple[list[NetworkRatio], list[Unread]]:
    """Every row predicted, or listed with the reason why not.

    Parameters
    ----------
    text : str
        A CSV with `RATIO_COLUMNS`, and of `benchmarks.validation.fabric.experiments.COLUMNS` those
        that say what ran; rows whose id is published need none.
    name : str
        What to call it in errors.
    folder : Path, optional
        Where paths of fabrics and scenarios start; None where they may be presets only.
    draws : int
        Of the network's parameters.

    Raises
    ------
    InputError
        If it is no such table.
    """
    known, found = published(), list[NetworkRatio]()
    worlds = drawn_worlds(draws, SEED)
    left: list[Unread] = []
    for identity, cells in _rows(text, name).items():
        own = {key: cells[key] for key in COLUMNS if cells.get(key, "").strip()}
        try:
            measured = _measured(cells)
            entry = {**known.rows.get(identity, {}), **own}
            if not (entry.get("fabric_a") or entry.get("fabric_b")):
                raise Unusable(
                    known.reason(identity)
                    or "has no tables: give fabric_a, fabric_b and a scenario with its plan or "
                    "a collective"
                )
            experiment = experiment_of(entry, known.fabrics, folder)
            found.append(_ratio(identity, cells, measured, experiment, worlds))
        except (Unusable, InputError) as error:
            left.append(Unread(identity, str(error)))
    return found, left


def _rows(text: str, name: str) -> dict[str, dict[str, str]]:
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), restkey="", restval="")
    rows: dict[str, dict[str, str]] = {}
    try:
        reader.fieldnames = columns = [column.strip() for column in reader.fieldnames or ()]
        missing = [column for column in RATIO_COLUMNS if column not in columns]
        if missing or len(set(columns)) != len(columns):
            raise InputError(
                name,
                "must have the columns of fabric_ratios.csv, each once",
                ", ".join(columns) or "empty",
                f"name at least {', '.join(RATIO_COLUMNS)}",
            )
        for number, row in enumerate(reader, start=1):
            identity = row["id"].strip() or f"row {number}"
            if identity in rows or len(rows) == MAX_ROWS:
                raise InputError(
                    name,
                    f"must name every row once, {MAX_ROWS:,} at most",
                    identity,
                    "rename or split",
                )
            rows[identity] = row
    except csv.Error as error:
        raise InputError(name, "must be a CSV file", str(error), "save it as CSV") from error
    return rows


def _measured(cells: Mapping[str, str]) -> float:
    """The ratio of times that a row states.

    Raises
    ------
    Unusable
        If it states none, or contradicts itself.
    """
    networks = [cells[key].strip() for key in ("network_a", "network_b")]
    if networks[0] == networks[1]:
        raise Unusable(f"names the same network twice: {networks[0] or 'none'}")
    ratio = _positive(cells, "ratio_b_over_a")
    if ratio is None:
        raise Unusable("states no ratio_b_over_a")
    a, b = (_positive(cells, key) for key in ("value_a", "value_b"))
    if a is not None and b is not None and not _near(b / a, ratio):
        raise Unusable(f"states a ratio of {ratio:g}, and values whose ratio is {b / a:.4g}")
    metric = cells["metric"].strip()
    rate, time = bool(RATE.search(metric)), bool(TIME.search(metric))
    if rate is time:
        raise Unusable(f"has the metric {metric!r}, which names neither a time nor a rate")
    counted = 1 / ratio if rate else ratio
    noted = NOTED.match(cells.get("notes", ""))
    if noted is None:
        return counted
    try:
        precise = float(noted[1])
    except ValueError as error:
        raise Unusable(f"notes a ratio of times of {noted[1]}, which is no number") from error
    if not _near(precise, counted):
        raise Unusable(f"notes a ratio of times of {precise:g}, and its values give {counted:.4g}")
    return precise


def _near(one: float, other: float) -> bool:
    return abs(one / other - 1) <= ROUNDED


def _positive(cells: Mapping[str, str], key: str) -> float | None:
    try:
        value = figure(cells.get(key, ""))
    except NotNumber as error:
        raise Unusable(f"states {key} as {error}, which is no number") from error
    if value is not None and not 1e-12 < value < 1e12:
        raise Unusable(f"states {key} as {value:g}, which is no such figure")
    return value


def _ratio(
    identity: str,
    cells: Mapping[str, str],
    measured: float,
    experiment: Experiment,
    worlds: Sequence[NetworkDraw],
) -> NetworkRatio:
    seconds = experiment.a.seconds(), experiment.b.seconds()
    if not (0 < seconds[0] < math.inf and 0 < seconds[1] < math.inf):
        raise Unusable("takes no finite time on one of its networks")
    anchored = _anchored(experiment, None)
    ratios = [experiment.b.seconds(draw) / experiment.a.seconds(draw) for draw in worlds]
    beside = [_anchored(experiment, draw) for draw in worlds] if anchored is not None else []
    held = [ratio for ratio in beside if ratio is not None]
    return NetworkRatio(
        identity,
        cells.get("kind", "").strip() or "measured",
        cells.get("confidence", "").strip(),
        experiment.complete,
        measured,
        seconds[1] / seconds[0],
        _quantiles(ratios),
        anchored,
        _quantiles(held) if held else None,
        experiment.assumed,
    )


def _anchored(experiment: Experiment, draw: NetworkDraw | None) -> float | None:
    """The ratio on the device that makes the time on network a what was measured."""
    wanted = experiment.seconds_a
    if wanted is None:
        return None

    def excess(slower: float) -> float:
        return experiment.a.seconds(draw, math.exp(slower)) - wanted

    most = math.log(SLOWEST)
    if excess(-most) > 0 or excess(most) < 0:
        return None
    slower = math.exp(brentq(excess, -most, most, xtol=1e-4))
    return experiment.b.seconds(draw, slower) / wanted


def _quantiles(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return float(low), float(high)
