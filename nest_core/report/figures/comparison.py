"""Scenarios side by side: the same order, the same colour for the same scenario, shared axes.

What designs train per dollar is told by a break-even of the whole bill (`nest_core.report.sheet`):
dollars of the network alone would call the poorest network the best buy while accelerators that
cost ten times as much wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nest_core.bill.prices import PriceRange
from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.documents.units import format_money, humanise, humanise_seconds, percent
from nest_core.explain import bottleneck, quantity
from nest_core.hardware.posterior import SHARE
from nest_core.report.figures.bill import watts
from nest_core.report.figures.comparison_bars import (
    SCENARIO_COLOURS,
    Ends,
    Panel,
    bars,
    losses_picture,
)
from nest_core.report.figures.comparison_levels import levels_picture
from nest_core.report.figures.entries import Entry
from nest_core.report.figures.stages import stage_rows_figure, time_parts
from nest_core.report.figures.style import (
    TIME_COLOURS,
    Picture,
    axis_unit,
    plain,
    pointed_rows,
    wrapped,
)
from nest_core.studies.comparison import Comparison
from nest_core.studies.whole_bill import Candidate

__all__ = ["SCENARIO_COLOURS", "pictures"]

_SAME = 0.005


def pictures(comparison: Comparison) -> tuple[Picture, ...]:
    """All figures of a comparison.

    Throughput; price and power of the network; at equal budget, without one switch, and NEST's
    program, where asked for; stage balance; levels.
    """
    every = comparison.candidates
    found = [_throughput(every), _cost(every)]
    if comparison.budget is not None:
        found.append(_equal_budget(comparison))
    if any(one.losses for one in every):
        found.append(losses_picture(every))
    if any(one.nest for one in every):
        found.append(_level_wise(every))
    return (*found, _balance(every), levels_picture(every))


def _throughput(every: Sequence[Candidate]) -> Picture:
    rates = [one.tokens_per_s for one in every]
    spans = [one.tokens_per_s_span for one in every]
    largest = max([*(rate or 0.0 for rate in rates), *(span[1] for span in spans if span), 1.0])
    scale, unit = axis_unit(largest, "tokens/s")
    panel = Panel(
        f"throughput, {unit}",
        tuple(rate and rate / scale for rate in rates),
        tuple(quantity(rate, "tokens/s") if rate else "no feasible plan" for rate in rates),
        tuple(span and (span[0] / scale, span[1] / scale) for span in spans),
    )
    reading = "Each scenario's best plan. Longer is better."
    if any(spans):
        reading += f" The grey line is its {SHARE:.0%} interval."
    if len({one.scenario.fabric.ratios for one in every}) > 1:
        reading += f" Ratios differ. {UNMEASURED_RATIO}"
    finding = _most(every, rates, "is fastest", "No scenario has a feasible plan")
    plot = bars(every, [panel])
    why = {
        row: f"{plain(one.name)}: no plan<br>{wrapped(plain(one.reason))}"
        for row, one in enumerate(every)
        if one.report is None
    }
    plot.add_traces(pointed_rows(why, plot.layout.xaxis.range[1]))
    return Picture(finding, f"Training throughput, {unit}", reading, plot)


def _cost(every: Sequence[Candidate]) -> Picture:
    money, power = [one.bill.price_usd for one in every], [one.bill.power_W for one in every]
    least = _most(
        every,
        [value.typical for value in money],
        "has the cheapest network",
        "There is no network to buy",
        lowest=True,
    )
    estimated = max(one.bill.estimated_share for one in every)
    return Picture(
        least,
        f"Price and power of the network; up to {percent(estimated)} of a price is estimated",
        "Switches, NICs, transceivers and cables; accelerators and servers are not counted. "
        "The grey line runs from the low to the high end of the listed figures.",
        bars(
            every,
            [
                _range_panel("price", money, "$", format_money),
                _range_panel("power", power, "W", watts),
            ],
        ),
    )


def _level_wise(every: Sequence[Candidate]) -> Picture:
    """Iterations under both planners, and what NEST's promised; one scale for all."""
    runs = [one.nest if one.nest and one.nest.feasible else None for one in every]
    ours = [one.report.iteration_s if one.report else None for one in every]
    takes = [run.report.iteration_s if run and run.report else None for run in runs]
    promised = [run.promised_s if run else None for run in runs]
    scale, unit = axis_unit(max([*(value or 0.0 for value in ours + takes), 1e-9]), "s")
    panels = [
        Panel(
            f"{name}, {unit}",
            tuple(value and value / scale for value in values),
            tuple(humanise_seconds(value) if value else "no plan" for value in values),
            (None,) * len(every),
        )
        for name, values in (
            ("exact search (ours)", ours),
            ("NEST takes", takes),
            ("NEST promised", promised),
        )
    ]
    ratios = [
        (there / here - 1.0, one.name)
        for one, here, there in zip(every, ours, takes, strict=True)
        if here and there
    ]
    if not ratios:
        finding = "NEST's level-wise program has no plan here"
    elif max(abs(ratio) for ratio, _ in ratios) < _SAME:
        finding = "NEST's level-wise program and the exact search tie everywhere"
    else:
        ratio, name = max(ratios, key=lambda pair: abs(pair[0]))
        way = "slower" if ratio > 0 else "faster"
        finding = f"NEST's level-wise program is up to {percent(abs(ratio))} {way} ({name})"
    return Picture(
        finding,
        f"Iteration under the exact search and NEST, level-wise program (paper), {unit}",
        "Shorter is better. What makes the difference stands in the table, cause by cause.",
        bars(every, panels),
    )


