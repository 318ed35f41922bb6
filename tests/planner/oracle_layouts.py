"""Virtual stages once more, interleaved or in a V, in plain Python, from the words of
docs/method.md alone; part of the oracle. Every pass is run when those that it waits for are over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

Passes = Sequence[tuple[float, ...]]
"""Seconds of a forward and of a backward pass, and of one for gradients of weights where that is
another, virtual stage by virtual stage."""

Turns = list[list[tuple[str, int, int]]]
"""What a stage runs: way (F, B, W), micro-batch and which of its virtual stages; passes that run
together in one list."""

V_SHAPED = ("zbv", "dualpipev")
SPLIT = (*V_SHAPED, "interleaved_zb")


def chain(schedule: str, pp: int, s: int, v: int) -> list[int]:
    """Places in the chain of a stage's virtual stages."""
    return [s, 2 * pp - 1 - s] if schedule in V_SHAPED else [at * pp + s for at in range(v)]


def turns(schedule: str, pp: int, s: int, m: int, v: int, *, beside: bool) -> Turns:
    """Return what a stage runs, one after another."""
    if schedule == "interleaved_zb":
        return [[one] for one in with_weights(pp, s, m, v)]
    if schedule not in V_SHAPED:
        return [[one] for one in order(pp, s, m, v, beside=beside)]
    done: Counter[str] = Counter()
    found: Turns = []

    def run(*passes: str) -> None:
        found.append([(name[0], done[name], int(name[1])) for name in passes])
        done.update(passes)

    (zbv if schedule == "zbv" else dualpipev)(run, done, pp, s, m)
    return [group for group in found if group[0][1] < m]


def with_weights(pp: int, s: int, m: int, v: int) -> list[tuple[str, int, int]]:
    """Interleaved, with half as many passes ahead for each stage behind, and gradients of weights
    as many passes late as stages are before."""
    forward = [one for one in order(pp, s, m, v, beside=False) if one[0] == "F"]
    backward = [one for one in order(pp, s, m, v, beside=False) if one[0] == "B"]
    ahead = min(pp - 1 - s + (v - 1) * pp, m * v)
    found = forward[:ahead]
    for number in range(m * v + s):
        found += forward[ahead + number : ahead + number + 1] + backward[number : number + 1]
        found += [("W", k, at) for _, k, at in backward[: number - s + 1][-1:] if number >= s]
    return found


def zbv(run: Any, done: Counter[str], pp: int, s: int, m: int) -> None:
    """As many as fill the V, of which some may not be there."""
    m = max(m, 2 * pp - 1)
    while done["F0"] < 2 * (pp - s) - 1:
        run("F0")
    while done["F1"] < s:
        run("F1")
        run("F0")
    while done["F1"] < m:
        filled = done["F1"] >= pp
        if filled and done["F0"] < m:
            run("F0")
        for name in (*(["B0", "W0"] if filled else []), "F1", "B1", "W1"):
            run(name)
    while done["B1"] < m:
        run("B0")
        run("B1")
    while done["B0"] < m:
        run("B0")
        run("W0")
    for name in ("W1", "W0"):
        while done[name] < m:
            run(name)


def dualpipev(run: Any, done: Counter[str], pp: int, s: int, m: int) -> None:
    """Forward passes beside backward passes of the other virtual stage."""
    after = pp - 1 - s
    while done["F0"] < 2 * after:
        run("F0")
    while done["F1"] <= s:
        run("F0")
        run("F1")
    while done["B1"] < after:
        for name in ("B1", "W1", "F1"):
            run(name)
    while done["F1"] < m:
        if done["F0"] == m:
            run("B1", "W1")
        elif after or done["B1"]:
            run("F0", "B1", "W1")
        else:
            run("F0")
            run("B1", "W1")
        run("F1", "B0", "W0")
    late = []
    for number in range(2 * (s + 1)):
        at = 1 - number % 2
        if number <= s:
            run(f"B{at}", f"W{at}")
        else:
            run(f"B{at}")
            late.append(f"W{at}")
    while done["B0"] < m:
        run(late.pop(0))
        run("B0")
        late.append("W0")
    for name in late:
        run(name)


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


def last_pass(schedule: str, m: int, stages: Sequence[Passes], *, beside: bool) -> float:
    """When the last pass ends."""
    pp, v = len(stages), len(stages[0])
    over: dict[tuple[str, int, int], float] = {}
    left = [turns(schedule, pp, s, m, v, beside=beside) for s in range(pp)]
    clock = [0.0] * pp
    while any(left):
        for s, groups in enumerate(left):
            places = chain(schedule, pp, s, v)
            while groups:
                needs = [
                    need
                    for way, k, at in groups[0]
                    if (need := _awaited(way, k, places[at], pp * v - 1))
                ]
                if any(need not in over for need in needs):
                    break
                clock[s] = max([clock[s], *(over[need] for need in needs)])
                clock[s] += sum(stages[s][at]["FBW".index(way)] for way, _, at in groups[0])
                over |= {(way, k, places[at]): clock[s] for way, k, at in groups.pop(0)}
    return max(clock)


def _awaited(way: str, k: int, place: int, last: int) -> tuple[str, int, int] | None:
    """The pass elsewhere in the chain that one waits for."""
    if way == "F":
        return ("F", k, place - 1) if place else None
    if way == "B":
        return ("B", k, place + 1) if place < last else ("F", k, place)
    return None


def most_held(
    schedule: str,
    pp: int,
    s: int,
    m: int,
    kept: Sequence[float],
    again: Sequence[float],
) -> float:
    """The most that forward passes keep for backward ones at any time on a stage, and those
    ``again`` for gradients of weights that wait."""
    held = most = 0.0
    for group in turns(schedule, pp, s, m, len(kept), beside=False):
        ways = [way for way, _, _ in group]
        for way, _, at in group:
            late = again[at] if schedule in SPLIT and ways.count("W") != ways.count("B") else 0.0
            held += {"F": kept[at], "B": late - kept[at], "W": -late}[way]
            most = max(most, held)
    return most
