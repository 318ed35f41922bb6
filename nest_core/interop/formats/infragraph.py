"""InfraGraph (Keysight/infragraph, schema 3.1): devices of components, instances of them, edges.

A device is a graph of components; one of type ``device`` stands for another device, so that NICs
and racks are composed. Endpoints take slices as Python has them: ``dgx[0:2]`` and ``xpu[::2]``.
Edges join ends ``one2one`` (as far as the shorter list goes) or ``many2many``; equal pairs are a
single edge. A host is a device that lists an ``xpu`` itself. Of its inside only what joins
accelerators is kept: ends of links that lead to no processor, NIC, memory or port. Through all
else (PCIe) an accelerator reaches its nearest NICs. Outside of hosts a device is a switch, unless
it has NICs: then it is a server without accelerators.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx

from nest_core.documents import gigabytes, grouped, microseconds
from nest_core.fabric import Fabric, GraphFabric, Link, as_graph
from nest_core.interop.formats.draft import Draft, served
from nest_core.interop.formats.trees import host_groups, inside_hosts
from nest_core.interop.formats.values import (
    FabricText,
    Reading,
    Source,
    check_plain_names,
    listed,
    unsaid_drawn,
)
from nest_core.interop.formats.yaml_text import YamlTable, line_of, yaml_values

__all__ = ["read_infragraph", "write_infragraph"]

MAX_DEPTH, MAX_PARTS = 8, 500_000
"""Devices inside of one another; components and edges of a file, expanded."""

_PART = re.compile(r"([^\[\].]+)(?:\[(-?\d{0,9}(?::-?\d{0,9}(?::-?[1-9]\d{0,8})?)?)\])?")
_SCALES = {
    "gigabits_per_second": 1 / 8,
    "gigabytes_per_second": 1.0,
    "ms": 1e3,
    "us": 1.0,
    "ns": 1e-3,
}
"""GB/s and us by the schema's units; transfers per second are no rate without their lanes."""
_NOT_IN_NAMES = re.compile(r"[^\sa-zA-Z0-9_()-]")
_NOT_SCALE_UP = {"cpu", "nic", "memory", "port"}

Physical = tuple[str, float | None, float | None]
"""Name of a link, its rate (GB/s) and its latency (us); None: not stated."""
Components = dict[str, tuple[int, str, str]]
"""By name: how many, their type, and the device that each stands for."""
Blueprint = tuple[Components, list[YamlTable], dict[str, Physical]]
"""Components, edges and links of a device."""
Shape = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str, Physical], ...]]
"""How many components of each name, and the edges between them."""
Joined = Mapping[tuple[str, str, Physical], int]
"""How many links there are between two elements."""


