"""The table of a comparison: figures line by line, a value and a text per candidate."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

from nest_core.bill.prices import PriceRange
from nest_core.costs import Report, plan_fields, span_in_words
from nest_core.documents.columns import column_of
from nest_core.documents.schema import parameter
from nest_core.documents.units import (
    NOTHING,
    capital,
    format_money,
    humanise,
    humanise_power,
    humanise_rate,
    humanise_seconds,
    percent,
    percent_column,
    signed,
)
from nest_core.hardware.posterior import SHARE
from nest_core.planner.baselines import NAMES, Waterfall
from nest_core.report.explain.summary import bottleneck, quantity
from nest_core.report.explain.words import losses_in_words, spares_in_words
from nest_core.scenario.document import fabric_title
from nest_core.studies.decision import is_priced, unpriced
from nest_core.studies.equal_budget import Budget
from nest_core.studies.whole_bill import Candidate, typical

__all__ = ["ComparisonLine", "lines"]

Value = float | str | None
_SAME = 5e-4
_NOTHING_S = 1e-9
_ROUNDING = 5e-6
_FAILED = "Worst single failure"


@dataclass(frozen=True, slots=True)
class ComparisonLine:
    """One figure of every candidate.

    Parameters
    ----------
    part : str
        What it belongs to: Result, Cost and power, Fabric, Plan, …
    figure : str
    unit : str
        Of ``values``; empty for words and plain counts.
    values : tuple of float, str or None
        SI units.
    texts : tuple of str
        As people read them; a dash where there is nothing.
    relative : tuple of float or None
        How far each value lies from the first's, as a share; None where that says nothing.
    """

    part: str
    figure: str
    unit: str
    values: tuple[Value, ...]
    texts: tuple[str, ...]
    relative: tuple[float | None, ...]

    @property
    def column(self) -> str:
        """The figure's name among columns of rows, with its unit."""
        name = column_of(self.figure, self.unit)
        prefix = {NAMES["nest"]: "level_wise_", "Scenario": "set_"}.get(self.part, "")
        return f"{prefix}{name}"

    @property
    def differs(self) -> tuple[bool, ...]:
        """Whether a text is not that of the first candidate."""
        return tuple(text != self.texts[0] for text in self.texts)


def lines(candidates: Sequence[Candidate], budget: Budget | None) -> tuple[ComparisonLine, ...]:
    """Return all figures of a comparison; parts stand together.

    What differs from the first says by how much on one line: figures that follow from another one
    alone (iteration time from throughput, a device's part from the whole) do not repeat it.
    """
    return (
        *_result(candidates),
        *_level_wise(candidates),
        *_cost(candidates),
        *_whole(candidates),
        *_failed(candidates),
        *_at_budget(candidates, budget),
        *_plan(candidates),
        *_fabric(candidates),
        *_settings(candidates),
    )


def _numbers(
    part: str,
    figure: str,
    unit: str,
    values: Sequence[float | None],
    words: Callable[[float], str],
    *,
    beside: bool = True,
) -> ComparisonLine:
    """Return a line of quantities, each beside the first unless that says nothing."""
    first = values[0] if beside else None
    relative = tuple(value / first - 1 if first and value is not None else None for value in values)
    texts = tuple(
        NOTHING
        if value is None
        else words(value)
        if difference is None or abs(difference) < _SAME
        else f"{words(value)} ({signed(difference, percent)})"
        for value, difference in zip(values, relative, strict=True)
    )
    return ComparisonLine(part, figure, unit, tuple(values), texts, relative)


def _words(part: str, figure: str, texts: Sequence[str]) -> ComparisonLine:
    return ComparisonLine(
        part,
        figure,
        "",
        tuple(None if text == NOTHING else text for text in texts),
        tuple(texts),
        (None,) * len(texts),
    )


