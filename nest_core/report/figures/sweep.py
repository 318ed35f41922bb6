"""The figures of a sweep: throughput, memory, scaling, and what the network costs for it."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.costs.interval import span_in_words
from nest_core.documents import (
    alike,
    at_least_gib,
    at_most_percent,
    capital,
    format_money,
    join_words,
    percent,
    signed_percent,
)
from nest_core.report.explain import quantity
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    LIMIT,
    MUTED,
    SILENT,
    Chart,
    Trace,
    axis_title,
    axis_unit,
    curve,
    dots,
    hovered,
    note,
    plot,
    value_axis,
)
from nest_core.report.figures.sweep_parts import (
    band,
    beside,
    hatched,
    hover,
    label,
    parameter_axis,
    places,
    plane_picture,
    planless,
    rate_unit,
    shortfall,
)
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Sweep, changes
from nest_core.studies.uncertainty import paired_rate

__all__ = ["pareto_set", "pictures"]

_HEIGHT = 380
_MARGIN = (62, 16, 14, 58)
_MAX_LABELS = 14
_MAX_PARETO_LABELS = 9
_MAX_CHANGES = 4
_STEADY = 0.005
_ROUNDING = 1e-9
_ENOUGH = 0.98
"""Of the best throughput: a cheaper network that keeps it is worth a title."""
_POINTS = {"size": 8, "color": ACCENT}
_DASHED: Trace = {"hoverinfo": "skip", "line": {"dash": "dash"}}


def pictures(sweep: Sweep) -> tuple[Chart, ...]:
    """Return all figures that a sweep has something for; the first is the one to point at.

    Its points carry their place in ``sweep.points`` as ``customdata``.
    """
    if not sweep.points:
        return ()
    if sweep.y is None:
        along, order = _along_axis(sweep)
        drawn = [_throughput(along, order), _memory(along), _scaling(along), _pareto(sweep)]
    else:
        drawn = [plane_picture(sweep), _pareto(sweep)]
    return tuple(replace(picture, table=sweep.rows) for picture in drawn if picture is not None)


def _along_axis(sweep: Sweep) -> tuple[Sweep, list[int]]:
    """Return a sweep from left to right, values without a point last, and its points' places."""
    at = dict(zip(sweep.x.values, places(sweep.x), strict=True))
    order = sorted(range(len(sweep.points)), key=lambda i: at[sweep.points[i].values[0]])
    points = tuple(sweep.points[i] for i in order)
    values = dict.fromkeys((*(point.values[0] for point in points), *sweep.x.values))
    return replace(sweep, axes=(replace(sweep.x, values=tuple(values)),), points=points), order


