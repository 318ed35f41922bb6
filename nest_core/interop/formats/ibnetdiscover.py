"""What ``ibnetdiscover`` prints of an InfiniBand subnet (linux-rdma/rdma-core, infiniband-diags).

Blocks describe switches and channel adapters (HCAs), every link stands in the blocks of both its
ends. The first word of an adapter's description is its host, the number in the next its rail
(``dgx-04 mlx5_5``, ``dgx-04 HCA-6``). Adapters of a host with one ``sysimgguid`` are the ports of
one card: one NIC, by the lowest rail of them, with the links and the rate of all. The inside of
hosts is assumed, and their devices are numbered in the order of the hosts' names. A device whose
NIC is down, as most hosts have it, shares another's, and all others stay on their rails.

Rates are what a link carries after its line code, from the InfiniBand Architecture Specification,
volume 2: lanes of 2.5, 5 and 10 Gb/s with 8b/10b (SDR, DDR, QDR: 4x QDR carries 32 of 40 Gb/s),
10.3125 and 14.0625 Gb/s with 64b/66b (FDR10, FDR: 4x FDR carries 54.5 of 56), 25 Gb/s (EDR), and,
as they are named, 50 (HDR), 100 (NDR) and 200 Gb/s (XDR).
"""

import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nest_core.documents import grouped, plural, summed
from nest_core.fabric import MAX_EXPLICIT_DEVICES, packed_table
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.lfts import TABLE_START, read_tables
from nest_core.interop.formats.values import Document, Reading, Source, listed, short_name

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
_LID = re.compile(r'(?:.*" )??lid (\d{1,5}) ')
"""Of an adapter: first in its own block, last in those of switches."""
_ADAPTER = re.compile(r"\s+((?:mlx\d+_|hfi\d+_|HCA-)\d{1,6})(?!\d)")
_DIGITS = re.compile(r"\d+")
_SERVER = re.compile(
    r"(?:stor|nas|nfs|lustre|lnet|oss|mds|mgs|ost|gpfs|beegfs|weka|vast|ddn|ceph|ufm|opensm|mgmt|mgr"
    r"|management|admin|head|login|gateway|gw|skyway|bcm)(?:age)?(?![a-z])",
    re.IGNORECASE,
)
"""Hosts that serve files, manage or let in."""
_WARNING = re.compile(
    r"(?:\S*/)?[\w.-]+\.c:\d+|ib(?:warn|panic|debug|error)\b|\w*(?:warn|error)\w*:", re.IGNORECASE
)
"""What libibmad, libibumad and libibnetdisc print on the standard error of ibnetdiscover."""
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
    links: list[tuple[int, End, float, int, int]] = field(default_factory=list)
    """Own port, other end, GB/s, line, address of the adapter at either end."""


def read_ibnetdiscover(source: Source) -> Reading:
    """Return a graph of hosts with their NICs, and of switches, with the tables of these.

    Tables come in a file of their own, or behind the topology in the same one.
    """
    draft = Draft(source)
    text, opens, behind = source.text.partition(f"\n{TABLE_START}")
    source, tables = replace(source, text=text), source.tables
    if opens:
        source.require(
            not tables, "tables", "must come once", "in this file and beside it", "leave one out"
        )
        tables = (TABLE_START + behind).encode()
    nodes = _nodes(source, draft)
    skipped = {guid for guid, node in nodes.items() if _SHARP in node.description}
    draft.note(len(skipped), "SHARP aggregation node", " skipped.")
    routers = {guid for guid, node in nodes.items() if node.kind == "Rt"}
    draft.note(len(routers), "router", " to other subnets skipped.")
    links = _links(source, draft, nodes, skipped | routers)
    hosts = _hosts(nodes, skipped, {end[0] for pair in links for end in pair}, draft)
    source.require(hosts, "", "must describe a host with links", "none", "scan the compute fabric")
    hosts = {name: hosts[name] for name in _compute_nodes(source, hosts, draft)}
    per_host = source.assumed.devices_per_node
    source.require(
        len(hosts) * per_host <= MAX_EXPLICIT_DEVICES,
        "",
        f"must have at most {MAX_EXPLICIT_DEVICES:,} devices",
        f"{len(hosts):,} hosts of {per_host}",
        "take hosts out",
    )
    names = _add_hosts(source, draft, nodes, hosts, links)
    names |= _add_switches(draft, nodes, skipped | routers)
    _add_cables(draft, nodes, names, links)
    draft.notes.append(
        f"ibnetdiscover states no latencies: {source.assumed.hop_latency_us:g} us per link assumed."
    )
    document, notes = draft.document(source.name)
    forwarding = _forwarding(nodes, names, draft)
    if tables:
        _add_tables(source, forwarding, read_tables(source, tables))
        document["routing"] = "tables"
        followed = plural(len(forwarding), "switch", "switches")
        notes += (f"Traffic follows the forwarding tables of {followed}.",)
    document["forwarding"] = list(forwarding.values())
    return source.assumed.marked(document), notes


