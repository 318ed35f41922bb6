"""Search time against the size of what is searched, as a still picture: plain SVG.

One panel per curve, axes logarithmic, but linear where a quantity spans less than a factor of ten;
below each dot how many outer points the search covered, dashed what it takes to read one bound of
each once. Both with their exponents. Greys are readable on light and dark pages.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from nest_core.documents.units import humanise_seconds

__all__ = ["Curve", "exponent", "growth_svg"]

_WIDE, _HIGH, _LEFT, _TOP, _GAP = 250, 190, 56, 40, 40
_LABELS = 10
"""So many stand below a panel at most."""
_TEXT, _FAINT, _LINE = "#767b82", "#80848855", "#0072B2"


@dataclass(frozen=True, slots=True)
class Curve:
    """One quantity's effect.

    Parameters
    ----------
    quantity, title : str
    points : tuple of (float, float, int)
        The quantity, seconds, and outer points covered.
    """

    quantity: str
    title: str
    points: tuple[tuple[float, float, int], ...]


def exponent(pairs: Sequence[tuple[float, float]]) -> float:
    """The power of a quantity with which seconds grow, by least squares of their logarithms.

    Examples
    --------
    >>> round(exponent([(1.0, 3.0), (2.0, 6.0), (4.0, 12.0)]), 12)
    1.0
    """
    sizes, seconds = zip(*pairs, strict=True)
    return statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, seconds)]).slope


def growth_svg(curves: Sequence[Curve], read_s: float) -> str:
    """The picture.

    Parameters
    ----------
    curves : sequence of Curve
        Each with at least two points.
    read_s : float
        What reading the bound of one outer point takes, s.
    """
    width = len(curves) * (_WIDE + _LEFT + _GAP)
    height = _TOP + _HIGH + 52
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="sans-serif" font-size="11" fill="{_TEXT}">',
        "<title>Warm search time against devices, layers, experts and axes</title>",
    ]
    for place, curve in enumerate(curves):
        parts += _panel(curve, place * (_WIDE + _LEFT + _GAP) + _LEFT, read_s)
    return "\n".join([*parts, "</svg>", ""])


def _panel(curve: Curve, left: float, read_s: float) -> list[str]:
    xs, ys, covered = zip(*curve.points, strict=True)
    limits = [read_s * points for points in covered]
    across = _across(min(xs), max(xs), left, left + _WIDE)
    low, high = 10 ** math.floor(math.log10(min(limits))), 10 ** math.ceil(math.log10(max(ys)))
    up = _scale(low, high, _TOP + _HIGH, _TOP)
    parts = [
        f'<text x="{left}" y="14" font-weight="600">{escape(curve.title)}</text>',
        f'<text x="{left}" y="28">seconds against {escape(curve.quantity)}, exponent '
        f"{exponent(list(zip(xs, ys, strict=True))):.2f}</text>",
    ]
    tick = low
    while tick <= high * 1.001:
        y = up(tick)
        label = humanise_seconds(tick)
        parts.append(
            f'<path d="M{left} {y:.1f}H{left + _WIDE}" stroke="{_FAINT}"/>'
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        )
        tick *= 10
    path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(f'<path d="M{path}" fill="none" stroke="{_LINE}" stroke-width="2"/>')
    path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in zip(xs, limits, strict=True))
    parts.append(f'<path d="M{path}" fill="none" stroke="{_TEXT}" stroke-dasharray="4 3"/>')
    every = 1 + len(xs) // _LABELS
    for place, (x, y, points) in enumerate(zip(xs, ys, covered, strict=True)):
        parts.append(
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{_LINE}">'
            f"<title>{x:,.0f}: {humanise_seconds(y)}, {points:,} points</title></circle>"
        )
        if place % every:
            continue
        parts.append(
            f'<text x="{across(x):.1f}" y="{_TOP + _HIGH + 16}" text-anchor="middle">'
            f"{_short(x)}</text>"
            f'<text x="{across(x):.1f}" y="{_TOP + _HIGH + 30}" text-anchor="middle" '
            f'font-size="9">{_short(points)}</text>'
        )
    parts.append(
        f'<text x="{left}" y="{_TOP + _HIGH + 46}" font-size="9">small: points; '
        f"dashed: a bound of each read once, exponent "
        f"{exponent(list(zip(xs, limits, strict=True))):.2f}</text>"
    )
    return parts


def _across(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    if high >= 10 * low:
        return _scale(low, high, start, end)
    return lambda value: start + (end - start) * (value - low) / ((high - low) or 1.0)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * math.log(value / low) / span


def _short(value: float) -> str:
    """Two or three digits with k or M.

    Examples
    --------
    >>> _short(640), _short(131072), _short(12_249_414)
    ('640', '131k', '12M')
    """
    for step, unit in ((1e6, "M"), (1e3, "k")):
        if value >= step:
            return f"{value / step:.0f}{unit}"
    return f"{value:.0f}"
