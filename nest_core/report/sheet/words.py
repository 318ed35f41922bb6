"""The words and tables of a comparison and of its decision sheet."""

from __future__ import annotations

from collections.abc import Iterator

from nest_core.bill.ownership import Owned
from nest_core.bill.prices import PriceRange
from nest_core.calibration.acceptance.expected import (
    HOST,
    RAIL,
    Expected,
    expected_of,
    library_alone,
    lowest_of_tiers,
)
from nest_core.documents import (
    GB,
    InputError,
    format_days,
    format_money,
    humanise,
    join_words,
    percent,
    signed_percent,
    summed,
    three_digits,
)
from nest_core.network import collapse
from nest_core.report.explain.validity import validity_of
from nest_core.report.sheet.weighing import Weighing, dearer
from nest_core.scenario.titles import accelerator_title
from nest_core.studies.break_evens import between, ordered
from nest_core.studies.whole_bill import WholeBill

__all__ = [
    "acceptance_table",
    "accepted_by",
    "answer",
    "firmer",
    "headline",
    "prices_table",
    "rests_on",
    "rests_on_price",
    "subject",
    "title",
]

_PROVEN = 1e-3
"""A plan that is nearer to the best than that decides."""
_MAX_FURTHER = 2
"""Further designs that the line below the headline speaks of."""
_WHERE = {HOST: "in a host", RAIL: "on a rail"}


def headline(weighing: Weighing) -> str:
    """Return the break-even of the choice against its nearest rival; a tie is said as one."""
    mine, other, edge = weighing.choice, weighing.rival, weighing.device_edge
    if other is None:
        return f"{mine.name} stands alone: nothing beside it has a plan"
    if edge is None:
        return f"{mine.name} or {other.name}"
    if weighing.speeds_tie and mine.owned.devices == other.owned.devices:
        less, more = sorted((mine, other), key=lambda bill: bill.owned.total_usd.typical)
        saved = more.owned.total_usd.typical - less.owned.total_usd.typical
        words = f"{mine.name} and {other.name} tie in speed"
        return f"{words}; {less.name} costs {format_money(saved)} less" if saved > 0 else words
    worst = max((mine, other), key=lambda bill: bill.gap)
    if worst.gap > _PROVEN:  # its own best plan may turn the sentence
        return f"Not decided: {worst.name}'s plan may be {percent(worst.gap)} from the best"
    return edge.headline


def rests_on_price(weighing: Weighing) -> str:
    """Return what price, hours and the range of the break-even say, and of other designs."""
    mine, other, price = weighing.choice, weighing.rival, weighing.device_usd
    sentences = []
    if other is not None and price is not None:
        first, second = mine.cost(), other.cost()
        if first is not None and second is not None:
            more = dearer(first, second, price.typical, weighing.hours)
            at, side = format_money(price.typical), "more" if more > 0 else "less"
            sentences.append(
                f"At {at} {other.name} costs {signed_percent(abs(more))[1:]} {side} per token "
                f"than {mine.name}."
                if signed_percent(more) != "0 %"
                else f"At {at} a token costs the same in both."
            )
    elif other is not None:
        sentences.append(
            "No source states the price of an accelerator: the break-even stands alone."
        )
    hours, edge = weighing.hours_edge, weighing.device_edge
    if hours is not None and hours.value is not None and not weighing.speeds_tie:
        sentences.append(
            f"{hours.winner} wins there while it trains this model for more than "
            f"{percent(hours.value)} of its hours."
        )
    if edge is not None and edge.value is not None:
        low, high = edge.low or 0.0, edge.high
        ends = "open at both ends" if high is None else f"up to {format_money(high)}"
        if low > 0:
            end = "or more" if high is None else f"to {format_money(high)}"
            ends = f"{format_money(low)} {end}"
        sentences.append(f"Range of the break-even of {format_money(edge.value)}: {ends}.")
    for bill in [bill for bill in weighing.others if bill is not other][:_MAX_FURTHER]:
        edges = between(mine, bill, price, weighing.hours)
        sentences += [f"{edge.headline}." for edge in edges if edge.quantity == "device_usd"]
    unproven = (
        f"{bill.name}'s plan is not proven: a better one may be up to {percent(bill.gap)} faster."
        for bill in weighing.bills
        if bill.gap
    )
    caveats = (f"{bill.name}: {bill.caveat}" for bill in weighing.bills if bill.caveat)
    return " ".join([*sentences, *unproven, *caveats, *_left_out(weighing)])


