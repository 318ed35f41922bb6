"""The explanations as tables under findings, ready to be shown."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from nest_core.costs import SURE, Report, Stage, span_in_words
from nest_core.costs.communication import CLASSES
from nest_core.documents import (
    NOTHING,
    alike,
    at_most_percent,
    capital,
    format_days,
    format_money,
    humanise,
    humanise_bytes,
    humanise_seconds,
    join_words,
    percent,
    percent_column,
)
from nest_core.hardware.posterior import SHARE
from nest_core.network import BusyLink
from nest_core.planner import HeadRoom
from nest_core.report.explain.axes import AXES, NextBest
from nest_core.report.explain.binding import Gain, StageBinding
from nest_core.report.explain.equations import Equation
from nest_core.report.explain.mine import DifferenceRow, PlanDifference
from nest_core.report.explain.summary import Headline, fullest, quantity
from nest_core.report.explain.training import Training
from nest_core.report.tables import Table

__all__ = [
    "axes_table",
    "binding_table",
    "busiest_table",
    "busiest_text",
    "equation_table",
    "failures_line",
    "head_room_table",
    "losses_in_words",
    "memory_table",
    "shadow_table",
    "spares_in_words",
    "stages_table",
    "terms_table",
    "training_headline",
    "why_line",
]

_KINDS = {
    "compute": "Compute",
    "communication": "Communication",
    "memory": "Memory",
    "launches": "Kernel launches",
    "bubble": "Waiting",
}
_LEAST = 5e-4  # of an iteration, or of the time; less is not worth a mention
_USERS = 3


def why_line(report: Report) -> str:
    """Where the time goes, in one line."""
    name, seconds = max(report.terms, key=lambda term: term[1])
    return f"{capital(name)} takes {percent(seconds / report.iteration_s)} of the time"


def stages_table(report: Report) -> Table:
    """Return layers, times and memory of every stage below the plan and its figures."""
    figures = [
        f"{humanise_seconds(report.iteration_s)} per iteration",
        quantity(report.samples_per_s, "sequences/s"),
        f"MFU {percent(report.mfu)}",
        f"bubble fraction {percent(report.bubble)}",
        f"fullest stage {humanise_bytes(fullest(report)[1].memory.total)} of "
        f"{humanise_bytes(report.memory_limit_bytes)}",
        *([] if report.feasible else [f"does not fit: {report.reason}"]),
    ]
    return Table(
        report.plan.words,
        ", ".join(figures),
        [
            {
                "stage": str(number),
                "layers": stage.spans,
                "recomputation": stage.recompute,
                "compute": humanise_seconds(stage.compute_s),
                "communication": humanise_seconds(stage.communication_s),
                "idle": humanise_seconds(stage.idle_s),
                "memory": humanise_bytes(stage.memory.total),
            }
            for number, stage in enumerate(report.stages, start=1)
        ],
    )


def binding_table(stages: Sequence[StageBinding], report: Report) -> Table:
    """What binds every stage."""
    share = percent_column(entry.binding.share for entry in stages)
    in_use = percent_column(entry.memory_share for entry in stages)
    return Table(
        _binding_finding(stages),
        "Of each stage's iteration, the plan kept",
        tuple(
            {
                "Stage": f"{entry.stage + 1}",
                "Layers": _layers(stage),
                "Bound by": entry.binding.words,
                "Its share": share(entry.binding.share),
                "What more of it gives": NOTHING
                if not entry.binding.more
                else f"takes {entry.binding.more}"
                if entry.binding.gain is None
                else f"with {entry.binding.more}: {_more(entry.binding.gain)}",
                "Then": "; ".join(
                    f"{other.words} ({percent(other.share)})"
                    for other in entry.constraints[1:4]
                    if other.share > _LEAST
                )
                or NOTHING,
                "Memory in use": in_use(entry.memory_share),
            }
            for entry, stage in zip(stages, report.stages, strict=True)
        ),
    )


def _layers(stage: Stage) -> str:
    """Which layers a stage holds; of several virtual stages how many."""
    counts = [last - first for first, last in stage.virtual_stages]
    return f"{sum(counts)} in {len(counts)} virtual stages" if len(counts) > 1 else stage.spans


def _binding_finding(stages: Sequence[StageBinding]) -> str:
    (kind, most), *rest = Counter(entry.binding.kind for entry in stages).most_common()
    first = next(entry.binding for entry in stages if entry.binding.kind == kind)
    others = "".join(f", {_KINDS[other].lower()} {count}" for other, count in rest)
    bound = (
        "the stage"
        if len(stages) == 1
        else f"{most} of {len(stages)} stages{others}"
        if rest
        else f"all {len(stages)} stages"
    )
    words = f"{_KINDS[kind]} binds {bound}"
    return words if first.gain is None else f"{words}; {first.more} would give {_more(first.gain)}"


def axes_table(outcomes: Sequence[NextBest]) -> Table:
    """What the next-best choices cost, the dearest first."""
    ranked = sorted(outcomes, key=lambda entry: -(entry.difference or 0.0))
    ranked.sort(key=lambda entry: entry.report is not None)  # where there is none comes first
    costs = percent_column(entry.difference for entry in ranked)
    rows = tuple(
        {
            "Axis": AXES[entry.axis],
            "Ours": entry.chosen,
            "Next best": entry.instead or NOTHING,
            "Iteration": humanise_seconds(entry.report.iteration_s) if entry.report else NOTHING,
            "Costs": costs(entry.difference),
            "The plan": entry.report.plan.words if entry.report else entry.reason,
            "Certificate": "proven" if entry.proven else "open",
        }
        for entry in ranked
    )
    return Table(
        _axes_finding(ranked, costs),
        "The best plan whose choice on the axis differs: iteration time and what it costs "
        "against ours",
        rows or ({"Axis": "none", "Ours": NOTHING},),
    )


def _axes_finding(ranked: Sequence[NextBest], written: Callable[[float], str]) -> str:
    if not ranked:
        return "The search leaves no other choice on any axis"
    measured = [entry for entry in ranked if entry.difference is not None]
    without = [AXES[entry.axis] for entry in ranked if entry.report is None]
    if not measured:
        none = "There is no plan" if all(entry.proven for entry in ranked) else "No plan was found"
        return f"{none} without our choice of {join_words(without)}"
    dear, cheap = measured[0], measured[-1]
    costs = {AXES[entry.axis]: entry.difference or 0.0 for entry in measured}
    most, least = max(costs.values()), min(costs.values())
    words = f"No other choice{' that has a plan' if without else ''} costs anything"
    if percent(most) != "0 %":
        _, *ties = alike(costs, written, most)
        other = f"it {dear.instead}" if dear.instead in ("on", "off") else dear.instead
        words = (
            f"{capital(AXES[dear.axis])} {dear.chosen} matters most"
            f"{' of what can be else' if without else ''}: the best plan"
            f"{'' if dear.proven else ' found'} with {other} takes {written(abs(most))} "
            f"{'less' if most < 0 else 'longer'}"
            f"{f', as one without our choice of {join_words(ties)}' if ties else ''}"
        )
    if written(least) == written(most):
        return words
    if least > 0 and not cheap.proven:
        return f"{words}; another {AXES[cheap.axis]} costs at most {at_most_percent(least)}"
    return f"{words}; another {AXES[cheap.axis]} {'saves' if least < 0 else 'costs'} " + written(
        abs(least)
    )


def shadow_table(prices: Mapping[str, float | None], shadow_prices: Mapping[str, Gain]) -> Table:
    """Shadow prices, the highest first, beside what the plan itself would gain."""
    ranked = sorted(prices.items(), key=lambda pair: -(pair[1] or 0.0))
    same_plan = [
        shadow_prices[name].throughput if name in shadow_prices else 0.0 for name, _ in ranked
    ]
    anew, same = percent_column(prices.values()), percent_column(same_plan)
    rows = tuple(
        {
            "1 % more": _resource(name),
            "Throughput, planned anew": anew(price),
            "Throughput, plan kept": same(gain),
        }
        for (name, price), gain in zip(ranked, same_plan, strict=True)
    )
    (name, price), is_proven = ranked[0], None not in prices.values()
    finding = (
        f"1 % more {_resource(name)} is worth {anew(price)} of throughput, "
        f"{'no other' if is_proven else 'of what is proven no other'} bandwidth or memory more"
        if price and price > _LEAST / 100
        else f"1 % more of no one resource is {'' if is_proven else 'proven '}worth anything"
    )
    return Table(
        finding, "Throughput gained per per cent of a resource; – where it was not proven", rows
    )


def head_room_table(head_room: Sequence[HeadRoom], ours: Report) -> Table:
    """The best plan at each certainty of fitting, beside ours."""
    costs = percent_column(_step(step, ours) for step in head_room)
    rows = tuple(
        {
            "Fits with": _certainty(step.certainty) + ", ours" * (step.certainty == SURE),
            "May be predicted to need": humanise_bytes(step.planned_bytes),
            "Iteration": humanise_seconds(step.best.iteration_s)
            if step.best and step.proven
            else NOTHING,
            "Against ours": costs(_step(step, ours)),
            "The plan": step.best.plan.words
            if step.best
            else "nothing fits"
            if step.proven
            else "none was found",
            "Certificate": "proven" if step.proven else "open",
        }
        for step in head_room
    )
    return Table(
        _head_room_finding(head_room, ours, costs),
        "The fastest of all plans that fit so surely: what a step of head-room costs in iteration "
        "time, and what less of it would save",
        rows or ({"Fits with": "no error band of memory", "Iteration": NOTHING},),
    )


def _certainty(value: float) -> str:
    return f"{100 * value:.0f} % certainty"


def _step(step: HeadRoom, ours: Report) -> float | None:
    """Of our iteration time, what a plan of that certainty takes more."""
    return step.best.iteration_s / ours.iteration_s - 1 if step.best and step.proven else None


def _head_room_finding(
    head_room: Sequence[HeadRoom], ours: Report, written: Callable[[float], str]
) -> str:
    more = next((step for step in head_room if step.certainty > SURE), None)
    if more is None:
        return "Nothing is known of how far memory is from what is predicted"
    certainty = f"{100 * more.certainty:.0f} % instead of {_certainty(SURE)} of fitting"
    if not more.proven:
        return f"What {certainty} costs is not proven"
    cost = _step(more, ours)
    if cost is None:
        return f"Nothing fits with {_certainty(more.certainty)}"
    if cost < -_LEAST / 100:
        return f"A plan that fits with {_certainty(more.certainty)} takes {written(-cost)} less"
    if cost < _LEAST / 100:
        return f"{certainty} costs nothing"
    return f"{certainty} costs {written(cost)} of iteration time"


def _resource(name: str) -> str:
    return f"{name.removeprefix('bandwidth.')} bandwidth" if "." in name else "device memory"


def equation_table(lines: Sequence[Equation], report: Report) -> Table:
    """Terms and figures with their numbers."""
    return Table(
        f"{why_line(report)}: {humanise_seconds(report.iteration_s)} in all",
        "Symbols stand in docs/method.md; m counts micro-batches, t a stage's seconds per "
        "micro-batch, e its seconds once per iteration",
        tuple(
            {
                "Term": entry.name,
                "Equation": entry.symbols,
                "With this plan's numbers": f"= {entry.numbers}",
                "docs/method.md": entry.section,
            }
            for entry in lines
        ),
    )


def terms_table(report: PlanDifference) -> Table:
    """Two plans' terms side by side."""
    return Table(
        report.finding.rstrip("."),
        "Seconds per iteration, term by term",
        _difference_rows(_with_sum(report.terms, "iteration"), "Term", humanise_seconds),
    )


