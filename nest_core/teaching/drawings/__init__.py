"""Figures of the lessons: from what a lesson computed to pictures, on a screen or on a wall."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from nest_core.costs.plan_words import schedule_words
from nest_core.documents import alike, humanise_bytes, humanise_seconds, join_words, percent
from nest_core.paper.cases import PLANNERS
from nest_core.report.figures import (
    Chart,
    MethodRow,
    balance_figure,
    memory_figure,
    throughput_figure,
    timeline_figure,
)
from nest_core.report.figures.collectives import time_figure
from nest_core.report.figures.mixes import slowdowns_picture
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    HATCH,
    LIMIT,
    MUTED,
    TIME_COLOURS,
    curve,
    note,
    plot,
    ruler,
    value_axis,
)
from nest_core.report.figures.timeline import rows_of_stages
from nest_core.simulator.activity import slowest
from nest_core.teaching.drawings.drawing import Board, LessonDrawing, board_drawing
from nest_core.teaching.drawings.pass_drawing import pass_drawing
from nest_core.teaching.drawings.program_board import levels_board, program_board
from nest_core.teaching.drawings.walk_drawing import walk_drawing
from nest_core.teaching.lessons.clusters import PlacedJobs, SaveShares
from nest_core.teaching.lessons.figure import Plans, Sweeps
from nest_core.teaching.lessons.levels import DynamicTable
from nest_core.teaching.lessons.paper_table import READINGS, Leads
from nest_core.teaching.lessons.pipelines import Played
from nest_core.teaching.lessons.program import Fill
from nest_core.teaching.lessons.walk import PassWalk, Walk

__all__ = ["LessonDrawing", "lesson_drawing", "lesson_pictures", "projected"]

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


def lesson_pictures(content: object) -> tuple[Chart, ...]:
    """Return the figures of a lesson's `Reveal.content`, side by side or one above the other.

    What a pin computed is pictures already.
    """
    draw = _PICTURES.get(type(content))
    return draw(content) if draw else ()


def lesson_drawing(content: object, width: float, *, wall: bool) -> LessonDrawing | None:
    """Return what lessons that walk through a fabric draw, some only on a wall; None for others.

    Parameters
    ----------
    content : object
        Of a `nest_core.teaching.lessons.Reveal`.
    width : float
        Pixels.
    wall : bool
        Whether text has a projector's size.
    """
    board = _BOARDS.get(type(content))
    if board is not None:
        return board_drawing(board(content), width, wall=wall)
    draw = _DRAWINGS.get(type(content))
    return None if draw is None else draw(content, width, wall=wall)


def projected(picture: Chart, height: float) -> Chart:
    """Return the picture for a wall: text of 16 pixels and more, no higher than there is room."""
    document = picture.plot.to_plotly_json()
    layout = _grown(document["layout"], PROJECTOR)
    layout["height"] = round(min(height, PROJECTOR * document["layout"]["height"]))
    text = {"size": PROJECTOR * _USUAL_TEXT}
    layout["font"] = text | layout.get("font", {})
    for axis in [key for key in layout if key.startswith(("xaxis", "yaxis"))]:
        layout[axis] = {"tickfont": text} | layout[axis]
    return replace(
        picture,
        plot=go.Figure(
            data=[_grown(trace, PROJECTOR) for trace in document["data"]], layout=layout
        ),
    )


def _grown(part: Any, factor: float) -> Any:
    """Return a trace's or layout's lengths in pixels multiplied; positions on axes are none."""
    if isinstance(part, list | tuple):
        return [_grown(item, factor) for item in part]
    if not isinstance(part, dict):
        return part
    lengths = set() if part.get("type") == "bar" else _LENGTHS
    return {
        key: factor * value
        if key in lengths and isinstance(value, int | float)
        else _grown(value, factor)
        if key.rstrip("0123456789") in _HOLDERS
        else value
        for key, value in part.items()
    }


def plan_pictures(plans: Plans) -> tuple[Chart, ...]:
    """Return the views of plans, each with a finding over all of them."""
    reports = {name: report for name, report in plans.reports.items() if report is not None}
    needs = {name: report.fullest_bytes for name, report in reports.items()}
    seconds = {
        name: report.iteration_s
        for name, report in reports.items()
        if report.feasible or "memory" not in plans.views
    }
    limit = next(iter(reports.values())).memory_limit_bytes
    entries = [
        MethodRow(name, report, "no plan of this width fits")
        if report is None
        else MethodRow(name, report, "" if name in seconds else "some stage does not fit")
        for name, report in plans.reports.items()
    ]
    leanest = alike(needs, humanise_bytes, min(needs.values()))
    low, high = humanise_bytes(min(needs.values())), humanise_bytes(max(needs.values()))
    memory = (
        f"{_needed(leanest)} {low} of {humanise_bytes(limit)} on the fullest stage"
        if len(needs) == len(leanest)
        else f"{_needed(leanest)} least, {low} of {humanise_bytes(limit)}; the most is {high}"
    )
    time = rate = "Nothing fits"
    if seconds:
        best = min(seconds.values())
        fastest = alike(seconds, humanise_seconds, best)
        time = (
            f"{join_words(fastest)} {'is' if len(fastest) == 1 else 'are'} fastest: "
            f"{humanise_seconds(best)} an iteration"
        )
        rates = {name: reports[name].samples_per_s * plans.tokens for name in seconds}
        most = max(rates.values())
        first = alike(rates, "{:,.0f}".format, most)
        rate = (
            f"{join_words(first)} train{'s' if len(first) == 1 else ''} most: {most:,.0f} tokens/s"
        )
    pictures = {
        "memory": lambda: replace(memory_figure(entries, limit), title=memory),
        "time": lambda: replace(balance_figure(entries), title=time),
        "rate": lambda: replace(throughput_figure(entries, plans.tokens), title=rate),
    }
    return tuple(pictures[view]() for view in plans.views)


def _needed(names: Sequence[str]) -> str:
    return f"{join_words(names)} need{'s' if len(names) == 1 else ''}"


def timeline_pictures(playback: Played) -> tuple[Chart, ...]:
    """Return a schedule's timeline."""
    report, iteration = playback
    rows, schedule = rows_of_stages(iteration, slowest(iteration)), report.plan.point.schedule
    picture = timeline_figure(iteration, report, rows)
    return (replace(picture, title=f"{schedule_words(schedule, 1)}: {picture.title}"),)


