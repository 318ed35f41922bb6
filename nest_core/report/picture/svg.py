"""A picture as SVG text: the same bytes for the same picture, in the app, in reports, on paper.

Colours are properties of the style sheet (``--fabric-ink``) of both themes: the color scheme of
what the picture stands in decides, or its own class. Print is light. Marks that follow each other
and look alike share a group, so that 4,000 of them stay below 250 KiB. Boxes, links and words carry
``data-key``; of links it is the keys of both ends with a bar between. ``data-of`` on a group is the
class of the bill that its links belong to.

Colours are Okabe and Ito's, without vermilion for rails, which says failure; two more for the
seventh and eighth rail. Stages are ordered, so their colours are a ramp of one hue. All text has a
contrast of at least 4.5 : 1 on what it stands on.
"""

import zlib
from html import escape
from itertools import groupby
from typing import Literal

from nest_core.report.documents import DESIGN_COLOURS
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Point, Words

__all__ = [
    "RAILS",
    "STAGE_STEPS",
    "STYLE",
    "to_svg",
]

_HATCHES = {
    # Two crossed lines, and one slanting line.
    "mesh": ("M0 0L10 10M10 0L0 10", 10),
    "mixed": ("M0 4L4 0M-1 1L1 -1M3 5L5 3", 4),
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
    looks = {look for m in drawn.marks if not isinstance(m, Line) for look in m.look.split()}
    hatches = "".join(
        f'<pattern id="{name}-{look}" class="hatch-{look}" width="{size}" height="{size}" '
        f'patternUnits="userSpaceOnUse"><rect width="{size}" height="{size}"/>'
        f'<path d="{path}"/></pattern>'
        for look, (path, size) in _HATCHES.items()
        if look in looks
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{f"fabric {theme}".strip()}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(drawn.title)}</title>'
        f'<desc id="{name}-desc">{escape(drawn.subtitle)}</desc>'
        f"<style>{STYLE}</style><defs>{hatches}</defs>{body}</svg>"
    )


def _alike(mark: Mark) -> tuple[object, ...]:
    """Return what marks of one group share."""
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
    x, y, width, height = map(_number, (mark.x, mark.y, mark.width, mark.height))
    if not mark.radius:
        return f'<path d="M{x} {y}h{width}v{height}h-{width}z"{key}/>'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" '
        f'rx="{_number(mark.radius)}"{key}/>'
    )


