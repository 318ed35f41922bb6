"""What readers and writers of fabric files share: assumptions, results, sources of text.

A reader turns a `Source` into a document of the studio's own schema and notes; a writer turns a
fabric into `FabricText`. Figures in documents are human units (GB/s, us), as in the files.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nest_core.documents import InputError, figure_of, plural, require
from nest_core.fabric import MAX_DEVICES, Fabric, GraphFabric

__all__ = [
    "Assumed",
    "Document",
    "FabricText",
    "ImportedFabric",
    "Reading",
    "Source",
    "check_plain_names",
    "level_table",
    "listed",
    "short_name",
    "unsaid",
    "unsaid_counts",
    "unsaid_drawn",
]

Document = dict[str, Any]
Reading = tuple[Document, tuple[str, ...]]
"""A document, and one sentence for each thing that was assumed or left out."""

_INSIDE_GBPS = 450.0
MIN_GBPS, MAX_FIGURE = 1e-9, 1e18
"""The bounds of `nest_core.documents.schema` for rates (GB/s) and, above, for latencies (us)."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What files about hosts and switches do not state.

    Parameters
    ----------
    devices_per_node : int
        Devices of one host.
    intra_bandwidth_GBps : float or None
        One device inside its host, one direction, GB/s; None: its accelerator's own rate.
    intra_latency_us : float
        Between two devices of a host, one way, microseconds.
    link_bandwidth_GBps : float
        One link where the file states no rate, one direction, GB/s.
    hop_latency_us : float
        One link and the switch behind it, microseconds.
    devices_per_island : int
        Devices of a host that faster links join, such as a bridge between two; 0: all or none.
    island_bandwidth_GBps : float
        One device within its island, one direction, GB/s.
    """

    devices_per_node: int = 8
    intra_bandwidth_GBps: float | None = None
    intra_latency_us: float = 0.5
    link_bandwidth_GBps: float = 50.0
    hop_latency_us: float = 0.6
    devices_per_island: int = 0
    island_bandwidth_GBps: float = 300.0

    def __post_init__(self) -> None:
        require(
            1 <= self.devices_per_node <= MAX_DEVICES,
            "devices_per_node",
            f"must be a whole number from 1 to {MAX_DEVICES:,}",
            self.devices_per_node,
            "correct it",
        )
        require(
            self.devices_per_island in range(self.devices_per_node + 1)
            and self.devices_per_node % (self.devices_per_island or 1) == 0,
            "devices_per_island",
            f"must divide the {self.devices_per_node:,} devices of a node",
            self.devices_per_island,
            "correct it",
        )
        for field, low, bound in (
            ("island_bandwidth_GBps", MIN_GBPS, "above 0"),
            ("intra_bandwidth_GBps", MIN_GBPS, "above 0"),
            ("link_bandwidth_GBps", MIN_GBPS, "above 0"),
            ("intra_latency_us", 0.0, "of at least 0"),
            ("hop_latency_us", 0.0, "of at least 0"),
        ):
            value = getattr(self, field)
            require(
                value is None or low <= value <= MAX_FIGURE,
                field,
                f"must be a finite number {bound}",
                value,
                "correct it",
            )

    @property
    def inside_GBps(self) -> float:
        """GB/s of a device inside its host, also where no accelerator is chosen."""
        return _INSIDE_GBPS if self.intra_bandwidth_GBps is None else self.intra_bandwidth_GBps

    def levels(self, names: Sequence[str] = ()) -> list[Document]:
        """Return the levels inside hosts: islands, where there are any, and the host."""
        per_island = self.devices_per_island or 1
        sizes = {
            "island": (per_island, self.island_bandwidth_GBps),
            "node": (self.devices_per_node // per_island, self.inside_GBps),
        }
        levels = [
            level_table(name, size, rate, self.intra_latency_us)
            for name, (size, rate) in sizes.items()
            if size > 1
        ]
        return [
            *levels[:-1],
            *(level | ({"names": [*names]} if names else {}) for level in levels[-1:]),
        ]

    @property
    def inside_words(self) -> str:
        """Return rate and latency inside a host."""
        rate = f"{self.inside_GBps:g} GB/s"
        if self.intra_bandwidth_GBps is None:
            rate = f"its accelerator's own rate ({rate} without one)"
        return f"at {rate} and {self.intra_latency_us:g} us inside it"

    def marked(self, document: Document) -> Document:
        """Return a document that says which rate inside nodes its file does not state."""
        is_stated = self.intra_bandwidth_GBps is not None or self.devices_per_node == 1
        return document if is_stated else document | {"assumed_inside_GBps": self.inside_GBps}


@dataclass(frozen=True, slots=True)
class ImportedFabric:
    """A fabric read from a file.

    Parameters
    ----------
    format : str
        Name of the format it was read as.
    document : dict
        What `nest_core.documents.schema.FabricFile` checks.
    notes : tuple of str
        One sentence each: what was assumed or left out.
    """

    format: str
    document: Document
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FabricText:
    """A fabric as text.

    Parameters
    ----------
    text : str
    lost : tuple of str
        One sentence each: what the format cannot hold.
    """

    text: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file and how to complain about it.

    Parameters
    ----------
    text : str
    name : str
        Of the file, as messages show it.
    assumed : Assumed
    nodes : tuple of str
        Hosts that have devices, where something else lists them.
    tables : bytes
        A dump of forwarding tables that came beside it.
    """

    text: str
    name: str
    assumed: Assumed
    nodes: tuple[str, ...] = ()
    tables: bytes = b""

    def wrong(self, where: int | str, rule: str, value: object, remedy: str) -> InputError:
        """Return the error about a line (its number) or another place (its name)."""
        place = f"line {where}" if isinstance(where, int) else where
        return InputError(f"{self.name}, {place}" if place else self.name, rule, value, remedy)

    def require(
        self, holds: object, where: int | str, rule: str, value: object, remedy: str
    ) -> None:
        """Raise what `wrong` returns where a rule does not hold."""
        if not holds:
            raise self.wrong(where, rule, value, remedy)

    def number(
        self,
        where: int | str,
        field: str,
        value: object,
        *,
        zero: bool = False,
        whole: bool = False,
    ) -> float:
        """Return a figure of the file.

        Finite, above 0 (or at least 0), within the schema's bounds.
        """
        kind = "a whole number" if whole else "a finite number"
        rule = f"must have {kind} {'of at least 0' if zero else 'above 0'} as {field}"
        figure = figure_of(value)
        self.require(
            not (not 0 <= figure <= MAX_FIGURE or (figure == 0 and not zero)),
            where,
            rule,
            value,
            "correct the figure",
        )
        self.require(not whole or figure == int(figure), where, rule, value, "correct the figure")
        return figure

    def check_text(self, where: int | str, what: str, text: str) -> None:
        """Refuse what could not be written again: control characters, halves of characters."""
        self.require(
            not _UNWRITABLE.search(text),
            where,
            f"must have {what} without control characters",
            text,
            "rename it",
        )

    def rate(self, where: int | str, field: str, value: object, scale: float = 1.0) -> float:
        """Return a rate in GB/s; ``scale`` converts from the file's unit."""
        rate = self.number(where, field, value) * scale
        self.require(
            MIN_GBPS <= rate <= MAX_FIGURE,
            where,
            f"must have a rate of {MIN_GBPS} to {MAX_FIGURE:g} GB/s as {field}",
            value,
            "correct the figure",
        )
        return rate


