"""Iterations that are priced beside the same ones played event by event."""
