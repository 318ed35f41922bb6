"""The order in which a stage runs its forward and backward passes.

`nest_core.costs.schedules` names the schedules. GPipe runs all forward passes first. 1F1B runs as
many as there are stages behind it, then alternates. The interleaved schedule does the same with
passes of chunks, which it takes in groups of ``pp`` micro-batches, chunk after chunk (Narayanan et
al. 2021, SC, figure 4), twice as far ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.costs.plan import Point

__all__ = ["Pass", "passes"]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of one micro-batch over one chunk.

    Parameters
    ----------
    forward : bool
    micro_batch : int
    chunk : int
        Along the whole pipeline: stage ``s`` holds chunks ``s``, ``s + pp``, …
    """

    forward: bool
    micro_batch: int
    chunk: int


def passes(point: Point, micro_batches: int, stage: int) -> list[Pass]:
    """Passes of a stage, first to last.

    Examples
    --------
    >>> point = Point(1, False, 1, 2, 1, 0, ("tp", "cp", "dp", "pp"))
    >>> [("FB"[not p.forward], p.micro_batch) for p in passes(point, 2, 0)]
    [('F', 0), ('F', 1), ('B', 0), ('B', 1)]
    """
    pp, v = point.pp, point.interleave
    total = micro_batches * v
    ahead = pp - 1 - stage
    if point.schedule == "gpipe":
        warm = total
    elif point.schedule == "interleaved":
        warm = min(total, 2 * ahead + (v - 1) * pp)
    else:
        warm = min(total, ahead)
    forward = [_nth(point, k, stage, True) for k in range(total)]
    backward = [_nth(point, k, stage, False) for k in range(total)]
    order = forward[:warm]
    for ran, one in enumerate(forward[warm:]):
        order += [one, backward[ran]]
    return order + backward[total - warm :]


def _nth(point: Point, k: int, stage: int, forward: bool) -> Pass:
    pp, v = point.pp, point.interleave
    if v == 1:
        return Pass(forward, k, stage)
    group, within = divmod(k, pp * v)
    turn, place = divmod(within, pp)
    return Pass(forward, group * pp + place, (turn if forward else v - 1 - turn) * pp + stage)
