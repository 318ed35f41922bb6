"""The paper's figures beside ours: throughputs, relative and as shares of the optimum; iterations.

Figure 2 divides iterations by strategy, figure 8 shows who meets at which level, figure 9 affinity
levels around one device, figure 10 iterations on one node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from nest_core.documents import at_most_percent, grouped
from nest_core.paper import Reproduction
from nest_core.paper.cases import FIGURES, PLANNERS
from nest_core.paper.reproduction import cluster_name, model_name
from nest_core.paper.topologies import affinity, network_of
from nest_core.report.figures.levels import level_figure
from nest_core.report.figures.levelwise import fall_figure
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    HATCH,
    LABEL_PX,
    LIMIT,
    MUTED,
    TIME_COLOURS,
    Chart,
    Trace,
    axis_unit,
    bare_axis,
    class_bar,
    frame,
    plot,
    shade,
    stepped_scale,
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
_NEAR, _FAR = (222, 235, 247), (8, 69, 148)
"""Colours of one hop, and of the most."""


def models_of(reproduction: Reproduction) -> tuple[str, ...]:
    """Return models that are shown one by one; none where all stand on one axis."""
    if reproduction.name == "algorithm1":
        return tuple(
            dict.fromkeys(row["model"] for row in reproduction.rows if row["ratio"] is not None)
        )
    figure = FIGURES.get(reproduction.name)
    cells = () if figure is None or figure.axis == "model" else figure.cells
    return tuple(dict.fromkeys(cell.model for cell in cells))


def paper_pictures(reproduction: Reproduction, model: str = "") -> tuple[Chart, ...]:
    """Return the pictures of a reproduction; none for tables, and where nothing can be computed.

    Parameters
    ----------
    reproduction : Reproduction
    model : str
        One of `models_of`, where there are any.
    """
    name, rows = reproduction.name, reproduction.rows
    if name in FIGURES:
        figure = FIGURES[name]
        by_model = figure.axis == "model"
        same, value = ("devices", figure.cells[0].devices) if by_model else ("model", model)
        chosen = [row for row in rows if row[same] == value]
        is_published = reproduction.costs == "published"
        return tuple(draw(is_published, chosen, figure.axis) for draw in (_relative, _shares))
    if reproduction.costs == "published":
        return ()
    if name == "algorithm1":
        return tuple(
            _fall(row) for row in rows if row["model"] == model and row["ratio"] is not None
        )
    drawn: dict[str, Callable[[Sequence[Row]], tuple[Chart, ...]]] = {
        "figure2": lambda rows: (strategies_picture(rows),),
        "figure8": lambda rows: tuple(
            replace(picture, title=f"{fabric}: {picture.title}")
            for fabric in dict.fromkeys(row["fabric"] for row in rows)
            for picture in (level_figure(network_of(fabric)),)
        ),
        "figure9": lambda rows: (_affinity(rows),),
        "figure10": lambda rows: (iterations_picture(rows),),
    }
    return drawn[name](rows) if name in drawn else ()


def _fall(row: Row) -> Chart:
    nest = row["nest"]
    picture = fall_figure(
        nest["iteration_time_s"],
        row["iteration_time_s"],
        nest["promised_s"],
        nest["waterfall"] or {},
        nest["origin"],
    )
    return replace(picture, title=f"{cluster_name(row['cluster'])}: {picture.title}")


def _category_axis(rows: Sequence[Row], axis: str) -> tuple[list[str], dict[str, Any]]:
    """Return a row's place on an axis of categories, and the axis with its title."""
    devices = f"{rows[0]['devices']:,} devices"
    titles = {"model": f"model, {devices}", "devices": "devices"}
    ticks = [model_name(row["model"]) if axis == "model" else f"{row[axis]:,}" for row in rows]
    return ticks, {
        "title_text": titles.get(axis, f"micro-batch, {devices}"),
        "type": "category",
        "fixedrange": True,
        "categoryorder": "array",
        "categoryarray": ticks,
        "tickfont_size": LABEL_PX,
    }


