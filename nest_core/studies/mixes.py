"""Jobs that share a fabric: where each sits, what it plans there, and who slows whom on which link.

``packed`` places jobs one after another on nodes as they are nested; ``spread`` deals the nodes of
every leaf (of every block above the node) in turn, so that every job reaches over all of them;
``joint`` tries every division of the blocks' nodes among the jobs that blocks of equal size under
one parent do not make equal, and takes what loses least: the mean, weighted by devices, of every
job's iteration over its shortest undisturbed one anywhere. No job is faster than undisturbed at its
place, which orders the divisions and ends the search. Nodes of one block count as equal. Plans are
the best at the place they run at.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.costs import Plan, Problem
from nest_core.costs.layout import device_order
from nest_core.costs.parse import read_plan
from nest_core.documents import InputError, load_toml, named_file, require
from nest_core.documents.schema import checked
from nest_core.documents.schema.mix import MixFile, MixJobTable
from nest_core.fabric import without
from nest_core.network import BusyLink, IntArray, Network, busiest_links, collapse
from nest_core.scenario import Scenario, ScenarioValues, fabric_document, scenario_document
from nest_core.simulator import simulate
from nest_core.studies.neighbours import simulate_jobs
from nest_core.studies.solving import solve

__all__ = ["MixJob", "MixResult", "divisions", "load_mix", "play_mix"]

MOST_DIVISIONS = 2_000
Division = tuple[tuple[int, ...], ...]
"""Nodes of every block that each job has."""


@dataclass(frozen=True, slots=True)
class MixJob:
    """A job of a mix, and what it takes.

    Parameters
    ----------
    name : str
    devices : tuple of int
        That are its own, whether its plan uses them or not.
    plan : Plan
        Its ``device_order`` are devices of the fabric.
    undisturbed_s, seconds, most_s : float
        Of an iteration with idle neighbours, beside them, and at most.
    """

    name: str
    devices: tuple[int, ...]
    plan: Plan
    undisturbed_s: float
    seconds: float
    most_s: float

    @property
    def slowdown(self) -> float:
        """How many times as long as undisturbed."""
        return self.seconds / self.undisturbed_s


@dataclass(frozen=True, slots=True)
class MixResult:
    """What the jobs of a mix do to one another.

    Parameters
    ----------
    name, placement : str
    jobs : tuple of MixJob
    links : tuple of BusyLink
        The busiest that several jobs use; users are the jobs.
    divisions, played : int
        That a joint placement chose from, and of them those that were played.
    proven : bool
        Whether all others are planned to lose no less.
    """

    name: str
    placement: str
    jobs: tuple[MixJob, ...]
    links: tuple[BusyLink, ...]
    divisions: int = 1
    played: int = 1
    proven: bool = False

    @property
    def bound_slowdown(self) -> float:
        """The worst slowdown of any job, whenever its neighbours' iterations fall."""
        return max(job.most_s / job.undisturbed_s for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio mix``."""
        return {
            "jobs": [
                {
                    "name": job.name,
                    "devices": list(job.devices),
                    "alone_iteration_time_s": job.undisturbed_s,
                    "iteration_time_s": job.seconds,
                    "slowdown": job.slowdown,
                    "bound_slowdown": job.most_s / job.undisturbed_s,
                    "plan": job.plan.to_json(),
                }
                for job in self.jobs
            ],
            "contended_links": [link.to_json() for link in self.links],
            "bound_slowdown": self.bound_slowdown,
            "placement": self.placement,
            "certificate": {
                "placements": self.divisions,
                "simulated": self.played,
                "proven": self.proven,
            },
        }


@dataclass(frozen=True, slots=True)
class _Mix:
    """A mix on its network: jobs by number, what they run and where they may sit."""

    file: MixFile
    values: tuple[ScenarioValues, ...]
    network: Network

    def problem(self, job: int, plan: Plan | None = None) -> Problem:
        """Return a job's problem on the whole fabric."""
        return self.values[job].problem(plan.recompute if plan else (), self.network)

    def plan(self, job: int, devices: tuple[int, ...]) -> Plan:
        """Return the plan that is given, or the best, on devices of the fabric."""
        values, table = self.values[job], self.file.job[job]
        if table.plan:
            problem = self.problem(job)
            plan, order = read_plan(table.plan, problem.layers, len(devices)), np.array(devices)
        else:
            others = np.setdiff1d(np.arange(self.network.devices), devices)
            numbers, ids = values.fabric.place_of()[others], values.fabric.device_ids
            gone = [f"device {n}" for n in numbers.tolist()]
            if not values.fabric.element_counts:
                gone = [ids[device] for device in others.tolist()]
            rest = collapse(without(values.fabric, gone)) if gone else self.network
            solved = solve(values, values.problem(network=rest))
            if solved.best is None:
                raise InputError(f"job {table.name}", "must fit", solved.reason, "give it more")
            plan = solved.best.plan
            order = np.sort(devices)[device_order(rest, plan.point.device_order)]
        require(
            plan.devices_used <= len(devices),
            f"job {table.name}",
            f"must have the {plan.devices_used:,} devices of its plan",
            len(devices),
            "give it more",
        )
        return _on(plan, order)

    def play(self, places: Sequence[tuple[int, ...]], plans: Sequence[Plan]) -> MixResult:
        """Play plans at their places together."""
        jobs = [(self.problem(n, plan), plan) for n, plan in enumerate(plans)]
        taken = simulate_jobs(jobs)
        names = [table.name for table in self.file.job]
        columns = zip(
            names, places, plans, taken.undisturbed_s, taken.seconds, taken.most_s, strict=True
        )
        sent = {
            name: np.sum([*simulate(*job).loads.bytes.values()], axis=0) / seconds
            for name, job, seconds in zip(names, jobs, taken.seconds, strict=True)
        }
        shared = np.sum([of > 0 for of in sent.values()], axis=0) > 1
        loads = {name: of * shared for name, of in sent.items()}
        return MixResult(
            self.file.name,
            self.file.placement,
            tuple(MixJob(*row[:3], *map(float, row[3:])) for row in columns),
            busiest_links(self.network, loads, 1.0),
        )


def _on(plan: Plan, devices: IntArray) -> Plan:
    """Return a plan whose ranks sit on some devices."""
    order = tuple(devices[: plan.devices_used].tolist())
    return replace(plan, point=replace(plan.point, device_order=order))


def load_mix(name: str, folder: Path | None = None) -> tuple[MixFile, Path | None]:
    """Return a mix file, and where its paths start; parameters and errors as of `load_study`."""
    path = named_file("mixes", name, folder, field="mix")
    return checked(MixFile, load_toml(path)), None if folder is None else path.parent


def play_mix(file: MixFile, folder: Path | None = None) -> MixResult:
    """Place the jobs of a mix, plan each, and play them together.

    Raises
    ------
    InputError
        For what is no mix: jobs that overlap, more devices than there are, a job that does not fit.
    """
    mix = _mix(file, folder)
    if file.placement == "joint":
        return _joint(mix)
    places = _places(mix)
    return mix.play(places, [mix.plan(n, place) for n, place in enumerate(places)])


def _mix(file: MixFile, folder: Path | None) -> _Mix:
    fabric: Any = file.fabric
    scenarios = []
    for table in file.job:
        document, where = (
            scenario_document(table.scenario, folder)
            if isinstance(table.scenario, str)
            else (table.scenario, folder)
        )
        fabric = fabric or document.get("fabric")
        if isinstance(fabric, str):
            fabric = fabric_document(fabric, folder)
        require(
            isinstance(table.devices, list) == (file.placement == "by_hand"),
            f"job {table.name}: devices",
            "must be listed where jobs are placed by hand, and counted elsewhere",
            table.devices,
            "change placement, or devices",
        )
        scenarios.append(Scenario({**document, "fabric": fabric}, table.overrides, where))
    values = tuple(scenario.values for scenario in scenarios)
    network = collapse(values[0].fabric)
    names = [table.name for table in file.job]
    require(len({*names}) == len(names), "job.name", "must name every job once", names, "rename")
    needed = sum(_number(table) for table in file.job)
    require(
        needed <= network.devices,
        "job.devices",
        f"must be at most the {network.devices:,} devices of the fabric in all",
        needed,
        "take devices from a job",
    )
    return _Mix(file, values, network)


def _number(table: MixJobTable) -> int:
    return table.devices if isinstance(table.devices, int) else len(table.devices)


def _places(mix: _Mix) -> list[tuple[int, ...]]:
    """Return the devices of every job, by hand, packed or spread."""
    network, places = mix.network, list[tuple[int, ...]]()
    taken: dict[int, str] = {}
    leaf, node = _blocks(network)
    turn = np.zeros(network.devices, np.int64)
    if mix.file.placement == "spread":
        for block in np.unique(leaf).tolist():
            mine = leaf == block
            turn[mine] = np.unique(node[mine], return_inverse=True)[1]
    order = np.lexsort((np.arange(network.devices), node, leaf, turn)).tolist()
    for table in mix.file.job:
        begins = sum(map(len, places))
        devices = tuple(order[begins : begins + _number(table)])
        places.append(tuple(table.devices) if isinstance(table.devices, list) else devices)
        for device in places[-1]:
            require(
                device < network.devices and device not in taken,
                f"job {table.name}: devices",
                f"must be of the {network.devices:,} that there are, and of no other job",
                f"{device}, of job {taken[device]}" if device in taken else device,
                "list others",
            )
            taken[device] = table.name
    return places


def _blocks(network: Network) -> tuple[IntArray, IntArray]:
    """Return the leaf, or what else is around its node, and the node of every device."""
    return network.nesting[min(1, len(network.nesting) - 1)], network.node


def divisions(
    nodes: Sequence[int], parents: Sequence[int], needed: Sequence[int]
) -> Iterator[Division]:
    """Yield how blocks' nodes may be divided among jobs, block by block; equal blocks in one order.

    Parameters
    ----------
    nodes, parents : sequence of int
        Nodes of every block, and what it is a part of.
    needed : sequence of int
        Nodes of every job.

    Examples
    --------
    >>> list(divisions([2, 2], [0, 0], [2, 1]))
    [((2, 0), (0, 1)), ((1, 1), (1, 0))]
    """
    if not nodes:
        if not any(needed):
            yield ()
        return
    for share in _shares(nodes[0], needed):
        rest = [n - mine for n, mine in zip(needed, share, strict=True)]
        if sum(rest) > sum(nodes[1:]):
            continue
        for others in divisions(nodes[1:], parents[1:], rest):
            alike = others and (nodes[0], parents[0]) == (nodes[1], parents[1])
            if not alike or share >= others[0]:
                yield (share, *others)


def _shares(nodes: int, needed: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield what jobs may have of one block, most of the first first."""
    if not needed:
        yield ()
        return
    for mine in range(min(nodes, needed[0]), -1, -1):
        yield from ((mine, *others) for others in _shares(nodes - mine, needed[1:]))


def _joint(mix: _Mix) -> MixResult:
    """Return the division that loses least."""
    leaf, node = _blocks(mix.network)
    parent = mix.network.nesting[min(2, len(mix.network.nesting) - 1)]
    members = [np.unique(node[leaf == block]) for block in np.unique(leaf)]
    parents = [int(parent[leaf == block][0]) for block in np.unique(leaf)]
    devices_of = {number: np.flatnonzero(node == number) for number in np.unique(node).tolist()}
    size = min(map(len, devices_of.values()))
    numbers = np.array([_number(table) for table in mix.file.job])
    needed = (-(-numbers // size)).tolist()
    every = divisions([len(of) for of in members], parents, needed)
    options = list(islice(every, MOST_DIVISIONS + 1))
    require(options, "job.devices", "must fit in whole nodes", numbers.tolist(), "take fewer")

    def place(division: Division, job: int) -> tuple[int, ...]:
        taken = [
            members[block][sum(share[:job]) : sum(share[: job + 1])]
            for block, share in enumerate(division)
        ]
        devices = np.concatenate([devices_of[number] for of in taken for number in of.tolist()])
        return tuple(devices[: numbers[job]].tolist())

    plan_of = _planner(mix, parents)
    times: list[list[float]] = []
    placed = []
    for division in options[:MOST_DIVISIONS]:
        places = [place(division, job) for job in range(len(needed))]
        shares = np.array(division).T.tolist()
        plans = [plan_of(job, tuple(shares[job]), at) for job, at in enumerate(places)]
        placed.append((places, [plan for plan, _ in plans]))
        times.append([seconds for _, seconds in plans])
    relative = np.array(times) / np.min(times, axis=0)
    least = relative @ numbers / numbers.sum()
    results: list[tuple[float, MixResult]] = []
    for option in np.argsort(least, kind="stable").tolist():
        if results and least[option] >= min(loss for loss, _ in results) * (1 - 1e-9):
            break
        result = mix.play(*placed[option])
        seconds = np.array([job.seconds for job in result.jobs])
        loss = float(seconds / np.min(times, axis=0) @ numbers / numbers.sum())
        results.append((loss, result))
    best, proven = min(results, key=lambda entry: entry[0])[1], len(options) <= MOST_DIVISIONS
    return replace(best, divisions=len(placed), played=len(results), proven=proven)


def _planner(
    mix: _Mix, parents: Sequence[int]
) -> Callable[[int, tuple[int, ...], tuple[int, ...]], tuple[Plan, float]]:
    """Return what plans a job at a place, once for places that are alike."""
    plans: dict[object, tuple[Plan, float]] = {}

    def plan_of(job: int, share: tuple[int, ...], devices: tuple[int, ...]) -> tuple[Plan, float]:
        key = job, tuple((n, parent) for n, parent in zip(share, parents, strict=True) if n)
        if key not in plans:
            plan = mix.plan(job, devices)
            seconds = float(simulate_jobs([(mix.problem(job, plan), plan)]).undisturbed_s[0])
            order = np.searchsorted(np.sort(devices), plan.point.device_order)
            plans[key] = _on(plan, order), seconds
        plan, seconds = plans[key]
        return _on(plan, np.sort(devices)[np.array(plan.point.device_order)]), seconds

    return plan_of
