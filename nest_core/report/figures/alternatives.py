"""Our plan beside what other planners find, row by row: degrees, throughput, why it is less.

Methods that find one and the same plan share a row. Bars begin at 0; their whiskers are 80 %
intervals, of which both ends are ratios, so that they say nothing of who is faster.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.costs.plan_words import schedule_words
from nest_core.documents.units import humanise_seconds, percent
from nest_core.explain.interval import Interval
from nest_core.explain.traffic import report_parts
from nest_core.planner import Certificate
from nest_core.report.figures.cards import TIE
from nest_core.report.figures.entries import Entry
from nest_core.report.figures.marks import bar, figure, rule, words
from nest_core.report.figures.style import axis_unit
from nest_core.report.scale import round_ticks

__all__ = ["alternatives_table"]


@dataclass(frozen=True, slots=True)
class _Row:
    entry: Entry
    same: tuple[str, ...] = ()


def alternatives_table(
    rows: Sequence[Entry],
    sequence: int,
    interval: Interval | None,
    reference: str,
    certificate: Certificate,
) -> str:
    """The table with its finding.

    Parameters
    ----------
    rows : sequence of Entry
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
    folded = _folded(rows)
    rates = {
        row.entry.name: row.entry.report.samples_per_s * sequence
        for row in folded
        if row.entry.report and row.entry.feasible
    }
    held = next((row for row in folded if reference in (row.entry.name, *row.same)), None)
    against = rates.get(held.entry.name) if held else None
    ends = [interval.around(rate)[1] if interval else rate for rate in rates.values()]
    most = 1.04 * max(ends, default=1.0)
    divisor, unit = axis_unit(most, "tokens/s")
    lines = [
        _line(
            row,
            rates,
            most,
            divisor,
            interval,
            against,
            held,
            _why(row.entry, rows[0], certificate),
        )
        for row in folded
    ]
    axis = [
        words(tick * divisor / most, 12, f"{tick:.4g}{f' {unit}' if tick == last else ''}", "m")
        for ticked in (round_ticks(0.0, most / divisor, 4) if rates else [0.0],)
        for last in (ticked[-1],)
        for tick in ticked
    ]
    head = (
        '<tr><th class="nest-words">method</th><th>dp</th><th>tp</th><th>pp</th><th>mb</th>'
        '<th class="nest-words">schedule</th>'
        f'<th class="nest-bar">{figure(16, "axis of throughput", axis)}</th>'
        f'<th>against {html.escape(reference)}</th><th class="nest-words">why</th></tr>'
    )
    finding = html.escape(_finding(folded, rates, held))
    return (
        f'<div class="nest-title">{finding}</div>'
        f'<div class="nest-across" tabindex="0" role="group" aria-label="{finding}">'
        f'<table class="nest-table nest-alternatives"><thead>{head}'
        f"</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _folded(rows: Sequence[Entry]) -> list[_Row]:
    """Rows of one and the same plan as one, under the first's name."""
    found: list[_Row] = []
    for entry in rows:
        plan = entry.report.plan if entry.report and entry.feasible and not entry.stale else None
        twin = next(
            (
                place
                for place, row in enumerate(found)
                if plan is not None and row.entry.report and row.entry.report.plan == plan
            ),
            None,
        )
        if twin is None:
            found.append(_Row(entry))
        else:
            known = found[twin]
            found[twin] = replace(known, same=(*known.same, entry.name))
    return found


def _line(
    row: _Row,
    rates: dict[str, float],
    most: float,
    divisor: float,
    interval: Interval | None,
    against: float | None,
    held: _Row | None,
    why: str,
) -> str:
    entry, report = row.entry, row.entry.report
    rate = rates.get(entry.name)
    cells = ["", "", "", "", ""]
    if report is not None:
        point = report.plan.point
        cells = [f"{point.dp}", f"{point.tp}", f"{point.pp}", f"{point.micro_batch}"]
        wider = [f"{a} {getattr(point, a)}" for a in ("cp", "ep") if getattr(point, a) > 1]
        cells.append(", ".join([*wider, schedule_words(point.schedule, point.interleave)]))
    called, _, aside = entry.name.removesuffix(" (ours)").partition(" (")
    name = f'<b class="nest-{"ours" if entry.ours else "other"}">{html.escape(called)}</b>'
    name += f' <span class="nest-dim">{html.escape(aside.rstrip(")"))}</span>' if aside else ""
    name += "".join(f' <span class="nest-dim">= {html.escape(twin)}</span>' for twin in row.same)
    if row is held and rate:
        beside = "reference"
    else:
        beside = "–" if rate is None or not against else _ratio(rate / against)
    degrees = "".join(f"<td>{cell}</td>" for cell in cells[:4])
    return (
        f'<tr{" class=nest-stale" if entry.stale else ""}><td class="nest-words">{name}</td>'
        f'{degrees}<td class="nest-words">{cells[4]}</td>'
        f'<td class="nest-bar">{_bar(entry, rate, most, divisor, interval)}</td><td>{beside}</td>'
        f'<td class="nest-words">{html.escape(why)}</td></tr>'
    )


def _ratio(factor: float) -> str:
    return "tie" if abs(factor - 1) < TIE else f"{factor:.2f} ×"


def _bar(
    entry: Entry, rate: float | None, most: float, divisor: float, interval: Interval | None
) -> str:
    if rate is None:
        return figure(20, "no plan", [])
    marks = [bar(0, 1, rate / most, 18, "--accent" if entry.ours else "--base")]
    if interval is not None:
        low, high = (end / most for end in interval.around(rate))
        marks += [
            rule(low, 10, high, 10, "--ink", 1.5),
            rule(low, 6, low, 14, "--ink", 1.5),
            rule(high, 6, high, 14, "--ink", 1.5),
        ]
    told = f"{rate / divisor:.3g}"
    marks.append(words(0, 14, told, f"b {'on' if entry.ours else 'hot'}", 8))
    return figure(20, f"{entry.name}: {told}", marks)


def _why(entry: Entry, ours: Entry, certificate: Certificate) -> str:
    """What the plan takes more of than ours."""
    if entry.report is None or not entry.feasible:
        return entry.shortfall or "no plan"
    if entry.stale:
        return "of the request before"
    if entry.ours:
        if not certificate.proven:
            return f"search stopped early: within {percent(certificate.gap)} of the optimum"
        return f"none of {certificate.points:,} plans is faster"
    if ours.report is None:
        return ""
    here, there = report_parts(ours.report), report_parts(entry.report)
    more = [(b.seconds - a.seconds, a.name) for a, b in zip(here, there, strict=True)]
    longer = entry.report.iteration_s - ours.report.iteration_s
    if abs(longer) < TIE * ours.report.iteration_s:
        return "as fast"
    seconds, name = max(more) if longer > 0 else min(more)
    sign = "more" if longer > 0 else "less"
    return f"{humanise_seconds(abs(seconds))} {sign} {_NAMES[name]}"


_NAMES = {
    "compute": "compute",
    "communication": "communication",
    "bubble": "fill, drain and waiting",
}


def _finding(folded: Sequence[_Row], rates: dict[str, float], held: _Row | None) -> str:
    """How far ours is ahead of the reference, and who finds the same."""
    ours = folded[0]
    mine, rival = rates.get(ours.entry.name), rates.get(held.entry.name) if held else None
    if mine is None:
        return "No plan fits"
    best = max(rates, key=rates.__getitem__)
    if rates[best] > mine * (1 + TIE):
        ahead = _percent(rates[best] / mine - 1)
        return f"{best} is {ahead} % faster than what the search had found when it stopped"
    said = "Exact search"
    if held is ours or rival is None:
        said = "The exact search's plan is the reference" if held is ours else "Exact search"
        if rival is None:
            pending = any(row.entry.stale for row in folded)
            said = "The baselines are being priced" if pending else "No reference has a plan here"
    else:
        gain = mine / rival - 1
        name = held.entry.name if held else ""
        said = (
            f"Exact search and {name} tie"
            if abs(gain) < TIE
            else f"Exact search is {_percent(abs(gain))} % {'faster' if gain > 0 else 'slower'} "
            f"than {name}"
        )
    if not ours.same:
        return said
    *first, last = ours.same
    finders = f"{', '.join(first)} and {last} find" if first else f"{last} finds"
    return f"{said}; {finders} the same plan here"


def _percent(gain: float) -> str:
    """Two digits.

    Examples
    --------
    >>> _percent(0.2612), _percent(1.0), _percent(0.0061)
    ('26', '100', '0.61')
    """
    return f"{float(f'{100 * gain:.2g}'):g}"