def _throughput(sweep: Sweep, order: Sequence[int]) -> Chart:
    """Draw throughput against one parameter, with the points where the plan changes.

    ``order`` are the places of the points in the sweep as it was asked.
    """
    scale, unit = rate_unit(sweep)
    every = places(sweep.x)
    at, gap = every[: len(sweep.points)], _gap(every)
    rates = [point.tokens_per_s and point.tokens_per_s / scale for point in sweep.points]
    turns = _turns(sweep)
    lines = max((min(len(words), _MAX_CHANGES) for _, words in turns), default=0)
    # What changes stands above the line, so there must be room for it.
    bands = band(at, sweep.points, scale, 0.15 * gap)
    ends = [y for trace in bands for y in trace["y"] if y is not None]
    top = 1.1 * max([rate or 0.0 for rate in rates] + ends + [1e-9]) / (1 - 0.05 * lines)
    unplanned = [i for i, point in enumerate(sweep.points) if not point.feasible]
    texts = [hover(sweep, point) for point in sweep.points]
    notes = [
        *(_turn_note(at[i] + at[j], words) for (i, j), words in turns),
        *(
            {"text": label(point, scale), "x": x, "y": rate, "yshift": 14, "showarrow": False}
            for x, rate, point in zip(at, rates, sweep.points, strict=True)
            if rate and len(at) <= _MAX_LABELS
        ),
        *(note(shortfall(sweep.points[i]), at[i], top / 2, textangle=-90) for i in unplanned),
    ]
    look: Trace = {"x": at, "y": rates}
    crosses = {"size": 10, "symbol": "x-thin-open", "color": MUTED, "line": {"width": 2}}
    data = [
        hatched((at[i] - gap / 2, at[i] + gap / 2, 0.0, top) for i in unplanned),
        *bands,
        curve(**look, colour=FAINT, connectgaps=True, **SILENT),
        curve(
            **look,
            colour=ACCENT,
            mode="lines+markers",
            marker={"size": 10, "color": ACCENT},
            unselected={"marker": {"opacity": 0.45}},
            customdata=list(order),
            **hovered(texts),
        ),
        # Something to point at where there is no plan.
        dots(
            [at[i] for i in unplanned],
            [0.0] * len(unplanned),
            crosses,
            cliponaxis=False,
            customdata=[order[i] for i in unplanned],
            **hovered(texts[i] for i in unplanned),
        ),
    ]
    more = f" {UNMEASURED_RATIO}" if sweep.x.name.startswith("oversubscription.") else ""
    return Chart(
        _finding(sweep, len(turns)),
        f"Training throughput against {sweep.x.title}; {unit}",
        "Every point is planned anew. Dashed uprights: the plan changes. Band: "
        f"{beside(sweep)}{more}",
        plot(
            data,
            _HEIGHT,
            _MARGIN,
            xaxis=parameter_axis(sweep.x, every, 0.6 * gap),
            yaxis=value_axis(f"throughput, {unit}", range=[0, top]),
            shapes=[
                {
                    "type": "line",
                    "line": {"color": MUTED, "width": 1, "dash": "dash"},
                    "xref": "x",
                    "yref": "paper",
                    "x0": x,
                    "x1": x,
                    "y0": 0,
                    "y1": 1 - 0.05 * len(words),
                }
                for (i, j), words in turns
                for x in ((at[i] + at[j]) / 2,)
            ],
            annotations=notes,
        ),
    )


def _memory(sweep: Sweep) -> Chart:
    """Draw memory of the fullest stage against one parameter, beside what a device has."""
    limits = [point.limit_bytes for point in sweep.points]
    fullest = [point.memory_bytes for point in sweep.points]
    needed = [point.needed_bytes or None for point in sweep.points]
    largest = max([size for size in (*limits, *fullest, *needed) if size], default=1.0)
    scale, unit = axis_unit(largest, "B")
    every = places(sweep.x)
    at = every[: len(sweep.points)]
    texts = hovered(hover(sweep, point) for point in sweep.points)
    limits, fullest, needed = (
        [size and size / scale for size in sizes] for sizes in (limits, fullest, needed)
    )
    needs = {"size": 9, "color": LIMIT, "symbol": "circle-open", "line": {"width": 2}}
    planned: Trace = {
        "mode": "lines+markers",
        "marker": _POINTS,
        "showlegend": any(fullest),
    }
    data = [
        curve(at, limits, LIMIT, None, **_DASHED, name="what a device has", showlegend=any(limits)),
        curve(at, fullest, ACCENT, name="fullest stage", **planned, **texts),
        dots(at, needed, needs, name="enough for some plan", showlegend=any(needed), **texts),
    ]
    enough = "; circle: enough for some plan" if any(needed) else ""
    return Chart(
        _memory_finding(sweep),
        f"Memory of the fullest stage, {unit}",
        "The search takes what memory there is where that makes it faster.",
        plot(
            data,
            _HEIGHT,
            _MARGIN,
            xaxis=parameter_axis(sweep.x, every, 0.6 * _gap(every)),
            yaxis=value_axis(f"memory per device, {unit}", range=[0, 1.12 * largest / scale]),
        ),
        (("fullest stage", ACCENT), (f"what a device has{enough}", LIMIT)),
    )