class _Expansion:
    """Components by path, as in ``dgx.0.xpu.3``, joined by edges."""

    def __init__(self, source: Source) -> None:
        self.source, self.parts, self.unknown = source, 0, dict[str, None]()
        self.kinds, self.edges = dict[str, str](), dict[tuple[str, str], Physical]()
        root = self.tables({"": yaml_values(source)}, "", "instances", "devices")[0]
        self.devices = {
            device["name"]: self.blueprint(device, "components")
            for device in self.tables(root, "devices", "name")
        }
        self.add(self.blueprint(root, "instances"))

    def tables(self, table: Mapping[str, Any], key: str, *needed: str) -> list[YamlTable]:
        """Return the mappings of a list, or the only one; none where the key is missing."""
        value = table.get(key) or []
        entries = [value] if isinstance(value, YamlTable) else value
        self.source.require(
            isinstance(entries, list)
            and all(isinstance(e, YamlTable) and all(map(e.get, needed)) for e in entries),
            line_of(value) or line_of(table),
            f"must be InfraGraph's, {key or 'a file'} with {' and '.join(needed) or 'keys'}",
            "something else",
            "write it as the infragraph package does",
        )
        return list(entries)

    def blueprint(self, table: YamlTable, key: str) -> Blueprint:
        """Return a device, or the infrastructure, whose components are its instances."""
        components: Components = {}
        for entry in self.tables(table, key, "name", "count"):
            name, kind = str(entry["name"]), str(entry.get("choice") or "custom")
            count = int(self.source.number(entry.line, "count", entry["count"], whole=True))
            inner = entry.get("device", "") if key == "instances" else name * (kind == "device")
            components[name] = count, kind, str(inner)
        links = {link["name"]: self.physical(link) for link in self.tables(table, "links", "name")}
        return components, self.tables(table, "edges", "ep1", "ep2"), links

    def physical(self, link: YamlTable) -> Physical:
        """Return what a link states of its rate and latency."""
        rate, latency = (
            [
                self.source.number(link.line, unit, figures[unit], zero=True) * scale
                for stated in self.tables(link, "physical")
                for figures in self.tables(stated, key)
                for unit, scale in _SCALES.items()
                if figures.get(unit)
            ]
            for key in ("bandwidth", "latency")
        )
        return str(link["name"]), rate[0] if rate else None, latency[0] if latency else None

    def add(self, blueprint: Blueprint, prefix: str = "", depth: int = 0) -> None:
        """Add the components of a device below a path, with those of the devices inside."""
        components, edges, links = blueprint
        self.count(sum(count for count, *_ in components.values()), depth)
        for name, (count, kind, inner) in components.items():
            self.source.require(
                inner in self.devices or not inner,
                name,
                "must be of a device that is defined",
                inner,
                "define it or correct its name",
            )
            for path in (f"{prefix}{name}.{place}" for place in range(count)):
                if inner:
                    self.add(self.devices[inner], f"{path}.", depth + 1)
                else:
                    self.kinds[path] = kind
        for edge in edges:
            ends = [self.ends(components, edge, end) for end in ("ep1", "ep2")]
            is_product, link = edge.get("scheme") == "many2many", edge.get("link", "")
            self.source.require(
                is_product or edge.get("scheme") == "one2one",
                edge.line,
                "must have one2one or many2many as scheme",
                edge.get("scheme", "none"),
                "list the pairs as edges",
            )
            self.count(len(ends[0]) * (len(ends[1]) if is_product else 1))
            pairs = itertools.product(*ends) if is_product else zip(*ends, strict=False)
            self.edges |= {
                (prefix + min(pair), prefix + max(pair)): links.get(link, (link, None, None))
                for pair in pairs
                if pair[0] != pair[1]
            }

    def count(self, more: int, depth: int = 0) -> None:
        """Refuse too many parts before they are made."""
        self.parts += more
        self.source.require(
            self.parts <= MAX_PARTS and depth <= MAX_DEPTH,
            "",
            f"must have at most {MAX_PARTS:,} components and edges, {MAX_DEPTH} devices deep",
            "more",
            "describe a part of it",
        )

    def ends(self, components: Components, edge: YamlTable, end: str) -> list[str]:
        """Return the paths of an edge's end, the outermost index slowest."""
        table, paths = self.tables(edge, end, "component")[0], [""]
        stated = (table.get("instance") or table.get("device"), table["component"])
        for part in ".".join(filter(None, stated)).split("."):
            match = _PART.fullmatch(part)
            name, index = (match[1], match[2] or ":") if match else (part, "")
            if name not in components:
                self.unknown[name] = None
                return []
            count, _, inner = components[name]
            bounds = [int(text) if text else None for text in index.split(":")]
            single = slice(bounds[0], None if bounds[0] == -1 else (bounds[0] or 0) + 1)
            places = range(count)[slice(*bounds) if len(bounds) > 1 else single]
            self.source.require(
                places,
                table.line,
                f"must have ends as xpu[0:2], of {count:,}",
                part,
                "correct the indices",
            )
            self.count(len(paths) * len(places))
            paths = [f"{path}.{name}.{place}" for path in paths for place in places]
            components = self.devices[inner][0] if inner else {}
        return [path[1:] for path in paths]


