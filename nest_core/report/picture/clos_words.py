"""What pictures of Clos fabrics say: findings as titles, the gutter, and the legend.

Counts are the inventory's. What a device keeps is the least share of the links of any group that
it climbs through, over the devices below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.documents.units import format_ratio
from nest_core.fabric import Clos, IntArray
from nest_core.report.picture.aggregate import tile_words
from nest_core.report.picture.clos_layout import ClosLayout, Structure
from nest_core.report.picture.marks import Swatch, TierLabel, count_words, rate_words, span_words
from nest_core.report.picture.racks import MIN_DOMAIN
from nest_core.report.picture.switches import Placed

__all__ = ["ClosWords", "Counts", "title"]

Counts = Mapping[str, tuple[int, int]]
"""By class of the bill: how many there are, and how many have failed."""

_INSIDE = {
    "switch": "switch in the node",
    "mesh": "full mesh in the node",
    "ring": "ring in the node",
    "hybrid_cube_mesh": "hybrid cube mesh",
}
_PLANES = {
    2: ("two", "halves"),
    3: ("three", "takes a third of"),
    4: ("four", "takes a quarter of"),
}


def _rates(structure: Structure) -> tuple[float, float]:
    """Bytes/s of a device's NICs, and what is left of it at the worst between any two devices."""
    fabric = structure.fabric
    full = fabric.nics_per_node * fabric.nic_bandwidth_Bps / fabric.devices_per_node
    rates = np.full(fabric.devices, full)
    for height in range(1, fabric.tiers):
        group, links = fabric.group_of(height), fabric.uplinks(height)
        members = np.bincount(group, minlength=len(links))
        if np.count_nonzero(members) > 1:
            rates = np.minimum(
                rates, (links * fabric.link_rates_Bps[height] / np.maximum(members, 1))[group]
            )
    # Whose leaf is gone has no way up, however many links its pod has.
    return full, float(rates[rates > 0].min(initial=full))


def title(structure: Structure) -> str:
    """Return the finding."""
    fabric = structure.fabric
    full, worst = _rates(structure)
    rate = rate_words(full)
    part = f"{worst / full * float(rate.split()[0]):.3g}"  # in the unit of the full rate
    is_full = worst >= full * 0.999
    if gone := sorted(fabric.missing):
        faults = f"{len(gone)} elements" if len(gone) > 2 else ", ".join(gone)
        less = rate if is_full else f"{part} of their {rate}"
        return f"With {faults} down, devices keep {less} at the worst"
    if fabric.kind == "rail_only":
        inside = (
            "the links between a node's devices"
            if fabric.interconnect != "switch"
            else "NVLink in a node"
            if fabric.devices_per_node > 1
            else "nothing"
        )
        return f"Rails never meet above the node: between rails, traffic goes through {inside}"
    if fabric.planes > 1:
        planes = fabric.planes
        number, takes = _PLANES.get(planes, (str(planes), f"takes 1/{planes} of"))
        return (
            f"Each NIC has a port in {number} planes that share no switch: "
            f"a leaf down {takes} it, cuts nobody off"
        )
    if fabric.kind == "rail_optimised":
        unit = min(fabric.sizing.nodes_per_unit * fabric.devices_per_node, fabric.slots)
        rails = (
            "rail i" if fabric.rails == fabric.devices_per_node else f"rail i mod {fabric.rails}"
        )
        return f"Device i of every node is on {rails}: one leaf hop within a unit of {unit:,}"
    if fabric.tiers == 1:
        return f"One switch joins all: a device keeps its {rate}"
    low, *high = fabric.ratios
    if is_full:
        far = "between any two pods" if high else "up to the spine"
        return f"1:1{' on three tiers' if high else ''}: a device keeps its {rate} {far}"
    keeps = f"a device keeps {part} of its {rate}"
    if high and low > 1.001 and high[0] > 1.001:
        above = f"above the {fabric.tier_names[0]}, {format_ratio(high[0])} above the pod"
        return f"{format_ratio(low)} {above}: {keeps}"
    if high and high[0] > low:
        return f"{format_ratio(high[0])} above the pod: {keeps} from pod to pod"
    where = fabric.tier_names[0] + (" switch" if fabric.kind == "fat_tree" else "")
    return f"{format_ratio(low)}: above the {where} {keeps}"


