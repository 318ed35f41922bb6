"""A graph document in the making: readers add elements, hosts and links one by one."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from nest_core.documents import plural
from nest_core.fabric import MAX_EXPLICIT_DEVICES, MAX_LINKS
from nest_core.interop.formats.values import Document, Reading, Source, listed

__all__ = ["Draft", "served", "title"]

Role = Literal["device", "nic", "switch"]

MAX_ELEMENTS = 100_000
_DEVICE = re.compile(r"(gpu|device|npu|host)(?![a-z])", re.IGNORECASE)
_NIC = re.compile(r"nic(?![a-z])", re.IGNORECASE)


class Draft:
    """Elements and links of a fabric of kind ``graph``, refused as soon as they are wrong.

    Parameters
    ----------
    source : Source
        Where they come from: names the file in messages.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes: list[str] = []
        self._elements: dict[str, dict[str, Any]] = {}
        self._links: dict[tuple[str, str], dict[str, Any]] = {}
        self._devices = 0
        self._unrated = self._untimed = self._inferred = 0
        self._both_ways: set[tuple[str, str]] = set()
        self._left_out: dict[str, None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._elements

    def element(
        self, where: int | str, name: str, role: str | None, radix: int = 0, **drawn: Any
    ) -> None:
        """Add an element; without a role, what its name says.

        Parameters
        ----------
        **drawn
            ``count``, ``group``, ``x`` and ``y`` where the file has them.
        """
        self.source.require(
            1 <= len(name) <= 200,
            where,
            "must have names of 1 to 200 characters",
            name,
            "rename the element",
        )
        self.source.check_text(where, "names", name)
        self.source.require(
            name not in self._elements,
            where,
            "must list an element once",
            name,
            "remove the second one",
        )
        if role is None:
            role, self._inferred = role_of(name), self._inferred + 1
        self.source.require(
            role in ("device", "nic", "switch"),
            where,
            "must have device, nic or switch as role",
            role,
            "pick one of them",
        )
        self._devices += role == "device"
        self.source.require(
            self._devices <= MAX_EXPLICIT_DEVICES,
            where,
            f"must draw at most {MAX_EXPLICIT_DEVICES:,} devices",
            "more",
            "describe the fabric by a kind that is counted, not listed",
        )
        self.source.require(
            len(self._elements) < MAX_ELEMENTS,
            where,
            f"must list at most {MAX_ELEMENTS:,} elements",
            "more",
            "leave some out",
        )
        entry = {"id": name, "role": role} | ({"radix": radix} if radix else {})
        self._elements[name] = entry | {key: value for key, value in drawn.items() if value != ""}

    def link(
        self,
        where: int | str,
        a: str,
        b: str,
        bandwidth_GBps: float | None,
        latency_us: float | None,
        count: int = 1,
    ) -> None:
        """Add links between two elements; None: the file states none, so assume it.

        Parallel links are one entry with their count, and have to be alike.
        """
        assumed = self.source.assumed
        for end in (a, b):
            self.source.require(
                end in self._elements,
                where,
                "must join elements that are listed",
                end,
                "list it or correct its name",
            )
        self.source.require(a != b, where, "must join two different elements", a, "remove the link")
        if bandwidth_GBps is None:
            bandwidth_GBps, self._unrated = assumed.link_bandwidth_GBps, self._unrated + count
        if latency_us is None:
            latency_us, self._untimed = assumed.hop_latency_us, self._untimed + count
        key = (a, b) if a < b else (b, a)
        listed = self._links.get(key)
        if listed is None:
            self.source.require(
                len(self._links) < MAX_LINKS,
                where,
                f"must list at most {MAX_LINKS:,} links",
                "more",
                "join some",
            )
            self._links[key] = {
                "a": a,
                "b": b,
                "bandwidth_GBps": bandwidth_GBps,
                "count": count,
                "latency_us": latency_us,
            }
            return
        self.source.require(
            (listed["bandwidth_GBps"], listed["latency_us"]) == (bandwidth_GBps, latency_us),
            where,
            "must have parallel links of the same rate and latency",
            f"{a} - {b}",
            "make them alike, or put a switch between",
        )
        listed["count"] += count
        if listed["a"] != a:
            self._both_ways.add(key)

    def note(self, count: int, noun: str, words: str) -> None:
        """Say what was assumed of so many things, if there are any."""
        if count:
            self.notes.append(f"{plural(count, noun)}{words}")

    def leave_out(self, attributes: Iterable[str]) -> None:
        """Remember attributes that mean nothing here, to say so."""
        self._left_out.update(dict.fromkeys(attributes))

    def host(
        self,
        where: int | str,
        name: str,
        nics: dict[str, float],
        latency_us: float,
        uses: Sequence[str],
    ) -> None:
        """Add a host: its devices on a switch of its own, and on its NICs in blocks by rail.

        Parameters
        ----------
        nics : dict of str to float
            NIC's id to its rate in GB/s, rail by rail; may be empty.
        latency_us : float
            Of the link between a device and its NIC.
        uses : sequence of str
            The NIC of every rail, some of several rails.
        """
        assumed, group = self.source.assumed, name
        devices = [f"{name} gpu{place}" for place in range(assumed.devices_per_node)]
        for device in devices:
            self.element(where, device, "device", group=group)
        self.element(where, name, "switch", group=group)
        half, size = assumed.intra_latency_us / 2, assumed.devices_per_island
        for place, device in enumerate(devices):
            above = f"{name} island{place // size}" if size else name
            if above not in self:
                self.element(where, above, "switch", group=group)
                self.link(where, above, name, assumed.inside_GBps * size, half)
            rate = assumed.island_bandwidth_GBps if size else assumed.inside_GBps
            self.link(where, device, above, rate, half)
        for nic in nics:
            self.element(where, nic, "nic", group=group)
        for place, device in enumerate(devices):
            for nic in {uses[rail]: rail for rail in served(place, len(devices), len(uses))}:
                self.link(where, device, nic, nics[nic], latency_us)

    def document(self, name: str) -> Reading:
        """Return the document, and the notes on what was assumed."""
        self.source.require(
            self._devices != 0,
            "",
            "must have a device",
            f"{plural(len(self._elements), 'element')} without one",
            "give roles, or names that start with gpu, npu, device or host",
        )
        assumed = self.source.assumed
        if self._inferred:
            self.notes.append(
                f"Roles of {plural(self._inferred, 'element')} follow from their names: gpu, npu,"
                " device and host are devices, nic is a NIC, the rest switches."
            )
        rate, latency = assumed.link_bandwidth_GBps, assumed.hop_latency_us
        self.note(self._unrated, "link", f" without a rate: {rate:g} GB/s assumed.")
        self.note(self._untimed, "link", f" without a latency: {latency:g} us assumed.")
        self.note(
            len(self._both_ways),
            "pair",
            " of elements with links listed in both directions: each is a link of its own, and"
            " works both ways.",
        )
        if self._left_out:
            self.notes.append(
                f"Attributes left out: {listed(repr(name[:40]) for name in self._left_out)}."
            )
        spare = {
            name for name, element in self._elements.items() if element["role"] != "device"
        }.difference(*self._links)
        self.note(len(spare), "element", f" without a link left out: {listed(sorted(spare))}.")
        document: Document = {
            "schema": 1,
            "name": title(name),
            "kind": "graph",
            "element": [element for name, element in self._elements.items() if name not in spare],
            "link": list(self._links.values()),
        }
        return document, tuple(self.notes)


def role_of(name: str) -> Role:
    """Return the role that an element's name suggests.

    Examples
    --------
    >>> role_of("gpu12"), role_of("NIC-3"), role_of("hostel"), role_of("leaf0")
    ('device', 'nic', 'switch', 'switch')
    """
    return "device" if _DEVICE.match(name) else "nic" if _NIC.match(name) else "switch"


def title(name: str) -> str:
    """Return a fabric's name from a file's: never empty, at most 200 characters."""
    return name.strip()[:200] or "imported"


def served(place: int, devices: int, nics: int) -> range | tuple[int, ...]:
    """Return places of the NICs that one of so many devices uses where they are spread in order.

    Examples
    --------
    >>> [tuple(served(place, 4, 2)) for place in range(4)], tuple(served(1, 2, 4))
    ([(0,), (0,), (1,), (1,)], (2, 3))
    """
    if nics <= devices:
        return (place * nics // devices,) if nics else ()
    return range(-(-place * nics // devices), -(-(place + 1) * nics // devices))
