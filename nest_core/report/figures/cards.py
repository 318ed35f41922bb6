"""Parts of a plan's page as HTML: the plan in pills, four cards above it, one iteration to scale.

What a card claims it computes from what it is given; ranges are 80 % intervals; names are escaped.
Figures are marks in HTML that stretch sideways while words keep their size: across, places are
shares of the width, from 0 to 1; down, pixels. Colours and type are those of the page's style
sheet, by name (``--accent``) and class, so that one string serves light and dark. Plain elements in
place of SVG: pages take HTML from a string, but no SVG.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nest_core.costs import (
    Interval,
    MemorySpread,
    Report,
    Span,
    fits_chance,
    plan_fields,
    span_in_words,
)
from nest_core.costs.communication import IterationPart
from nest_core.documents.units import (
    TERA,
    format_days,
    format_money,
    humanise,
    humanise_seconds,
    percent,
    to_gib,
)
from nest_core.report.explain import Training, losses_in_words, quantity
from nest_core.report.scale import round_ticks

__all__ = [
    "Reference",
    "bar",
    "curve",
    "empty_card",
    "figure",
    "iteration_part",
    "memory_card",
    "mfu_card",
    "plan_pills",
    "rule",
    "throughput_card",
    "training_card",
    "words",
]

TIE = 0.005
"""Two throughputs that differ by less are a tie."""
_STRIP = 52
_COLOURS = {"kernels": "--kern", "compute": "--compute", "bubble": "--idle"}
"""Of what takes time or throughput; all else is communication."""
_UNDER = {"bubble": "fill, drain"}


@dataclass(frozen=True, slots=True)
class Reference:
    """The plan that a person compares with.

    Parameters
    ----------
    name : str
    run : Training or None
        None: no plan of it can be run.
    pending : bool
        Whether it is still being priced.
    """

    name: str
    run: Training | None = None
    pending: bool = False

    @property
    def missing(self) -> str:
        """Why nothing can be compared with it; empty where it has a plan."""
        lacks = "being priced" if self.pending else "no plan" if self.run is None else ""
        return f"{self.name}: {lacks}" if lacks else ""


def throughput_card(
    tokens_per_s: float, interval: Interval, reference: Reference, room: str = ""
) -> str:
    """Return tokens per second with their interval, and against a reference's.

    Parameters
    ----------
    room : str
        By how much the optimum may be faster; empty where the plan is proven to be the best.
    """
    rival = reference.run.tokens_per_s if reference.run else None
    ratio = "…" if reference.pending else ""
    if rival is not None and not reference.pending:
        factor = tokens_per_s / rival
        ratio = "tie" if abs(factor - 1) < TIE else f"{factor:.2f} ×"
    return _card(
        ("Throughput", reference.missing or f"× {reference.name}"),
        (_big(quantity(tokens_per_s, "tokens/s")), _big(f"{ratio} ", kind="acc")),
        _strip(tokens_per_s, rival, interval, reference.name)
        + (f'<div class="nest-small nest-so-far">best so far, {room}</div>' if room else ""),
    )


def _strip(rate: float, rival: float | None, interval: Interval, name: str) -> str:
    """Return both intervals on one axis, which need not begin at 0."""
    rows = [("this plan", rate, "--accent", "m i b")]
    if rival is not None:
        rows.insert(0, (name, rival, "--base", "m"))
    spans = [interval.around(row[1]) for row in rows]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    length = (high - low) or high or 1.0
    unit = 10.0 ** (3 * math.floor(math.log10(high) / 3))

    def place(value: float) -> float:
        return (value - low) / length

    marks = [rule(0, 36, 1, 36)]
    has_room = len(rows) < 2 or abs(place(rows[0][1]) - place(rows[1][1])) > 0.3
    for row, ((label, value, colour, kind), span) in enumerate(zip(rows, spans, strict=True)):
        top = 22.0 if has_room else 14.0 + 11 * row
        at = place(value)
        marks += [
            bar(place(span[0]), top, place(span[1]) - place(span[0]), 8, colour, 0.45),
            rule(at, top - 3, at, top + 11, colour, 3),
        ]
        if has_room:
            marks.append(words(min(0.82, max(0.16, at)), 14, label, kind))
    if not has_room:
        marks += [words(0, 10, rows[0][0], ""), words(1, 10, rows[1][0], "r i b")]
    ticks = round_ticks(low / unit, high / unit, 4)
    digits = 0 if all(tick == int(tick) for tick in ticks) else 1
    for tick in ticks:
        at = place(tick * unit)
        end = "r" if at > 0.95 else "" if at < 0.05 else "m"
        marks += [rule(at, 36, at, 40), words(at, _STRIP - 1, f"{tick:.{digits}f}", end)]
    label = ", ".join(
        f"{row[0]} {span_in_words(span, lambda rate: quantity(rate, 'tokens/s'))}"
        for row, span in zip(rows, spans, strict=True)
    )
    return figure(_STRIP, f"80 % intervals: {label}", marks)


def training_card(run: Training, dollars_per_hour: float | None, reference: Reference) -> str:
    """Return days to train, and what that costs at a price of a device's hour, if one is given."""

    def cost(days: float) -> float:
        return days * 24 * run.devices * (dollars_per_hour or 0.0)

    cost_head, cost_big, cost_span = "", "", ""
    lines = [f"{format_days(run.days_without_failures)} without failures"]
    if dollars_per_hour:
        cost_head, cost_big = "Cost", _big(f"{format_money(cost(run.days))} ")
        cost_span = span_in_words((cost(run.span[0]), cost(run.span[1])), format_money)
    else:
        lines.append(f"{quantity(24 * run.device_days, 'GPU-hours')}; no price is given")
    if reference.run and not reference.pending:
        days = reference.run.days
        saved = abs(days - run.days)
        compared = [(f"{reference.name}: {format_days(days)}", days)]
        if abs(days / run.days - 1) >= TIE:
            verb = "saves" if days > run.days else "takes more by"
            compared.append((f"this plan {verb} {format_days(saved)}", saved))
        lines += [
            f"{text}, {format_money(cost(part))}" if dollars_per_hour else text
            for text, part in compared
        ]
    else:
        lines.append(reference.missing)
    below = "".join(f'<div class="nest-small">{html.escape(line)}</div>' for line in lines)
    return _card(
        (f"Time to train {quantity(run.tokens, 'tokens')}", cost_head),
        (_big(format_days(run.days)), cost_big),
        f'<div class="nest-ends nest-small" title="{html.escape(losses_in_words(run))}">'
        f"<span>{span_in_words(run.span, format_days)}</span><span>{cost_span}</span></div>"
        f'<div class="nest-gap">{below}</div>',
    )


