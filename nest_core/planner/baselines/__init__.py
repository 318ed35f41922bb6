"""What other methods would have chosen, on the same costs, fabric and schedule.

One module per method: `manual`, `mcmc`, `phaze`, `alpa_e`, `mist`; each says what the original
does, what is simplified here and why that is fair to it.
"""

from nest_core.planner.baselines.baseline import NAMES, Baseline, Found, Waterfall, fastest
from nest_core.planner.baselines.evaluate import evaluate_baselines

__all__ = ["NAMES", "Baseline", "Found", "Waterfall", "evaluate_baselines", "fastest"]
