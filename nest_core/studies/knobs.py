"""The knobs that a scenario has: of its fabric, of its workload, and of what may be chosen.

Which there are depends on the fabric: a torus has no tiers to oversubscribe, a drawing nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nest_core.errors import InputError
from nest_core.overrides import assign
from nest_core.scenario import Scenario, expanded, resolve_scenario
from nest_core.studies.knob import Changes, Knob, Value, number_knob
from nest_core.topology.clos import TIER_NAMES
from nest_core.units import GB, to_gib

__all__ = ["fabric_table", "knobs"]

Table = Mapping[str, Any]

RATIOS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
LARGEST_RATIO = 16.0
MEMORIES_GIB = (16.0, 24.0, 32.0, 40.0, 64.0, 80.0, 96.0, 141.0, 192.0, 288.0)
FACTORS = (0.25, 0.5, 1, 2, 4)
MICRO_BATCHES = (1, 2, 4, 8, 16)
ZERO = (0, 1, 2, 3)
RECOMPUTE = ("none", "selective", "full")


def knobs(document: Table, overrides: Table, folder: Path | None = None) -> tuple[Knob, ...]:
    """The knobs that a scenario has, fabric first.

    Raises
    ------
    InputError
        If it is no scenario.
    """
    scenario = resolve_scenario(document, overrides, folder)
    table = fabric_table(document, overrides, folder)
    return (*_fabric_knobs(table, scenario), *_job_knobs(scenario))


def fabric_table(document: Table, overrides: Table, folder: Path | None = None) -> dict[str, Any]:
    """The fabric's own document with its overrides in it.

    Raises
    ------
    InputError
        If there is no such fabric, or an override leads nowhere.
    """
    merged, changes = expanded(document, overrides, folder)
    for key, value in changes.items():
        if key.startswith("fabric."):
            assign(merged, key, value)
    table = merged.get("fabric")
    if not isinstance(table, dict):
        raise InputError("fabric", "must be a table or a preset", table, "name a preset")
    return table


def _set(key: str) -> Changes:
    return lambda value: {key: value}


def _around(present: float, factors: tuple[float, ...]) -> list[float]:
    return [present * factor for factor in factors]


def _whole(values: Iterable[float]) -> list[float]:
    return [value for value in values if value == int(value) and value >= 1]


def _only(allowed: Sequence[Value]) -> Value | None:
    return allowed[0] if len(allowed) == 1 else None


def _job_knobs(scenario: Scenario) -> list[Knob]:
    """What is trained, and what the search may choose."""
    batch, sequence, space = scenario.batch, scenario.sequence, scenario.space
    memory = to_gib(scenario.accelerator.memory_bytes)
    pinned = "pinned: the search may not choose another"
    return [
        number_knob(
            "batch", "global batch", "sequences", (1, 1_000_000),
            _whole(_around(batch, FACTORS)), batch, _set("workload.global_batch_sequences"),
            whole=True, doubling=True,
        ),
        number_knob(
            "micro_batch", "micro-batch", "sequences", (1, 4096),
            [size for size in MICRO_BATCHES if batch % size == 0], _only(space.micro_batch),
            _set("search.micro_batch_sequences"), whole=True, doubling=True, note=pinned,
        ),
        number_knob(
            "zero", "ZeRO stage", "", (0, 3), ZERO, _only(space.zero), _set("search.zero"),
            whole=True, note=pinned,
        ),
        Knob(
            key="recompute", label="recomputation", unit="", low=0.0, high=0.0, whole=False,
            choices=RECOMPUTE, defaults=RECOMPUTE, present=_only(space.recompute), doubling=False,
            fabric=False, note=pinned, _changes=_set("search.recompute"),
        ),
        number_knob(
            "sequence", "sequence length", "tokens", (1, scenario.model.positions or 10_000_000),
            _whole(_around(sequence, FACTORS)), sequence,
            _set("workload.sequence_length_tokens"), whole=True, doubling=True,
            note="the global batch keeps its number of sequences",
        ),
        number_knob(
            "memory", "memory per device", "GiB", (1, 4096),
            [size for size in MEMORIES_GIB if memory / 4 <= size <= 4 * memory], memory,
            _set("accelerator.memory_GiB"), doubling=True,
        ),
    ]  # fmt: skip


def _fabric_knobs(table: dict[str, Any], scenario: Scenario) -> list[Knob]:
    """What the fabric's kind has to turn; a drawn graph has nothing."""
    if "clos" in table:
        return _clos_knobs(table)
    if "level" in table:
        return _level_knobs(table["level"])
    if "dragonfly" in table:
        return _dragonfly_knobs(table["dragonfly"])
    for kind in ("torus", "tpu_slice"):
        if kind in table:
            return _torus_knobs(kind, table[kind], scenario)
    return []


def _ratio(tier: int, name: str, present: float, key: str) -> Knob:
    return number_knob(
        f"oversubscription.{tier}", f"{name} oversubscription", "down : up",
        (min(1.0, present), max(LARGEST_RATIO, present)), RATIOS, present, _set(key), doubling=True,
        fabric=True,
    )  # fmt: skip


def _speed(key: str, label: str, present: float, path: str, per: str) -> Knob:
    return number_knob(
        f"speed.{key}", label, "GB/s", (0.01, 100_000), _around(present, FACTORS), present,
        _set(path), doubling=True, fabric=True, note=f"one direction, per {per}",
    )  # fmt: skip


