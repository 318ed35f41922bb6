"""A plan as pictures show it: whose stage every device is, what is sent, how busy links are.

Colours, numbers, brackets, title and legend are those of every kind of fabric.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Self

import numpy as np
import numpy.typing as npt

from nest_core.bill.bill import inventory
from nest_core.bill.inventory import Inventory
from nest_core.bill.prices import load_prices
from nest_core.costs import Plan
from nest_core.costs.loads import Loads
from nest_core.costs.placement import rank_mapping_of
from nest_core.documents import capital, join_words, percent
from nest_core.fabric import Fabric, IntArray
from nest_core.network import GraphLinkMap, Network, TreeLinkMap, parts
from nest_core.report.picture.frame import frame_of, framed
from nest_core.report.picture.marks import (
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Swatch,
    TierLabel,
    Words,
    first_fitting,
    plural,
)
from nest_core.report.picture.racks import Paint, plain
from nest_core.report.picture.svg import STAGE_STEPS

__all__ = [
    "BoxSpan",
    "DrawOptions",
    "PlanOnDevices",
    "framed_plan",
    "lit",
    "load_look",
    "paint_of",
    "parts_of",
    "plan_on_devices",
    "stage_ink",
    "stage_look",
    "tier_busy",
]

_LOAD_STEPS = 6
_NAMES = {"tp": "tensor", "cp": "context", "dp": "data", "pp": "pipeline"}
_INVERSE = 6
"""Last step of the ramp that white text is read on."""
_MIN_BOX = 13.0
_FAILED = -2


@dataclass(frozen=True, slots=True)
class BoxSpan:
    """A box of a row as brackets need it.

    Parameters
    ----------
    start, end : float
        Left and right edge.
    numbers : range
        Of what the box holds.
    devices : sequence of int
        Below it.
    """

    start: float
    end: float
    numbers: range
    devices: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class PlanOnDevices:
    """Who does what, device by device.

    Parameters
    ----------
    stages, replicas : int
    stage : int array (devices,)
        −1 where idle, −2 where failed.
    groups : tuple of tuple of int
        Devices of the first tensor group of the first replica, stage by stage.
    finding : str
        How far the groups of every axis reach.
    tensor : int array (devices,)
        Number of the tensor group; −1 where idle or failed.
    """

    stages: int
    replicas: int
    stage: IntArray
    groups: tuple[tuple[int, ...], ...]
    finding: str
    tensor: IntArray

    def at(self, slots: int, present: IntArray) -> Self:
        """Return the same with devices by their numbers, failed ones counted.

        Parameters
        ----------
        slots : int
            Devices, failed ones counted.
        present : int array (devices,)
            Numbers of those that are present.
        """
        stage, tensor = np.full(slots, _FAILED), np.full(slots, -1)
        stage[present], tensor[present] = self.stage, self.tensor
        groups = tuple(tuple(present[list(group)].tolist()) for group in self.groups)
        return replace(self, stage=stage, groups=groups, tensor=tensor)

    @property
    def subtitle(self) -> str:
        """What colours and orange lines mean."""
        hops = f" Orange: replica 1 of {self.replicas} and its pipeline transfers."
        return f"Colour: pipeline stage, {self.stages} in all.{hops if self.stages > 1 else ''}"

    def stage_of(self, devices: Sequence[int]) -> int | None:
        """Return the stage that some devices share: −1 if all are idle, None for several."""
        stages = np.unique(self.stage[list(devices)])
        stages = stages[stages > _FAILED]
        return None if len(stages) > 1 else int(stages[0]) if len(stages) else -1

    def paint(self, devices: Sequence[int]) -> str:
        """Return the look of some devices: their stage, ``idle``, or ``mixed``."""
        stage = self.stage_of(devices)
        return "mixed" if stage is None else "idle" if stage < 0 else stage_look(stage, self.stages)

    def number(self, devices: Sequence[int], at: Point, width: float, key: str) -> list[Mark]:
        """Draw the number of their stage on a box that has room for it."""
        stage = self.stage_of(devices)
        text = "" if stage is None else str(stage + 1)
        if stage is None or stage < 0 or width < max(_MIN_BOX, 7.4 * len(text) + 3):
            return []
        return [
            Words(text, stage_ink(self.paint(devices)), at[0], at[1] + 4.2, 12.0, "middle", key)
        ]

    def outlines(self, marks: Sequence[Mark], per_node: int = 1) -> Iterator[Mark]:
        """Outline the first replica's tensor groups: their devices, or the node that holds them.

        Parameters
        ----------
        marks : sequence of Mark
            Devices and nodes among them.
        per_node : int
            Devices of a node.
        """
        boxes = {mark.key: mark for mark in marks if isinstance(mark, Box)}
        for group in self.groups:
            cells = [boxes[f"device {at}"] for at in group if f"device {at}" in boxes]
            if len(cells) < len(group):
                node = f"node {group[0] // per_node}"
                cells = [boxes[node]] if node in boxes and per_node > 1 else []
            if cells:
                x, y = min(cell.x for cell in cells) - 1, min(cell.y for cell in cells) - 1
                width = max(cell.x + cell.width for cell in cells) + 1 - x
                height = max(cell.y + cell.height for cell in cells) + 1 - y
                inside = cells[0].inside or cells[0].key
                yield from (Box("", look, x, y, width, height, inside) for look in ("cased", "lit"))

    def brackets(self, spans: Sequence[BoxSpan], name: str, y: float) -> list[Mark]:
        """Draw a bracket below every run of boxes of one stage; none where one has several.

        Parameters
        ----------
        spans : sequence of BoxSpan
            Boxes from left to right.
        name : str
            What a box is called.
        y : float
        """
        runs = [
            (stage, list(run)) for stage, run in groupby(spans, lambda s: self.stage_of(s.devices))
        ]
        if len(runs) > 4 * self.stages:
            return []
        marks: list[Mark] = []
        for stage, run in runs:
            if stage is None:
                return []
            if stage >= 0:
                marks += self._bracket(stage, name, (run[0], run[-1]), y)
        return marks

    def _bracket(
        self, stage: int, name: str, ends: tuple[BoxSpan, BoxSpan], y: float
    ) -> list[Mark]:
        start, end = ends[0].start, ends[1].end
        first, last = ends[0].numbers[0], ends[1].numbers[-1]
        key, look = f"stage {stage + 1}", f"{stage_look(stage, self.stages)} bar"
        span = f"{plural(name, 2)} {first}-{last}" if last > first else f"{name} {first}"
        text = first_fitting((f"{key} {span}", key, f"{stage + 1}"), end - start)
        place = (start + end) / 2, y + 13.5
        return [
            Line(key, look, ((start, y), (end, y)), 2.5),
            *([Words(text, "label", *place, 12.0, "middle", key)] if text else []),
        ]


def plan_on_devices(network: Network, plan: Plan) -> PlanOnDevices:
    """Return what a plan does on the devices of a network."""
    parts = rank_mapping_of(network, plan)
    first = (parts.dp == 0) & (parts.cp == 0)
    groups = []
    for stage in range(plan.point.pp):
        members = np.flatnonzero(first & (parts.pp == stage))
        groups.append(tuple(members[np.argsort(parts.tp[members], kind="stable")].tolist()))
    axes = {"tp": parts.tp, "cp": parts.cp, "dp": parts.dp, "pp": parts.pp}
    tensor = np.unique(np.stack([parts.pp, parts.dp, parts.cp]), axis=1, return_inverse=True)[
        1
    ].reshape(-1)
    tensor = np.where(parts.pp < 0, -1, tensor)
    finding = _finding(network, axes)
    return PlanOnDevices(plan.point.pp, plan.point.dp, parts.pp, tuple(groups), finding, tensor)


def _finding(network: Network, axes: Mapping[str, IntArray]) -> str:
    """Say at which level the groups of every axis meet, innermost first."""
    works = np.flatnonzero(axes["pp"] >= 0)
    reached: dict[int, list[str]] = {}
    for name, values in axes.items():
        if values[works].max(initial=0) == 0:
            continue
        others = np.stack([axes[other][works] for other in axes if other != name])
        key = np.unique(others, axis=1, return_inverse=True)[1].reshape(-1)
        start = np.zeros(int(key.max()) + 1, np.int64)
        start[key[::-1]] = works[::-1]
        level = int(network.level(start[key], works).max())
        reached.setdefault(level, []).append(_NAMES[name])
    if not reached:
        return "One device holds the whole model"
    top = len(network.levels) - 1
    parts = []
    for level in sorted(reached):
        name = network.levels[level].name
        how = "crosses" if level == top else "turns at" if level else "stays in"
        where = f"traffic {how} the" if network.torus is None else "groups span"
        parts.append(f"{join_words(reached[level])} {where} {name}")
    return capital("; ".join(parts))


_prices = lru_cache(maxsize=1)(load_prices)
"""The list that says how racks stand; a picture shows nothing else of it."""


def parts_of(fabric: Fabric) -> Inventory:
    """Return the inventory of a fabric."""
    return inventory(fabric, _prices())


@dataclass(frozen=True, slots=True, eq=False)
class DrawOptions:
    """What a picture is asked to show, beside the fabric.

    Parameters
    ----------
    width : float
        Pixels.
    parts : Inventory
        Of the fabric, where all counts that are said come from.
    plan : PlanOnDevices or None
        What devices do.
    loads : Loads or None
        What links carry.
    """

    width: float
    parts: Inventory
    plan: PlanOnDevices | None = None
    loads: Loads | None = None


def paint_of(
    options: DrawOptions, slots: int, present: IntArray
) -> tuple[PlanOnDevices | None, Paint]:
    """Return what devices do by their numbers, if a plan is shown, and how they look.

    Parameters
    ----------
    slots, present
        As of `PlanOnDevices.at`.
    """
    if options.plan is None:
        return None, plain
    plan = options.plan.at(slots, present)
    return plan, plan.paint


def framed_plan(
    options: DrawOptions,
    words: tuple[str, str],
    marks: Sequence[Mark],
    labels: Sequence[TierLabel],
    swatches: Sequence[Swatch],
    busiest: float,
) -> Drawn:
    """Return the picture of a fabric in its frame, with what its plan and its loads say.

    Parameters
    ----------
    options : DrawOptions
    words : (str, str)
        Title and subtitle of the fabric alone.
    marks, labels, swatches : sequences
        The drawing, the words beside it, and its own entries of the legend.
    busiest : float
        Busy share of the fullest link.
    """
    heads = _load_words(options, words, busiest)
    legend = _legend_of(options, busiest, swatches, marks)
    return framed(frame_of(options.width), heads, marks, labels, legend)


def _load_words(options: DrawOptions, words: tuple[str, str], busiest: float) -> tuple[str, str]:
    """Return title and subtitle: of loads, of a plan, or of the fabric alone."""
    plan, loads = options.plan, options.loads
    if plan is None:
        return words
    if loads is None:
        return plan.finding, plan.subtitle
    outer = [tier for tier in loads.tiers if tier.level]
    every = [tier.busiest for tier in outer or loads.tiers]
    worst = max(every, key=lambda link: link.utilisation, default=None)
    # Where no link that is drawn has a load of its own, that of the network stands.
    title = (
        f"The busiest link is busy {percent(busiest or (worst.utilisation if worst else 0.0))} "
        "of an iteration"
    )
    if loads.network.torus is None and 1 < len(outer) < 4:
        names = (
            f"{loads.network.levels[tier.level].name} {percent(tier.busiest.utilisation)}"
            for tier in outer
        )
        title += f": {', '.join(names)}"
    sentences = [plan.subtitle.rstrip("."), "Links: the redder, the longer they are busy"]
    if worst and worst.utilisation:
        sentences.append(f"Busiest: {worst.in_words}")
    return title.replace(" %", "\u00a0%"), ". ".join(sentences)


def _legend_of(
    options: DrawOptions, busiest: float, others: Sequence[Swatch], marks: Sequence[Mark]
) -> list[Swatch]:
    """Return the legend, with stages and loads where they are drawn."""
    plan = options.plan
    if plan is None:
        return list(others)
    count, is_mixed = plan.stages, any("mixed" in mark.look.split() for mark in marks)
    entries = [
        (True, Swatch("box", stage_look(0, count), "stage 1")),
        (count > 2, Swatch("box", stage_look(count // 2, count), "…")),
        (count > 1, Swatch("box", stage_look(count - 1, count), f"stage {count}")),
        (count > 1, Swatch("line", "lit", "replica 1, its transfers")),
        ((plan.stage < 0).any(), Swatch("box", "idle", "idle")),
        (is_mixed, Swatch("box", "mixed", "several stages")),
        (options.loads is not None, Swatch("ramp", "", f"0 to {percent(busiest)} busy")),
    ]
    return [*(swatch for is_drawn, swatch in entries if is_drawn), *others]


def stage_look(stage: int, stages: int) -> str:
    """Return the step of the ramp that a stage is on.

    Examples
    --------
    >>> stage_look(0, 4), stage_look(3, 4), stage_look(0, 1)
    ('stage-0', 'stage-11', 'stage-4')
    """
    last = STAGE_STEPS - 1
    return f"stage-{round(stage / (stages - 1) * last) if stages > 1 else round(0.4 * last)}"


def stage_ink(look: str) -> str:
    """Return the look of words on a stage's colour, which no theme changes.

    Examples
    --------
    >>> stage_ink("stage-0"), stage_ink("stage-11")
    ('inverse', 'onlight')
    """
    return "inverse" if int(look.rpartition("-")[2]) <= _INVERSE else "onlight"


def lit(key: str, points: tuple[Point, ...], ends: tuple[str, ...]) -> list[Mark]:
    """Draw a transfer along links: orange, cased."""
    return [Line(key, "cased", points, 4.5, ends), Line(key, "lit", points, 2.8, ends)]


def load_look(share: float, busiest: float) -> str:
    """Return the step of the load ramp of a busy share, the busiest link being the last one."""
    return (
        "load-0"
        if busiest <= 0 or share <= 0
        else f"load-{min(_LOAD_STEPS - 1, 1 + int((_LOAD_STEPS - 1) * share / busiest * 0.999))}"
    )


def tier_busy(loads: Loads, level: int) -> npt.NDArray[np.float64]:
    """Return the busy share of links by which devices climb to a level, shape (devices,).

    Of both directions and all parallel links the busiest; of a link graph those that leave what
    hangs together below that level; none of another network.
    """
    link_map = loads.network.link_map
    if isinstance(link_map, GraphLinkMap):
        links, below = link_map.links, link_map.arc_level < level
        part = parts(links.tail[below], links.head[below], len(links.elements))
        busy, here = np.zeros(part.max() + 1), link_map.tier == level
        for ends in (links.tail, links.head):
            np.maximum.at(busy, part[ends[link_map.arc[here]]], loads.busy[here])
        return busy[part[: links.devices]]
    if not isinstance(link_map, TreeLinkMap) or level >= len(link_map.tiers):
        return np.zeros(loads.network.devices)
    tier = link_map.tiers[level]
    busy = loads.busy[link_map.tier == level].reshape(len(tier.capacity_Bps), -1)
    return np.asarray(busy.max(axis=1)[tier.child])
