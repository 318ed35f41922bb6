"""Mist: memory first, every stage with its own layers, recomputation and ZeRO stage.

**The original** tunes all that saves memory together with parallelism: per stage the data- and
tensor-parallel split, ZeRO, how many layers recompute and what is offloaded. Inside a stage it
finds the Pareto frontier of time against memory; a mixed-integer program over stages then picks
their layers and a point of each frontier. It overlaps communication with compute by a schedule of
its own. The NEST paper compares against its placement and calls it unaware of the network.

**Here** it is the planner's exact search with mixed stages on the flat network of
`nest_core.planner.baselines.baseline.flat`: memory decides what a stage may hold before any time is
looked at, stages differ in layers, recomputation, ZeRO stage and sequence parallelism, and the
objective is the whole pipeline's time. Context and expert parallelism are not its axes; each is at
the least that the limits allow. The plan is priced on the fabric.

**Simplified**: recomputation is per stage and not per layer; what is offloaded is the same for all
stages, and only as the scenario lists it; its schedule of overlaps is replaced by the schedules and
the overlap that all plans here have; stages get equal numbers of devices. Models with experts,
which the original refuses, are planned without dividing the experts.

**Why that is fair to it**: its two nested programs are one exact one here, sequence parallelism is
added, and of the axis and device orders, which mean nothing on its network, the one that turns out
fastest on the fabric is taken. It is compared with our search over mixed stages.

References
----------
.. [1] Zhu et al., "Mist: Efficient Distributed Training of Large Language Models via
   Memory-Parallelism Co-Optimization", EuroSys 2025.
.. [2] NEST, MLSys 2026, table 1 and section 5.3.
"""

from dataclasses import replace

from nest_core.costs import Problem
from nest_core.planner import SearchSpace
from nest_core.planner.baselines import phaze
from nest_core.planner.baselines.baseline import Found

__all__ = ["find", "own_space"]


def find(problem: Problem, space: SearchSpace, time_limit_s: float = float("inf")) -> Found:
    """Return the best mixed plan on the flat network, placed as suits it best on the fabric.

    Raises
    ------
    InputError
        If the space holds no valid point.
    """
    return phaze.find(
        problem,
        own_space(space),
        time_limit_s,
        "plans with ZeRO and recomputation stage by stage",
    )


def own_space(space: SearchSpace) -> SearchSpace:
    """Return the part of a space that Mist searches."""
    return replace(
        space,
        cp=(min(space.cp),),
        ep=(min(space.ep),),
        mixed=True,
    )
