"""The four cards above a plan: throughput, training run, utilisation, memory; each is HTML.

What a card claims it computes from what it is given; ranges are 80 % intervals. Figures are
marks in HTML (`nest_core.report.figures.marks`), names are escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from nest_core.costs.head_room import MemorySpread, fits_chance
from nest_core.documents.units import TERA, format_days, format_money, humanise, to_gib
from nest_core.explain.interval import Interval, Span, span_in_words
from nest_core.explain.summary import quantity
from nest_core.explain.training import Training
from nest_core.report.figures.marks import bar, curve, figure, rule, words
from nest_core.report.scale import round_ticks

__all__ = [
    "Reference",
    "empty_card",
    "memory_card",
    "mfu_card",
    "throughput_card",
    "training_card",
]

TIE = 0.005
"""Two throughputs that differ by less are a tie."""
_STRIP = 52


@dataclass(frozen=True, slots=True)
class Reference:
    """The plan that a person compares with.

    Parameters
    ----------
    name : str
    tokens_per_s : float or None
        None: no plan of it can be run.
    pending : bool
        Whether it is still being priced.
    """

    name: str
    tokens_per_s: float | None = None
    pending: bool = False


def throughput_card(tokens_per_s: float, interval: Interval, beside: Reference) -> str:
    """Tokens per second with its interval, and against a reference's."""
    rival = beside.tokens_per_s
    if beside.pending:
        against, ratio = f"{beside.name}: being priced", "…"
    elif rival is None:
        against, ratio = f"{beside.name}: no plan", ""
    else:
        factor = tokens_per_s / rival
        against = f"× {beside.name}"
        ratio = "tie" if abs(factor - 1) < TIE else f"{factor:.2f} ×"
    number, unit = _parted(quantity(tokens_per_s, "tokens/s"))
    return _card(
        ("Throughput", against),
        (_big(number, unit), _big(ratio, kind="acc")),
        _strip(tokens_per_s, rival, interval, beside.name),
    )


def _strip(ours: float, rival: float | None, interval: Interval, name: str) -> str:
    """Both intervals on one axis, which need not begin at 0."""
    rows = [("this plan", ours, "--accent", "m i b")]
    if rival is not None:
        rows.insert(0, (name, rival, "--base", "m"))
    spans = [interval.around(rate) for _, rate, _, _ in rows]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    scale = (high - low) or high or 1.0
    unit = 10.0 ** (3 * math.floor(math.log10(high) / 3))

    def place(value: float) -> float:
        return (value - low) / scale

    marks = [rule(0, 36, 1, 36)]
    apart = len(rows) < 2 or abs(place(rows[0][1]) - place(rows[1][1])) > 0.3
    for row, ((label, rate, colour, kind), (left, right)) in enumerate(
        zip(rows, spans, strict=True)
    ):
        top = 22.0 if apart else 14.0 + 11 * row
        at = min(0.82, max(0.16, place(rate)))
        marks.append(bar(place(left), top, place(right) - place(left), 8, colour, 0.45))
        marks.append(rule(place(rate), top - 3, place(rate), top + 11, colour, 3))
        if apart:
            marks.append(words(at, 14, label, kind))
    if not apart:
        marks += [words(0, 10, rows[0][0], ""), words(1, 10, rows[1][0], "r i b")]
    shown = round_ticks(low / unit, high / unit, 4)
    digits = 0 if all(tick == int(tick) for tick in shown) else 1
    for tick in shown:
        at = place(tick * unit)
        marks.append(rule(at, 36, at, 40))
        end = "r" if at > 0.95 else "" if at < 0.05 else "m"
        marks.append(words(at, _STRIP - 1, f"{tick:.{digits}f}", end))
    told = ", ".join(
        f"{label} {span_in_words(span, lambda rate: quantity(rate, 'tokens/s'))}"
        for (label, *_), span in zip(rows, spans, strict=True)
    )
    return figure(_STRIP, f"80 % intervals: {told}", marks)


