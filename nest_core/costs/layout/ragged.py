"""Where ranks sit when stages differ in width: `Layout`, with tp and cp stage by stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nest_core.network import FloatArray, IntArray

__all__ = ["overlaps", "ragged_ranks"]


def ragged_ranks(
    degrees: Sequence[tuple[int, int]], dp: int, order: tuple[str, ...]
) -> tuple[IntArray, ...]:
    """Rank numbers of every stage, each of shape (dp * cp, tp), dp slowest.

    Parameters
    ----------
    degrees : sequence of (tp, cp)
        By stage.
    order : tuple of str
        A permutation of `AXES` that begins with tp and cp.

    Examples
    --------
    >>> [stage.tolist() for stage in ragged_ranks([(2, 1), (1, 1)], 2, ("tp", "cp", "pp", "dp"))]
    [[[0, 1], [3, 4]], [[2], [5]]]
    >>> [stage.tolist() for stage in ragged_ranks([(2, 1), (1, 1)], 2, ("tp", "cp", "dp", "pp"))]
    [[[0, 1], [2, 3]], [[4], [5]]]
    """
    widths = [tp * cp for tp, cp in degrees]
    by_replica = order[-1] == "dp"
    groups, before = [], 0
    for (tp, cp), width in zip(degrees, widths, strict=True):
        step = sum(widths) if by_replica else width
        first = before if by_replica else before * dp
        inside = np.arange(width).reshape(cp, tp)
        if order[0] == "cp":
            inside = np.arange(width).reshape(tp, cp).T
        replica = first + step * np.arange(dp)
        groups.append((replica[:, None, None] + inside).reshape(dp * cp, tp))
        before += width
    return tuple(groups)


def overlaps(before: int, after: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Pieces of a whole that one side holds in ``before`` equal parts, the other in ``after``.

    Returns
    -------
    part on the left, part on the right, share of the whole; each of shape (pieces,)

    Examples
    --------
    >>> [column.tolist() for column in overlaps(4, 2)]
    [[0, 1, 2, 3], [0, 0, 1, 1], [0.25, 0.25, 0.25, 0.25]]
    """
    common = int(np.lcm(before, after))
    edges = np.union1d(
        np.arange(0, common, common // before), np.arange(0, common, common // after)
    )
    share = np.diff(np.append(edges, common)) / common
    return edges // (common // before), edges // (common // after), share
