"""The fabric of a cluster, from what its logs say of it.

What people print of a cluster, recognised by what it says and not by what its file is called.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nest_core.calibration.collectives.nccl_log import NcclRun, complete_run, is_log
from nest_core.documents import GB, InputError, plural, require, shortened
from nest_core.hardware import OPS
from nest_core.interop.formats import Assumed, format_of, read_fabric
from nest_core.interop.formats.draft import served
from nest_core.interop.formats.nvidia_topo import NodeTopology, is_nvidia_topo, read_nvidia_topo
from nest_core.interop.formats.values import Source, level_table, listed, short_name
from nest_core.network.collective import bus_factor

__all__ = ["Cluster", "FabricLog", "Logs", "TopoLog", "cluster_of", "nvlink_domain", "read_logs"]


SLURM = ("slurm-tree", "slurm-block", "slurm-yaml")
KNOWN = "the output of ibnetdiscover, nvidia-smi topo -m or nccl-tests, or a Slurm topology file"


@dataclass(frozen=True, slots=True)
class FabricLog:
    """A file of a format of `nest_core.interop.formats`, and the nodes that Slurm lists in it."""

    name: str
    text: str
    format: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopoLog:
    """The inside of a node."""

    name: str
    node: NodeTopology


@dataclass(slots=True)
class Logs:
    """All that was given, by kind."""

    subnet: FabricLog | None = None
    slurm: FabricLog | None = None
    topo: TopoLog | None = None
    nccl: list[NcclRun] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    """What each file was read as."""


def read_logs(files: Iterable[tuple[str, str]]) -> Logs:
    """Return logs from the names and texts of files, in any order.

    Raises
    ------
    InputError
        For what is none of them, is cut off, failed, or is there twice.
    """
    logs = Logs()
    for given, text in files:
        name = shortened(given, 60) or "file"
        require(
            text.strip(), name, f"must hold {KNOWN}", "empty", "save the command's output again"
        )
        topo, nccl = is_nvidia_topo(text), is_log(text)
        if topo:
            _add_topo(logs, name, text)
        if nccl:
            logs.nccl.append(_nccl(name, text))
            logs.kinds[name] = "nccl-tests"
        if not topo and not nccl:
            _add_fabric(logs, name, text)
    require(logs.kinds, "LOG", f"must be {KNOWN}", "none", "name one at least")
    return logs


def _add_topo(logs: Logs, name: str, text: str) -> None:
    logs.kinds[name] = "nvidia-smi topo -m"
    topo = TopoLog(name, read_nvidia_topo(Source(text, name, Assumed())))
    logs.topo = logs.topo or topo
    require(
        topo.node == logs.topo.node,
        name,
        f"must show a node like that of {logs.topo.name}",
        "another",
        "inspect one kind of node at a time",
    )


def _nccl(name: str, text: str) -> NcclRun:
    run = complete_run(text, name)
    accelerators = dict.fromkeys(accelerator for *_, accelerator in run.ranks)
    require(
        len(accelerators) == 1,
        name,
        "must list ranks on one kind of accelerator",
        " and ".join(accelerators) or "none",
        "save the whole output of all_reduce_perf or its siblings on nodes that are alike",
    )
    return run


def _add_fabric(logs: Logs, name: str, text: str) -> None:
    try:
        format = format_of("", text)
    except InputError:
        format = ""
    require(
        "\0" not in text and format in (*SLURM, "ibnetdiscover"),
        name,
        f"must be {KNOWN}",
        "binary" if "\0" in text else "something else",
        "name the file that such a command wrote",
    )
    if format == "ibnetdiscover":
        before, kind, what = logs.subnet, format, "output of ibnetdiscover"
        logs.subnet = FabricLog(name, text, format)
    else:
        before, kind, what = logs.slurm, f"Slurm {format.removeprefix('slurm-')}", "Slurm topology"
        levels = read_fabric(text.encode(), name, format=format).document["level"]
        logs.slurm = FabricLog(name, text, format, tuple(levels[0].get("names", ())))
    require(
        before is None,
        "LOG",
        f"must be one {what}",
        f"{before.name if before else ''} and {name}",
        "leave one out",
    )
    logs.kinds[name] = kind


Table = dict[str, Any]

_KNOWN_BETTER = re.compile(r"\d (?:GB/s|us)\b.* assumed|devices were spread|that are down: devices")
"""In sentences of readers about figures of `Assumed` and about affinity."""
_RAIL = re.compile(r" nic(\d+)(?: [SHR]-[0-9a-f]+)?$")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A fabric's tables, how many nodes it has, and their names where logs state them."""

    tables: Table
    nodes: int
    names: tuple[str, ...]


