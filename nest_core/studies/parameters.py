"""The parameters that a scenario has: of its fabric, of its workload, and of what may be chosen.

Which there are depends on the fabric: a torus has no tiers to oversubscribe, a drawing nothing. A
parameter turns a value into overrides of the scenario's document, so that every point of a study is
a scenario that can be written down, opened and planned by itself.
"""

import difflib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nest_core.documents import GB, InputError, require, to_gib
from nest_core.documents.schema import Parameter, parameter
from nest_core.fabric.clos_plan import TIER_NAMES
from nest_core.scenario import Scenario, ScenarioValues

__all__ = [
    "Value",
    "distinct",
    "parameter_named",
    "parse_values",
    "ratio_parameters",
    "renamed",
    "sweep_parameters",
    "with_values",
]

Value = int | float | str
MAX_VALUES = 40


def parameter_named(
    available: Sequence[Parameter], name: str, field: str = "parameter"
) -> Parameter:
    """Return the parameter of a name; of a family, as of all tiers' ratios, the first.

    Raises
    ------
    InputError
        If the scenario has none; the nearest name is the remedy.
    """
    families = {candidate.name.partition(".")[0]: candidate for candidate in reversed(available)}
    by_name = families | {candidate.name: candidate for candidate in available}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(
        name, [*by_name, *(candidate.key for candidate in available)], 1
    )
    hint = (
        f"write {near[0]}"
        if near
        else "pick " + ", ".join(candidate.name for candidate in available)
    )
    raise InputError(field, "must be a parameter of the scenario", name, hint)


def renamed(swept: Any) -> Any:
    """Return what a sweep varies by its present name; notebooks written before say knob."""
    return (
        {"parameter": swept["knob"], "values": swept["values"]}
        if isinstance(swept, Mapping) and swept.keys() == {"knob", "values"}
        else swept
    )


def parse_values(parameter: Parameter, text: str) -> tuple[Value, ...]:
    """Return values that a person wrote, separated by commas; as written, each once.

    Raises
    ------
    InputError
        If one is no value of the parameter, there is none, or there are more than forty.

    Examples
    --------
    >>> from nest_core.scenario import Scenario, scenario_document
    >>> from nest_core.studies.parameters import sweep_parameters
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> parse_values(parameter_named(sweep_parameters(Scenario(document)), "zero"), "3, 0,1, 3")
    (3, 0, 1)
    """
    parts = [part.strip() for part in text.replace(";", ",").split(",")]
    return distinct(parameter, [parameter.read(part) for part in parts if part], parameter.label)


def distinct(parameter: Parameter, values: Sequence[object], field: str) -> tuple[Value, ...]:
    """Return values checked, each once, in the order in which they were given."""
    require(
        1 <= len(values) <= MAX_VALUES,
        field,
        f"must have 1 to {MAX_VALUES} values",
        len(values),
        "write 1, 2, 4",
    )
    return tuple(dict.fromkeys(parameter.checked(value) for value in values))


def with_values(
    overrides: Mapping[str, Any], pairs: Iterable[tuple[Parameter, Value]]
) -> dict[str, Any]:
    """Return overrides with parameters turned; what a parameter sets comes last."""
    turned = dict(overrides)
    for axis, value in pairs:
        for key, setting in axis.overrides(value).items():
            turned.pop(key, None)
            turned[key] = setting
    return turned


Table = Mapping[str, Any]
Changes = Callable[[Any], dict[str, Any]]

RATIOS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
MEMORIES_GIB = (16.0, 24.0, 32.0, 40.0, 64.0, 80.0, 96.0, 141.0, 192.0, 288.0)
FACTORS = (0.25, 0.5, 1, 2, 4)
MICRO_BATCHES = (1, 2, 4, 8, 16)
LARGEST_DEFAULT = 131_072
"""Devices of the largest fabric that is worth a sweep unless asked for."""


def sweep_parameters(scenario: Scenario) -> tuple[Parameter, ...]:
    """Return the parameters that a scenario has, fabric first.

    Raises
    ------
    InputError
        If it is no scenario.
    """
    values, table = scenario.values, scenario.fabric_table
    turned = [_TURNED[name](table, values) for name in _TURNED if name in table]
    return (*itertools.chain(*turned), *_job_parameters(values))


