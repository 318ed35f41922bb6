"""The blackboard example: four layers, two nodes of two devices, a table that fills backwards.

``docs/method.md``, "On a blackboard". Layers take seconds per micro-batch, forward and backward;
between them flow units of data, and as many back as gradients. What a unit takes between two
devices follows from the level at which they meet, so a cell of the table asks for the level of
the link to the stage before, not for that stage's device (NEST, MLSys 2026, section 4, figure 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from nest_core.costs import Plan, Point, Report, price
from nest_core.lessons.teaching import ORDER, bare_chain
from nest_core.network import Network, collapse
from nest_core.topology import Hierarchical, Tier

__all__ = [
    "LAYERS",
    "MICRO_BATCHES",
    "OBJECTIVES",
    "SEATINGS",
    "SECONDS",
    "STAGES",
    "UNITS",
    "Candidate",
    "Cell",
    "cells",
    "chosen_cuts",
    "hop_seconds",
    "levels_between",
    "network",
    "priced",
]

SECONDS = (6.0, 6.0, 3.0, 5.0)
UNITS = (0.0, 3.0, 2.0, 2.0, 0.0)
"""Data that enters layer ``i``; none at either end."""
LAYERS = len(SECONDS)
STAGES = 3
MICRO_BATCHES = 4

SEATINGS = {"012": (0, 1, 2), "123": (1, 2, 3)}
"""Devices of stages 0, 1 and 2: which link crosses from one node to the other."""

OBJECTIVES: dict[str, Callable[[float, float], float]] = {
    "sum": lambda load, rest: load + rest,
    "slowest": max,
}
"""What a cell holds: the sum of the stages' loads, or the slowest stage (the paper's)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to fill a cell.

    Parameters
    ----------
    end : int
        The stage takes the layers up to this one, exclusive.
    load : float
        Seconds of the stage.
    rest : float
        The cell that it goes on with; 0 after the last stage.
    total : float
    """

    end: int
    load: float
    rest: float
    total: float


@dataclass(frozen=True, slots=True)
class Cell:
    """Least seconds from a stage on.

    Parameters
    ----------
    stage, first : int
        The stage, and the first of its layers.
    level : int or None
        Of the link to the stage before; None for the first stage.
    candidates : tuple of Candidate
        All cuts that leave a layer for every later stage.
    """

    stage: int
    first: int
    level: int | None
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The least; the earliest cut among equals."""
        return min(self.candidates, key=lambda one: one.total)


@cache
def network() -> Network:
    """Two nodes of two devices; a "byte" is a unit of data."""
    tiers = (Tier("node", 2, 2.0, 0.0, "device"), Tier("rack", 2, 1.0, 0.0, "child"))
    return collapse(Hierarchical("blackboard", tiers))


def hop_seconds() -> tuple[float, ...]:
    """Seconds per unit over a link of each level, innermost first."""
    return tuple(1.0 / level.single_flow_Bps for level in network().levels)


def levels_between(seating: str) -> tuple[int, ...]:
    """Level of the link into stages 1 and 2."""
    devices = np.array(SEATINGS[seating])
    return tuple(network().level(devices[:-1], devices[1:]).tolist())


@cache
def cells(seating: str, objective: str) -> tuple[Cell, ...]:
    """The table, in the order in which it is filled: last stage first, its last layers first.

    Parameters
    ----------
    seating : str
        Of `SEATINGS`.
    objective : str
        Of `OBJECTIVES`.
    """
    combine, between = OBJECTIVES[objective], levels_between(seating)
    known: dict[tuple[int, int, int | None], Cell] = {}
    for stage in reversed(range(STAGES)):
        after = between[stage] if stage < STAGES - 1 else None
        firsts = [0] if stage == 0 else range(LAYERS - STAGES + stage, stage - 1, -1)
        for first in firsts:
            for level in range(len(hop_seconds())) if stage else [None]:
                found = []
                for end in _ends(stage, first):
                    load = _load(first, end, level, after)
                    rest = known[stage + 1, end, after].best.total if after is not None else 0.0
                    total = combine(load, rest) if after is not None else load
                    found.append(Candidate(end, load, rest, total))
                known[stage, first, level] = Cell(stage, first, level, tuple(found))
    return tuple(known.values())


def _ends(stage: int, first: int) -> list[int]:
    """Where a stage may end: every later stage keeps a layer, the last takes all."""
    if stage == STAGES - 1:
        return [LAYERS]
    return list(range(first + 1, LAYERS - (STAGES - 1 - stage) + 1))


def _load(first: int, end: int, before: int | None, after: int | None) -> float:
    hops = hop_seconds()
    arrives = hops[before] * UNITS[first] if before is not None else 0.0
    returns = hops[after] * UNITS[end] if after is not None else 0.0
    return sum(SECONDS[first:end]) + arrives + returns


def chosen_cuts(seating: str, objective: str) -> tuple[int, ...]:
    """The cuts that the full table leads to, read from the first stage on."""
    table = {(cell.stage, cell.first, cell.level): cell for cell in cells(seating, objective)}
    between = (None, *levels_between(seating))
    cuts = [0]
    for stage in range(STAGES):
        cuts.append(table[stage, cuts[-1], between[stage]].best.end)
    return tuple(cuts)


def priced(seating: str, cuts: tuple[int, ...]) -> Report:
    """The plan with these cuts, priced by the one judge of every plan."""
    point = Point(1, False, 1, len(cuts) - 1, 1, 0, ORDER, device_order=_order(seating))
    chain = bare_chain(network(), SECONDS, (0.0,) * LAYERS, UNITS, MICRO_BATCHES)
    return price(chain, Plan(point, cuts, ("none",) * point.pp))


def _order(seating: str) -> tuple[int, ...]:
    used = SEATINGS[seating]
    return (*used, *(device for device in range(network().devices) if device not in used))
