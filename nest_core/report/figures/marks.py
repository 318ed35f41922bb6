"""Marks of small figures as HTML that stretches sideways: words keep their size.

Across, places are shares of the width, from 0 to 1; down, pixels. Colours and type are those of
the page's style sheet, by name (``--accent``) and class, so that one string serves light and dark.
Plain elements in place of SVG: pages take HTML from a string, but no SVG.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

__all__ = ["bar", "curve", "figure", "rule", "words"]


def figure(height: int, label: str, marks: Iterable[str]) -> str:
    """Return a figure as wide as its place; ``label`` says in words what it shows."""
    name = html.escape(label, quote=True)
    return (
        f'<div class="nest-figure" role="img" aria-label="{name}" style="height:{height}px">'
        f"{''.join(marks)}</div>"
    )


def bar(
    left: float, top: float, width: float, height: float, colour: str, opacity: float = 1.0
) -> str:
    """Return a filled rectangle."""
    faint = "" if opacity == 1.0 else f";opacity:{opacity:g}"
    return (
        f'<i style="left:{_across(left)};top:{top:g}px;width:{_across(max(0.0, width))};'
        f'height:{height:g}px;background:var({colour}){faint}"></i>'
    )


def rule(
    left: float, top: float, right: float, bottom: float, colour: str = "--line", width: float = 1.0
) -> str:
    """Return a line across or down."""
    if top == bottom:
        return bar(left, top - width / 2, right - left, max(1.0, width), colour)
    return (
        f'<i style="left:calc({_across(left)} - {width / 2:g}px);top:{top:g}px;'
        f'width:{width:g}px;height:{bottom - top:g}px;background:var({colour})"></i>'
    )


def words(at: float, base: float, text: str, kind: str = "", shift: float = 0.0) -> str:
    """Return text on a base line.

    Kinds: ``m`` centred, ``r`` right, ``b`` bold, ``i`` ink, ``acc``.
    """
    side, share = ("right", 1.0 - at) if "r" in kind.split() else ("left", at)
    moved = -shift if side == "right" else shift
    return (
        f'<span class="{kind}" style="{side}:calc({_across(share)} + {moved:g}px);'
        f'top:{base - 13:g}px">{html.escape(text, quote=False)}</span>'
    )


def curve(points: Iterable[tuple[float, float]], height: float, colour: str) -> str:
    """Return the area under a curve: shares across and up, filled down to its foot."""
    path = ",".join(f"{100 * x:.2f}% {100 * (1 - y):.2f}%" for x, y in points)
    return (
        f'<i style="left:0;top:0;width:100%;height:{height:g}px;background:var({colour});'
        f'clip-path:polygon({path})"></i>'
    )


def _across(share: float) -> str:
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"
