"""Made-up logs of a cluster, written after the grammars from a fabric's own link graph."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from nest_core.fabric import Fabric

SPEEDS = {12.5: "4xEDR", 25.0: "4xHDR", 50.0: "4xNDR", 100.0: "4xXDR"}
STORAGE = "mlx5_30"
"""An adapter of every node that is on another network."""


@dataclass(frozen=True)
class Printed:
    """What the commands print on a cluster, and Slurm's file for it."""

    ibnetdiscover: str
    topo: str
    slurm: str
    hosts: tuple[str, ...]

    @property
    def files(self) -> list[tuple[str, str]]:
        return [
            ("ib.txt", self.ibnetdiscover),
            ("topo.txt", self.topo),
            ("topology.conf", self.slurm),
        ]


def printed(fabric: Fabric, seed: int = 0, others: int = 0, nvlink_GBps: float = 25.0) -> Printed:
    """The logs of a fabric whose graph has NICs; adapters and blocks stand in random order.

    Parameters
    ----------
    others : int
        Hosts with one adapter that are on the first leaf and no nodes, such as file servers.
    """
    graph = fabric.explicit()
    role = dict(graph.nodes(data="role"))
    shuffle = random.Random(seed)
    guids = {node: 0xA088C20300000000 + 16 * place for place, node in enumerate(graph)}
    nodes = sorted({nic[1] for nic in graph if role[nic] == "nic"})
    hosts = tuple(f"node{node:02d}" for node in nodes)
    slots = sorted({nic[2] for nic in graph if role[nic] == "nic"})
    adapter = dict(zip(slots, shuffle.sample(range(30), len(slots)), strict=True))
    name = {nic: f"node{nic[1]:02d} mlx5_{adapter[nic[2]]}" for nic in graph if role[nic] == "nic"}
    name |= {one: f"{one[0]}{one[1]:02d}" for one in graph if role[one] == "switch"}
    outer = [
        one
        for one in graph
        if role[one] == "nic"
        or (role[one] == "switch" and not any(role[far] == "device" for far in graph[one]))
    ]
    ports = {one: count(1) for one in outer}
    lines: dict[Any, list[str]] = {one: [] for one in outer}
    links = [edge for edge in graph.edges(data=True) if edge[0] in lines and edge[1] in lines]
    for a, b, link in links:
        speed = SPEEDS[link["bandwidth_Bps"] / 1e9]
        for _ in range(link["count"]):
            here, there = next(ports[a]), next(ports[b])
            for own, far, port, other in ((a, b, here, there), (b, a, there, here)):
                lines[own].append(_port(role, guids, name, (own, port), (far, other), speed))
    blocks = [_block(role[one], guids[one], name[one], lines[one]) for one in outer]
    leaf = next(one for one in outer if role[one] == "switch")
    for number in range(others):
        guid = 0xB0 + number
        port = next(ports[leaf])
        towards = f'[{port}]\t"H-{guid:016x}"[1]({guid:x}) \t\t# "store{number} mlx5_0" lid 9 4xNDR'
        at = f'[1]({guid:x}) \t"S-{guids[leaf]:016x}"[{port}]\t\t# lid 9 lmc 0 "leaf" lid 1 4xNDR'
        blocks[outer.index(leaf)] += towards + "\n"
        blocks.append(_block("nic", guid, f"store{number} mlx5_0", [at]))
    shuffle.shuffle(blocks)
    head = "#\n# Topology file: generated on Mon Oct  5 09:00:00 2026\n#\n\n"
    return Printed(
        head + "\n".join(blocks),
        _topo(fabric, adapter, shuffle, nvlink_GBps),
        _slurm(hosts),
        hosts,
    )


def _port(
    role: dict[Any, str],
    guids: dict[Any, int],
    name: dict[Any, str],
    here: tuple[Any, int],
    there: tuple[Any, int],
    speed: str,
) -> str:
    (own, port), (far, other) = here, there
    letter = "H" if role[far] == "nic" else "S"
    peer = f'"{letter}-{guids[far]:016x}"[{other}]'
    if role[own] == "nic":
        return f'[{port}]({guids[own] + 1:x}) \t{peer}\t\t# lid 7 lmc 0 "{name[far]}" lid 8 {speed}'
    guid = f"({guids[far] + 1:x}) " if letter == "H" else ""
    return f'[{port}]\t{peer}{guid}\t\t# "{name[far]}" lid 7 {speed}'


