"""The published program: the placement with the least time per batch, exactly.

For every tensor width, number of stages s and data-parallel degree d the time is
``max load * (ceil(B / d) + s - 1) + sync(first stage's parameters, d)``. The largest load
is a chain program from the last stage to the first,

    ``best[s][i] = min over j > i of max(load(layers i..j-1 at position s), best[s-1][j])``,

because a stage's devices, hence its levels, follow from its position alone. The first
stage's end and the degree are enumerated together, because the synchronisation depends
on both.

Ties (times equal within 1e-12) go to the fewest devices, then the fewest stages, then the
smallest width; among equal cuts to the shortest first stages.

References
----------
NEST, MLSys 2026, Algorithm 1; scai-tech/Nest (MIT).
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nest_core.documents import humanise_bytes, plural
from nest_core.paper.published.costs import (
    BATCH_SEQUENCES,
    StageTables,
    boundary_levels,
    exceeds,
    synchronisation_levels,
    synchronisation_terms,
)
from nest_core.paper.published.instance import Instance
from nest_core.paper.published.layers import Layers

if TYPE_CHECKING:
    from nest_core.paper.published.costs import FloatArray, IntArray

__all__ = ["Solution", "SolvedStage", "least_memory", "solve"]

_TIE = 1e-12
# Keeps states that a bound would cut off only by rounding.
_SLACK = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class SolvedStage:
    """One stage of a placed pipeline.

    Attributes
    ----------
    first, last : int
        Layers ``[first, last)`` in topological order, the embedding being layer 0.
    devices : int
        Devices of the stage in one replica.
    level_to_producer : int or None
        Level (0 innermost) towards the stage before; None for the first.
    load : float
        Forward and backward of one micro-batch, in the instance's unit.
    memory_bytes : float
        Bytes needed per device.
    """

    first: int
    last: int
    devices: int
    level_to_producer: int | None
    load: float
    memory_bytes: float

    def to_json(self) -> dict[str, object]:
        """Plain values for the command line's ``stages``."""
        return {
            "layers": [self.first, self.last],
            "devices": self.devices,
            "level_to_producer": self.level_to_producer,
            "load": self.load,
            "memory_bytes": self.memory_bytes,
        }