def _scaling(sweep: Sweep) -> Chart | None:
    """Draw throughput against ideal scaling from the smallest fabric with a plan.

    None unless the one parameter is the number of devices, and two of them have a plan.
    """
    feasible = [point for point in sweep.points if point.feasible and point.devices]
    if sweep.x.name != "devices" or len(feasible) < 2:
        return None
    first, last = feasible[0], feasible[-1]
    at = dict(zip(sweep.x.values, places(sweep.x), strict=True))
    scale, unit = rate_unit(sweep)
    x = [at[point.values[0]] for point in feasible]
    rates = [(point.tokens_per_s or 0.0) / scale for point in feasible]
    ideal = [rates[0] * (point.devices or 1) / (first.devices or 1) for point in feasible]
    parts = [rate / best for rate, best in zip(rates, ideal, strict=True)]
    times = rates[-1] / rates[0]
    ends = [math.log10(min(rates)) - 0.15, math.log10(max(ideal)) + 0.2]
    texts = hovered(hover(sweep, point) for point in feasible)
    return Chart(
        f"From {first.devices:,} to {last.devices:,} devices throughput "
        + (f"grows {times:.3g}-fold" if times >= 1 else f"falls by {percent(1 - times)}")
        + f": {percent(parts[-1])} of ideal",
        f"Throughput against ideal scaling from {first.devices:,} devices; {unit}",
        "Percentages are of ideal. The global batch stays, so each replica gets less to do.",
        plot(
            [
                *band(x, feasible, scale, 0.1),
                curve(x, ideal, MUTED, None, name="ideal", **_DASHED),
                curve(
                    x, rates, ACCENT, mode="lines+markers", name="planned", marker=_POINTS, **texts
                ),
            ],
            _HEIGHT,
            _MARGIN,
            xaxis=parameter_axis(sweep.x, list(at.values()), 0.3),
            yaxis={
                "type": "log",
                "range": ends,
                "gridcolor": FAINT,
                "gridwidth": 0.5,
                "fixedrange": True,
                "dtick": "D2" if ends[1] - ends[0] < 1.5 else 1,
                "tickformat": "~g",
                "title": axis_title(f"throughput, {unit}"),
            },
            annotations=[
                {
                    "text": f"{100 * part:.0f} %",
                    "x": place,
                    "y": math.log10(rate),
                    "yshift": -16,
                    "showarrow": False,
                }
                for place, rate, part in zip(x, rates, parts, strict=True)
            ],
        ),
        (("planned", ACCENT), ("ideal", MUTED)),
    )


def pareto_set(points: list[StudyRow]) -> list[StudyRow]:
    """Return those that no other beats in price and throughput both, cheapest first."""
    best, unbeaten = 0.0, []
    for point in sorted(points, key=lambda p: (p.network_usd or 0.0, -(p.tokens_per_s or 0.0))):
        if (point.tokens_per_s or 0.0) > best:
            best = point.tokens_per_s or 0.0
            unbeaten.append(point)
    return unbeaten


