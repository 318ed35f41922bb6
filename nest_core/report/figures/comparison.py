"""Scenarios side by side: the same order, the same colour for the same scenario, shared axes.

A row per scenario, panels side by side that share the rows; among them what the worst single
failure costs every scenario. What designs train per dollar is told by a break-even of
the whole bill (`nest_core.report.sheet`): dollars of the network alone would call the poorest
network the best buy while accelerators that cost ten times as much wait for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.documents import (
    Claim,
    Fact,
    does,
    humanise,
    humanise_seconds,
    join_words,
    joined,
    percent,
    truncated,
)
from nest_core.hardware.posterior import SHARE
from nest_core.report.documents import DESIGN_COLOURS
from nest_core.report.explain import bottleneck, quantity
from nest_core.report.figures.entries import MethodRow
from nest_core.report.figures.failures import failures_figure
from nest_core.report.figures.levels import levels_picture
from nest_core.report.figures.stages import stage_rows_figure, time_parts
from nest_core.report.figures.style import (
    MUTED,
    SILENT,
    TIME_COLOURS,
    Chart,
    Trace,
    axis_names,
    axis_unit,
    bars,
    broken,
    curve,
    plain,
    plot,
    pointed_rows,
    rows_axis,
    value_axis,
    wrapped,
)
from nest_core.studies.comparison import Comparison
from nest_core.studies.whole_bill import Candidate

__all__ = [
    "pictures",
]

_ROW = 40
_LONGEST_TICK = 20
_SAME = 0.005
_LABELS = {"textposition": "outside", "textfont": {"size": 12}, "cliponaxis": False}


@dataclass(frozen=True, slots=True)
class _Panel:
    """One quantity of every candidate, drawn from zero, and where its figures may end."""

    title: str
    values: Sequence[float | None]
    labels: Sequence[str]
    ends: Sequence[tuple[float, float] | None] = ()


def pictures(comparison: Comparison) -> tuple[Chart, ...]:
    """Return all figures of a comparison.

    Throughput; at equal budget, with one failure, and NEST's program, where asked for; stage
    balance; levels.
    """
    every = comparison.candidates
    return (
        _throughput(every),
        *([_equal_budget(comparison)] if comparison.budget is not None else []),
        *([_losses(every)] if any(candidate.failure for candidate in every) else []),
        *([_level_wise(every)] if any(candidate.nest for candidate in every) else []),
        _balance(every),
        levels_picture(every),
    )


def _throughput(every: Sequence[Candidate]) -> Chart:
    rates = [candidate.tokens_per_s for candidate in every]
    spans = [candidate.tokens_per_s_span for candidate in every]
    scale, unit = axis_unit(
        max([*(rate or 0.0 for rate in rates), *(span[1] for span in spans if span), 1.0]),
        "tokens/s",
    )
    panel = _Panel(
        f"throughput, {unit}",
        [rate and rate / scale for rate in rates],
        [quantity(rate, "tokens/s") if rate else "no feasible plan" for rate in rates],
        [span and (span[0] / scale, span[1] / scale) for span in spans],
    )
    reading = [
        "Each scenario's best plan. Longer is better.",
        *([f"The grey line is its {percent(SHARE)} interval."] if any(spans) else []),
        *(
            [f"Ratios differ. {UNMEASURED_RATIO}"]
            if len({candidate.scenario.fabric.ratios for candidate in every}) > 1
            else []
        ),
    ]
    figure = _bars(every, [panel])
    reasons = {
        row: f"{plain(candidate.name)}: no plan<br>{wrapped(plain(candidate.reason))}"
        for row, candidate in enumerate(every)
        if candidate.report is None
    }
    figure.add_traces(pointed_rows(reasons, figure.layout.xaxis.range[1]))
    return Chart(
        _leading(every, panel.labels, rates),
        f"Training throughput, {unit}",
        " ".join(reading),
        figure,
    )


def _level_wise(every: Sequence[Candidate]) -> Chart:
    """Draw iterations under both planners, and what NEST's promised; one scale for all."""
    runs = [c.nest if c.nest and c.nest.feasible else None for c in every]
    exact = [candidate.report.iteration_s if candidate.report else None for candidate in every]
    takes = [run.report.iteration_s if run and run.report else None for run in runs]
    promised = [run.promised_s if run else None for run in runs]
    scale, unit = axis_unit(max([*(value or 0.0 for value in exact + takes), 1e-9]), "s")
    panels = [
        _Panel(
            f"{name}, {unit}",
            [value and value / scale for value in values],
            [humanise_seconds(value) if value else "no plan" for value in values],
        )
        for name, values in (
            ("exact search (ours)", exact),
            ("NEST takes", takes),
            ("NEST promised", promised),
        )
    ]
    ratios = [
        (level_wise / ours - 1.0, candidate.name)
        for candidate, ours, level_wise in zip(every, exact, takes, strict=True)
        if ours and level_wise
    ]
    ratio, name = max(ratios, key=lambda pair: abs(pair[0]), default=(0.0, ""))
    way = "slower" if ratio > 0 else "faster"
    finding = (
        "has no plan here"
        if not ratios
        else "and the exact search tie everywhere"
        if abs(ratio) < _SAME
        else f"is up to {percent(abs(ratio))} {way} ({name})"
    )
    return Chart(
        f"NEST's level-wise program {finding}",
        f"Iteration under the exact search and NEST, level-wise program (paper), {unit}",
        "Shorter is better. What makes the difference stands in the table, cause by cause.",
        _bars(every, panels),
    )


