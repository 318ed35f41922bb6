"""What ``ibnetdiscover`` prints of an InfiniBand subnet (linux-rdma/rdma-core, infiniband-diags).

Blocks describe switches and channel adapters (HCAs), every link stands in the blocks of both its
ends. The first word of an adapter's description is its host, the number in the next its rail
(``dgx-04 mlx5_5``, ``dgx-04 HCA-6``). Adapters of a host with one ``sysimgguid`` are the ports of
one card: one NIC, by the lowest rail of them, with the links and the rate of all. The inside of
hosts is assumed, and their devices are numbered in the order of the hosts' names.

Rates are what a link carries after its line code, from the InfiniBand Architecture Specification,
volume 2: lanes of 2.5, 5 and 10 Gb/s with 8b/10b (SDR, DDR, QDR: 4x QDR carries 32 of 40 Gb/s),
10.3125 and 14.0625 Gb/s with 64b/66b (FDR10, FDR: 4x FDR carries 54.5 of 56), 25 Gb/s (EDR), and,
as they are named, 50 (HDR), 100 (NDR) and 200 Gb/s (XDR).
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from nest_core.documents import plural, summed
from nest_core.fabric import MAX_EXPLICIT_DEVICES
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.values import Reading, Source

__all__ = ["LANE_GBPS", "read_ibnetdiscover"]

LANE_GBPS = {
    "SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 14.0625 * 64 / 66,
    "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip
"""One lane, Gb/s, one direction."""

_NODE = re.compile(r'(Switch|Ca|Rt)\s+(\d{1,5})\s+"([SHR]-[0-9a-f]{1,16})"\s*#\s*"([^"]*)"')
_LINK = re.compile(
    r'\[(\d{1,5})\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+"([SHR]-[0-9a-f]{1,16})"'
    r"\[(\d{1,5})\](?:\[ext \d+\])?(?:\s*\([0-9a-f]+\))?(?:\s*#\s*(.*))?$"
)
_SPEED = re.compile(r"\b(\d{1,2})x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b")
_RAIL = re.compile(r"(?:mlx\d+_|HCA-)(\d{1,6})(?!\d)")
_SYSTEM = re.compile(r"sysimgguid=0x0*([1-9a-f][0-9a-f]*)")
_SKIPPED = (
    "vendid=",
    "devid=",
    "sysimgguid=",
    "switchguid=",
    "caguid=",
    "rtguid=",
    "#",
    "Chassis",
    "Non-Chassis Nodes",
    "Hostname:",
)
_NAMELESS = "Mellanox Technologies"
"""In descriptions of adapters until their host gives its name."""
_SHARP = f"{_NAMELESS} Aggregation Node"

End = tuple[str, int]
"""A GUID with its prefix, and a port."""


@dataclass(slots=True)
class _SubnetNode:
    kind: str
    ports: int
    description: str
    line: int
    system: str
    """Adapters of one card share it; of a block that states none, its own GUID."""
    links: list[tuple[int, End, float, int]] = field(default_factory=list)
    """Own port, other end, GB/s, line."""


def read_ibnetdiscover(source: Source) -> Reading:
    """Return a graph of hosts with their NICs, and of switches."""
    nodes = _nodes(source)
    draft = Draft(source)
    skipped = {guid for guid, node in nodes.items() if _SHARP in node.description}
    draft.note(len(skipped), "SHARP aggregation node", " skipped.")
    routers = {guid for guid, node in nodes.items() if node.kind == "Rt"}
    draft.note(len(routers), "router", " to other subnets skipped.")
    links = _links(source, draft, nodes, skipped | routers)
    hosts = _hosts(nodes, skipped, {end[0] for pair in links for end in pair}, draft)
    _check_size(source, hosts)
    names = _add_hosts(source, draft, nodes, hosts, links)
    names |= _add_switches(draft, nodes, skipped | routers)
    for (a, b), (rate, line) in links.items():
        draft.link(line, names[a[0]], names[b[0]], rate, source.assumed.hop_latency_us)
    if hosts:
        draft.notes.append(
            f"ibnetdiscover states no latencies: {source.assumed.hop_latency_us:g} us per link"
            " assumed."
        )
    document, notes = draft.document(source.name)
    return source.assumed.marked(document), notes


def _nodes(source: Source) -> dict[str, _SubnetNode]:
    nodes: dict[str, _SubnetNode] = {}
    current: _SubnetNode | None = None
    system = ""
    for number, raw in enumerate(source.text.splitlines(), start=1):
        line = raw.strip()
        if not line:
            current, system = None, ""
        elif stated := _SYSTEM.match(line):
            system = stated[1]
        elif line.startswith("["):
            if current is None:
                raise source.wrong(
                    number,
                    "must have links below the node they belong to",
                    line,
                    "save the whole output of ibnetdiscover",
                )
            current.links.append(_link(source, number, line))
        elif match := _NODE.match(line):
            guid = match[3]
            source.require(
                guid not in nodes, number, "must describe a node once", guid, "remove one block"
            )
            current = nodes[guid] = _SubnetNode(
                match[1], int(match[2]), match[4].strip(), number, system or guid
            )
        elif not line.startswith(_SKIPPED):
            raise source.wrong(
                number, "must be a line of ibnetdiscover", line, "save its output unchanged"
            )
    return nodes


def _link(source: Source, number: int, line: str) -> tuple[int, End, float, int]:
    match = _LINK.match(line)
    speeds = _SPEED.findall(match[4] or "") if match else []
    if match is None or not speeds:
        raise source.wrong(
            number,
            "must state a link's ports and its width and speed",
            line,
            "save the whole output of ibnetdiscover",
        )
    # Descriptions stand before the speed, so the last match is the speed.
    width, speed = speeds[-1]
    source.require(int(width) != 0, number, "must have a width above 0", line, "correct the line")
    return int(match[1]), (match[2], int(match[3])), int(width) * LANE_GBPS[speed] / 8, number


def _links(
    source: Source, draft: Draft, nodes: dict[str, _SubnetNode], skipped: set[str]
) -> dict[tuple[End, End], tuple[float, int]]:
    """Return every link once, ends in order: its rate and line."""
    links: dict[tuple[End, End], tuple[float, int]] = {}
    stated: dict[tuple[End, End], int] = {}
    taken: dict[End, End] = {}
    for guid, node in nodes.items():
        for port, other, rate, line in node.links:
            source.require(
                other[0] in nodes,
                line,
                "must lead to a node that the file describes",
                other[0],
                "save the whole output of ibnetdiscover",
            )
            if guid in skipped or other[0] in skipped:
                continue
            here = (guid, port)
            key = (here, other) if here < other else (other, here)
            for end, far in ((here, other), (other, here)):
                source.require(
                    taken.setdefault(end, far) == far,
                    line,
                    "must have one link per port",
                    f"{end[0]}[{end[1]}]",
                    "save the output again",
                )
            stated[key] = stated.get(key, 0) + 1
            links.setdefault(key, (rate, line))
    once = sum(count == 1 for count in stated.values())
    draft.note(once, "link", " stated by one end only: kept.")
    return links


@dataclass(slots=True)
class _Host:
    line: int
    cards: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Rail and GUID of every adapter, by card."""