@dataclass(frozen=True, slots=True)
class Solution:
    """The best placement of an instance, or why there is none.

    Attributes
    ----------
    feasible : bool
    time_per_batch : float or None
        In the instance's own unit.
    throughput : float or None
        The published tables' 4,096 sequences over `time_per_batch`.
    data_parallel, tensor_parallel : int or None
        Replicas d and tensor width t.
    stages : tuple of SolvedStage
        From first to last; empty when infeasible.
    solve_seconds : float
        Wall time of the search alone.
    reason : str or None
        One sentence when infeasible.
    """

    feasible: bool
    time_per_batch: float | None
    throughput: float | None
    data_parallel: int | None
    tensor_parallel: int | None
    stages: tuple[SolvedStage, ...]
    solve_seconds: float
    reason: str | None

    @property
    def devices_used(self) -> int:
        """Return devices that all replicas hold together."""
        return (self.data_parallel or 0) * sum(stage.devices for stage in self.stages)

    def to_json(self) -> dict[str, object]:
        """Plain values for ``nest-studio solve --json``."""
        return {
            "costs": "published",
            "feasible": self.feasible,
            "time_per_batch": self.time_per_batch,
            "throughput": self.throughput,
            "data_parallel": self.data_parallel,
            "tensor_parallel": self.tensor_parallel,
            "stages": [stage.to_json() for stage in self.stages],
            "devices_used": self.devices_used,
            "solve_seconds": self.solve_seconds,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class _Degrees:
    """Data-parallel degrees worth trying, ascending, and what each costs.

    Degrees with the same synchronisation terms form a class; of those with the same
    number of micro-batches per replica only the smallest is kept.
    """

    degree: IntArray
    micro_batches: IntArray
    kind: IntArray
    fixed: FloatArray
    per_byte: FloatArray

    @classmethod
    def of(cls, instance: Instance) -> _Degrees:
        degree = np.arange(1, min(instance.devices, instance.micro_batches) + 1, dtype=np.int64)
        levels = synchronisation_levels(instance, degree, instance.devices // degree)
        halvings = np.frexp(degree)[1].astype(np.int64) - 1
        kind = halvings * (len(instance.bandwidths) + 1) + levels
        micro_batches = -(-instance.micro_batches // degree)
        _, new = np.unique(kind * (instance.micro_batches + 1) + micro_batches, return_index=True)
        new.sort()
        terms = {
            key: synchronisation_terms(instance, *divmod(key, len(instance.bandwidths) + 1))
            for key in np.unique(kind).tolist()
        }
        keys = sorted(terms)
        return cls(
            degree=degree[new],
            micro_batches=micro_batches[new],
            kind=np.searchsorted(keys, kind[new]),
            fixed=np.array([terms[key][0] for key in keys]),
            per_byte=np.array([terms[key][1] for key in keys]),
        )

    def up_to(self, most: int) -> IntArray:
        """Return every class's index of the best degree <= `most`: that with the fewest slots."""
        allowed = int(np.searchsorted(self.degree, most, side="right"))
        latest = np.full(len(self.fixed), -1, dtype=np.int64)
        # Of repeated indices the last assignment stays: degrees ascend, slots descend.
        latest[self.kind[:allowed]] = np.arange(allowed)
        return latest[latest >= 0]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A complete plan but for the cuts behind its first stage."""

    time: float
    devices: int
    stages: int
    width: int
    degree: int
    first_cut: int

    def beats(self, other: _Candidate | None) -> bool:
        if other is None or self.time < other.time * (1 - _TIE):
            return True
        return self.time <= other.time * (1 + _TIE) and (
            (self.devices, self.stages, self.width) < (other.devices, other.stages, other.width)
        )


def solve(instance: Instance) -> Solution:
    """Find the placement with the least time per batch.

    Parameters
    ----------
    instance : Instance

    Returns
    -------
    Solution
        The optimum over all widths, numbers of stages, degrees and cuts of the published
        model; `Solution.reason` says what is short where nothing fits.

    Notes
    -----
    O(widths * stages * layers * longest stage) time. Stages longer than memory allows, or
    slower than the best plan found so far could bear, are never looked at.
    """
    started = time.perf_counter()
    degrees = _Degrees.of(instance)
    best: _Candidate | None = None
    winner: _InstanceSearch | None = None
    for layers in _fitting(instance):
        search = _InstanceSearch(instance, StageTables(instance, layers))
        candidate = search.run(degrees, best)
        if candidate is not best:
            best, winner = candidate, search
    if best is None or winner is None:
        seconds = time.perf_counter() - started
        return Solution(False, None, None, None, None, (), seconds, _shortage(instance))
    return Solution(
        feasible=True,
        time_per_batch=best.time,
        throughput=BATCH_SEQUENCES / best.time,
        data_parallel=best.degree,
        tensor_parallel=best.width,
        stages=winner.stages(best),
        solve_seconds=time.perf_counter() - started,
        reason=None,
    )


def _fitting(instance: Instance) -> list[Layers]:
    """Return the widths of which one stage at least fits the devices."""
    return [
        layers
        for layers in instance.widths
        if instance.stage_devices(layers.width) <= instance.devices
    ]


class _InstanceSearch:
    """The chain program of one tensor width."""

    def __init__(self, instance: Instance, tables: StageTables) -> None:
        self._instance, self._tables = instance, tables
        self._width = tables.layers.width
        self._stage_devices = instance.stage_devices(self._width)
        self._positions = min(tables.count, instance.devices // self._stage_devices)
        self._levels = boundary_levels(instance, self._stage_devices, self._positions)
        self._span = tables.span(memory=instance.memory_bytes)
        self._choices: list[IntArray] = []

    def run(self, degrees: _Degrees, best: _Candidate | None) -> _Candidate | None:
        """Try every number of stages; return the better of `best` and what was found."""
        behind = np.full(self._tables.count + 1, np.inf)
        behind[-1] = 0.0
        for position in range(1, self._positions + 1):
            options = degrees.up_to(self._instance.devices // (position * self._stage_devices))
            slots = degrees.micro_batches[options] + (position - 1)
            # Later pipelines have more slots, so no state above this bound can help them.
            bound = _SLACK * best.time / float(slots.min()) if best else np.inf
            span = min(self._span, self._tables.span(load=bound))
            if span == 0:
                break
            largest = self._largest_loads(position, span, behind)
            best = self._complete(degrees, options, slots, largest[:, 0], position, best)
            choice = largest.argmin(axis=0)
            self._choices.append(choice)
            behind[:-1] = np.take_along_axis(largest, choice[None, :], axis=0)[0]
            behind[-1] = np.inf
        return best

    def _largest_loads(self, position: int, span: int, behind: FloatArray) -> FloatArray:
        """Return largest load of stage [w-1, i] at `position` and the best stages behind it."""
        tables, levels = self._tables, self._levels
        loads = tables.loads(position, span, levels[position], levels[position - 1])
        largest: FloatArray = np.maximum(loads, tables.following(behind, span))
        largest[exceeds(tables.memory(position, span), self._instance.memory_bytes)] = np.inf
        return largest

    def _complete(
        self,
        degrees: _Degrees,
        options: IntArray,
        slots: IntArray,
        largest: FloatArray,
        position: int,
        best: _Candidate | None,
    ) -> _Candidate | None:
        """Close the pipeline with a first stage of w layers and replicate it."""
        cuts = np.flatnonzero(np.isfinite(largest))
        if not len(cuts):
            return best
        kinds = degrees.kind[options]
        sync = (
            degrees.fixed[kinds]
            + degrees.per_byte[kinds] * self._tables.parameters[cuts + 1][:, None]
        )
        times = largest[cuts][:, None] * slots + sync
        tied = np.argwhere(times <= times.min() * (1 + _TIE))
        degree, cut = min((int(degrees.degree[options[column]]), int(row)) for row, column in tied)
        column = int(np.flatnonzero(degrees.degree[options] == degree)[0])
        solution = _Candidate(
            time=float(times[cut, column]),
            devices=degree * position * self._stage_devices,
            stages=position,
            width=self._width,
            degree=degree,
            first_cut=int(cuts[cut]) + 1,
        )
        return solution if solution.beats(best) else best

    def stages(self, plan: _Candidate) -> tuple[SolvedStage, ...]:
        """Follow the choices behind the first cut."""
        ends = [0, plan.first_cut]
        for position in range(plan.stages - 1, 0, -1):
            ends.append(ends[-1] + int(self._choices[position - 1][ends[-1]]) + 1)
        return tuple(
            self._stage(first, last, plan.stages - index, first == 0)
            for index, (first, last) in enumerate(itertools.pairwise(ends))
        )

    def _stage(self, first: int, last: int, position: int, leading: bool) -> SolvedStage:
        row = last - first - 1
        producer = 0 if leading else self._levels[position]
        loads = self._tables.loads(position, row + 1, producer, self._levels[position - 1])
        return SolvedStage(
            first=first,
            last=last,
            devices=self._stage_devices,
            level_to_producer=None if leading else producer,
            load=float(loads[row, first]),
            memory_bytes=float(self._tables.memory(position, row + 1)[row, first]),
        )


def least_memory(instance: Instance, layers: Layers) -> tuple[float, int]:
    """Return bytes per device of the least demanding pipeline of one width.

    The smallest memory that any plan needs on its fullest device is itself a chain program, that of
    `solve` with bytes in the place of loads.

    Parameters
    ----------
    instance : Instance
    layers : Layers
        One of the instance's widths, of which at least one stage fits the devices.

    Returns
    -------
    float, int
        The smallest possible need of the fullest device, and the fewest stages that
        attain it.
    """
    tables = StageTables(instance, layers)
    least, stages = np.inf, 0
    behind = np.full(tables.count + 1, np.inf)
    behind[-1] = 0.0
    most = instance.devices // instance.stage_devices(layers.width)
    for position in range(1, min(tables.count, most) + 1):
        span = tables.span(memory=least)
        needs = np.maximum(tables.memory(position, span), tables.following(behind, span))
        behind[:-1] = needs.min(axis=0)
        behind[-1] = np.inf
        if behind[0] < least:
            least, stages = float(behind[0]), position
    return least, stages


def _shortage(instance: Instance) -> str:
    """Return one sentence on what an instance without a placement is short of."""
    fitting = _fitting(instance)
    if not fitting:
        fewest = instance.stage_devices(instance.widths[0].width)
        return (
            f"Devices: one stage takes at least {fewest:,} (tensor width times ep_degree times "
            f"cp_degree), but there are {instance.devices:,}."
        )
    needs = [(*least_memory(instance, layers), layers.width) for layers in fitting]
    need, stages, width = min(needs)
    return (
        f"Memory: the least demanding placement (tensor width {width}, {plural(stages, 'stage')}) "
        f"needs {humanise_bytes(need)} on its fullest "
        f"device, {humanise_bytes(need - instance.memory_bytes)} more than the "
        f"{humanise_bytes(instance.memory_bytes)} there are."
    )