def _equal_budget(comparison: Comparison) -> Chart:
    every, budget = comparison.candidates, comparison.budget
    designs = [candidate.at_budget for candidate in every]
    rates = [design.tokens_per_s if design else None for design in designs]
    scale, unit = axis_unit(max([rate or 0.0 for rate in rates] + [1.0]), "tokens/s")
    counts = [float(design.devices) if design else None for design in designs]
    words = budget.words if budget else ""
    panels = [
        _Panel(
            f"throughput, {unit}",
            [rate and rate / scale for rate in rates],
            [humanise(rate) if rate else "none" for rate in rates],
        ),
        _Panel("devices", counts, [f"{count or 0:,.0f}" for count in counts]),
    ]
    return Chart(
        joined([f"On a network of {words}:", _leading(every, panels[0].labels, rates)]),
        f"The same designs with as many nodes as a network of {words} joins, planned anew",
        "Radix, ratios, rates and tiers stay, the job and its batch too; the accelerators "
        "themselves are not in the budget.",
        _bars(every, panels),
    )


def _bars(every: Sequence[Candidate], panels: Sequence[_Panel]) -> go.Figure:
    """Draw a bar per candidate in every panel."""
    data: list[Trace] = []
    axes: dict[str, Trace] = {}
    for place, panel in enumerate(panels):
        across = axis_names(place)[0]
        spans = [span for span in panel.ends if span]
        largest = max(
            [value for value in panel.values if value] + [high for _, high in spans], default=1.0
        )
        axes |= _quantity_axis(place, len(panels), panel.title, 1.35 * largest or 1.0)
        data.append(
            bars(
                [value or 0.0 for value in panel.values],
                list(range(len(every))),
                {"color": DESIGN_COLOURS[: len(every)], "line": {"width": 0}},
                xaxis=across,
                width=0.58,
                text=list(panel.labels),
                **_LABELS,
                customdata=[
                    f"{plain(candidate.name)}: {label}"
                    for candidate, label in zip(every, panel.labels, strict=True)
                ],
                hovertemplate=f"%{{customdata}}<br>{panel.title}<extra></extra>",
            )
        )
        if spans:  # below each bar, so that labels stay free
            rows = [row for row, span in enumerate(panel.ends) if span]
            lines = broken(zip(spans, [(row + 0.39, row + 0.39) for row in rows], strict=True))
            data.append(curve(**lines, colour=MUTED, width=3, xaxis=across, **SILENT))
    return _framed(every, data, axes, _ROW)


