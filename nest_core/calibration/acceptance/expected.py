"""What to run on a built fabric, and what to expect of it.

Parts of a fabric to test one inside the other: a host, a rail, a leaf, across spines.

A scope is what one command of nccl-tests loads: the blocks that devices nest in, from the node
outwards, and, where NICs are wired rail by rail, one device of every node under one leaf. Inside a
node and under one leaf an all-reduce fills every port. Above, its rings leave most uplinks idle, so
an all-to-all is run across the tier, over at most `MAX_RANKS` devices of whole blocks where two
fit. Blocks of other sizes than the first (a short rack) are scopes of their own.

Commands of nccl-tests for a fabric, with the bus bandwidth that each should reach.

Expected is what plans are priced by: the accelerator's library on the fabric's links
(`nest_core.costs.software`). The threshold is the lower end of the interval that holds 80 % of
healthy networks: the spreads of ``presets/network/spread.toml`` for what leaves a node, and the
median error of the links' own curve on runs held out for what does not. The logarithm is taken as
linear in every parameter, as `nest_core.studies.uncertainty` does.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from nest_core.calibration.training.machines import find_machine
from nest_core.costs.network_draw import drawn_network, drawn_software, routing_of
from nest_core.costs.software import Software, software_of
from nest_core.documents import GIB, load_toml, named_file, require
from nest_core.fabric import Clos, Fabric, IntArray
from nest_core.hardware import (
    KIND,
    OWN,
    WIDTH,
    Accelerator,
    Curve,
    NetworkParameters,
    load_accelerator,
    load_spread,
    load_stack,
)
from nest_core.network import KINDS, Network, bus_factor, message_time

__all__ = [
    "HOST",
    "MESSAGE_BYTES",
    "RAIL",
    "Expected",
    "Scope",
    "accelerator_in",
    "expected_of",
    "library_alone",
    "library_of",
    "lowest_of_tiers",
    "scopes_of",
]

MAX_RANKS = 2048
MAX_SIZES = 3
"""Different sizes of the blocks of one level that are told apart, largest first."""
HOST, RAIL = "host", "rail"


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What one command loads.

    Parameters
    ----------
    tier : str
        Whose links it is the first to load: host, rail, or as the fabric's levels are called.
    name : str
        The tier, and which rail.
    op : str
        As `nest_core.network.collective` calls it.
    devices : int array (ranks,)
        Of the fabric, in the order of ranks; those of the first such part.
    hosts, per_host : int
        Over which they are spread, and ranks on each.
    times : int
        Parts of the fabric that the command is to be run in.
    device : int or None
        Of each host, where only one takes part.
    is_block : bool
        Whether it is all of its block.
    """

    tier: str
    name: str
    op: str
    devices: IntArray
    hosts: int
    per_host: int
    times: int
    device: int | None = None
    is_block: bool = True


def scopes_of(fabric: Fabric, network: Network) -> tuple[Scope, ...]:
    """Return scopes from the inside out.

    Raises
    ------
    InputError
        Where the devices are joined without hosts of their own.
    """
    require(
        network.torus is None,
        "fabric",
        "must have hosts behind NICs, on which nccl-tests run",
        fabric.arrangement(),
        "choose a fabric of switches",
    )
    require(
        network.devices >= 2, "fabric", "must have two devices or more", 1, "name a larger fabric"
    )
    scopes: list[Scope] = []
    blocks = [np.arange(network.devices), *network.nesting]
    for index, (child, block) in enumerate(pairwise(blocks)):
        level = len(network.levels) - 1 if index == len(network.nesting) - 1 else index
        tier = HOST if index == 0 else network.levels[level].name
        if index == 1 and isinstance(fabric, Clos) and fabric.rails > 1:
            scopes += _rails(fabric, network, block)
        scopes += _of_level(
            network, tier, "all_to_all" if level > 1 else "all_reduce", child, block
        )
    return tuple(scopes)


def _of_level(
    network: Network, tier: str, op: str, child: IntArray, block: IntArray
) -> Iterator[Scope]:
    """Yield one scope per size of the blocks of a level."""
    sizes = np.bincount(block)
    for size in np.unique(sizes[sizes > 1])[::-1][:MAX_SIZES].tolist():
        alike = np.flatnonzero(sizes == size)
        devices = np.flatnonzero(block == alike[0])
        children, first = np.unique(child[devices], return_index=True)
        if len(children) == 1:
            continue  # the level below was this one already
        if op == "all_to_all" and len(devices) > MAX_RANKS:
            ends = np.append(np.sort(first)[1:], len(devices))
            fit = ends[ends <= MAX_RANKS]
            devices = devices[: fit[-1] if len(fit) > 1 else ends[1]]
        scope = _scope(network, tier, op, devices, len(alike))
        if scope is not None:
            yield replace(scope, is_block=len(devices) == size)


