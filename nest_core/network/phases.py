"""Times of flows that run at once, counted link by link.

A collective is a sequence of *phases*; a phase is a set of flows that run at the same time,
each with its volume (part of the buffer) and its number of steps. A link group with load ``L`` and
capacity ``C`` takes ``L / C``; a flow takes as long as the slowest link group on its way, or as its
own volume over one link. Against max-min-fair simulation of explicit fabrics this agrees to
0.1 % (``docs/method.md``, "Network").

Everything is affine in the message for one algorithm and protocol; a library picks the fastest,
so a time is the minimum over such *regimes*.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from nest_core.documents.errors import require
from nest_core.network.kernels import (
    Flows,
    Links,
    add_seconds,
    busiest,
    loaded,
    longest,
    slowest,
    tallied,
)
from nest_core.network.link_map import FloatArray, IntArray, LinkMap
from nest_core.network.tree import TreeLinkMap

__all__ = [
    "IDEAL",
    "MessageTime",
    "Phase",
    "PhaseParts",
    "Protocol",
    "check_size",
    "columns_of",
    "merged",
    "pipelined",
    "price_phases",
]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a communication library adds to the links: one regime of its message sizes.

    Parameters
    ----------
    base_s : float
        Once per collective.
    step_inside_s, step_outside_s : float
        Per step, beside the fabric's own latency, inside a node and between nodes.
    inside, outside : float
        Part of the links' bandwidth that it reaches. Above 1 where switches reduce: relative to
        what a ring sends.
    steps_inside : float or None
        Steps inside a node in place of the algorithm's own.
    steps_outside : float or None
        Steps between nodes in place of the algorithm's own, where switches take part.
    tree : bool
        Whether it runs all-reduces over two nodes along trees, too.
    """

    base_s: float = 0.0
    step_inside_s: float = 0.0
    step_outside_s: float = 0.0
    inside: float = 1.0
    outside: float = 1.0
    steps_inside: float | None = None
    steps_outside: float | None = None
    tree: bool = False


IDEAL = (Protocol(),)

MOST_BYTES = 1e30


def check_size(size: float) -> None:
    """Refuse messages that are no number of bytes."""
    require(
        0 <= size <= MOST_BYTES,
        "bytes",
        f"must be a finite number between 0 and {MOST_BYTES:g}",
        size,
        "correct it",
    )