def _quantity_axis(place: int, panels: int, title: str, end: float) -> dict[str, Trace]:
    domain = [place * (1 / panels) + (0.04 if place else 0.0), (place + 1) * (1 / panels)]
    axis = value_axis(title, domain=domain, range=[0, end], anchor="y")
    return {axis_names(place)[0].replace("x", "xaxis"): axis}


def _framed(
    every: Sequence[Candidate], data: list[Trace], axes: dict[str, Any], row: int
) -> go.Figure:
    ticks = [truncated(candidate.name, _LONGEST_TICK) for candidate in every]
    margin = (20 + 7 * max(len(tick) for tick in ticks), 16, 4, 46)
    names = rows_axis([f"{plain(tick)} " for tick in ticks])
    return plot(data, 50 + row * len(every), margin, barmode="overlay", yaxis=names, **axes)


def _losses(every: Sequence[Candidate]) -> Chart:
    """Draw what the worst single failure costs, with the plan as it is and planned anew."""
    rows = [(candidate.name, candidate.failure) for candidate in every]
    return failures_figure(rows, _worst_loss(every), DESIGN_COLOURS)


def _worst_loss(every: Sequence[Candidate]) -> Claim:
    """Return who loses most to a single switch, how much, and to which."""
    worst = {c.name: c.worst_loss for c in every if c.worst_loss is not None}
    most = max(share for share, _ in worst.values())
    if most < _SAME:
        facts = (Fact("loses", (name,), "", share) for name, (share, _) in worst.items())
        return Claim("No single failure costs 0.5 %", *facts)
    names = [name for name, (share, _) in worst.items() if percent(share) == percent(most)]
    words = {worst[name][1] for name in names}
    what = words.pop() if len(words) == 1 else "one failure"
    who = does(names[0], "loses") if len(names) == 1 else f"{join_words(names)} lose"
    return Claim(
        f"{who} {percent(most)} to {what}",
        *(Fact("loses", (name,), "most", worst[name][0]) for name in names),
    )


def _balance(every: Sequence[Candidate]) -> Chart:
    rows = [
        MethodRow(
            f'<span style="color:{colour}">■</span> {plain(candidate.name)}',
            candidate.report,
            "" if candidate.report else "no feasible plan",
        )
        for candidate, colour in zip(every, DESIGN_COLOURS, strict=False)
    ]
    parts = time_parts(rows)
    return Chart(
        _balance_finding(every),
        f"Stage balance: {parts.axis}",
        "A stage's bar is one iteration long: grey is waiting for other stages, orange is what "
        "the network takes.",
        stage_rows_figure(rows, parts),
        tuple(TIME_COLOURS.items()),
    )


def _balance_finding(every: Sequence[Candidate]) -> str:
    planned = [(c.name, c.report) for c in every if c.report]
    if not planned:
        return "There is no plan to balance"
    shares = {
        name: sum(stage.communication_s for stage in report.stages)
        / (len(report.stages) * report.iteration_s)
        for name, report in planned
    }
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    least = f", {percent(shares[low])} in {low}" if shares[high] - shares[low] > _SAME else ""
    words = f"Communication takes {percent(shares[high])} of an iteration in {high}{least}"
    uneven, name, number = max(
        (bottleneck(report)[1], name, bottleneck(report)[0]) for name, report in planned
    )
    return (
        words
        if uneven < _SAME
        else f"{words}; stage {number + 1} of {name} lies {percent(uneven)} above its mean"
    )


def _leading(
    every: Sequence[Candidate], labels: Sequence[str], rates: Sequence[float | None]
) -> Claim:
    """Return who trains most, with its figure and the last one's, as the bars have them."""
    rows = [
        (rate, candidate.name, label)
        for rate, candidate, label in zip(rates, every, labels, strict=True)
        if rate
    ]
    if not rows:
        return Claim("No scenario has a plan")
    (most, first, words), (least, last, fewest) = max(rows), min(rows)
    if words == fewest:
        return Claim(f"Each trains {words}", Fact("trains", (first,), "", most))
    facts = Fact("trains", (first,), "", most), Fact("trains", (last,), "", least)
    return Claim(f"{does(first, 'trains')} {words}, {last} {fewest}", *facts)