def _rails(fabric: Clos, network: Network, units: IntArray) -> Iterator[Scope]:
    """Yield one device of every node of a unit, rail by rail, or by device of smaller hosts."""
    sizes = np.bincount(units)
    largest = np.flatnonzero(sizes == sizes.max())
    members = np.flatnonzero(units == largest[0])
    slots = fabric.slot_of()[members]
    per_host = min(fabric.devices_per_host or fabric.devices_per_node, fabric.devices_per_node)
    for rail in range(min(fabric.rails, per_host)):
        on = members[slots == rail]
        alike = len(range(rail, fabric.rails, per_host))
        name = f"{RAIL} {rail}" if per_host >= fabric.rails else f"{RAIL}s of device {rail}"
        scope = _scope(network, RAIL, "all_reduce", on, alike * len(largest))
        if scope is not None and scope.hosts > 1:
            yield replace(scope, name=name, device=rail)


def _scope(network: Network, tier: str, op: str, devices: IntArray, times: int) -> Scope | None:
    """Return a scope; None where hosts hold unequal numbers of ranks, on which no test runs."""
    _, ranks = np.unique(network.host[devices], return_counts=True)
    return (
        None
        if len(devices) < 2 or len(np.unique(ranks)) > 1
        else Scope(tier, tier, op, devices, len(ranks), int(ranks[0]), times)
    )


