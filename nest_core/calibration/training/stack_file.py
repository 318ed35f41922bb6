"""The file that a calibration leaves behind: a software stack with figures of its own."""

from __future__ import annotations

from typing import Any

from nest_core.calibration.training.calibration import Calibration
from nest_core.documents.overrides import toml_document
from nest_core.documents.units import plural
from nest_core.hardware.collectives.library import curve_document
from nest_core.hardware.stacks import load_stack

__all__ = ["stack_document", "stack_toml"]


def stack_toml(calibration: Calibration, name: str) -> str:
    """Return the stack of most of the runs as a file of one's own, which scenarios may name.

    Parameters
    ----------
    calibration : Calibration
    name : str
        What the person calls the stack.
    """
    return toml_document(stack_document(calibration, name))


def stack_document(calibration: Calibration, name: str) -> dict[str, Any]:
    """Return the same as the table that the file holds."""
    runs = [run.row.run for run in calibration.runs]
    errors = [run.after / (run.row.outcome.seconds or 1.0) - 1 for run in calibration.runs]
    ids = ", ".join(run.id for run in runs[:20]) + (", …" if len(runs) > 20 else "")
    base = load_stack(calibration.stack)
    counted = plural(len(runs), "own run")
    source = (
        f"{name}: {base.name} fitted to {counted} ({ids[:1000]}), mean error "
        f"{sum(map(abs, errors)) / len(runs):.1%}, bias {sum(errors) / len(runs):+z.1%}"
    )
    return {
        "framework": base.framework,
        "year": base.year,
        "release": base.release,
        "families": [calibration.family],
        "model_parallel": base.model_parallel,
        "attention": base.attention,
        "fused": base.fused,
        "joined": base.joined,
        "checkpoint": base.checkpoint,
        "launch": base.launch,
        "fp8": base.fp8,
        "deepspeed_zero": base.memory.deepspeed_zero,
        "eager_loss": base.memory.eager_loss,
        "sharded_gradients": base.sharded_gradients,
        "source": source,
        "covariance": [[float(f"{x:.4g}") for x in row] for row in calibration.covariance],
        "overlap": {traffic: list(precisions) for traffic, precisions in base.overlap},
        **(
            {"curves": [curve_document(curve) for curve in calibration.curves]}
            if calibration.curves
            else {}
        ),
        "parameters": {
            parameter.name: float(f"{parameter.value:.5g}") for parameter in calibration.parameters
        },
    }