def read_infragraph(source: Source) -> Reading:
    """Return a graph of accelerators, NICs and switches, called as their paths.

    A rate that no link states is, of an accelerator's links, a share of its own rate; of its link
    to a NIC, the NIC's.
    """
    parts, draft = _Expansion(source), Draft(source)
    kinds = parts.kinds
    hosts = {_owner(path) for path, kind in kinds.items() if kind == "xpu"}
    above = {prefix for host in hosts for prefix in _prefixes(host)}
    of_path = {path: next(p for p in _prefixes(path) if p not in above) for path in kinds}
    inner = grouped((of_path[path], kind) for path, kind in kinds.items())
    joining = _joining(parts, hosts)
    roles = {name: _role(inner[name], _owner(name) in hosts, name in joining) for name in inner}
    edges = [
        (
            min(of_path[a], of_path[b]),
            max(of_path[a], of_path[b]),
            kinds[a] == kinds[b] == "port",
            physical,
        )
        for (a, b), physical in parts.edges.items()
    ]
    pcie = {
        (a, b): physical
        for a, b, _, physical in edges
        if "" in (roles[a], roles[b]) and _owner(a) == _owner(b)
    }
    links = Counter(
        (a, b, physical)
        for a, b, _, physical in edges
        if a != b and {roles[a], roles[b]} <= {"device", "nic", "switch"}
    )
    used = Counter(end for a, b, _ in links.elements() for end in (a, b))
    for name, role in roles.items():
        if role not in ("", "server"):
            radix = inner[name].count("port") * (role == "switch")
            group = _owner(name) if _owner(name) in hosts else ""
            draft.element("", name, role, radix * (radix >= used[name]), group=group)
    _add_pcie(draft, roles, links, pcie)
    _add_links(draft, roles, links)
    servers = [name for name, role in roles.items() if role == "server"]
    lost = [
        _owner(a) != _owner(b)
        if "" in (roles[a], roles[b])
        else a == b and port and roles[a] == "switch"
        for a, b, port, _ in edges
    ]
    draft.note(len(servers), "server", f" without accelerators left out: {listed(servers)}.")
    draft.note(
        sum(lost), "edge", " left out: of parts that forward nothing, or of a switch and itself."
    )
    unknown = f" that its device lacks left out of edges: {listed(parts.unknown)}."
    draft.note(len(parts.unknown), "component", unknown)
    return draft.document(source.name)


def _owner(path: str) -> str:
    """Return the device that a component is in; empty for an instance."""
    return path.rsplit(".", 2)[0] if path.count(".") > 1 else ""


def _prefixes(path: str) -> list[str]:
    """Return the devices that a component is in, outermost first, and itself."""
    words = path.split(".")
    return [".".join(words[: end + 2]) for end in range(0, len(words), 2)]


def _role(kinds: list[str], in_host: bool, is_joining: bool) -> str:
    """Return the role of a device by its components; empty for what joins no accelerators."""
    roles = {"xpu": "device", "nic": "nic", "port": "nic"}
    of_host = next((roles[kind] for kind in kinds if kind in roles), "switch" * is_joining)
    return of_host if in_host else "server" if "nic" in kinds else "switch"


def _joining(parts: _Expansion, hosts: set[str]) -> set[str]:
    """Return ends of links that join accelerators of a host, and nothing to a processor or NIC."""
    of_link = grouped(
        ((_owner(a), physical[0]), {a, b})
        for (a, b), physical in parts.edges.items()
        if _owner(a) == _owner(b) and _owner(a) in hosts
    )
    ends = [set().union(*pairs) for pairs in of_link.values()]
    types = [{parts.kinds[name] for name in names} for names in ends]
    scale_up = (n for n, t in zip(ends, types, strict=True) if "xpu" in t and not t & _NOT_SCALE_UP)
    return set().union(*scale_up)


def _add_links(draft: Draft, roles: Mapping[str, str], links: Joined) -> None:
    """Add links; accelerators share their rate out to those that state none, but to NICs."""
    assumed = draft.source.assumed
    sharing = {
        key: [end for end in key[:2] if roles[end] == "device"]
        for key in links
        if key[2][1] is None and "nic" not in (roles[key[0]], roles[key[1]])
    }
    shares = Counter(end for key, ends in sharing.items() for end in ends * links[key])
    for (a, b, physical), count in links.items():
        _, rate, latency = physical
        if ends := sharing.get((a, b, physical)):
            rate = assumed.inside_GBps / max(shares[end] for end in ends)
            latency = assumed.intra_latency_us / (3 - len(ends)) if latency is None else latency
        draft.link("", a, b, rate, latency, count)
    rate_words = f"{assumed.inside_GBps:g} GB/s over all of them assumed."
    draft.note(len(shares), "accelerator", f" whose links state no rate: {rate_words}")