def _hosts(
    nodes: dict[str, _SubnetNode], skipped: set[str], linked: set[str], draft: Draft
) -> dict[str, _Host]:
    hosts: dict[str, _Host] = {}
    left_out: set[str] = set()
    first: dict[str, str] = {}
    nameless = repeated = joined = 0
    for guid, node in nodes.items():
        if node.kind != "Ca" or guid in skipped:
            continue
        unnamed = not node.description or _NAMELESS in node.description
        words = [first.setdefault(node.system, guid)] if unnamed else node.description.split()
        if guid not in linked:
            left_out.add(words[0])
            continue
        nameless += unnamed
        host = hosts.setdefault(words[0], _Host(node.line))
        rail = _RAIL.search(" ".join(words[1:]))
        number = int(rail[1]) if rail else len(host.cards)
        if node.system in host.cards:
            joined += 1
        elif rail:
            repeated += number in (port for card in host.cards.values() for port, _ in card)
        host.cards.setdefault(node.system, []).append((number, guid))
    draft.note(
        nameless,
        "adapter",
        " without a host's name in the description: each card taken as a host of its own, called"
        " by its GUID.",
    )
    draft.note(
        repeated,
        "adapter",
        " with the host and rail of another: taken as further NICs of one host.",
    )
    draft.note(
        joined,
        "adapter",
        " on the card of another (sysimgguid): one NIC with the links and the rate of all its"
        " ports.",
    )
    draft.note(len(left_out - set(hosts)), "host", " without links left out.")
    return hosts


