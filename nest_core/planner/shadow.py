"""Shadow prices: what one per cent more of a resource is worth, solved anew.

A shadow price is the relative gain of throughput per per cent of a level's bandwidth or of
device memory; the plan may change. It is a difference quotient at one per cent, so a price of 0
may hide a step further on.
"""

from __future__ import annotations

from dataclasses import replace

from nest_core.costs import NO_OFFLOAD, Problem
from nest_core.network import Network
from nest_core.planner.frontier import Frontier
from nest_core.planner.search import search
from nest_core.planner.space import SearchSpace

__all__ = ["shadow_prices"]

_STEP = 0.01


def shadow_prices(
    problem: Problem, space: SearchSpace, iteration_s: float, time_limit_s: float = float("inf")
) -> dict[str, float | None]:
    """Relative throughput gained per per cent of each resource.

    Parameters
    ----------
    iteration_s : float
        Of the best plan on the problem as it is.
    time_limit_s : float
        For all searches together, in equal parts; a price that could not be proven is None.

    Returns
    -------
    dict
        ``bandwidth.<level>`` and ``memory``; a torus has one bandwidth for all levels.
    """
    each = time_limit_s / (len(problem.network.levels) + 1)
    frontier = None if space.mixed or space.offload != (NO_OFFLOAD,) else Frontier(problem, space)

    def gain(roomier: Problem, factor: float) -> float | None:
        found = search(
            roomier,
            space,
            time_limit_s=each,
            within_s=iteration_s,  # the plan at hand is no slower with more of a resource
            frontier=frontier and frontier.eased(roomier, factor),
        )
        if found.best is None or not found.certificate.proven:
            return None
        return iteration_s / found.best.iteration_s - 1

    prices = {
        f"bandwidth.{name}": gain(replace(problem, network=network), 1 + _STEP)
        for name, network in _faster(problem.network)
    }
    prices["memory"] = gain(replace(problem, memory_bytes=problem.memory_bytes * (1 + _STEP)), 1.0)
    return prices


def _faster(network: Network) -> list[tuple[str, Network]]:
    if network.torus is not None:
        return [("links", network.faster(0, 1 + _STEP))]
    return [
        (level.name, network.faster(index, 1 + _STEP)) for index, level in enumerate(network.levels)
    ]