def memory_table(report: PlanDifference, limit: float) -> Table:
    """Memory of both plans' fullest stages side by side."""
    rows = _with_sum(report.memory, "in all")
    more = rows[-1].difference
    change = (
        f"{humanise_bytes(abs(more))} {'more' if more > 0 else 'less'}"
        if abs(more) >= 1
        else "as much"
    )
    return Table(
        f"Its fullest stage takes {change}: "
        f"{humanise_bytes(rows[-1].theirs)} of {humanise_bytes(limit)}",
        "Bytes per device of the fullest stage, part by part",
        _difference_rows(rows, "Part", humanise_bytes),
    )


def _with_sum(rows: tuple[DifferenceRow, ...], name: str) -> tuple[DifferenceRow, ...]:
    ours, theirs = sum(row.ours for row in rows), sum(row.theirs for row in rows)
    return (*rows, DifferenceRow(name, ours, theirs))


def _difference_rows(
    rows: Sequence[DifferenceRow], column: str, words: Callable[[float], str]
) -> tuple[dict[str, str], ...]:
    return tuple(
        {
            column: row.name,
            "Ours": words(row.ours),
            "Yours": words(row.theirs),
            "Yours − ours": _apart(row, words),
        }
        for row in rows
    )


def training_headline(run: Training) -> Headline:
    """Days to train as a headline figure."""
    tokens, rate = humanise(run.tokens), humanise(run.tokens_per_s)
    return Headline(
        "Time to train",
        format_days(run.days),
        f"on {_count(run.tokens)} tokens, with failures as of {run.goodput.file.name}",
        (
            "days = tokens / (sequences/s · tokens per sequence) / 86,400 s / effective share",
            f"= {tokens} / {rate} tokens/s / {percent(run.effective_share)} = "
            f"{format_days(run.days)}; {_rounded(run.iterations)} iterations, "
            f"{_rounded(run.device_days)} device-days; {losses_in_words(run)}",
        ),
        span_in_words(run.span, format_days),
        f"{percent(SHARE)} interval of the iteration time and of the counted failures.",
    )