def sweep_pictures(sweeps: Sweeps) -> tuple[Chart, ...]:
    """Return the times of each algorithm."""
    return tuple(
        replace(picture, title=f"{sweep.algorithms[0].replace('_', ' ')}: {picture.title}")
        for sweep in sweeps.sweeps
        for picture in (time_figure(sweep),)
    )


_LIMITED = {"color": LIMIT, "size": 12}
_LOOKS = (
    {"color": "rgba(0, 0, 0, 0)", "line": {"color": MUTED, "width": 1.5}},
    {"color": MUTED},
    {"color": ACCENT},
    {"color": ACCENT, "pattern": {"shape": HATCH, "size": 6, "solidity": 0.3}},
)


def leads_picture(cell: Leads) -> Chart:
    """Draw grouped bars: planners, and in each group the readings."""
    ratios = [ratio for row in cell.leads.values() for ratio in row if ratio is not None]
    label = note("equally fast", 1, 1, xref="paper", xshift=6, xanchor="left", font=_LIMITED)
    return Chart(
        _leads_finding(cell),
        f"NEST's throughput over that of other planners, {cell.model} on {cell.devices:,} "
        "devices; ratio",
        "Outlined: as printed; grey: the artifact's costs; blue: stages in their right order; "
        "hatched: transfers in milliseconds too.",
        plot(
            [_lead_bars(cell, place) for place in range(len(READINGS))],
            340,
            (52, 84, 10, 34),
            barmode="group",
            bargap=0.25,
            bargroupgap=0.06,
            xaxis={"type": "category", "fixedrange": True, "showgrid": False},
            yaxis=value_axis("ratio") | {"range": [0, 1.15 * max([*ratios, 1.0])]},
            shapes=[ruler(1)],
            annotations=[label],
        ),
        (
            (READINGS[0], FAINT),
            (READINGS[1], MUTED),
            (f"{READINGS[2]}; hatched: {READINGS[3]}", ACCENT),
        ),
    )


def _lead_bars(cell: Leads, place: int) -> dict[str, Any]:
    values = [ratios[place] for ratios in cell.leads.values()]
    return {
        "type": "bar",
        "name": READINGS[place],
        "x": [PLANNERS[planner] for planner in cell.leads],
        "y": values,
        "marker": _LOOKS[place],
        "text": ["no figure" if value is None else f"{value:.3g}" for value in values],
        "textposition": "outside",
        "textangle": 0,
        "textfont": {"size": 12},
        "hovertemplate": f"%{{x}}, {READINGS[place]}: %{{text}}<extra></extra>",
    }


def _leads_finding(cell: Leads) -> str:
    ratios = [
        (PLANNERS[planner], published, right)
        for planner, (_, published, right, _) in cell.leads.items()
        if published is not None and right is not None
    ]
    moves = [(before - after, name, before, after) for name, before, after in ratios]
    gone = [move for move in moves if move[0] > 0.005 and move[-1] < 1.005]
    _, name, before, after = max(gone or moves, default=(0.0, "", 1.0, 1.0))
    if abs(before - after) < 0.005:
        return "In the right order no lead changes here"
    moved = f", {before:.3g}, is gone" if gone else f" goes from {before:.3g} to {after:.3g}"
    return f"The lead over {name}{moved} in the right order"


def saves_picture(content: SaveShares) -> Chart:
    """Draw what is lost by minutes between saves, part by part."""
    lines = (
        ("all that is lost", LIMIT, [1 - of.effective for of in content.shares]),
        ("saves", TIME_COLOURS["communication"], [of.losses[0] for of in content.shares]),
        ("lost work", ACCENT, [of.losses[1] for of in content.shares]),
        ("detection and restart", MUTED, [of.losses[2] for of in content.shares]),
    )
    trains, interval = percent(content.best.effective), humanise_seconds(content.best_s)
    best_min = content.best_s / 60
    return Chart(
        f"{trains} of the time trains on {content.devices:,} devices, saved every {interval}",
        "Share of the time that is lost, by what it goes into; %",
        "Saves often enough that little is done again, and rarely enough that they cost little.",
        plot(
            [
                curve(content.minutes, [100 * share for share in values], colour, name=name)
                for name, colour, values in lines
            ],
            340,
            (52, 16, 10, 44),
            xaxis=value_axis("minutes from save to save", type="log", tickvals=[1, 3, 10, 30, 100]),
            yaxis=value_axis("lost, %", range=[0, 30]),
            shapes=[ruler(0, yref="paper", xref="x", x0=best_min, x1=best_min, y1=1)],
        ),
        tuple((name, colour) for name, colour, _ in lines),
    )


_PICTURES: dict[type[Any], Callable[[Any], tuple[Chart, ...]]] = {
    tuple: tuple,
    Plans: plan_pictures,
    Played: timeline_pictures,
    Sweeps: sweep_pictures,
    Leads: lambda leads: (leads_picture(leads),),
    SaveShares: lambda content: (saves_picture(content),),
    PlacedJobs: lambda content: (slowdowns_picture(content.results),),
}