def nvlink_domain(logs: Logs, rates: Assumed, assumed: list[str]) -> int:
    """Return how many hosts NVLink joins: those of a run that is too fast for their NICs."""
    most = 1.25 * rates.devices_per_node * rates.link_bandwidth_GBps * GB
    fast = [
        (len(run.hosts), run.name)
        for run in logs.nccl
        for size, seconds in [max(run.rows)]
        if run.op in OPS and bus_factor(run.op, len(run.ranks)) * size / seconds > most
    ]
    hosts, name = max(fast, default=(1, ""))
    assumed.append(
        f"NVLink joins the devices of {hosts} hosts of {name}: its bus bandwidth is more than their"
        " NICs carry."
        if hosts > 1
        else "NVLink joins the devices of one host: no log shows how far it reaches in a rack."
    )
    return hosts


def cluster_of(logs: Logs, rates: Assumed, nodes: int, domain: int, assumed: list[str]) -> Cluster:
    """Return the fabric of the logs, its nodes in Slurm's order or else in that of their names.

    Parameters
    ----------
    logs : Logs
    rates : Assumed
        Devices of a node, and rates and latencies where the logs state none.
    nodes : int
        How many there are where neither ibnetdiscover nor Slurm says so.
    domain : int
        How many of them NVLink joins.
    assumed : list of str
        Sentences about what was not in the logs are added to it.

    Raises
    ------
    InputError
        If logs contradict one another, or one is no fabric.
    """
    if logs.subnet is not None:
        return _subnet(logs, logs.subnet, rates, assumed)
    inside = rates.inside_GBps, rates.intra_latency_us
    hosts = {"devices_per_host": rates.devices_per_node} if rates.devices_per_island else {}
    if logs.slurm is not None:
        tables, notes = _read(logs.slurm, rates)
        assumed += notes
        block = tables["level"][len(rates.levels())]
        if 1 < domain <= max(block.get("group_sizes", [block.get("group_size")])):
            block |= dict(zip(("bandwidth_GBps", "latency_us"), inside, strict=True))
        return Cluster(tables | hosts, len(logs.slurm.nodes), logs.slurm.nodes)
    levels = rates.levels() or [level_table("node", 1, *inside)] * (nodes == 1)
    domains = [domain] * (nodes // domain) + [nodes % domain] * (nodes % domain > 0)
    if domain > 1:
        levels.append(level_table("NVLink domain", domains, *inside))
    if len(domains) > 1:
        levels.append(
            level_table(
                "network", len(domains), rates.link_bandwidth_GBps, 2 * rates.hop_latency_us
            )
        )
        assumed.append(
            "The network between nodes blocks nowhere: no output of ibnetdiscover and no Slurm"
            " topology shows it."
        )
    return Cluster(
        {"kind": "hierarchical", "level": levels, **hosts},
        nodes,
        tuple(dict.fromkeys(host for log in logs.nccl for host in log.hosts)),
    )


def _read(log: FabricLog, rates: Assumed, nodes: tuple[str, ...] = ()) -> tuple[Table, list[str]]:
    """Return a file's tables, and what its reader says but for what more is known of here."""
    fabric = read_fabric(log.text.encode(), log.name, format=log.format, assumed=rates, nodes=nodes)
    return fabric.document, [note for note in fabric.notes if not _KNOWN_BETTER.search(note)]


def _subnet(logs: Logs, log: FabricLog, rates: Assumed, assumed: list[str]) -> Cluster:
    nodes = logs.slurm.nodes if logs.slurm else ()
    tables, notes = _read(log, rates, nodes)
    assumed += notes
    elements, links = tables["element"], tables["link"]
    names = tuple(dict.fromkeys(entry["group"] for entry in elements if "group" in entry))
    if logs.slurm and nodes:
        present = {*map(short_name, names)}
        missing = [node for node in nodes if short_name(node) not in present]
        require(
            not missing,
            logs.slurm.name,
            f"must list nodes that are hosts of {log.name}",
            listed(missing, 1),
            "give the files of one cluster, whole",
        )
    else:
        assumed.append(
            f"All {plural(len(names), 'host')} of {log.name} with devices are nodes of the cluster,"
            " in the order of their names: no Slurm topology lists the nodes."
        )
    nics = Counter(entry["group"] for entry in elements if entry["role"] == "nic")
    if logs.topo is not None:
        _check_nics(logs.topo, log, nics)
        links = _by_affinity(logs.topo.node, elements, links, "mlx5_" in log.text, assumed)
    else:
        assumed.append(
            "The devices of a node use its NICs in order, and share another's where theirs is down:"
            " no nvidia-smi topo -m states which is near."
        )
    return Cluster(tables | {"link": links}, len(names), names)


def _check_nics(topo: TopoLog, log: FabricLog, nics: Counter[str]) -> None:
    """Refuse a node whose driver knows fewer NICs than its hosts have on the subnet."""
    most = max(nics.values(), default=0)
    require(
        most <= (topo.node.nics or topo.node.gpus),
        topo.name,
        f"must show a host of {log.name}, which have up to {plural(most, 'NIC')}",
        f"{plural(topo.node.gpus, 'GPU')} and {plural(topo.node.nics, 'NIC')}",
        "save the output of nvidia-smi topo -m on one of them, outside of containers",
    )


def _by_affinity(
    node: NodeTopology,
    elements: Sequence[Table],
    links: list[Table],
    numbered: bool,
    assumed: list[str],
) -> list[Table]:
    """Return links between devices and NICs as a node's matrix has them, others as they are.

    Parameters
    ----------
    numbered : bool
        Whether rails are the numbers of adapters in the matrix's legend (``mlx5_3``).
    """
    role = {entry["id"]: entry["role"] for entry in elements}
    inside: dict[str, dict[str, list[str]]] = {}
    for entry in elements:
        if "group" in entry:
            inside.setdefault(entry["group"], {}).setdefault(entry["role"], []).append(entry["id"])
    rates = {
        link[nic]: link["bandwidth_GBps"]
        for link in links
        for device, nic in (("a", "b"), ("b", "a"))
        if role[link[device]] == "device" and role[link[nic]] == "nic"
    }
    columns = {
        name: places
        for name, host in inside.items()
        if (places := _columns(node, host.get("nic", []), numbered)) is not None
    }
    moved = {device for name in columns for device in inside[name]["device"]}
    result = [
        link
        for link in links
        if {role[link["a"]], role[link["b"]]} != {"device", "nic"}
        or not moved & {link["a"], link["b"]}
    ]
    result += [
        {"a": device, "b": nic, "bandwidth_GBps": rates[nic], "count": 1, "latency_us": 0.0}
        for name, places in columns.items()
        for device, nics in zip(
            inside[name]["device"], _nearest(node, inside[name], places), strict=True
        )
        for nic in nics
    ]
    if unknown := len(inside) - len(columns):
        assumed.append(
            f"The devices of {plural(unknown, 'node')} use its NICs in order, and share another's"
            " where theirs is down: their adapters are not those that nvidia-smi topo -m names."
        )
    return result


def _columns(node: NodeTopology, nics: Sequence[str], numbered: bool) -> list[int] | None:
    """Return columns of a matrix that are a host's NICs on the subnet.

    None if that is not known.
    """
    rails = [int(match[1]) for nic in nics if (match := _RAIL.search(nic))]
    column_of = {
        int(number[1]): column
        for column, name in enumerate(node.adapters)
        if (number := re.fullmatch(r"mlx5_(\d+)", name))
    }
    in_order = list(range(len(nics))) if len(nics) == node.nics else None
    is_known = numbered and len(rails) == len(nics) and column_of.keys() >= set(rails)
    return [column_of[rail] for rail in rails] if is_known else in_order


def _nearest(node: NodeTopology, host: dict[str, list[str]], columns: list[int]) -> list[list[str]]:
    """Return NICs of every device of a host: those nearest to it, spread over who shares them."""
    nics = tuple(host.get("nic", ()))
    pairs = node.islands if len({*map(len, node.islands)}) == 1 else [range(node.gpus)]
    away = (  # devices are numbered island by island
        [row[column] for column in columns]
        for row in (node.distances[gpu] for pair in pairs for gpu in pair)
    )
    near = [
        tuple(nic for nic, far in zip(nics, row, strict=True) if far == min(row)) for row in away
    ]
    shared, taken = Counter(near), Counter[tuple[str, ...]]()
    nearest = []
    for ports in near:
        places = served(taken[ports], shared[ports], len(ports))
        taken[ports] += 1
        nearest.append([ports[place] for place in places])
    return nearest