def _left_out(weighing: Weighing) -> list[str]:
    return [f"{bill.name} is left out: {bill.reason}." for bill in weighing.left_out]


def subject(weighing: Weighing) -> str:
    """Return what the sheet is about."""
    scenario = weighing.choice.scenario
    name = accelerator_title(scenario.accelerator) if scenario else "accelerators"
    return f"Fabric of {weighing.choice.owned.devices:,} {name}"


def title(weighing: Weighing) -> str:
    """Return the recommendation."""
    name, count = weighing.choice.name, len(weighing.ties) + 1
    if weighing.rival is None:
        return f"{name} stands alone: nothing was set beside it"
    if weighing.ties:
        those = "both designs" if count == len(weighing.bills) == 2 else f"{count} designs"
        return f"Build {name}: {those} tie per token, it costs least"
    return f"Build the fabric as {name}"


def answer(weighing: Weighing) -> tuple[str, ...]:
    """Return why: the break-even, differences to the rival, what a tie does better."""
    mine, other, edge = weighing.choice, weighing.rival, weighing.device_edge
    sentences = []
    if edge is not None and other is not None and weighing.speeds_tie:
        sentences.append(
            f"{mine.name} and {other.name} are as fast for all that is known: what tells their "
            f"speeds apart lies inside the paired interval. At predicted speeds {edge.headline}."
        )
    elif edge is not None:
        sentences.append(edge.sentence)
    if other is not None and mine.training and other.training:
        model = mine.scenario.model.name if mine.scenario else "the model"
        bought = mine.owned.total_usd.typical - other.owned.total_usd.typical
        days = other.training.days - mine.training.days
        compared = (
            f"as many as {other.name}"
            if abs(days) < 5e-3 * mine.training.days
            else f"{abs(days):.2g} {'fewer' if days > 0 else 'more'} than {other.name}"
        )
        sentences.append(
            f"It trains {model} on {humanise(mine.training.tokens)} tokens in "
            f"{format_days(mine.training.days)}, {compared}, and costs "
            f"{format_money(abs(bought))} {'more' if bought > 0 else 'less'} over "
            f"{mine.owned.years:g} years."
        )
    safer = _safer(weighing)
    if safer is not None and safer.worst_loss and mine.worst_loss:
        more = safer.owned.total_usd.typical - mine.owned.total_usd.typical
        sentences.append(
            f"{safer.name} ties with it too and loses {percent(safer.worst_loss[0])} to "
            f"{safer.worst_loss[1]} where it loses {percent(mine.worst_loss[0])}, for "
            f"{format_money(more)} more."
        )
    return (*sentences, *_left_out(weighing))


def _safer(weighing: Weighing) -> WholeBill | None:
    """Return, of designs that tie, the one that one switch takes least from.

    None if that is the choice.
    """
    name = weighing.choice.name
    level = {name, *weighing.ties}
    tied = [bill for bill in weighing.bills if bill.name in level and bill.worst_loss]
    order = {row.name: row for row in ordered(tied, "failure")} if tied else {}
    if name not in order:
        return None
    best = min(tied, key=lambda bill: bill.worst_loss or (1.0, ""))
    return None if best.name in (name, *order[name].ties) else best


