"""Which shapes of plans the runs had that parameters are fitted to, those of a large source all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.predict import Prediction
from nest_core.costs.shapes import PlanShape

__all__ = ["measured_shapes", "shapes_toml"]


def measured_shapes(predictions: Iterable[Prediction]) -> list[tuple[str, str, PlanShape, int]]:
    """Family, stack, shape, and how many runs had it whose time was measured.

    Recomputation that a run does not state is what it is predicted with.
    """
    counted = Counter(
        (accelerator_of(item.run.accelerator).family.name, item.run.stack, item.shape)
        for item in predictions
        if item.shape and item.outcome.seconds is not None and item.run.quality != "C"
    )
    return [(family, stack, shape, runs) for (family, stack, shape), runs in counted.items()]


def shapes_toml(found: Iterable[tuple[str, str, PlanShape, int]]) -> str:
    """The text of the shipped file, of family, stack, shape and runs."""
    lines = [
        "# Written by `python -m benchmarks.validation regenerate training`; do not edit.",
        f"# Shapes are {', '.join(PlanShape._fields)} and how many runs were measured.",
    ]
    for (family, stack), rows in groupby(sorted(found), key=lambda row: row[:2]):
        lines += ["", "[[measured]]", f'family = "{family}"', f'stack = "{stack}"', "shapes = ["]
        for *_, shape, runs in rows:
            degrees = ", ".join(map(str, shape[:5]))
            lines.append(f'    [{degrees}, "{shape.recompute}", {runs}],')
        lines.append("]")
    return "\n".join(lines) + "\n"
