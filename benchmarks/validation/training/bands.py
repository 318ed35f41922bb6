"""The shipped error bands: the cells of measured runs, and how far each is off."""

from __future__ import annotations

import json
from collections.abc import Iterable

from benchmarks.validation.training.regions import cells, score
from nest_core.calibration.training.bands import ErrorBand
from nest_core.calibration.training.machines import model_of
from nest_core.calibration.training.predict import Prediction

__all__ = ["FEWEST", "bands_toml", "measured_bands"]

FEWEST = 5
"""Runs below which a cell says nothing."""


def measured_bands(predictions: Iterable[Prediction]) -> list[ErrorBand]:
    """Bands of all cells with at least `FEWEST` measured runs."""
    found = []
    for place, items in cells(predictions).items():
        if len(items) >= FEWEST:
            errors = score(", ".join(place), items)
            found.append(
                ErrorBand(
                    errors.name,
                    place,
                    errors.n,
                    round(errors.p10, 4),
                    round(errors.p90, 4),
                    round(errors.mape, 4),
                    _span([item.run.devices for item in items]),
                    _span([model_of(item.run).parameters for item in items]),
                    _span([item.run.sequence for item in items]),
                    _span([item.run.point.tp for item in items]),
                    _span([item.run.point.pp for item in items]),
                )
            )
    return found


def _span(values: list[float] | list[int]) -> tuple[float, float]:
    return float(min(values)), float(max(values))


def bands_toml(bands: Iterable[ErrorBand]) -> str:
    """The text of the shipped file."""
    lines = ["# Written by `python -m benchmarks.validation regenerate training`; do not edit."]
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
