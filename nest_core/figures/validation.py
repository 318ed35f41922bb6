"""Predicted against measured iterations of training runs, one dot for each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.errors import InputError
from nest_core.fidelity.groups import Score, score
from nest_core.fidelity.predict import Prediction
from nest_core.fidelity.regions import fitted
from nest_core.figures.style import ACCENT, LIMIT, MUTED, TIME_COLOURS, Picture, frame, value_axis
from nest_core.units import humanise_seconds

__all__ = ["agreement_figure"]

SEEN = TIME_COLOURS["communication"]
_HEIGHT = 420
_MARGIN = (64, 16, 8, 44)
_NEAR = 1.2


def agreement_figure(predictions: Sequence[Prediction], name: str = "training runs") -> Picture:
    """Predicted over measured seconds, both logarithmic and on one scale.

    Raises
    ------
    InputError
        If nothing was measured.
    """
    pairs = [(item, item.outcome.seconds) for item in predictions]
    measured = [(item, seconds) for item, seconds in pairs if seconds is not None]
    if not measured:
        raise InputError("rows", "must hold a measured time", len(predictions), "add one")
    found = score(name, predictions)
    values = [time for item, seconds in measured for time in (item.seconds, seconds)]
    low, high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1
    ends = [10**low, 10**high]
    traces = [
        _line(ends, 1.0, LIMIT, "dash"),
        _line(ends, _NEAR, MUTED, "dot"),
        _line(ends, 1 / _NEAR, MUTED, "dot"),
        *(
            _dots([pair for pair in measured if fitted(pair[0]) is seen], seen)
            for seen in (True, False)
        ),
    ]
    axis = value_axis("measured, s") | {"type": "log", "range": [low, high], "nticks": 6}
    layout = frame(
        _HEIGHT,
        _MARGIN,
        xaxis=axis,
        yaxis=axis | {"title": value_axis("predicted, s")["title"]},
    )
    return Picture(
        _finding(found),
        f"Seconds per iteration of {found.n} {name}, both axes logarithmic",
        "On the dashed line prediction and measurement agree; the dotted ones are a fifth off.",
        go.Figure(data=traces, layout=layout),
        (("may be fitted", SEEN), ("not fitted", ACCENT)),
    )


def _finding(found: Score) -> str:
    side = "too slow" if found.bias > 0 else "too fast"
    return (
        f"Predictions are {100 * found.mape:.2g} % off in the mean, "
        f"{100 * abs(found.bias):.2g} % {side} on balance"
    )


def _line(ends: list[float], factor: float, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "y": [end * factor for end in ends],
        "line": {"color": colour, "width": 1, "dash": dash},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _dots(measured: Sequence[tuple[Prediction, float]], seen: bool) -> dict[str, Any]:
    texts = [
        f"{item.run.model}, {item.run.devices} x {item.run.accelerator}<br>"
        f"tp {item.run.tp}, pp {item.run.pp}, dp {item.run.dp}, micro-batch {item.run.micro_batch}"
        f"<br>{humanise_seconds(item.seconds)} predicted, {humanise_seconds(seconds)} measured "
        f"({item.seconds / seconds - 1:+.0%})"
        for item, seconds in measured
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "may be fitted" if seen else "not fitted",
        "x": [seconds for _, seconds in measured],
        "y": [item.seconds for item, _ in measured],
        "marker": {"color": SEEN if seen else ACCENT, "size": 6, "opacity": 0.6},
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
    }
