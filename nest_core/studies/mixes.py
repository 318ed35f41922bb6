"""Jobs that share a fabric: where each sits, what it plans there, and who slows whom on which link.

``packed`` places jobs one after another on nodes as they are nested; ``spread`` deals the nodes of
every leaf (of every block above the node) in turn, so that every job reaches over all of them;
``joint`` tries every division of the blocks' nodes among the jobs that blocks of equal size under
one parent do not make equal, and takes what loses least: the mean, weighted by devices, of every
job's iteration over its shortest undisturbed one anywhere. No job is faster than undisturbed at its
place, which orders the divisions and ends the search. Nodes of one block count as equal. Plans are
the best at the place they run at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.costs import Plan, Problem, device_order
from nest_core.costs.parse import read_plan
from nest_core.documents import InputError, load_toml, named_file, require
from nest_core.documents.schema import checked
from nest_core.documents.schema.mix import MixFile, PopulationFile, RunTable
from nest_core.fabric import without
from nest_core.network import BusyLink, IntArray, Network, busiest_links, collapse, rank_within
from nest_core.scenario import Scenario, ScenarioValues, fabric_document, scenario_document
from nest_core.simulator import simulate
from nest_core.studies.neighbours import simulate_jobs
from nest_core.studies.solving import solve

__all__ = [
    "MixJob",
    "MixResult",
    "best_plan",
    "divisions",
    "load_mix",
    "mix_file",
    "play_mix",
    "run_scenario",
    "seated",
]

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
        """Return the plan that is given, or the best; its order numbers the job's own devices."""
        values, table = self.values[job], self.file.job[job]
        field = f"job {table.name}"
        if table.plan:
            plan = ordered(
                read_plan(table.plan, self.problem(job).layers, len(devices)), range(len(devices))
            )
        else:
            best = best_plan(values, self.network, devices, field)
            plan = seated(best, np.argsort(devices).tolist())
        require(
            plan.devices_used <= len(devices),
            field,
            f"must have the {plan.devices_used:,} devices of its plan",
            len(devices),
            "give it more",
        )
        return plan

    def play(self, places: Sequence[tuple[int, ...]], plans: Sequence[Plan]) -> MixResult:
        """Play plans at their places together."""
        plans = [seated(plan, place) for plan, place in zip(plans, places, strict=True)]
        jobs = [(self.problem(n, plan), plan) for n, plan in enumerate(plans)]
        taken = simulate_jobs(jobs)
        names = [table.name for table in self.file.job]
        times = (taken.undisturbed_s, taken.seconds, taken.most_s)
        sent = np.stack(
            [
                np.sum([*simulate(*job).loads.bytes.values()], axis=0) / seconds
                for job, seconds in zip(jobs, taken.seconds, strict=True)
            ]
        )
        shared = np.count_nonzero(sent, axis=0) > 1
        return MixResult(
            self.file.name,
            self.file.placement,
            tuple(
                MixJob(name, place, plan, *(float(of[n]) for of in times))
                for n, (name, place, plan) in enumerate(zip(names, places, plans, strict=True))
            ),
            busiest_links(self.network, dict(zip(names, sent * shared, strict=True)), 1.0),
        )


def run_scenario(
    table: RunTable, fabric: str | dict[str, Any] | None, folder: Path | None
) -> Scenario:
    """Return what a job runs, on a fabric or, without one, on its own."""
    document, where = (
        scenario_document(table.scenario, folder)
        if isinstance(table.scenario, str)
        else (table.scenario, folder)
    )
    home = where if fabric is None else folder
    fabric = document.get("fabric") if fabric is None else fabric
    drawn = fabric_document(fabric, home) if isinstance(fabric, str) else fabric
    return Scenario({**document, "fabric": drawn}, table.overrides, where)


def best_plan(values: ScenarioValues, network: Network, devices: Sequence[int], field: str) -> Plan:
    """Return the best plan on some devices of a fabric; its order numbers them, ascending.

    Raises
    ------
    InputError
        With the name of ``field``, where none fits.
    """
    others = np.setdiff1d(np.arange(network.devices), devices)
    ids = values.fabric.device_ids
    gone = (
        [f"device {n}" for n in values.fabric.place_of()[others].tolist()]
        if values.fabric.element_counts
        else [ids[device] for device in others.tolist()]
    )
    rest = collapse(without(values.fabric, gone)) if gone else network
    solved = solve(values, values.problem(network=rest))
    if solved.best is None:
        raise InputError(field, "must fit", solved.reason, "give it more devices")
    plan = solved.best.plan
    return ordered(plan, device_order(rest, plan.point.device_order).tolist())


def ordered(plan: Plan, order: Sequence[int]) -> Plan:
    """Return a plan whose ranks sit on the first of some devices."""
    return replace(plan, point=replace(plan.point, device_order=tuple(order[: plan.devices_used])))


def seated(plan: Plan, devices: Sequence[int]) -> Plan:
    """Return a plan whose order numbered a job's devices on these devices of the fabric."""
    return ordered(plan, [devices[int(n)] for n in plan.point.device_order])