def _result(every: Sequence[Candidate]) -> list[ComparisonLine]:
    part = "Result"
    rows = [
        _numbers(
            part,
            "Throughput",
            "tokens/s",
            [candidate.tokens_per_s for candidate in every],
            lambda rate: quantity(rate, "tokens/s"),
        ),
        _words(
            part,
            f"{percent(SHARE)} interval",
            [
                span_in_words(candidate.tokens_per_s_span, lambda rate: quantity(rate, "tokens/s"))
                if candidate.tokens_per_s_span
                else NOTHING
                for candidate in every
            ],
        ),
        _numbers(
            part,
            "Sequences",
            "1/s",
            _of(every, "samples_per_s"),
            lambda rate: quantity(rate, "/s"),
            beside=False,
        ),
        _numbers(
            part, "Iteration time", "s", _of(every, "iteration_s"), humanise_seconds, beside=False
        ),
        *(
            _numbers(
                part,
                figure,
                "1",
                _of(every, name),
                percent_column(_of(every, name)),
                beside=False,
            )
            for figure, name in (("MFU", "mfu"), ("Pipeline bubble", "bubble"))
        ),
        _words(part, "Slowest stage", [_slowest(candidate.report) for candidate in every]),
    ]
    if any(candidate.report is None for candidate in every):
        rows.append(
            _words(part, "Why no plan", [candidate.reason or NOTHING for candidate in every])
        )
    if any(candidate.gap > 0 for candidate in every):
        gaps = [candidate.gap if candidate.report else None for candidate in every]
        rows.append(
            _numbers(
                part,
                "Distance from the optimum at most",
                "1",
                gaps,
                percent_column(gaps),
                beside=False,
            )
        )
    return rows


def _level_wise(every: Sequence[Candidate]) -> list[ComparisonLine]:
    """Return what NEST's program promised, takes and loses by; nothing where not asked for."""
    if all(baseline.nest is None for baseline in every):
        return []
    part = NAMES["nest"]
    baselines = [baseline.nest for baseline in every]
    runs = [baseline.report if baseline and baseline.feasible else None for baseline in baselines]
    takes = [run.iteration_s if run else None for run in runs]
    promised = [
        baseline.promised_s if baseline and baseline.feasible else None for baseline in baselines
    ]
    falls = [baseline.waterfall if baseline else None for baseline in baselines]
    rows = [
        _numbers(part, "Iteration time", "s", takes, humanise_seconds, beside=False),
        _numbers(part, "Promised", "s", promised, humanise_seconds, beside=False),
    ]
    for term in fields(Waterfall):
        lost = [getattr(fall, term.name) if fall else None for fall in falls]
        rows.append(
            _numbers(
                part,
                f"Lost to its {term.name.replace('_', ' ')}",
                "s",
                lost,
                lambda value: (
                    "0"
                    if abs(value) < _NOTHING_S
                    else f"{'−' if value < 0 else ''}{humanise_seconds(abs(value))}"
                ),
                beside=False,
            )
        )
    return rows


def _of(every: Sequence[Candidate], field: str) -> list[float | None]:
    return [getattr(candidate.report, field) if candidate.report else None for candidate in every]


def _slowest(report: Report | None) -> str:
    if report is None:
        return NOTHING
    number, excess = bottleneck(report)
    if len(report.stages) == 1:
        return "one stage"
    return "balanced" if excess < 0.005 else f"stage {number + 1}, {percent(excess)} above the mean"


def _cost(every: Sequence[Candidate]) -> list[ComparisonLine]:
    part = "Cost and power"
    return [
        _numbers(
            part,
            "Network price",
            "USD",
            [candidate.bill.price_usd.typical for candidate in every],
            format_money,
            beside=not unpriced(every, "network"),
        ),
        _words(
            part,
            "Price, low to high",
            [_ends(candidate.bill.price_usd, format_money) for candidate in every],
        ),
        _numbers(
            part,
            "Network price per device",
            "USD",
            [
                candidate.bill.price_usd.typical / candidate.scenario.fabric.devices
                for candidate in every
            ],
            format_money,
            beside=False,
        ),
        _numbers(
            part,
            "Network power",
            "kW",
            [candidate.bill.power_W.typical / 1e3 for candidate in every],
            lambda power: humanise_power(1e3 * power),
        ),
        _words(
            part,
            "Power, low to high",
            [_ends(candidate.bill.power_W, humanise_power) for candidate in every],
        ),
        _numbers(
            part,
            "Power with accelerators",
            "W",
            [candidate.all_power_W for candidate in every],
            humanise_power,
        ),
        _numbers(
            part,
            "Throughput per network watt",
            "tokens/s/W",
            [candidate.tokens_per_s_per_W for candidate in every],
            lambda rate: f"{humanise(rate)} tokens/s per W",
            beside=False,
        ),
    ]


