"""Which shapes of plans the runs had that parameters are fitted to, those of a large source all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nest_core.costs.shapes import Shape
from nest_core.measured.training.machines import accelerator_of
from nest_core.measured.training.predict import Prediction

__all__ = ["measured_shapes"]


def measured_shapes(predictions: Iterable[Prediction]) -> list[tuple[str, str, Shape, int]]:
    """Family, stack, shape, and how many runs had it whose time was measured.

    Recomputation that a run does not state is what it is predicted with.
    """
    counted = Counter(
        (accelerator_of(item.run.accelerator).family.name, item.run.stack, item.shape)
        for item in predictions
        if item.shape and item.outcome.seconds is not None and item.run.quality != "C"
    )
    return [(family, stack, shape, runs) for (family, stack, shape), runs in counted.items()]