def _forwarding(
    nodes: dict[str, _SubnetNode], names: dict[str, str], draft: Draft
) -> dict[int, Document]:
    """Return what hangs on the ports of every switch, by its GUID."""
    ends: dict[str, dict[int, tuple[str, int]]] = {
        guid: {} for guid in names if nodes[guid].kind == "Switch"
    }
    for guid, node in nodes.items():
        for port, (far, far_port), _, _, lid in node.links:
            # A link may stand in one block alone.
            for switch, place, end in ((guid, port, far), (far, far_port, guid)):
                if switch in ends and end in nodes:
                    is_switch = nodes[end].kind == "Switch"
                    ends[switch][place] = (names.get(end, ""), 0 if is_switch else lid)
    return {
        int(guid[2:], 16): {
            "switch": names[guid],
            "guid": f"0x{guid[2:].lstrip('0') or '0'}",
            "ports": [f"{port} {lid} {end}" for port, (end, lid) in sorted(ports.items())],
        }
        for guid, ports in ends.items()
        if ports
    }


def _add_tables(
    source: Source, forwarding: dict[int, Document], tables: dict[int, NDArray[np.uint8]]
) -> None:
    """Put tables beside the ports of their switches."""
    strange = [guid for guid in tables if guid not in forwarding]
    source.require(
        not strange,
        "tables",
        "must be those of the switches of this subnet",
        f"{len(strange)} of others, such as {strange[0]:#x}" if strange else "",
        "dump topology and tables of one subnet at one time",
    )
    for guid, entry in forwarding.items():
        source.require(
            guid in tables,
            "tables",
            "must hold the table of every switch",
            f"none of {entry['switch']} ({guid:#x})",
            "dump all of them: dump_lfts, or ibroute switch by switch",
        )
        entry["table"] = packed_table(tables[guid])


def _nodes(source: Source, draft: Draft) -> dict[str, _SubnetNode]:
    nodes: dict[str, _SubnetNode] = {}
    current: _SubnetNode | None = None
    system, warnings, started = "", list[str](), False
    for number, raw in enumerate(source.text.splitlines(), start=1):
        line = raw.strip()
        if not line:
            current, system = None, ""
        elif line.startswith("["):
            if current is None:
                raise source.wrong(
                    number,
                    "must have links below the node they belong to",
                    line,
                    "save the whole output of ibnetdiscover",
                )
            current.links.append(_link(source, number, line))
        elif stated := _SYSTEM.match(line):
            system, started = stated[1], True
        elif match := _NODE.match(line):
            guid = match[3]
            source.require(
                guid not in nodes, number, "must describe a node once", guid, "remove one block"
            )
            current = nodes[guid] = _SubnetNode(
                match[1], int(match[2]), match[4].strip(), number, system or guid
            )
        elif line.startswith(_SKIPPED):
            started = True
        else:
            source.require(
                not (started or nodes) or _WARNING.match(line),
                number,
                "must be a line of ibnetdiscover",
                line,
                "save its output unchanged",
            )
            warnings.append(line)
    draft.note(
        len(warnings),
        "line",
        f" that ibnetdiscover does not print skipped, such as {'; '.join(warnings[:1])[:120]!r}:"
        " what a warning of its libraries names may be missing here.",
    )
    return nodes


def _link(source: Source, number: int, line: str) -> tuple[int, End, float, int, int]:
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
    rate, lid = int(width) * LANE_GBPS[speed] / 8, _LID.match(match[4])
    return int(match[1]), (match[2], int(match[3])), rate, number, int(lid[1]) if lid else 0


def _links(
    source: Source, draft: Draft, nodes: dict[str, _SubnetNode], skipped: set[str]
) -> dict[tuple[End, End], tuple[float, int]]:
    """Return every link once, ends in order: its rate and line."""
    links: dict[tuple[End, End], tuple[float, int]] = {}
    again = links.copy()
    taken: dict[End, End] = {}
    for guid, node in nodes.items():
        for port, other, rate, line, _ in node.links:
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
            for end, far in ((here, other), (other, here)):
                if taken.setdefault(end, far) != far:
                    raise source.wrong(
                        line,
                        "must have one link per port",
                        f"{end[0]}[{end[1]}]",
                        "save the output again",
                    )
            ends = (here, other) if here < other else (other, here)
            (again if ends in links else links)[ends] = rate, line
    draft.note(len(links) - len(again), "link", " stated by one end only: kept.")
    return links


Cards = dict[str, list[tuple[int, str]]]
"""Rail and GUID of every adapter of a host with a link, by card."""