def _check_size(source: Source, hosts: dict[str, _Host]) -> None:
    per_host = source.assumed.devices_per_node
    source.require(hosts, "", "must describe a host with links", "none", "scan the compute fabric")
    source.require(
        len(hosts) * per_host <= MAX_EXPLICIT_DEVICES,
        "",
        f"must have at most {MAX_EXPLICIT_DEVICES:,} devices",
        f"{len(hosts):,} hosts of {per_host}",
        "take hosts out",
    )


def _add_hosts(
    source: Source,
    draft: Draft,
    nodes: dict[str, _SubnetNode],
    hosts: dict[str, _Host],
    links: dict[tuple[End, End], tuple[float, int]],
) -> dict[str, str]:
    rates = summed((guid, rate) for ends, (rate, _) in links.items() for guid, _port in ends)
    names: dict[str, str] = {}
    per_host, uneven = source.assumed.devices_per_node, 0
    # node9 comes before node10, whatever was discovered first: ranks are given in this order.
    for name, host in sorted(
        hosts.items(),
        key=lambda host: re.sub(r"\d+", lambda number: number[0].zfill(20), host[0].casefold()),
    ):
        nics: dict[str, float] = {}
        for ports in sorted(map(sorted, host.cards.values())):
            rail, guid = ports[0]
            nic = f"{name} nic{rail}"
            nic = nic if nic not in nics else f"{nic} {guid}"
            nics[nic] = sum(rates[port] for _, port in ports)
            names |= {port: nic for _, port in ports}
        uneven += len(nics) != per_host
        draft.host(host.line, name, nics, 0.0)
    draft.notes.append(
        f"{plural(per_host, 'device')} per host {source.assumed.inside_words} assumed, each on the"
        " NIC of its rail."
    )
    draft.note(
        uneven,
        "host",
        " with another number of NICs than of devices: devices were spread over them in order.",
    )
    return names


def _add_switches(draft: Draft, nodes: dict[str, _SubnetNode], skipped: set[str]) -> dict[str, str]:
    switches = {guid: node for guid, node in nodes.items() if node.kind == "Switch"}
    short = {  # A09-LEAF-04 of MF0;A09-LEAF-04:MQM9701/U1
        guid: node.description.rpartition(";")[2].partition(":")[0].strip() or guid
        for guid, node in switches.items()
    }
    counts = Counter(short.values())
    names: dict[str, str] = {}
    for guid, node in switches.items():
        plain = short[guid]
        alone = counts[plain] == 1 and plain not in draft
        names[guid] = plain if alone else f"{plain} {guid}"
        # The odd last port is the one of the SHARP aggregation node inside the switch.
        used = (port for port, other, *_ in node.links if other[0] not in skipped)
        draft.element(node.line, names[guid], "switch", max(node.ports - node.ports % 2, *used, 0))
    return names