def _devices(least: int, present: int, note: str, changes: Changes) -> Knob:
    sizes = [present / 2**power for power in range(-1, 5)]
    return number_knob(
        "devices", "devices", "", (least, 131_072),
        [size for size in _whole(sizes) if size % least == 0], present, changes, whole=True,
        doubling=True, fabric=True, note=note,
    )  # fmt: skip


def _clos_knobs(table: dict[str, Any]) -> list[Knob]:
    clos, path = table["clos"], "fabric.clos"
    names = TIER_NAMES[table["kind"]]
    per_node, nics = clos["devices_per_node"], clos["nics_per_node"]

    def sized(value: int) -> dict[str, Any]:
        if value * nics % per_node:
            raise InputError(
                "node size", f"must keep whole NICs at {nics} per {per_node} devices", value,
                f"use multiples of {per_node // math.gcd(nics, per_node)}",
            )  # fmt: skip
        return {
            f"{path}.devices_per_node": value, f"{path}.nics_per_node": value * nics // per_node,
        }  # fmt: skip

    found = [
        _ratio(tier, names[tier], float(ratio), f"{path}.oversubscription.{tier}")
        for tier, ratio in enumerate(clos.get("oversubscription", ()))
    ]
    found.append(
        _speed("nic", "NIC speed", clos["nic_bandwidth_GBps"], f"{path}.nic_bandwidth_GBps", "NIC")
    )
    if "intra_node" in table:
        inner, where = table["intra_node"]["bandwidth_GBps"], "fabric.intra_node.bandwidth_GBps"
        found.append(_speed("node", "link speed in the node", inner, where, "device"))
    found.append(
        number_knob(
            "node", "node size", "devices", (1, 4096), _whole(_around(per_node, FACTORS)), per_node,
            sized, whole=True, doubling=True, fabric=True,
            note="NICs per device and the number of devices stay",
        )
    )  # fmt: skip
    grown = "switches follow; the global batch stays"
    found.append(_devices(per_node, clos["devices"], grown, _set(f"{path}.devices")))
    return found


def _level_knobs(levels: Sequence[Table]) -> list[Knob]:
    found = [
        _ratio(
            tier, str(level["name"]), float(level.get("oversubscription", 1.0)),
            f"fabric.level.{tier}.oversubscription",
        )
        for tier, level in enumerate(levels) if tier
    ]  # fmt: skip
    for tier, level in enumerate(levels):
        below = levels[tier - 1]["name"] if tier else "device"
        per = below if level.get("uplink_per", "device") == "child" else "device"
        found.append(
            _speed(
                str(tier), f"{level['name']} link speed", level["bandwidth_GBps"],
                f"fabric.level.{tier}.bandwidth_GBps", str(per),
            )
        )  # fmt: skip
    sizes = [level.get("group_size") for level in levels]
    if len(sizes) > 1 and all(sizes):
        found += _hierarchy_sizes([int(size) for size in sizes if size])
    return found


def _hierarchy_sizes(sizes: list[int]) -> list[Knob]:
    """Node size and number of devices of a hierarchy of equal groups."""
    pair, below, last = sizes[0] * sizes[1], math.prod(sizes[:-1]), len(sizes) - 1

    def sized(value: int) -> dict[str, Any]:
        if pair % value:
            raise InputError(
                "node size", f"must divide the {pair} devices of a group of nodes", value,
                "use a divisor",
            )  # fmt: skip
        return {"fabric.level.0.group_size": value, "fabric.level.1.group_size": pair // value}

    def grown(value: int) -> dict[str, Any]:
        if value % below:
            raise InputError("devices", f"must be a multiple of {below}", value, "round it")
        return {f"fabric.level.{last}.group_size": value // below}

    return [
        number_knob(
            "node", "node size", "devices", (1, pair), _whole(_around(sizes[0], FACTORS)), sizes[0],
            sized, whole=True, doubling=True, fabric=True,
            note="uplinks of a node and the number of devices stay",
        ),
        _devices(
            below, math.prod(sizes), "the outermost level grows; the global batch stays", grown
        ),
    ]  # fmt: skip


def _dragonfly_knobs(table: Table) -> list[Knob]:
    return [
        _speed(
            kind, f"{kind} link speed", table[f"{kind}_bandwidth_GBps"],
            f"fabric.dragonfly.{kind}_bandwidth_GBps", "link",
        )
        for kind in ("local", "global")
    ]  # fmt: skip


def _torus_knobs(kind: str, table: Table, scenario: Scenario) -> list[Knob]:
    """Link speed, and devices along the last dimension."""
    *others, last = [int(length) for length in table["shape"]]
    plane = math.prod(others)

    def grown(value: int) -> dict[str, Any]:
        if value % plane:
            raise InputError("devices", f"must be a multiple of {plane}", value, "round it")
        return {f"fabric.{kind}.shape": [*others, value // plane]}

    found = [_devices(plane, plane * last, "the last dimension grows", grown)]
    speed = getattr(scenario.fabric, "link_bandwidth_Bps", None)
    if speed is not None:
        path = f"fabric.{kind}.link_bandwidth_GBps"
        found.insert(0, _speed("link", "link speed", speed / GB, path, "link"))
    return found
