"""Dispatch of tokens to experts that sends no token twice where once is enough.

A plain all-to-all sends a token once per expert that it chose. Libraries for experts send it once
to every node that holds any of them, to the device with the sender's place in its own node, which
hands it on inside: once to every device. Coming back, copies are added up on the way. DeepEP counts
hosts, HybridEP what devices reach without a NIC ([1]_, [2]_).

How many copies that leaves follows from how tokens choose. Of ``E`` experts a token takes ``k``,
all alike, so that it passes by a block of ``b`` of them with probability
``C(E - b, k) / C(E, k)``. Node-limited routing first picks ``M`` of ``G`` equal groups of experts
[3]_, and then ``k`` of theirs; blocks of neighbouring experts begin where a group does.

References
----------
.. [1] DeepEP, "Normal kernels": tokens cross RDMA once per node and NVLink once per rank.
.. [2] Megatron Core, ``--moe-flex-dispatcher-backend hybridep``: by NVLink domain.
.. [3] DeepSeek-AI 2024 (arXiv:2412.19437), section 2.1.2, "Node-Limited Routing".
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from nest_core.network.groups import in_parts
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray
from nest_core.network.phases import MessageTime, Phase, Protocol, pipelined, price_phases

__all__ = ["Dispatch", "dispatch_phases", "dispatched"]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """How tokens choose experts, and where each of them is sent once only.

    Parameters
    ----------
    experts, top_k : int
    groups, top_groups : int
        Groups of experts, and how many of them a token's experts lie in at most.
    by_host : bool
        Once per host; else once per node.
    """

    experts: int
    top_k: int
    groups: int = 1
    top_groups: int = 1
    by_host: bool = False

    def blocks(self, network: Network) -> IntArray:
        """Return what a token enters once, of every device; on a torus the device itself."""
        return network.host if self.by_host or network.torus is not None else network.node

    def copies(self, ranks: int, size: int) -> float:
        """Return expected copies of a token in a block of ``ranks`` of the ``size`` that share
        experts,
        per expert that it chose.

        Examples
        --------
        DeepSeek-V3 on eight nodes: so many of them hold one of a token's experts; at most four
        where each holds a group of which four are picked.

        >>> round(8 * 8 * Dispatch(256, 8).copies(8, 64), 2)
        5.29
        >>> round(8 * 8 * Dispatch(256, 8, 8, 4).copies(8, 64), 2)
        3.63
        """
        return _reached(self, ranks * self.experts / size) / self.top_k


@lru_cache(maxsize=4096)
def _reached(dispatch: Dispatch, block: float) -> float:
    """Return the probability that a token chose any of a block of neighbouring experts."""
    group_experts = dispatch.experts // dispatch.groups
    full_groups, rest = divmod(block, group_experts)
    parts, others = int(rest > 0), dispatch.groups - int(full_groups) - int(rest > 0)
    every, passes = comb(dispatch.groups, dispatch.top_groups), 0.0
    for full in range(min(int(full_groups), dispatch.top_groups) + 1):
        for part in range(parts + 1):
            other_groups = dispatch.top_groups - full - part
            if 0 <= other_groups <= others:
                ways = comb(int(full_groups), full) * comb(others, other_groups)
                passes += (ways / every) * _passed_by(
                    dispatch.top_groups * group_experts,
                    full * group_experts + part * rest,
                    dispatch.top_k,
                )
    return 1.0 - passes


def _passed_by(experts: int, block: float, chosen: int) -> float:
    """Return the probability that none of ``chosen`` of the experts is in a block."""
    free = experts - np.arange(chosen, dtype=np.float64)
    return float(np.prod(np.maximum(free - block, 0.0) / free))


def dispatched(
    network: Network,
    groups: IntArray,
    dispatch: Dispatch,
    protocols: tuple[Protocol, ...],
    team: IntArray | None = None,
) -> MessageTime:
    """All-to-alls of all groups at once; ``bytes`` is what each member holds, a copy per expert.

    Raises
    ------
    InputError
        Where one group has too many flows.
    """
    _, counts = np.unique(dispatch.blocks(network), return_counts=True)
    reach = min(size := groups.shape[1], len(counts)) + min(size, int(counts.max()))
    phases = in_parts(groups, size * reach, lambda some: dispatch_phases(network, some, dispatch))
    return price_phases(network.link_map, phases, len(groups), protocols, team)


def dispatch_phases(network: Network, groups: IntArray, dispatch: Dispatch) -> list[Phase]:
    """Flows between blocks and inside them; tokens pass through both at once.

    Members, in order, hold neighbouring experts. Of its own tokens a member sends one copy to
    every other block, to the one with its place there (or, in a smaller block, that of its place
    modulo the members), and those of its own block get theirs from it.
    """
    count, size = groups.shape
    block = dispatch.blocks(network)[groups]
    order = np.argsort(block, axis=1, kind="stable")
    member = np.take_along_axis(groups, order, axis=1).reshape(-1)
    block = np.take_along_axis(block, order, axis=1)
    opens = np.ones((count, size), dtype=bool)
    opens[:, 1:] = block[:, 1:] != block[:, :-1]
    start = np.flatnonzero(opens)
    block_of = np.cumsum(opens) - 1  # every place's block
    block_size = np.diff(np.append(start, count * size))
    row = np.repeat(np.arange(count), size)
    slot = np.arange(count * size) - start[block_of]
    number = opens.sum(axis=1)  # of a row's blocks
    reach = (int(number.max()), int(block_size.max()) - 1)
    copies = np.array([dispatch.copies(ranks, size) for ranks in range(reach[1] + 2)])
    target = (np.cumsum(number) - number)[row][:, None] + np.arange(reach[0])
    is_sent = (np.arange(reach[0]) < number[row][:, None]) & (target != block_of[:, None])
    place, turn = np.nonzero(is_sent)
    target = target[place, turn]
    relay = start[target] + slot[place] % block_size[target]
    between = _phase(member, row, place, relay, copies[block_size[target]])
    handed = copies[1] * (1.0 + np.bincount(relay, minlength=count * size))
    place, step = np.nonzero(np.arange(1, reach[1] + 1) < block_size[block_of][:, None])
    near = start[block_of[place]] + (slot[place] + step + 1) % block_size[block_of[place]]
    phases = [
        phase
        for phase in (between, _phase(member, row, place, near, handed[place]))
        if len(phase.source)
    ]
    return [pipelined(phases)] if len(phases) > 1 else phases


def _phase(
    member: IntArray, row: IntArray, source: IntArray, target: IntArray, volume: FloatArray
) -> Phase:
    return Phase(member[source], member[target], row[source], volume, np.ones(len(source)))
