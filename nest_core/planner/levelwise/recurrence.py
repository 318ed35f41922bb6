"""The level-wise recurrence, solved for the furthest suffix under caps.

The paper's table ``dp[l][i][k][e]`` is the least bottleneck of ``e`` stages from layer ``i`` to the
end on ``k`` devices, the producer at level ``l``. Here it is transposed: under a cap on a stage's
load and one on its synchronisation

    ``F[e][k][h]`` = least ``i`` such that ``e`` stages hold layers ``i`` to the end, their producer
    starts at place ``k`` and is met over a hop of class ``h``
    = min over choices c that fit, and the class h' of the hop to the consumer, of
    ``first(F[e - 1][k'][h']; c, e, h, h')`` over all places k' with a hop of class h between the
    stage there, of c's width, and ``k``

with ``first(J; ...)`` the first layer of the longest stage that ends before ``J``. A hop's class is
the level at which two stages meet, and both widths.

Two stages meet at the largest of three levels: between the devices where one ends and the next
starts, and inside either. An *end* of a hop is 0 without one, else ``1 + level * W`` plus the width
of the stage at the other end, by its number among ``W`` widths; there are ``U`` ends.

It knows nothing of what stages cost: own costs (`nest_core.planner.levelwise.limits`) and any other
come, before each step, as the longest stages that they allow.
"""

from collections import namedtuple

import numpy as np

from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, IntArray

__all__ = ["NEVER", "Places", "Suffixes", "begin", "ends_wanted", "extend", "suffixes", "trace"]

NEVER = 1 << 30
"""More than any layer."""


Places = namedtuple("Places", "ends between inner gapless")
"""Where stages may sit; ``W`` widths, ``K`` places, counted from the last stage's end.

Attributes
----------
ends : (W, K)
    The first place after a stage that starts here; -1 where none may.
between : (K,)
    Level between a place and the one before.
inner : (W,)
    Level inside a stage; 0 where ``between`` has it already.
gapless : bool
    Whether no place may be left out.
"""


Suffixes = namedtuple("Suffixes", "layer came chosen")
"""The table, each of shape (S + 1, K, W, U): stages, place, and the hop from the consumer.

``layer`` is ``F`` where the consumer has that width and meets its producer at that end;
``came``, ``chosen`` say from which place, class and choice.
"""


def suffixes(stages: int, p: Places, ends: int) -> Suffixes:
    """Room for suffixes of up to so many stages."""
    shape = (stages + 1, p.ends.shape[1], len(p.ends), ends)
    return Suffixes(*(np.empty(shape, dtype=np.int64) for _ in range(3)))


@compiled
def begin(p: Places, table: Suffixes, layers: int) -> tuple[int, int, int, int]:
    """Write down where the suffix without stages is, and return the end of no plan."""
    table.layer[0] = NEVER
    table.layer[0, : 1 if p.gapless else len(p.between), 0, 0] = layers
    return 0, 0, 0, 0


@compiled
def ends_wanted(table: Suffixes, e: int, wanted: BoolArray) -> bool:
    """Write down before which layers stages end that have ``e - 1`` behind them; whether any does.

    Parameters
    ----------
    wanted : (W, U, L + 1)
        By the stage's width, and its end of the hop to the consumer.
    """
    ahead, (widths, hops, width) = table.layer[e - 1], wanted.shape
    wanted[:] = some = False
    for x in range(widths):
        for down in range(hops):
            if (down == 0) == (e == 1):
                other, end = _state(down, x, widths)
                for k in range(len(ahead)):
                    if ahead[k, other, end] < width:
                        wanted[x, down, ahead[k, other, end]] = some = True
    return some


