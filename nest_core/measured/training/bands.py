"""The error band beside a predicted figure: how far similar runs were from their predictions.

``presets/validation/regions.toml`` holds, for every cell of
`nest_core.measured.training.regions` with enough measured runs, how many there were, what sizes
they span and the quantiles of their errors (``predicted / measured - 1``). A scenario with its
plan takes the band of its cell where devices, parameters and tokens lie within a factor of
two of what was measured; else it has none.

With a band of ``p10`` to ``p90``, a predicted time ``t`` stands for measured ones between
``t / (1 + p90)`` and ``t / (1 + p10)`` in four runs of five.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nest_core.costs import Plan
from nest_core.errors import InputError
from nest_core.measured.training.architectures import model_of
from nest_core.measured.training.machines import machine_of
from nest_core.measured.training.predict import Prediction
from nest_core.measured.training.regions import cell, cells, kind_of, score
from nest_core.presets import kept_per_edition, load_toml, preset_path
from nest_core.workload import Model

__all__ = ["FEWEST", "Band", "band_of", "bands_toml", "load_bands", "measured_bands"]

FEWEST = 5
"""Runs below which a cell says nothing."""

MARGIN = 2.0
"""How far outside the measured sizes a scenario may lie."""

PATH = ("validation", "regions.toml")

Span = tuple[float, float]

ANY: Span = (1.0, float("inf"))


@dataclass(frozen=True, slots=True)
class Band:
    """A validated cell.

    Parameters
    ----------
    region : str
        In words.
    cell : tuple of str
        As `nest_core.measured.training.regions.cell_of` gives it.
    n : int
        Measured runs.
    p10, p90, mape : float
        Of their relative errors.
    devices, parameters, tokens, tp, pp : (float, float)
        Smallest and largest measured; ``tokens`` per sequence, degrees.
    """

    region: str
    cell: tuple[str, ...]
    n: int
    p10: float
    p90: float
    mape: float
    devices: Span
    parameters: Span
    tokens: Span
    tp: Span = ANY
    pp: Span = ANY

    def holds(
        self, devices: float, parameters: float, tokens: float, tp: float = 1, pp: float = 1
    ) -> bool:
        """Whether sizes and degrees lie within the margin of the measured ones."""
        spans = (
            (devices, self.devices),
            (parameters, self.parameters),
            (tokens, self.tokens),
            (tp, self.tp),
            (pp, self.pp),
        )
        return all(low / MARGIN <= value <= high * MARGIN for value, (low, high) in spans)

    def to_json(self) -> dict[str, object]:
        """The fields of the command line's ``error_band``."""
        return {"region": self.region, "n": self.n, "p10": self.p10, "p90": self.p90}


def measured_bands(predictions: Iterable[Prediction]) -> list[Band]:
    """Bands of all cells with at least `FEWEST` measured runs."""
    found = []
    for place, items in cells(predictions).items():
        if len(items) >= FEWEST:
            errors = score(", ".join(place), items)
            found.append(
                Band(
                    errors.name,
                    place,
                    errors.n,
                    round(errors.p10, 4),
                    round(errors.p90, 4),
                    round(errors.mape, 4),
                    _span([item.run.devices for item in items]),
                    _span([model_of(item.run).parameters for item in items]),
                    _span([item.run.sequence for item in items]),
                    _span([item.run.tp for item in items]),
                    _span([item.run.pp for item in items]),
                )
            )
    return found


def _span(values: list[float] | list[int]) -> Span:
    return float(min(values)), float(max(values))


def band_of(
    accelerator: str,
    model: Model,
    plan: Plan,
    precision: str,
    tokens: int,
    devices: int,
    bands: Iterable[Band] | None = None,
) -> Band | None:
    """The band of a scenario's plan; None where nothing like it was measured.

    Parameters
    ----------
    accelerator : str
        Its name, as a preset or a person gives it.
    tokens : int
        Per sequence.
    devices : int
        That the plan uses.
    bands : iterable of Band, optional
        Those that are shipped by default.
    """
    try:
        machine = machine_of(accelerator)
    except InputError:
        return None
    point = plan.point
    kind, one_node = kind_of(point.zero, point.pp), devices <= machine.per_node
    here = cell(machine.name, kind, model.experts, precision, one_node)
    for band in load_bands() if bands is None else bands:
        if band.cell == here and band.holds(devices, model.parameters, tokens, point.tp, point.pp):
            return band
    return None


@kept_per_edition(1)
def load_bands() -> tuple[Band, ...]:
    """The shipped bands; none where the file is missing."""
    path = preset_path(*PATH)
    if not path.is_file():
        return ()
    return tuple(_band(entry) for entry in load_toml(path).get("region", ()))


def _band(entry: Mapping[str, Any]) -> Band:
    place = tuple(map(str, entry["cell"]))
    names = ("devices", "parameters", "tokens", "tp", "pp")
    spans = (tuple(map(float, entry[name])) for name in names)
    devices, parameters, tokens, tp, pp = ((low, high) for low, high in spans)
    return Band(
        ", ".join(place),
        place,
        int(entry["n"]),
        float(entry["p10"]),
        float(entry["p90"]),
        float(entry["mape"]),
        devices,
        parameters,
        tokens,
        tp,
        pp,
    )


def bands_toml(bands: Iterable[Band]) -> str:
    """The text of the shipped file."""
    lines = ["# Written by `nest-studio regenerate training`; do not edit."]
    for band in bands:
        lines += [
            "",
            "[[region]]",
            f"cell = {json.dumps(list(band.cell))}",
            f"n = {band.n}",
            f"p10 = {band.p10:.4f}",
            f"p90 = {band.p90:.4f}",
            f"mape = {band.mape:.4f}",
            f"devices = [{band.devices[0]:.0f}, {band.devices[1]:.0f}]",
            f"parameters = [{band.parameters[0]:.4g}, {band.parameters[1]:.4g}]",
            f"tokens = [{band.tokens[0]:.0f}, {band.tokens[1]:.0f}]",
            f"tp = [{band.tp[0]:.0f}, {band.tp[1]:.0f}]",
            f"pp = [{band.pp[0]:.0f}, {band.pp[1]:.0f}]",
        ]
    return "\n".join(lines) + "\n"