def _whole(bills: Sequence[Candidate]) -> list[ComparisonLine]:
    """Return what each costs to buy and to keep, of what has a source."""
    part = f"Whole bill over {bills[0].owned.years:g} years"
    totals, alike = [bill.owned.total_usd for bill in bills], is_priced(bills)
    rows = [
        _numbers(
            part,
            "Whole bill",
            "USD",
            [total.typical for total in totals],
            format_money,
            beside=alike,
        ),
        _words(part, "Whole bill, low to high", [_ends(total, format_money) for total in totals]),
        _numbers(
            part,
            "Per million tokens",
            "USD",
            [typical(bill.usd_per_million_tokens) for bill in bills],
            format_money,
            beside=alike,
        ),
        _numbers(
            part,
            "Per accelerator-hour",
            "USD",
            [typical(bill.owned.usd_per_device_hour) for bill in bills],
            "${:.2f}".format,
            beside=alike,
        ),
        _numbers(
            part, "Tokens per kWh", "1/kWh", [bill.tokens_per_kWh for bill in bills], humanise
        ),
        _numbers(
            part,
            "Days to train",
            "days",
            [bill.training.days if bill.training else None for bill in bills],
            lambda days: f"{days:.3g}",
        ),
        _numbers(
            part,
            "Days without failures",
            "days",
            [bill.training.days_without_failures if bill.training else None for bill in bills],
            lambda days: f"{days:.3g}",
            beside=False,
        ),
        _words(
            part,
            "Days to failures",
            [losses_in_words(bill.training) if bill.training else NOTHING for bill in bills],
        ),
        _words(
            part,
            "Days and dollars by spare nodes",
            [spares_in_words(bill.spares_worth) or NOTHING for bill in bills],
        ),
    ]
    return [
        *rows,
        _words(
            part,
            "Without, for no source states it",
            [", ".join(bill.owned.missing) or NOTHING for bill in bills],
        ),
    ]


def _failed(every: Sequence[Candidate]) -> Iterator[ComparisonLine]:
    failures = [candidate.failure for candidate in every]
    if not any(failures):
        return
    yield _words(_FAILED, "Which", [", ".join(f.elements) if f else NOTHING for f in failures])
    anew = "Throughput without it, planned anew"
    yield _loss_line("Throughput without it, same plan", [f.loss if f else None for f in failures])
    yield _loss_line(anew, [f.least_loss if f else None for f in failures])
    parts = [f.by_batch if f else None for f in failures]
    if any(parts):
        yield _loss_line(f"{anew}, of that because the batch does not divide", parts)
    notes = [f.note if f and f.note else NOTHING for f in failures]
    if set(notes) != {NOTHING}:
        yield _words(_FAILED, "Note", notes)


def _loss_line(figure: str, lost: Sequence[float | None]) -> ComparisonLine:
    values = tuple(None if share is None else -share for share in lost)
    texts = tuple(
        NOTHING
        if value is None
        else "0 %"  # what rounding leaves is no difference
        if abs(value) < _ROUNDING
        else signed(value, percent)
        for value in values
    )
    return ComparisonLine(_FAILED, figure, "1", values, texts, (None,) * len(values))