def _hosts(
    nodes: dict[str, _SubnetNode], skipped: set[str], linked: set[str], draft: Draft
) -> dict[str, Cards]:
    """Return hosts by name; adapters that two hosts of one name call alike tell them apart."""
    adapters = _adapters(nodes, skipped, draft)
    copies: Counter[str] = Counter()
    for (name, adapter), guids in adapters.items():
        copies[name] = max(copies[name], len(guids) if adapter else 1)
    hosts: dict[str, Cards] = {}
    joined = 0
    for (name, adapter), guids in adapters.items():
        for number, guid in enumerate(guids, start=1):
            cards = hosts.setdefault(f"{name}-{number}" if copies[name] > 1 else name, {})
            if guid in linked:
                joined += nodes[guid].system in cards
                rail = int(_DIGITS.findall(adapter)[-1]) if adapter else len(cards)
                cards.setdefault(nodes[guid].system, []).append((rail, guid))
    alike = {name: count for name, count in copies.items() if count > 1}
    draft.note(
        sum(alike.values()),
        "host",
        f" with the name of another ({listed(alike)}): numbered and told apart by the ports that"
        " their adapters hang on.",
    )
    draft.note(
        joined,
        "adapter",
        " on the card of another (sysimgguid): one NIC with the links and the rate of all its"
        " ports.",
    )
    bare = [name for name, cards in hosts.items() if not cards]
    draft.note(len(bare), "host", f" without links left out: {listed(bare)}.")
    return {name: cards for name, cards in hosts.items() if cards}


def _adapters(
    nodes: dict[str, _SubnetNode], skipped: set[str], draft: Draft
) -> dict[tuple[str, str], list[str]]:
    """Return GUIDs by host and by what the host calls the adapter, in the order of their ports."""
    order = {guid: place for place, guid in enumerate(nodes)}
    first: dict[str, str] = {}
    entries: list[tuple[tuple[str, str], str]] = []
    nameless = 0
    for guid, node in nodes.items():
        if node.kind != "Ca" or guid in skipped:
            continue
        adapter, words = _ADAPTER.search(node.description), node.description.split()
        if not words or _NAMELESS in node.description:
            key = first.setdefault(node.system, guid), ""
            nameless += 1
        else:
            key = (node.description[: adapter.start()], adapter[1]) if adapter else (words[0], "")
        entries.append((key, guid))
    draft.note(
        nameless,
        "adapter",
        " without a host's name in the description: each card taken as a host of its own, called"
        " by its GUID.",
    )

    place = {
        guid: min(
            ((order[far], port) for _, (far, port), *_ in nodes[guid].links),
            default=(len(nodes), 0),
        )
        for _, guid in entries
    }
    return {key: sorted(guids, key=place.__getitem__) for key, guids in grouped(entries).items()}


def _compute_nodes(source: Source, hosts: dict[str, Cards], draft: Draft) -> list[str]:
    """Return the hosts that have devices, in the order of their numbers.

    Those that are listed as nodes; else all but those that are called as a server of files or of
    management is, or have at most half of the NICs that most have and a name unlike theirs: a card
    whose cable is out is not discovered at all.
    """
    usual = _usual(map(len, hosts.values()))
    series = {_DIGITS.sub("", name) for name, cards in hosts.items() if len(cards) == usual}
    place = {short_name(name): number for number, name in enumerate(source.nodes)}
    chosen = (
        [name for name in hosts if short_name(name) in place]
        or [
            name
            for name, cards in hosts.items()
            if not _SERVER.match(name)
            and (2 * len(cards) > usual or _DIGITS.sub("", name) in series)
        ]
        or [*hosts]
    )
    others = [name for name in hosts if name not in {*chosen}]
    draft.note(
        len(others),
        "host",
        f" left out, {'not listed as' if place else 'by their names or few NICs no'} nodes"
        f" of devices: {listed(others)}.",
    )
    # node9 comes before node10, whatever was discovered first: ranks are given in this order.
    return sorted(chosen, key=lambda name: (place.get(short_name(name), 0), _natural(name)))


def _natural(name: str) -> str:
    return _DIGITS.sub(lambda number: number[0].zfill(20), name.casefold())


def _usual(figures: Iterable[float]) -> float:
    """Return the commonest of some figures, of several the largest; 0 for none."""
    return max(((count, figure) for figure, count in Counter(figures).items()), default=(0, 0))[1]


