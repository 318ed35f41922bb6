"""What the places of a population of jobs cost it, at several oversubscription ratios.

Jobs come from a log, in the order and with the times that it says, or from a histogram: sizes in
random order, each as often as its share of GPU-hours asks if all last equally long on average
(exponentially), one behind the other on a full cluster. `nest_core.studies.slurm_jobs` places them.

A job under one leaf loses nothing. Of others each shape, the nodes that a job has of every leaf, is
replayed twice with the best plan of its size on an idle fabric with the ratio: with idle
neighbours, and with all other devices of its leaves sending as much, so that it has the share of
every uplink that it has of the devices beneath. A loss is beside the shortest iteration of the size
at any place and ratio; in all they are weighted by GPU-hours.

Units: seconds; GPU-hours as shares of them all.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.documents import InputError, format_ratio, require
from nest_core.documents.schema.mix import PopulationFile, PopulationTable
from nest_core.network import FloatArray, IntArray, Network, TreeLinkMap, collapse
from nest_core.scenario import ScenarioValues
from nest_core.simulator import simulate
from nest_core.studies.mixes import best_plan, run_scenario, seated
from nest_core.studies.parameters import ratio_parameters, with_values
from nest_core.studies.slurm_jobs import ClusterJob, place_jobs, read_sacct

__all__ = ["Population", "play_population", "uplink_shares"]

LEAST_JOBS, MOST_JOBS = 30, 20_000
"""Of every size that is placed, and of all."""
MOST_SHAPES = 60
"""That are replayed, those with most GPU-hours first."""


@dataclass(frozen=True, slots=True)
class Population:
    """Where jobs of a cluster sit, and what that costs; shares are of GPU-hours.

    Parameters
    ----------
    name, placement, source : str
    sizes : sequence of mapping
        ``devices``, number of ``jobs``, ``share`` of them, and part of it ``under_one_leaf``.
    ratios : sequence of mapping
        ``ratio``, ``loss`` with idle neighbours, and ``contended_loss``.
    under_one_leaf, replayed : float
        Share of jobs under one leaf, and of others that part whose shapes were replayed.
    """

    name: str
    placement: str
    source: str
    sizes: Sequence[Mapping[str, float]]
    ratios: Sequence[Mapping[str, float]]
    under_one_leaf: float
    replayed: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio mix``."""
        none: dict[str, Any] = {"jobs": [], "contended_links": [], "bound_slowdown": None}
        return none | {"placement": self.placement, "population": asdict(self)}


@dataclass(slots=True)
class _Shape:
    """Jobs with as many nodes of every leaf: how many leaves, one place, number and share."""

    devices: int
    leaves: int
    nodes: IntArray
    jobs: int = 0
    share: float = 0.0


def play_population(
    file: PopulationFile,
    folder: Path | None = None,
    progress: Callable[[float, str], object] = lambda share, words: None,
) -> Population:
    """Place a population of jobs, and replay what they lose at every ratio.

    Parameters
    ----------
    file : PopulationFile
    folder : Path, optional
        Where a log lies that it names.
    progress : callable
        Takes what share of the ratios is done, and what comes next.

    Raises
    ------
    InputError
        For a fabric without ratios, a log that cannot be read, and jobs that do not fit.
    """
    table = file.population
    base, usual = run_scenario(table, file.fabric, folder), run_scenario(table, None, folder).values
    ladder, values = ratio_parameters(base.fabric_table), base.values
    network = collapse(values.fabric)
    require(
        ladder and isinstance(network.link_map, TreeLinkMap),
        "fabric",
        "must be a tree with tiers to oversubscribe",
        values.fabric.name,
        "pick another",
    )
    uplinks = ladder[min(1, len(network.nesting) - 2) if "level" in base.fabric_table else 0]
    jobs, weights = _jobs(table, network, folder)
    shapes, played = list[_Shape](), list[FloatArray]()
    for done, ratio in enumerate(table.ratios):
        progress(done / len(table.ratios), f"planning and replaying jobs at {format_ratio(ratio)}")
        values = replace(base, overrides=with_values(base.overrides, [(uplinks, ratio)])).values
        cluster = collapse(values.fabric)
        here = _shapes(jobs, weights, cluster, table)
        shapes = shapes or here
        played.append(_replay(values, cluster, table, here, usual.batch / usual.fabric.devices))
    every, costs = np.concatenate(played), []
    over = sum(shape.share for shape in shapes if shape.leaves > 1)
    for ratio, rows in zip(table.ratios, played, strict=True):
        least = np.array([every[every[:, 0] == size, 2].min() for size in rows[:, 0]])
        weight = over * rows[:, 1] / max(rows[:, 1].sum(), 1e-300)
        loss, contended = (weight @ (1.0 - least[:, None] / rows[:, 2:])).tolist()
        costs.append({"ratio": ratio, "loss": loss, "contended_loss": contended})
    return Population(
        file.name,
        table.placement,
        table.source,
        [_size(devices, shapes) for devices in sorted({shape.devices for shape in shapes})],
        costs,
        sum(shape.share for shape in shapes if shape.leaves == 1),
        float(played[0][:, 1].sum()) / over if over else 1.0,
    )