@dataclass(frozen=True, slots=True, eq=False)
class MessageTime:
    """Seconds against bytes: ``min over regimes of alpha_s + beta_s_per_byte * bytes``.

    ``alpha_s`` and ``beta_s_per_byte`` have shape (regimes, members).
    """

    alpha_s: FloatArray
    beta_s_per_byte: FloatArray

    @classmethod
    def nothing(cls, members: int) -> Self:
        """No traffic: zero whatever the size."""
        return cls(np.zeros((1, members)), np.zeros((1, members)))

    def seconds(self, size: npt.ArrayLike) -> FloatArray:
        """Time of messages of ``size`` bytes, shape of ``size`` broadcast with (members,).

        Where there is no way, beta is infinite: bytes take for ever, and none still take none.
        """
        size = np.asarray(size, dtype=np.float64)
        members = self.alpha_s.shape[1:]
        shape = (len(self.alpha_s), *(1,) * (size.ndim - len(members)), *members)
        alpha, beta = self.alpha_s.reshape(shape), self.beta_s_per_byte.reshape(shape)
        if np.isinf(beta).any():
            beta = np.where(size > 0, beta, 0.0)
        return np.asarray((alpha + beta * size).min(axis=0))

    def along(self, axes: int) -> MessageTime:
        """Return the same members with trailing axes of length one, to broadcast against sizes."""
        shape = (*self.alpha_s.shape, *(1,) * axes)
        return MessageTime(self.alpha_s.reshape(shape), self.beta_s_per_byte.reshape(shape))

    def repeated(self, members: int) -> MessageTime:
        """One member's time for each of so many."""
        return MessageTime(
            np.repeat(self.alpha_s, members, axis=1),
            np.repeat(self.beta_s_per_byte, members, axis=1),
        )

    def split(self, sizes: list[int]) -> list[MessageTime]:
        """Return the regimes in consecutive parts."""
        edges = np.cumsum([0, *sizes])
        return [
            MessageTime(self.alpha_s[a:b], self.beta_s_per_byte[a:b])
            for a, b in itertools.pairwise(edges.tolist())
        ]

    def fastest(self, *others: MessageTime) -> MessageTime:
        """Return the choice between several ways to do the same."""
        every = (self, *others)
        return MessageTime(
            np.concatenate([entry.alpha_s for entry in every]),
            np.concatenate([entry.beta_s_per_byte for entry in every]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Flows that run at once.

    Parameters
    ----------
    source, target, owner : int array (flows,)
        Devices, and the group that the flow works for.
    volume : float array (flows,)
        Bytes of the whole phase per byte of buffer.
    steps : float array (flows,)
        Latencies paid one after another.
    turn : int array (flows,) or None
        Where the first bytes of some flows wait for those of others, as chunks that pass through
        the levels of a fabric do: latencies of the turns 0, 1, … add up, and of flows in one turn
        the longest counts. None: all in one.
    """

    source: IntArray
    target: IntArray
    owner: IntArray
    volume: FloatArray
    steps: FloatArray
    turn: IntArray | None = None


PhaseParts = Callable[[], Iterator[Phase]]
"""Flows that run at once and are too many to be listed at once; they are listed twice."""


def merged(phases: list[Phase]) -> Phase:
    """Phases that run at once, as one."""
    if len(phases) == 1:
        return phases[0]
    return Phase(
        np.concatenate([phase.source for phase in phases]),
        np.concatenate([phase.target for phase in phases]),
        np.concatenate([phase.owner for phase in phases]),
        np.concatenate([phase.volume for phase in phases]),
        np.concatenate([phase.steps for phase in phases]),
    )


def pipelined(phases: list[Phase]) -> Phase:
    """Phases through which the chunks of a buffer pass: all send at once, and start in turn."""
    turn = np.repeat(np.arange(len(phases)), [len(phase.source) for phase in phases])
    return replace(merged(phases), turn=turn)


def price_phases(
    link_map: LinkMap,
    phases: Sequence[Phase | PhaseParts],
    owners: int,
    protocols: tuple[Protocol, ...] = IDEAL,
    team: IntArray | None = None,
) -> MessageTime:
    """Time of phases that follow one another, for every owner, one regime per protocol.

    Parameters
    ----------
    phases : sequence of Phase or callable () -> iterator of Phase
        Of parts that run at once every owner's flows are in one.
    team : int array (owners,), optional
        Owners that wait for one another; times are then those of the teams, the slowest alpha
        and the slowest beta among their owners.

    Notes
    -----
    Under static ECMP the mean over the fabric's hash draws, of the slowest in each draw.
    """
    columns = columns_of(protocols)
    first = np.zeros((link_map.variants, len(protocols), owners)) + columns[0][:, None]
    seconds_of = np.zeros_like(first)
    for phase in phases:
        load = np.zeros((link_map.variants, len(link_map.capacity_Bps)))
        parts: Iterable[Phase] = (phase,) if isinstance(phase, Phase) else phase()
        if not isinstance(phase, Phase):
            for part in phase():
                deque(_tallies(link_map, part, load, owners, adds=True), maxlen=0)
        for part in parts:
            adds = isinstance(phase, Phase)
            for some, waits, worst in _tallies(link_map, part, load, owners, adds=adds):
                add_seconds(columns, waits, worst, first[some], seconds_of[some])
    alpha = np.zeros((len(protocols), owners if team is None else int(team.max(initial=-1)) + 1))
    beta = np.zeros_like(alpha)
    for of_first, of_each in zip(first, seconds_of, strict=True):
        if team is not None:
            of_first = slowest(of_first, team, alpha.shape[1])
            of_each = slowest(of_each, team, alpha.shape[1])
        alpha += of_first / link_map.variants
        beta += of_each / link_map.variants
    return MessageTime(alpha, beta)


_Waits = tuple[FloatArray, FloatArray, FloatArray]


def _tallies(
    link_map: LinkMap, part: Phase, load: FloatArray, owners: int, *, adds: bool
) -> Iterator[tuple[slice, _Waits, FloatArray]]:
    """Yield draws, and `longest` and `busiest` of flows under them.

    Parameters
    ----------
    load : (draws, link groups)
        Of all that runs at once; ``adds``: once these flows are added to it.
    """
    turn = np.zeros(len(part.source), dtype=np.int64) if part.turn is None else part.turn
    # Whatever they were: other types and layouts are compiled anew.
    steps = np.array(part.steps, dtype=np.float64)
    if isinstance(link_map, TreeLinkMap) and link_map.is_plain:
        ends = np.ascontiguousarray(part.source), np.ascontiguousarray(part.target)
        flows = Flows(*ends, part.owner, part.volume, steps, turn)
        links = Links(link_map.capacity_Bps, link_map.link_Bps, link_map.outside)
        hashes = link_map.hashes(part.source, part.target, np.arange(link_map.variants))
        yield slice(None), *tallied(link_map.ways, flows, hashes, load, links, owners, adds)
        return
    turns = int(turn.max(initial=-1)) + 1
    rates = link_map.capacity_Bps, link_map.link_Bps, link_map.outside
    for draw in range(link_map.variants):
        routes = link_map.routes(part.source, part.target, draw)
        crossed = routes.flow, routes.link_group, routes.share, part.volume
        if adds:
            loaded(load[draw], *crossed)
        waits = longest(part.owner, turn, steps, routes.latency_s, routes.outside, turns, owners)
        worst = busiest(load[draw], *crossed, part.owner, *rates, owners)
        yield slice(draw, draw + 1), waits, worst[None]


@lru_cache(maxsize=1024)
def columns_of(protocols: tuple[Protocol, ...]) -> FloatArray:
    """Fields of protocols, shape (7, protocols); NaN for the algorithm's own steps."""
    rows = [
        (
            entry.base_s,
            entry.step_inside_s,
            entry.step_outside_s,
            entry.inside,
            entry.outside,
            np.nan if entry.steps_inside is None else entry.steps_inside,
            np.nan if entry.steps_outside is None else entry.steps_outside,
        )
        for entry in protocols
    ]
    return np.array(rows).T.copy()
