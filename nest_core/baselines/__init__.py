"""What other methods would have chosen, on the same costs, fabric and schedule."""

from nest_core.baselines.placements import NAMES, Baseline, evaluate_baselines

__all__ = ["NAMES", "Baseline", "evaluate_baselines"]
