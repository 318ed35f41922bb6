"""Joins what people print of a cluster into a scenario, and says what none of it stated.

A fact comes from the log that measured it: rates between nodes from ibnetdiscover, the inside of a
node from ``nvidia-smi topo -m``, which hosts are nodes from Slurm, accelerators from the header of
nccl-tests, numbers of nodes and processes from the launch command. The rest is that of the usual
machine (`nest_core.calibration.training.machines`), one sentence each.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from nest_core.calibration.collectives.nccl_log import NcclRun
from nest_core.calibration.inspection.cluster import (
    Cluster,
    Logs,
    cluster_of,
    nvlink_domain,
    read_logs,
)
from nest_core.calibration.logs.launch import FIELD, Launch, read_launch
from nest_core.calibration.training.machines import Machine, machine_of
from nest_core.costs.software import software_of
from nest_core.documents import (
    InputError,
    gigabytes,
    humanise,
    humanise_bytes,
    plural,
    require,
    signed_percent,
    to_gib,
)
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.hardware import OPS, Accelerator, default_stack, load_accelerator
from nest_core.interop.formats import Assumed
from nest_core.interop.formats.nvidia_topo import MAX_NVLINKS
from nest_core.interop.formats.values import listed, short_name
from nest_core.network import KINDS, bus_factor, collapse, collective, member_groups

__all__ = ["MAX_DEVICES", "BusComparison", "Inspected", "compare", "inspect"]

MAX_DEVICES = 2048
"""Of a drawn fabric, up to which its links are counted to predict a collective: seconds."""


@dataclass(frozen=True, slots=True)
class BusComparison:
    """The largest message of a log; figures are None where nothing is predicted.

    Parameters
    ----------
    log, sentence : str
    measured_busbw_Bps, predicted_busbw_Bps : float or None
    """

    log: str
    sentence: str
    measured_busbw_Bps: float | None = None
    predicted_busbw_Bps: float | None = None


def compare(run: NcclRun, fabric: Fabric, per_node: int, device: Accelerator) -> BusComparison:
    """Compare the largest message with what as many of the fabric's first nodes should reach.

    Parameters
    ----------
    per_node : int
        Devices of one of the fabric's nodes.
    """
    op, devices, nodes = run.op, len(run.ranks), len(run.hosts)
    per_host = devices // nodes
    reasons = {
        f"it is of {op}" if op else "it does not say of which collective it is": op not in OPS,
        "its ranks are not spread evenly over two devices or more": devices < 2
        or {*run.hosts.values()} != {per_host},
        f"it ran on {per_host} of the {per_node} devices of its nodes": nodes > 1
        and per_host not in (1, per_node),
        f"the fabric is a drawing of over {MAX_DEVICES:,} devices": fabric.kind == "graph"
        and fabric.devices > MAX_DEVICES,
    }
    if op is None or any(reasons.values()):
        why = next(reason for reason, holds in reasons.items() if holds)
        return BusComparison(run.name, f"{run.name} is compared with no prediction: {why}.")
    size, seconds = max(run.rows)
    stride = per_node if nodes > 1 and per_host == 1 else 1
    network = collapse(fabric)
    protocols = software_of(device).of_groups(
        network, KINDS[op][0], member_groups(network.devices, devices, stride=stride)
    )
    predicted = collective(
        network, op, size, devices, stride=stride, protocols=protocols
    ).bus_bandwidth_Bps
    measured = bus_factor(op, devices) * size / seconds
    sentence = (
        f"{op.replace('_', '-')} of {humanise_bytes(size)} over {plural(devices, 'device')} of"
        f" {plural(nodes, 'node')} ran at {humanise(measured, 'B/s')} of bus bandwidth in"
        f" {run.name}, the scenario's fabric predicts {humanise(predicted, 'B/s')}"
        f" ({signed_percent(predicted / measured - 1, 0)})."
    )
    return BusComparison(run.name, sentence, measured, predicted)


def nvlinks(machine: Machine) -> int:
    """Return NVLinks of a device that an NVSwitch joins to others of its node.

    Examples
    --------
    >>> [nvlinks(machine_of(name)) for name in ("V100", "A100", "A800", "H100", "GB200")]
    [6, 12, 8, 18, 18]
    """
    return round(gigabytes(machine.intra_Bps) / link_GBps(machine.name))


def link_GBps(name: str) -> float:
    """Return the rate of one NVLink, one way: 50 GB/s in the Blackwell generation, before 25."""
    return 50.0 if re.search(r"\bG?B\d", name) else 25.0


NVL72_HOST = 4
"""Devices of a compute tray, each a host (NVIDIA DGX SuperPOD GB200)."""

PLACEHOLDERS = ((256.0, "llama3-8b", 8192), (32.0, "gpt3-1.3b", 2048), (0.0, "gpt3-125m", 2048))
"""From so many GiB of all devices on: a model that is easily trained on them, and its sequence."""

SEQUENCES_PER_DEVICE = 8
MAX_SEQUENCES = 1_000_000

_NAMELESS = re.compile(r"localhost|h-[0-9a-f]+$")
"""Short names of hosts that are called alike, or by a GUID."""
_MEMORY = re.compile(r"(\d+) ?GB", re.I)
_BOARD = re.compile(r"\b(?:PCIe|NVL)\b", re.I)


@dataclass(frozen=True, slots=True)
class Inspected:
    """A scenario from logs.

    Parameters
    ----------
    scenario : dict
        The document of a scenario file, its fabric as tables.
    assumed : tuple of str
        One sentence for each fact that was in none of the logs.
    compared : tuple of BusComparison
        Measured bus bandwidths beside those that the scenario's fabric predicts.
    kinds : dict of str to str
        What each file was read as.
    """

    scenario: dict[str, Any]
    assumed: tuple[str, ...]
    compared: tuple[BusComparison, ...]
    kinds: dict[str, str]


def inspect(files: Iterable[tuple[str, str]], launch: str = "", accelerator: str = "") -> Inspected:
    """Return a scenario from the names and texts of logs, in any order.

    Parameters
    ----------
    files : iterable of (str, str)
    launch : str
        The command that starts a job on all of the cluster; empty: not known.
    accelerator : str
        A preset or a device's name, where no log of nccl-tests lists it.

    Raises
    ------
    InputError
        For what is no such log, is cut off, failed, or contradicts another.
    """
    logs = read_logs(files)
    command = read_launch(launch) if launch else Launch(None, None, None)
    assumed: list[str] = []
    machine, device = _accelerator(logs, accelerator, assumed)
    per_node = _per_node(logs, command, machine, assumed)
    nodes = _nodes(logs, command, per_node, assumed)
    rates = _rates(logs, machine, device, per_node, nodes, assumed)
    in_rack = machine.name.startswith("GB")
    domain = nvlink_domain(logs, rates, assumed) if in_rack else 1
    cluster = cluster_of(logs, rates, nodes, domain, assumed)
    _check_size(logs, command, cluster, per_node, assumed)
    devices = cluster.nodes * per_node
    title = f"{devices:,} {machine.name}, {plural(cluster.nodes, 'node')} of {per_node}"
    tables = {key: value for key, value in cluster.tables.items() if key not in ("schema", "name")}
    document = {"schema": 1, "name": title} | tables
    if rates.inside_GBps == gigabytes(machine.intra_Bps) and not (
        logs.topo and any(logs.topo.node.links)
    ):
        document["assumed_inside_GBps"] = rates.inside_GBps
    fabric = build_fabric(checked(FabricFile, document))
    stack = default_stack(device.family.name).name
    assumed.append(
        f"The software stack is {stack}, the default of {machine.name}: no log states one."
    )
    scenario = {
        "schema": 1,
        "name": title,
        "description": "From " + ", ".join(logs.kinds) + ".",
        "accelerator": machine.preset,
        "stack": stack,
        "costs": "own",
        "workload": _workload(device, devices, assumed),
        "fabric": document,
    }
    compared = tuple(compare(log, fabric, per_node, device) for log in logs.nccl)
    return Inspected(scenario, tuple(assumed), compared, logs.kinds)


def _accelerator(logs: Logs, stated: str, assumed: list[str]) -> tuple[Machine, Accelerator]:
    """Return the usual machine of the cluster's devices, and one of them."""
    listed = {log.accelerator: log.name for log in logs.nccl}
    require(
        len(listed) <= 1,
        "LOG",
        "must be of one kind of accelerator",
        " and ".join(listed),
        "inspect them apart",
    )
    name = stated or next(iter(listed), "")
    if not name:
        node = logs.topo and logs.topo.node
        links = max(node.links) if node and max(map(len, node.islands), default=0) > 2 else 0
        name = next(
            (kind for kind in ("A100", "V100") if nvlinks(machine_of(kind)) == links), "H100"
        )
        why = (
            f", as NV{links} of {logs.topo.name} suggests"
            f"{' (H200, B200 and GB200 have as many)' * (name == 'H100')}"
            if logs.topo and links == nvlinks(machine_of(name))
            else ""
        )
        assumed.append(f"The accelerator is {machine_of(name).preset}{why}: no log names it.")
    machine, memory = machine_of(name), _MEMORY.search(name)
    device = load_accelerator(machine.preset)
    if memory and name != machine.preset and int(memory[1]) != round(to_gib(device.memory_bytes)):
        assumed.append(
            f"{name} is priced as the preset {machine.preset}: there is none of its own."
        )
    return machine, device


