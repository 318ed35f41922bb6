"""The frame around a drawn fabric: title, gutter with every word, legend, at any width.

Three steps of width: to 299 pixels the silhouette alone (rows of a comparison), to 639 the gutter
keeps heads and ratios, from 640 on it says everything. Nothing is scaled: text has 12 pixels at
every width, and the drawing is laid out anew in what the frame leaves it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal

from nest_core.documents.units import format_ratio
from nest_core.report.picture.aggregate import spread
from nest_core.report.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Swatch,
    TierLabel,
    Words,
    rectangle,
    text_width,
    wrapped,
)

__all__ = ["TEXT", "Frame", "frame_of", "framed", "stacked_edges", "untitled"]

TEXT = 12.0
"""Size of all words but the title."""
_OVER = 1.1
"""Above so many ports down to one up a ratio is marked; below, whole ports explain it."""

_TITLE = 15.5
_HEAD = 13.0
_LEADING = 14.5
_GUTTER = 16.0
_SWATCHES = {"box": 16.0, "line": 26.0, "funnel": 20.0, "ramp": 66.0}
_HEIGHTS = {"full": 460.0, "heads": 340.0, "silhouette": 132.0}


@dataclass(frozen=True, slots=True)
class Frame:
    """What is left to the drawing.

    Parameters
    ----------
    width, height : float
        Of the picture.
    detail : {"full", "heads", "silhouette"}
    start, end, top, bottom : float
        Edges of the drawing.
    """

    width: float
    height: float
    detail: Literal["full", "heads", "silhouette"]
    start: float
    end: float
    top: float
    bottom: float

    @property
    def across(self) -> float:
        """Width of the drawing."""
        return self.end - self.start

    @property
    def down(self) -> float:
        """Height of the drawing."""
        return self.bottom - self.top

    @property
    def words(self) -> bool:
        """Whether words stand in the drawing."""
        return self.detail != "silhouette"


def frame_of(width: float) -> Frame:
    """Return the frame of a picture ``width`` pixels wide; its height follows.

    It leaves as much room to words whatever they say, so that no failure moves the drawing.
    """
    if width < 300:
        height = float(round(_HEIGHTS["silhouette"] * width / 216))
        return Frame(width, height, "silhouette", 4, width - 4, 4, height - 4)
    detail: Literal["full", "heads"] = "heads" if width < 640 else "full"
    titles, subtitles, legends = _reserved(width)
    top = 10 + 19 * titles + 16 * subtitles + (14 if detail == "full" else 10)
    height = _HEIGHTS[detail] + 19 * (titles - 1) + 16 * (subtitles - 1) + 16 * (legends - 1)
    start = 160.0 if detail == "full" else 112.0
    return Frame(width, height, detail, start, width - _GUTTER, top, height - 16 * legends - 16)


def _reserved(width: float) -> tuple[int, int, int]:
    """Lines of the title, the subtitle and the legend."""
    return (2, 3, 2) if width < 640 else (2, 2, 2) if width < 880 else (1, 1, 1)


def framed(
    frame: Frame,
    words: tuple[str, str],
    marks: Sequence[Mark],
    labels: Sequence[TierLabel],
    legend: Sequence[Swatch],
) -> Drawn:
    """Return the picture: a drawing with its title, gutter and legend.

    Parameters
    ----------
    words : (str, str)
        Title and subtitle in full.
    labels : sequence of TierLabel
        Top tier first.
    """
    around = (
        [*_titles(frame, *words), *_gutter(frame, labels), *_legend(frame, legend)]
        if frame.words
        else []
    )
    return Drawn(*words, frame.width, frame.height, (*marks, *around), tuple(legend), tuple(labels))


def untitled(drawn: Drawn) -> Drawn:
    """Return the picture without title and legend: they stand beside it, or must not.

    The legend's marks are the last ones, as `framed` puts them.
    """
    frame = frame_of(drawn.width)
    if not frame.words:
        return drawn
    up = frame.top - 12
    rest = drawn.marks[: len(drawn.marks) - len(_legend(frame, drawn.legend))]
    return replace(
        drawn,
        height=frame.bottom + 16 - up,
        legend=(),
        marks=tuple(_raised(mark, up) for mark in rest if "title" not in mark.look.split()),
        labels=tuple(
            replace(label, top=label.top - up, bottom=label.bottom - up) for label in drawn.labels
        ),
    )


def _raised(mark: Mark, up: float) -> Mark:
    return (
        replace(mark, points=tuple((x, y - up) for x, y in mark.points))
        if isinstance(mark, Line | Band)
        else replace(mark, y=mark.y - up)
    )


def _titles(frame: Frame, title: str, subtitle: str) -> list[Mark]:
    room, (titles, subtitles, _) = frame.width - 2 * _GUTTER, _reserved(frame.width)
    heads = wrapped(title, 0.97 * room, _TITLE, bold=True, max_lines=titles)
    texts = wrapped(subtitle, 0.96 * room, TEXT, max_lines=subtitles)
    below = 24.0 + 19 * len(heads)
    return [
        *(
            Words(line, "bold title", _GUTTER, 24.0 + 19 * number, _TITLE)
            for number, line in enumerate(heads)
        ),
        *(
            Words(line, "soft title", _GUTTER, below - 1 + 16 * number)
            for number, line in enumerate(texts)
        ),
    ]


def _badge(x: float, y: float, ratio: float) -> tuple[Box, Words]:
    """Draw a ratio on a plate with its upper left corner there."""
    text = format_ratio(ratio)
    width = max(42.0, text_width(text, TEXT, bold=True) * 1.1 + 18)
    looks = ("badge over", "inverse") if ratio > _OVER else ("badge", "bold")
    plate = Box("", looks[0], x, y, width, 18, radius=9)
    return plate, Words(text, looks[1], x + width / 2, y + 13.2, TEXT, "middle")


_Part = tuple[float, tuple[Mark, ...]]
"""A height, and what stands there, from zero on."""


def _parts(label: TierLabel, room: float, is_full: bool) -> tuple[list[_Part], list[_Part]]:
    """Return the head and the ratio of a tier, and its texts, of which the last may be left out."""
    key = label.what
    head = wrapped(label.head, room * (1 if is_full else 1.08), _HEAD, bold=True, max_lines=2)
    heads: list[_Part] = [
        (16.0, (Words(line, "bold", _GUTTER, 12.5, _HEAD, key=key),)) for line in head
    ]
    if label.ratio is not None:
        plate, text = _badge(_GUTTER, 1.0, label.ratio)
        unit = Words("down : up", "soft", _GUTTER + plate.width + 7, 14.2)
        heads.append((23.0, (plate, text, unit) if is_full else (plate, text)))
    texts: list[_Part] = [
        (
            _LEADING * len(lines),
            tuple(
                Words(line, "soft", _GUTTER, 11.5 + _LEADING * number, key=key)
                for number, line in enumerate(lines)
            ),
        )
        for words in (label.words if is_full else ())
        for lines in (wrapped(words, room, TEXT, max_lines=3),)
    ]
    return heads, texts


def _high(parts: Sequence[_Part]) -> float:
    return sum(height for height, _ in parts)


def _gutter(frame: Frame, labels: Sequence[TierLabel]) -> Iterator[Mark]:
    """Draw the words left of the drawing, each block at its part, none upon another.

    Where there is no room, the longest blocks lose their last words.
    """
    room, is_full = frame.start - _GUTTER - 16, frame.detail == "full"
    blocks = [((at.top + at.bottom) / 2, *_parts(at, room, is_full)) for at in labels]
    top, bottom, gap = frame.top - 8, frame.bottom + 8, 5.0
    while sum(_high([*heads, *texts]) + gap for _, heads, texts in blocks) - gap > bottom - top:
        longest = max((texts for _, _, texts in blocks), key=_high)
        if not longest:
            break
        longest.pop()
        blocks = [block for block in blocks if block[1] or block[2]]
    heights = [_high([*heads, *texts]) for _, heads, texts in blocks]
    wanted = [middle - high / 2 for (middle, *_), high in zip(blocks, heights, strict=True)]
    tops = spread(wanted, [high + gap for high in heights], top, bottom + gap)
    for (_, heads, texts), y in zip(reversed(blocks), reversed(tops), strict=True):
        for height, part in (*heads, *texts):
            yield from (_raised(mark, -y) for mark in part)
            y += height


def stacked_edges(
    top: float, heights: Sequence[tuple[str, float]]
) -> dict[str, tuple[float, float]]:
    """Return top and bottom of parts by their names, one below the other."""
    ends = pairwise(accumulate((height for _, height in heights), initial=top))
    return {name: edges for (name, _), edges in zip(heights, ends, strict=True)}


def _legend(frame: Frame, legend: Sequence[Swatch]) -> list[Mark]:
    """Draw the legend in the rows that there are; what needs more is left out."""
    start = frame.start if frame.detail == "full" else _GUTTER
    places: list[tuple[float, int, Swatch]] = []
    x, row = start, 0
    for swatch in legend:
        width = _SWATCHES[swatch.form] + text_width(swatch.words, TEXT) * 1.1
        if x > start and x + width > frame.end:
            x, row = start, row + 1
        places.append((x, row, swatch))
        x += width + 22
    rows = min(row + 1, _reserved(frame.width)[2])
    return [
        mark
        for x, row, swatch in places
        if row < rows
        for mark in _swatch(swatch, x, frame.height - 8 - 16 * (rows - 1 - row))
    ]


def _swatch(swatch: Swatch, x: float, y: float) -> list[Mark]:
    """Draw an entry of the legend, its words at the right."""
    look, middle = swatch.look, y - 4
    signs: dict[str, list[Mark]] = {
        "line": [Line("", look, ((x, middle), (x + 20, middle)), 2.0)],
        "funnel": [Box("", look, x, middle - 5, 14, 10, head=6, foot=14)],
        "ramp": [
            Band("", f"load-{step}", rectangle(x + 10 * step, middle - 4, 10, 8))
            for step in range(6)
        ],
        "box": [Box("", look, x, middle - 5, 10, 10, radius=1.5)],
    }
    return [*signs[swatch.form], Words(swatch.words, "soft", x + _SWATCHES[swatch.form], y)]
