"""The level-wise recurrence on the published costs: answers of `nest_core.paper.published`.

The recurrence is told the longest stages that the published tables allow, level by level, and
nothing else of them. `solve` knows that stages follow one another without gaps, so that levels
follow from positions; the recurrence may leave devices out, and finds that this gains nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from nest_core.paper.published import PAPER_CASES, paper_cells, read_instance, solve
from nest_core.paper.published.costs import (
    StageTables,
    boundary_levels,
    synchronisation_levels,
    synchronisation_terms,
)
from nest_core.planner.levelwise.limits import least_objective
from nest_core.planner.levelwise.recurrence import (
    NEVER,
    Places,
    begin,
    extend,
    suffixes,
    trace,
)

# In no figure of the paper, and so in no preset.
UNPRINTED = ("h100_spineLeaf_bert_d128_mbs1", "h100_spineLeaf_bert_d1024_mbs1")


@dataclass(frozen=True)
class Answer:
    """A plan; ordered as `solve` breaks ties."""

    devices: int
    stages: int
    width: int
    degree: int
    seconds: float
    cuts: tuple[int, ...]


class Published:
    """The published tables of one width, as the recurrence reads them."""

    def __init__(self, instance, layers) -> None:
        self.instance, self.each = instance, instance.stage_devices(layers.width)
        self.tables = StageTables(instance, layers)
        self.most = min(self.tables.count, instance.devices // self.each)
        self.span = self.tables.span(memory=instance.memory_bytes)
        self.between = np.array(boundary_levels(instance, self.each, self.most)[:-1])
        ends = range(1 + len(instance.bandwidths))
        self.loads = {
            (up, down): self._by_end(self._load(up, down)) for up in ends for down in ends
        }
        needs = [self._by_end(self.tables.memory(e, self.span)) for e in range(1, self.most + 1)]
        limit = instance.memory_bytes * (1 + 1e-12)
        self.memory = np.array([[longest(one <= limit)] for one in needs])
        self.work = np.add(layers.forward, layers.backward)

    def _load(self, up: int, down: int):
        position = 1 if down == 0 else 2  # the last stage alone recomputes nothing
        return self.tables.loads(position, self.span, max(up - 1, 0), max(down - 1, 0))

    def _by_end(self, table):
        """Of the stage of ``w`` layers that ends before layer ``j``, shape (span, L + 1)."""
        # Not a number, which is under no limit, where it would begin before the first layer.
        shifted = np.full((self.span, self.tables.count + 1), np.nan)
        for w, row in enumerate(table, start=1):
            shifted[w - 1, w:] = row[: len(row) + 1 - w]
        return shifted

    def sync(self, degree: int):
        """Of the first stage by its end, in its own width's replicas."""
        stride = np.array([self.instance.devices // degree])
        (levels,) = synchronisation_levels(self.instance, np.array([degree]), stride)
        fixed, per_byte = synchronisation_terms(self.instance, int(math.log2(degree)), int(levels))
        return fixed + per_byte * self.tables.parameters

    def attempts(self, places: int, sync):
        """Plans under caps, with the recurrence."""
        ends = 1 + len(self.instance.bandwidths)
        p = Places(np.arange(1, places + 1)[None], self.between[:places], np.zeros(1, int), False)
        table = suffixes(places, p, ends)
        last = np.arange(self.tables.count + 1)
        pick = np.zeros((1, ends, ends, len(last)), dtype=np.int64)

        def attempt(cap: float, sync_cap: float, target: int):
            assert target == 0
            time = np.empty((ends, ends, len(last)), dtype=np.int64)
            for (up, down), loads in self.loads.items():
                time[up, down] = longest(loads <= cap)
            time[0] = np.where((time[0] == 0) & (sync <= sync_cap), 0, last)
            time[1:] = np.maximum(time[1:], 1)  # a stage before it has a layer
            end = begin(p, table, last[-1])
            for e in range(1, places + 1):
                first = np.maximum(time, self.memory[min(e, places) - 1, 0])
                best = np.where(first < last, first, NEVER)[None]
                end = extend(p, table, e, 0, best, pick)
                if end[0] or (table.layer[e] == NEVER).all():
                    break
            plan = np.zeros((5, end[0] + 1), dtype=np.int64)
            if not end[0]:
                return plan, np.inf, np.inf
            trace(table, end, plan)
            loads = [
                self.loads[up, down][j - i - 1, j]
                for (i, j), up, down in zip(pairwise(plan[0]), plan[3], plan[4], strict=False)
            ]
            return plan, float(max(loads)), float(sync[plan[0, 1]])

        return attempt


def longest(allowed):
    """First layer of the longest stage whose shorter ones are allowed too, by its end."""
    barred = np.vstack([~allowed, np.ones(allowed.shape[1], dtype=bool)])
    return np.arange(allowed.shape[1]) - barred.argmax(axis=0)


def programmed(instance) -> Answer | None:
    """The best plan of all widths and degrees."""
    best: Answer | None = None
    for layers in instance.widths:
        one = Published(instance, layers)
        most = min(instance.devices // one.each, instance.micro_batches)
        for degree in range(most, 0, -1):  # few are left to try once a fast plan is known
            m = -(-instance.micro_batches // degree)
            places = min(one.most, instance.devices // (one.each * degree))
            sync = one.sync(degree)
            found = []
            if one.span == one.tables.count and one.memory[0, 0, -1] == 0:
                found.append((m * one.loads[0, 0][-1, -1] + sync[-1], (0, one.tables.count)))
            seconds, plan, done = least_objective(
                one.attempts(places, sync),
                np.ones(places + 1, dtype=bool),
                m,
                float(one.work.sum()),
                float(one.work.max()),
                float(sync[1]),
                best.seconds * (1 + 1e-12) if best else np.inf,
                lambda: False,
            )
            assert done
            if plan.size:
                found.append((seconds, tuple(plan[0].tolist())))
            for seconds, cuts in found:
                stages = len(cuts) - 1
                devices = stages * degree * one.each
                new = Answer(devices, stages, layers.width, degree, float(seconds), cuts)
                best = new if best is None else better(best, new)
    return best


def better(old: Answer, new: Answer) -> Answer:
    """The faster, of equal ones the one with the fewest devices, stages, width."""
    if not math.isclose(old.seconds, new.seconds, rel_tol=1e-12):
        return min(old, new, key=lambda one: one.seconds)
    return min(old, new, key=lambda one: (one.devices, one.stages, one.width))


def solved(instance) -> Answer | None:
    solution = solve(instance)
    if not solution.feasible:
        return None
    return Answer(
        solution.devices_used,
        len(solution.stages),
        solution.tensor_parallel,
        solution.data_parallel,
        pytest.approx(solution.time_per_batch, rel=1e-12),
        (0, *(stage.last for stage in solution.stages)),
    )


@pytest.mark.parametrize("name", PAPER_CASES)
@pytest.mark.sampled(4)
def test_it_finds_the_published_answers_of_every_preset(name: str) -> None:
    for cell in paper_cells(name):
        assert programmed(cell.instance) == solved(cell.instance), cell.instance.devices


@pytest.mark.parametrize("name", UNPRINTED)
def test_it_finds_those_of_the_other_reference_instances(shared_data, name: str) -> None:
    instance = read_instance(shared_data / "nest_instances" / f"{name}.json")
    assert programmed(instance) == solved(instance)


@pytest.mark.parametrize("name", ["llama2", "llama2-h100", "gpt3-h100"])
def test_it_finds_them_where_memory_decides_every_cut(name: str) -> None:
    instance = paper_cells(name)[0].instance
    stashing = replace(instance, recompute=False, memory_bytes=2 * instance.memory_bytes)
    found = programmed(stashing)
    assert found == solved(stashing)
    assert found is not None
    lengths = [end - first for first, end in pairwise(found.cuts)]
    assert 2 * lengths[0] <= lengths[-1]  # the first stage stashes most
