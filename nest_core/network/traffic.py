"""Times of transfers and collectives that run at once, counted link by link.

Everything is affine in the message: ``time = alpha_s + beta_s_per_byte * bytes``. What makes
a fabric a fabric is in beta: how many of the flows that the placement really sends in a step
leave through the same uplink bundle.

Rules
-----
* A flow that meets its peer at level ``l`` crosses the uplinks of levels 0..l; over an uplink
  with ``f`` simultaneous flows of ``x`` bytes it takes ``x * max(1/single_flow, f/capacity)``,
  and the slowest uplink counts.
* Reduce-scatter and all-gather are hierarchical: at level ``l`` the group's members exchange
  ``(n_l - 1)/n_l`` of the shard that the levels inside left, in ``ceil(log2 n_l)`` steps
  (Thakur, Rabenseifner and Gropp 2005); the levels follow one another. All-reduce is both.
  Where a group occupies blocks unevenly, the largest fan-in sets the exchange and the
  smallest the shard.
* On a torus a group is a ring in device order; every step costs the longest of its edges,
  whose links are shared by as many flows as the edge has hops.
* A set of groups or flows gets the slowest alpha and the slowest beta among its members.

Sources: ``docs/method.md``, section "Network".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nest_core.network.levels import IntArray, Network

__all__ = ["Affine", "FloatArray", "collectives", "transfers"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Affine:
    """``alpha_s + beta * bytes`` for several members of a traffic class (arrays, or 0-d)."""

    alpha_s: FloatArray
    beta_s_per_byte: FloatArray

    def slowest(self, owner: IntArray, owners: int) -> Affine:
        """Slowest alpha and slowest beta of the members of each owner; zeros where none."""
        alpha = np.zeros(owners)
        beta = np.zeros(owners)
        np.maximum.at(alpha, owner, self.alpha_s)
        np.maximum.at(beta, owner, self.beta_s_per_byte)
        return Affine(alpha, beta)


def _shared(
    network: Network, members: IntArray, sends: npt.NDArray[np.bool_], top: int
) -> FloatArray:
    """Seconds per byte of each member's flow that climbs to level ``top``; 0 where silent.

    ``members`` and ``sends`` have one shape; all senders send at once.
    """
    slowest = np.zeros(members.shape)
    flat = members[sends]
    for index in range(top + 1):
        level = network.levels[index]
        child = network.blocks(members, index - 1)
        flows = np.bincount(network.blocks(flat, index - 1), minlength=int(child.max()) + 1)[child]
        np.maximum(slowest, flows / level.capacity_Bps, out=slowest)
        np.maximum(slowest, 1.0 / level.single_flow_Bps, out=slowest)
    return np.where(sends, slowest, 0.0)


def transfers(network: Network, source: IntArray, target: IntArray) -> Affine:
    """Point-to-point flows that run at once, one per element.

    The reverse flows (gradients) cost the same: uplinks are full duplex and the counts of
    both ends are taken.
    """
    met = network.level(source, target)
    if network.torus is not None:
        first = network.levels[0]
        hops = (met + 1).astype(np.float64)
        return Affine(hops * first.latency_s, hops / first.link_bandwidth_Bps)
    latency = np.array([level.latency_s for level in network.levels])
    beta = np.zeros(source.shape)
    for top in range(len(network.levels)):
        climbs = met >= top
        if not climbs.any():
            break
        level = network.levels[top]
        for end in (source, target):
            child = network.blocks(end, top - 1)
            flows = np.bincount(child[climbs], minlength=int(child.max()) + 1)[child]
            np.maximum(beta, np.where(climbs, flows / level.capacity_Bps, 0.0), out=beta)
        np.maximum(beta, np.where(climbs, 1.0 / level.single_flow_Bps, 0.0), out=beta)
    return Affine(np.where(met >= 0, latency[met], 0.0), beta)


def collectives(network: Network, groups: IntArray) -> Affine:
    """Reduce-scatter (or all-gather) of every group at once.

    Parameters
    ----------
    groups : int array, shape (groups, members)
        Device ids, ascending along the second axis.

    Returns
    -------
    Affine
        One entry per group; ``bytes`` is the whole buffer that each member holds before the
        reduce-scatter or after the all-gather. An all-reduce takes both: twice.
    """
    count, size = groups.shape
    alpha = np.zeros(count)
    beta = np.zeros(count)
    if size == 1:
        return Affine(alpha, beta)
    if network.torus is not None:
        first = network.levels[0]
        hops = network.torus.hops(groups, np.roll(groups, -1, axis=1)).max(axis=1)
        steps = size - 1
        return Affine(
            steps * hops * first.latency_s, (steps / size) * hops / first.link_bandwidth_Bps
        )
    shard = np.ones(count)
    rows = np.arange(count)[:, None]
    leader = np.ones(groups.shape, dtype=bool)  # the first member of each block inside
    for index, level in enumerate(network.levels):
        block = network.blocks(groups, index)
        opens = np.ones(groups.shape, dtype=bool)
        opens[:, 1:] = block[:, 1:] != block[:, :-1]
        ordinal = rows * size + np.cumsum(opens, axis=1) - 1
        fan = np.bincount(ordinal[leader], minlength=count * size).reshape(count, size)
        most = fan.max(axis=1)
        least = np.where(fan > 0, fan, size).min(axis=1)
        sends = np.broadcast_to((most > 1)[:, None], groups.shape)
        if sends.any():
            slowest = _shared(network, groups, sends, index).max(axis=1)
            alpha += np.ceil(np.log2(most)) * level.latency_s
            beta += (most - 1) / most * shard * slowest
        shard = shard / least
        leader = opens
    return Affine(alpha, beta)
