"""The frame around a drawn fabric: title, gutter with every word, legend, at any width.

Three steps of width: to 299 pixels the silhouette alone (rows of a comparison), to 639 the gutter
keeps heads and ratios, from 640 on it says everything. Nothing is scaled: text has 12 pixels at
every width, and the drawing is laid out anew in what the frame leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nest_core.documents.units import format_ratio
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Said, Swatch, Words
from nest_core.report.picture.text import text_width, wrapped

__all__ = ["OVER", "TEXT", "Frame", "badge", "frame_of", "framed", "untitled"]

TEXT = 12.0
"""Size of all words but the title."""
OVER = 1.1
"""Above so many ports down to one up a ratio is marked; below, whole ports explain it."""

_TITLE = 15.5
_HEAD = 13.0
_LEADING = 14.5
_GUTTER = 16.0
_HEIGHTS = {"full": 460.0, "heads": 340.0, "silhouette": 132.0}


@dataclass(frozen=True, slots=True)
class Frame:
    """What is left to the drawing.

    Parameters
    ----------
    width, height : float
        Of the picture.
    said : {"full", "heads", "silhouette"}
    left, right, top, bottom : float
        Edges of the drawing.
    """

    width: float
    height: float
    said: Literal["full", "heads", "silhouette"]
    left: float
    right: float
    top: float
    bottom: float

    @property
    def across(self) -> float:
        """Width of the drawing."""
        return self.right - self.left

    @property
    def down(self) -> float:
        """Height of the drawing."""
        return self.bottom - self.top

    @property
    def words(self) -> bool:
        """Whether words stand in the drawing."""
        return self.said != "silhouette"


def frame_of(width: float) -> Frame:
    """The frame of a picture ``width`` pixels wide; its height follows.

    It leaves as much room to words whatever they say, so that no failure moves the drawing.
    """
    if width < 300:
        height = float(round(_HEIGHTS["silhouette"] * width / 216))
        return Frame(width, height, "silhouette", 4, width - 4, 4, height - 4)
    said: Literal["full", "heads"] = "heads" if width < 640 else "full"
    titles, subtitles, legends = _reserved(width)
    top = 10 + 19 * titles + 16 * subtitles + (14 if said == "full" else 10)
    height = _HEIGHTS[said] + 19 * (titles - 1) + 16 * (subtitles - 1) + 16 * (legends - 1)
    left = 160.0 if said == "full" else 112.0
    return Frame(width, height, said, left, width - _GUTTER, top, height - 16 * legends - 16)


def _reserved(width: float) -> tuple[int, int, int]:
    """Lines of the title, the subtitle and the legend."""
    if width < 640:
        return 2, 3, 2
    return (1, 1, 1) if width >= 880 else (2, 2, 2)


def framed(
    frame: Frame,
    words: tuple[str, str],
    marks: Sequence[Mark],
    said: Sequence[Said],
    legend: Sequence[Swatch],
) -> Drawn:
    """The picture: a drawing with its title, gutter and legend.

    Parameters
    ----------
    words : (str, str)
        Title and subtitle in full.
    said : sequence of Said
        Top tier first.
    """
    around: list[Mark] = []
    if frame.words:
        around += _titles(frame, *words)
        around += gutter(frame, said)
        around += _legend(frame, legend)
    return Drawn(*words, frame.width, frame.height, (*marks, *around), tuple(legend), tuple(said))


def untitled(drawn: Drawn) -> Drawn:
    """The picture without the lines of its title and its legend: they stand beside it, or must not.

    The legend's marks are the last ones, as `framed` puts them.
    """
    frame = frame_of(drawn.width)
    if not frame.words:
        return drawn
    up, count = frame.top - 12, len(_legend(frame, drawn.legend))
    kept = drawn.marks[: len(drawn.marks) - count]
    marks = (mark for mark in kept if "title" not in mark.look.split())
    return replace(
        drawn,
        height=frame.bottom + 16 - up,
        legend=(),
        marks=tuple(_raised(mark, up) for mark in marks),
        said=tuple(replace(one, top=one.top - up, bottom=one.bottom - up) for one in drawn.said),
    )


def _raised(mark: Mark, up: float) -> Mark:
    if isinstance(mark, Line | Band):
        return replace(mark, points=tuple((x, y - up) for x, y in mark.points))
    return replace(mark, y=mark.y - up)


def _titles(frame: Frame, title: str, subtitle: str) -> list[Mark]:
    y, result, room = 10.0, list[Mark](), frame.width - 2 * _GUTTER
    titles, subtitles, _ = _reserved(frame.width)
    for line in wrapped(title, 0.97 * room, _TITLE, bold=True, most=titles):
        y += 19
        result.append(Words(line, "bold title", _GUTTER, y - 5, _TITLE))
    for line in wrapped(subtitle, 0.96 * room, TEXT, most=subtitles):
        y += 16
        result.append(Words(line, "soft title", _GUTTER, y - 3))
    return result


def badge(x: float, y: float, ratio: float, middle: bool = False) -> tuple[list[Mark], float]:
    """A ratio on a plate with its upper left (or upper middle) corner there, and its width."""
    text = format_ratio(ratio)
    width = max(42.0, text_width(text, TEXT, bold=True) * 1.1 + 18)
    left = x - width / 2 if middle else x
    over = ratio > OVER
    return [
        Box("", "badge over" if over else "badge", left, y, width, 18, radius=9),
        Words(text, "inverse" if over else "bold", left + width / 2, y + 13.2, TEXT, "middle"),
    ], width


@dataclass(frozen=True, slots=True)
class _Block:
    """The words of one part as lines, and where they stand."""

    head: tuple[str, ...]
    ratio: float | None
    texts: tuple[tuple[str, ...], ...]
    middle: float
    key: str
    top: float = 0.0

    @property
    def height(self) -> float:
        return 16.0 * len(self.head) + 23.0 * (self.ratio is not None) + _LEADING * len(self.lines)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line for text in self.texts for line in text)


def gutter(frame: Frame, said: Sequence[Said]) -> list[Mark]:
    """The words left of the drawing, each block at its part, none upon another."""
    room = frame.left - _GUTTER - 16
    full = frame.said == "full"
    blocks = []
    for one in said:
        head = wrapped(one.head, room * (1 if full else 1.08), _HEAD, bold=True, most=2)
        texts = tuple(wrapped(text, room, TEXT, most=3) for text in one.words) if full else ()
        block = _Block(head, one.ratio, texts, (one.top + one.bottom) / 2, one.what)
        if block.height:
            blocks.append(block)
    return [mark for block in _stacked(blocks, frame) for mark in _block(block, full)]


def _stacked(blocks: list[_Block], frame: Frame) -> list[_Block]:
    """Tops of all blocks: in the middle of their parts, moved until none overlaps another.

    Where there is no room, the longest blocks lose their last words.
    """
    top, bottom, gap = frame.top - 8, frame.bottom + 8, 5.0
    while sum(block.height + gap for block in blocks) - gap > bottom - top:
        longest = max(range(len(blocks)), key=lambda at: len(blocks[at].lines))
        if not blocks[longest].texts:
            break
        blocks[longest] = replace(blocks[longest], texts=blocks[longest].texts[:-1])
        blocks = [block for block in blocks if block.height]
    tops = [block.middle - block.height / 2 for block in blocks]
    # Down from the top, then up from the bottom: what is pushed keeps its order.
    least = top
    for at, block in enumerate(blocks):
        tops[at] = max(tops[at], least)
        least = tops[at] + block.height + gap
    most = bottom
    for at in range(len(blocks) - 1, -1, -1):
        tops[at] = min(tops[at], most - blocks[at].height)
        most = tops[at] - gap
    return [replace(block, top=at) for block, at in zip(blocks, tops, strict=True)]


def _block(block: _Block, full: bool) -> list[Mark]:
    y, result = block.top, list[Mark]()
    for line in block.head:
        result.append(Words(line, "bold", _GUTTER, y + 12.5, _HEAD, key=block.key))
        y += 16
    if block.ratio is not None:
        plate, width = badge(_GUTTER, y + 1, block.ratio)
        result += plate
        if full:
            result.append(Words("down : up", "soft", _GUTTER + width + 7, y + 14.2))
        y += 23
    for line in block.lines:
        result.append(Words(line, "soft", _GUTTER, y + 11.5, key=block.key))
        y += _LEADING
    return result


def _legend_rows(
    legend: Sequence[Swatch], left: float, right: float, most: int
) -> list[list[tuple[float, Swatch]]]:
    """Where every entry starts, row by row; what needs more rows is left out."""
    rows: list[list[tuple[float, Swatch]]] = []
    x = right
    for one in legend:
        width = _swatch_width(one) + text_width(one.words, TEXT) * 1.1
        if not rows or x + width > right:
            rows.append([])
            x = left
        rows[-1].append((x, one))
        x += width + 22
    return rows[:most]


def _swatch_width(one: Swatch) -> float:
    return {"box": 16.0, "line": 26.0, "funnel": 20.0, "ramp": 66.0}[one.form]


def _legend(frame: Frame, legend: Sequence[Swatch]) -> list[Mark]:
    result: list[Mark] = []
    left = frame.left if frame.said == "full" else _GUTTER
    rows = _legend_rows(legend, left, frame.right, _reserved(frame.width)[2])
    for number, row in enumerate(rows):
        y = frame.height - 8 - 16 * (len(rows) - 1 - number)
        for x, one in row:
            result += _swatch(one, x, y)
            result.append(Words(one.words, "soft", x + _swatch_width(one), y))
    return result


def _swatch(one: Swatch, x: float, y: float) -> list[Mark]:
    middle = y - 4
    if one.form == "line":
        return [Line("", one.look, ((x, middle), (x + 20, middle)), 2.0)]
    if one.form == "funnel":
        return [Box("", one.look, x, middle - 5, 14, 10, head=6, foot=14)]
    if one.form == "ramp":
        return [
            Band("", f"load-{step}", _rectangle(x + 10 * step, middle - 4, 10, 8))
            for step in range(6)
        ]
    return [Box("", one.look, x, middle - 5, 10, 10, radius=1.5)]


def _rectangle(x: float, y: float, width: float, height: float) -> tuple[tuple[float, float], ...]:
    return ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
