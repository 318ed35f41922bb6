"""The words and tables of a comparison and of its decision sheet."""

from collections.abc import Callable, Iterator

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
    Claim,
    Fact,
    InputError,
    agreeing,
    and_others,
    at_most_percent,
    does,
    format_money,
    grouped,
    humanise,
    humanise_power,
    join_words,
    joined,
    percent_beside,
    signed_percent,
    three_digits,
)
from nest_core.network import collapse
from nest_core.report.explain.validity import validity_of
from nest_core.report.explain.words import failures_line
from nest_core.scenario.document import accelerator_title
from nest_core.studies.decision import FAR, Decision, refusal, unpriced
from nest_core.studies.equal_budget import Budget, spent
from nest_core.studies.whole_bill import WholeBill

__all__ = [
    "acceptance_table",
    "accepted_by",
    "answer",
    "difference_words",
    "firmer",
    "loss_words",
    "magnitude",
    "prices_table",
    "rests_on",
    "subject",
    "title",
    "why",
]

_PER = {
    "days": "in days",
    "tokens_per_usd": "per token",
    "tokens_per_network_usd": "of network per token",
    "tokens_per_W": "of power per token",
}
"""What designs are compared in, by goal."""
_LITTLE, _ROUNDING = 5e-4, 1e-9
_WHERE = {HOST: "in a host", RAIL: "on a rail"}


def title(decision: Decision) -> Claim:
    """Return which design is to be built, and what decides."""
    best, rival = decision.best, decision.rival
    if rival is None:
        beside = "nothing beside it has a plan" if decision.left_out else "nothing stands beside it"
        return Claim(f"{does(best.name, 'stands')} alone: {beside}")
    if decision.is_open:
        (claim, *_) = (claim for claim in decision.unproven if claim.facts[0].relation == "open")
        return Claim(f"Not decided: {claim.removesuffix('.')}", *claim.facts)
    fact, refused = Fact("best", (best.name,)), refusal(unpriced(decision.listed))
    if rival.name not in decision.ties:
        words = difference_words(decision, rival)
        return Claim(f"Build {best.name}: {words}{refused}", fact, *words.facts)
    tie = Fact("ties", (best.name, rival.name))
    reason = _preferred(decision, rival)
    it = "it" if agreeing(best.name, "is") == "is" else "they"
    return Claim(
        f"Build {best.name}: {it} {agreeing(best.name, 'ties')} with "
        f"{and_others(decision.ties)} {_per(decision)}, and {reason}{refused}",
        fact,
        tie,
        *reason.facts,
    )


def _per(decision: Decision) -> str:
    """Return what designs are compared in."""
    return (
        "for its work"
        if decision.goal == "tokens_per_usd" and decision.assumed.hours < 1.0
        else _PER[decision.goal]
    )


def magnitude(share: float) -> str:
    """Return the size of a relative difference with the digits that tables give it.

    Examples
    --------
    >>> magnitude(-0.0312), magnitude(0.0004)
    ('3.1 %', 'under 0.05 %')
    """
    text = signed_percent(abs(share)).removeprefix("+")
    return "under 0.05 %" if text == "0 %" else text


def loss_words(decision: Decision) -> Callable[[float], str]:
    """Return the words for what failures take, each on its side of the share that the rule has."""
    limit = decision.assumed.max_loss
    return lambda lost: magnitude(lost) if abs(lost) < _LITTLE else percent_beside(lost, limit)


def difference_words(decision: Decision, bill: WholeBill) -> Claim:
    """Return how a design stands to the best by what decides."""
    best, difference = decision.best, decision.difference(bill)
    if difference is None:
        return Claim("")
    per = _per(decision)
    if difference.is_tie or abs(difference.value) < _ROUNDING:
        return Claim(
            f"{does(bill.name, 'ties')} with {best.name} {per}",
            Fact("ties", (best.name, bill.name)),
        )
    way, amount = "more" if difference.value > 0 else "less", magnitude(difference.value)
    longer = "longer" if way == "more" else "less time"
    figure = (
        f"{does(bill.name, 'takes')} {amount} {longer}"
        if decision.goal == "days"
        else f"{does(bill.name, 'costs')} {amount} {way} {per}"
    )
    return Claim(figure, Fact(way, (bill.name, best.name), "", difference.value))


