"""The paper's figures beside ours: throughputs, relative and as shares of the optimum; iterations.

Figure 2 divides iterations by strategy, figure 10 those on one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from nest_core.paper import Reproduction
from nest_core.paper.cases import FIGURES, PLANNERS
from nest_core.paper.settings import cluster_name, model_name
from nest_core.report.figures.levelwise import fall_figure
from nest_core.report.figures.paper_network import affinity_picture, topology_pictures
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    HATCH,
    LABEL_PX,
    LIMIT,
    MUTED,
    TIME_COLOURS,
    Picture,
    axis_unit,
    frame,
    value_axis,
)

__all__ = ["iterations_picture", "models_of", "paper_pictures", "strategies_picture"]

Row = Mapping[str, Any]

# Baselines are muted: they differ by marker, ours by colour.
_SYMBOLS = {
    "manual": "square",
    "mcmc": "x-thin-open",
    "alpa_e": "triangle-up",
    "phaze": "circle-open",
    "mist": "diamond-open",
}
_BARS = {
    "published": ("printed", "rgba(0, 0, 0, 0)", ""),
    "as_published": ("as published, computed here (stages reversed)", MUTED, HATCH),
    "right_order": ("in the right order, computed here", MUTED, ""),
}
_LEGEND = {"orientation": "h", "x": 0, "y": 1.13, "yanchor": "bottom", "font": {"size": LABEL_PX}}


def models_of(found: Reproduction) -> tuple[str, ...]:
    """Models that are shown one by one; none where all stand on one axis, or nothing is drawn."""
    if found.name == "algorithm1":
        return tuple(dict.fromkeys(row["model"] for row in found.rows if row["ratio"] is not None))
    figure = FIGURES.get(found.name)
    if figure is None or figure.axis == "model":
        return ()
    return tuple(dict.fromkeys(cell.model for cell in figure.cells))


def paper_pictures(found: Reproduction, model: str = "") -> tuple[Picture, ...]:
    """The pictures of a reproduction; none for tables, and where nothing can be computed.

    Parameters
    ----------
    found : Reproduction
    model : str
        One of `models_of`, where there are any.
    """
    if found.name in FIGURES:
        figure = FIGURES[found.name]
        if figure.axis == "model":
            devices = figure.cells[0].devices
            rows = [row for row in found.rows if row["devices"] == devices]
        else:
            rows = [row for row in found.rows if row["model"] == model]
        return (_beside(found, rows, figure.axis), _shares(found, rows, figure.axis))
    if found.costs == "published":
        return ()
    if found.name == "algorithm1":
        rows = [row for row in found.rows if row["model"] == model and row["ratio"] is not None]
        return tuple(map(_fall, rows))
    if found.name == "figure2":
        return (strategies_picture(found.rows),)
    if found.name == "figure8":
        return topology_pictures(found.rows)
    if found.name == "figure9":
        return (affinity_picture(found.rows),)
    if found.name == "figure10":
        return (iterations_picture(found.rows),)
    return ()


def _fall(row: Row) -> Picture:
    nest = row["nest"]
    picture = fall_figure(
        nest["iteration_time_s"],
        row["iteration_time_s"],
        nest["promised_s"],
        nest["waterfall"] or {},
        nest["origin"],
    )
    return replace(picture, title=f"{cluster_name(row['cluster'])}: {picture.title}")


def _ticks(rows: Sequence[Row], axis: str) -> list[str]:
    if axis == "model":
        return [model_name(row["model"]) for row in rows]
    return [f"{row[axis]:,}" for row in rows]


def _axis_title(rows: Sequence[Row], axis: str) -> str:
    if axis == "model":
        return f"model, {rows[0]['devices']:,} devices"
    return "devices" if axis == "devices" else f"micro-batch, {rows[0]['devices']:,} devices"


def _beside(found: Reproduction, rows: Sequence[Row], axis: str) -> Picture:
    """Relative throughputs, in print and here, on one axis."""
    names = tuple(rows[0]["baselines"])
    ticks = _ticks(rows, axis)
    here = "computed, right order" if found.costs == "published" else "computed, own costs"
    plot = make_subplots(
        rows=1,
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        subplot_titles=["printed", here],
    )
    lines = "markers" if axis == "model" else "lines+markers"
    shown: list[float] = []
    for column, (ours, theirs) in enumerate(
        (("published", "published"), ("ours", "right_order")), start=1
    ):
        values = [row[ours] for row in rows]
        plot.add_trace(
            _line(ticks, values, "NEST / ours", lines, column, ACCENT, "circle"), row=1, col=column
        )
        for name in names:
            plot.add_trace(
                _line(
                    ticks,
                    [row["baselines"][name][theirs] for row in rows],
                    PLANNERS[name],
                    lines,
                    column,
                    MUTED,
                    _SYMBOLS[name],
                ),
                row=1,
                col=column,
            )
        shown += [value for value in values if value]
        if not any(values):
            plot.add_annotation(
                x=0.5,
                y=0.5,
                xref="x domain",
                yref="y domain",
                showarrow=False,
                text="a picture only: no numbers are printed",
                row=1,
                col=column,
            )
    plot.update_layout(frame(340, (56, 12, 72, 44), showlegend=True, legend=_LEGEND))
    levels = _log_ticks(shown)
    plot.update_yaxes(
        type="log",
        tickvals=levels,
        ticktext=[f"{level:g}" for level in levels],
        tickfont_size=LABEL_PX,
        gridcolor=FAINT,
        gridwidth=0.5,
        zeroline=False,
        fixedrange=True,
    )
    plot.update_yaxes(title_text="relative throughput", col=1)
    plot.update_xaxes(
        title_text=_axis_title(rows, axis),
        type="category",
        fixedrange=True,
        categoryorder="array",
        categoryarray=ticks,
        tickfont_size=LABEL_PX,
        showgrid=False,
        range=[-0.5, len(ticks) - 0.5],
    )
    return Picture(
        title=_beside_finding(found, rows),
        subtitle="throughput, 1 is the first feasible manual run; the axis is logarithmic",
        reading="A planner without a mark has no plan that fits there, or none is printed.",
        plot=plot,
    )


def _log_ticks(values: Sequence[float]) -> list[float]:
    """Ticks of a logarithmic axis: finer where the values span little."""
    narrow = not values or max(values) < 5 * min(values)
    steps = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7) if narrow else (1, 2, 5)
    return [scale * step for scale in (0.01, 0.1, 1.0, 10.0) for step in steps]


def _line(
    ticks: list[str],
    values: Sequence[float | None],
    name: str,
    mode: str,
    column: int,
    colour: str,
    symbol: str,
) -> go.Scatter:
    return go.Scatter(
        x=ticks,
        y=list(values),
        name=name,
        mode=mode,
        legendgroup=name,
        showlegend=column == 1,
        line={"color": colour, "width": 2.5 if colour == ACCENT else 1.2},
        marker={
            "color": colour,
            "symbol": symbol,
            "size": 13 if colour == ACCENT else 8,
            "line": {"color": colour, "width": 1.5},
        },
        hovertemplate="%{x}: %{y:.2f}<extra>" + name + "</extra>",
    )


def _beside_finding(found: Reproduction, rows: Sequence[Row]) -> str:
    if found.costs == "published":
        shown = [row for row in rows if row["published"] is not None and row["ours"] is not None]
        if not shown:
            fits = sum(row["ours"] is not None for row in rows)
            return f"Nothing is printed to compare with; {fits} of {len(rows)} cells fit"
        worst = max(abs(row["ours"] - row["published"]) for row in shown)
        return (
            f"Our optimum is NEST's in {_all(len(shown))}, within {worst:.3f}"
            if (worst < 0.01)
            else f"Our optimum is off by {worst:.2f} in a printed cell"
        )
    told = []
    for ours, theirs, where in (
        ("ours", "right_order", "here"),
        ("published", "published", "in print"),
    ):
        gains = [
            row[ours] / row["baselines"]["manual"][theirs]
            for row in rows
            if row[ours] and row["baselines"]["manual"][theirs]
        ]
        if gains:
            low, high = f"{min(gains):.2f}", f"{max(gains):.2f}"
            told.append(f"{low if low == high else f'{low} to {high}'} × Manual {where}")
    if not told:
        return "No manual placement fits here, and none is printed"
    return f"The optimum is {', '.join(told)}"


def _all(cells: int) -> str:
    return "the one printed cell" if cells == 1 else f"all {cells} printed cells"


def _shares(found: Reproduction, rows: Sequence[Row], axis: str) -> Picture:
    """Every planner's throughput as a share of the optimum, in print and priced here."""
    names = tuple(rows[0]["baselines"])
    ticks = _ticks(rows, axis)
    bars = {
        key: bar
        for key, bar in _BARS.items()
        if found.costs == "published" or key != "as_published"
    }
    plot = make_subplots(
        rows=1,
        cols=len(names),
        shared_yaxes=True,
        horizontal_spacing=0.02,
        subplot_titles=[PLANNERS[name] for name in names],
    )
    for column, name in enumerate(names, start=1):
        for key, (label, colour, hatch) in bars.items():
            text = "priced with own costs" if found.costs == "own" and colour == MUTED else label
            plot.add_trace(
                go.Bar(
                    x=ticks,
                    y=[_share(row, name, key) for row in rows],
                    name=text,
                    legendgroup=key,
                    showlegend=column == 1,
                    marker={
                        "color": colour,
                        "line": {"color": MUTED, "width": 1.2},
                        "pattern": {"shape": hatch, "size": 5},
                    },
                    hovertemplate="%{x}: %{y:.1f} % of the optimum<extra>" + text + "</extra>",
                ),
                row=1,
                col=column,
            )
        for position, row in enumerate(rows):
            if _misfits(row, name, bars):
                plot.add_annotation(
                    x=position,
                    y=5,
                    text="X",
                    showarrow=False,
                    font={"color": LIMIT, "size": LABEL_PX},
                    hovertext=row["baselines"][name].get("right_order_reason", ""),
                    row=1,
                    col=column,
                )
        plot.add_hline(y=100, line={"color": ACCENT, "width": 2}, row=1, col=column)
    margin = (56, 12, 72, 96 if axis == "model" else 44)
    layout = frame(340, margin, barmode="group", bargap=0.25, showlegend=True, legend=_LEGEND)
    plot.update_layout(layout)
    plot.update_yaxes(**value_axis(), tickfont_size=LABEL_PX)
    plot.update_yaxes(title_text="% of the optimum", col=1)
    plot.update_xaxes(
        type="category",
        fixedrange=True,
        categoryorder="array",
        categoryarray=ticks,
        tickfont_size=LABEL_PX,
        title_text="" if axis == "model" else _axis_title(rows, axis),
        tickangle=-90 if axis == "model" else 0,
    )
    kind = "the artifact's own costs" if found.costs == "published" else "own costs"
    return Picture(
        title=_share_finding(found, rows),
        subtitle=f"throughput under {kind}, % of the proven optimum (blue line); "
        "printed: % of NEST's",
        reading="X: no plan fits, in print or here. Nothing: neither printed nor to be priced.",
        plot=plot,
    )


