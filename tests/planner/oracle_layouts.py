"""Uneven layouts of interleaved stages once more, in plain Python, from the words of docs/method.md
alone; part of the oracle. Every pass is run when those that it waits for are over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

Passes = Sequence[tuple[float, float]]
"""Seconds of a forward and of a backward pass, virtual stage by virtual stage."""


def layouts(layers: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Cuts into so many virtual stages that ``layouts = "uneven"`` opens."""
    for inner in combinations(range(1, layers), parts - 1):
        cuts = (0, *inner, layers)
        sizes = [end - first for first, end in pairwise(cuts)]
        blocks = [sizes[0] - 1, *sizes[1:-1], sizes[-1] - 1]
        first, *middle, last = blocks
        level = len(set(middle)) == 1 and middle[0] > 0 and max(first, last) <= middle[0] + 1
        if level or _one_apart(blocks) or _one_apart(sizes):
            yield cuts


def _one_apart(sizes: Sequence[int]) -> bool:
    """Whether sizes differ by one at most, the larger first, last or spread evenly."""
    low, parts = min(sizes), len(sizes)
    larger = [size - low for size in sizes]
    if max(larger) > 1:
        return False
    more = sum(larger)
    spread = [(at + 1) * more // parts - at * more // parts for at in range(parts)]
    return larger in (sorted(larger), sorted(larger, reverse=True), spread)


def order(pp: int, s: int, m: int, v: int, *, beside: bool) -> list[tuple[str, int, int]]:
    """Passes of a stage: way, micro-batch and which of the stage's virtual stages.

    ``beside``: a forward pass more is ahead, as it runs beside the backward pass that it precedes.
    """
    groups = [range(start, start + pp) for start in range(0, m, pp)]
    forward = [("F", k, at) for group in groups for at in range(v) for k in group]
    backward = [("B", k, at) for group in groups for at in reversed(range(v)) for k in group]
    ahead = min(2 * (pp - s - 1) + (v - 1) * pp + beside, m * v)
    found = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        found += [one, other]
    return found + backward[len(forward) - ahead :]


def last_pass(m: int, stages: Sequence[Passes], *, beside: bool) -> float:
    """When the last pass ends."""
    pp, v = len(stages), len(stages[0])
    over: dict[tuple[str, int, int], float] = {}
    left = [order(pp, s, m, v, beside=beside) for s in range(pp)]
    clock = [0.0] * pp
    while any(left):
        for s, passes in enumerate(left):
            while passes:
                way, k, at = passes[0]
                place = at * pp + s
                needs = ("F", k, place - 1)
                if way == "B":
                    needs = ("B", k, place + 1) if place < pp * v - 1 else ("F", k, place)
                if needs[2] >= 0 and needs not in over:
                    break
                start = max(clock[s], over.get(needs, 0.0))
                clock[s] = over[way, k, place] = start + stages[s][at][way == "B"]
                passes.pop(0)
    return max(clock)


def most_held(pp: int, s: int, m: int, kept: Sequence[float], *, beside: bool) -> float:
    """The most that forward passes keep for backward ones at any time on a stage."""
    held = most = 0.0
    for way, _, at in order(pp, s, m, len(kept), beside=beside):
        held += kept[at] if way == "F" else -kept[at]
        most = max(most, held)
    return most
