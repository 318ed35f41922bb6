"""A pipeline step by step: which pass every stage runs, what has gone over which link, when.

A played-back iteration (`nest_core.costs.timeline`) cut at the moments at which passes end: the
last step ends when the playback does, which for equal stages is the price. A forward pass sends its
activations to the next virtual stage when it is over, a backward pass their gradients to the one
before.

Units: bytes, seconds.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nest_core.costs.links import Hops, placed_hops
from nest_core.costs.problem import Problem
from nest_core.costs.timeline import Timeline
from nest_core.network import FloatArray, IntArray

__all__ = ["PassStep", "PassSteps", "pass_steps"]

_SAME = 1e-9  # of an iteration: ends that rounding sets apart


@dataclass(frozen=True, slots=True, eq=False)
class PassStep:
    """From one end of a pass to the next.

    Parameters
    ----------
    number : int
        From 1.
    running : int array (pp,)
        Which of its passes each stage runs, in its own order; -1 where it waits.
    sent : tuple of (int, int)
        Stages between which a message starts as the step ends: producer and consumer of forward
        passes, the other way round of backward ones.
    sent_bytes : float array (link groups,)
        What messages have put on every link group since the start.
    taken_s, seconds : float
        Of this step, and since the start.
    """

    number: int
    running: IntArray
    sent: tuple[tuple[int, int], ...]
    sent_bytes: FloatArray
    taken_s: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class PassSteps:
    """An iteration from its start to its end.

    Parameters
    ----------
    timeline : Timeline
    message_bytes : float
        What each rank sends to its peer at the boundary that has most.
    states : tuple of PassStep
        After each step.
    """

    timeline: Timeline
    message_bytes: float
    states: tuple[PassStep, ...]

    @property
    def seconds(self) -> float:
        """What the iteration takes."""
        return self.states[-1].seconds


def pass_steps(problem: Problem, played: Timeline) -> PassSteps:
    """Cut a played-back iteration into steps; O(passes).

    Parameters
    ----------
    problem : Problem
        That the iteration was priced on.
    played : Timeline
        Of stages of one width, not in a V.
    """
    begins, ends = played.start_s, played.end_s
    moments = _moments(ends, played.seconds)
    hops = placed_hops(problem.network, played.report.plan.point)
    boundaries = _boundaries(problem, played)
    loads = np.zeros(len(problem.network.link_map.capacity_Bps))
    states = []
    for number, (before, now) in enumerate(pairwise([0.0, *moments]), 1):
        middle = (before + now) / 2
        runs = (begins <= middle) & (ends > middle)
        running = np.where(runs.any(axis=1), runs.argmax(axis=1), -1)
        over = np.argwhere((ends > middle) & (ends <= now + _SAME * played.seconds))
        sent, loads = [], loads.copy()
        for stage, place in over.tolist():
            boundary, forward = _sends(played, stage, place)
            if boundary in boundaries:
                to = (stage + (1 if forward else -1)) % played.stages
                sent.append((stage, to))
                loads += _crossed(
                    problem, hops, to if forward else stage, boundaries[boundary], forward=forward
                )
        states.append(PassStep(number, running, tuple(sent), loads, now - before, now))
    return PassSteps(played, max(boundaries.values(), default=0.0), tuple(states))


def _moments(ends: FloatArray, duration: float) -> list[float]:
    """Return ends of passes, and of all, without those that rounding sets apart."""
    moments: list[float] = []
    for moment in sorted({*ends.reshape(-1).tolist(), duration}):
        if moments and moment - moments[-1] <= _SAME * duration:
            moments[-1] = moment
        else:
            moments.append(moment)
    return moments


def _boundaries(problem: Problem, played: Timeline) -> dict[int, float]:
    """Return what a rank sends over the end of every virtual stage but the last, in the layers'
    order.
    """
    at = played.report.plan.point
    table = problem.table(at.tp, at.sp, at.micro_batch, at.cp, at.ep, at.etp)
    spans = sorted(span for stage in played.report.stages for span in stage.virtual_stages)
    # Ranks that hold the same tensor send a part each, as `hop_seconds` prices them.
    parts = at.tp if at.tp > 1 and not at.sp else 1
    return {
        place: float(table.boundary_bytes[end]) / parts for place, (_, end) in enumerate(spans[:-1])
    }


def _sends(played: Timeline, stage: int, place: int) -> tuple[int, bool]:
    """Over which boundary a pass sends when it ends, and whether forward; -1: over none."""
    virtual, way = int(played.virtual_stage[stage, place]), int(played.way[stage, place])
    position = virtual * played.stages + stage
    return (position, True) if way == 0 else (position - 1 if way == 1 else -1, False)


def _crossed(
    problem: Problem, hops: Hops, receiver: int, size: float, *, forward: bool
) -> FloatArray:
    """Bytes on every link group of a message to a stage that receives, or of its answer."""
    link_map = problem.network.link_map
    here = hops.receiver == receiver
    ends = (hops.source[here], hops.target[here])
    routes = link_map.routes(*(ends if forward else ends[::-1]))
    crossing = size * hops.share[here][routes.flow] * routes.share
    return np.asarray(
        np.bincount(routes.link_group, crossing, len(link_map.capacity_Bps)), dtype=np.float64
    )