def _misfits(row: Row, name: str, keys: Iterable[str]) -> bool:
    """Whether a planner has no plan that fits, in print and here; not where none is known."""
    reason = str(row["baselines"][name].get("right_order_reason", ""))
    known = not reason.startswith(("Placement:", "Instance:"))
    return known and all(_share(row, name, key) is None for key in keys)


def _share(row: Row, name: str, key: str) -> float | None:
    value = row["baselines"][name][key]
    whole = row["published"] if key == "published" else row["ours"]
    return None if value is None or not whole else 100 * value / whole


def _share_finding(found: Reproduction, rows: Sequence[Row]) -> str:
    """What Manual and the best baseline reach, averaged over the cells they fit."""
    manual = {key: _mean([_share(row, "manual", key) for row in rows]) for key in _BARS}
    best = _mean(
        [
            max(
                filter(None, (_share(row, n, "right_order") for n in row["baselines"])),
                default=None,
            )
            for row in rows
        ]
    )
    if manual["right_order"] is None:
        return "No manual placement fits; the best baseline reaches " + _points(best)
    beside = (
        f"{_points(manual['as_published'])} as published"
        if found.costs == "published"
        else f"{_points(manual['published'])} in print"
    )
    where = "in its right order" if found.costs == "published" else "with own costs"
    return (
        f"Manual reaches {_points(manual['right_order'])} of the optimum {where}, {beside}, "
        f"where it fits; the best baseline of each cell {_points(best)}"
    )