def failures_line(run: Training) -> str:
    """Return whose failures days are with, how often they come, and what they take."""
    rate = run.goodput.process.rate
    every = f"one every {humanise_seconds(run.goodput.mtbf_s)}" if rate else "none"
    return (
        f"Failures as of {run.goodput.file.name}, {every}: {percent(run.effective_share)} of the "
        f"time trains; {losses_in_words(run)}."
    )


def losses_in_words(run: Training) -> str:
    """Return what training waits for and loses, the largest first, as far as one sees it."""
    (_, trained), *losses = run.parts
    parts = [
        f"{cause} {format_days(days)}"
        for cause, days in sorted(losses, key=lambda part: -part[1])
        if days >= _LEAST * trained
    ]
    return ", ".join(parts) or "next to nothing lost to failures"


def spares_in_words(worth: Sequence[Mapping[str, float | None]]) -> str:
    """Return what spare hosts are worth in days, and what they cost; see `WholeBill.spares_worth`.

    Examples
    --------
    >>> spares_in_words([{"hosts": 0, "days": 40, "usd": 0}, {"hosts": 3, "days": 36, "usd": 9e5}])
    '0: 40.0 days; 3: 36.0 days, $900 k'
    """
    return "; ".join(
        f"{row['hosts']:,}: {format_days(float(row['days'] or 0))}"
        + (f", {format_money(row['usd'])}" if row["usd"] else "")
        for row in worth
    )


