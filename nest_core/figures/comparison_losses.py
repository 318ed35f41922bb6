"""What one lost switch costs every scenario, tier by tier on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.figures.comparison_bars import (
    ROW,
    SCENARIO_COLOURS,
    axis_name,
    framed,
    plain,
    quantity_axis,
)
from nest_core.figures.style import Picture
from nest_core.studies.comparison import Candidate
from nest_core.studies.failures import Loss
from nest_core.summary import share

__all__ = ["losses_picture"]

_SAME = 0.005
_PALE = 0.45


def losses_picture(every: Sequence[Candidate]) -> Picture:
    places = range(max(len(one.losses) for one in every))
    found = [[one.losses[p] if len(one.losses) > p else None for one in every] for p in places]
    panels = []
    for losses in found:
        tier = next(loss.tier for loss in losses if loss)
        panels.append((f"without one {tier}, %", losses))
    return Picture(
        _worst_loss(every, found),
        "Throughput lost with one switch, % of that of the whole fabric",
        "Pale: the plan stays as it is; full: planned anew on what is left. A missing pale bar: "
        "too few devices are left for the plan. Hatched: not the switch's doing, as the batch does "
        "not divide over what is left and a batch cut in proportion would not lose it. Restarts "
        "are not counted.",
        _loss_bars(every, panels),
    )


def _worst_loss(every: Sequence[Candidate], found: Sequence[Sequence[Loss | None]]) -> str:
    known = [
        (loss.by_switch, every[place].name, loss.tier)
        for losses in found
        for place, loss in enumerate(losses)
        if loss is not None and loss.by_switch is not None
    ]
    if not known:
        return "No scenario has a plan without one of its switches"
    lost, name, tier = max(known, key=lambda entry: entry[0])
    idle = any(loss and loss.by_batch > _SAME for losses in found for loss in losses)
    batch = "; where the batch does not divide, devices idle" if idle else ""
    if lost < _SAME:
        return f"One lost switch costs less than 0.5 % everywhere{batch}"
    return f"One lost {tier} costs {name} most{batch}"


def _loss_bars(
    every: Sequence[Candidate], panels: Sequence[tuple[str, Sequence[Loss | None]]]
) -> go.Figure:
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    shares = [
        value or 0.0
        for _, losses in panels
        for loss in losses
        for value in ((loss.kept, loss.replanned) if loss else ())
    ]
    for place, (title, losses) in enumerate(panels):
        # One scale for all panels: a leaf and a spine are compared, too.
        x, axis = quantity_axis(place, len(panels), title, 135 * max([*shares, 1e-4]))
        layout[axis] = x
        data.append(_loss_bar(every, losses, place, "kept"))
        data.append(_loss_bar(every, losses, place, "by_switch"))
        if any(loss and loss.by_batch for loss in losses):
            data.append(_batch_bar(every, losses, place))
    return framed(every, data, layout, ROW + 12)


def _loss_bar(
    every: Sequence[Candidate], losses: Sequence[Loss | None], place: int, how: str
) -> dict[str, Any]:
    kept = how == "kept"
    values = [getattr(loss, how) if loss else None for loss in losses]
    told = "same plan" if kept else "planned anew"
    labels = [
        _label(one, loss, value, kept)
        for one, loss, value in zip(every, losses, values, strict=True)
    ]
    # A hatched bar that follows carries both labels at its end.
    shown = [
        "" if loss and loss.by_batch and not kept else label
        for loss, label in zip(losses, labels, strict=True)
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": axis_name(place),
        "name": told,
        "x": [_length(value) for value in values],
        "y": [row + (-0.18 if kept else 0.18) for row in range(len(every))],
        "width": 0.32,
        "marker": {
            "color": SCENARIO_COLOURS[: len(every)],
            "opacity": _PALE if kept else 1.0,
            "line": {"width": 0},
        },
        "text": shown,
        "textposition": "outside",
        "textfont": {"size": 11},
        "cliponaxis": False,
        "customdata": [
            f"{plain(one.name)}, {told}: {label}"
            + (f"<br>{loss.note}" if loss and loss.note else "")
            for one, loss, label in zip(every, losses, labels, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _batch_bar(
    every: Sequence[Candidate], losses: Sequence[Loss | None], place: int
) -> dict[str, Any]:
    """What the batch's divisibility adds, beyond the switch's part."""
    parts = [loss.by_batch if loss else 0.0 for loss in losses]
    words = [
        f"{share(loss.by_switch or 0.0)} + {share(loss.by_batch)} by the batch"
        if loss and loss.by_batch
        else ""
        for loss in losses
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": axis_name(place),
        "name": "batch",
        "base": [_length(loss.by_switch if loss else None) for loss in losses],
        "x": [100 * part for part in parts],
        "y": [row + 0.18 for row in range(len(every))],
        "width": 0.32,
        "marker": {
            "color": "rgba(0, 0, 0, 0)",
            "pattern": {
                "shape": "/", "size": 5, "fgcolor": list(SCENARIO_COLOURS[: len(every)]),
                "fgopacity": 1.0,
            },
            "line": {"width": 1, "color": list(SCENARIO_COLOURS[: len(every)])},
        },
        "text": words,
        "textposition": "outside",
        "textfont": {"size": 11},
        "cliponaxis": False,
        "customdata": [
            f"{plain(one.name)}, planned anew: {told}<br>{loss.note if loss else ''}"
            for one, loss, told in zip(every, losses, words, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _length(value: float | None) -> float:
    return 100 * max(value or 0.0, 0.0)


def _label(one: Candidate, loss: Loss | None, value: float | None, kept: bool) -> str:
    if loss is None:
        if kept:
            return ""
        return "no such switch is listed" if one.report else "no feasible plan"
    if value is not None:
        return "0 %" if abs(value) < 5e-6 else share(value)
    if not loss.missing:
        return "" if kept else "cannot be expressed"
    return "cannot run" if kept else "no feasible plan"
