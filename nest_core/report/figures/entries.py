"""What is compared, and its throughput: our plan first, then the baselines in their order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nest_core.costs import Interval, Report, Span, degrees_in_words, span_in_words
from nest_core.documents.units import humanise_bytes, percent
from nest_core.hardware.posterior import SHARE
from nest_core.planner import SearchResult
from nest_core.planner.baselines import NAMES, Baseline
from nest_core.report.explain import fullest, quantity
from nest_core.report.figures.style import (
    ACCENT,
    HATCH,
    MUTED,
    Chart,
    axis_unit,
    bars,
    plot,
    pointed,
    pointed_rows,
    rows_axis,
    shortened,
    value_axis,
    wrapped,
)

__all__ = ["MethodRow", "entries", "throughput_figure"]

OURS = "Exact search (ours)"


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method's row in a comparison.

    Parameters
    ----------
    name : str
    report : Report or None
        None where there is no plan to price.
    reason : str
        Why there is no feasible plan; empty otherwise.
    is_pending : bool
        Whether it is still being priced, and has no report yet.
    """

    name: str
    report: Report | None
    reason: str = ""
    is_pending: bool = False

    @property
    def ours(self) -> bool:
        """Whether this is our plan."""
        return self.name == OURS

    @property
    def feasible(self) -> bool:
        """Whether the plan can be run."""
        return self.report is not None and not self.reason

    @property
    def degrees(self) -> str:
        """The plan's degrees; empty without a plan."""
        return "" if self.report is None else degrees_in_words(self.report.plan.to_json())

    @property
    def shortfall(self) -> str:
        """Why the plan cannot be run, in few words; empty if it can. `reason` says it in full."""
        if self.report is None:
            return "no feasible plan" if self.ours else shortened(self.reason)
        if not self.reason:
            return ""
        over = fullest(self.report)[1].memory.total - self.report.memory_limit_bytes
        return f"does not fit, {humanise_bytes(over)} over"

    @property
    def summary(self) -> str:
        """Degrees, and what keeps the plan from running."""
        return "; ".join(part for part in (self.degrees, self.shortfall) if part)


def entries(
    result: SearchResult, baselines: Iterable[Baseline], awaited: Iterable[str] = ()
) -> tuple[MethodRow, ...]:
    """Return our plan and the baselines, all of the same request; last the awaited ones, by key."""
    return (
        MethodRow(OURS, result.best, result.reason),
        *(MethodRow(b.label, b.report, b.reason) for b in baselines),
        *(MethodRow(NAMES[name], None, "being priced", is_pending=True) for name in awaited),
    )


_BAR_HEIGHT = 40
_MARGIN = (232, 24, 4, 46)
_SAME = 0.005
_BAND_OFFSET = 0.42


def throughput_figure(
    entries: Sequence[MethodRow], tokens: int, interval: Interval | None = None
) -> Chart:
    """Draw one bar per method; infeasible plans are hatched and say why.

    Parameters
    ----------
    entries : sequence of MethodRow
    tokens : int
        Per sequence.
    interval : Interval or None
        Of our plan's time; those of the others are as wide, as they share its software.
    """
    rates = [e.report.samples_per_s * tokens if e.report else 0.0 for e in entries]
    spans = [
        interval.around(rate) if interval and e.feasible else None
        for e, rate in zip(entries, rates, strict=True)
    ]
    largest = max([*rates, *(high for _, high in filter(None, spans)), 1.0])
    scale, unit = axis_unit(largest, "tokens/s")
    end = 1.3 * largest / scale
    marker = {
        "color": [ACCENT if e.ours else MUTED for e in entries],
        "line": {"width": 0},
        "pattern": {
            "shape": ["" if e.feasible or not e.report else HATCH for e in entries],
            "size": 6,
            "solidity": 0.25,
        },
    }
    drawn = bars(
        [rate / scale for rate in rates],
        list(range(len(entries))),
        marker,
        width=0.64,
        text=[_label(e, rate, rates[0]) for e, rate in zip(entries, rates, strict=True)],
        textposition="outside",
        textfont={"size": 13},
        cliponaxis=False,
        **pointed(map(_hover, entries, rates, spans)),
    )
    unplanned = {
        row: _hover(e, 0.0, None) for row, e in enumerate(entries) if e.report is None and e.reason
    }
    ticks = [
        f"{f'<b>{e.name}</b>' if e.ours else e.name} <br>"
        f"<span style='font-size:12px'>{e.degrees} </span>"
        for e in entries
    ]
    band = f" The line below a bar is its {percent(SHARE)} interval." if any(spans) else ""
    return Chart(
        _finding(entries),
        f"Training throughput, {unit}",
        f"Longer is better; every method is priced by the same costs on the same devices.{band}",
        plot(
            [drawn, *pointed_rows(unplanned, end)],
            50 + _BAR_HEIGHT * len(entries),
            _MARGIN,
            barmode="overlay",
            xaxis=value_axis(f"throughput, {unit}", range=[0, end]),
            yaxis=rows_axis(ticks),
            shapes=[
                {
                    "type": "line",
                    "x0": span[0] / scale,
                    "x1": span[1] / scale,
                    "y0": row + _BAND_OFFSET,
                    "y1": row + _BAND_OFFSET,
                    "line": {"color": MUTED, "width": 3},
                }
                for row, span in enumerate(spans)
                if span
            ],
        ),
    )


def _label(entry: MethodRow, rate: float, ours: float) -> str:
    if entry.shortfall:
        return entry.shortfall
    words = quantity(rate, "tokens/s")
    return words if entry.ours or not ours else f"{words}, {rate / ours:.2f} × ours"


def _hover(entry: MethodRow, rate: float, span: Span | None) -> str:
    if entry.report is None:
        return f"{entry.name}: no plan<br>{wrapped(entry.reason)}"
    ends = span_in_words(span, lambda end: quantity(end, "tokens/s")) if span else ""
    text = f"{entry.name}: {quantity(rate, 'tokens/s')}{f', {ends}' if ends else ''}"
    return f"{text}<br>{wrapped(entry.reason)}" if entry.reason else text


def _finding(entries: Sequence[MethodRow]) -> str:
    ours = next((e.report for e in entries if e.ours), None)
    if ours is None:
        return "There is no plan for this request"
    if any(e.is_pending for e in entries):
        return "Our plan is found; the baselines are being priced"
    # NEST's program is a planner of this product and no rival.
    program = next((e.report for e in entries if e.name == NAMES["nest"] and e.feasible), None)
    rivals = [
        (e.report.samples_per_s, e.name)
        for e in entries
        if e.report and e.feasible and not e.ours and e.name != NAMES["nest"]
    ]
    if not rivals:
        return (
            "Ours is the only feasible plan"
            if any(e.report for e in entries if not e.ours) and program is None
            else "No baseline has a feasible plan here to compare with"
        )
    if program and program.plan.ragged and program.samples_per_s > ours.samples_per_s:
        faster = percent(program.samples_per_s / ours.samples_per_s - 1)
        return f"NEST's program is {faster} faster than our plan: its stages differ in width"
    rate, name = max(rivals, key=lambda rival: rival[0])
    ratio = ours.samples_per_s / rate
    if abs(ratio - 1) < _SAME:
        return f"The best baseline, {name}, is as fast as our plan"
    if ratio < 1:
        return f"{name} is {1 / ratio:.2f} × as fast as our plan"
    return f"Our plan is {ratio:.2f} × as fast as the best baseline, {name}"
