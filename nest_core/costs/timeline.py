"""One iteration, pass by pass: when every stage computes, communicates and waits.

`price` states an iteration in closed form (`nest_core.costs.schedules`); here its schedule is
played back. A stage runs its passes in the schedule's order, one at a time: a forward pass starts
once the same micro-batch has left the virtual stage before, a backward pass once it has come back
from the virtual stage after; gradients of weights that are a pass of their own only wait for their
turn. When its last pass is over a stage synchronises gradients and updates
its states.

* ``gpipe``: all forward passes, then all backward passes (Huang et al. 2019).
* ``1f1b``: ``pp - 1 - s`` forward passes ahead, then one forward and one backward in turn
  (Narayanan et al. 2021, PipeDream-Flush).
* ``interleaved``: groups of ``pp`` micro-batches go through one virtual stage after another,
  ``2 (pp - 1 - s) + (v - 1) pp`` passes ahead (Narayanan et al. 2021, SC, section 2.2).
* ``zb_h1``, ``zb_1p``, ``zb_2p``: as 1F1B, ``c (pp - 1 - s)`` passes ahead, gradients of weights
  ``c s`` micro-batches behind (Qi et al. 2023); the latter two take as long as their slowest stage
  does from its first pass on.
* ``zbv``, ``dualpipev``: as `nest_core.costs.schedules` says.

What a pass takes is the priced load of its stage, divided by three declared rules: recomputation
belongs to the backward pass; virtual stages divide communication and kernel launches as they divide
compute; half of communication falls into either pass.

Passes of uneven virtual stages, and in a V, take what `price` replayed, which ends with the last
of them. For equal stages the playback ends when `price` says. For others the closed form lets every
micro-batch wait for the slowest stage only, and the playback may end earlier (a stage that is
done synchronises while others drain) or later (forward and backward passes may be slowest on
different stages, and 1F1B lets few micro-batches in).

A pipeline step by step: which pass every stage runs, what has gone over which link, when.

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
from nest_core.costs.price import Report
from nest_core.costs.problem import Problem
from nest_core.costs.schedules import MOST_PASSES, SPLIT, PassOrder
from nest_core.costs.stages import pairs_passes
from nest_core.documents.errors import require
from nest_core.network import BoolArray, FloatArray, IntArray

__all__ = ["PARTS", "PassStep", "PassSteps", "Timeline", "pass_steps", "timeline"]

PARTS = ("communication", "recomputation", "compute")
"""What a pass is made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The passes of one replica, stage by stage in the order in which they run; seconds.

    Parameters
    ----------
    report : Report
        What was played back.
    micro_batches : int
    micro_batch, virtual_stage : int array (pp, passes)
    way : int array (pp, passes)
        0 forward, 1 backward, 2 gradients of weights where they are a pass of their own.
    start_s : float array (pp, passes)
    parts_s : float array (pp, virtual stages, 3, 3)
        Of a stage's passes of each way the `PARTS`.
    sync_s, update_s : float array (pp,)
        Exposed gradient synchronisation and optimizer step, after the last pass.
    """

    report: Report
    micro_batches: int
    micro_batch: IntArray
    virtual_stage: IntArray
    way: IntArray
    start_s: FloatArray
    parts_s: FloatArray
    sync_s: FloatArray
    update_s: FloatArray

    @property
    def stages(self) -> int:
        """Pipeline stages."""
        return len(self.start_s)

    @property
    def backward(self) -> BoolArray:
        """Whether a pass belongs to the backward ones, shape (pp, passes)."""
        return np.asarray(self.way > 0)

    @property
    def pass_parts_s(self) -> FloatArray:
        """The `PARTS` of every pass, shape (pp, passes, 3)."""
        return self.parts_s[np.arange(self.stages)[:, None], self.virtual_stage, self.way]

    @property
    def end_s(self) -> FloatArray:
        """End of every pass, shape (pp, passes)."""
        return np.asarray(self.start_s + self.pass_parts_s.sum(axis=2))

    @property
    def seconds(self) -> float:
        """When the last stage has updated its states; see above where stages are not awaited."""
        begun = self.start_s[:, 0]
        if self.report.plan.point.schedule not in ("zb_1p", "zb_2p"):
            begun = np.zeros_like(begun)
        return float((self.end_s[:, -1] + self.sync_s + self.update_s - begun).max())

    @property
    def difference(self) -> float:
        """How much longer than priced it takes, relative; negative where it is shorter."""
        return self.seconds / self.report.iteration_s - 1.0


def timeline(problem: Problem, report: Report) -> Timeline:
    """Play a priced plan back; O(pp * passes).

    Parameters
    ----------
    problem : Problem
        That the report was priced on.
    report : Report

    Raises
    ------
    InputError
        If the iteration has more than `MOST_PASSES` passes.
    """
    point = report.plan.point
    m = point.micro_batches(problem.batch)
    passes = (3 if point.schedule in SPLIT else 2) * point.pp * point.interleave * m
    require(
        passes <= MOST_PASSES,
        "the iteration",
        f"must have at most {MOST_PASSES:,} passes to be played back",
        passes,
        "lower the batch or raise the micro-batch",
    )
    order = PassOrder.of(point, m, is_paired=pairs_passes(problem, point))
    parts = _parts(problem, report, m)
    begun = order.starts(parts.sum(axis=3))
    update = _updates(problem, report, m)
    synced = np.array([stage.sync_s for stage in report.stages]) - update
    return Timeline(
        report,
        m,
        order.micro_batch,
        order.virtual_stage,
        order.way,
        begun,
        parts,
        np.maximum(0.0, synced),
        update,
    )


def _parts(problem: Problem, report: Report, m: int) -> FloatArray:
    plan = report.plan
    delayed = plan.point.schedule in SPLIT
    result = np.zeros((plan.point.pp, plan.point.interleave, 3, len(PARTS)))
    for s, stage in enumerate(report.stages):
        at = plan.stage_point(s)
        table = problem.table(at.tp, at.sp, at.micro_batch, at.cp, at.ep, at.etp)
        spans = stage.virtual_stages
        rows = [problem.layer_rows(stage.recompute, (span,)) for span in spans]
        compute = np.array([table.compute_s[i:j].sum() for i, j in stage.virtual_stages])
        forward = np.array([table.forward_s[i:j].sum() for i, j in stage.virtual_stages])
        again = np.array(
            [
                table.replay_s[row, np.arange(*span)].sum()
                for row, span in zip(rows, spans, strict=True)
            ]
        )
        launch = stage.launch_s / m
        rest = max(0.0, stage.micro_batch_s - float(compute.sum() + again.sum()) - launch)
        share = _shares(compute + again)
        first = np.divide(forward, compute, out=np.full_like(compute, 0.5), where=compute > 0)
        waits = launch * share
        result[s, :, 0, 0] = result[s, :, 1, 0] = rest * share / 2
        result[s, :, 1, 1] = again
        result[s, :, 0, 2] = forward + waits * first
        weight = np.array([table.weight_s[i:j].sum() for i, j in stage.virtual_stages]) * delayed
        result[s, :, 1, 2] = compute - forward - weight + waits * (1 - first)
        result[s, :, 2, 2] = weight
        if stage.passes:  # as they were priced; what is no computing communicates
            sent = np.array(stage.passes) - result[s, :, :, 1:].sum(axis=2)
            result[s, ..., 0] = np.maximum(0.0, sent)
            result[s, ..., 2] += np.minimum(0.0, sent)
    return result


def _shares(values: FloatArray) -> FloatArray:
    """Parts of a whole; equal ones where there is nothing to divide by."""
    total = float(values.sum())
    return values / total if total > 0 else np.full_like(values, 1 / len(values))


def _updates(problem: Problem, report: Report, m: int) -> FloatArray:
    """Seconds of every stage's optimizer step: its compute that no micro-batch accounts for."""
    result = np.zeros(len(report.stages))
    for s, stage in enumerate(report.stages):
        at = report.plan.stage_point(s)
        table = problem.table(at.tp, at.sp, at.micro_batch, at.cp, at.ep, at.etp)
        once = sum(float(table.compute_s[i:j].sum()) for i, j in stage.virtual_stages)
        rest = stage.compute_s - m * once - stage.launch_s
        result[s] = min(max(0.0, rest), stage.sync_s)
    return result


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
