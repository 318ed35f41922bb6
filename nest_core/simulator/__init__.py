"""An iteration on the links, event by event: an independent judge of plans."""

from nest_core.simulator.iteration import Iteration, simulate, stages_of

__all__ = ["Iteration", "simulate", "stages_of"]