def training_card(
    run: Training, devices: int, dollars_per_hour: float | None, beside: Reference
) -> str:
    """Days to train, and what that costs at a price of a device's hour, if one is given."""

    def cost(days: float) -> float:
        return days * 24 * devices * (dollars_per_hour or 0.0)

    heads = (f"Time to train {quantity(run.tokens, 'tokens')}", "Cost" if dollars_per_hour else "")
    bigs = (_big(*_parted(format_days(run.days))), "")
    spans = (span_in_words(run.span, format_days), "")
    lines = []
    if dollars_per_hour:
        low, high = run.span
        bigs = (bigs[0], _big(format_money(cost(run.days))))
        spans = (spans[0], span_in_words((cost(low), cost(high)), format_money))
    else:
        lines.append(f"{quantity(24 * devices * run.days, 'GPU-hours')}; no price is given")
    if beside.pending:
        lines.append(f"{beside.name}: being priced")
    elif beside.tokens_per_s:
        days = run.days * run.tokens_per_s / beside.tokens_per_s
        saved = abs(days - run.days)
        compared = [(f"{beside.name}: {format_days(days)}", days)]
        if abs(days / run.days - 1) >= TIE:
            verb = "saves" if days > run.days else "takes more by"
            compared.append((f"this plan {verb} {format_days(saved)}", saved))
        lines += [
            f"{words}, {format_money(cost(part))}" if dollars_per_hour else words
            for words, part in compared
        ]
    else:
        lines.append(f"{beside.name}: no plan")
    body = f'<div class="nest-ends nest-small"><span>{spans[0]}</span><span>{spans[1]}</span></div>'
    told = "".join(f'<div class="nest-small">{html.escape(line)}</div>' for line in lines)
    return _card(heads, bigs, f'{body}<div class="nest-gap">{told}</div>')


def mfu_card(
    mfu: float, span: Span, peak_flops: float, lost: Sequence[tuple[str, float]], printed: str
) -> str:
    """Model FLOP utilisation, what its log would say, and what takes it down from the peak.

    Parameters
    ----------
    lost : sequence of (str, float)
        Shares of the peak that add up to what lacks; empty while they are not known.
    printed : str
        Whose log prints it so; empty where none does.
    """
    rate = f"{humanise(mfu * peak_flops / TERA)} TFLOP/s per GPU"
    head = f"{printed}’s log: {rate}" if printed else f"{rate}, whole model"
    low, high = (humanise(100 * end) for end in span)
    note = f'<span class="nest-small">{low} to {high}</span>'
    return _card(
        ("MFU", head),
        (_big(humanise(100 * mfu), "%", note), ""),
        _falls(mfu, lost) if lost else "",
        kind="nest-mfu",
    )


def _falls(mfu: float, lost: Sequence[tuple[str, float]]) -> str:
    """From the peak down to what is reached, loss by loss."""
    foot, height = 42.0, 36.0
    columns = [("peak", 1.0, 1.0), *_steps(lost), ("MFU", mfu, mfu)]
    step = 1.0 / len(columns)
    marks = [rule(0, foot, 1, foot)]
    for number, (name, begins, size) in enumerate(columns):
        left, ends = number * step, number in (0, len(columns) - 1)
        colour = "--fill" if number == 0 else "--accent" if ends else _COLOURS.get(name, "--comm")
        shown = max(abs(size) * height, 0.0 if ends else 2.0)
        upper = foot - begins * height
        marks.append(bar(left + 0.1 * step, upper, 0.8 * step, shown, colour))
        if not ends or number == 0:
            level = begins if number == 0 else begins - size
            at = foot - level * height
            marks.append(rule(left + 0.9 * step, at, left + 1.1 * step, at, "--ink3", 0.75))
        bold = " b" if number == len(columns) - 1 else ""
        told = f"{100 * size:.3g}" if ends else f"−{100 * size:.2g}"
        told = told.replace("−-", "+")
        marks.append(words(left + step / 2, 56, name, f"m{' i b' if bold else ''}"))
        marks.append(words(left + step / 2, 70, told, f"m i{bold}"))
    losses = ", ".join(f"{name} −{100 * size:.3g}" for name, size in lost)
    return figure(72, f"peak 100, {losses}, MFU {100 * mfu:.3g} per cent", marks)


