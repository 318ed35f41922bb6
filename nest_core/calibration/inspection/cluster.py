"""The fabric of a cluster, from what its logs say of it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nest_core.calibration.inspection.logs import FabricLog, Logs, TopoLog
from nest_core.documents import InputError, plural, require
from nest_core.interop.formats import Assumed, read_fabric
from nest_core.interop.formats.draft import served
from nest_core.interop.formats.nvidia_topo import NodeTopology

__all__ = ["Cluster", "cluster_of", "short_name"]

Table = dict[str, Any]

_KNOWN_BETTER = re.compile(r"\d (?:GB/s|us)\b|devices were spread")
"""In sentences of readers about figures of `Assumed` and about affinity."""
_RAIL = re.compile(r" nic(\d+)(?: [SHR]-[0-9a-f]+)?$")
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A fabric's tables, how many nodes it has, and their names where logs state them."""

    tables: Table
    nodes: int
    names: tuple[str, ...]


def cluster_of(logs: Logs, rates: Assumed, nodes: int, assumed: list[str]) -> Cluster:
    """Return the fabric of the logs, its nodes in Slurm's order or else in that of their names.

    Parameters
    ----------
    logs : Logs
    rates : Assumed
        Devices of a node, and rates and latencies where the logs state none.
    nodes : int
        How many there are where neither ibnetdiscover nor Slurm says so.
    assumed : list of str
        Sentences about what was not in the logs are added to it.

    Raises
    ------
    InputError
        If logs contradict one another, or one is no fabric.
    """
    if logs.subnet is not None:
        return _subnet(logs, logs.subnet, rates, assumed)
    if logs.slurm is not None:
        tables, notes = _read(logs.slurm, rates)
        assumed += notes
        return Cluster(tables, len(logs.slurm.nodes), logs.slurm.nodes)
    levels: list[Table] = []
    per_node = rates.devices_per_node
    if per_node > 1 or nodes == 1:
        levels.append(_level("node", per_node, rates.inside_GBps, rates.intra_latency_us))
    if nodes > 1:
        levels.append(_level("network", nodes, rates.link_bandwidth_GBps, 2 * rates.hop_latency_us))
        assumed.append(
            "The network between nodes blocks nowhere: no output of ibnetdiscover and no Slurm"
            " topology shows it."
        )
    names = dict.fromkeys(host for log in logs.nccl for host in log.hosts)
    return Cluster({"kind": "hierarchical", "level": levels}, nodes, tuple(names))


def short_name(host: str) -> str:
    """Return a host's name without its domain.

    Examples
    --------
    >>> short_name("Node07.cluster.example")
    'node07'
    """
    return host.partition(".")[0].lower()


def _level(name: str, size: int, bandwidth_GBps: float, latency_us: float) -> Table:
    return {
        "name": name,
        "group_size": size,
        "uplink_per": "device",
        "bandwidth_GBps": bandwidth_GBps,
        "latency_us": latency_us,
    }


def _read(log: FabricLog, rates: Assumed) -> tuple[Table, list[str]]:
    """Return a file's tables, and what its reader says but for what more is known of here."""
    fabric = read_fabric(log.text.encode(), log.name, format=log.format, assumed=rates)
    return fabric.document, [note for note in fabric.notes if not _KNOWN_BETTER.search(note)]


def _subnet(logs: Logs, log: FabricLog, rates: Assumed, assumed: list[str]) -> Cluster:
    tables, notes = _read(log, rates)
    assumed += notes
    elements: list[Table] = tables["element"]
    hosts = dict.fromkeys(entry["group"] for entry in elements if "group" in entry)
    names = _compute_nodes(logs, log, list(hosts), rates, assumed)
    place = {name: number for number, name in enumerate(names)}
    dropped = {entry["id"] for entry in elements if entry.get("group", names[0]) not in place}
    elements = [entry for entry in elements if entry["id"] not in dropped]
    elements.sort(key=lambda entry: place.get(entry.get("group", ""), len(place)))
    links = [link for link in tables["link"] if not {link["a"], link["b"]} & dropped]
    nics = Counter(entry["group"] for entry in elements if entry["role"] == "nic")
    if logs.topo is not None:
        _check_nics(logs.topo, log, nics)
        links = _by_affinity(logs.topo.node, elements, links, "mlx5_" in log.text, assumed)
    else:
        assumed.append(
            "The devices of a node use its NICs in order: no nvidia-smi topo -m states which is"
            " near."
        )
    tables |= {"element": elements, "link": links}
    return Cluster(tables, len(names), tuple(names))


def _compute_nodes(
    logs: Logs, log: FabricLog, hosts: list[str], rates: Assumed, assumed: list[str]
) -> list[str]:
    """Return which hosts of a subnet are nodes of the cluster, in the order of its devices."""
    if logs.slurm is None or not logs.slurm.nodes:
        assumed.append(
            f"All {plural(len(hosts), 'host')} of {log.name} are nodes of the cluster, in the order"
            " of their names: no Slurm topology lists the nodes."
        )
        return sorted(hosts, key=_natural)
    _read(logs.slurm, rates)  # refuses what is no topology
    by_name = {short_name(host): host for host in hosts}
    missing = [node for node in logs.slurm.nodes if short_name(node) not in by_name]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InputError(
            logs.slurm.name,
            f"must list nodes that are hosts of {log.name}",
            f"{missing[0]}{more}",
            "give the files of one cluster, whole",
        )
    names = [by_name[short_name(node)] for node in logs.slurm.nodes]
    others = len(hosts) - len(names)
    if others:
        verb = "is no node" if others == 1 else "are no nodes"
        assumed.append(
            f"{plural(others, 'host')} of {log.name} that {logs.slurm.name} does not list {verb} of"
            " the cluster."
        )
    return names


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts node9 before node10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in _NUMBER.split(name))


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
    result = [link for link in links if {role[link["a"]], role[link["b"]]} != {"device", "nic"}]
    unknown = 0
    for host in inside.values():
        columns = _columns(node, host.get("nic", []), numbered)
        unknown += columns is None
        for device, nics in zip(host["device"], _nearest(node, host, columns), strict=True):
            result += [
                {"a": device, "b": nic, "bandwidth_GBps": rates[nic], "count": 1, "latency_us": 0.0}
                for nic in nics
            ]
    if unknown:
        assumed.append(
            f"The devices of {plural(unknown, 'node')} use its NICs in order: their adapters are"
            " not those that nvidia-smi topo -m names."
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


def _nearest(
    node: NodeTopology, host: dict[str, list[str]], columns: list[int] | None
) -> list[list[str]]:
    """Return NICs of every device of a host: those nearest to it, spread over who shares them."""
    nics = host.get("nic", [])
    if columns is None or not nics:
        count = len(host["device"])
        return [[nics[rail] for rail in served(place, count, len(nics))] for place in range(count)]
    near: list[tuple[str, ...]] = []
    for row in node.distances:
        away = [row[column] for column in columns]
        near.append(tuple(nic for nic, far in zip(nics, away, strict=True) if far == min(away)))
    shared = Counter(near)
    taken: Counter[tuple[str, ...]] = Counter()
    nearest = []
    for ports in near:
        places = served(taken[ports], shared[ports], len(ports))
        taken[ports] += 1
        nearest.append([ports[place] for place in places])
    return nearest