def rests_on(weighing: Weighing) -> Iterator[str]:
    """Yield the evidence behind the choice."""
    mine = weighing.choice
    if mine.scenario is not None and mine.report is not None:
        problem = mine.scenario.problem()
        yield validity_of(mine.scenario, problem.network, mine.report.plan).in_words
    if mine.points:
        near = f"more than {percent(mine.gap)} faster" if mine.gap else "faster"
        yield f"{mine.points:,} plans considered; under these costs none is {near}."
    if mine.sureness is not None:
        interval = mine.sureness.interval
        low, high = (
            signed_percent(end / interval.centre_s - 1, 0)
            for end in (interval.low_s, interval.high_s)
        )
        yield (
            f"Its time lies {low} to {high} about the "
            "prediction in four cases of five; what designs share cancels between them."
        )


def prices_table(
    owned: Owned, *, full: bool, max_lines: int | None = None
) -> tuple[tuple[str, str, str], ...]:
    """Return item with its number, price of one, and source; lines that share all are one.

    Parameters
    ----------
    owned : Owned
    full : bool
        The source in full, and the range of the price; else its kind and date.
    max_lines : int, optional
        So many lines, those that cost most.
    """
    listed = sorted(owned.lines, key=lambda line: -(line.usd.typical if line.usd else 0.0))[
        :max_lines
    ]
    counts = summed(
        (
            (
                line.name,
                _price(line.unit_usd, full),
                line.source if full else line.source.partition(": ")[0],
            ),
            line.count,
        )
        for line in owned.lines
        if line in listed
    )
    return tuple(
        (f"{name}, {count:,}" if count > 1 else name, price, source)
        for (name, price, source), count in counts.items()
    )


def _price(unit: PriceRange | None, full: bool) -> str:
    if unit is None:
        return "none"
    low, typical, high = (
        f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        for value in (unit.low, unit.typical, unit.high)
    )
    return f"${typical} ({low} to {high})" if full and unit.low != unit.high else f"${typical}"


def firmer(weighing: Weighing) -> Iterator[str]:
    """Yield what would settle more than is settled."""
    edge, rival = weighing.device_edge, weighing.rival
    if edge is not None and edge.value is not None:
        price = format_money(edge.value if edge.high is None else edge.high)
        yield f"A quotation: over {price} an accelerator settles it for {edge.winner}."
    if weighing.speeds_tie and rival is not None:
        yield (
            f"A measured pair of runs on {weighing.choice.name} and {rival.name}: what tells "
            "their speeds apart is less than what is known of either."
        )
    missing = weighing.choice.owned.missing
    if missing:
        yield f"Prices of {join_words(missing)}: no source states them, so none is billed."


def accepted_by(weighing: Weighing) -> str:
    """Return at which bus bandwidths the built fabric is accepted, in a line."""
    reached = [
        f"{three_digits(test.threshold_Bps / GB)}{'' if place else ' GB/s'} "
        f"{_WHERE.get(test.scope.tier, f'at the {test.scope.tier}')}"
        for place, test in enumerate(_acceptance(weighing))
    ]
    return f"Accepted once nccl-tests reach {', '.join(reached)} (next page)." if reached else ""


def acceptance_table(weighing: Weighing) -> tuple[tuple[str, str, str], ...]:
    """Return tier, least and expected bus bandwidth, what runs where; ``nest-studio accept``'s."""
    return tuple(
        (
            test.scope.tier,
            f"{three_digits(test.threshold_Bps / GB)} GB/s "
            f"({three_digits(test.predicted_busbw_Bps / GB)})",
            f"{test.scope.op.replace('_', '-')} {test.where}",
        )
        for test in _acceptance(weighing)
    )


def _acceptance(weighing: Weighing) -> tuple[Expected, ...]:
    """Return what every tier is held to; nothing where nccl-tests do not run on the fabric."""
    scenario = weighing.choice.scenario
    if scenario is None:
        return ()
    fabric, accelerator = scenario.fabric, scenario.accelerator
    try:
        tests = expected_of(fabric, collapse(fabric), library_alone(accelerator))
    except InputError:
        return ()
    return tuple(lowest_of_tiers(tests))
