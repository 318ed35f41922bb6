"""What drawings of the lessons are made of: SVG from pure functions, in pixels.

Colours of text and paper are the page's own (``currentColor``, translucent greys), so one drawing
serves light and dark. Text is never under 12 px; on a wall it is 16 px.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Literal

from nest_core.report.figures.style import TIME_COLOURS

__all__ = [
    "CASING",
    "COMPUTE",
    "IDLE",
    "MOVES",
    "PALE",
    "PART",
    "TEXT_PX",
    "Anchor",
    "LessonDrawing",
    "Pen",
    "load_colour",
    "number",
]

MOVES, PALE, CASING = TIME_COLOURS["communication"], "#F3D08A", "#A36F00"
PART, COMPUTE = TIME_COLOURS["recomputation"], TIME_COLOURS["compute"]
IDLE = "rgba(128, 132, 138, 0.55)"
_PANEL, _GRID = "rgba(128, 132, 138, 0.09)", "rgba(128, 132, 138, 0.2)"
_LINE, _SWITCH = "rgba(128, 132, 138, 0.45)", "#6B747D"

TEXT_PX = {False: 13, True: 16}
"""Size of text: on a page, and on a wall."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class LessonDrawing:
    """An SVG with the words around it; see `nest_core.report.figures.style.Picture`.

    Parameters
    ----------
    title, subtitle, reading : str
    svg : str
        As wide as it was asked for.
    """

    title: str
    subtitle: str
    reading: str
    svg: str


def number(value: float) -> str:
    """A length with up to two decimals.

    Examples
    --------
    >>> number(3.0), number(2.345)
    ('3', '2.35')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def load_colour(load: float) -> str:
    """The colour of a link that sends so large a share of the time."""
    return _LINE if load <= 0 else PALE if load < 0.5 else MOVES


class Pen:
    """Collects the marks of one drawing.

    Parameters
    ----------
    text_px : int
        Size of all text.
    """

    def __init__(self, text_px: int) -> None:
        self._marks: list[str] = []
        self.text_px = text_px

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        line: str = "",
        radius: float = 0.0,
        told: str = "",
    ) -> None:
        """A box; ``told`` is what pointing at it says."""
        stroke = f' stroke="{line}"' if line else ""
        corner = f' rx="{number(radius)}"' if radius else ""
        self._put(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
            f'height="{number(max(height, 0))}" fill="{fill}"{stroke}{corner}',
            "rect",
            told,
        )

    def panel(self, x: float, y: float, width: float, height: float) -> None:
        """What holds devices: a node."""
        self.rect(x, y, width, height, _PANEL, line=_LINE, radius=4)

    def switch(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """A switch with its name."""
        self.rect(x, y, width, height, _SWITCH, radius=2)
        self.text(x + width / 2, y + height / 2 + 0.35 * self.text_px, name, bold=True, on=True)

    def plate(self, x: float, y: float, width: float, height: float) -> None:
        """Paper beneath words that would stand on lines."""
        self.rect(x, y, width, height, "var(--bg, Canvas)")

    def frame(self, x: float, y: float, width: float, height: float, told: str = "") -> None:
        """The outline of a device."""
        self.rect(x, y, width, height, _PANEL, line=_LINE, told=told)

    def track(self, x: float, y: float, width: float, height: float) -> None:
        """Where time has not come to."""
        self.rect(x, y, width, height, _GRID)

    def line(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        colour: str,
        width: float,
        *,
        dashed: bool = False,
        told: str = "",
    ) -> None:
        """A straight line."""
        dash = ' stroke-dasharray="2 3"' if dashed else ""
        self._put(
            f'<line x1="{number(x[0])}" y1="{number(y[0])}" x2="{number(x[1])}" '
            f'y2="{number(y[1])}" stroke="{colour}" stroke-width="{number(width)}"{dash}',
            "line",
            told,
        )

    def path(
        self, d: str, *, fill: str = "none", line: str = "", width: float = 1.0, told: str = ""
    ) -> None:
        """A path by SVG's own commands."""
        stroke = f' stroke="{line}" stroke-width="{number(width)}"' if line else ""
        self._put(f'<path d="{d}" fill="{fill}"{stroke}', "path", told)

    def head(self, x: float, y: float, *, up: bool, colour: str, size: float) -> None:
        """The head of an arrow whose tip is at a place."""
        back = y + size * 1.6 if up else y - size * 1.6
        self.path(
            f"M{number(x)} {number(y)}L{number(x - size)} {number(back)}"
            f"L{number(x + size)} {number(back)}Z",
            fill=colour,
        )

    def chevron(self, tip: tuple[float, float], turn: tuple[float, float], size: float) -> None:
        """Which way something goes; ``turn`` is the direction, of length one."""
        (x, y), (right, down) = tip, turn
        back = x - size / 2 * right, y - size / 2 * down
        sides = [
            (back[0] - side * size * down, back[1] + side * size * right) for side in (-1.0, 1.0)
        ]
        front = x + size / 2 * right, y + size / 2 * down
        a, b, c = (f"{number(p[0])} {number(p[1])}" for p in (sides[0], front, sides[1]))
        self.path(f"M{a}L{b}L{c}", line=CASING, width=1.6)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: Anchor = "middle",
        bold: bool = False,
        quiet: bool = False,
        on: bool = False,
    ) -> None:
        """Words, if there are any; ``on`` stands on a dark mark."""
        if not words:
            return
        weight = ' font-weight="600"' if bold else ""
        ink = "#FFFFFF" if on else "currentColor"
        pale = ' opacity="0.78"' if quiet else ""
        side = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._marks.append(
            f'<text x="{number(x)}" y="{number(y)}" fill="{ink}"{side}{weight}{pale}>'
            f"{html.escape(words)}</text>"
        )

    def dark(self, x: float, y: float, words: str) -> None:
        """Words on a pale mark, the same in light and dark."""
        self._marks.append(
            f'<text x="{number(x)}" y="{number(y)}" fill="#1B1F24" text-anchor="middle" '
            f'font-weight="600">{html.escape(words)}</text>'
        )

    def svg(self, width: float, height: float, label: str) -> str:
        """All marks; ``label`` is what is read out."""
        size = f'width="{number(width)}" height="{number(height)}"'
        return (
            f'<svg {size} viewBox="0 0 {number(width)} {number(height)}" role="img" '
            f'aria-label="{html.escape(label)}" font-size="{self.text_px}" '
            'style="display: block; max-width: 100%; height: auto; '
            'font-variant-numeric: tabular-nums">' + "".join(self._marks) + "</svg>"
        )

    def _put(self, opened: str, tag: str, told: str) -> None:
        inside = f"><title>{html.escape(told)}</title></{tag}>" if told else "/>"
        self._marks.append(opened + inside)
