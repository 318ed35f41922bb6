"""Colours and strokes of pictures of fabrics, light and dark, as one style sheet.

Okabe and Ito's colours, without vermilion for rails, which says failure; two more for the seventh
and eighth rail. Stages are ordered, so their colours are a ramp of one hue. All text has a contrast
of at least 4.5 : 1 on what it stands on.
"""

from __future__ import annotations

__all__ = ["RAILS", "STAGE_STEPS", "STYLE"]

RAILS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#8A5A2B", "#2B3038")
"""Rail 0 to 7; in the dark the last two are lighter."""

STAGE_STEPS = 12
"""Steps of the ramp along which stages are coloured."""

_STAGES = ((46, 27, 87), (84, 53, 140), (123, 85, 184), (164, 132, 216), (188, 164, 230))
_STAGES_DARK = ((96, 70, 170), (122, 92, 196), (152, 122, 216), (184, 160, 234), (222, 208, 248))
_LOADS = ("#C9CFD6", "#E3D9BD", "#EFC877", "#E69F00", "#DD7F00", "#D55E00")

TINTS = ("#fdf4e3", "#fae5bb", "#f5d38c", "#edbd57", "#E69F00")
"""Cells of the cost matrix, from the fewest seconds to the most; dark ink stands on each."""

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
}


def _properties() -> str:
    """Every colour in both themes: the color scheme of what surrounds the picture decides."""
    return ";".join(
        f"--fabric-{name}:"
        + (light if _DARK[name] == light else f"light-dark({light},{_DARK[name]})")
        for name, light in _LIGHT.items()
    )


def _rail(number: int) -> str:
    return f"var(--fabric-rail-{number})" if number > 5 else RAILS[number]


def _stage(number: int, ramp: tuple[tuple[int, int, int], ...]) -> str:
    """A colour of the ramp, dark to light."""
    place = number / (STAGE_STEPS - 1) * (len(ramp) - 1)
    low = min(int(place), len(ramp) - 2)
    mixed = (
        round(a + (place - low) * (b - a)) for a, b in zip(ramp[low], ramp[low + 1], strict=True)
    )
    return "#{:02x}{:02x}{:02x}".format(*mixed)


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
    ".slow.switch": "stroke:var(--fabric-bad);stroke-width:1.5",
    ".slow.link": "stroke:var(--fabric-bad)",
    ".slow.bundle": "fill:var(--fabric-bad)",
    ".grid": "stroke:var(--fabric-edge);stroke-opacity:.35",
    ".axis": "stroke:var(--fabric-line)",
    ".dotted": "stroke:var(--fabric-line);stroke-dasharray:2 4",
    ".chart": "fill:none;stroke:var(--fabric-ink2);stroke-linejoin:round",
    ".chart.rival": "stroke:var(--fabric-ink)",
    ".chart.ours": "stroke:var(--fabric-accent)",
    ".interval": "fill:var(--fabric-edge);opacity:.35",
    ".limit": "stroke:var(--fabric-bad)",
    ".span": "fill:var(--fabric-bad);opacity:.45",
    ".worse": "fill:var(--fabric-bad);opacity:.09",
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
    ".cell-text text": "fill:#1b1f24",
    ".hatch-mesh rect": "fill:var(--fabric-bg)",
    ".hatch-mesh path": "fill:none;stroke:var(--fabric-edge);stroke-width:.8;opacity:.75",
    ".hatch-slow rect,.hatch-mixed rect": "fill:var(--fabric-bg)",
    ".hatch-slow path": "fill:none;stroke:var(--fabric-bad);stroke-width:1.4",
    ".hatch-mixed path": "fill:none;stroke:var(--fabric-ink2);stroke-width:1",
}
_RULES |= {f".tint-{number}": f"fill:{tint}" for number, tint in enumerate(TINTS)}
for _axis, _colour in enumerate((RAILS[0], RAILS[2], RAILS[3])):
    _RULES |= {f".axis-{_axis}": f"stroke:{_colour}", f".axis-{_axis} text": f"fill:{_colour}"}
_RULES |= {
    ".wrap": "stroke-dasharray:4 2.5",
    ".onlight text": "fill:#000",
    ".domain": "fill:var(--fabric-panel);stroke:var(--fabric-ink);stroke-width:2",
    ".gone.bundle": "fill:var(--fabric-bg);stroke:var(--fabric-bad);stroke-dasharray:3 3",
    ".part": "stroke:var(--fabric-bad);stroke-dasharray:3 2",
}
for _number in range(8):
    _RULES |= {
        f".rail-{_number}": f"fill:{_rail(_number)}",
        f".rail-{_number}.switch": "stroke:var(--fabric-ink)",
        f".rail-{_number}.bundle": "opacity:.55",
        f".rail-{_number}.plane": "opacity:.17",
    }
_LIGHT |= {f"stage-{number}": _stage(number, _STAGES) for number in range(STAGE_STEPS)}
_DARK |= {f"stage-{number}": _stage(number, _STAGES_DARK) for number in range(STAGE_STEPS)}
for _number in range(STAGE_STEPS):
    _RULES |= {
        f".stage-{_number}": f"fill:var(--fabric-stage-{_number})",
        f".stage-{_number}.bar": f"fill:none;stroke:var(--fabric-stage-{_number})",
    }
for _number, _colour in enumerate(_LOADS):
    _RULES |= {
        f".load-{_number}": f"fill:{_colour}",
        f".load-{_number}.link": f"fill:none;stroke:{_colour}",
    }
_RULES |= {
    ".mixed": "fill:none",
    ".cased": "fill:none;stroke:var(--fabric-casing);stroke-linejoin:round",
    ".lit": "fill:none;stroke:var(--fabric-lit);stroke-linejoin:round",
    ".cased>path:not([data-key])": "stroke-width:3.5",
    ".lit>path:not([data-key])": "stroke-width:2",
}

STYLE = (
    f".fabric{{{_properties()};font-family:'Source Sans','Source Sans 3',Arial,Helvetica,"
    "sans-serif;font-variant-numeric:tabular-nums}"
    ".fabric.dark{color-scheme:dark}.fabric.light{color-scheme:light}"
    "@media print{.fabric{color-scheme:light}}"
    + "".join(
        ",".join(f".fabric {part}" for part in selector.split(",")) + f"{{{rule}}}"
        for selector, rule in _RULES.items()
    )
)
"""Rules for everything of class ``fabric``."""