def _count(value: float) -> str:
    words = (("T", "trillion"), ("G", "billion"), ("M", "million"), ("k", "thousand"))
    number, _, prefix = humanise(value).partition(" ")
    return f"{number} {dict(words).get(prefix, prefix)}".strip()


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _more(value: float) -> str:
    """A relative gain of throughput in words."""
    return (
        "no more throughput"
        if abs(value) < 5e-6
        else f"{percent(abs(value))} {'more' if value > 0 else 'less'} throughput"
    )


def _apart(row: DifferenceRow, words: Callable[[float], str]) -> str:
    return (
        "0"
        if abs(row.difference) <= 1e-9 * max(abs(row.ours), abs(row.theirs))
        else f"{'' if row.difference > 0 else '−'}{words(abs(row.difference))}"
    )


def busiest_text(links: Sequence[BusyLink]) -> str:
    """Return their table below an answer in a terminal; nothing where there are none."""
    return f"\n\n{busiest_table(links)}" if links else ""


def busiest_table(links: Sequence[BusyLink]) -> Table:
    """Return the busiest links of a plan or of a pattern."""
    listed = [entry for entry in links if entry.utilisation >= _LEAST]
    if not listed:
        return Table("No link is busy for long", "", ())
    share = percent_column(entry.utilisation for entry in listed)
    rows = [
        {
            "Busiest links": entry.link,
            "As busy": f"{entry.alike:,}",
            "Busy": share(entry.utilisation),
            "With": _with(entry),
        }
        for entry in listed
    ]
    first = listed[0]
    most = "The busiest link is" if first.alike == 1 else f"The busiest {first.alike:,} links are"
    return Table(
        f"{most} busy {percent(first.utilisation)} of the time, with {_with(first)}",
        "Share of the time that a link is busy at its full rate; links of a tier that are as busy "
        "as one another, to 0.1 %, are one row",
        rows,
    )


def _with(entry: BusyLink) -> str:
    """Return who uses a link, the most first."""
    users = {CLASSES.get(name, name): part for name, part in entry.users.items()}
    if len(users) == 1:
        return next(iter(users))
    parts = [f"{name} {percent(part)}" for name, part in users.items() if part >= _LEAST]
    more = [f"{len(parts) - _USERS} more"] if len(parts) > _USERS else []
    return join_words([*parts[:_USERS], *more])
