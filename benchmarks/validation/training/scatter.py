"""Predicted against measured times as a still picture: plain SVG, written by hand.

Small panels, both axes logarithmic and equal, a dot for each run. The dashed line is agreement,
the faint ones beside it a fifth more and less. Greys are readable on light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Panel", "scatter_svg"]

_SIDE, _GAP, _TOP, _LEFT, _COLUMNS = 210, 64, 34, 52, 3
_TEXT, _LINE, _FAINT = "#767b82", "#808488", "#80848855"
_COLOURS = ("#0072B2", "#E69F00")
_NEAR = 1.2
_LEAST_SPAN = 0.3


@dataclass(frozen=True, slots=True)
class Panel:
    """Runs of one kind.

    Parameters
    ----------
    title, subtitle : str
    points : sequence of (float, float, bool)
        Measured and predicted seconds, and whether parameters were fitted to the run.
    """

    title: str
    subtitle: str
    points: Sequence[tuple[float, float, bool]]


def scatter_svg(panels: Sequence[Panel], description: str) -> str:
    """The picture.

    Parameters
    ----------
    panels : sequence of Panel
        Each with at least one point.
    description : str
        For those who cannot see it.
    """
    rows = -(-len(panels) // _COLUMNS)
    columns = min(len(panels), _COLUMNS)
    width, height = columns * (_SIDE + _GAP) + 16, rows * (_SIDE + _GAP + 16) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="11" '
        f'fill="{_TEXT}">',
        f"<title>{escape(description)}</title>",
    ]
    for index, panel in enumerate(panels):
        row, column = divmod(index, _COLUMNS)
        left, top = column * (_SIDE + _GAP) + _LEFT, row * (_SIDE + _GAP + 16) + _TOP
        parts.append(f'<g transform="translate({left} {top})">')
        parts += _panel(panel)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> list[str]:
    values = [value for measured, predicted, _ in panel.points for value in (measured, predicted)]
    low, high = math.log10(min(values)), math.log10(max(values))
    pad = max(0.05 * (high - low), (_LEAST_SPAN - high + low) / 2, 0.02)
    low, high = low - pad, high + pad

    def at(seconds: float) -> float:
        return round((math.log10(seconds) - low) / (high - low) * _SIDE, 1)

    parts = [
        f'<text x="0" y="-18" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="0" y="-5">{escape(panel.subtitle)}</text>',
        f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_FAINT}"/>',
    ]
    for factor, colour, dash in ((1.0, _LINE, "4 3"), (_NEAR, _FAINT, ""), (1 / _NEAR, _FAINT, "")):
        shift = round(math.log10(factor) / (high - low) * _SIDE, 1)
        start, end = max(0.0, -shift), min(float(_SIDE), _SIDE - shift)
        line = f'x1="{start:g}" y1="{_SIDE - start - shift:g}" x2="{end:g}" '
        line += f'y2="{_SIDE - end - shift:g}"'
        parts.append(f'<line {line} stroke="{colour}" stroke-dasharray="{dash}"/>')
    for seconds in _ticks(low, high):
        place = at(seconds)
        text = f"{seconds:g}"
        parts.append(f'<text x="{place:g}" y="{_SIDE + 14}" text-anchor="middle">{text}</text>')
        parts.append(f'<text x="-6" y="{_SIDE - place + 4:g}" text-anchor="end">{text}</text>')
    parts.append(
        f'<text x="{_SIDE / 2:g}" y="{_SIDE + 29}" text-anchor="middle">measured, s</text>'
        f'<text transform="translate(-38 {_SIDE / 2:g}) rotate(-90)" text-anchor="middle">'
        "predicted, s</text>"
    )
    seen = dict.fromkeys((at(m), at(p), fitted) for m, p, fitted in panel.points)
    parts += [
        f'<circle cx="{x:g}" cy="{round(_SIDE - y, 1):g}" r="2.5" '
        f'fill="{_COLOURS[fitted]}" fill-opacity="0.6"/>'
        for x, y, fitted in seen
    ]
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Decades, and 2 and 5 between them where there are few."""
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)):
        decades = range(math.floor(low), math.ceil(high) + 1)
        found = [step * 10.0**decade for decade in decades for step in steps]
        inside = [value for value in found if low <= math.log10(value) <= high]
        if len(inside) >= 3:
            return inside
    return inside