def _at_budget(every: Sequence[Candidate], budget: Budget | None) -> list[ComparisonLine]:
    if budget is None:
        return []
    unit, write = ("USD", format_money) if budget.kind == "price" else ("W", humanise_power)
    part = f"At equal budget: network {budget.kind} up to {budget.words}"
    scaled = [candidate.at_budget for candidate in every]
    used = [
        f"{fabric.report.plan.devices_used:,}" if fabric and fabric.report else NOTHING
        for fabric in scaled
    ]
    table = [
        _numbers(
            part,
            "Devices within budget",
            "",
            [float(fabric.devices) if fabric and fabric.devices else None for fabric in scaled],
            lambda count: f"{count:,.0f}",
        ),
        _numbers(
            part,
            f"Network {budget.kind} within budget",
            unit,
            [fabric.spent if fabric else None for fabric in scaled],
            write,
        ),
        _numbers(
            part,
            "Throughput within budget",
            "tokens/s",
            [fabric.tokens_per_s if fabric else None for fabric in scaled],
            lambda rate: quantity(rate, "tokens/s"),
        ),
        _words(part, "Devices that this plan uses", used),
    ]
    notes = [fabric.note if fabric and fabric.note else NOTHING for fabric in scaled]
    if set(notes) != {NOTHING}:
        table.append(_words(part, "What limits it", notes))
    return table


def _plan(every: Sequence[Candidate]) -> list[ComparisonLine]:
    plans = [_plan_fields(candidate.report) if candidate.report else {} for candidate in every]
    names = dict.fromkeys(name for plan in plans for name in plan)
    return [_words("Plan", name, [plan.get(name, NOTHING) for plan in plans]) for name in names]


def _plan_fields(report: Report) -> dict[str, str]:
    layers = sorted({stage.layers for stage in report.stages})
    return plan_fields(report.plan.to_json()) | {
        "layers per stage": " to ".join(map(str, dict.fromkeys((layers[0], layers[-1])))),
        "axes, innermost first": ", ".join(report.plan.point.order),
        "devices used": f"{report.plan.devices_used:,}",
    }


def _fabric(every: Sequence[Candidate]) -> list[ComparisonLine]:
    part = "Fabric"
    return [
        _words(part, "Fabric", [fabric_title(candidate.scenario.fabric) for candidate in every]),
        _numbers(
            part,
            "Devices",
            "",
            [float(candidate.scenario.fabric.devices) for candidate in every],
            lambda count: f"{count:,.0f}",
        ),
        _words(
            part,
            "Switches",
            [
                ", ".join(f"{total.count:,} {total.role}" for total in candidate.bill.switches)
                or "none"
                for candidate in every
            ],
        ),
        _words(
            part,
            "Realised ratios",
            [
                "; ".join(candidate.scenario.fabric.realised_ratios()) or NOTHING
                for candidate in every
            ],
        ),
        _words(
            part,
            "Bandwidth per device by level",
            [
                ", ".join(
                    f"{level.name} {humanise_rate(level.bandwidth_Bps)}"
                    for level in candidate.levels
                )
                for candidate in every
            ],
        ),
    ]


def _settings(every: Sequence[Candidate]) -> list[ComparisonLine]:
    keys = [key for key, _ in every[0].settings]
    called = [_called(key) for key in keys]
    return [
        _words(
            "Scenario",
            name
            if called.count(name) == 1
            else f"{name} ({key.rpartition('.')[0].replace('.', ' ').replace('_', ' ')})",
            [dict(candidate.settings)[key] or NOTHING for candidate in every],
        )
        for key, name in zip(keys, called, strict=True)
    ]


def _called(key: str) -> str:
    """Return what people call a key; of a list's later entries with their number."""
    *_, last = key.split(".")
    number = f" (no. {int(last) + 1})" if last.isdigit() and int(last) else ""
    try:
        return capital(parameter(key).title) + number
    except KeyError:
        return (
            capital(
                (key.removesuffix(f".{last}") if last.isdigit() else key)
                .rpartition(".")[2]
                .replace("_", " ")
            )
            + number
        )


def _ends(value: PriceRange, words: Callable[[float], str]) -> str:
    return f"{words(value.low)} to {words(value.high)}"