def _pareto(sweep: Sweep) -> Chart | None:
    """Draw throughput against the network's price.

    None unless a parameter changes the price alone: fabrics of different sizes do different work
    and are not compared.
    """
    priced = [point for point in sweep.points if point.feasible and point.network_usd]
    turned = {axis.name for axis in sweep.axes if axis.fabric}
    if not turned or "devices" in turned or len({point.network_usd for point in priced}) < 2:
        return None
    unbeaten = pareto_set(priced)
    scale, unit = rate_unit(sweep)
    money, currency = axis_unit(max(point.network_usd or 0.0 for point in priced), "$")
    at = {id(p): ((p.network_usd or 0.0) / money, (p.tokens_per_s or 0.0) / scale) for p in priced}
    x, y = zip(*at.values(), strict=True)
    steps_x, steps_y = zip(*(at[id(point)] for point in unbeaten), strict=True)
    marker = {
        "opacity": 1.0,
        "size": [10 if point in unbeaten else 8 for point in priced],
        "color": [ACCENT if point in unbeaten else MUTED for point in priced],
    }
    texts = hovered(hover(sweep, point) for point in priced)
    steps = {"width": 1.5, "shape": "hv"}
    labelled = unbeaten if len(unbeaten) <= _MAX_PARETO_LABELS else []
    return Chart(
        _pareto_finding(sweep, unbeaten),
        f"Throughput against the price of the network; {unit}, {currency}",
        "Blue points are the Pareto set: none is both cheaper and faster. Axes do not start at 0.",
        plot(
            [
                curve(steps_x, steps_y, ACCENT, name="Pareto set", hoverinfo="skip", line=steps),
                dots(x, y, marker, showlegend=False, **texts),
            ],
            _HEIGHT,
            (62, 16, 14, 50),
            xaxis=_near_axis(f"price of the network, {currency}", x),
            yaxis=_near_axis(f"throughput, {unit}", y),
            annotations=[
                note(
                    ", ".join(
                        a.words(value) for a, value in zip(sweep.axes, p.values, strict=True)
                    ),
                    *at[id(p)],
                    yshift=13,
                )
                for p in labelled
            ],
        ),
        (("Pareto set", ACCENT), ("beaten", MUTED)),
    )


def _near_axis(title: str, values: Sequence[float]) -> Trace:
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or 0.1 * high
    return value_axis(title, nticks=6, range=[max(0.0, low - room), high + 1.3 * room]) | {
        "title": axis_title(title, 6)
    }


def _gap(at: Sequence[float]) -> float:
    """Return the least distance between neighbours."""
    return min((b - a for a, b in itertools.pairwise(sorted(at))), default=1.0)


def _turns(sweep: Sweep) -> list[tuple[tuple[int, int], tuple[str, ...]]]:
    """Return neighbouring points with plans that differ, and in what."""
    feasible = [i for i, point in enumerate(sweep.points) if point.feasible]
    return [
        ((i, j), words)
        for i, j in itertools.pairwise(feasible)
        for words in [changes(sweep.points[i], sweep.points[j], (sweep.x.name,))]
        if words
    ]


def _turn_note(twice: float, words: tuple[str, ...]) -> Trace:
    """Return what changes between two places, given their sum."""
    shorter = words if len(words) <= _MAX_CHANGES else (*words[: _MAX_CHANGES - 1], "…")
    text = "<br>".join(part.replace(" → ", "→") for part in shorter)
    ends = {"xref": "x", "yref": "paper", "yanchor": "top", "align": "center"}
    return note(text, twice / 2, 1, hovertext="<br>".join(words), **ends)


def _finding(sweep: Sweep, turns: int) -> str:
    feasible = [point for point in sweep.points if point.feasible]
    if not feasible:
        return "No plan fits at any of these points"
    if len(sweep.points) == 1:
        rate = quantity(feasible[0].tokens_per_s or 0.0, "tokens/s")
        return f"{rate} at {_at(sweep, feasible[0])}"
    times = {1: "once", 2: "twice"}.get(turns, f"{turns} times")
    plans = [{**(point.plan or {}), sweep.x.name: None} for point in feasible]
    changed = (
        f"; the plan changes {times}"
        if turns
        else "; the plan stays"
        if all(plan == plans[0] for plan in plans)
        else "; only the plan's cuts change"
    )
    return _trend(sweep, feasible) + (changed if len(feasible) > 1 else "") + planless(sweep.points)