def mfu_card(
    mfu: float, span: Span, peak_flops: float, lost: Sequence[tuple[str, float]], printed: str
) -> str:
    """Return model FLOP utilisation, what its log would say, and what lacks to the peak.

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
    return _card(
        ("MFU", head),
        (_big(f"{humanise(100 * mfu)} %", f'<span class="nest-small">{low} to {high}</span>'), ""),
        _falls(mfu, lost) if lost else "",
        kind="nest-mfu",
    )


def _falls(mfu: float, lost: Sequence[tuple[str, float]]) -> str:
    """Draw from the peak down to what is reached, loss by loss."""
    # A name is wider than its column where there are many: they stand in two rows by turns, which
    # the page's style joins ("low", "below") where it has the room for up to seven.
    rows, is_joined = 1 + (len(lost) > 3), 3 < len(lost) < 6
    foot, height = (42.0, 36.0) if rows == 1 else (36.0, 30.0)
    step, level = 1.0 / (len(lost) + 2), 1.0
    marks = [rule(0, foot, 1, foot)]
    for number, (name, size) in enumerate([("peak", 1.0), *lost, ("MFU", mfu)]):
        x, is_first, is_last = number * step, number == 0, number == len(lost) + 1
        top = mfu if is_last else level
        text = f"−{float(f'{100 * size:.2g}'):g}".replace("−-", "+")
        colour, bold, tall = _COLOURS.get(name, "--comm"), "", max(abs(size) * height, 2.0)
        if is_first or is_last:
            text, tall = f"{100 * size:.3g}".replace("−-", "+"), abs(size) * height
            colour, bold = ("--fill", "") if is_first else ("--accent", " b")
        else:
            level -= size
        marks.append(bar(x + 0.1 * step, foot - top * height, 0.8 * step, tall, colour))
        if not is_last:
            at = foot - level * height
            marks.append(rule(x + 0.9 * step, at, x + 1.1 * step, at, "--ink3", 0.75))
        marks += [
            words(
                x + step / 2,
                foot + 14 + 12 * (number % rows),
                name,
                ("m i b" if bold else "m") + " low" * (is_joined and number % rows),
            ),
            words(x + step / 2, foot + 16 + 12 * rows, text, f"m i{bold}" + " below" * is_joined),
        ]
    losses = ", ".join(f"{name} −{100 * size:.3g}" for name, size in lost)
    return figure(66 + 6 * rows, f"peak 100, {losses}, MFU {100 * mfu:.3g} per cent", marks)


def memory_card(needed: float, limit: float, spread: MemorySpread, stages: str) -> str:
    """Return how surely the fullest stage fits: where memory may lie about what is predicted.

    Parameters
    ----------
    needed, limit : float
        Bytes predicted of the fullest stage, and of a device.
    stages : str
        Which are fullest, in words.
    """
    chance = fits_chance(needed, limit, spread.sd)
    text = (
        f"{100 * chance:.0f} %"
        if spread.sd and chance <= 0.99
        else "> 99 %"
        if spread.sd
        else "fits "
        if chance
        else "no "
    )
    foot = f"{stages}: {humanise(to_gib(needed))} GiB predicted"
    return _card(
        ("Chance that memory fits", "peak, GiB"),
        (_big(text), ""),
        f'{_bell(needed, limit, spread.sd)}<div class="nest-small">{foot}</div>',
    )


def _bell(needed: float, limit: float, sd: float) -> str:
    """Draw the density of memory about what is predicted, the part beyond the limit marked."""
    width = 3.2 * sd if sd else 0.2
    low = max(0.0, min(needed * math.exp(-width), limit * 0.93))
    high = max(needed * math.exp(width), limit * 1.08 if math.isfinite(limit) else 0.0)

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
        kind, shift = ("lim b r", -6) if at > 0.7 else ("lim b", 6)
        label = f"{humanise(to_gib(limit))} GiB"
        marks += [rule(at, 0, at, 40, "--limit", 2), words(at, 11, label, kind, shift)]
    return figure(44, f"predicted {to_gib(needed):.3g} GiB of {to_gib(limit):.3g} GiB", marks)


def empty_card(name: str, why: str) -> str:
    """Return a card of a figure that there is not."""
    return _card((name, ""), (_big("– "), ""), f'<div class="nest-small">{html.escape(why)}</div>')


def _card(heads: tuple[str, str], bigs: tuple[str, str], body: str, kind: str = "") -> str:
    first, second = map(html.escape, heads)
    return (
        f'<div class="nest-card {kind}"><div class="nest-ends nest-small"><span>{first}</span>'
        f'<span>{second}</span></div><div class="nest-ends nest-bigs">{bigs[0]}{bigs[1]}</div>'
        f"{body}</div>"
    )


def _big(text: str, note: str = "", kind: str = "") -> str:
    """Return a figure in large type, what follows its last blank in small type."""
    number, _, unit = text.rpartition(" ")
    below = f' <span class="nest-unit">{html.escape(unit)}</span>' if unit else ""
    return f'<span class="nest-big {kind}">{html.escape(number)}{below} {note}</span>'


def plan_pills(report: Report, devices: int, *, is_proven: bool = True) -> str:
    """Return the choices of a plan, one pill each."""
    point, used = report.plan.point, report.plan.devices_used
    pairs = plan_fields(report.plan.to_json())
    if point.dp > 1 and point.pp > 1:
        pairs["device order"] = ", ".join(a for a in point.order if getattr(point, a) > 1)
    pairs["devices"] = f"{used:,} of {devices:,}"
    pills = "".join(
        f'<span class="nest-pill"><i>{html.escape(name)}</i> {html.escape(value)}</span>'
        for name, value in pairs.items()
    )
    title = "Best plan" if is_proven else "Best plan so far"
    return f'<div class="nest-pills"><b>{title}</b> {pills}</div>'


def iteration_part(parts: Sequence[IterationPart], iteration_s: float, hidden: str) -> str:
    """Return one iteration to scale, then what of it is not compute, enlarged.

    Parameters
    ----------
    parts : sequence of IterationPart
        Compute first; they add up to the iteration.
    hidden : str
        What is taken to hide behind compute, in a sentence.
    """
    compute, *others = parts
    tail = sum(part.seconds for part in others)
    title = f"{percent(tail / iteration_s)} of an iteration is not compute"
    marks, at = [], 0.0
    for part in parts:
        share, gap = part.seconds / iteration_s, 0.003 if part is not parts[-1] else 0
        marks.append(bar(at, 0, share - gap, 24, _COLOURS.get(part.name, "--comm")))
        at += share
    if compute.seconds > 0.35 * iteration_s:
        marks.append(words(0, 16, f"compute {humanise_seconds(compute.seconds)}", "w b", 8))
    rows, at = "", 0.0
    for part in others:
        share, seconds = part.seconds / tail, humanise_seconds(part.seconds)
        mark = bar(at, 0, share, 20, _COLOURS.get(part.name, "--comm"))
        at += share
        # What crosses the spine may be slow at the leaf: the level is that of the links that bind.
        bound = f"{part.level.removesuffix('s')}-bound"
        under = html.escape(bound if part.level else _UNDER.get(part.name, ""))
        rows += (
            f'<div><b>{part.name}</b><br><span class="nest-dim">{under}</span></div>'
            f"<b>{seconds}</b><div>{figure(20, f'{part.name} {seconds}', [mark])}</div>"
        )
    ends, enlarged = humanise_seconds(iteration_s), ""
    below = f"Slowest stage, {ends}"
    if rows:
        start = 100 * compute.seconds / iteration_s
        shape = f"polygon({start:.2f}% 0, 100% 0, 100% 100%, 140px 100%, 140px 24px)"
        below += f"; below, its last {humanise_seconds(tail)}"
        enlarged = (
            f'<div class="nest-tail" style="--cone: {shape}">{rows}<i></i><i></i>'
            f'<div class="nest-ends nest-dim"><span>{humanise_seconds(compute.seconds)}</span>'
            f"<span>{ends}</span></div></div>"
        )
    return (
        f'<div class="nest-title">{title}</div><div class="nest-subtitle">{below}</div>'
        f'<div class="nest-iteration">{figure(24, title, marks)}{enlarged}</div>'
        f'<div class="nest-subtitle">{html.escape(hidden).replace(" %", "&nbsp;%")}</div>'
    )


def figure(height: int, label: str, marks: Iterable[str]) -> str:
    """Return a figure as wide as its place; ``label`` says in words what it shows."""
    name = html.escape(label, quote=True)
    return (
        f'<div class="nest-figure" role="img" aria-label="{name}" style="height:{height}px">'
        f"{''.join(marks)}</div>"
    )


def bar(
    left: float, top: float, width: float, height: float, colour: str, opacity: float = 1.0
) -> str:
    """Return a filled rectangle."""
    faint = "" if opacity == 1.0 else f";opacity:{opacity:g}"
    return (
        f'<i style="left:{_across(left)};top:{top:g}px;width:{_across(max(0.0, width))};'
        f'height:{height:g}px;background:var({colour}){faint}"></i>'
    )


def rule(
    left: float, top: float, right: float, bottom: float, colour: str = "--line", width: float = 1.0
) -> str:
    """Return a line across or down."""
    if top == bottom:
        return bar(left, top - width / 2, right - left, max(1.0, width), colour)
    return (
        f'<i style="left:calc({_across(left)} - {width / 2:g}px);top:{top:g}px;'
        f'width:{width:g}px;height:{bottom - top:g}px;background:var({colour})"></i>'
    )


def words(at: float, base: float, text: str, kind: str = "", shift: float = 0.0) -> str:
    """Return text on a base line.

    Kinds: ``m`` centred, ``r`` right, ``b`` bold, ``i`` ink, ``acc``.
    """
    side, share = ("right", 1.0 - at) if "r" in kind.split() else ("left", at)
    moved = -shift if side == "right" else shift
    return (
        f'<span class="{kind}" style="{side}:calc({_across(share)} + {moved:g}px);'
        f'top:{base - 13:g}px">{html.escape(text, quote=False)}</span>'
    )


def curve(points: Iterable[tuple[float, float]], height: float, colour: str) -> str:
    """Return the area under a curve: shares across and up, filled down to its foot."""
    path = ",".join(f"{100 * x:.2f}% {100 * (1 - y):.2f}%" for x, y in points)
    return (
        f'<i style="left:0;top:0;width:100%;height:{height:g}px;background:var({colour});'
        f'clip-path:polygon({path})"></i>'
    )


def _across(share: float) -> str:
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"
