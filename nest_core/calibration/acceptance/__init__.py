"""Acceptance of a built fabric: what to run on it, what to expect, and which tier is at fault."""
