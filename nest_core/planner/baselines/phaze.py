"""Phaze: the best plan of a network on which all devices are equally far apart.

**The original** searches accelerator architectures together with the placement of models on them.
Its placement is an exact dynamic program over pipeline stages, tensor-parallel widths, replicas
and recomputation, with memory inside the program, built on Piper's; the network is one bandwidth.
The NEST paper compares against that placement and calls it network-unaware.

**Here** it is the planner's exact search, certificate and all, on a copy of the problem whose
network is one switch (`nest_core.planner.baselines.baseline.flat`). The plan is then priced on the
fabric.

**Why that is fair to it**: it gets the whole space, with the axes that the original lacks (context
and sequence parallelism, ZeRO, interleaving), an exact optimum, and of the axis and device orders,
which mean nothing on its network, the one that turns out fastest on the fabric. What remains
different from our plan is the network and nothing else. Left out is the search for an accelerator,
which is given here.

References
----------
.. [1] Wang et al., "Integrated Hardware Architecture and Device Placement Search", ICML 2024.
.. [2] Tarnawski et al., "Piper: Multidimensional Planner for DNN Parallelization", NeurIPS 2021.
.. [3] NEST, MLSys 2026, sections 5.1 and 5.2.1.
"""

from dataclasses import replace

from nest_core.costs import Plan, Problem, price
from nest_core.documents.units import humanise_rate
from nest_core.planner import SearchSpace, search
from nest_core.planner.baselines.baseline import Found, flat, rank_mappings

__all__ = ["best_rank_mapping", "find"]


def find(
    problem: Problem,
    space: SearchSpace,
    time_limit_s: float = float("inf"),
    scope: str = "whole space",
) -> Found:
    """Return the fastest plan of the flat network, placed as suits it best on the fabric.

    Parameters
    ----------
    scope : str
        What is searched, in words.

    Raises
    ------
    InputError
        If the space holds no valid point.
    """
    blind = flat(problem)
    narrowed = replace(space, orders=space.orders[:1], device_orders=("natural",))
    result = search(blind, narrowed, time_limit_s=time_limit_s)
    speed = humanise_rate(blind.network.levels[0].bandwidth_Bps)
    proven = "" if result.certificate.proven else ", stopped by the time limit"
    origin = f"best of the {scope} on a flat network of {speed} per device{proven}"
    return (
        Found(None, origin, result.reason)
        if result.best is None
        else Found(best_rank_mapping(problem, space, result.best.plan), origin)
    )


def best_rank_mapping(problem: Problem, space: SearchSpace, plan: Plan) -> Plan:
    """Of the orders that are allowed, the one in which a plan is fastest."""
    return min(rank_mappings(space, plan), key=lambda choice: price(problem, choice).iteration_s)