def ratio_parameters(table: Table) -> list[Parameter]:
    """Return the oversubscription ratios that a fabric's document has, innermost first."""
    if "clos" in table:
        names, path = TIER_NAMES[table["kind"]], "fabric.clos.oversubscription"
        ratios = enumerate(table["clos"].get("oversubscription", ()))
        return [_ratio(tier, names[tier], ratio, f"{path}.{tier}") for tier, ratio in ratios]
    return [
        _ratio(
            tier,
            level["name"],
            level.get("oversubscription", 1.0),
            f"fabric.level.{tier}.oversubscription",
        )
        for tier, level in enumerate(table.get("level", ()))
        if tier
    ]


def _whole(values: Iterable[float]) -> list[float]:
    return [value for value in values if value == int(value) and value >= 1]


def _only(allowed: Sequence[Value]) -> Value | None:
    return allowed[0] if len(allowed) == 1 else None


def _swept(
    path: str,
    worth: Iterable[Value],
    present: Value | None,
    changes: Changes | None = None,
    *,
    key: str = "",
    label: str = "",
    **more: Any,
) -> Parameter:
    """Return the parameter of a path as a scenario has it; what is there is worth a sweep."""
    of = parameter(path)
    values = [*dict.fromkeys(worth)]
    if not of.choices:
        numbers = {of.kind(value) for value in values}
        values = sorted(numbers if present is None else numbers | {of.kind(present)})
    return replace(
        of,
        name=key or of.name,
        label=label or of.label,
        values=tuple(values),
        present=present,
        changes=changes,
        **more,
    )


def _job_parameters(scenario: ScenarioValues) -> list[Parameter]:
    """Return what is trained, and what the search may choose."""
    batch, sequence, space = scenario.batch, scenario.sequence, scenario.space
    memory = to_gib(scenario.accelerator.memory_bytes)
    pinned = "pinned: the search may not choose another"
    zero, recompute = parameter("search.zero"), parameter("search.recompute")
    return [
        _swept(
            "workload.global_batch_sequences",
            _whole(batch * factor for factor in FACTORS),
            batch,
            doubling=True,
        ),
        _swept(
            "search.micro_batch_sequences",
            [size for size in MICRO_BATCHES if batch % size == 0],
            _only(space.micro_batch),
            doubling=True,
            note=pinned,
        ),
        _swept(zero.key, zero.options, _only(space.zero), note=pinned),
        _swept(recompute.key, recompute.options, _only(space.recompute), note=pinned),
        _swept(
            "workload.sequence_length_tokens",
            [
                size
                for size in _whole(sequence * factor for factor in FACTORS)
                if size <= (scenario.model.positions or size)
            ],
            sequence,
            doubling=True,
            note="the global batch keeps its number of sequences",
        ),
        _swept(
            "accelerator.memory_GiB",
            [size for size in MEMORIES_GIB if memory / 4 <= size <= 4 * memory],
            memory,
            doubling=True,
        ),
    ]


def _ratio(tier: int, name: str, present: float, path: str) -> Parameter:
    return _swept(
        path,
        RATIOS,
        float(present),
        key=f"oversubscription.{tier}",
        label=f"{name} {parameter(path).label}",
        doubling=True,
        fabric=True,
    )


def _speed(key: str, path: str, present: float, per: str, label: str = "") -> Parameter:
    return _swept(
        path,
        [present * factor for factor in FACTORS],
        present,
        key=f"speed.{key}",
        label=label,
        doubling=True,
        fabric=True,
        note=f"one direction, per {per}",
    )


def _node(path: str, present: int, max_size: float, note: str, changes: Changes) -> Parameter:
    sizes = [size for size in _whole(present * factor for factor in FACTORS) if size <= max_size]
    return _swept(path, sizes, present, changes, key="node", doubling=True, fabric=True, note=note)


def _devices(min_size: int, present: int, note: str, changes: Changes | None) -> Parameter:
    sizes = [present / 2**power for power in range(-1, 5)]
    worth = [size for size in _whole(sizes) if size % min_size == 0 and size <= LARGEST_DEFAULT]
    return _swept(
        "fabric.clos.devices",
        worth,
        present,
        changes,
        doubling=True,
        fabric=True,
        note=note,
    )


