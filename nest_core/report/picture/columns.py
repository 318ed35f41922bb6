"""Groups of devices as columns: nodes below, a box of switches for every level above them.

A box is all switches of a level in its column, as wide at its foot as what comes in, at its head as
what goes out, so that an oversubscribed level is a funnel and a generous one a flare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.report.picture.aggregate import BoxRow
from nest_core.report.picture.frame import Frame
from nest_core.report.picture.marks import Box, Mark, Point, Stands, band
from nest_core.report.picture.plan import PlanOnDevices
from nest_core.report.picture.racks import NodeBoxes
from nest_core.report.picture.switches import cross
from nest_core.report.picture.text import centred, first_fitting

__all__ = ["GroupColumns"]

_MIN_NODES = 26.0


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """Draw groups side by side.

    Parameters
    ----------
    frame : Frame
    row : BoxRow
        The columns.
    keys : tuple of tuple of str
        Of the boxes of every level by column, the nodes first.
    widths : float array (levels, columns)
        Pixels of the links out of every level, the nodes first.
    edges : mapping of str to (float, float)
        Top and bottom of the switches (``"tier 1"``) and links (``"links 1"``) of every level, and
        of the nodes.
    node_ends : sequence of int
        Nodes before every column, and all.
    boxes : NodeBoxes
    """

    frame: Frame
    row: BoxRow
    keys: tuple[tuple[str, ...], ...]
    widths: npt.NDArray[np.float64]
    edges: Mapping[str, tuple[float, float]]
    node_ends: Sequence[int]
    boxes: NodeBoxes

    def nodes(self, column: int) -> list[Mark]:
        """Draw the nodes of a column."""
        top, bottom = self.edges["nodes"]
        width = max(self.widths[0, column], min(self.row.box, _MIN_NODES))
        nodes = range(self.node_ends[column], self.node_ends[column + 1])
        area = (self.row.centres[column] - width / 2, top, width, bottom - top)
        return self.boxes.block(self.keys[0][column], nodes, area)

    def switches(
        self,
        level: int,
        column: int,
        texts: Sequence[str],
        stands: Stands = (),
        look: str = "switch",
    ) -> list[Mark]:
        """Draw the switches of a level in a column, with the longest text that has room."""
        key, x = self.keys[level][column], self.row.centres[column]
        top, bottom = self.edges[f"tier {level}"]
        foot, head = self.widths[level - 1, column], self.widths[level, column]
        width = max(foot, head)
        box = Box(key, look, x - width / 2, top, width, bottom - top, "", stands, head, foot)
        if look != "switch":
            return [box, *cross(box)]
        room = (foot + head) / 2 - 2 if self.frame.words and bottom - top >= 16 else 0.0
        return [box, *centred(box, first_fitting(texts, room))]

    def bar(self) -> list[Mark]:
        """Draw the switches that join all columns."""
        (key,), top = self.keys[-1], self.edges[f"tier {len(self.keys) - 1}"]
        width = float(self.widths[-1].sum())
        x = (self.frame.start + self.frame.end - width) / 2
        return [Box(key, "switch", x, top[0], width, top[1] - top[0])]

    def way(self, level: int, column: int) -> tuple[Point, Point, float]:
        """Return the upper and lower middle of the links into a level, and their width."""
        top, bottom = self.edges[f"links {level}"]
        x, width = self.row.centres[column], float(self.widths[level - 1, column])
        upper = x
        if level == len(self.keys) - 1 and len(self.keys[-1]) == 1:  # a bar joins all columns
            ends = np.cumsum(self.widths[level - 1])
            upper = (self.frame.start + self.frame.end - ends[-1] - width) / 2 + ends[column]
        return (float(upper), top), (x, bottom), width

    def links(
        self, level: int, column: int, of: str, counts: tuple[int, int], look: str = "bundle"
    ) -> list[Mark]:
        """Draw the links into a level from a column, what has failed of them at the right.

        Parameters
        ----------
        counts : (int, int)
            What there is, and what has failed.
        """
        (x, top), (below, bottom), width = self.way(level, column)
        edges = (below - width / 2, bottom, width), (x - width / 2, top, width)
        return band(of, self.ends(level, column), edges, counts, look)

    def ends(self, level: int, column: int) -> tuple[str, str]:
        """Return the keys of what links into a level join."""
        upper = self.keys[level]
        return self.keys[level - 1][column], upper[column if len(upper) > 1 else 0]

    def crossings(
        self, stages: PlanOnDevices, column_of: npt.NDArray[np.int64]
    ) -> list[tuple[int, int]]:
        """Return the columns between which the first replica sends from stage to stage."""
        columns = [int(column_of[group[0]]) for group in stages.groups]
        return [(min(pair), max(pair)) for pair in pairwise(columns) if pair[0] != pair[1]]