MESSAGE_BYTES = 4 * GIB
PROGRAMS = {"all_reduce": "all_reduce_perf", "all_to_all": "alltoall_perf"}
SIZES = "-b 512M -e 4G -f 2"
_UNMEASURED = 0.1
"""Assumed spread of links whose curve was not measured."""
_MEDIAN = 0.6745
"""Of a normal's absolute value, in standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """One command.

    Parameters
    ----------
    scope : Scope
    command : str
    where : str
        On which hosts, and how often.
    predicted_busbw_Bps, threshold_Bps : float
        At `MESSAGE_BYTES`, as nccl-tests count it.
    """

    scope: Scope
    command: str
    where: str
    predicted_busbw_Bps: float
    threshold_Bps: float


def library_of(
    fabric: Fabric, accelerator: str = "", stack: str = "", folder: Path | None = None
) -> Software:
    """Return what the communication library of a fabric's accelerators makes of its links.

    Parameters
    ----------
    fabric : Fabric
    accelerator : str
        A preset; by default the one that the fabric's name gives.
    stack : str
        Of which the curves that were measured on one's own cluster count.
    folder : Path, optional
        Where paths of stacks start; None where they may be presets only.

    Raises
    ------
    InputError
        If neither tells the accelerator, or there is none of the name.
    """
    name = accelerator or accelerator_in(fabric.name)
    require(
        name,
        "accelerator",
        "must be given where the fabric's name tells none",
        fabric.name,
        "name a preset of accelerators, such as h100-80gb",
    )
    device = load_accelerator(name)
    if stack:
        calibrated = load_stack(stack, folder)
        device = replace(
            device,
            links=calibrated.curve("nvlink") or device.links,
            network=calibrated.curve("network") or device.network,
        )
    return library_alone(device)


def library_alone(accelerator: Accelerator) -> Software:
    """Return what nccl-tests see of an accelerator.

    The curves, not what whole runs left of them.
    """
    return software_of(replace(accelerator, links_reach=1.0, network_reach=1.0))


def accelerator_in(name: str) -> str:
    """Return the preset of the accelerator that a fabric's name tells; empty where it tells none.

    Examples
    --------
    >>> accelerator_in("1,024 H100, 4:1"), accelerator_in("My fabric")
    ('h100-80gb', '')
    """
    machine = find_machine(name)
    return machine.preset if machine else ""


def expected_of(fabric: Fabric, network: Network, software: Software) -> tuple[Expected, ...]:
    """Return commands from the inside out.

    Parameters
    ----------
    fabric : Fabric
    network : Network
        What it collapses to.
    software : Software
        What the communication library makes of the links.

    Raises
    ------
    InputError
        Where the fabric has no hosts.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.scenario import load_fabric
    >>> fabric = load_fabric("h100-spine-leaf-64")
    >>> found = expected_of(fabric, collapse(fabric), library_of(fabric))
    >>> [test.scope.tier for test in found]
    ['host', 'leaf', 'spine']
    >>> found[0].command
    'all_reduce_perf -b 512M -e 4G -f 2 -g 8'
    """
    return tuple(_expected(network, software, scope) for scope in scopes_of(fabric, network))


def lowest_of_tiers(tests: Sequence[Expected]) -> Iterator[Expected]:
    """Yield one command per tier, the one of the lowest threshold.

    Of rails for any device of a host.
    """
    for _, alike in groupby(tests, lambda test: test.scope.tier):
        least = min(alike, key=lambda test: test.threshold_Bps)
        yield replace(
            least,
            where=least.where.replace(f"device {least.scope.device} of each", "one device of each"),
        )


def _command(scope: Scope) -> str:
    program = PROGRAMS[scope.op]
    if scope.hosts == 1:
        return f"{program} {SIZES} -g {scope.per_host}"
    only = "" if scope.device is None else f" -x NCCL_TESTS_DEVICE={scope.device}"
    return (
        f"mpirun -np {len(scope.devices)} --map-by ppr:{scope.per_host}:node "
        f"--hostfile hosts.txt{only} {program} {SIZES} -g 1"
    )


def _where(scope: Scope, devices: int) -> str:
    """Return which hosts, in words."""
    turns = f", once for each of {scope.times:,} groups" if scope.times > 1 else ""
    if scope.hosts == 1:
        return f"on each of {scope.times:,} hosts" if scope.times > 1 else "on the host"
    if len(scope.devices) == devices:
        return f"on all {scope.hosts:,} hosts"
    if scope.device is not None:
        return f"on {scope.hosts:,} hosts under one leaf, device {scope.device} of each{turns}"
    if scope.tier == HOST:
        return f"on the {scope.hosts:,} hosts of one node{turns}"
    return (
        f"on the {scope.hosts:,} hosts that share a {scope.tier}{turns}"
        if scope.is_block
        else f"on {scope.hosts:,} hosts, whole blocks of the tier below{turns}"
    )


def _expected(network: Network, software: Software, scope: Scope) -> Expected:
    centre = _seconds(network, software, scope)
    along = [
        math.log(_seconds(other, drawn, scope) / centre)
        for other, drawn in _one_sd_worse(network, software, scope)
    ]
    bus = bus_factor(scope.op, len(scope.devices)) * MESSAGE_BYTES / centre
    return Expected(
        scope,
        _command(scope),
        _where(scope, network.devices),
        bus,
        bus * math.exp(-WIDTH * math.hypot(*along)),
    )


def _seconds(network: Network, software: Software, scope: Scope) -> float:
    kind, parts = KINDS[scope.op]
    groups = scope.devices[None]
    time = message_time(network, kind, groups, software.of_groups(network, kind, groups))
    return parts * float(time.seconds(MESSAGE_BYTES).max())


def _one_sd_worse(
    network: Network, software: Software, scope: Scope
) -> Iterator[tuple[Network, Software]]:
    """Yield the network with one uncertain parameter after the other."""
    curve, factor = software.inside, math.exp(-_inside_spread(software.inside))
    yield network, replace(software, inside=curve and curve.reaching(factor, 1, factor))
    if scope.hosts == 1:
        return
    spread = load_spread()
    of = dict(spread.spreads)
    yield (
        network,
        drawn_software(
            software,
            NetworkParameters(reach=math.exp(-spread.of_curve(software.between).spread)),
        ),
    )
    if scope.op == "all_to_all":
        incast = NetworkParameters(incast=math.exp(-of["incast"]))
        uplinks = NetworkParameters(uplinks=math.exp(-of[f"uplinks.{routing_of(network)}"]))
        yield network, drawn_software(software, incast)
        yield drawn_network(network, uplinks), software
    else:
        yield (
            network,
            drawn_software(software, NetworkParameters(reduction=math.exp(-of["reduction"]))),
        )


def _inside_spread(curve: Curve | None) -> float:
    """Return what the curve of links inside a node is off by on runs that it was not fitted to."""
    if curve is None:
        return _UNMEASURED
    if curve.name == OWN:
        return load_spread().transport("measured").spread
    facts = load_toml(named_file(KIND, curve.name, None, field="curves")).get("provenance", {})
    median = facts.get("held_out_median")
    return _UNMEASURED if median is None else float(median) / _MEDIAN