def _in_groups(size: int, changes: Changes) -> Changes:
    """Return the changes of a number of devices by those of its groups of a size."""

    def grown(value: int) -> dict[str, Any]:
        require(not (value % size), "devices", f"must be a multiple of {size}", value, "round it")
        return changes(value // size)

    return grown


def _clos_parameters(table: dict[str, Any]) -> list[Parameter]:
    clos, path = table["clos"], "fabric.clos"
    per_node, nics = clos["devices_per_node"], clos["nics_per_node"]

    def sized(value: int) -> dict[str, Any]:
        require(
            not (value * nics % per_node),
            "node size",
            f"must keep whole NICs at {nics} per {per_node} devices",
            value,
            f"use multiples of {per_node // math.gcd(nics, per_node)}",
        )
        return {
            f"{path}.devices_per_node": value,
            f"{path}.nics_per_node": value * nics // per_node,
        }

    turned = ratio_parameters(table)
    turned.append(_speed("nic", f"{path}.nic_bandwidth_GBps", clos["nic_bandwidth_GBps"], "NIC"))
    if "intra_node" in table:
        inner, where = table["intra_node"]["bandwidth_GBps"], "fabric.intra_node.bandwidth_GBps"
        turned.append(_speed("node", where, inner, "device"))
    turned.append(
        _node(
            f"{path}.devices_per_node",
            per_node,
            math.inf,
            "NICs per device and the number of devices stay",
            sized,
        )
    )
    turned.append(
        _devices(per_node, clos["devices"], "switches follow; the global batch stays", None)
    )
    return turned


def _level_parameters(table: Table) -> list[Parameter]:
    turned, levels = ratio_parameters(table), table["level"]
    for tier, level in enumerate(levels):
        below = levels[tier - 1]["name"] if tier else "device"
        per = below if level.get("uplink_per", "device") == "child" else "device"
        path = f"fabric.level.{tier}.bandwidth_GBps"
        label = f"{level['name']} {parameter(path).label}"
        turned.append(_speed(str(tier), path, level["bandwidth_GBps"], str(per), label))
    sizes = [level.get("group_size") for level in levels]
    if len(sizes) > 1 and all(sizes):
        turned += _hierarchy_sizes([int(size) for size in sizes if size])
    return turned


def _hierarchy_sizes(sizes: list[int]) -> list[Parameter]:
    """Node size and number of devices of a hierarchy of equal groups."""
    pair, below, last = sizes[0] * sizes[1], math.prod(sizes[:-1]), len(sizes) - 1

    def sized(value: int) -> dict[str, Any]:
        require(
            not (pair % value),
            "node size",
            f"must divide the {pair} devices of a group of nodes",
            value,
            "use a divisor",
        )
        return {"fabric.level.0.group_size": value, "fabric.level.1.group_size": pair // value}

    note = "uplinks of a node and the number of devices stay"
    return [
        _node("fabric.level.0.group_size", sizes[0], pair, note, sized),
        _devices(
            below,
            math.prod(sizes),
            "the outermost level grows; the global batch stays",
            _in_groups(below, lambda count: {f"fabric.level.{last}.group_size": count}),
        ),
    ]


def _torus_parameters(kind: str, table: Table, scenario: ScenarioValues) -> list[Parameter]:
    """Link speed, and devices along the last dimension."""
    *others, last = [int(length) for length in table["shape"]]
    plane = math.prod(others)
    grown = _in_groups(plane, lambda count: {f"fabric.{kind}.shape": [*others, count]})
    turned = [_devices(plane, plane * last, "the last dimension grows", grown)]
    speed = getattr(scenario.fabric, "link_bandwidth_Bps", None)
    if speed is not None:
        turned.insert(0, _speed("link", f"fabric.{kind}.link_bandwidth_GBps", speed / GB, "link"))
    return turned


_TURNED: dict[str, Callable[[dict[str, Any], ScenarioValues], list[Parameter]]] = {
    "clos": lambda table, _: _clos_parameters(table),
    "level": lambda table, _: _level_parameters(table),
    "dragonfly": lambda table, _: [
        _speed(name, f"fabric.dragonfly.{key}", table["dragonfly"][key], "link")
        for name, key in (
            ("local", "local_bandwidth_GBps"),
            ("global", "global_bandwidth_GBps"),
        )
    ],
    "torus": lambda table, scenario: _torus_parameters("torus", table["torus"], scenario),
    "tpu_slice": lambda table, scenario: _torus_parameters(
        "tpu_slice", table["tpu_slice"], scenario
    ),
}
"""What the tables of a fabric's file have to turn, by the table's name."""
