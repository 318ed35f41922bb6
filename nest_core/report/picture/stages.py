"""A plan and its loads on fabrics that are no Clos: colours, numbers, title and legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nest_core.report.picture.fabric_words import plural
from nest_core.report.picture.marks import Box, Line, Mark, Point, Swatch, Words
from nest_core.report.picture.options import DrawOptions
from nest_core.report.picture.plan import PlanOnDevices, stage_look
from nest_core.report.picture.racks import Paint, plain
from nest_core.report.picture.text import text_width

__all__ = [
    "Span",
    "Stages",
    "legend_of",
    "lit",
    "load_words",
    "stage_ink",
    "stage_legend",
    "stages_of",
]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_INVERSE = 6
"""Last step of the ramp that white text is read on."""
_LEAST_BOX = 13.0


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """What devices do, by their numbers, failed ones counted.

    Parameters
    ----------
    plan : PlanOnDevices
    place : int array (numbers,)
        Among the devices present; −1 where one has failed.
    """

    plan: PlanOnDevices
    place: IntArray

    def paint(self, devices: Sequence[int]) -> str:
        """Return the look of some devices: their stage, if they share one."""
        places = self.place[list(devices)]
        return self.plan.look(places[places >= 0].tolist())

    def stage_of(self, devices: Sequence[int]) -> int | None:
        """Return the stage that some devices share: −1 if all are idle, None for several."""
        places = self.place[list(devices)]
        stages = np.unique(self.plan.stage[places[places >= 0]])
        if len(stages) > 1:
            return None
        return int(stages[0]) if len(stages) else -1

    def number(self, devices: Sequence[int], at: Point, width: float, key: str) -> list[Mark]:
        """Their stage's number on a box that has room for it."""
        stage = self.stage_of(devices)
        text = "" if stage is None else str(stage + 1)
        if stage is None or stage < 0 or width < max(_LEAST_BOX, 7.4 * len(text) + 3):
            return []
        return [
            Words(text, stage_ink(self.paint(devices)), at[0], at[1] + 4.2, 12.0, "middle", key)
        ]

    def groups(self) -> list[tuple[int, ...]]:
        """Numbers of the devices of the first replica's tensor groups, stage by stage."""
        numbers = np.flatnonzero(self.place >= 0)
        return [tuple(numbers[list(group)].tolist()) for group in self.plan.group]

    def tensor(self) -> IntArray:
        """Tensor group of every number; −1 where idle or failed."""
        return np.where(self.place >= 0, self.plan.tensor[self.place], -1)

    def outlines(self, marks: Sequence[Mark], per_node: int = 1) -> list[Mark]:
        """Outline the first replica's tensor groups: their devices, or the node that holds them.

        Parameters
        ----------
        marks : sequence of Mark
            Devices and nodes among them.
        per_node : int
            Devices of a node.
        """
        boxes = {mark.key: mark for mark in marks if isinstance(mark, Box)}
        result: list[Mark] = []
        for group in self.groups():
            cells = [boxes[f"device {at}"] for at in group if f"device {at}" in boxes]
            if len(cells) < len(group):
                node = f"node {group[0] // per_node}"
                cells = [boxes[node]] if node in boxes and per_node > 1 else []
            if cells:
                left, top = min(cell.x for cell in cells), min(cell.y for cell in cells)
                right = max(cell.x + cell.width for cell in cells)
                bottom = max(cell.y + cell.height for cell in cells)
                area = left - 1, top - 1, right - left + 2, bottom - top + 2
                inside = cells[0].inside or cells[0].key
                result += [Box("", look, *area, inside) for look in ("cased", "lit")]
        return result

    def brackets(self, spans: Sequence[Span], name: str, y: float) -> list[Mark]:
        """Draw a bracket below every run of boxes of one stage; none where one has several.

        Parameters
        ----------
        spans : sequence of Span
            Boxes from left to right.
        name : str
            What a box is called.
        y : float
        """
        runs: list[tuple[int, int, int]] = []
        for at, span in enumerate(spans):
            stage = self.stage_of(span.devices)
            if stage is None:
                return []
            if runs and runs[-1][0] == stage:
                runs[-1] = (stage, runs[-1][1], at)
            else:
                runs.append((stage, at, at))
        if len(runs) > 4 * self.plan.stages:
            return []
        marks: list[Mark] = []
        for stage, first, last in runs:
            if stage >= 0:
                marks += self._bracket(stage, name, (spans[first], spans[last]), y)
        return marks

    def _bracket(self, stage: int, name: str, ends: tuple[Span, Span], y: float) -> list[Mark]:
        left, right = ends[0].left, ends[1].right
        first, last = ends[0].numbers[0], ends[1].numbers[-1]
        key, look = f"stage {stage + 1}", f"{stage_look(stage, self.plan.stages)} bar"
        marks: list[Mark] = [Line(key, look, ((left, y), (right, y)), 2.5)]
        span = f"{plural(name, 2)} {first}-{last}" if last > first else f"{name} {first}"
        for text in (f"{key} {span}", key, f"{stage + 1}"):
            if text_width(text, 12.0) * 1.1 <= right - left:
                middle = (left + right) / 2
                return [*marks, Words(text, "label", middle, y + 13.5, 12.0, "middle", key)]
        return marks


