"""What the Explore page asks of studies, and where its points lead."""

from __future__ import annotations

from typing import Any

from nest_core.studies.parameter import SweepParameter, Value, with_values
from nest_studio.forms import Request
from nest_studio.open_plan import open_plan

__all__ = ["inputs_of", "open_point"]


def inputs_of(request: Request) -> dict[str, Any]:
    """A request as the plain values that studies take."""
    return {"document": request.document, "overrides": request.overrides}


def open_point(request: Request, pairs: tuple[tuple[SweepParameter, Value], ...]) -> None:
    """Have a point opened on the Plan page, for a button's callback."""
    said = ", ".join(
        f"{parameter.label} {parameter.words(value)} {parameter.unit}".strip()
        for parameter, value in pairs
        if parameter.fabric
    )
    open_plan(request.scenario, with_values(request.overrides, pairs), said)