def _path(points: tuple[Point, ...]) -> str:
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """To a hundredth, without what need not be written."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


RAILS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#8A5A2B", "#2B3038")
"""Rail 0 to 7; in the dark the last two are lighter."""

STAGE_STEPS = 12
"""Steps of the ramp along which stages are coloured."""

_STAGES = ((46, 27, 87), (84, 53, 140), (123, 85, 184), (164, 132, 216), (188, 164, 230))
_STAGES_DARK = ((96, 70, 170), (122, 92, 196), (152, 122, 216), (184, 160, 234), (222, 208, 248))
_LOADS = ("#C9CFD6", "#E3D9BD", "#EFC877", "#E69F00", "#DD7F00", "#D55E00")

_TINTS = ("#fdf4e3", "#fae5bb", "#f5d38c", "#edbd57", "#E69F00")
_TINTS_DARK = ("#27231c", "#3e3215", "#554112", "#6e520f", "#88620c")
# Cells of the cost matrix, from the fewest seconds to the most: tints of the page.


def _stage(number: int, ramp: tuple[tuple[int, int, int], ...]) -> str:
    """Return a colour of the ramp, dark to light."""
    place = number / (STAGE_STEPS - 1) * (len(ramp) - 1)
    low = min(int(place), len(ramp) - 2)
    mixed = (
        round(a + (place - low) * (b - a)) for a, b in zip(ramp[low], ramp[low + 1], strict=True)
    )
    return "#{:02x}{:02x}{:02x}".format(*mixed)


_LIGHT = {
    "bg": "#ffffff",
    "panel": "#f0f2f4",
    "ink": "#1b1f24",
    "ink2": "#4b5563",
    "edge": "#a9b1bb",
    "line": "#85919d",
    "switch": "#d6dae0",
    "switch-edge": "#6f7a86",
    "device": "#9aa5b0",
    "bundle": "#d2d7da",
    "accent": "#0072B2",
    "bad": "#D55E00",
    "bad-ink": "#B24E00",
    "lit": "#E69F00",
    "casing": "#A36F00",
    "idle": "#e3e6ea",
    "bill-nodes": "#A3A9AF",
    "bill-hall": "#C6CCD2",
    "bill-power": "#DCE1E5",
    "bill-other": "#EDF0F2",
    "on-ours": "#ffffff",
    "rail-6": RAILS[6],
    "rail-7": RAILS[7],
    **{f"stage-{number}": _stage(number, _STAGES) for number in range(STAGE_STEPS)},
    **{f"tint-{number}": tint for number, tint in enumerate(_TINTS)},
}
_DARK = {
    "bg": "#14171a",
    "panel": "#22272d",
    "ink": "#eef1f4",
    "ink2": "#aab3bd",
    "edge": "#5b656f",
    "line": "#7f8b96",
    "switch": "#3d444c",
    "switch-edge": "#8b96a1",
    "device": "#69747f",
    "bundle": "#31373d",
    "accent": "#56B4E9",
    "bad": "#F07A24",
    "bad-ink": "#FF9A52",
    "lit": "#E69F00",
    "casing": "#7a5300",
    "idle": "#2a2f35",
    "bill-nodes": "#8D959D",
    "bill-hall": "#B3BBC3",
    "bill-power": "#C9D0D6",
    "bill-other": "#DFE4E8",
    "on-ours": "#10202b",
    "rail-6": "#B07B45",
    "rail-7": "#E4E7EA",
    **{f"stage-{number}": _stage(number, _STAGES_DARK) for number in range(STAGE_STEPS)},
    **{f"tint-{number}": tint for number, tint in enumerate(_TINTS_DARK)},
}

_RULES: dict[str, str] = {
    "text": "fill:var(--fabric-ink);stroke:none",
    ".soft text": "fill:var(--fabric-ink2)",
    ".bold text": "font-weight:600",
    ".alarm text": "fill:var(--fabric-bad-ink);font-weight:600",
    ".inverse text": "fill:#fff;font-weight:600",
    ".switch": "fill:var(--fabric-switch);stroke:var(--fabric-switch-edge)",
    ".frame": "fill:var(--fabric-panel);stroke:var(--fabric-edge)",
    ".device": "fill:var(--fabric-device)",
    ".node": "fill:none",
    ".idle": "fill:var(--fabric-idle)",
    ".port": "fill:var(--fabric-switch-edge)",
    ".bundle": "fill:var(--fabric-bundle)",
    ".plate": "fill:var(--fabric-bg)",
    ".mesh": "stroke:var(--fabric-edge)",
    ".badge": "fill:var(--fabric-bg);stroke:var(--fabric-switch-edge);stroke-width:1.2",
    ".badge.over": "fill:#B24E00;stroke:none",
    ".nothing": "fill:none;stroke:var(--fabric-edge);stroke-dasharray:5 4",
    ".link": "fill:none;stroke:var(--fabric-line)",
    ".bracket": "fill:none;stroke:var(--fabric-ink)",
    ".gone.switch,.gone.frame,.gone.device": "fill:var(--fabric-bg);stroke:var(--fabric-bad);"
    "stroke-width:1.5;stroke-dasharray:4 3",
    ".gone.link": "stroke:var(--fabric-bad);stroke-dasharray:3 3",
    ".gone.cross": "fill:none;stroke:var(--fabric-bad)",
    ".grid": "stroke:var(--fabric-edge);stroke-opacity:.35",
    ".axis": "stroke:var(--fabric-line)",
    ".dotted": "stroke:var(--fabric-line);stroke-dasharray:2 4",
    ".chart": "fill:none;stroke:var(--fabric-ink2);stroke-linejoin:round",
    ".interval": "fill:var(--fabric-edge);opacity:.35",
    ".limit": "stroke:var(--fabric-bad)",
    ".span": "fill:var(--fabric-bad);opacity:.45",
    ".worse": "fill:var(--fabric-bad);opacity:.09",
    **{
        f"{part}.design-{place}": f"{what}:{colour}"
        for place, colour in enumerate(DESIGN_COLOURS)
        for part, what in (("", "fill"), (".chart", "fill:none;stroke"))
    },
    ".bar.good": "fill:var(--fabric-accent)",
    ".bar.bad": "fill:var(--fabric-bad)",
    ".bar.plain": "fill:var(--fabric-bill-nodes)",
    ".bill-nodes": "fill:var(--fabric-bill-nodes)",
    ".bill-nic": "fill:#F3CF8C",
    ".bill-leaf": "fill:#E69F00",
    ".bill-spine": "fill:#B98305",
    ".bill-links": "fill:#8A6A1F",
    ".bill-hall": "fill:var(--fabric-bill-hall)",
    ".bill-power": "fill:var(--fabric-bill-power)",
    ".bill-other": "fill:var(--fabric-bill-other)",
    ".on-plain text": "fill:#1b1f24;font-weight:600",
    ".on-ours text": "fill:var(--fabric-on-ours);font-weight:600",
    ".accent text": "fill:var(--fabric-accent)",
    ".cell": "stroke:none",
    ".own": "stroke:var(--fabric-ink);stroke-width:2",
    ".hatch-mesh rect": "fill:var(--fabric-bg)",
    ".hatch-mesh path": "fill:none;stroke:var(--fabric-edge);stroke-width:.8;opacity:.75",
    ".hatch-mixed rect": "fill:var(--fabric-bg)",
    ".hatch-mixed path": "fill:none;stroke:var(--fabric-ink2);stroke-width:1",
    **{f".tint-{number}": f"fill:var(--fabric-tint-{number})" for number in range(len(_TINTS))},
    **{
        f".axis-{axis}{part}": f"{what}:{colour}"
        for axis, colour in enumerate((RAILS[0], RAILS[2], RAILS[3]))
        for part, what in (("", "stroke"), (" text", "fill"))
    },
    ".wrap": "stroke-dasharray:4 2.5",
    ".onlight text": "fill:#000",
    ".domain": "fill:var(--fabric-panel);stroke:var(--fabric-ink);stroke-width:2",
    ".gone.bundle": "fill:var(--fabric-bg);stroke:var(--fabric-bad);stroke-dasharray:3 3",
    ".part": "stroke:var(--fabric-bad);stroke-dasharray:3 2",
    **{
        f".rail-{rail}{part}": rule
        for rail, colour in enumerate((*RAILS[:6], "var(--fabric-rail-6)", "var(--fabric-rail-7)"))
        for part, rule in (
            ("", f"fill:{colour}"),
            (".switch", "stroke:var(--fabric-ink)"),
            (".bundle", "opacity:.55"),
            (".plane", "opacity:.17"),
        )
    },
    **{
        f".stage-{stage}{part}": f"{what}:var(--fabric-stage-{stage})"
        for stage in range(STAGE_STEPS)
        for part, what in (("", "fill"), (".bar", "fill:none;stroke"))
    },
    **{
        f".load-{load}{part}": f"{what}:{colour}"
        for load, colour in enumerate(_LOADS)
        for part, what in (("", "fill"), (".link", "fill:none;stroke"))
    },
    ".mixed": "fill:none",
    ".cased": "fill:none;stroke:var(--fabric-casing);stroke-linejoin:round",
    ".lit": "fill:none;stroke:var(--fabric-lit);stroke-linejoin:round",
    ".cased>path:not([data-key])": "stroke-width:3.5",
    ".lit>path:not([data-key])": "stroke-width:2",
}

STYLE = (
    # Every colour in both themes: the color scheme of what surrounds the picture decides.
    ".fabric{"
    + ";".join(
        f"--fabric-{name}:"
        + (light if _DARK[name] == light else f"light-dark({light},{_DARK[name]})")
        for name, light in _LIGHT.items()
    )
    + ";font-family:'Source Sans','Source Sans 3',Arial,Helvetica,"
    "sans-serif;font-variant-numeric:tabular-nums}"
    ".fabric.dark{color-scheme:dark}.fabric.light{color-scheme:light}"
    "@media print{.fabric{color-scheme:light}}"
    + "".join(
        ",".join(f".fabric {part}" for part in selector.split(",")) + f"{{{rule}}}"
        for selector, rule in _RULES.items()
    )
)
"""Rules for everything of class ``fabric``."""
