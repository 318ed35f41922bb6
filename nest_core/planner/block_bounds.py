"""What the innermost collectives take at least on a torus: those of one block of ranks, alone.

Where tensor and context parallelism are the innermost axes and ranks sit in the fabric's own
order, the groups of either are those of whole blocks of ``tp * cp`` devices, one after another,
whatever the other degrees.

Notes
-----
No plan beats this bound. All groups of a class send at once, so a block's own flows are among
those that share its links, and a link's load only grows with the others; routes do not depend on
load. A stage waits for the slowest of its groups, hence for each of its blocks, and no block is
faster than the fastest of all, alone. That holds for every regime's seconds before the first byte
and per byte, each, and therefore for the best regime at any size. On a torus regimes do not
depend on where a group sits, and a route is given by its moves: blocks whose members lie alike,
seen from their first, are translations of one another and take the same, so that one of a kind
is placed.
"""

from __future__ import annotations

import numpy as np

from nest_core.costs import Point, Problem, links
from nest_core.network import FloatArray, IntArray, Kind, MessageTime, TorusShape
from nest_core.planner.space import SearchSpace

__all__ = ["BlockBounds"]

_ORDER = ("tp", "cp", "dp", "pp")


class BlockBounds:
    """Lower bounds of collectives inside blocks, each placed once.

    Parameters
    ----------
    problem : Problem
    space : SearchSpace
    """

    def __init__(self, problem: Problem, space: SearchSpace) -> None:
        self._problem = problem
        self._known = (
            problem.network.torus is not None
            and set(space.device_orders) == {"natural"}
            and all(order[:2] == _ORDER[:2] for order in space.orders)
        )
        self._found: dict[tuple[str, Kind, int, int], MessageTime] = {}

    def seconds(
        self, axis: str, kind: Kind, width: tuple[int, int], size: FloatArray
    ) -> FloatArray:
        """The least seconds of one call in blocks of ``width`` (tp, cp), by bytes.

        0 where nothing is known: on other fabrics, of blocks wider than the fabric, and of experts.
        """
        tp, cp = width
        fits = tp * cp <= self._problem.network.devices
        if not self._known or not fits or axis not in ("tp", "cp"):
            return np.zeros_like(size)
        key = (axis, kind, tp, cp if axis == "cp" else 1)
        if key not in self._found:
            self._found[key] = self._least(*key)
        return np.asarray(self._found[key].along(size.ndim).seconds(size[None])[0])

    def _least(self, axis: str, kind: Kind, tp: int, cp: int) -> MessageTime:
        """One member: the least of every block, regime by regime."""
        network = self._problem.network
        every = np.arange(network.devices // (tp * cp) * tp * cp).reshape(-1, tp * cp)
        if network.torus is not None:
            every = _distinct(network.torus, network.place, every)
        alone = [
            links(
                self._problem,
                Point(tp, False, 1, 1, 1, 0, _ORDER, tuple(block), cp),
            ).time(axis, kind)
            for block in every.tolist()
        ]
        return MessageTime(
            np.min([time.alpha_s for time in alone], axis=0),
            np.min([time.beta_s_per_byte for time in alone], axis=0),
        )


def _distinct(shape: TorusShape, place: IntArray, blocks: IntArray) -> IntArray:
    """One block of each kind, (kinds, members): of those that are translations of one another."""
    moves = shape.moves(place[blocks[:, :1]], place[blocks])
    kind = moves.transpose(1, 0, 2).reshape(len(blocks), -1)
    _, first = np.unique(kind, axis=0, return_index=True)
    return np.asarray(blocks[np.sort(first)])
