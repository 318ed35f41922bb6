"""The paper's topologies: who meets at which level, and affinity levels around one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from nest_core.paper.topologies import affinity, network_of
from nest_core.report.figures.levels import level_figure
from nest_core.report.figures.style import Picture, class_bar, shade, stepped_scale

__all__ = ["affinity_picture", "topology_pictures"]

Row = Mapping[str, Any]

_HEIGHT = 380
_INNER, _OUTER = (222, 235, 247), (8, 69, 148)


def topology_pictures(rows: Sequence[Row]) -> tuple[Picture, ...]:
    """The level at which devices meet, for every fabric of figure 8."""
    found = []
    for fabric in dict.fromkeys(row["fabric"] for row in rows):
        picture = level_figure(network_of(fabric))
        found.append(replace(picture, title=f"{fabric}: {picture.title}"))
    return tuple(found)


def affinity_picture(rows: Sequence[Row]) -> Picture:
    """Devices by their hops from the one in the middle, a panel per fabric."""
    fabrics = list(dict.fromkeys(row["fabric"] for row in rows))
    most = max(row["hops"] for row in rows)
    plot = make_subplots(rows=1, cols=len(fabrics), subplot_titles=fabrics)
    colours = ["#FFFFFF"] + [shade(_INNER, _OUTER, hops / most) for hops in range(1, most + 1)]
    for column, fabric in enumerate(fabrics, start=1):
        plot.add_trace(
            go.Heatmap(
                z=affinity(network_of(fabric)) + 1,
                zmin=-0.5,
                zmax=most + 0.5,
                colorscale=stepped_scale(colours),
                showscale=column == 1,
                colorbar=class_bar(range(most + 1), ["itself", *map(str, range(1, most + 1))])
                | {"title": {"text": "hops", "side": "top"}},
                xgap=1,
                ygap=1,
                hovertemplate="%{x}, %{y}: %{z} hops<extra></extra>",
                name=fabric,
            ),
            row=1,
            col=column,
        )
        plot.update_yaxes(scaleanchor=f"x{column if column > 1 else ''}", col=column)
    plot.update_layout(
        template="none",
        height=_HEIGHT,
        dragmode=False,
        margin={"l": 32, "r": 12, "t": 36, "b": 84},
    )
    plot.update_xaxes(showgrid=False, zeroline=False, fixedrange=True, constrain="domain")
    plot.update_yaxes(showgrid=False, zeroline=False, fixedrange=True, constrain="domain")
    told = []
    for fabric in fabrics:
        seen = [row for row in rows if row["fabric"] == fabric]
        remote = sum(row["devices"] for row in seen if row["class"] == "3, remote")
        told.append(f"{100 * remote / sum(row['devices'] for row in seen):.0f} % on {fabric}")
    return Picture(
        title=f"Beyond two hops lie {' and '.join(told)} of the devices",
        subtitle="hops from the device in the middle (white), by position",
        reading="A colour is a level; the paper takes all beyond two hops for one.",
        plot=plot,
    )