def _preferred(decision: Decision, rival: WholeBill) -> Claim:
    """Return what puts the best before one that it ties with."""
    best, limit = decision.best, decision.assumed.max_loss
    lost = [bill.worst_loss or (0.0, "") for bill in (best, rival)]
    names = best.name, rival.name
    if lost[1][0] >= limit > lost[0][0]:
        words = f"{does(rival.name, 'loses')} {loss_words(decision)(lost[1][0])} to {lost[1][1]}"
        return Claim(words, Fact("loses", (rival.name, lost[1][1]), "", lost[1][0]))
    differs = unpriced(decision.listed)
    saved = 0.0 if differs else rival.owned.total_usd.typical - best.owned.total_usd.typical
    spared = rival.owned.power_W.typical - best.owned.power_W.typical
    if saved > 0:
        words = f"the bill is {format_money(saved)} below that of {rival.name}"
        return Claim(words, Fact("less", names, "usd", saved))
    if spared > 0:
        for_same = "" if differs else " for the same bill"
        words = f"{agreeing(best.name, 'draws')} {humanise_power(spared)} less{for_same}"
        return Claim(words, Fact("less", names, "W", spared))
    return Claim(
        f"{does(rival.name, 'is')} the same in all that the rule reads",
        Fact("same", names),
    )


def why(decision: Decision) -> tuple[Claim, ...]:
    """Return what the choice rests on: what changes it, the break-even, what is not known."""
    best, rival, price = decision.best, decision.rival, decision.device_usd
    changes: list[str] = []
    edge = decision.break_even("device_usd")
    if edge and price and edge.value and edge.value > FAR * price.typical:
        edge = None  # of speeds that are as good as equal
    if rival is not None:
        words = difference_words(decision, rival)
        at = f"At {format_money(price.typical)} an accelerator " if price else ""
        changes.append(Claim(f"{at}{words}.", *words.facts))
        changes += decision.breaks_if or [
            Claim("No assumption, moved alone, changes the choice.", Fact("stays", (best.name,)))
        ]
    lines = changes, [edge.sentence] if edge else [], _in_budget(decision), decision.unknown
    return tuple(joined(line) for line in lines if line)


def _in_budget(decision: Decision) -> tuple[Claim, ...]:
    """Return what each design reaches on a network of the budget, and which is dearer as it is."""
    reached = [(bill, bill.at_budget) for bill in decision.bills if bill.at_budget]
    if not reached:
        return ()
    budget = reached[0][1].budget
    parts = [
        Claim(
            f"{does(bill.name, 'joins')} {at.devices:,} devices and "
            + (
                f"{agreeing(bill.name, 'reaches')} {humanise(at.tokens_per_s)} tokens/s"
                if at.tokens_per_s
                else f"{agreeing(bill.name, 'has')} no plan"
            ),
            Fact("reaches", (bill.name,), "", at.tokens_per_s),
        )
        for bill, at in reached
    ]
    every = joined(parts, "; ")
    takes = {bill.name: spent(bill.owned.network, budget.kind) for bill, _ in reached}
    dearer = (
        Claim(
            f"{bill.name} with {bill.owned.devices:,} devices {agreeing(bill.name, 'takes')} "
            f"{Budget(budget.kind, takes[bill.name]).words}, "
            f"{Budget(budget.kind, takes[bill.name] - budget.value).words} more than that.",
            Fact("over", (bill.name,), budget.kind, takes[bill.name]),
        )
        for bill, _ in reached
        if takes[bill.name] > budget.value
    )
    return Claim(f"On a network of {budget.words}, planned anew: {every}.", *every.facts), *dearer


def subject(decision: Decision) -> str:
    """Return what the sheet is about."""
    scenario = decision.best.scenario
    name = accelerator_title(scenario.accelerator) if scenario else "accelerators"
    return f"Fabric of {decision.best.owned.devices:,} {name}"


