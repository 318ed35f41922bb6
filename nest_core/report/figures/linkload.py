"""Load per link: what the links of every tier carry, class by class, as shares of the iteration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from nest_core.documents.units import capital, humanise_bytes, percent
from nest_core.explain import CLASSES
from nest_core.explain.link_names import link_group_name, tier_name
from nest_core.explain.loads import Loads, TierLoad
from nest_core.report.figures.style import TIME_COLOURS, Picture, empty, frame

__all__ = ["LOAD_SCALE", "linkload_figure"]

LOAD_SCALE = [(0.0, "#F7EBCF"), (0.6, TIME_COLOURS["communication"]), (1.0, "#9C5F00")]
"""From little to much, around the colour of communication."""

_SHORT = {
    "tied": "tied copies",
    "expert_data": "expert gradients",
    "data": "gradients",
    "ep": "experts",
    "etp": "experts' tensors",
    "cp": "context",
    "tp": "tensor",
    "transfers": "pipeline",
}
_ALL = "together"
_ROW, _TOP, _BOTTOM, _LEFT = 46, 36, 8, 148
_LEAST = 5e-6  # of an iteration; less is shown as nothing


def linkload_figure(loads: Loads | None) -> Picture:
    """The busiest link of every tier and the mean of all, outermost tier at the top.

    Parameters
    ----------
    loads : Loads or None
        None: there is no plan.
    """
    tiers = tuple(reversed(loads.tiers)) if loads else ()
    if loads is None or not loads.bytes:
        why = "No plan sends anything" if loads is None else "Nothing is sent"
        return empty(why, "Load per link", _TOP + 4 * _ROW + _BOTTOM, (_LEFT, 8, _TOP, _BOTTOM))
    names = [name for name in reversed(CLASSES) if name in loads.bytes]
    columns = [*(_SHORT[name] for name in names), _ALL]
    rows = [
        (_label(loads, tier, busiest), words, busy, size)
        for tier in tiers
        for busiest, words, busy, size in (
            (True, _words(loads, tier), tier.busiest_busy, tier.busiest_bytes),
            (False, f"mean of {tier.links:,} links", tier.mean_busy, tier.mean_bytes),
        )
    ]
    z = np.array([_along(names, busy) for _, _, busy, _ in rows])
    told = [[_told(value) for value in line] for line in z.tolist()]
    sizes = [[humanise_bytes(value) for value in _along(names, size)] for _, _, _, size in rows]
    hover = [
        [f"{words}: {size}" for size in line]
        for (_, words, _, _), line in zip(rows, sizes, strict=True)
    ]
    cells = {
        "type": "heatmap",
        "x": columns,
        "y": [label for label, _, _, _ in rows],
        "z": 100 * z,
        "zmin": 0.0,
        "zmax": 100 * float(z.max()) or 1.0,
        "text": told,
        "texttemplate": "%{text}",
        "customdata": hover,
        "colorscale": LOAD_SCALE,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{x}: %{text} of the iteration<br>%{customdata}<extra></extra>",
    }
    layout = frame(
        _TOP + _ROW * len(rows) + _BOTTOM,
        (_LEFT, 8, _TOP, _BOTTOM),
        xaxis={"side": "top", "fixedrange": True, "showgrid": False, "ticks": ""},
        yaxis={
            "range": [len(rows) - 0.5, -0.5],
            "ticksuffix": " ",
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
    )
    return Picture(
        _finding(loads),
        "Load per link: share of the iteration that a link is busy at its full rate, by traffic",
        _reading(loads),
        go.Figure(data=[cells], layout=layout),
    )


def _along(names: list[str], values: Mapping[str, float]) -> list[float]:
    """Class by class, and all together."""
    found = [values[name] for name in names]
    return [*found, sum(found)]


def _label(loads: Loads, tier: TierLoad, busiest: bool) -> str:
    name = tier_name(loads.network, tier.level)
    return f"<b>{name}</b>, busiest" if busiest else f"{name}, mean of {tier.links:,}"


def _words(loads: Loads, tier: TierLoad) -> str:
    return f"busiest link, {link_group_name(loads.network, tier.busiest)}"


def _told(value: float) -> str:
    return percent(value) if value > _LEAST else "0"


def _finding(loads: Loads) -> str:
    worst = max(loads.tiers, key=lambda tier: tier.share)
    if worst.share <= _LEAST:
        return "No link is busy for long"
    name = max(worst.busiest_busy, key=lambda key: worst.busiest_busy[key])
    where = tier_name(loads.network, worst.level)
    links = "Links" if loads.network.torus is not None else f"{capital(where)} links"
    what = CLASSES[name].replace("-parallel", "")
    return f"{links} are busy up to {percent(worst.share)}, mostly with {what}"


def _reading(loads: Loads) -> str:
    drawn = " Static ECMP: one draw of the hash." if loads.network.link_map.variants > 1 else ""
    return (
        "Bytes over the links' rate; a tier's links lead up to it and down from it, each way on "
        f"its own. Libraries reach less than the links' rate, so collectives take longer.{drawn}"
    )
