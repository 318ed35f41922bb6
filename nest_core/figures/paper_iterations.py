"""The paper's figures of single iterations: figure 2 by strategy, figure 10 on one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.figures.style import HATCH, TIME_COLOURS, Picture, axis_unit, value_axis
from nest_core.paper.settings import model_name

__all__ = ["iterations_picture", "strategies_picture"]

Row = Mapping[str, Any]

_PARTS = {
    "compute_s": ("compute", TIME_COLOURS["compute"]),
    "recompute_s": ("recomputation", TIME_COLOURS["recomputation"]),
    "communication_s": ("communication", TIME_COLOURS["communication"]),
    "idle_s": ("idle", TIME_COLOURS["idle"]),
}
_LEGEND = {"orientation": "h", "x": 0, "y": 1.13, "yanchor": "bottom"}


def strategies_picture(rows: Sequence[Row]) -> Picture:
    """Shares of an iteration by model and tensor width."""
    names = [
        [model_name(row["model"]) for row in rows],
        [f"tp {row['tp']}" for row in rows],
    ]
    plot = go.Figure()
    for part, (label, colour) in _PARTS.items():
        plot.add_trace(
            go.Bar(
                x=names,
                y=[
                    None if row[part] is None else 100 * row[part] / row["iteration_time_s"]
                    for row in rows
                ],
                name=label,
                marker={"color": colour},
                hovertemplate="%{x}: %{y:.1f} %<extra>" + label + "</extra>",
            )
        )
    plot.update_layout(
        template="none", height=360, barmode="stack", bargap=0.3, dragmode=False,
        showlegend=False, margin={"l": 56, "r": 12, "t": 12, "b": 56},
    )  # fmt: skip
    plot.update_yaxes(**value_axis("% of an iteration"))
    plot.update_xaxes(fixedrange=True)
    shares = [row["communication_share"] for row in rows if row["communication_share"] is not None]
    return Picture(
        title=f"Communication takes {100 * min(shares):.0f} to {100 * max(shares):.0f} % of an "
        "iteration, depending on model and strategy",
        subtitle="parts of an iteration, mean over stages, % ; the best plan of each tensor width",
        reading="The paper's figure is a picture without numbers, so only ours stands here.",
        plot=plot,
        legend=tuple((label, colour) for label, colour in _PARTS.values()),
    )


def iterations_picture(rows: Sequence[Row]) -> Picture:
    """Forward and backward with predicted and with measured collectives."""
    largest = max(row["iteration_time_s"] for row in rows)
    scale, unit = axis_unit(largest, "s")
    ticks = [
        [f"{row['devices']} devices" for row in rows],
        [f"batch {row['batch']}" for row in rows],
    ]
    plot = go.Figure()
    for group, key, hatch, label in (
        ("predicted", "communication_s", "", "all-reduces, predicted"),
        ("measured", "measured_communication_s", HATCH, "all-reduces, measured by NCCL"),
    ):
        compute = [row["compute_s"] / scale for row in rows]
        plot.add_trace(
            go.Bar(
                x=ticks, y=compute, offsetgroup=group, name="compute",
                legendgroup="compute", showlegend=group == "predicted",
                marker={"color": TIME_COLOURS["compute"]},
                hovertemplate="%{y:.3g} " + unit + "<extra>compute</extra>",
            )
        )  # fmt: skip
        plot.add_trace(
            go.Bar(
                x=ticks, y=[row[key] / scale for row in rows], base=compute, offsetgroup=group,
                name=label,
                marker={
                    "color": TIME_COLOURS["communication"], "pattern": {"shape": hatch, "size": 5},
                },
                hovertemplate="%{y:.3g} " + unit + "<extra>" + label + "</extra>",
            )
        )  # fmt: skip
    plot.update_layout(
        template="none", height=340, barmode="group", bargap=0.3, dragmode=False,
        margin={"l": 56, "r": 12, "t": 40, "b": 56}, legend=_LEGEND | {"y": 1.02},
    )  # fmt: skip
    plot.update_yaxes(**value_axis(f"forward and backward, {unit}"))
    plot.update_xaxes(fixedrange=True)
    worst = max(abs(row["difference"]) for row in rows)
    return Picture(
        title=f"Predicted iterations are within {100 * worst:.1f} % of those with measured "
        "collectives",
        subtitle=f"forward and backward of one batch of {model_name(rows[0]['model'])}, {unit}",
        reading="Each pair has the same compute; hatched are NCCL's measured all-reduces.",
        plot=plot,
    )
