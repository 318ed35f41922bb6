"""What the gutter and the legend of a Clos fabric say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nest_core.report.picture.clos_plan import Busy
from nest_core.report.picture.clos_structure import Structure
from nest_core.report.picture.clos_words import (
    Counts,
    said_links,
    said_nodes,
    said_tier,
)
from nest_core.report.picture.fabric_words import count_words, said_rate
from nest_core.report.picture.marks import Said, Swatch
from nest_core.report.picture.plan import Shown
from nest_core.report.picture.racks import MIN_DOMAIN
from nest_core.report.picture.stages import stage_legend
from nest_core.report.picture.switches import Switch

__all__ = ["Saying", "fault_words"]


def fault_words(structure: Structure, switch: Switch) -> str:
    """Say what is wrong with a switch; empty if nothing."""
    key = f"{switch.name} {switch.number}"
    if switch.gone:
        return f"{key} down"
    if switch.rate < 1:
        rate = structure.fabric.link_bandwidth_Bps * switch.rate / 1e9
        share = "half rate" if switch.rate == 0.5 else f"{switch.rate:.2g} of its rate"
        return f"{key} at {share}: {rate:.3g} GB/s a link"
    return ""


@dataclass(frozen=True)
class Saying:
    """The words beside a drawing.

    Parameters
    ----------
    structure : Structure
    counts : Counts
    edges : mapping of str to (float, float)
        Top and bottom of every row.
    tiles : mapping of str to str
        What is drawn in tiles, by tier.
    busy : Busy or None
    """

    structure: Structure
    counts: Counts
    edges: Mapping[str, tuple[float, float]]
    tiles: Mapping[str, str]
    busy: Busy | None

    def line(self, form: str) -> str:
        """Say what one line between spines and leaves is; empty where none is drawn."""
        pod = self.structure.pods()[0]
        count = 1 if form == "links" else pod.leaves[0].up // max(1, len(pod.spines))
        rate = said_rate(self.structure.fabric.link_bandwidth_Bps)
        return "" if form == "mesh" else f"{count} link{'s' if count > 1 else ''} of {rate}"

    def rows(self) -> list[Said]:
        """Return the words of every row, the top one first."""
        fabric, result = self.structure.fabric, list[Said]()
        if fabric.kind == "rail_only":
            result.append(Said("common", 0, "No common spine", (), *self.edges["common"]))
        if fabric.tiers == 3:
            result += self._top()
        if fabric.tiers > 1:
            result += self._spines()
        result += self._leaves()
        if self.busy:
            result = [self._with_load(row, self.busy) for row in result]
        return [*result, self._nodes()]

    def _top(self) -> list[Said]:
        structure, name = self.structure, self.structure.fabric.tier_names[2]
        pods, links = structure.pods(), structure.core_links()
        ports = int(links.sum(axis=0).max())
        words = f"{ports:,} of {structure.fabric.radix:,} ports each"
        even = int(links.min()) == int(links.max())
        each = f": each pod to each switch, x {int(links.max())}" if even else ", dealt in turn"
        tier = said_tier(name, self.counts, self._words(name, words), self.edges[name])
        edges = self.edges[f"links {name}"]
        result = [tier, said_links(name, self.counts, each, edges, self._ratio(2))]
        if not structure.has_rail_panels and len(pods) > 1:
            sizes = {sum(leaf.down for leaf in pod.leaves) for pod in pods}
            holds = "all alike" if len(sizes) == 1 else "of unequal size"
            head = count_words(len(pods), 0, "pod")
            result.append(Said("pod", len(pods), head, self._words("pod", holds), *self.edges[""]))
        return result

    def _spines(self) -> list[Said]:
        structure, fabric = self.structure, self.structure.fabric
        low, name = fabric.tier_names[:2]
        pod = (structure.rail_pods() if structure.has_rail_panels else structure.pods())[0]
        spine, leaf = pod.spines[0], pod.leaves[0]
        ports = f"{spine.down:,} of {fabric.radix:,} ports each"
        words = f": every {low} to every {name}, x {leaf.up // len(pod.spines)}"
        if len(pod.spines) == 1:
            words = f", {leaf.up} from each {low}"
        if structure.has_rail_panels:
            ports, words = f"{len(pod.spines):,} for each rail", ", within each rail"
        elif fabric.tiers == 3:
            ports = f"{len(pod.spines)} in a pod, {spine.down}\u00a0down, {spine.up}\u00a0up"
            words = ", within each pod"
        tier = said_tier(name, self.counts, self._words(name, ports), self.edges[name])
        edges = self.edges[f"links {name}"]
        return [tier, said_links(name, self.counts, words, edges, self._ratio(1))]

    def _leaves(self) -> list[Said]:
        structure, fabric = self.structure, self.structure.fabric
        name, pods = fabric.tier_names[0], structure.pods()
        leaf, units = pods[0].leaves[0], len(structure.units)
        ports = f"{leaf.down} down, {leaf.up} up each" if leaf.up else f"{leaf.down} ports down"
        where = f"{len(pods[0].leaves)} in a pod, " if fabric.tiers == 3 else ""
        if fabric.rails > 1:
            where = f"{fabric.rails} rails x {units} unit{'s' if units > 1 else ''}; "
        tier = said_tier(name, self.counts, self._words(name, where + ports), self.edges[name])
        words = f", {leaf.down} to a {name}" if sum(len(pod.leaves) for pod in pods) > 1 else ""
        return [tier, said_links(name, self.counts, words, self.edges[f"links {name}"])]

    def _nodes(self) -> Said:
        structure, fabric = self.structure, self.structure.fabric
        under, units = structure.units[0], len(structure.units)
        many, name, head = len(under.nodes), fabric.tier_names[0], ""
        words = f"{many} under a {name}" if units > 1 else ""
        if fabric.rails > 1:
            words = f"{many} in a unit; a column is its rail"
        elif under.name == "rack":
            head, words = count_words(units, 0, "rack"), f"of {many} nodes"
        if fabric.devices_per_node >= MIN_DOMAIN:
            head, host = count_words(*self.counts["node"], "rack"), fabric.devices_per_host
            hosts = f"{fabric.devices_per_node // host} hosts of {host} devices" if host else ""
            words = hosts
        said = "; ".join(text for text in (words, self.tiles["node"]) if text)
        return said_nodes(structure, self.counts, self.edges["node"], head, said)

    def _words(self, tier: str, words: str) -> tuple[str, ...]:
        return tuple(text for text in (self.tiles.get(tier, ""), words) if text)

    def _ratio(self, height: int) -> float:
        """Oversubscription above a height of what is left: links below over links above."""
        fabric = self.structure.fabric
        lower, upper = fabric.tier_names[height - 1], fabric.tier_names[height]
        below, gone = self.counts[f"links {lower}"]
        here, lost = self.counts[f"links {upper}"]
        stated = fabric.switch_tiers[height].oversubscription
        return stated * (below / (below + gone)) * ((here + lost) / here)

    @staticmethod
    def _with_load(row: Said, busy: Busy) -> Said:
        """Return the same words, and how long the links are busy."""
        if row.what not in busy.words:
            return row
        number = row.words[0].partition(" link")[0]
        return replace(row, words=(f"{number} links, {busy.words[row.what]}",))

    def legend(self, plan: Shown | None, line: str) -> tuple[Swatch, ...]:
        """Return the entries of the legend; ``line`` is what one line is."""
        structure, fabric = self.structure, self.structure.fabric
        if plan is not None:
            ramp = (Swatch("ramp", "", "links, idle to busiest"),) if self.busy else ()
            return (*stage_legend(plan), *ramp)
        entries = [Swatch("line", "link gone", "gone")] if structure.gone else []
        if structure.slow:
            entries.append(Swatch("line", "link slow", "slow"))
        if line:
            entries.append(Swatch("line", "link", line))
        if 1 < fabric.rails <= 8:
            entries.append(Swatch("box", "rail-0", "leaf and devices of rail 0"))
        else:
            entries.append(Swatch("box", "device", "device"))
        if any(leaf.up and leaf.up != leaf.down for leaf in structure.pods()[0].leaves):
            entries.append(Swatch("funnel", "switch", "switch: foot is down, head is up capacity"))
        else:
            entries.append(Swatch("box", "switch", "switch; its width is its links"))
        if fabric.devices_per_node >= MIN_DOMAIN:
            entries.append(Swatch("box", "frame domain", "scale-up domain"))
        return (*entries, *([] if line else [Swatch("box", "mesh", "full mesh")]))