def _size(devices: int, shapes: Sequence[_Shape]) -> dict[str, float]:
    mine = [shape for shape in shapes if shape.devices == devices]
    share = sum(shape.share for shape in mine)
    return {
        "devices": devices,
        "jobs": sum(shape.jobs for shape in mine),
        "share": share,
        "under_one_leaf": sum(shape.share for shape in mine if shape.leaves == 1) / share,
    }


def _jobs(
    table: PopulationTable, network: Network, folder: Path | None
) -> tuple[list[ClusterJob], FloatArray]:
    """Return jobs in order of arrival, and the share of each of the GPU-hours."""
    rng = np.random.default_rng(table.seed)
    if isinstance(table.jobs, str):
        if folder is None:
            raise InputError("population.jobs", "must list sizes here", table.jobs, "list them")
        jobs = read_sacct(folder / table.jobs, int(np.bincount(network.node).max()))
        if jobs[0].arrives == jobs[-1].arrives:
            jobs = [jobs[n] for n in rng.permutation(len(jobs)).tolist()]
        weights = np.array([job.devices * job.lasts for job in jobs])
    else:
        sizes = np.array([size.devices for size in table.jobs])
        shares = np.array([size.share for size in table.jobs])
        often = LEAST_JOBS * shares / sizes / np.min(shares / sizes)
        counts = np.ceil(np.maximum(often * min(1.0, MOST_JOBS / often.sum()), LEAST_JOBS))
        which = rng.permutation(np.repeat(np.arange(len(sizes)), counts.astype(np.int64)))
        lasts = rng.exponential(size=len(which))
        columns = zip(sizes[which].tolist(), lasts.tolist(), strict=True)
        jobs = [ClusterJob(devices, 0.0, time) for devices, time in columns]
        weights = (shares / counts)[which]
    most = max(job.devices for job in jobs)
    require(
        most <= network.devices,
        "population.jobs",
        f"must have at most the {network.devices:,} devices of the fabric each",
        f"{most:,}",
        "take a larger fabric, or leave them out",
    )
    return jobs, weights / weights.sum()


def _place(
    jobs: Sequence[ClusterJob], network: Network, table: PopulationTable
) -> tuple[list[IntArray], list[IntArray]]:
    """Return the nodes of jobs, and the blocks of nodes, from leaves up."""
    first = np.unique(network.node, return_index=True)[1]
    # Of a fabric of nodes alone each is its own leaf.
    outer = network.nesting[1:] if len(network.nesting) > 2 else network.nesting
    blocks = [block[first] for block in outer]
    sizes = np.bincount(network.node)
    return place_jobs(jobs, sizes, blocks, table.placement, table.segment), blocks


def _shapes(
    jobs: Sequence[ClusterJob], weights: FloatArray, network: Network, table: PopulationTable
) -> list[_Shape]:
    """Return the shapes of placed jobs, those with most GPU-hours first."""
    placed, (leaf, *blocks) = _place(jobs, network, table)
    around, shapes = (blocks or [leaf])[0], dict[object, _Shape]()
    for job, weight, nodes in zip(jobs, weights.tolist(), placed, strict=True):
        outer = around[nodes]
        counts = [Counter(leaf[nodes[outer == n]].tolist()) for n in {*outer.tolist()}]
        key = job.devices, *sorted(tuple(sorted(of.values())) for of in counts)
        shape = shapes.setdefault(key, _Shape(job.devices, sum(map(len, counts)), nodes))
        shape.jobs, shape.share = shape.jobs + 1, shape.share + weight
    return sorted(shapes.values(), key=lambda shape: -shape.share)


def _replay(
    values: ScenarioValues,
    network: Network,
    table: PopulationTable,
    shapes: Sequence[_Shape],
    batch_per_device: float,
) -> FloatArray:
    """Return devices, share and seconds, alone and contended, of shapes and of idle places."""
    rows = []
    over = [shape for shape in shapes if shape.leaves > 1][:MOST_SHAPES]
    for devices in {shape.devices for shape in over}:
        run = replace(values, batch=max(1, round(batch_per_device * devices)))
        idle = _place([ClusterJob(devices, 0.0, 1.0)], network, table)[0][0]
        mine = [_Shape(devices, 0, idle), *(of for of in over if of.devices == devices)]
        orders = [np.flatnonzero(np.isin(network.node, of.nodes))[:devices].tolist() for of in mine]
        plan = best_plan(run, network, orders[0], f"population.jobs: {devices:,} devices")
        problem = run.problem(plan.recompute, network)
        for shape, order in zip(mine, orders, strict=True):
            link_map = network.link_map.scaled(uplink_shares(network, order))
            full = replace(problem, network=replace(network, link_map=link_map))
            times = (simulate(of, seated(plan, order)).seconds for of in (problem, full))
            rows.append((devices, shape.share, *times))
    return np.array(rows, float).reshape(-1, 4)


def uplink_shares(network: Network, devices: Sequence[int]) -> FloatArray:
    """Return the share of every link group that devices have if all beneath it send as much."""
    link_map: Any = network.link_map
    is_mine = np.zeros(network.devices)
    is_mine[devices] = 1.0
    parts = [np.ones(0 if link_map.scale_up is None else len(link_map.scale_up.capacity_Bps))]
    for tier in link_map.tiers:
        mine, every = np.bincount(tier.child, is_mine), np.bincount(tier.child)
        share = np.divide(mine, every, out=np.ones(len(mine)), where=mine > 0)
        parts.append(np.repeat(share, 2 * tier.group_links))
    return np.concatenate(parts)
