"""Published experiments in which one workload, or one collective, ran on two networks."""

__all__ = ["UNMEASURED_RATIO"]

UNMEASURED_RATIO = (
    "There is no published measurement of this: nobody has published a measured training step at "
    "two oversubscription ratios with all else equal."
)
"""Stands beside every loss that an oversubscription ratio is said to cost."""