def load_mix(name: str, folder: Path | None = None) -> tuple[MixFile | PopulationFile, Path | None]:
    """Return a mix file, and where its paths start; parameters and errors as of `load_study`."""
    path = named_file("mixes", name, folder, field="mix")
    return mix_file(load_toml(path)), None if folder is None else path.parent


def mix_file(document: dict[str, Any]) -> MixFile | PopulationFile:
    """Return what a file's tables say; InputError for the first thing that is wrong."""
    if "population" in document:
        return checked(PopulationFile, document)
    return checked(MixFile, document)


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
    fabric, scenarios = file.fabric, list[Scenario]()
    for table in file.job:
        require(
            isinstance(table.devices, list) == (file.placement == "by_hand"),
            f"job {table.name}: devices",
            "must be listed where jobs are placed by hand, and counted elsewhere",
            table.devices,
            "change placement, or devices",
        )
        scenarios.append(run_scenario(table, fabric, folder))
        fabric = scenarios[0].document["fabric"]
    values = tuple(scenario.values for scenario in scenarios)
    network = collapse(values[0].fabric)
    names = [table.name for table in file.job]
    require(len({*names}) == len(names), "job.name", "must name every job once", names, "rename")
    needed = sum(table.number for table in file.job)
    require(
        needed <= network.devices,
        "job.devices",
        f"must be at most the {network.devices:,} devices of the fabric in all",
        needed,
        "take devices from a job",
    )
    return _Mix(file, values, network)


def _places(mix: _Mix) -> list[tuple[int, ...]]:
    """Return the devices of every job, by hand, packed or spread."""
    network, places, taken = mix.network, list[tuple[int, ...]](), dict[int, str]()
    leaf, node = leaves(network), network.node
    nodes, first = np.unique(node, return_index=True)
    turn = rank_within(leaf[first])[np.searchsorted(nodes, node)]
    keys = (node, leaf, turn) if mix.file.placement == "spread" else (node, leaf)
    order = np.lexsort(keys).tolist()
    for table in mix.file.job:
        begins = sum(map(len, places))
        places.append(
            tuple(table.devices)
            if isinstance(table.devices, list)
            else tuple(order[begins : begins + table.devices])
        )
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


def leaves(network: Network) -> IntArray:
    """Return the block around the node of every device: its leaf, or the whole of few tiers."""
    return network.nesting[min(1, len(network.nesting) - 1)]


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
    network, node = mix.network, mix.network.node
    leaf = leaves(network)
    blocks, first = np.unique(leaf, return_index=True)
    parents = network.nesting[min(2, len(network.nesting) - 1)][first].tolist()
    members = [np.unique(node[leaf == block]).tolist() for block in blocks]
    devices_of = {number: np.flatnonzero(node == number).tolist() for number in {*node.tolist()}}
    size = min(map(len, devices_of.values()))
    numbers = np.array([table.number for table in mix.file.job])
    every = divisions([len(of) for of in members], parents, (-(-numbers // size)).tolist())
    options = list(islice(every, MOST_DIVISIONS + 1))
    require(options, "job.devices", "must fit in whole nodes", numbers.tolist(), "take fewer")
    # Places that are alike: as many nodes in blocks of the same parents.
    alike: dict[object, tuple[Plan, float]] = {}

    def placed(division: Division, job: int) -> tuple[tuple[int, ...], Plan, float]:
        """Return a job's devices, plan and seconds undisturbed."""
        taken = [
            of[sum(share[:job]) : sum(share[: job + 1])]
            for of, share in zip(members, division, strict=True)
        ]
        place = tuple(chain(*(devices_of[n] for n in chain(*taken))))[: numbers[job]]
        key = job, *((len(of), up) for of, up in zip(taken, parents, strict=True) if of)
        if key not in alike:
            plan = mix.plan(job, place)
            alone = simulate_jobs([(mix.problem(job, plan), seated(plan, place))])
            alike[key] = plan, float(alone.undisturbed_s[0])
        return place, *alike[key]

    rows = [
        [placed(division, job) for job in range(len(numbers))]
        for division in options[:MOST_DIVISIONS]
    ]
    times = [[seconds for *_, seconds in row] for row in rows]
    shortest = np.min(times, axis=0)

    def loss(seconds: Any) -> Any:
        return np.asarray(seconds) / shortest @ numbers / numbers.sum()

    least = loss(times)
    results: list[tuple[float, MixResult]] = []
    for option in np.argsort(least, kind="stable").tolist():
        if results and least[option] >= min(results, key=itemgetter(0))[0] * (1 - 1e-9):
            break
        result = mix.play(*zip(*(row[:2] for row in rows[option]), strict=True))
        results.append((float(loss([job.seconds for job in result.jobs])), result))
    best, proven = min(results, key=itemgetter(0))[1], len(options) <= MOST_DIVISIONS
    return replace(best, divisions=len(rows), played=len(results), proven=proven)