def _per_node(logs: Logs, command: Launch, machine: Machine, assumed: list[str]) -> int:
    """Return devices of one node."""
    topo = logs.topo
    if topo:
        require(
            not command.per_node or command.per_node == topo.node.gpus,
            FIELD,
            f"must start a process on each of the {plural(topo.node.gpus, 'GPU')} that {topo.name}"
            " shows",
            f"{command.per_node} per node",
            "correct the command, or inspect the node that it runs on",
        )
    most = topo.node.gpus if topo else command.per_node or 0
    for log in logs.nccl:
        require(
            not most or max(log.hosts.values()) <= most,
            log.name,
            f"must run on at most the {plural(most, 'device')} of a node of "
            f"{topo.name if topo else 'the launch command'}",
            f"{max(log.hosts.values())} on one host",
            "give logs of one cluster",
        )
    if most:
        return most
    if logs.nccl:
        ran = max(max(log.hosts.values()) for log in logs.nccl)
        assumed.append(
            f"A node has {plural(ran, 'device')}, as many as nccl-tests ran on: no output of"
            " nvidia-smi topo -m shows all."
        )
        return ran
    usual = min(machine.per_node, NVL72_HOST if machine.name.startswith("GB") else machine.per_node)
    assumed.append(
        f"A node has {plural(usual, 'device')}: no log states it, taken from the usual"
        f" {machine.name} node."
    )
    return usual


