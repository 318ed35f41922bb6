"""A picture as SVG text: the same bytes for the same picture, in the app, in reports, on paper.

Colours are properties of the style sheet (``--fabric-ink``) of both themes: the color scheme of
what the picture stands in decides, or its own class. Print is light. Marks that follow each other
and look alike share a group, so that 4,000 of them stay below 250 KiB. Boxes, links and words carry
``data-key``; of links it is the keys of both ends with a bar between. ``data-of`` on a group is the
class of the bill that its links belong to.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Literal

from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Point, Words
from nest_core.report.picture.theme import STYLE

__all__ = ["to_svg"]

_HATCHES = {
    # Two crossed lines, and one slanting line.
    "mesh": ("mesh", "M0 0L10 10M10 0L0 10", 10),
    "slow": ("slow", "M0 6L6 0M-1 1L1 -1M5 7L7 5", 6),
    "mixed": ("mixed", "M0 4L4 0M-1 1L1 -1M3 5L5 3", 4),
}


def to_svg(drawn: Drawn, theme: Literal["", "light", "dark"] = "") -> str:
    """Return the picture as one ``svg`` element.

    Parameters
    ----------
    drawn : Drawn
    theme : {"", "light", "dark"}
        Fixed colours; left empty, those of what it stands in.
    """
    name = f"fabric-{zlib.crc32(repr(drawn.marks).encode()):08x}"
    width, height = _number(drawn.width), _number(drawn.height)
    body = "".join(_group(key, list(marks), name) for key, marks in groupby(drawn.marks, _alike))
    hatches = "".join(_hatch(look, name) for look in _HATCHES if _has(drawn.marks, look))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{f"fabric {theme}".strip()}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(drawn.title)}</title>'
        f'<desc id="{name}-desc">{escape(drawn.subtitle)}</desc>'
        f"<style>{STYLE}</style><defs>{hatches}</defs>{body}</svg>"
    )


def _alike(mark: Mark) -> tuple[object, ...]:
    """What marks of one group share."""
    of = mark.stands[0][0] if isinstance(mark, Line | Band) and mark.stands else ""
    if isinstance(mark, Line):
        return (Line, mark.look, of, round(mark.width, 2), round(mark.opacity, 2))
    if isinstance(mark, Words):
        return (Words, mark.look, mark.size, mark.anchor)
    return (type(mark), mark.look, of)


def _group(key: tuple[object, ...], marks: list[Mark], name: str) -> str:
    _, look, *rest = key
    attributes = f' class="{look}"'
    first = marks[0]
    if isinstance(first, Words):
        attributes += f' font-size="{_number(first.size)}" text-anchor="{first.anchor}"'
    else:
        if rest and rest[0]:
            attributes += f' data-of="{rest[0]}"'
        if isinstance(first, Line):
            attributes += f' stroke-width="{_number(first.width)}"'
            if first.opacity < 1:
                attributes += f' stroke-opacity="{_number(first.opacity)}"'
        for word in str(look).split():
            if word in _HATCHES and isinstance(first, Box if word != "mesh" else Box | Band):
                attributes += f' style="fill:url(#{name}-{word})"'
    return f"<g{attributes}>{''.join(map(_mark, marks))}</g>"


def _mark(mark: Mark) -> str:
    key = f' data-key="{escape(mark.key)}"' if mark.key else ""
    if isinstance(mark, Words):
        at = f'x="{_number(mark.x)}" y="{_number(mark.y)}"'
        return f"<text {at}{key}>{escape(mark.text)}</text>"
    if isinstance(mark, Line):
        return f'<path d="{_path(mark.points)}"{key}/>'
    if isinstance(mark, Band):
        return f'<path d="{_path(mark.points)}z"{key}/>'
    if mark.head is not None or mark.foot is not None:
        return f'<path d="{_path(mark.outline)}z"{key}/>'
    corner = f"{_number(mark.x)} {_number(mark.y)}"
    width, height = _number(mark.width), _number(mark.height)
    if not mark.radius:
        return f'<path d="M{corner}h{width}v{height}h-{width}z"{key}/>'
    x, y = corner.split()
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" '
        f'rx="{_number(mark.radius)}"{key}/>'
    )


def _path(points: tuple[Point, ...]) -> str:
    places = [f"{_number(x)} {_number(y)}" for x, y in points]
    return "M" + "L".join(places)


def _number(value: float) -> str:
    """To a hundredth, without what need not be written."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _has(marks: Iterable[Mark], look: str) -> bool:
    return any(look in mark.look.split() for mark in marks if not isinstance(mark, Line))


def _hatch(look: str, name: str) -> str:
    css, path, size = _HATCHES[look]
    return (
        f'<pattern id="{name}-{look}" class="hatch-{css}" width="{size}" height="{size}" '
        f'patternUnits="userSpaceOnUse"><rect width="{size}" height="{size}"/>'
        f'<path d="{path}"/></pattern>'
    )