@dataclass(frozen=True, slots=True)
class Span:
    """A box of a row as brackets need it.

    Parameters
    ----------
    left, right : float
    numbers : range
        Of what the box holds.
    devices : sequence of int
        Below it.
    """

    left: float
    right: float
    numbers: range
    devices: Sequence[int]


def stages_of(options: DrawOptions, slots: int, present: IntArray) -> tuple[Stages | None, Paint]:
    """What devices do, if a plan is asked for, and how they look.

    Parameters
    ----------
    slots : int
        Devices, failed ones counted.
    present : int array (devices,)
        Numbers of those that are there.
    """
    if options.plan is None:
        return None, plain
    place = np.full(slots, -1, np.int64)
    place[present] = np.arange(len(present))
    result = Stages(options.plan, place)
    return result, result.paint


def load_words(options: DrawOptions, words: tuple[str, str], busiest: float) -> tuple[str, str]:
    """Title and subtitle: of loads, of a plan, or of the fabric alone."""
    if options.plan is None:
        return words
    if options.loads is None:
        return options.plan.finding, options.plan.subtitle
    load = f"The busiest link is busy {100 * busiest:.3g}\u00a0% of an iteration"
    colours = options.plan.subtitle.rstrip(".")
    return load, f"{colours}. Links: the redder, the longer they are busy"


def legend_of(
    options: DrawOptions, busiest: float, others: Sequence[Swatch], marks: Sequence[Mark]
) -> list[Swatch]:
    """The legend, with stages and loads where they are plan_on_devices."""
    if options.plan is None:
        return list(others)
    hatched = any("mixed" in mark.look.split() for mark in marks)
    mixed = [Swatch("box", "mixed", "several stages")] if hatched else []
    ramp = []
    if options.loads is not None:
        ramp = [Swatch("ramp", "", f"0 to {100 * busiest:.3g}\u00a0% busy")]
    return [*stage_legend(options.plan), *mixed, *ramp, *others]


def stage_legend(plan: PlanOnDevices) -> tuple[Swatch, ...]:
    """Return the entries of the first and the last stage."""
    ends = (0, plan.stages - 1) if plan.stages > 1 else (0,)
    entries = [Swatch("box", stage_look(at, plan.stages), f"stage {at + 1}") for at in ends]
    if plan.stages > 2:
        entries.insert(1, Swatch("box", stage_look(plan.stages // 2, plan.stages), "…"))
    if plan.stages > 1:
        entries.append(Swatch("line", "lit", "replica 1, its transfers"))
    if (plan.stage < 0).any():
        entries.append(Swatch("box", "idle", "idle"))
    return tuple(entries)


def stage_ink(look: str) -> str:
    """Look of words on a stage's colour, which no theme changes.

    Examples
    --------
    >>> stage_ink("stage-0"), stage_ink("stage-11")
    ('inverse', 'onlight')
    """
    return "inverse" if int(look.rpartition("-")[2]) <= _INVERSE else "onlight"


def lit(key: str, points: tuple[Point, ...], ends: tuple[str, ...]) -> list[Mark]:
    """A transfer along links: orange, cased."""
    return [
        Line(key, "cased", points, 4.5, ends),
        Line(key, "lit", points, 2.8, ends),
    ]