def _relative(is_published: bool, rows: Sequence[Row], axis: str) -> Chart:
    """Draw relative throughputs, in print and here, on one axis."""
    ticks, x_axis = _category_axis(rows, axis)
    figure = make_subplots(
        rows=1,
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        subplot_titles=[
            "printed",
            "computed, right order" if is_published else "computed, own costs",
        ],
    ).update_annotations(font_size=LABEL_PX)
    mode = "markers" if axis == "model" else "lines+markers"
    best: list[float] = []
    for column, (optimum, baseline) in enumerate(
        (("published", "published"), ("ours", "right_order")), start=1
    ):
        values = [row[optimum] for row in rows]
        best += [value for value in values if value]
        lines = [
            ("NEST / ours", values, "circle"),
            *(
                (
                    PLANNERS[name],
                    [row["baselines"][name][baseline] for row in rows],
                    _SYMBOLS[name],
                )
                for name in rows[0]["baselines"]
            ),
        ]
        for place, (name, rates, symbol) in enumerate(lines):
            colour, width, size = (MUTED, 1.2, 8) if place else (ACCENT, 2.5, 13)
            figure.add_trace(
                go.Scatter(
                    x=ticks,
                    y=list(rates),
                    name=name,
                    mode=mode,
                    legendgroup=name,
                    showlegend=column == 1,
                    line={"color": colour, "width": width},
                    marker={
                        "color": colour,
                        "symbol": symbol,
                        "size": size,
                        "line": {"color": colour, "width": 1.5},
                    },
                    hovertemplate="%{x}: %{y:.2f}<extra>" + name + "</extra>",
                ),
                row=1,
                col=column,
            )
        if not any(values):
            figure.add_annotation(
                x=0.5,
                y=0.5,
                xref="x domain",
                yref="y domain",
                showarrow=False,
                text="a picture only: no numbers are printed",
                row=1,
                col=column,
            )
    # Finer ticks where the values span little.
    narrow = not best or max(best) < 5 * min(best)
    steps = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7) if narrow else (1, 2, 5)
    levels = [scale * step for scale in (0.01, 0.1, 1.0, 10.0) for step in steps]
    figure.update_layout(frame(340, (56, 12, 72, 44), showlegend=True, legend=_LEGEND))
    figure.update_yaxes(
        type="log",
        tickvals=levels,
        ticktext=[f"{level:g}" for level in levels],
        tickfont_size=LABEL_PX,
        gridcolor=FAINT,
        gridwidth=0.5,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_yaxes(title_text="relative throughput", col=1)
    figure.update_xaxes(**x_axis, showgrid=False, range=[-0.5, len(ticks) - 0.5])
    return Chart(
        _relative_finding(is_published, rows),
        "throughput, 1 is the first feasible manual run; the axis is logarithmic",
        "A planner without a mark has no plan that fits there, or none is printed.",
        figure,
    )


def _relative_finding(is_published: bool, rows: Sequence[Row]) -> str:
    if is_published:
        both = [row for row in rows if row["published"] is not None and row["ours"] is not None]
        if not both:
            fits = sum(row["ours"] is not None for row in rows)
            return f"Nothing is printed to compare with; {fits} of {len(rows)} cells fit"
        worst = max(abs(row["ours"] - row["published"]) for row in both)
        if worst >= 0.01:
            return f"Our optimum is off by {worst:.2f} in a printed cell"
        cells = "the one printed cell" if len(both) == 1 else f"all {len(both)} printed cells"
        return f"Our optimum is NEST's in {cells}, within {worst:.3f}"
    parts = []
    for optimum, baseline, where in (
        ("ours", "right_order", "here"),
        ("published", "published", "in print"),
    ):
        manual = [(row[optimum], row["baselines"]["manual"][baseline]) for row in rows]
        gains = [rate / slower for rate, slower in manual if rate and slower]
        if gains:
            ends = dict.fromkeys((f"{min(gains):.2f}", f"{max(gains):.2f}"))
            parts.append(f"{' to '.join(ends)} × Manual {where}")
    return (
        "No manual placement fits here, and none is printed"
        if not parts
        else f"The optimum is {', '.join(parts)}"
    )


def _shares(is_published: bool, rows: Sequence[Row], axis: str) -> Chart:
    """Draw every planner's throughput as a share of the optimum, in print and priced here."""
    names = tuple(rows[0]["baselines"])
    ticks, x_axis = _category_axis(rows, axis)
    drawn = [key for key in _BARS if is_published or key != "as_published"]
    figure = make_subplots(
        rows=1,
        cols=len(names),
        shared_yaxes=True,
        horizontal_spacing=0.02,
        subplot_titles=[PLANNERS[name] for name in names],
    ).update_annotations(font_size=LABEL_PX)
    for column, name in enumerate(names, start=1):
        for key in drawn:
            text, colour, hatch = _BARS[key]
            if not is_published and colour == MUTED:
                text = "priced with own costs"
            figure.add_trace(
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
            reason = str(row["baselines"][name].get("right_order_reason", ""))
            # Where no plan is known, none is said to be too large.
            is_known = not reason.startswith(("Placement:", "Instance:"))
            if is_known and all(_share(row, name, key) is None for key in drawn):
                figure.add_annotation(
                    x=position,
                    y=5,
                    text="X",
                    showarrow=False,
                    font={"color": LIMIT, "size": LABEL_PX},
                    hovertext=reason,
                    row=1,
                    col=column,
                )
        figure.add_hline(y=100, line={"color": ACCENT, "width": 2}, row=1, col=column)
    is_tall = axis == "model"
    margin = (56, 12, 72, 96 if is_tall else 44)
    figure.update_layout(
        frame(340, margin, barmode="group", bargap=0.25, showlegend=True, legend=_LEGEND)
    )
    figure.update_yaxes(**value_axis(), tickfont_size=LABEL_PX)
    figure.update_yaxes(title_text="% of the optimum", col=1)
    turned = {"title_text": "", "tickangle": -90} if is_tall else {"tickangle": 0}
    figure.update_xaxes(**(x_axis | turned))
    kind = "the artifact's own costs" if is_published else "own costs"
    return Chart(
        _share_finding(is_published, rows),
        f"throughput under {kind}, % of the proven optimum (blue line); printed: % of NEST's",
        "X: no plan fits, in print or here. Nothing: neither printed nor to be priced.",
        figure,
    )


def _share(row: Row, name: str, key: str) -> float | None:
    value = row["baselines"][name][key]
    optimum = row["published"] if key == "published" else row["ours"]
    return None if value is None or not optimum else 100 * value / optimum


def _share_finding(is_published: bool, rows: Sequence[Row]) -> str:
    """Return what Manual and the best baseline reach, averaged over the cells they fit."""
    shares = [[_share(row, name, "right_order") for name in row["baselines"]] for row in rows]
    best = _points([max(filter(None, cell), default=None) for cell in shares])
    manual = {key: [_share(row, "manual", key) for row in rows] for key in _BARS}
    if not any(share is not None for share in manual["right_order"]):
        return f"No manual placement fits; the best baseline reaches {best}"
    where, key, other = (
        ("in its right order", "as_published", "as published")
        if is_published
        else ("with own costs", "published", "in print")
    )
    return (
        f"Manual reaches {_points(manual['right_order'])} of the optimum {where}, "
        f"{_points(manual[key])} {other}, where it fits; the best baseline of each cell {best}"
    )


def _points(values: Sequence[float | None]) -> str:
    """Return the mean of shares."""
    shares = [value for value in values if value is not None]
    return f"{sum(shares) / len(shares):.0f} %" if shares else "nothing"


_PARTS = {
    "compute_s": ("compute", TIME_COLOURS["compute"]),
    "recompute_s": ("recomputation", TIME_COLOURS["recomputation"]),
    "communication_s": ("communication", TIME_COLOURS["communication"]),
    "idle_s": ("idle", TIME_COLOURS["idle"]),
}


def strategies_picture(rows: Sequence[Row]) -> Chart:
    """Draw parts of an iteration, % of the model's shortest, by tensor width and recomputation."""
    feasible = [row for row in rows if row["iteration_time_s"] is not None]
    times = grouped((row["model"], row["iteration_time_s"]) for row in feasible)
    shortest = {model: min(times_s) for model, times_s in times.items()}
    names = [
        [model_name(row["model"]) for row in rows],
        [f"tp {row['tp']}{' rec.' if row['recompute'] == 'full' else ''}" for row in rows],
    ]
    drawn = [
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
    shares = [row["communication_share"] for row in rows if row["communication_share"] is not None]
    return Chart(
        f"Communication takes {100 * min(shares):.0f} to {100 * max(shares):.0f} % of an "
        "iteration, depending on model and strategy",
        "parts of an iteration, mean over stages, % of the model's shortest; the best "
        "plan of each tensor width without recomputation and with that of every layer (rec.)",
        "No bar: nothing fits. The paper's figure is a picture without numbers, so only "
        "ours stands here.",
        plot(
            drawn,
            400,
            (56, 12, 12, 104),
            barmode="stack",
            bargap=0.3,
            xaxis={"fixedrange": True},
            yaxis=value_axis("% of the shortest iteration"),
        ),
        tuple(_PARTS.values()),
    )


def iterations_picture(rows: Sequence[Row]) -> Chart:
    """Draw forward and backward with predicted and with measured collectives."""
    scale, unit = axis_unit(max(row["iteration_time_s"] for row in rows), "s")
    ticks = [
        [f"{row['devices']} devices" for row in rows],
        [f"batch {row['batch']}" for row in rows],
    ]
    compute = [row["compute_s"] / scale for row in rows]
    drawn: list[Trace] = []
    for group, key, hatch, label in (
        ("predicted", "communication_s", "", "all-reduces, predicted"),
        ("measured", "measured_communication_s", HATCH, "all-reduces, measured by NCCL"),
    ):
        shared = {"type": "bar", "x": ticks, "offsetgroup": group}
        pattern = {"shape": hatch, "size": 5}
        drawn += [
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
                "marker": {"color": TIME_COLOURS["communication"], "pattern": pattern},
                "hovertemplate": "%{y:.3g} " + unit + "<extra>" + label + "</extra>",
            },
        ]
    worst = max(abs(row["difference"]) for row in rows)
    return Chart(
        f"Predicted iterations are within {at_most_percent(worst)} of those with measured "
        "collectives",
        f"forward and backward of one batch of {model_name(rows[0]['model'])}, {unit}",
        "Each pair has the same compute; hatched are NCCL's measured all-reduces.",
        plot(
            drawn,
            340,
            (56, 12, 40, 56),
            barmode="group",
            bargap=0.3,
            showlegend=True,
            xaxis={"fixedrange": True},
            yaxis=value_axis(f"forward and backward, {unit}"),
        ),
    )


def _affinity(rows: Sequence[Row]) -> Chart:
    """Draw devices by their hops from the one in the middle, a panel per fabric."""
    fabrics = list(dict.fromkeys(row["fabric"] for row in rows))
    farthest = max(row["hops"] for row in rows)
    hops = range(1, farthest + 1)
    figure = make_subplots(rows=1, cols=len(fabrics), subplot_titles=fabrics).update_annotations(
        font_size=LABEL_PX
    )
    colours = ["#FFFFFF", *(shade(_NEAR, _FAR, hop / farthest) for hop in hops)]
    bar = class_bar(range(farthest + 1), ["itself", *map(str, hops)])
    remote = []
    for column, fabric in enumerate(fabrics, start=1):
        figure.add_trace(
            go.Heatmap(
                z=affinity(network_of(fabric)) + 1,
                zmin=-0.5,
                zmax=farthest + 0.5,
                colorscale=stepped_scale(colours),
                showscale=column == 1,
                colorbar=bar | {"title": {"text": "hops", "side": "top"}},
                xgap=1,
                ygap=1,
                hovertemplate="%{x}, %{y}: %{z} hops<extra></extra>",
                name=fabric,
            ),
            row=1,
            col=column,
        )
        figure.update_yaxes(scaleanchor=f"x{column if column > 1 else ''}", col=column)
        here = [row for row in rows if row["fabric"] == fabric]
        beyond = sum(row["devices"] for row in here if row["class"] == "3, remote")
        share = 100 * beyond / sum(row["devices"] for row in here)
        remote.append(f"{share:.0f} % on {fabric}")
    figure.update_layout(
        template="none", height=380, dragmode=False, margin={"l": 32, "r": 12, "t": 36, "b": 84}
    )
    figure.update_xaxes(**bare_axis(constrain="domain"))
    figure.update_yaxes(**bare_axis(constrain="domain"))
    return Chart(
        f"Beyond two hops lie {' and '.join(remote)} of the devices",
        "hops from the device in the middle (white), by position",
        "A colour is a level; the paper takes all beyond two hops for one.",
        figure,
    )