def _block(role: str, guid: int, name: str, lines: list[str]) -> str:
    kind, letter, word = ("Ca", "H", "ca") if role == "nic" else ("Switch", "S", "switch")
    tail = "" if role == "nic" else " enhanced port 0 lid 1 lmc 0"
    head = f"vendid=0x2c9\ndevid=0x1021\nsysimgguid=0x{guid:x}\n{word}guid=0x{guid:x}({guid:x})\n"
    ports = 1 if role == "nic" else 129
    own = f'{kind}\t{ports} "{letter}-{guid:016x}"\t\t# "{name}"{tail}\n'
    return head + own + "\n".join(lines) + "\n"


def _topo(
    fabric: Fabric, adapter: dict[int, int], shuffle: random.Random, nvlink_GBps: float
) -> str:
    """The matrix of the first node, its NICs in random order and one of another network."""
    graph = fabric.explicit()
    gpus = [one for one in graph if isinstance(one, int) and _node(graph, one) == 0]
    nics: list[Any] = [("nic", 0, slot) for slot in adapter] + [None]
    shuffle.shuffle(nics)

    def code(a: Any, b: Any) -> str:
        if a == b:
            return "X"
        if a in gpus and b in gpus:
            through = [far for far in graph[a] if far in graph[b] and far not in gpus]
            if b in graph[a]:
                return f"NV{graph.edges[a, b]['bandwidth_Bps'] / 1e9 / nvlink_GBps:.0f}"
            inside = [one for one in through if graph.nodes[one]["role"] == "switch"]
            rate = graph.edges[a, inside[0]]["bandwidth_Bps"] / 1e9 if inside else 0
            return f"NV{rate / nvlink_GBps:.0f}" if rate else "SYS"
        near = a in graph and b in graph and graph.has_edge(a, b)
        return "PIX" if near else "NODE"

    both: list[Any] = [*gpus, *nics]
    titles = [f"GPU{place}" for place in range(len(gpus))]
    titles += [f"NIC{place}" for place in range(len(nics))]
    rows = [
        "\t".join([title, *(code(one, other) for other in both)])
        + ("\t0-47,96-143\t0\t\tN/A" if one in gpus else "\t\t\t\t")
        for title, one in zip(titles, both, strict=True)
    ]
    header = "\t\x1b[4m" + "\t".join(titles) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    legend = "\nLegend:\n\n  X    = Self\n  PIX  = Connection\n\nNIC Legend:\n\n"
    legend += "".join(
        f"  NIC{place}: {f'mlx5_{adapter[nic[2]]}' if nic else STORAGE}\n"
        for place, nic in enumerate(nics)
    )
    return header + "\n".join(rows) + "\n" + legend


def _node(graph: Any, device: int) -> int:
    return next(far[1] for far in graph[device] if graph.nodes[far]["role"] == "nic")


def _slurm(hosts: tuple[str, ...], each: int = 4) -> str:
    cuts = [*range(0, len(hosts), each), len(hosts)]
    leaves = [hosts[low:high] for low, high in pairwise(cuts)]
    lines = [f"SwitchName=s{number} Nodes={','.join(one)}" for number, one in enumerate(leaves)]
    return "\n".join(lines) + f"\nSwitchName=top Switches=s[0-{len(leaves) - 1}]\n"


def nccl(
    hosts: tuple[str, ...],
    busbw_GBps: float = 300.0,
    per_host: int = 8,
    name: str = "NVIDIA H100 80GB HBM3",
    program: str = "all_reduce_perf",
) -> str:
    """A run of all_reduce_perf whose large messages reach a bus bandwidth."""
    ranks = [(host, device) for host in hosts for device in range(per_host)]
    factor = 2 * (len(ranks) - 1) / len(ranks)
    text = f"# Collective test starting: {program}\n" if program else ""
    text += (
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 8589934592 step: 2(factor) warmup iters: 5"
        " iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
    )
    text += "".join(
        f"#  Rank {rank:2d} Group  0 Pid {40000 + rank} on {host} device {device:2d}"
        f" [0000:{device:02x}:00] {name}\n"
        for rank, (host, device) in enumerate(ranks)
    )
    text += (
        "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    )
    for power in range(20, 34):
        seconds = 2**power * factor / busbw_GBps / 1e9
        rates = f"{seconds * 1e6:.2f} {2**power / seconds / 1e9:.2f} {busbw_GBps:.2f}      0"
        text += f"{2**power:12d} {2**power // 4:12d}  float     sum      -1 {rates} {rates}\n"
    return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 171.905 \n#\n"