def _add_pcie(
    draft: Draft,
    roles: Mapping[str, str],
    links: Joined,
    pcie: Mapping[tuple[str, str], Physical],
) -> None:
    """Link accelerators to their nearest NICs, which those that have the same ones divide.

    Accelerators of a host that no other links join get a switch for their PCIe, at the rate that
    is assumed of links.
    """
    default, joined = draft.source.assumed.link_bandwidth_GBps, nx.utils.UnionFind(roles)
    graph, near = nx.Graph([*pcie]), dict[str, tuple[str, ...]]()
    rates, order = dict.fromkeys(roles, 0.0), {name: place for place, name in enumerate(roles)}
    for (a, b, (_, rate, _)), count in links.items():
        if "nic" in (roles[a], roles[b]):
            nic, other = (a, b) if roles[a] == "nic" else (b, a)
            near |= {other: ()} if roles[other] == "device" else {}
            rates[nic] += count * (rate or default) * (roles[other] != "device")
        else:
            joined.union(a, b)
    for name in (n for n in roles if roles[n] == "device" and n in graph and n not in near):
        steps = nx.single_source_shortest_path_length(graph, name)
        nics = sorted((far, order[nic], nic) for nic, far in steps.items() if roles[nic] == "nic")
        near[name] = tuple(nic for far, _, nic in nics if far == nics[0][0])
    for nearest, devices in grouped((nics, name) for name, nics in near.items()).items():
        for place, name in enumerate(devices):
            for nic in (nearest[rail] for rail in served(place, len(devices), len(nearest))):
                path = itertools.pairwise(nx.shortest_path(graph, name, nic))
                stated = [pcie[min(ends), max(ends)][1] for ends in path]
                slowest = min(filter(None, stated), default=rates[nic] or default)
                draft.link("", name, nic, slowest, 0.0)
    of_host = grouped((_owner(name), name) for name in roles if roles[name] == "device")
    for host, devices in of_host.items():
        if len({joined[name] for name in devices}) > 1:
            draft.element("", f"{host} pcie", "switch", group=host)
            for name in devices:
                draft.link("", name, f"{host} pcie", None, None)


def write_infragraph(fabric: Fabric) -> FabricText:
    """Return hosts of equal insides and switches of equal ports as instances, and their links.

    JSON, which readers of YAML take. Devices of fabrics without switches are hosts of their own.

    Raises
    ------
    InputError
        Over 16,384 devices.
    """
    graph = as_graph(fabric)
    check_plain_names(graph, "InfraGraph")
    devices, roles = graph.device_ids, {element.id: element.role for element in graph.elements}
    hosts = host_groups(fabric, "InfraGraph").host_of if fabric.switched else range(len(devices))
    host_of = inside_hosts(graph, dict(zip(devices, map(int, hosts), strict=True)))
    # Edges that no ports tell apart would be a single one.
    links = [
        replace(link, count=1, bandwidth_Bps=link.bandwidth_Bps * link.count)
        if {link.a, link.b} <= host_of.keys()
        else link
        for link in graph.links
    ]
    places, shapes = _shapes(graph, links, host_of)
    names = {
        shape: f"{'switch' if shape[0][0][0] == 'asic' else 'host'}{number}"
        for number, shape in enumerate(dict.fromkeys(shapes.values()))
    }
    instances = grouped((names[shape], key) for key, shape in shapes.items())
    address = {key: f"{n}[{i}]" for n, keys in instances.items() for i, key in enumerate(keys)}
    ports = Counter[str]()

    def end(name: str, count: int) -> dict[str, str]:
        ports[name] += count
        slot = places.get(name, f"port[{ports[name] - count}:{ports[name]}]")
        return {"instance": address[host_of.get(name, name)], "component": slot}

    outside = [link for link in links if host_of.get(link.a, -1) != host_of.get(link.b)]
    document = {
        "name": _NOT_IN_NAMES.sub("_", graph.name) or "fabric",
        "description": graph.name,
        "devices": [_device(name, *shape) for shape, name in names.items()],
        "links": _link_tables(_physical(link, roles) for link in outside),
        "instances": [
            {"name": name, "device": name, "count": len(keys)} for name, keys in instances.items()
        ],
        "edges": [
            {
                "ep1": end(link.a, link.count),
                "ep2": end(link.b, link.count),
                "scheme": "many2many" if {link.a, link.b} & host_of.keys() else "one2one",
                "link": _physical(link, roles)[0],
            }
            for link in outside
        ],
    }
    order = [key for keys in instances.values() for key in keys]
    numbered = sorted(devices, key=lambda name: order.index(host_of[name]))
    lost = {
        **dict.fromkeys((*fabric.lost_in_graph, *unsaid_drawn(graph)), True),
        "Names: hosts and switches are numbered, a fabric's has letters and digits alone.": True,
        "The order of devices: hosts that are alike stand together.": numbered != [*devices],
        "How many switches or NICs are drawn as one, whose ports are those of all.": any(
            element.count > 1 for element in graph.elements
        ),
        "How many links of devices are parallel: each is one of their sum.": any(
            link.count != new.count for link, new in zip(graph.links, links, strict=True)
        ),
    }
    text = json.dumps(document, indent=1) + "\n"
    return FabricText(text, tuple(sentence for sentence, holds in lost.items() if holds))