_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
# What XML 1.0 cannot hold, or holds only as a reference.
_NOT_XML = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def level_table(
    name: str, sizes: int | Sequence[int], rate_GBps: float, latency_us: float
) -> Document:
    """Return a level of a hierarchy, into which every device has an uplink of its own."""
    row = [sizes] if isinstance(sizes, int) else [*sizes]
    size: Document = {"group_sizes": row} if len({*row}) > 1 else {"group_size": row[0]}
    return (
        {"name": name}
        | size
        | {"uplink_per": "device"}
        | {"bandwidth_GBps": rate_GBps, "latency_us": latency_us}
    )


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Return the first names, and how many there are besides.

    Examples
    --------
    >>> listed("abc"), listed("abcd", 2)
    ('a, b, c', 'a, b and 2 more')
    """
    every = list(names)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def short_name(host: str) -> str:
    """Return a host's name without its domain.

    Examples
    --------
    >>> short_name("Node07.cluster.example")
    'node07'
    """
    return host.partition(".")[0].lower()


def unsaid(
    fabric: Fabric, document: Mapping[str, Any] | None, *, hosts: bool = True
) -> tuple[str, ...]:
    """Return what only the studio's own documents of counted fabrics say; ``hosts``.

    Of hosts too.
    """
    of_hosts = f"Hosts: each has {fabric.devices_per_host} devices."
    lost = {
        of_hosts: hosts and fabric.devices_per_host,
        "The remark on where the fabric's figures are from.": document and document.get("source"),
    }
    return tuple(sentence for sentence, holds in lost.items() if holds)


def check_plain_names(fabric: GraphFabric, format_name: str) -> None:
    """Refuse names with control characters, which text formats cannot hold."""
    require(
        not _NOT_XML.search(fabric.name),
        "name",
        f"must be free of control characters to be written as {format_name}",
        fabric.name,
        "rename the fabric",
    )
    for index, element in enumerate(fabric.elements):
        require(
            not _NOT_XML.search(element.id + element.group),
            f"element[{index}].id",
            f"must be free of control characters to be written as {format_name}",
            element.id,
            f"rename one of the {plural(len(fabric.elements), 'element')}",
        )


def unsaid_drawn(graph: GraphFabric) -> list[str]:
    """Return what else a list of links alone does not say, one sentence each."""
    lost = {
        f"Routing, which is {graph.routing}.": graph.routing != "adaptive",
        "Where elements are drawn, and in which groups.": any(
            entry.group or entry.x is not None or entry.y is not None for entry in graph.elements
        ),
    }
    return [sentence for sentence, holds in lost.items() if holds]


def unsaid_counts(graph: GraphFabric) -> list[str]:
    """Return what a list of links does not say of the elements, one sentence each."""
    lost = {
        "How many ports switches have.": any(element.radix for element in graph.elements),
        "How many switches or NICs are drawn as one.": any(
            element.count > 1 for element in graph.elements
        ),
    }
    return [sentence for sentence, holds in lost.items() if holds]
