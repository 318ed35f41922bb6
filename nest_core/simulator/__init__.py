"""An iteration on the links, event by event: an independent judge of plans."""

from nest_core.simulator.iteration import (
    Iteration,
    drawn_seconds,
    simulate,
    stages_of,
)

__all__ = ["Iteration", "drawn_seconds", "simulate", "stages_of"]
