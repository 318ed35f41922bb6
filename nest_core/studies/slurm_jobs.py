"""Jobs of a cluster: which there were, by Slurm's log, and the nodes that Slurm gives them.

Under ``topology/tree`` a job goes below the lowest switch with enough idle nodes, of those the one
with the fewest; there, leaf after leaf, to the one that holds what is left with the fewest idle
nodes to spare, else to the one with the most. Under ``topology/block`` a leaf is a base block: a
job takes no more blocks than its size needs, or waits; in segments, every segment is placed so by
itself. A job of less than a node goes to the fullest node with room; larger ones have whole nodes.
Jobs begin in order, and one that waits holds up those behind it: there is no backfill.

Of the rows that ``sacct -P`` prints steps (``123.batch``, ``123.extern``, ``123.0``) are left out:
they are parts of their jobs. Devices are those of ``AllocTRES`` (``gres/gpu=16``), or of
``NNodes`` whole nodes where no job has any.

References
----------
Slurm, "Topology Guide" and the manual of sacct (slurm.schedmd.com); ``eval_nodes_tree.c`` and
``eval_nodes_block.c`` of github.com/SchedMD/slurm, for nodes of equal weight and one block size.
"""

import csv
import heapq
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nest_core.documents import InputError, log_blocks, require
from nest_core.network import IntArray

__all__ = ["ClusterJob", "job_nodes", "place_jobs", "read_sacct"]

_ASK = "print it with sacct -a -X -P -o JobID,NNodes,AllocTRES,ElapsedRaw,Start"
_GPUS = re.compile(r"gres/gpu[^=,]*=(\d+)")


class ClusterJob(NamedTuple):
    """Devices of a job, when it comes and how long it runs, both in one unit."""

    devices: int
    arrives: float
    lasts: float


def read_sacct(path: Path, node_size: int) -> list[ClusterJob]:
    """Return the jobs of a log, in order of their starts where it has them.

    Raises
    ------
    InputError
        For a file without the columns that are needed, without jobs, or with a figure that is none.
    """
    lines = (line for block in log_blocks(path) for line in block.decode().splitlines())
    reader = csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE, restval="")
    columns = {*(reader.fieldnames or ())}
    require(
        {"JobID", "ElapsedRaw"} <= columns and columns & {"AllocTRES", "NNodes"},
        str(path),
        "must have the columns JobID, ElapsedRaw, and AllocTRES or NNodes",
        "|".join(reader.fieldnames or ())[:200],
        _ASK,
    )
    by_nodes, by_gpus = list[ClusterJob](), list[ClusterJob]()
    for row in reader:
        if "." in row["JobID"] or row.get("Start") in ("Unknown", "None"):
            continue
        try:
            start = datetime.fromisoformat(row.get("Start") or "1970-01-01").timestamp()
            lasts, nodes = int(row["ElapsedRaw"]), int(row.get("NNodes") or 0)
        except ValueError as error:
            raise InputError(
                f"{path}, line {reader.line_num}", "must have whole seconds and times", error, _ASK
            ) from error
        gpus = max(map(int, _GPUS.findall(row.get("AllocTRES", ""))), default=0)
        by_nodes += [ClusterJob(nodes * node_size, start, lasts)] * (nodes * lasts > 0)
        by_gpus += [ClusterJob(gpus, start, lasts)] * (gpus * lasts > 0)
    jobs = sorted(by_gpus or by_nodes, key=lambda job: job.arrives)
    require(jobs, str(path), "must hold jobs that ran on devices", "none", _ASK)
    return jobs


def place_jobs(
    jobs: Sequence[ClusterJob],
    size: IntArray,
    blocks: Sequence[IntArray],
    rule: str,
    segment: int | None = None,
) -> list[IntArray]:
    """Return the nodes of every job.

    Parameters
    ----------
    jobs : sequence of ClusterJob
        In order of arrival.
    size : int array (nodes,)
        Devices of every node.
    blocks : sequence of int array (nodes,)
        The leaf of every node, and what is around it, up to all.
    rule : {"tree", "block"}
    segment : int, optional
        Nodes that stay in as few blocks as they need, under ``block``.

    Raises
    ------
    InputError
        For a job that finds no place while all nodes are idle.

    Examples
    --------
    >>> jobs = [ClusterJob(8, 0, 2), ClusterJob(16, 0, 1), ClusterJob(16, 0, 1)]
    >>> blocks = [np.array([0, 0, 1, 1]), np.zeros(4, int)]
    >>> [nodes.tolist() for nodes in place_jobs(jobs, np.full(4, 8), blocks, "tree")]
    [[0], [2, 3], [2, 3]]
    """
    idle, now = size.copy(), 0.0
    running: list[tuple[float, int]] = []
    placed: list[IntArray] = []
    for number, job in enumerate(jobs):
        now, nodes = max(now, job.arrives), None
        while nodes is None:
            while running and running[0][0] <= now:
                ended = heapq.heappop(running)[1]
                idle[placed[ended]] += np.minimum(size[placed[ended]], jobs[ended].devices)
            nodes = job_nodes(job.devices, idle, size, blocks, rule, segment)
            require(
                running or nodes is not None,
                "population",
                f"must hold jobs that topology/{rule} can place on the idle fabric",
                f"{job.devices:,} devices",
                "change segment, or leave it out",
            )
            now = now if nodes is not None else running[0][0]
        placed.append(nodes)
        idle[nodes] -= np.minimum(size[nodes], job.devices)
        heapq.heappush(running, (now + job.lasts, number))
    return placed


def job_nodes(
    devices: int,
    idle: IntArray,
    size: IntArray,
    blocks: Sequence[IntArray],
    rule: str,
    segment: int | None,
) -> IntArray | None:
    """Return the nodes of a job, of which ``idle`` has the idle devices; None where it waits."""
    if devices < size.max():
        fits = np.flatnonzero(idle >= devices)
        return fits[[idle[fits].argmin()]] if len(fits) else None
    free, need = np.flatnonzero(idle == size), -int(-devices // size.max())
    if rule == "tree":
        for block in blocks:
            counts = np.bincount(block[free], minlength=1)
            if counts.max() >= need:
                switch = np.where(counts >= need, counts, len(idle) + 1).argmin()
                return _fill(free[block[free] == switch], blocks[0], need)
        return None
    part = min(segment or need, need)
    most = -int(-part // np.bincount(blocks[0]).max())
    taken = []
    for _ in range(need // part):
        counts = np.sort(np.bincount(blocks[0][free], minlength=1))
        if need % part or counts[-most:].sum() < part:
            return None
        taken.append(_fill(free, blocks[0], part))
        free = np.setdiff1d(free, taken[-1])
    return np.concatenate(taken)


def _fill(free: IntArray, leaf: IntArray, need: int) -> IntArray:
    """Return so many free nodes of the tightest leaf that holds them, or of the emptiest first."""
    taken = []
    while need:
        counts = np.bincount(leaf[free])
        fits = np.where(counts >= need, counts, len(leaf) + 1)
        best = fits.argmin() if counts.max() >= need else counts.argmax()
        taken.append(free[leaf[free] == best][:need])
        free, need = free[leaf[free] != best], need - len(taken[-1])
    return np.sort(np.concatenate(taken))
