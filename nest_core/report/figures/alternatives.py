"""Our plan beside what other planners find, row by row: degrees, throughput, why it is less.

Methods that find one and the same plan share a row. Bars begin at 0; their whiskers are 80 %
intervals, of which both ends are ratios, so that they say nothing of who is faster.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from nest_core.costs import Interval, Plan, schedule_words
from nest_core.costs.communication import report_parts
from nest_core.documents.units import humanise_seconds, percent
from nest_core.planner import Certificate
from nest_core.report.figures.cards import TIE, bar, figure, rule, words
from nest_core.report.figures.entries import MethodRow
from nest_core.report.figures.style import axis_unit
from nest_core.report.scale import round_ticks

__all__ = ["alternatives_table"]

_NAMES = {
    "compute": "compute",
    "communication": "communication",
    "bubble": "fill, drain and waiting",
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan, the names of those that find it, and its tokens per second, None if it cannot run."""

    entry: MethodRow
    names: list[str]
    rate: float | None


def alternatives_table(
    rows: Sequence[MethodRow],
    sequence: int,
    interval: Interval | None,
    reference: str,
    certificate: Certificate,
) -> str:
    """Return the table with its finding.

    Parameters
    ----------
    rows : sequence of MethodRow
        Ours first.
    sequence : int
        Tokens per sequence.
    interval : Interval or None
        Of our plan; the others' are as wide.
    reference : str
        The name of the row that the others are held against.
    certificate : Certificate
        How our plan is known to be the best, or how far it may be from it.
    """
    plans = _plans(rows, sequence)
    rival = next((plan for plan in plans if reference in plan.names), None)
    rates = [plan.rate for plan in plans if plan.rate]
    ends = [interval.around(rate)[1] if interval else rate for rate in rates]
    end = 1.04 * max(ends, default=1.0)
    divisor, unit = axis_unit(end, "tokens/s")
    ticks = round_ticks(0.0, end / divisor, 4) if rates else [0.0]
    axis = [
        words(tick * divisor / end, 12, f"{tick:.4g}{f' {unit}' if tick == ticks[-1] else ''}", "m")
        for tick in ticks
    ]
    head = (
        '<tr><th class="nest-words">method</th><th>dp</th><th>tp</th><th>pp</th><th>mb</th>'
        '<th class="nest-words">schedule</th>'
        f'<th class="nest-bar">{figure(16, "axis of throughput", axis)}</th>'
        f'<th>against {html.escape(reference)}</th><th class="nest-words">why</th></tr>'
    )
    body = ""
    for plan in plans:
        degrees, schedule = _plan_cells(plan.entry)
        why = html.escape(_why(plan.entry, rows[0], certificate))
        body += (
            f"<tr{' class=nest-stale' if plan.entry.is_pending else ''}>"
            f'<td class="nest-words">{_name(plan)}</td>'
            f'{degrees}<td class="nest-words">{schedule}</td>'
            f'<td class="nest-bar">{_bar(plan, end, divisor, interval)}</td>'
            f'<td>{_against(plan, rival)}</td><td class="nest-words">{why}</td></tr>'
        )
    finding = html.escape(_finding(plans, rival, reference, is_proven=certificate.proven))
    return (
        f'<div class="nest-title">{finding}</div>'
        f'<div class="nest-across" tabindex="0" role="group" aria-label="{finding}">'
        f'<table class="nest-table nest-alternatives"><thead>{head}'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def _plans(rows: Sequence[MethodRow], sequence: int) -> list[_Plan]:
    """Return rows of the same plan as one, under the first's name."""
    plans: dict[Plan | int, _Plan] = {}
    for number, entry in enumerate(rows):
        report = entry.report if entry.feasible else None
        rate = report.samples_per_s * sequence if report else None
        same = report.plan if report else number
        plans.setdefault(same, _Plan(entry, [], rate)).names.append(entry.name)
    return list(plans.values())


def _plan_cells(entry: MethodRow) -> tuple[str, str]:
    """Return cells of the degrees, and the schedule with degrees that are rarely above 1."""
    if entry.report is None:
        return "<td></td>" * 4, ""
    point = entry.report.plan.point
    degrees = (point.dp, point.tp, point.pp, point.micro_batch)
    rare = [f"{axis} {getattr(point, axis)}" for axis in ("cp", "ep") if getattr(point, axis) > 1]
    schedule = schedule_words(point.schedule, point.interleave)
    return "".join(f"<td>{degree}</td>" for degree in degrees), ", ".join([*rare, schedule])


def _name(plan: _Plan) -> str:
    name, *twins = plan.names
    called, _, bracket = name.removesuffix(" (ours)").partition(" (")
    text = f'<b class="nest-{"ours" if plan.entry.ours else "other"}">{html.escape(called)}</b>'
    small = [*([bracket.rstrip(")")] if bracket else []), *(f"= {twin}" for twin in twins)]
    return text + "".join(f' <span class="nest-dim">{html.escape(word)}</span>' for word in small)


def _against(plan: _Plan, rival: _Plan | None) -> str:
    if plan.rate and plan is rival:
        return "reference"
    if plan.rate is None or rival is None or not rival.rate:
        return "–"
    factor = plan.rate / rival.rate
    return "tie" if abs(factor - 1) < TIE else f"{factor:.2f} ×"


def _bar(plan: _Plan, end: float, divisor: float, interval: Interval | None) -> str:
    if plan.rate is None:
        return figure(20, "no plan", [])
    colour, ink = ("--accent", "on") if plan.entry.ours else ("--base", "hot")
    marks = [bar(0, 1, plan.rate / end, 18, colour)]
    if interval is not None:
        low, high = (rate / end for rate in interval.around(plan.rate))
        marks += [
            rule(low, 10, high, 10, "--ink", 1.5),
            rule(low, 6, low, 14, "--ink", 1.5),
            rule(high, 6, high, 14, "--ink", 1.5),
        ]
    text = f"{plan.rate / divisor:.3g}"
    marks.append(words(0, 14, text, f"b {ink}", 8))
    return figure(20, f"{plan.entry.name}: {text}", marks)


def _why(entry: MethodRow, ours: MethodRow, certificate: Certificate) -> str:
    """Return what the plan takes more of than ours."""
    if entry.report is None or not entry.feasible:
        return entry.shortfall or "no plan"
    if entry.ours:
        return (
            f"search {certificate.stopped}: best so far, {certificate.room}"
            if not certificate.proven
            else f"none of {certificate.points:,} plans is faster"
        )
    if ours.report is None:
        return ""
    pairs = zip(report_parts(ours.report), report_parts(entry.report), strict=True)
    more = [(other.seconds - mine.seconds, mine.name) for mine, other in pairs]
    longer = entry.report.iteration_s - ours.report.iteration_s
    if abs(longer) < TIE * ours.report.iteration_s:
        return "as fast"
    (seconds, name), sign = (max(more), "more") if longer > 0 else (min(more), "less")
    return f"{humanise_seconds(abs(seconds))} {sign} {_NAMES[name]}"


def _finding(
    plans: Sequence[_Plan], rival: _Plan | None, reference: str, *, is_proven: bool
) -> str:
    """Return how far ours is ahead of the reference, and who finds the same."""
    ours = plans[0]
    if ours.rate is None:
        return "There is no plan of ours"
    best = max(plans, key=lambda plan: plan.rate or 0.0)
    if best.rate and best.rate > ours.rate * (1 + TIE):
        ahead = f"{best.entry.name} is {_share(best.rate / ours.rate)} faster than"
        return f"{ahead} " + (
            "our plan: its own is outside the space that was searched"
            if is_proven
            else "what the search had found when it stopped"
        )
    if rival is ours:
        finding = "The exact search's plan is the reference"
    elif rival is None or rival.rate is None:
        finding = (
            "The baselines are being priced"
            if any(plan.entry.is_pending for plan in plans)
            else "No reference has a plan here"
        )
    else:
        factor = ours.rate / rival.rate
        way = "faster" if factor > 1 else "slower"
        finding = (
            f"Exact search and {reference} tie"
            if abs(factor - 1) < TIE
            else f"Exact search is {_share(factor)} {way} than {reference}"
        )
    if len(ours.names) == 1:
        return finding
    *first, last = ours.names[1:]
    finders = f"{', '.join(first)} and {last} find" if first else f"{last} finds"
    return f"{finding}; {finders} the same plan here"


def _share(factor: float) -> str:
    """Return how far a factor is from 1, with the digits that the table has of it.

    Examples
    --------
    >>> _share(1.2559), _share(2.0), _share(0.8749)
    ('26 %', '100 %', '13 %')
    """
    return percent(abs(float(f"{factor:.2f}") - 1))
