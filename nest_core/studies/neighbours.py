"""Several jobs on one fabric: iterations of all, back to back, on the links that they share.

Every job begins an iteration when all of its devices have ended the one before, again and again, so
that a short one meets a long one all the time. Its iteration takes the mean of those that begin
after the first and end before any job stops.

`most_s` bounds what an iteration takes whatever the neighbours do and whenever they do it. A link
of capacity C that flows of total weight W share max-min fairly leaves none of them less than C / W,
or all that it asks for: the level at which the link is full is the highest rate on it. W counts, of
every stream of every stage of every job, the call that weighs most on the link, since calls on a
stream follow one another; a link that is not full even so bounds nothing. With every flow at that
rate, or at its own most, durations are fixed, what waits for what makes an acyclic graph, and its
longest path is no shorter than with faster flows. Compute that hidden calls may slow down is slowed
down for good.

Units: seconds, bytes, bytes/s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs import Plan, Problem, offloaded
from nest_core.documents.errors import InputError, require
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.simulator.classes import Members
from nest_core.simulator.engine import Calls, Tasks, run
from nest_core.simulator.iteration import stages_of
from nest_core.simulator.messages import CallGroups, call_classes, engine_calls, first_of
from nest_core.simulator.program import Program, programs
from nest_core.simulator.tasks import Block, job_blocks, job_tasks
from nest_core.simulator.traffic import traffic_of

__all__ = ["SharedLinks", "simulate_jobs"]

STEADY = 4
"""Iterations of every job, at least, that its mean is of."""
MOST_TASKS = 5_000_000
_ROUNDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class SharedLinks:
    """What an iteration of every job takes, shape (jobs,).

    Parameters
    ----------
    undisturbed_s : float array
        With idle neighbours.
    seconds : float array
        Beside the others.
    most_s : float array
        That it takes at most, however iterations of the others fall.
    """

    undisturbed_s: FloatArray
    seconds: FloatArray
    most_s: FloatArray


def simulate_jobs(jobs: Sequence[tuple[Problem, Plan]], *, draw: int = 0) -> SharedLinks:
    """Play several jobs on one network at once.

    Parameters
    ----------
    jobs : sequence of (Problem, Plan)
        On the same network; each plan's devices are its ``device_order``'s first.
    draw : int
        Of the fabric's hash, under static ECMP.

    Raises
    ------
    InputError
        For jobs that share a device, and for iterations so unequal that too many of the shortest
        would pass beside one of the longest.
    """
    network = jobs[0][0].network
    stages_by_job = [stages_of(problem, plan) for problem, plan in jobs]
    label = np.full(network.devices, -1)
    for stage_of in stages_by_job:
        shared = np.flatnonzero((label >= 0) & (stage_of >= 0))
        require(
            not len(shared),
            "jobs",
            "must have devices of their own",
            f"device {shared[:1].tolist()} in two",
            "move one of them",
        )
        label = np.where(stage_of >= 0, stage_of + label.max() + 1, label)
    slowdown = max(problem.overlap.slowdown for problem, _ in jobs)
    played = [(offloaded(problem, plan.offload), plan) for problem, plan in jobs]
    orders = [programs(problem, plan) for problem, plan in played]
    parts = [
        traffic_of(problem, plan, stages, draw)
        for (problem, plan), (_, stages) in zip(played, orders, strict=True)
    ]
    # Groups, their labels and ways of one job are numbered after those of another.
    sizes = [
        (len(part.groups.label), part.groups.label.max(initial=-1) + 1, len(part.ways))
        for part in parts
    ]
    numbered = list(zip(parts, (np.cumsum(sizes, axis=0) - sizes).tolist(), strict=True))
    members = Members(
        np.concatenate([part.groups.members.group + n for part, (n, _, _) in numbered]),
        np.concatenate([part.groups.members.device for part in parts]),
    )
    labels = [part.groups.label + n for part, (_, n, _) in numbered]
    every = CallGroups(members, np.concatenate(labels))
    ways = [replace(way, group=way.group + n) for part, (n, *_) in numbered for way in part.ways]
    classes = call_classes(every, ways, label, network.link_map)
    calls, number = engine_calls(every, ways, classes)
    capacity_Bps = network.link_map.capacity_Bps[first_of(classes.link)]
    tasks, blocks = [], []
    for stage_of, (part, (group, _, way)), (order, stages) in zip(
        stages_by_job, numbered, orders, strict=True
    ):
        group_of = {axis: np.where(of >= 0, of + group, -1) for axis, of in part.group_of.items()}
        chosen = {key: number_of + way for key, number_of in part.chosen.items()}
        mine = replace(part, groups=every, group_of=group_of, chosen=chosen)
        job, edges = job_blocks(order, stages, mine, classes, number, stage_of)
        tasks.append(job_tasks(job, edges, stages, np.ones(len(first_of(classes.device)))))
        blocks.append((job, stages))
    first_s = np.array([run(of, calls, capacity_Bps, slowdown)[1].max() for of in tasks])
    require(
        np.isfinite(first_s).all(),
        "jobs",
        "must have a path between all of their devices",
        "none",
        "place them elsewhere",
    )
    rates, meets = _least_rates(blocks, calls, capacity_Bps)
    most_s = first_s.copy()
    for n in np.flatnonzero(meets).tolist():
        # Links are free: a flow's own rate is all that bounds it.
        work_s = tasks[n].seconds / np.where(tasks[n].call < 0, 1.0 - slowdown, 1.0)
        slow, bounded = tasks[n]._replace(seconds=work_s), calls._replace(most_Bps=rates)
        most_s[n] = run(slow, bounded, np.full(len(capacity_Bps), np.inf), 0.0)[1].max()
    if not meets.any():
        return SharedLinks(first_s, first_s, most_s)
    return SharedLinks(first_s, _steady_s(tasks, calls, capacity_Bps, slowdown, first_s), most_s)


def _steady_s(
    tasks: Sequence[Tasks],
    calls: Calls,
    capacity_Bps: FloatArray,
    slowdown: float,
    first_s: FloatArray,
) -> FloatArray:
    """Return the mean of steady iterations, job by job."""
    pace, least = first_s, STEADY + 1
    for _ in range(_ROUNDS):
        times = np.ceil(least * pace.max() / pace).astype(np.int64) + 1
        number = int(sum(len(of.call) * n for of, n in zip(tasks, times.tolist(), strict=True)))
        require(
            number <= MOST_TASKS,
            "jobs",
            f"must take at most {MOST_TASKS:,} tasks until each has done some iterations",
            number,
            "leave out the shortest iteration, or the longest",
        )
        joined, ends = _repeated(tasks, times.tolist())
        ends_s = run(joined, calls, capacity_Bps, slowdown)[1]
        done = [ends_s[of] for of in ends]
        last = min(of[-1] for of in done)
        counts = np.array([np.count_nonzero(of <= last) for of in done])
        ended_s = np.array([of[max(n - 1, 0)] for of, n in zip(done, counts.tolist(), strict=True)])
        if counts.min() > STEADY:
            return np.asarray((ended_s - [of[0] for of in done]) / (counts - 1))
        pace = ended_s / np.maximum(counts, 1)
        least += STEADY
    raise InputError("jobs", "must come to rest", "no steady iterations", "leave one out")


def _repeated(tasks: Sequence[Tasks], times: Sequence[int]) -> tuple[Tasks, list[IntArray]]:
    """Return tasks of jobs that repeat, and of every job those that end its iterations."""
    columns, edges, ends, first = [], [], [], 0
    for of, number in zip(tasks, times, strict=True):
        count = len(of.call) + 1  # one more marks where an iteration ends
        marks = (0.0, -1, 0.0, 1.0, 0, False)
        marked = [np.append(column, mark) for column, mark in zip(of[:6], marks, strict=True)]
        columns.append([np.tile(column, number) for column in marked])
        after = np.diff(of.first_after)
        last, opens = np.flatnonzero(after == 0), np.flatnonzero(of.waits == 0)
        source = np.append(np.repeat(np.arange(count - 1), after), last)
        inside = np.stack([source, np.append(of.after, np.full(len(last), count - 1))])
        onward = np.stack([np.full(len(opens), count - 1), opens + count])
        begins = first + count * np.arange(number)
        for pairs, at in ((inside, begins), (onward, begins[:-1])):
            edges.append((pairs[..., None] + at).reshape(2, -1))
        ends.append(begins + count - 1)
        first += number * count
    before, after = np.concatenate(edges, axis=1)
    order = np.argsort(before, kind="stable")
    waits = np.bincount(after, minlength=first)
    first_after = np.searchsorted(before[order], np.arange(first + 1))
    copies = [np.concatenate(column) for column in zip(*columns, strict=True)]
    return Tasks._make([*copies, waits, first_after, after[order]]), ends


def _least_rates(
    blocks: Sequence[tuple[list[Block], list[Program]]], calls: Calls, capacity_Bps: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return the least rate of every flow, (flows,), and which jobs meet others on a full link."""
    flow_of = np.repeat(np.arange(len(calls.volume)), np.diff(calls.first_crossing))
    phase_of = np.repeat(np.arange(len(calls.latency_s)), np.diff(calls.first_flow))[flow_of]
    call_of = np.repeat(np.arange(len(calls.first_phase) - 1), np.diff(calls.first_phase))
    links = len(capacity_Bps)
    wanted = calls.weight * np.minimum(calls.most_Bps[flow_of], 1e30)
    pairs, at = np.unique(phase_of * links + calls.link, return_inverse=True)
    phase, link = np.divmod(pairs, links)
    # By call and link the heaviest phase: its weight, and what its flows ask for.
    peak = np.zeros((len(calls.first_phase) - 1, links, 2))
    sums = [np.bincount(at, amount, len(pairs)) for amount in (calls.weight, wanted)]
    np.maximum.at(peak, (call_of[phase], link), np.stack(sums, axis=1))
    totals = np.zeros((len(blocks), links, 2))
    for n, job in enumerate(blocks):
        for block, program in zip(*job, strict=True):
            stream_of = np.array([row.stream for row in program.rows])[program.row]
            numbers = np.arange(block.place.shape[1])
            for stream in np.unique(stream_of).tolist():
                entries = np.flatnonzero(stream_of == stream)
                tasks = block.tasks(entries[:, None], numbers[None, :]) - block.first[0]
                # A call's weight is divided over the classes of devices that wait for it.
                sharing = (tasks[:, :, None] == tasks[:, None, :]).sum(axis=2)
                for mine in zip(block.call[tasks].T, sharing.T, strict=True):
                    used = np.unique(np.stack(mine)[:, mine[0] >= 0], axis=1)
                    if used.size:
                        totals[n] += (peak[used[0]] / used[1][:, None, None]).max(axis=0)
    total, asked_Bps = totals.sum(axis=0).T
    may_fill = asked_Bps > capacity_Bps * (1 + 1e-9)
    level, rates = np.full(links, np.inf), calls.most_Bps.copy()
    np.divide(capacity_Bps, total, out=level, where=may_fill)
    np.minimum.at(rates, flow_of, level[calls.link])
    crosses = totals[..., 0] > 0
    return rates, (crosses & (crosses.sum(axis=0) > 1) & may_fill).any(axis=1)
