"""Errors of measured runs under a software stack as shipped and as fitted to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go

from nest_core.calibration.training.calibration import Calibrated
from nest_core.documents.text import truncated
from nest_core.documents.units import humanise_seconds, percent, signed_percent
from nest_core.hardware.posterior import SHARE, WIDTH
from nest_core.report.figures.style import (
    ACCENT,
    MUTED,
    Picture,
    broken,
    frame,
    plain,
    rows_axis,
    value_axis,
)

__all__ = ["errors_picture"]

_ROW = 40
_APART = 0.16
_LONGEST = 30
_MOST = 40
"""Runs that are drawn: the first."""


def errors_picture(runs: Sequence[Calibrated]) -> Picture:
    """A row per run: its error before and after, each with the interval of the prediction.

    Parameters
    ----------
    runs : sequence of Calibrated
        With measured times, in their order.
    """
    drawn = runs[:_MOST]
    labels = [plain(truncated(run.row.run.id, _LONGEST)) for run in drawn]
    reach = [end for run in drawn for name in ("shipped", "yours") for end in _span(run, name)]
    room = 0.04 * (max(*reach, 0.0) - min(*reach, 0.0))
    data: list[dict[str, Any]] = []
    for name, colour, above in (("shipped", MUTED, -_APART), ("yours", ACCENT, _APART)):
        errors = [_error(run, name) for run in drawn]
        at = [row + above for row in range(len(drawn))]
        spans = [_span(run, name) for run in drawn]
        data += [
            {
                "type": "scatter",
                "mode": "lines",
                **broken((span, (y, y)) for span, y in zip(spans, at, strict=True)),
                "line": {"color": colour, "width": 2},
                "hoverinfo": "skip",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [100 * error for error in errors],
                "y": at,
                "marker": {"size": 10, "color": colour},
                "hovertext": [_hover(run, name) for run in drawn],
                "hovertemplate": "%{hovertext}<extra></extra>",
            },
        ]
    layout = frame(
        70 + _ROW * len(drawn),
        (8 + 7 * max(map(len, labels)), 16, 8, 50),
        xaxis=value_axis("predicted over measured, %")
        | {
            "range": [min(*reach, 0.0) - room, max(*reach, 0.0) + room],
            "zeroline": True,
            "zerolinewidth": 1.5,
        },
        yaxis=rows_axis(labels),
    )
    return Picture(
        _finding(runs),
        f"Error of the predicted iteration time, %, and its {100 * SHARE:.0f} % interval",
        "A line that crosses zero holds what was measured." + _left(runs),
        go.Figure(data=data, layout=layout),
        (("shipped stack", MUTED), ("your stack", ACCENT)),
        table=partial(_rows, tuple(runs)),
    )


def _left(runs: Sequence[Calibrated]) -> str:
    return f" The first {_MOST} of {len(runs)} runs." if len(runs) > _MOST else ""


def _measured(run: Calibrated) -> float:
    return run.row.outcome.seconds or 1.0


def _predicted(run: Calibrated, name: str) -> tuple[float, float]:
    """Seconds and the spread of their logarithm."""
    if name == "shipped":
        return run.before, run.before_spread
    return run.after, run.after_spread


def _error(run: Calibrated, name: str) -> float:
    return _predicted(run, name)[0] / _measured(run) - 1


def _span(run: Calibrated, name: str) -> tuple[float, float]:
    seconds, spread = _predicted(run, name)
    low, high = (seconds * math.exp(side * WIDTH * spread) for side in (-1, 1))
    return 100 * (low / _measured(run) - 1), 100 * (high / _measured(run) - 1)


def _holds(run: Calibrated, name: str) -> bool:
    low, high = _span(run, name)
    return low <= 0 <= high


def _finding(runs: Sequence[Calibrated]) -> str:
    before, after = (
        sum(abs(_error(run, name)) for run in runs) / len(runs) for name in ("shipped", "yours")
    )
    inside = sum(_holds(run, "yours") for run in runs)
    return (
        f"Mean error {percent(before)} under the shipped stack, {percent(after)} under yours; "
        f"{inside} of {len(runs)} in its interval"
    )


def _hover(run: Calibrated, name: str) -> str:
    seconds, _ = _predicted(run, name)
    low, high = (signed_percent(end / 100) for end in _span(run, name))
    return (
        f"<b>{plain(run.row.run.id)}</b>, {name} stack<br>measured "
        f"{humanise_seconds(_measured(run))}, predicted {humanise_seconds(seconds)}<br>"
        f"error {signed_percent(_error(run, name))}, {low.removesuffix(' %')} to {high}"
    )


def _rows(runs: Sequence[Calibrated]) -> list[dict[str, Any]]:
    return [_row(run) for run in runs]


def _row(run: Calibrated) -> dict[str, Any]:
    row: dict[str, Any] = {"run": run.row.run.id, "measured, s": _measured(run)}
    for name in ("shipped", "yours"):
        seconds, spread = _predicted(run, name)
        row |= {
            f"{name}, s": seconds,
            f"{name}, low, s": seconds * math.exp(-WIDTH * spread),
            f"{name}, high, s": seconds * math.exp(WIDTH * spread),
            f"{name}, error": _error(run, name),
        }
    return row
