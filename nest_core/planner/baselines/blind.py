"""Networks as methods see them that do not know the fabric.

Both views keep the number of devices and lose everything else: who shares an uplink, how many
tiers a transfer climbs, where a link is oversubscribed. Plans made on a view are priced on the
fabric afterwards, by the same `nest_core.costs.price` as every other plan; memory does not depend
on the network.

Units: bytes/s per direction, seconds one way.
"""

import math
from dataclasses import replace

import numpy as np

from nest_core.costs import Plan, Problem
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import Level, Network, collapse
from nest_core.planner import SearchSpace

__all__ = ["flat", "mesh", "rank_mappings", "row_length"]


def flat(problem: Problem) -> Problem:
    """Return the same problem on one switch to which every device has a link of its own.

    Notes
    -----
    The one bandwidth is the geometric mean over the fabric's levels of what a device gets when
    all send (`Level.bandwidth_Bps`), the one latency the arithmetic mean. A method without levels
    leaves the choice open. Of the levels' geometric, arithmetic and harmonic means, means weighted
    by pairs of devices, the innermost and the outermost level, this is the one with which its plans
    turned out fastest on average over the presets, so it is taken in the method's favour.
    """
    # A level that nobody needs may have lost all its links.
    levels = [level for level in problem.network.levels if level.bandwidth_Bps > 0]
    bandwidth = math.exp(sum(math.log(level.bandwidth_Bps) for level in levels) / len(levels))
    latency = sum(level.latency_s for level in levels) / len(levels)
    tier = Tier("flat", problem.network.devices, bandwidth, latency)
    return replace(problem, network=collapse(Hierarchical("flat", (tier,))))


def mesh(problem: Problem) -> Problem:
    """Return the same problem on a mesh of ``devices / M`` rows by ``M`` columns.

    A row is a node, with the innermost level's bandwidth between its devices; rows are joined by
    what one device gets of the level just outside the node, however far apart they are. On a torus
    rows are those of its first dimension, and both bandwidths one hop's.
    """
    network, row = problem.network, row_length(problem.network)
    tiers = [_tier("row", row, network.levels[0])]
    if row < network.devices:
        outside = network.levels[
            0 if network.torus is not None else min(1, len(network.levels) - 1)
        ]
        tiers.append(_tier("mesh", network.devices // row, outside))
    return replace(problem, network=collapse(Hierarchical("mesh", tuple(tiers))))


def row_length(network: Network) -> int:
    """Devices of a row: of a node, or where nodes differ, the most that divides all of them."""
    return int(np.gcd.reduce(np.bincount(network.node)))


def rank_mappings(space: SearchSpace, plan: Plan) -> tuple[Plan, ...]:
    """Return a plan under every axis and device order that is allowed and places its ranks
    differently.
    """
    point = plan.point
    wide = {axis for axis in ("tp", "cp", "dp", "pp") if getattr(point, axis) > 1}
    return tuple(
        replace(plan, point=replace(point, order=order, device_order=host_mapping))
        for order in space.orders_among(wide)
        for host_mapping in space.device_orders
    )


def _tier(name: str, size: int, level: Level) -> Tier:
    return Tier(name, size, level.bandwidth_Bps, level.latency_s)