def _nodes(logs: Logs, command: Launch, per_node: int, assumed: list[str]) -> int:
    """Return how many there are, where no log of the network says so."""
    if logs.subnet or logs.slurm:
        return 0
    if command.nodes or command.devices:
        return command.nodes or -(-(command.devices or 0) // per_node)
    hosts = {host for log in logs.nccl for host in log.hosts}
    if not hosts:
        assumed.append("The cluster is one node: no log names others.")
    return len(hosts) or 1


def _rates(
    logs: Logs,
    machine: Machine,
    device: Accelerator,
    per_node: int,
    nodes: int,
    assumed: list[str],
) -> Assumed:
    """Return rates and latencies, from the logs where they state them."""
    between = gigabytes(machine.inter_Bps)
    nics = logs.topo.node.nics if logs.topo else 0
    rates = replace(
        _inside(logs, machine, device, assumed, per_node),
        link_bandwidth_GBps=between * min(1.0, nics / per_node) if nics else between,
    )
    if not logs.subnet and nodes != 1:
        assumed.append(
            f"The NICs' rate is {between:g} GB/s: no log states it, taken from the usual"
            f" {machine.name} node."
        )
        shared = f"its {plural(nics, 'NIC')}" if nics and nics < per_node else "a NIC of its own"
        verb = "share" if nics and nics < per_node else "have each"
        assumed.append(f"The {plural(per_node, 'device')} of a node {verb} {shared}.")
    assumed.append(
        f"Latencies are {rates.intra_latency_us:g} us inside a node and {rates.hop_latency_us:g} us"
        " per link outside: no log states them, estimates."
    )
    if logs.topo and nodes != 1:
        assumed.append(f"Every node is like the one of {logs.topo.name}.")
    return rates


def _inside(
    logs: Logs,
    machine: Machine,
    device: Accelerator,
    assumed: list[str],
    per_node: int,
) -> Assumed:
    """Return what one device reaches inside its node, one direction."""
    usual = gigabytes(machine.intra_Bps)
    host = gigabytes(device.host_Bps) or gigabytes(machine.inter_Bps)
    rates = replace(Assumed(), devices_per_node=per_node, intra_bandwidth_GBps=host)
    topo, is_board = logs.topo, bool(_BOARD.search(machine.name))
    if topo is None or not any(topo.node.links):
        why = f"{topo.name} shows no NVLink, as topo -mp never does" if topo else "no log states it"
        assumed.append(
            f"The rate inside a node is {usual:g} GB/s per device"
            + (
                f", that of its host link: {machine.name} has no NVSwitch, and {why}."
                if is_board
                else f": {why}, taken from the usual {machine.name} node."
            )
        )
        return replace(rates, intra_bandwidth_GBps=usual)
    node, source, links = topo.node, topo.name, topo.node.links
    full = MAX_NVLINKS if is_board else nvlinks(machine)
    most, islands = max(links), node.islands
    require(
        most <= full,
        source,
        f"must show at most the {full} NVLinks that {machine.name} has",
        f"NV{most}",
        "give logs of one machine, or correct --accelerator",
    )
    rate, is_whole = link_GBps(machine.name) * min(filter(None, links)), len(islands) == 1
    weak = listed(f"GPU{gpu} with {count}" for gpu, count in enumerate(links) if count < most)
    groups = listed("-".join(f"GPU{gpu}" for gpu in island) for island in islands)
    notes = {
        f"Not all GPUs of {source} have {most} NVLinks: {weak}. Collectives of the node wait for"
        " the slowest.": weak,
        f"The {min(links)} NVLinks of a device lead to a switch that blocks nowhere, where {source}"
        " shows devices joined directly.": is_whole and node.is_direct and node.gpus > 2,
        f"NVLink does not join all GPUs of a node but {groups}: {host:g} GB/s per device, that of"
        f" its host link, between them, as {source} shows.": not is_whole,
    }
    assumed += [note for note, holds in notes.items() if holds]
    if is_whole:
        return replace(rates, intra_bandwidth_GBps=rate)
    size = len(islands[0]) if len({*map(len, islands)}) == 1 else 0
    return replace(rates, devices_per_island=size, island_bandwidth_GBps=rate)


def _check_size(
    logs: Logs, command: Launch, cluster: Cluster, per_node: int, assumed: list[str]
) -> None:
    """Refuse a launch command or a log of more than the fabric has, or of other nodes."""
    devices = cluster.nodes * per_node
    network = logs.subnet or logs.slurm
    where = network.name if network else "the launch command"
    if (command.nodes or 0) > cluster.nodes or (command.devices or 0) > devices:
        count, noun = (command.nodes, "node") if command.nodes else (command.devices or 0, "rank")
        raise InputError(
            FIELD,
            f"must fit on the {plural(cluster.nodes, 'node')} of {per_node} that {where} shows",
            plural(count, noun),
            "correct the command, or give the files of the whole cluster",
        )
    if 0 < (command.nodes or cluster.nodes) < cluster.nodes:
        assumed.append(
            f"The scenario is of all {cluster.nodes:,} nodes that {where} shows: the launch command"
            f" starts a job on {command.nodes:,} of them."
        )
    for log in logs.nccl:
        require(
            log.hosts.total() <= devices,
            log.name,
            f"must run on at most the {plural(devices, 'device')} that {where} shows",
            plural(log.hosts.total(), "device"),
            "give logs of one cluster",
        )
        _check_hosts(log, where, cluster, assumed)


def _check_hosts(log: NcclRun, where: str, cluster: Cluster, assumed: list[str]) -> None:
    """Refuse a log that ran on hosts that the cluster lacks, unless the cluster names none."""
    names = {short_name(name) for name in cluster.names}
    others = [host for host in log.hosts if names and short_name(host) not in names]
    require(
        not others or all(map(_NAMELESS.match, names)),
        log.name,
        f"must run on hosts of {where}, such as {next(iter(cluster.names), '')}",
        listed(others, 1),
        "give logs of one cluster",
    )
    if others:
        assumed.append(
            f"{others[0]} and all other hosts of {log.name} are nodes of {where}, which does not"
            " name its hosts."
        )


def _workload(device: Accelerator, devices: int, assumed: list[str]) -> dict[str, Any]:
    """Return a job that stands in for the one that logs of a machine do not state."""
    memory = to_gib(device.memory_bytes) * devices
    model, sequence = next((name, size) for least, name, size in PLACEHOLDERS if memory >= least)
    batch = min(SEQUENCES_PER_DEVICE, MAX_SEQUENCES // devices) * devices or MAX_SEQUENCES
    precision = "bf16" if "bf16" in device.precisions else "fp16"
    assumed.append(
        f"The workload is a placeholder, {model} in {precision} with {batch:,} sequences of"
        f" {sequence:,} tokens: logs of a machine state none."
    )
    return {
        "model": model,
        "sequence_length_tokens": sequence,
        "global_batch_sequences": batch,
        "precision": precision,
    }
