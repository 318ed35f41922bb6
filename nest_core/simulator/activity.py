"""What devices do in every moment of an iteration, one thing at a time.

What runs on the compute stream is what a device does. In a gap of that stream it waits for what
ends the gap: for as long as that call was running the gap is exposed communication, before that
what the call itself waited for, and where that is another device the rest is waiting. So the parts
add up to the iteration, and a call that hides behind compute is no part.

Units: seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Problem, Report, update_layers
from nest_core.costs.communication import CLASSES, class_seconds
from nest_core.network import FloatArray, IntArray
from nest_core.simulator.entries import COMPUTE, WORK, Entry
from nest_core.simulator.iteration import CLASS_OF_AXIS, Iteration, stages_of

__all__ = [
    "PARTS",
    "Activity",
    "StageTerms",
    "activity",
    "entry_times",
    "part_of",
    "pass_of",
    "slowest",
    "stage_terms",
]

PARTS = (
    "compute",
    "recomputation",
    "kernel launches",
    "copies to the host",
    "optimizer",
    *CLASSES,
    "waiting",
)
"""What an iteration is made of; classes of traffic are what of them is exposed."""

WAITING = PARTS.index("waiting")
_PART_OF_WORK = dict(
    zip(WORK, ("compute", "recomputation", "compute", "compute", *PARTS[2:5]), strict=True)
)


@dataclass(frozen=True, slots=True, eq=False)
class Activity:
    """What a device does from the beginning of an iteration to its end; arrays (spans,).

    Parameters
    ----------
    stage, device : int
    alike : int
        Devices of the stage that do the same, itself among them.
    part : int array
        Of `PARTS`.
    entry : int array
        Of the stage's program, during which or before which it is; -1 once all is done.
    begins_s, ends_s : float array
        One after another, without a gap.
    """

    stage: int
    device: int
    alike: int
    part: IntArray
    entry: IntArray
    begins_s: FloatArray
    ends_s: FloatArray

    @property
    def seconds(self) -> FloatArray:
        """Of every part, shape (parts,)."""
        spent = np.bincount(self.part, self.ends_s - self.begins_s, len(PARTS))
        return np.asarray(spent, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class StageTerms:
    """Seconds of a stage by `PARTS`, as planned and as simulated; parts without any are left out.

    Parameters
    ----------
    stage, device, alike : int
        A device of the slowest class, and how many there are of it.
    terms : dict of str to (float, float)
        Planned and simulated, each adding up to its iteration.
    """

    stage: int
    device: int
    alike: int
    terms: dict[str, tuple[float, float]]

    def to_json(self) -> dict[str, dict[str, float]]:
        """Return the terms by name."""
        return {
            name: {"planned_s": planned, "simulated_s": simulated}
            for name, (planned, simulated) in self.terms.items()
        }


def part_of(row: Entry) -> str:
    """Return which of `PARTS` an entry is; waiting for marks."""
    if row.call is not None:
        return CLASS_OF_AXIS.get(row.call.axis, row.call.axis)
    return _PART_OF_WORK.get(row.kind, "waiting")


def pass_of(iteration: Iteration, stage: int) -> IntArray:
    """Return the pass of every entry, the first of those that run together; -1 after all."""
    program = iteration.programs[stage]
    order = np.argsort(program.ends, kind="stable")
    entries = np.arange(len(program.row))
    passes = np.append(order, -1)[np.searchsorted(program.ends[order], entries)]
    return np.asarray(np.where(program.micro_batch < 0, -1, passes))


def entry_times(iteration: Iteration, stage: int, device: int) -> tuple[FloatArray, FloatArray]:
    """Return when a device's entries begin and end, shape (entries,) each, in a program's order."""
    program, classes = iteration.programs[stage], iteration.classes
    owner = [
        classes.device[device]
        if row.call is None
        else classes.group[iteration.traffic.group_of[row.call.axis][device]]
        for row in program.rows
    ]
    tasks = np.flatnonzero(iteration.stage == stage)
    mine = tasks[iteration.owner[tasks] == np.array(owner)[program.row[iteration.entry[tasks]]]]
    return iteration.begins_s[mine], iteration.ends_s[mine]


def activity(iteration: Iteration, stage: int, device: int) -> Activity:
    """Return what a device of a stage does."""
    program = iteration.programs[stage]
    begins_s, ends_s = entry_times(iteration, stage, device)
    part = np.array([PARTS.index(part_of(row)) for row in program.rows])[program.row]
    tied = _tied_begins(iteration, stage)
    if tied is not None:  # both ends wait for it; the first stage's entry stands for both
        part[program.closing + 1], begins_s[program.closing + 1] = PARTS.index("tied"), tied
    mine = np.flatnonzero(np.array([row.stream for row in program.rows])[program.row] == COMPUTE)
    first = iteration.first_s(stage)
    before = np.concatenate([[first], ends_s[mine]])
    gaps = np.flatnonzero(begins_s[mine] > before[:-1])
    works = mine[ends_s[mine] > begins_s[mine]]
    spans = [
        (part[works], works, begins_s[works], ends_s[works]),
        *_gaps(_causes(program.edges, ends_s), part, begins_s, ends_s, mine[gaps], before[gaps]),
    ]
    last = first + iteration.seconds
    if last > before[-1]:
        spans.append((np.array([WAITING]), np.array([-1]), before[-1:], np.array([last])))
    columns = [np.concatenate(column) for column in zip(*spans, strict=True)]
    columns = [column[np.argsort(columns[2], kind="stable")] for column in columns]
    classes = iteration.classes.device
    alike = int(np.count_nonzero(classes == classes[device]))
    return Activity(stage, device, alike, *columns)


def _tied_begins(iteration: Iteration, stage: int) -> float | None:
    """Return when the sum of tied gradients begins that a last stage waits for, if it does."""
    first, last = iteration.programs[0], len(iteration.programs) - 1
    at = first.closing + 1
    if not 0 < stage == last or first.rows[first.row[at]].call is None:
        return None
    tasks = np.flatnonzero((iteration.stage == 0) & (iteration.entry == at))
    return float(iteration.begins_s[tasks].max())


def _causes(edges: IntArray, ends_s: FloatArray) -> IntArray:
    """Return which entry of its stage each waited for longest, shape (entries,); -1: none."""
    source, target = edges.T
    latest = np.full(len(ends_s), -np.inf)
    np.maximum.at(latest, target, ends_s[source])
    cause = np.full(len(ends_s), -1)
    is_last = ends_s[source] == latest[target]
    cause[target[is_last]] = source[is_last]
    return cause


def _gaps(
    cause: IntArray,
    part: IntArray,
    begins_s: FloatArray,
    ends_s: FloatArray,
    entry: IntArray,
    since: FloatArray,
) -> Iterator[tuple[IntArray, IntArray, FloatArray, FloatArray]]:
    """Yield what gaps before entries of the compute stream are made of, from their ends on."""
    waits, until = entry, begins_s[entry]
    while len(waits):
        ended = cause[waits]
        runs = (ended >= 0) & (ends_s[ended] == until) & (part[ended] != WAITING)
        low = np.where(runs, np.maximum(begins_s[ended], since), since)
        yield np.where(runs, part[ended], WAITING), entry, low, until
        goes_on = low > since
        waits, entry = ended[goes_on], entry[goes_on]
        since, until = since[goes_on], begins_s[waits]


def slowest(iteration: Iteration) -> tuple[Activity, ...]:
    """Return of every stage what a device of the class does that waits least."""
    chosen, stages = [], stages_of(iteration.problem, iteration.plan)
    for stage in range(len(iteration.programs)):
        devices = np.flatnonzero(stages == stage)
        _, first = np.unique(iteration.classes.device[devices], return_index=True)
        of_classes = [activity(iteration, stage, int(devices[at])) for at in np.sort(first)]
        chosen.append(min(of_classes, key=lambda entry: round(float(entry.seconds[WAITING]), 12)))
    return tuple(chosen)


def stage_terms(
    problem: Problem, report: Report, activities: tuple[Activity, ...]
) -> tuple[StageTerms, ...]:
    """Return the terms of every stage beside those that were planned."""
    plan, sent = report.plan, class_seconds(problem, report.plan)
    terms = []
    for entry, stage in zip(activities, report.stages, strict=True):
        at = plan.stage_point(entry.stage)
        table = problem.table(at.tp, at.sp, at.micro_batch, at.cp, at.ep, at.etp)
        layers = np.concatenate([np.arange(i, j) for i, j in stage.virtual_stages])
        update_s = float(update_layers(problem, at, table)[layers].sum())
        planned_s = {
            "compute": stage.compute_s - stage.launch_s - update_s,
            "recomputation": stage.recompute_s,
            "kernel launches": stage.launch_s,
            "optimizer": update_s,
            **{name: float(of[entry.stage]) for name, of in sent.items()},
            "waiting": stage.idle_s,
        }
        seconds = {
            name: (planned_s.get(name, 0.0), simulated)
            for name, simulated in zip(PARTS, entry.seconds.tolist(), strict=True)
            if simulated > 0 or planned_s.get(name, 0.0) > 0
        }
        terms.append(StageTerms(entry.stage, entry.device, entry.alike, seconds))
    return tuple(terms)
