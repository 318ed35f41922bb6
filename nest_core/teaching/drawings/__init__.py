"""Figures of the lessons: from what a lesson computed to pictures, on a screen or on a wall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from nest_core.report.figures.style import Picture
from nest_core.teaching.drawings.board import Board, board_drawing
from nest_core.teaching.drawings.drawing import LessonDrawing
from nest_core.teaching.drawings.leads import leads_picture
from nest_core.teaching.drawings.pass_drawing import pass_drawing
from nest_core.teaching.drawings.plans import (
    plan_pictures,
    sweep_pictures,
    timeline_pictures,
)
from nest_core.teaching.drawings.program_board import levels_board, program_board
from nest_core.teaching.drawings.walk_drawing import walk_drawing
from nest_core.teaching.lessons.figure import Plans, Sweeps, Timelines
from nest_core.teaching.lessons.levels import DynamicTable
from nest_core.teaching.lessons.paper_table import Leads
from nest_core.teaching.lessons.passes import PassWalk
from nest_core.teaching.lessons.program import Fill
from nest_core.teaching.lessons.walk import Walk

__all__ = ["LessonDrawing", "lesson_drawing", "lesson_pictures", "projected"]


_PICTURES: dict[type[Any], Callable[[Any], tuple[Picture, ...]]] = {
    Plans: plan_pictures,
    Timelines: timeline_pictures,
    Sweeps: sweep_pictures,
    Leads: lambda leads: (leads_picture(leads),),
}

_BOARDS: dict[type[Any], Callable[..., Board]] = {DynamicTable: levels_board, Fill: program_board}
_DRAWINGS: dict[type[Any], Callable[..., LessonDrawing]] = {
    Walk: walk_drawing,
    PassWalk: pass_drawing,
}

PROJECTOR = 4 / 3
"""How much larger text and lines are on a wall: 16 pixels for 12."""

_USUAL_TEXT = 12
_LENGTHS = {"size", "width", "standoff", "xshift", "yshift", "ticklen", "l", "r", "t", "b", "pad"}
_HOLDERS = {
    "font",
    "textfont",
    "insidetextfont",
    "outsidetextfont",
    "tickfont",
    "margin",
    "line",
    "marker",
    "pattern",
    "title",
    "annotations",
    "shapes",
    "xaxis",
    "yaxis",
}


def lesson_pictures(found: object) -> tuple[Picture, ...]:
    """The figures of a lesson's `Reveal.content`, side by side or one above the other.

    What a pin computed is pictures already.
    """
    if type(found) is tuple:
        return found
    draw = _PICTURES.get(type(found))
    return draw(found) if draw else ()


def lesson_drawing(found: object, width: float, *, wall: bool) -> LessonDrawing | None:
    """What lessons that walk through a fabric draw, some only on a wall; None for others.

    Parameters
    ----------
    found : object
        Of a `nest_core.teaching.lessons.Reveal`.
    width : float
        Pixels.
    wall : bool
        Whether text has a projector's size.
    """
    board = _BOARDS.get(type(found))
    if board is not None:
        return board_drawing(board(found), width, wall=wall)
    draw = _DRAWINGS.get(type(found))
    return None if draw is None else draw(found, width, wall=wall)


def projected(shown: Picture, height: float) -> Picture:
    """The same picture for a wall: text of 16 pixels and more, no higher than there is room."""
    document = shown.plot.to_plotly_json()
    layout = _grown(document["layout"], PROJECTOR)
    layout["height"] = round(min(height, PROJECTOR * document["layout"]["height"]))
    text = {"size": PROJECTOR * _USUAL_TEXT}
    layout["font"] = text | layout.get("font", {})
    for axis in [key for key in layout if key.startswith(("xaxis", "yaxis"))]:
        layout[axis] = {"tickfont": text} | layout[axis]
    traces = [_grown(trace, PROJECTOR) for trace in document["data"]]
    return replace(shown, plot=go.Figure(data=traces, layout=layout))


def _grown(part: Any, factor: float) -> Any:
    """A trace's or layout's lengths in pixels multiplied; positions on axes are none."""
    if isinstance(part, list | tuple):
        return [_grown(item, factor) for item in part]
    if not isinstance(part, dict):
        return part
    grown: dict[str, Any] = {}
    for key, value in part.items():
        axis = key.rstrip("0123456789")
        if key in _LENGTHS and isinstance(value, int | float) and part.get("type") != "bar":
            grown[key] = factor * value
        elif axis in _HOLDERS:
            grown[key] = _grown(value, factor)
        else:
            grown[key] = value
    return grown