def links_words(links: IntArray) -> str:
    """Return how many links pairs have: ``"2"`` or, dealt in turn, ``"1 or 2"``."""
    return " or ".join(map(str, np.unique(links)))


@dataclass(frozen=True)
class ClosWords:
    """The words beside a drawing.

    Parameters
    ----------
    layout : ClosLayout
    counts : Counts
    form : {"links", "pairs", "mesh"}
        What a line between leaves and spines is.
    nodes : str
        How many nodes a box is.
    """

    layout: ClosLayout
    counts: Counts
    form: str
    nodes: str

    @property
    def structure(self) -> Structure:
        """What there is."""
        return self.layout.structure

    @property
    def fabric(self) -> Clos:
        """What is drawn."""
        return self.layout.fabric

    @property
    def line(self) -> str:
        """What one line between spines and leaves is; empty where none is drawn."""
        pod = self.structure.pods[0]
        if self.form == "mesh":
            return ""
        number = "1" if self.form == "links" else links_words(pod.links)
        rate = rate_words(self.fabric.link_rates_Bps[1])
        return f"{number} link{'' if number == '1' else 's'} of {rate}"

    @property
    def subtitle(self) -> str:
        """What it is, and what one line and one width mean."""
        means = f"One line is {self.line}; width is capacity" if self.line else "Width is capacity"
        return f"{self.fabric.devices:,} devices, {self.fabric.arrangement()}. {means}"

    def _row(self, what: str, *words: str, head: str = "", ratio: float | None = None) -> TierLabel:
        """Return the words of a tier, or of a class of links after their number."""
        (count, gone), edges = self.counts[what], self.layout.edges[what]
        if what.startswith("links "):
            words = (f"{count_words(count, gone, 'link')}{words[0]}",)
        else:
            head = head or count_words(count, gone, what)
        return TierLabel(what, count, head, tuple(filter(None, words)), *edges, gone, ratio)

    def rows(self) -> list[TierLabel]:
        """Return the words of every row, the top one first."""
        common = [self.layout.edges["common"]] if self.fabric.kind == "rail_only" else []
        return [
            *(TierLabel("common", 0, "No common spine", (), *edges) for edges in common),
            *(self._top() if self.fabric.tiers == 3 else []),
            *(self._spines() if self.fabric.tiers > 1 else []),
            *self._leaves(),
            self._nodes(),
        ]

    def _top(self) -> list[TierLabel]:
        structure, name, pods = self.structure, self.fabric.tier_names[2], self.structure.pods
        links = structure.core_links()
        ports = (
            f"{int(links.sum(axis=0).max()) * self.fabric.link_ports[2]:,} of "
            f"{self.fabric.radix:,} ports each"
        )
        is_even = links.min() == links.max()
        words_up = f": each pod to each switch, x {links.max()}" if is_even else ", dealt in turn"
        tiles = _tiles(self.layout.cores[0].upper)
        rows = [
            self._row(name, tiles, ports),
            self._row(f"links {name}", words_up, ratio=self._ratio(2)),
        ]
        if not structure.has_rail_panels and len(pods) > 1:
            alike = len({sum(leaf.down for leaf in pod.leaves) for pod in pods}) == 1
            together = len(self.layout.panels[0].pod.numbers)
            tiles = f"drawn {together} at a time" if together > 1 else ""
            words = tuple(filter(None, (tiles, "all alike" if alike else "of unequal size")))
            head = count_words(len(pods), 0, "pod")
            rows.append(TierLabel("pod", len(pods), head, words, *self.layout.edges[""]))
        return rows

    def _spines(self) -> list[TierLabel]:
        fabric, pod = self.fabric, self.structure.panel_pods[0]
        low, name = fabric.tier_names[:2]
        spine, spines = pod.spines[0], len(pod.spines)
        inside = "rail" if self.structure.has_rail_panels else "pod" if fabric.tiers == 3 else ""
        ports = f"{spine.down:,} of {fabric.radix:,} ports each"
        words = f": every {low} to every {name}, x {links_words(pod.links)}"
        if inside:
            both = f"{spine.down}\u00a0down, {spine.up}\u00a0up"
            ports = f"{spines:,} in a {inside}, {both if spine.up else ports}"
            words = f", within each {inside}"
        elif spines == 1:
            words = f", {fabric.sizing.up} from each {low}"
        return [
            self._row(name, _tiles(self.layout.spines[0]), ports),
            self._row(f"links {name}", words, ratio=self._ratio(1)),
        ]

    def _leaves(self) -> list[TierLabel]:
        fabric, leaves = self.fabric, self.structure.pods[0].leaves
        name, units, up = fabric.tier_names[0], fabric.sizing.units, leaves[0].up
        down = span_words([leaf.down for pod in self.structure.pods for leaf in pod.leaves])
        ports = f"{down} down, {up} up each" if up else f"{down} ports down"
        if fabric.rails > 1:
            ports = f"{fabric.rails} rails x {count_words(units, 0, 'unit')}; {ports}"
        elif fabric.tiers == 3:
            ports = f"{len(leaves)} in a pod, {ports}"
        words = f", {down} to a {name}" if units * fabric.rails > 1 and not fabric.missing else ""
        return [
            self._row(name, _tiles(self.layout.leaves[0]), ports),
            self._row(f"links {name}", words),
        ]

    def _nodes(self) -> TierLabel:
        structure, fabric, head = self.structure, self.fabric, ""
        devices, units = fabric.devices_per_node, fabric.sizing.units
        many = span_words([len(structure.nodes_of(unit * fabric.rails)) for unit in range(units)])
        host, is_whole = fabric.devices_per_host, not fabric.missing
        words = f"{many} under a {fabric.tier_names[0]}" if units > 1 and is_whole else ""
        if fabric.rails > 1:
            words = (
                f"{many} in a unit; a column is its rail" if is_whole else "a column is its rail"
            )
        elif structure.unit_name == "rack":
            head, words = count_words(units, 0, "rack"), f"of {many} nodes" if is_whole else ""
        if devices >= MIN_DOMAIN:
            head = count_words(*self.counts["node"], "rack")
            words = f"{devices // host} hosts of {host} devices" if host else ""
        words = "; ".join(filter(None, (words, self.nodes)))
        parts = ", ".join(
            count_words(count, 0, name)
            for count, name in ((devices, "device"), (fabric.nics_per_node, "NIC"))
        )
        rate = f"{rate_words(fabric.intra_bandwidth_Bps)} per device"
        inside = f"{_INSIDE[fabric.interconnect]}, {rate}" if devices > 1 else ""
        return self._row("node", words, f"{parts} each", inside, head=head)

    def _ratio(self, height: int) -> float | None:
        """Oversubscription above a height of what is left: links below over links above.

        None where nothing is left of either.
        """
        names = self.fabric.tier_names
        below, gone = self.counts[f"links {names[height - 1]}"]
        here, lost = self.counts[f"links {names[height]}"]
        return (
            self.fabric.ratios[height - 1] * (below / (below + gone)) * ((here + lost) / here)
            if here and below
            else None
        )

    def legend(self) -> list[Swatch]:
        """Return the entries of the legend."""
        fabric, leaves = self.fabric, self.structure.pods[0].leaves
        is_coloured = bool(leaves[0].look)
        is_funnel = any(leaf.up and leaf.up != leaf.down for leaf in leaves)
        funnel = Swatch("funnel", "switch", "switch: foot is down, head is up capacity")
        entries = [
            (bool(fabric.missing), Swatch("line", "link gone", "gone")),
            (bool(self.line), Swatch("line", "link", self.line)),
            (is_coloured, Swatch("box", "rail-0", "leaf and devices of rail 0")),
            (not is_coloured, Swatch("box", "device", "device")),
            (is_funnel, funnel),
            (not is_funnel, Swatch("box", "switch", "switch; its width is its links")),
            (
                fabric.devices_per_node >= MIN_DOMAIN,
                Swatch("box", "frame domain", "scale-up domain"),
            ),
            (not self.line, Swatch("box", "mesh", "full mesh")),
        ]
        return [swatch for is_drawn, swatch in entries if is_drawn]


def _tiles(boxes: Sequence[Placed]) -> str:
    return tile_words([len(box.members) for box in boxes])
