"""Fabrics drawn element by element: devices, NICs, switches and the links between them."""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Literal, Self

from nest_core.documents import (
    InputError,
    from_gbps_bytes,
    from_microseconds,
    gigabytes,
    grouped,
    microseconds,
    require,
    summed,
)
from nest_core.documents.schema import FabricFile
from nest_core.documents.schema.fabric import ElementTable, ForwardingTable, LinkTable
from nest_core.fabric.arrange import hops
from nest_core.fabric.checks import (
    MAX_EXPLICIT_DEVICES,
    TABLED,
    LinkGraph,
    check_routing,
    positive,
    whole,
)
from nest_core.fabric.fabric import Document, Fabric
from nest_core.fabric.subnet import SubnetSwitch, check_cables

__all__ = ["MAX_LINKS", "Element", "GraphFabric", "Link", "as_graph", "node_name"]

MAX_LINKS = 200_000


@dataclass(frozen=True, slots=True)
class Element:
    """A device, NIC or switch.

    Parameters
    ----------
    id : str
    role : {"device", "nic", "switch"}
    radix : int
        Ports; 0: not stated, never exceeded.
    group : str
        What it is drawn inside, outermost first: ``"pod 0/node 3"``. Where there are no NICs it
        tells the bill what a node is; changes no time.
    x, y : float or None
        Where it is drawn, y downwards; changes no cost.
    count : int
        Equal NICs or switches that are drawn as one because they are used as one: links spread
        evenly over them, ``radix`` counts the ports of one. Changes the bill and no time.
    """

    id: str
    role: Literal["device", "nic", "switch"]
    radix: int = 0
    group: str = ""
    x: float | None = None
    y: float | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Link:
    """``count`` equal parallel links between two elements, each way.

    Parameters
    ----------
    a, b : str
        Ids of elements.
    bandwidth_Bps, latency_s : float
        One link, one direction.
    """

    a: str
    b: str
    bandwidth_Bps: float
    count: int = 1
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphFabric(Fabric):
    """Any fabric as a link graph; devices are numbered in the order they are listed.

    Parameters
    ----------
    elements : tuple of Element
    links : tuple of Link
    routing, ecmp_seed
        How flows choose among paths.
    forwarding : tuple of SubnetSwitch
        Ports and tables of the switches of an InfiniBand subnet, where they are known.
    """

    kind = "graph"
    noun = "drawn graph"
    lost_in_graph = ()

    elements: tuple[Element, ...]
    links: tuple[Link, ...]
    forwarding: tuple[SubnetSwitch, ...] = ()

    def __post_init__(self) -> None:
        check_routing(self.routing, self.ecmp_seed)
        self._check_elements()
        self._check_links()
        self._check_ports()
        self._check_connected()
        if self.routing in TABLED:
            self._check_forwarding()

    @classmethod
    def from_file(
        cls,
        file: FabricFile,
        elements: list[ElementTable],
        links: list[LinkTable] | None,
        forwarding: list[ForwardingTable] | None,
    ) -> Self:
        """Return the fabric of a file's elements and links."""
        return cls(
            file.name,
            tuple(
                Element(
                    entry.id,
                    entry.role,
                    entry.radix or 0,
                    entry.group,
                    entry.x,
                    entry.y,
                    entry.count,
                )
                for entry in elements
            ),
            tuple(
                Link(
                    entry.a,
                    entry.b,
                    from_gbps_bytes(entry.bandwidth_GBps),
                    entry.count,
                    from_microseconds(entry.latency_us),
                )
                for entry in links or ()
            ),
            tuple(map(SubnetSwitch.from_file, forwarding or ())),
            routing=file.routing,
            ecmp_seed=file.ecmp_seed,
        )

    def tables(self) -> Document:
        """Elements and, where there are any, links and forwarding tables."""
        every = (
            {
                "id": element.id,
                "role": element.role,
                "radix": element.radix or None,
                "count": None if element.count == 1 else element.count,
                "group": element.group or None,
                "x": element.x,
                "y": element.y,
            }
            for element in self.elements
        )
        elements = [
            {key: value for key, value in entry.items() if value is not None} for entry in every
        ]
        links = [
            {
                "a": link.a,
                "b": link.b,
                "bandwidth_GBps": gigabytes(link.bandwidth_Bps),
                "count": link.count,
                "latency_us": microseconds(link.latency_s),
            }
            for link in self.links
        ]
        forwarding = [entry.document() for entry in self.forwarding]
        return {"element": elements} | {
            key: rows for key, rows in (("link", links), ("forwarding", forwarding)) if rows
        }

    def arrangement(self) -> str:
        """Return that somebody drew it."""
        return "drawn"

    def extent(self) -> str:
        """Elements and links."""
        return f"{len(self.elements):,} elements, {len(self.links):,} links"

    def contents(self) -> str:
        """Elements by their role, and links."""
        count = dict.fromkeys(("device", "NIC", "switch"), 0)
        for element in self.elements:
            count["NIC" if element.role == "nic" else element.role] += element.count
        count["link"] = len(self.links)
        plurals = {"switch": "switches"}
        parts = [
            f"{number:,} {name if number == 1 else plurals.get(name, f'{name}s')}"
            for name, number in count.items()
        ]
        return f"Drawn: {', '.join(parts)}."

    def group_labels(self, level: int) -> tuple[str, ...]:
        """Name the innermost group of every device, where it is drawn in one."""
        groups = tuple(
            element.group.rpartition("/")[2]
            for element in self.elements
            if element.role == "device"
        )
        return groups if all(groups) and not level else ()

    def drawn_groups(self) -> dict[str, str]:
        """Return what every element is drawn inside."""
        return {element.id: element.group for element in self.elements}

    @property
    def devices(self) -> int:
        """Number of devices."""
        return sum(element.role == "device" for element in self.elements)

    @property
    def device_ids(self) -> tuple[str, ...]:
        """Id of every device, by number."""
        return tuple(element.id for element in self.elements if element.role == "device")

    def explicit(self) -> LinkGraph:
        """Return the link graph: devices are integers, other elements their ids.

        Elements carry ``role`` and, where stated, ``radix`` and ``count``; edges carry
        ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``.
        """
        import networkx as nx  # few fabrics are drawn

        graph: LinkGraph = nx.Graph(name=self.name)
        names: dict[str, Any] = {element.id: element.id for element in self.elements}
        names |= {name: number for number, name in enumerate(self.device_ids)}
        graph.add_nodes_from(
            (
                names[element.id],
                {"role": element.role}
                | ({"radix": element.radix} if element.radix else {})
                | ({"count": element.count} if element.count > 1 else {}),
            )
            for element in self.elements
        )
        graph.add_edges_from(
            (
                names[link.a],
                names[link.b],
                {
                    "bandwidth_Bps": link.bandwidth_Bps,
                    "count": link.count,
                    "latency_s": link.latency_s,
                },
            )
            for link in self.links
        )
        return graph

    def _check_elements(self) -> None:
        require(
            self.devices != 0,
            "element",
            "must list at least one device",
            0,
            'draw or list one, its role = "device"',
        )
        require(
            self.devices <= MAX_EXPLICIT_DEVICES,
            "element",
            f"must list at most {MAX_EXPLICIT_DEVICES:,} devices",
            self.devices,
            "describe the fabric by a kind that is counted, not listed",
        )
        seen: set[str] = set()
        for index, element in enumerate(self.elements):
            require(
                element.role in ("device", "nic", "switch"),
                f"element[{index}].role",
                "must be device, nic or switch",
                element.role,
                "pick one of them",
            )
            whole(f"element[{index}].radix", element.radix, lowest=0)
            whole(f"element[{index}].count", element.count)
            require(
                element.role != "device" or element.count == 1,
                f"element[{index}].count",
                "must be 1 for a device, which has a rank",
                element.count,
                "draw every device",
            )
            require(
                element.id not in seen,
                f"element[{index}].id",
                "must be used once only",
                element.id,
                "rename it",
            )
            seen.add(element.id)

    def _check_links(self) -> None:
        require(
            len(self.links) <= MAX_LINKS,
            "link",
            f"must list at most {MAX_LINKS:,} links",
            len(self.links),
            "join parallel links with count",
        )
        ids = {element.id for element in self.elements}
        for field, name in (
            (f"link[{index}].{end}", name)
            for index, link in enumerate(self.links)
            for end, name in (("a", link.a), ("b", link.b))
            if name not in ids
        ):
            raise InputError(
                field, "must be the id of an element", name, "list the element or correct the id"
            )
        places = grouped(
            ((min(link.a, link.b), max(link.a, link.b)), index)
            for index, link in enumerate(self.links)
        )
        for index in (again[0] for _, *again in places.values() if again):
            raise InputError(
                f"link[{index}]",
                "must be the only one between its ends",
                f"{self.links[index].a} - {self.links[index].b}",
                "state parallel links once, with count",
            )
        for (name, _), (index,) in (
            (ends, at) for ends, at in places.items() if ends[0] == ends[1]
        ):
            raise InputError(
                f"link[{index}].b", "must be another element than a", name, "remove the link"
            )
        figures = (
            ((link.bandwidth_Bps, link.count, link.latency_s), index)
            for index, link in enumerate(self.links)
        )
        for (bandwidth_Bps, count, latency_s), (index, *_) in grouped(figures).items():
            positive(f"link[{index}].bandwidth_GBps", bandwidth_Bps)
            whole(f"link[{index}].count", count)
            positive(f"link[{index}].latency_us", latency_s, zero=True)

    def _check_ports(self) -> None:
        ports = summed((end, link.count) for link in self.links for end in (link.a, link.b))
        for index, element in enumerate(self.elements):
            if 0 < element.radix * element.count < ports.get(element.id, 0):
                least = -(-ports[element.id] // element.count)
                share = "" if element.count == 1 else f" over its {element.count} switches"
                raise InputError(
                    f"element[{index}].radix",
                    f"must be at least {least}, the links of {element.id}{share}",
                    element.radix,
                    "remove links or use a larger switch",
                )

    def _check_forwarding(self) -> None:
        require(
            self.routing != "tables" or (self.forwarding and all(e.table for e in self.forwarding)),
            "routing",
            "must have the forwarding table of every switch to follow",
            "tables without them",
            "read them beside the topology: `convert net.txt out.toml --tables lfts.txt`, with what"
            " dump_lfts prints",
        )
        roles = {element.id: element.role for element in self.elements}
        cables = (
            (link.a, link.b, link.count)
            for link in self.links
            if "device" not in (roles[link.a], roles[link.b])
        )
        nics = {name for name, role in roles.items() if role == "nic"}
        if self.forwarding:
            check_cables(self.forwarding, cables, nics)

    def _check_connected(self) -> None:
        pairs = (pair for link in self.links for pair in ((link.a, link.b), (link.b, link.a)))
        names = self.device_ids
        reached = hops(grouped([(names[0], names[0]), *pairs]), names[:1])
        for lost in (name for name in names if name not in reached):
            raise InputError(
                "link",
                f"must connect all devices, {lost} with {names[0]}",
                "no path",
                "add links or remove the device",
            )


@singledispatch
def as_graph(fabric: Fabric) -> GraphFabric:
    """Any fabric as named elements and links.

    Devices become ``gpu0``, ``gpu1``, ...; NICs and switches are named after their place, as
    in ``explicit()``: ``nic3.1``, ``leaf0``.

    Raises
    ------
    InputError
        Over 16,384 devices.
    """
    require(
        fabric.devices <= MAX_EXPLICIT_DEVICES,
        "fabric",
        f"must have at most {MAX_EXPLICIT_DEVICES:,} devices to be written link by link",
        fabric.devices,
        "choose TOML, or a format of groups",
    )
    graph = fabric.explicit()
    names = {n: f"gpu{n}" if isinstance(n, int) else node_name(n) for n in graph}
    if len(set(names.values())) < len(names) or max(map(len, names.values())) > 200:
        # Two tiers of one name, one that is called gpu, or one with a very long name.
        for number, (node, role) in enumerate(graph.nodes(data="role")):
            names[node] = f"{'gpu' if role == 'device' else role}{number}"
    elements = tuple(
        Element(names[node], data["role"], data.get("radix", 0), count=data.get("count", 1))
        for node, data in graph.nodes(data=True)
    )
    links = tuple(
        Link(names[a], names[b], data["bandwidth_Bps"], int(data["count"]), data["latency_s"])
        for a, b, data in graph.edges(data=True)
    )
    routing = fabric.routing if fabric.routed else "adaptive"
    return GraphFabric(fabric.name, elements, links, routing=routing, ecmp_seed=fabric.ecmp_seed)


@as_graph.register
def _(fabric: GraphFabric) -> GraphFabric:
    return fabric


def node_name(node: Any, between: str = "") -> str:
    """``("nic", 3, 1)`` is nic3.1; hierarchies put a tier's number before its name."""
    if isinstance(node, str):
        return node
    words = node[1:] if isinstance(node[0], int) else node
    return f"{words[0]}{between}{'.'.join(map(str, words[1:]))}"
