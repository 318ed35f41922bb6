"""Device <-> coordinates on every parallel axis; read by costs, planner and figures."""

from nest_core.layout.layout import AXES, Layout

__all__ = ["AXES", "Layout"]