def _range_panel(
    name: str,
    values: list[PriceRange],
    base: str,
    words: Callable[[float], str],
) -> Panel:
    largest = max(value.high for value in values)
    scale, unit = axis_unit(largest, base)
    return Panel(
        f"{name}, {unit}",
        tuple(value.typical / scale for value in values),
        tuple(words(value.typical) for value in values),
        tuple((value.low / scale, value.high / scale) for value in values),
    )


def _equal_budget(comparison: Comparison) -> Picture:
    every, budget = comparison.candidates, comparison.budget
    there = [one.at_budget for one in every]
    rates = [found.tokens_per_s if found else None for found in there]
    scale, unit = axis_unit(max([rate or 0.0 for rate in rates] + [1.0]), "tokens/s")
    counts = [float(found.devices) if found else None for found in there]
    words = ""
    if budget is not None:
        words = (format_money if budget.kind == "price" else watts)(budget.value)
    blank: tuple[Ends, ...] = (None,) * len(every)
    panels = [
        Panel(
            f"throughput, {unit}",
            tuple(rate and rate / scale for rate in rates),
            tuple(humanise(rate) if rate else "none" for rate in rates),
            blank,
        ),
        Panel("devices", tuple(counts), tuple(f"{count or 0:,.0f}" for count in counts), blank),
    ]
    return Picture(
        _most(
            every,
            rates,
            f"trains fastest on a network of {words}",
            f"No scenario has a plan on a network of {words}",
        ),
        f"The same designs with as many nodes as a network of {words} joins, planned anew",
        "Radix, ratios, rates and tiers stay, the job and its batch too; the accelerators "
        "themselves are not in the budget.",
        bars(every, panels),
    )


def _balance(every: Sequence[Candidate]) -> Picture:
    rows = [
        Entry(
            f'<span style="color:{colour}">■</span> {plain(one.name)}',
            one.report,
            "" if one.report else "no feasible plan",
        )
        for one, colour in zip(every, SCENARIO_COLOURS, strict=False)
    ]
    parts = time_parts(rows)
    return Picture(
        _balance_finding(every),
        f"Stage balance: {parts.axis}",
        "A stage's bar is one iteration long: grey is waiting for other stages, orange is what "
        "the network takes.",
        stage_rows_figure(rows, parts, {}),
        tuple(TIME_COLOURS.items()),
    )


def _balance_finding(every: Sequence[Candidate]) -> str:
    planned = [(one.name, one.report) for one in every if one.report]
    if not planned:
        return "There is no plan to balance"
    shares = [
        (
            sum(stage.communication_s for stage in report.stages)
            / (len(report.stages) * report.iteration_s),
            name,
        )
        for name, report in planned
    ]
    (low, least), (high, most) = (pick(shares, key=_first_of) for pick in (min, max))
    uneven, name, number = max(
        (bottleneck(report)[1], name, bottleneck(report)[0]) for name, report in planned
    )
    words = f"Communication takes {percent(high)} of an iteration in {most}" + (
        f", {percent(low)} in {least}" if high - low > _SAME else ""
    )
    if uneven < _SAME:
        return words
    return f"{words}; stage {number + 1} of {name} lies {percent(uneven)} above its mean"


def _most(
    every: Sequence[Candidate],
    values: Sequence[float | None],
    claim: str,
    nothing: str,
    *,
    lowest: bool = False,
) -> str:
    """Which candidate leads, and how far it lies from the first, as in the table.

    Where the first itself leads, how far the last lies from it.
    """
    known = [(value, one.name) for value, one in zip(values, every, strict=True) if value]
    if not known:
        return nothing
    ends = [pick(known, key=_first_of) for pick in (min, max)]
    (best, leader), (worst, last) = ends if lowest else ends[::-1]
    if len(known) == 1:
        return f"Only {leader} has one: it {claim}"
    if abs(best / worst - 1) < _SAME:
        return "All are equal within 0.5 %"
    level = [name for value, name in known if name != leader and abs(value / best - 1) < _SAME]
    beside = f", level with {level[0] if len(level) == 1 else f'{len(level)} others'}"
    claimed = f"{leader} {claim}{beside if level else ''}"
    base, first = known[0]
    if abs(best / base - 1) < _SAME:
        return f"{claimed}: {last} lies {_apart(worst / base - 1)} {first}"
    return f"{claimed}: {_apart(best / base - 1)} {first}"


def _apart(difference: float) -> str:
    return f"{percent(abs(difference))} {'above' if difference > 0 else 'below'}"


def _first_of(pair: tuple[float, str]) -> float:
    """Ties go to whoever stands first."""
    return pair[0]