def _trend(sweep: Sweep, feasible: list[StudyRow]) -> str:
    rates = [point.tokens_per_s or 0.0 for point in feasible]
    best = max(range(len(rates)), key=rates.__getitem__)
    if len(feasible) == 1:
        return f"Only {_at(sweep, feasible[0])} has a plan"
    spread = 1 - min(rates) / max(rates)
    if spread < _STEADY:
        most = at_most_percent(spread)
        where = "Where there is a plan, the" if len(rates) < len(sweep.points) else "The"
        return f"{where} {sweep.x.label} hardly matters: throughput stays within {most}"
    tops = [place for place, rate in enumerate(rates) if rate >= (1 - _ROUNDING) * rates[best]]
    best = len(rates) - 1 if len(rates) - 1 in tops and 0 not in tops else best
    ends = f"from {_at(sweep, feasible[0])} to {_at(sweep, feasible[-1])}"
    times = rates[-1] / rates[0]
    if best in (0, len(rates) - 1) and abs(times - 1) < _STEADY:
        slow = _points_at(sweep, feasible, [-rate for rate in rates])
        return f"Slowest at {slow}, {percent(spread)} below the fastest"
    low, high = paired_rate(times, feasible[-1].sureness, feasible[0].sureness).span
    if best in (0, len(rates) - 1) and low < 0 < high:
        ends += ", which runs on one cluster may not tell apart"
    if best == 0:
        return f"Throughput falls {100 * (1 - times):.1f} %{_span(0.0 - high, 0.0 - low)} {ends}"
    if best == len(rates) - 1:
        more = f"{100 * (times - 1):.1f} %{_span(low, high)}"
        return f"Throughput rises {f'{times:.3g}-fold' if times >= 2 else more} {ends}"
    return f"Fastest at {_points_at(sweep, feasible, rates)}"


def _points_at(sweep: Sweep, points: Sequence[StudyRow], values: Sequence[float]) -> str:
    """Return where values are largest, up to rounding."""
    least = max(values) - _ROUNDING * abs(max(values))
    return join_words([_at(sweep, p) for p, v in zip(points, values, strict=True) if v >= least])


def _span(low: float, high: float) -> str:
    """Return an interval behind its figure; empty where nothing is known of it."""
    words = span_in_words((low, high), lambda share: signed_percent(share).removeprefix("+"))
    return f" ({words})" if low < high else ""


def _at(sweep: Sweep, point: StudyRow) -> str:
    """Return a value in a title, with its unit where that says something."""
    value = sweep.x.words(point.values[0])
    if sweep.x.name == "recompute":
        return f"recomputation {value}"
    plain = sweep.x.unit in ("", "down : up")
    unit = "" if plain and sweep.x.name != "devices" else f" {sweep.x.unit or sweep.x.label}"
    return f"{value}{unit}"


def _memory_finding(sweep: Sweep) -> str:
    planned = [point for point in sweep.points if point.memory_bytes and point.limit_bytes]
    if planned:
        shares = [(point.memory_bytes or 0.0) / (point.limit_bytes or 1.0) for point in planned]
        by_place = {str(place): share for place, share in enumerate(shares)}
        places = [int(name) for name in alike(by_place, percent, max(shares))]
        fullest = join_words([_at(sweep, planned[place]) for place in places])
        where = "As full everywhere" if len(places) == len(shares) > 1 else f"Fullest at {fullest}"
        return f"{where}: {percent(max(shares))} of a device's memory"
    needed = [point.needed_bytes for point in sweep.points if point.needed_bytes]
    return (
        f"{at_least_gib(min(needed))} per device would be enough for some plan"
        if needed
        else "No point has a plan"
    )


def _pareto_finding(sweep: Sweep, unbeaten: list[StudyRow]) -> str:
    best = unbeaten[-1]
    if len(unbeaten) == 1:
        return f"Nothing is cheaper or faster than {sweep.named(best)}"
    rate, price = best.tokens_per_s or 1.0, best.network_usd or 1.0
    cheap = next(point for point in unbeaten if (point.tokens_per_s or 0.0) >= _ENOUGH * rate)
    if cheap is best:
        return f"No cheaper network keeps {100 * _ENOUGH:.0f} % of the throughput"
    return (
        f"{capital(sweep.named(cheap))} keeps {percent((cheap.tokens_per_s or 0.0) / rate)} of the "
        f"throughput for {format_money(cheap.network_usd or 0.0)} instead of {format_money(price)}"
    )