def _points(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.0f} %"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


_RECOMPUTED = {"none": "", "full": " rec."}

_PARTS = {
    "compute_s": ("compute", TIME_COLOURS["compute"]),
    "recompute_s": ("recomputation", TIME_COLOURS["recomputation"]),
    "communication_s": ("communication", TIME_COLOURS["communication"]),
    "idle_s": ("idle", TIME_COLOURS["idle"]),
}


def strategies_picture(rows: Sequence[Row]) -> Picture:
    """Parts of an iteration, in % of the model's shortest, by tensor width and recomputation."""
    shortest = {
        model: min(
            (
                row["iteration_time_s"]
                for row in rows
                if row["model"] == model and row["iteration_time_s"] is not None
            ),
            default=None,
        )
        for model in {row["model"] for row in rows}
    }
    names = [
        [model_name(row["model"]) for row in rows],
        [f"tp {row['tp']}{_RECOMPUTED[row['recompute']]}" for row in rows],
    ]
    bars = [
        {
            "type": "bar",
            "x": names,
            "y": [
                None if row[part] is None else 100 * row[part] / shortest[row["model"]]
                for row in rows
            ],
            "name": label,
            "marker": {"color": colour},
            "hovertemplate": "%{x}: %{y:.1f} %<extra>" + label + "</extra>",
        }
        for part, (label, colour) in _PARTS.items()
    ]
    layout = frame(
        400,
        (56, 12, 12, 104),
        barmode="stack",
        bargap=0.3,
        xaxis={"fixedrange": True},
        yaxis=value_axis("% of the shortest iteration"),
    )
    shares = [row["communication_share"] for row in rows if row["communication_share"] is not None]
    return Picture(
        title=f"Communication takes {100 * min(shares):.0f} to {100 * max(shares):.0f} % of an "
        "iteration, depending on model and strategy",
        subtitle="parts of an iteration, mean over stages, % of the model's shortest; the best "
        "plan of each tensor width without recomputation and with that of every layer (rec.)",
        reading="No bar: nothing fits. The paper's figure is a picture without numbers, so only "
        "ours stands here.",
        plot=go.Figure(data=bars, layout=layout),
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
    compute = [row["compute_s"] / scale for row in rows]
    bars: list[dict[str, Any]] = []
    for group, key, hatch, label in (
        ("predicted", "communication_s", "", "all-reduces, predicted"),
        ("measured", "measured_communication_s", HATCH, "all-reduces, measured by NCCL"),
    ):
        shared = {"type": "bar", "x": ticks, "offsetgroup": group}
        bars += [
            shared
            | {
                "y": compute,
                "name": "compute",
                "legendgroup": "compute",
                "showlegend": group == "predicted",
                "marker": {"color": TIME_COLOURS["compute"]},
                "hovertemplate": "%{y:.3g} " + unit + "<extra>compute</extra>",
            },
            shared
            | {
                "y": [row[key] / scale for row in rows],
                "base": compute,
                "name": label,
                "marker": {
                    "color": TIME_COLOURS["communication"],
                    "pattern": {"shape": hatch, "size": 5},
                },
                "hovertemplate": "%{y:.3g} " + unit + "<extra>" + label + "</extra>",
            },
        ]
    layout = frame(
        340,
        (56, 12, 40, 56),
        barmode="group",
        bargap=0.3,
        showlegend=True,
        xaxis={"fixedrange": True},
        yaxis=value_axis(f"forward and backward, {unit}"),
    )
    worst = max(abs(row["difference"]) for row in rows)
    return Picture(
        title=f"Predicted iterations are within {100 * worst:.1f} % of those with measured "
        "collectives",
        subtitle=f"forward and backward of one batch of {model_name(rows[0]['model'])}, {unit}",
        reading="Each pair has the same compute; hatched are NCCL's measured all-reduces.",
        plot=go.Figure(data=bars, layout=layout),
    )