def _add_hosts(
    source: Source,
    draft: Draft,
    nodes: dict[str, _SubnetNode],
    hosts: dict[str, Cards],
    links: dict[tuple[End, End], tuple[float, int]],
) -> dict[str, str]:
    rates = summed((guid, rate) for ends, (rate, _) in links.items() for guid, _port in ends)
    names: dict[str, str] = {}
    every: dict[str, float] = {}
    rails = {name: {min(ports)[0] for ports in cards.values()} for name, cards in hosts.items()}
    # Of sets of rails that are as common, the largest: NICs are missing sooner than added.
    sets = Counter(map(frozenset, rails.values())).items()
    usual = max(sets, key=lambda item: (item[1], len(item[0])))[0]
    down = [f"{name} nic{rail}" for name in hosts for rail in sorted(usual - rails[name])]
    draft.note(
        len(down),
        "NIC",
        f" without a link, down or missing, that other hosts have: {listed(down)}.",
    )
    per_host, uneven, shared = source.assumed.devices_per_node, 0, 0
    for name, cards in hosts.items():
        nics: dict[str, float] = {}
        for ports in sorted(map(sorted, cards.values())):
            rail, guid = ports[0]
            nic = f"{name} nic{rail}"
            nic = nic if nic not in nics else f"{nic} {guid}"
            nics[nic] = sum(rates[port] for _, port in ports)
            names |= {port: nic for _, port in ports}
        is_short = rails[name] < usual and len(nics) == len(rails[name])
        uses = [f"{name} nic{rail}" for rail in _uses(rails[name], usual)] if is_short else [*nics]
        shared += is_short
        uneven += len(uses) != per_host
        draft.host(nodes[guid].line, name, nics, 0.0, uses)
        every |= nics
    draft.notes.append(
        f"{plural(per_host, 'device')} per host {source.assumed.inside_words} assumed, each on the"
        " NIC of its rail."
    )
    draft.note(
        uneven,
        "host",
        " with another number of NICs than of devices: devices were spread over them in order.",
    )
    draft.note(
        shared,
        "host",
        " with NICs that are down: devices of those share the NIC that fewest use, of several that"
        " of the nearest rail; all others use that of their rail.",
    )
    _note_slow(draft, "NIC", every)
    return names


def _uses(present: Set[int], usual: Set[int]) -> list[int]:
    """Return for every usual rail the one whose NIC its devices use: its own, unless it is down.

    Then that which fewest use, of several the nearest, of two the lower.

    Examples
    --------
    >>> _uses({0, 1, 3}, {0, 1, 2, 3}), _uses({0, 1}, {0, 1, 2, 3})
    ([0, 1, 1, 3], [0, 1, 1, 0])
    """
    uses = {rail: rail for rail in present}
    for rail in sorted(usual - present):
        uses[rail] = min(
            ([*uses.values()].count(other), abs(other - rail), other) for other in present
        )[-1]
    return [uses[rail] for rail in sorted(uses)]


def _note_slow(draft: Draft, noun: str, rates: dict[str, float]) -> None:
    usual = _usual(rates.values())
    slow = [f"{name} at {rate:g} GB/s" for name, rate in rates.items() if rate < usual]
    draft.note(len(slow), noun, f" slower than the usual {usual:g} GB/s: {listed(slow)}.")


def _add_cables(
    draft: Draft,
    nodes: dict[str, _SubnetNode],
    names: dict[str, str],
    links: dict[tuple[End, End], tuple[float, int]],
) -> None:
    """Add links that stay, cables between the same two elements as one with their mean rate."""
    bundles = grouped(
        ((names[a[0]], names[b[0]]), (rate, line))
        for (a, b), (rate, line) in links.items()
        if a[0] in names and b[0] in names
    )
    for (a, b), cables in bundles.items():
        rate = sum(rate for rate, _ in cables) / len(cables)
        draft.link(cables[0][1], a, b, rate, draft.source.assumed.hop_latency_us, len(cables))
    between = {
        f"{names[a[0]]} - {names[b[0]]} (port {a[1]})": rate
        for (a, b), (rate, _) in links.items()
        if nodes[a[0]].kind == nodes[b[0]].kind == "Switch"
    }
    _note_slow(draft, "cable", between)


def _add_switches(draft: Draft, nodes: dict[str, _SubnetNode], skipped: set[str]) -> dict[str, str]:
    switches = {guid: node for guid, node in nodes.items() if node.kind == "Switch"}
    short = {  # A09-LEAF-04 of MF0;A09-LEAF-04:MQM9701/U1
        guid: node.description.rpartition(";")[2].partition(":")[0].strip() or guid
        for guid, node in switches.items()
    }
    counts = Counter(short.values())
    names: dict[str, str] = {}
    for guid, node in switches.items():
        alone = counts[short[guid]] == 1 and short[guid] not in draft
        names[guid] = short[guid] if alone else f"{short[guid]} {guid}"
        # The odd last port is the one of the SHARP aggregation node inside the switch.
        used = (port for port, other, *_ in node.links if other[0] not in skipped)
        draft.element(node.line, names[guid], "switch", max(node.ports - node.ports % 2, *used, 0))
    return names
