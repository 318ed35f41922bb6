"""Figure 5 of the paper beside its own baselines, evaluated as published and rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from nest_core.figures.style import ACCENT, HATCH, LIMIT, MUTED, Picture, value_axis

__all__ = ["figure5_picture"]

_NAMES = {"manual": "Manual", "mcmc": "MCMC", "phaze": "Phaze"}
_BARS = (
    ("as_published", "as published (stages in reverse order)", MUTED, HATCH),
    ("right_order", "in the right order", MUTED, ""),
)


def figure5_picture(rows: Sequence[Mapping[str, Any]]) -> Picture:
    """Every baseline's throughput as a share of the optimum, for the rows of one model.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of `nest_core.published.figure5` of one model.
    """
    figure = make_subplots(
        rows=1, cols=len(_NAMES), shared_yaxes=True, subplot_titles=list(_NAMES.values()),
        horizontal_spacing=0.03,
    )  # fmt: skip
    devices = [f"{row['devices']:,}" for row in rows]
    for column, name in enumerate(_NAMES, start=1):
        for key, label, colour, hatch in _BARS:
            shares = [_share(row, name, key) for row in rows]
            figure.add_trace(
                go.Bar(
                    x=devices,
                    y=shares,
                    name=label,
                    legendgroup=key,
                    showlegend=column == 1,
                    marker={"color": colour, "pattern": {"shape": hatch, "size": 5}},
                    hovertemplate="%{x} devices: %{y:.1f} % of the optimum<extra>"
                    + label
                    + "</extra>",
                ),
                row=1,
                col=column,
            )
        for position, row in enumerate(rows):
            if row["baselines"][name]["right_order"] is None:
                figure.add_annotation(
                    x=position, y=4, text="X", showarrow=False,
                    font={"color": LIMIT}, hovertext="infeasible", row=1, col=column,
                )  # fmt: skip
        figure.add_hline(y=100, line={"color": ACCENT, "width": 2}, row=1, col=column)
    figure.update_layout(
        template="none", height=360, barmode="group", bargap=0.25, dragmode=False,
        margin={"l": 56, "r": 12, "t": 64, "b": 44},
        legend={"orientation": "h", "x": 0, "y": 1.12, "yanchor": "bottom"},
    )  # fmt: skip
    figure.update_yaxes(**value_axis())
    figure.update_yaxes(title_text="throughput, % of the optimum", col=1)
    figure.update_xaxes(title_text="devices", type="category", fixedrange=True)
    figure.update_xaxes(categoryorder="array", categoryarray=devices)
    return Picture(
        title=_finding(rows),
        subtitle="throughput under the artifact's own costs, % of the proven optimum (blue line)",
        reading="Each pair is one placement priced twice: the paper's artifact hands its stages "
        "over in reverse order, so the last stage pays recomputation and the largest stash; "
        "X does not fit.",
        plot=figure,
    )


def _share(row: Mapping[str, Any], name: str, key: str) -> float | None:
    value = row["baselines"][name][key]
    return None if value is None else 100 * value / row["ours"]


def _finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """What Manual and the best baseline reach, averaged over the device counts they fit on."""
    manual = {key: _mean([_share(row, "manual", key) for row in rows]) for key, *_ in _BARS}
    best = _mean([max(_shares(row), default=None) for row in rows])
    return (
        f"Manual reaches {manual['right_order']:.0f} % of the optimum in its right order, "
        f"{manual['as_published']:.0f} % as published; the best baseline {best:.0f} %"
    )


def _shares(row: Mapping[str, Any]) -> list[float]:
    shares = (_share(row, name, "right_order") for name in _NAMES)
    return [share for share in shares if share is not None]


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0