def answer(decision: Decision) -> tuple[str, ...]:
    """Return why: the rule, differences to the second, what would change it."""
    best, rival = decision.best, decision.rival
    sentences = []
    if rival is not None and best.training and rival.training:
        model = best.scenario.model.name if best.scenario else "the model"
        more = decision.difference(rival, "total_usd")
        bill, other = (
            "" if more is None else f" for {format_money(each.owned.total_usd.typical)}"
            for each in (best, rival)
        )
        sentences.append(
            f"It trains {model} on {humanise(best.training.tokens)} tokens in "
            f"{three_digits(best.training.days)} days with failures{bill}; {rival.name} in "
            f"{three_digits(rival.training.days)} days{other}."
        )
    return (*sentences, *why(decision), decision.rule)


def rests_on(decision: Decision) -> Iterator[str]:
    """Yield the evidence behind the choice."""
    mine = decision.best
    if mine.scenario is not None and mine.report is not None:
        yield validity_of(mine.scenario, mine.scenario.problem().network, mine.report.plan).in_words
    if mine.points:
        near = f"more than {at_most_percent(1 / (1 - mine.gap) - 1)} " if mine.gap else ""
        yield f"{mine.points:,} plans considered; under these costs none is {near}faster."
    if mine.training is not None:
        yield failures_line(mine.training)
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
        So many rows, those that cost most together.
    """
    rows = grouped(
        (
            (
                line.name,
                _price(line.unit_usd, full),
                line.source if full else line.source.partition(": ")[0],
            ),
            line,
        )
        for line in owned.lines
    )
    listed = sorted(
        rows.items(),
        key=lambda row: -sum(line.usd.typical for line in row[1] if line.usd is not None),
    )
    return tuple(
        (f"{name}, {count:,}" if count > 1 else name, price, source)
        for (name, price, source), lines in listed[:max_lines]
        for count in [sum(line.count for line in lines)]
    )


def _price(unit: PriceRange | None, full: bool) -> str:
    if unit is None:
        return "none"
    low, typical, high = (
        f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        for value in (unit.low, unit.typical, unit.high)
    )
    return f"${typical} ({low} to {high})" if full and unit.low != unit.high else f"${typical}"


def firmer(decision: Decision) -> Iterator[str]:
    """Yield what would settle more than is settled."""
    rival, price = decision.rival, decision.device_usd
    if price is not None and price.low < price.high:
        yield (
            "A quotation for accelerators: their price lies "
            f"{format_money(price.low)} to {format_money(price.high)}."
        )
    if rival is not None and rival.name in decision.ties:
        yield (
            f"A measured pair of runs on {decision.best.name} and {rival.name}: what tells their "
            "costs apart is less than what is known of either."
        )
    missing = decision.best.owned.missing
    if missing:
        yield f"Prices of {join_words(missing)}: no source states them, so none is billed."


def accepted_by(decision: Decision) -> str:
    """Return at which bus bandwidths the built fabric is accepted, in a line."""
    reached = [
        f"{three_digits(test.threshold_Bps / GB)}{'' if place else ' GB/s'} "
        f"{_WHERE.get(test.scope.tier, f'at the {test.scope.tier}')}"
        for place, test in enumerate(_acceptance(decision))
    ]
    return f"Accepted once nccl-tests reach {', '.join(reached)} (next page)." if reached else ""


def acceptance_table(decision: Decision) -> tuple[tuple[str, str, str], ...]:
    """Return tier, least and expected bus bandwidth, what runs where; ``nest-studio accept``'s."""
    return tuple(
        (
            test.scope.tier,
            f"{three_digits(test.threshold_Bps / GB)} GB/s "
            f"({three_digits(test.predicted_busbw_Bps / GB)})",
            f"{test.scope.op.replace('_', '-')} {test.where}",
        )
        for test in _acceptance(decision)
    )


def _acceptance(decision: Decision) -> tuple[Expected, ...]:
    """Return what every tier is held to; nothing where nccl-tests do not run on the fabric."""
    scenario = decision.best.scenario
    if scenario is None:
        return ()
    fabric, accelerator = scenario.fabric, scenario.accelerator
    try:
        tests = expected_of(fabric, collapse(fabric), library_alone(accelerator))
    except InputError:
        return ()
    return tuple(lowest_of_tiers(tests))