@compiled
def extend(
    p: Places, table: Suffixes, e: int, target: int, best: IntArray, pick: IntArray
) -> tuple[int, int, int, int]:
    """Put a stage before suffixes of ``e - 1``.

    Parameters
    ----------
    target : int
        Above 0: a plan has just so many stages.
    best, pick : (W, U, U, L + 1)
        First layer of the longest stage of a width, and its choice, by its ends towards the
        producer and the consumer and by the layer that it ends before; read where
        `ends_wanted` has it.

    Returns
    -------
    tuple of int
        Number of stages if they hold all layers, the first one's place, the hop behind it, and
        choice; else zeros.
    """
    layer, (widths, hops) = table.layer, best.shape[:2]
    places = len(p.between)
    layer[e] = NEVER
    for x in range(widths):
        for down in range(hops):
            if (down == 0) != (e == 1):
                continue
            other, end = _state(down, x, widths)
            for k in range(places if e >= target else 0):
                j, last = layer[e - 1, k, other, end], p.ends[x, k]
                if j == NEVER or last < 0 or (p.gapless and last < places):
                    continue
                if best[x, 0, down, j] == 0:
                    return e, k, other * hops + end, pick[x, 0, down, j]
        for up in range(1, hops):
            _spread(p, x, up, e, table, best, pick)
    return 0, 0, 0, 0


@compiled
def _state(down: int, x: int, widths: int) -> tuple[int, int]:
    """Return the consumer's width, and its own end of the hop, by that of a producer of width
    ``x``.
    """
    if down == 0:
        return 0, 0
    level, other = (down - 1) // widths, (down - 1) % widths
    return other, 1 + level * widths + x


@compiled
def _spread(
    p: Places,
    x: int,
    up: int,
    e: int,
    table: Suffixes,
    best: IntArray,
    pick: IntArray,
) -> None:
    """Stages of width ``x`` that would meet their producers at the end ``up``, at any place."""
    layer, came, chosen = table
    (widths, places), hops = p.ends.shape, layer.shape[3]
    met, inside = (up - 1) // widths, max(p.inner[x], p.inner[(up - 1) % widths])
    if inside > met:
        return
    value = np.full(places, NEVER)  # of what ends at a place
    start, option = np.zeros(places, dtype=np.int64), np.zeros(places, dtype=np.int64)
    for down in range(hops):
        if (down == 0) != (e == 1):
            continue
        other, end = _state(down, x, widths)
        for k in range(places):
            j, last = layer[e - 1, k, other, end], p.ends[x, k]
            if j == NEVER or j == 0 or last < 0 or last >= places:
                continue
            if best[x, up, down, j] < value[last]:
                value[last] = best[x, up, down, j]
                start[last] = (k * widths + other) * hops + end
                option[last] = pick[x, up, down, j]
    near, near_from, near_pick = NEVER, 0, 0  # producers at this place would be at a nearer level
    far, far_from, far_pick = NEVER, 0, 0
    for k in range(1, places):
        if p.gapless:
            near, far = NEVER, NEVER
        if value[k] < near:
            near, near_from, near_pick = value[k], start[k], option[k]
        if p.between[k] > met:
            near, far = NEVER, NEVER
        elif max(p.between[k], inside) == met:
            if near < far:
                far, far_from, far_pick = near, near_from, near_pick
            near = NEVER
        if far < layer[e, k, x, up]:
            layer[e, k, x, up], came[e, k, x, up], chosen[e, k, x, up] = far, far_from, far_pick


@compiled
def trace(table: Suffixes, end: tuple[int, int, int, int], plan: IntArray) -> None:
    """Write down what `extend` found, first stage first.

    Parameters
    ----------
    plan : (5, S + 1)
        Cuts; then stage by stage choices, places, and ends towards the producer and the consumer.
    """
    layer, came, chosen = table
    stages, k, state, o = end
    widths, hops = layer.shape[2], layer.shape[3]
    i, up = 0, 0
    for s in range(stages):
        e = stages - s
        other, meets = state // hops, state % hops
        down = 0  # the same hop from this end
        if e > 1:
            down = 1 + (meets - 1) // widths * widths + other
        j = layer[e - 1, k, other, meets]
        plan[0, s], plan[0, s + 1], plan[1, s], plan[2, s] = i, j, o, k
        plan[3, s], plan[4, s] = up, down
        if e > 1:
            o, before = chosen[e - 1, k, other, meets], came[e - 1, k, other, meets]
            i, up = j, meets
            k, state = before // (widths * hops), before % (widths * hops)