def _physical(link: Link, roles: Mapping[str, str]) -> Physical:
    """Return a link's rate and latency, and a name that no other figures or roles have."""
    rate, latency = gigabytes(link.bandwidth_Bps), microseconds(link.latency_s)
    ends = "-".join(sorted((roles[link.a], roles[link.b])))
    return _NOT_IN_NAMES.sub("_", f"{ends} {rate} GBps {latency} us"), rate, latency


def _shapes(
    graph: GraphFabric, links: Sequence[Link], host_of: Mapping[str, int]
) -> tuple[dict[str, str], dict[int | str, Shape]]:
    """Return slots of what is inside hosts, and components and edges of hosts and switches."""
    roles = {element.id: element.role.replace("device", "xpu") for element in graph.elements}
    members = grouped(((host, roles[name]), name) for name, host in host_of.items())
    places = {n: f"{kind}[{i}]" for (_, kind), ns in members.items() for i, n in enumerate(ns)}
    counts = grouped((host, (kind, len(names))) for (host, kind), names in members.items())
    inside = grouped(
        (host_of[link.a], (places[link.a], places[link.b], _physical(link, roles)))
        for link in links
        if host_of.get(link.a, -1) == host_of.get(link.b)
    )
    used = Counter(end for link in links for end in (link.a, link.b) for _ in range(link.count))
    shapes: dict[int | str, Shape] = {
        host: (tuple(count), tuple(inside.get(host, ()))) for host, count in counts.items()
    }
    return places, shapes | {
        element.id: ((("asic", 1), ("port", ports)), (("asic", "port", ("internal", None, None)),))
        for element in graph.elements
        if element.id not in host_of
        for ports in [max(element.radix * element.count, used[element.id], 1)]
    }


def _device(
    name: str, components: Sequence[tuple[str, int]], edges: Sequence[tuple[str, str, Physical]]
) -> dict[str, Any]:
    return {
        "name": name,
        "components": [
            {"name": kind, "count": count, "choice": kind.replace("asic", "switch")}
            for kind, count in components
        ],
        "links": _link_tables(physical for *_, physical in edges),
        "edges": [
            {"ep1": {"component": a}, "ep2": {"component": b}, "scheme": "many2many", "link": link}
            for a, b, (link, *_) in edges
        ],
    }


def _link_tables(links: Iterable[Physical]) -> list[dict[str, Any]]:
    units = ("bandwidth", "gigabytes_per_second"), ("latency", "us")
    return [
        {
            "name": name,
            "physical": {
                key: {"choice": unit, unit: figure}
                for (key, unit), figure in zip(units, figures, strict=True)
                if figure is not None
            },
        }
        for name, *figures in dict.fromkeys(links)
    ]