_COLOURS = {"kernels": "--kern", "bubble": "--idle"}


def _steps(lost: Sequence[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """Losses with the height that each begins at."""
    level, found = 1.0, []
    for name, size in lost:
        found.append((name, level, size))
        level -= size
    return found


def memory_card(needed: float, limit: float, spread: MemorySpread, stage: int) -> str:
    """How surely the fullest stage fits: where memory may lie about what is predicted.

    Parameters
    ----------
    needed, limit : float
        Bytes predicted of the fullest stage, and of a device.
    stage : int
        From 1.
    """
    chance = fits_chance(needed, limit, spread.sd)
    said = "> 99" if 0.99 < chance < 1 or chance == 1 else f"{100 * chance:.0f}"
    if not spread.sd:
        said = "fits" if chance else "no"
    foot = f"stage {stage} fullest: {humanise(to_gib(needed))} GiB predicted"
    return _card(
        ("Chance that memory fits", "peak, GiB"),
        (_big(said, "%" if spread.sd else ""), ""),
        f'{_bell(needed, limit, spread.sd)}<div class="nest-small">{foot}</div>',
    )


def _bell(needed: float, limit: float, sd: float) -> str:
    """The density of memory about what is predicted, the part beyond the limit marked."""
    width = 3.2 * sd if sd else 0.2
    low = min(needed * math.exp(-width), limit * 0.93)
    high = max(needed * math.exp(width), limit * 1.08)
    low, high = max(0.0, low), high if math.isfinite(high) else needed * math.exp(width)

    def place(value: float) -> float:
        return (value - low) / (high - low)

    marks = []
    if sd:
        steps = [low + (high - low) * n / 96 for n in range(97)]
        dense = [math.exp(-0.5 * (math.log(max(x, 1.0) / needed) / sd) ** 2) for x in steps]
        shape = [(place(x), 0.9 * y) for x, y in zip(steps, dense, strict=True)]
        marks.append(curve([(0.0, 0.0), *shape, (1.0, 0.0)], 36, "--fill"))
        beyond = [point for point in shape if point[0] >= place(limit)]
        if beyond:
            marks.append(curve([(beyond[0][0], 0.0), *beyond, (1.0, 0.0)], 36, "--limit"))
    marks += [rule(0, 36, 1, 36), rule(place(needed), 8, place(needed), 36, "--ink", 2)]
    if math.isfinite(limit):
        at = place(limit)
        right = at > 0.7
        marks.append(rule(at, 0, at, 40, "--limit", 2))
        told = f"{humanise(to_gib(limit))} GiB"
        marks.append(words(at, 11, told, "lim b r" if right else "lim b", -6 if right else 6))
    return figure(44, f"predicted {to_gib(needed):.3g} GiB of {to_gib(limit):.3g} GiB", marks)


def empty_card(name: str, why: str) -> str:
    """A card of a figure that there is not."""
    return _card((name, ""), (_big("–"), ""), f'<div class="nest-small">{html.escape(why)}</div>')


def _card(heads: tuple[str, str], bigs: tuple[str, str], body: str, kind: str = "") -> str:
    left, right = map(html.escape, heads)
    return (
        f'<div class="nest-card {kind}"><div class="nest-ends nest-small"><span>{left}</span>'
        f'<span>{right}</span></div><div class="nest-ends nest-bigs">{bigs[0]}{bigs[1]}</div>'
        f"{body}</div>"
    )


def _big(text: str, unit: str = "", note: str = "", kind: str = "") -> str:
    said = f' <span class="nest-unit">{html.escape(unit)}</span>' if unit else ""
    return f'<span class="nest-big {kind}">{html.escape(text)}{said} {note}</span>'


def _parted(text: str) -> tuple[str, str]:
    """``1.14 M tokens/s`` as figure and unit."""
    number, _, unit = text.rpartition(" ")
    return number, unit
