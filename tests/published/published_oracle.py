"""The published model once more, over concrete devices and event by event.

Written from the words of the model alone, on the raw JSON document, in plain Python
loops: it shares no code, no table and no shortcut with `nest_core.paper.published`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A placement: layer ids per stage, first to last, and what follows from devices."""

    time: float
    width: int
    degree: int
    stages: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]
    loads: tuple[float, ...]
    memory: tuple[float, ...]
    devices: tuple[int, ...]


def all_plans(document: Document) -> Iterator[Plan]:
    """Every plan that fits devices, batch and memory."""
    for key in document["nodes"]:
        width = int(key)
        chain = _chain(document, key)
        for stages in range(1, len(chain) + 1):
            for cuts in combinations(range(1, len(chain)), stages - 1):
                bounds = [0, *cuts, len(chain)]
                split = tuple(tuple(chain[first:last]) for first, last in pairwise(bounds))
                yield from _replicated(document, width, split)


def _replicated(
    document: Document, width: int, split: tuple[tuple[int, ...], ...]
) -> Iterator[Plan]:
    per_stage = width * document["ep_degree"] * document["cp_degree"]
    if per_stage * len(split) > document["maxDevices"]:
        return
    placed = place(document, per_stage, len(split))
    levels = [level_of(document, [placed[k][0], placed[k + 1][0]]) for k in range(len(split) - 1)]
    loads, memory = [], []
    for index, layers in enumerate(split):
        from_end = len(split) - index
        producer = levels[index - 1] if index > 0 else 0
        consumer = levels[index] if index < len(split) - 1 else 0
        loads.append(stage_load(document, width, layers, from_end, producer, consumer))
        memory.append(stage_memory(document, width, layers, from_end))
    if max(memory) > document["maxMemoryPerDevice"]:
        return
    batch = int(document["mbsInBatch"])
    for degree in range(1, batch + 1):
        if degree * len(split) * per_stage > document["maxDevices"]:
            break
        slots = math.ceil(batch / degree) + len(split) - 1
        stride = document["maxDevices"] // degree
        weights = sum(_node(document, width, layer)["parameterSize"] for layer in split[0])
        heads = [replica * stride for replica in range(degree)]
        used = {head + device for head in heads for devices in placed for device in devices}
        assert len(used) == degree * len(split) * per_stage  # replicas do not overlap
        assert max(used) < document["maxDevices"]
        yield Plan(
            time=max(loads) * slots + all_reduce(document, heads, weights),
            width=width,
            degree=degree,
            stages=split,
            levels=tuple(levels),
            loads=tuple(loads),
            memory=tuple(memory),
            devices=tuple(sorted(used)),
        )


def place(document: Document, per_stage: int, stages: int) -> list[list[int]]:
    """Devices of each stage, first to last: the last one takes 0, 1, .. of the machine."""
    free = iter(range(document["maxDevices"]))
    backwards = [[next(free) for _ in range(per_stage)] for _ in range(stages)]
    return backwards[::-1]


def level_of(document: Document, devices: list[int]) -> int:
    """Innermost level that has a group with all of the devices in it."""
    size = 1
    for level, children in enumerate(document["devices_per_level"]):
        size *= children
        for start in range(0, document["maxDevices"], size):
            if all(start <= device < start + size for device in devices):
                return level
    raise AssertionError("the outermost group holds every device")


def transfer(document: Document, size: float, level: int) -> float:
    """Time of an edge across a level, whose bandwidth may not exceed an inner one's."""
    bandwidth = min(document["bws"][: level + 1])
    once = size / bandwidth + document["latency_per_level"][level]
    return once if level == 0 else once + once


def stage_load(
    document: Document,
    width: int,
    layers: tuple[int, ...],
    from_end: int,
    producer: int,
    consumer: int,
) -> float:
    """Forward plus backward of one micro-batch."""
    edges = document["edges"][str(width)]
    clock = 0.0
    for layer in layers:
        start = clock
        for edge in edges:
            if edge["destId"] == layer and edge["sourceId"] not in layers:
                start = max(start, transfer(document, edge["communicationCost"], producer))
        clock = start + _node(document, width, layer)["optimalLatencyFw"]
    forward = clock
    clock = 0.0
    if document["activationRecomputation"] and from_end > 1:
        for layer in layers:
            clock += _node(document, width, layer)["optimalLatencyBw"]
    for layer in reversed(layers):
        start = clock
        for edge in edges:
            if edge["sourceId"] == layer and edge["destId"] not in layers:
                start = max(start, transfer(document, edge["communicationCost"], consumer))
        clock = start + _node(document, width, layer)["optimalLatencyBw"]
    return forward + clock


def stage_memory(document: Document, width: int, layers: tuple[int, ...], from_end: int) -> float:
    """Bytes per device, with the stash of the micro-batches in flight."""
    weights = sum(_node(document, width, layer)["parameterSize"] for layer in layers)
    activations = sum(_node(document, width, layer)["activationSize"] for layer in layers)
    optimizer = 6 * weights if document["optimizerAlgorithm"] == "Adam" else 0
    stash = activations
    if document["activationRecomputation"]:
        stash = sum(
            edge["communicationCost"]
            for edge in document["edges"][str(width)]
            if edge["destId"] in layers and edge["sourceId"] not in layers
        )
    return weights + weights + optimizer + activations + (from_end - 1) * stash


def all_reduce(document: Document, heads: list[int], weights: float) -> float:
    """Synchronisation of the first stage over the replicas' first devices."""
    cost, lower = 0.0, 0.0
    for step in range(math.floor(math.log2(len(heads)))):
        cost += document["latency_per_level"][0] + weights / 2**step / document["bws"][0]
    for level in range(1, level_of(document, heads) + 1):
        hop = document["latency_per_level"][level] + weights / document["bws"][level]
        cost += 2 * hop + lower
        lower += cost
    return cost


def _chain(document: Document, key: str) -> list[int]:
    """Layer ids in topological order, by repeatedly taking what waits for nothing."""
    left = [node["id"] for node in document["nodes"][key]]
    order: list[int] = []
    while left:
        waiting = {edge["destId"] for edge in document["edges"][key] if edge["sourceId"] in left}
        ready = [layer for layer in left if layer not in waiting]
        assert len(ready) == 1, "the order is unique"
        order += ready
        left.remove(ready[0])
    return order


def _node(document: Document, width: int, layer: int) -> dict[str, Any]:
    return next(node for node in document["nodes"][str(width)] if node["id"] == layer)
