"""Marks of small figures as inline SVG that stretches sideways: words keep their size.

Across, places are shares of the width, from 0 to 1; down, pixels. Colours and type are those of the
page's style sheet, by name (``--accent``) and class, so that one string serves light and dark.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

__all__ = ["bar", "curve", "rule", "svg", "ticks", "words"]


def svg(height: int, label: str, marks: Iterable[str]) -> str:
    """A figure as wide as its place; ``label`` says in words what it shows."""
    told = html.escape(label, quote=True)
    return (
        f'<svg class="nest-svg" width="100%" height="{height}" role="img" aria-label="{told}">'
        f"{''.join(marks)}</svg>"
    )


def bar(
    left: float, top: float, width: float, height: float, colour: str, opacity: float = 1.0
) -> str:
    """A filled rectangle; narrower ones than a pixel are not seen."""
    faint = "" if opacity == 1.0 else f' opacity="{opacity:g}"'
    return (
        f'<rect x="{_across(left)}" y="{top:g}" width="{_across(max(0.0, width))}" '
        f'height="{height:g}" style="fill:var({colour})"{faint}/>'
    )


def rule(
    left: float, top: float, right: float, bottom: float, colour: str = "--line", width: float = 1.0
) -> str:
    """A line."""
    return (
        f'<line x1="{_across(left)}" y1="{top:g}" x2="{_across(right)}" y2="{bottom:g}" '
        f'style="stroke:var({colour});stroke-width:{width:g}"/>'
    )


def words(at: float, base: float, text: str, kind: str = "", shift: float = 0.0) -> str:
    """Text on a base line; kinds: ``m`` centred, ``r`` right, ``b`` bold, ``i`` ink, ``acc``."""
    moved = f' dx="{shift:g}"' if shift else ""
    return (
        f'<text x="{_across(at)}" y="{base:g}"{moved} class="{kind}">'
        f"{html.escape(text, quote=False)}</text>"
    )


def curve(points: Iterable[tuple[float, float]], height: float, colour: str) -> str:
    """The area under a curve: shares across and up, filled down to its foot."""
    path = " ".join(f"{100 * x:.2f},{100 * (1 - y):.2f}" for x, y in points)
    return (
        f'<svg x="0" y="0" width="100%" height="{height:g}" viewBox="0 0 100 100" '
        f'preserveAspectRatio="none"><polygon points="{path}" style="fill:var({colour})"/></svg>'
    )


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from low to high, at most so many.

    Examples
    --------
    >>> ticks(0.88, 1.31), ticks(0.0, 31.0, 4)
    ([0.9, 1.0, 1.1, 1.2, 1.3], [0.0, 10.0, 20.0, 30.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / most
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (times * scale for times in (1, 2, 2.5, 5, 10) if times * scale >= rough * 0.85), 10 * scale
    )
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _across(share: float) -> str:
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"
