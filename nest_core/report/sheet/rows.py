"""The words and tables of a decision sheet."""

from __future__ import annotations

from collections.abc import Sequence

from nest_core.bill.ownership import Owned
from nest_core.bill.prices import PriceRange
from nest_core.calibration.acceptance.expected import (
    Expected,
    expected_of,
    library_alone,
    lowest_of_tiers,
)
from nest_core.calibration.acceptance.scopes import HOST, RAIL
from nest_core.documents.errors import InputError
from nest_core.documents.units import (
    GB,
    format_days,
    format_money,
    humanise,
    percent,
    signed_percent,
    three_digits,
)
from nest_core.explain.validity import validity_of
from nest_core.network import collapse
from nest_core.report.sheet.weighing import Weighing
from nest_core.scenario.titles import accelerator_title
from nest_core.studies.ordering import ordered
from nest_core.studies.whole_bill import WholeBill

__all__ = [
    "acceptance_table",
    "accepted_by",
    "answer",
    "firmer",
    "prices_table",
    "rests_on",
    "subject",
    "title",
]

_MILLION = 1e6


def subject(found: Weighing) -> str:
    """What the sheet is about."""
    scenario = found.choice.scenario
    name = accelerator_title(scenario.accelerator) if scenario else "accelerators"
    return f"Fabric of {found.choice.owned.devices:,} {name}"


def title(found: Weighing) -> str:
    """The recommendation."""
    if found.rival is None:
        return f"{found.choice.name} stands alone: nothing was set beside it"
    if found.ties:
        count = len(found.ties) + 1
        those = "both designs" if count == len(found.bills) == 2 else f"{count} designs"
        return f"Build {found.choice.name}: {those} tie per token, it costs least"
    return f"Build the fabric as {found.choice.name}"


def answer(found: Weighing) -> tuple[str, ...]:
    """Why, in sentences: the break-even, the differences to the rival, what a tie does better."""
    mine, other = found.choice, found.rival
    edge = next((one for one in found.break_evens if one.quantity == "device_usd"), None)
    told = []
    if edge is not None and other is not None and found.speeds_tie:
        told.append(
            f"{mine.name} and {other.name} are as fast for all that is known: what tells their "
            f"speeds apart lies inside the paired interval. At predicted speeds {edge.headline}."
        )
    elif edge is not None:
        told.append(edge.sentence)
    if other is not None and mine.training and other.training:
        model = mine.scenario.model.name if mine.scenario else "the model"
        bought = mine.owned.total_usd.typical - other.owned.total_usd.typical
        money = f"{format_money(abs(bought))} {'more' if bought > 0 else 'less'}"
        told.append(
            f"It trains {model} on {humanise(mine.training.tokens)} tokens in "
            f"{format_days(mine.training.days)}, {_days_apart(mine, other)}, and costs "
            f"{money} over "
            f"{mine.owned.years:g} years."
        )
    safer = _safer(found)
    if safer is not None and safer.worst_loss and mine.worst_loss:
        dearer = safer.owned.total_usd.typical - mine.owned.total_usd.typical
        told.append(
            f"{safer.name} ties with it too and loses {percent(safer.worst_loss[0])} to "
            f"{safer.worst_loss[1]} where it loses {percent(mine.worst_loss[0])}, for "
            f"{format_money(dearer)} more."
        )
    told += [f"{one.name} is left out: {one.reason}." for one in found.left_out]
    return tuple(told)


def _days_apart(mine: WholeBill, other: WholeBill) -> str:
    if mine.training is None or other.training is None:
        return ""
    apart = other.training.days - mine.training.days
    if abs(apart) < 5e-3 * mine.training.days:
        return f"as many as {other.name}"
    return f"{abs(apart):.2g} {'fewer' if apart > 0 else 'more'} than {other.name}"


def _safer(found: Weighing) -> WholeBill | None:
    """Of designs that tie the one that one switch takes least from, if it is not the choice."""
    level = {found.choice.name, *found.ties}
    known = [one for one in found.bills if one.name in level and one.worst_loss]
    order = {row.name: row for row in ordered(known, "failure")} if known else {}
    if found.choice.name not in order:
        return None
    best = min(known, key=lambda one: one.worst_loss or (1.0, ""))
    return None if best.name in (found.choice.name, *order[found.choice.name].ties) else best


def rests_on(found: Weighing) -> tuple[str, ...]:
    """The evidence behind the choice."""
    mine = found.choice
    told = []
    if mine.scenario is not None and mine.report is not None:
        problem = mine.scenario.problem()
        told.append(validity_of(mine.scenario, problem.network, mine.report.plan).in_words)
    if mine.points:
        near = (
            "none is faster" if mine.gap == 0 else f"none is more than {percent(mine.gap)} faster"
        )
        told.append(f"{mine.points:,} plans considered; under these costs {near}.")
    if mine.sureness is not None:
        known = mine.sureness.interval
        low, high = known.low_s / known.centre_s - 1, known.high_s / known.centre_s - 1
        told.append(
            f"Its time lies {signed_percent(low, 0)} to {signed_percent(high, 0)} about the "
            "prediction in four cases of five; what designs share cancels between them."
        )
    return tuple(told)


def prices_table(
    owned: Owned, *, full: bool, most: int | None = None
) -> tuple[tuple[str, str, str], ...]:
    """Item with its number, price of one, and source; lines that share all three are one.

    Parameters
    ----------
    owned : Owned
    full : bool
        The source in full, and the range of the price; else its kind and date.
    most : int, optional
        So many lines, those that cost most.
    """
    lines = owned.lines
    if most is not None:
        dear = sorted(lines, key=lambda line: -(line.usd.typical if line.usd else 0.0))[:most]
        lines = tuple(line for line in lines if line in dear)
    counts: dict[tuple[str, str, str], int] = {}
    for line in lines:
        source = line.source if full else line.source.partition(": ")[0]
        row = (line.name, _price(line.unit_usd, full), source)
        counts[row] = counts.get(row, 0) + line.count
    return tuple(
        (f"{name}, {count:,}" if count > 1 else name, price, source)
        for (name, price, source), count in counts.items()
    )


def _price(unit: PriceRange | None, full: bool) -> str:
    if unit is None:
        return "none"
    ends = f" ({_usd(unit.low)} to {_usd(unit.high)})" if full and unit.low != unit.high else ""
    return f"${_usd(unit.typical)}{ends}"


def _usd(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def firmer(found: Weighing) -> tuple[str, ...]:
    """What would settle more than is settled."""
    told = []
    edge = next((one for one in found.break_evens if one.quantity == "device_usd"), None)
    if edge is not None and edge.value is not None:
        most = edge.high if edge.high is not None else edge.value
        told.append(
            f"A quotation: over {format_money(most)} an accelerator settles it for {edge.winner}."
        )
    if found.speeds_tie and found.rival is not None:
        told.append(
            f"A measured pair of runs on {found.choice.name} and {found.rival.name}: what tells "
            "their speeds apart is less than what is known of either."
        )
    missing = found.choice.owned.missing
    if missing:
        told.append(
            f"Prices of {_joined(list(missing))}: no source states them, so none is billed."
        )
    return tuple(told)


def accepted_by(found: Weighing) -> str:
    """At which bus bandwidths the built fabric is accepted, in a line."""
    tests = _acceptance(found)
    if not tests:
        return ""
    first, *others = (
        f"{three_digits(one.threshold_Bps / GB)}{'' if place else ' GB/s'} {_at(one.scope.tier)}"
        for place, one in enumerate(tests)
    )
    return f"Accepted once nccl-tests reach {', '.join([first, *others])} (next page)."


def acceptance_table(found: Weighing) -> tuple[tuple[str, str, str], ...]:
    """Tier, bus bandwidth at least and expected, what runs where; ``nest-studio accept``'s."""
    return tuple(
        (
            one.scope.tier,
            f"{three_digits(one.threshold_Bps / GB)} GB/s "
            f"({three_digits(one.predicted_busbw_Bps / GB)})",
            f"{one.scope.op.replace('_', '-')} {one.where}",
        )
        for one in _acceptance(found)
    )


def _acceptance(found: Weighing) -> tuple[Expected, ...]:
    """What every tier is held to; nothing where nccl-tests do not run on the fabric."""
    scenario = found.choice.scenario
    if scenario is None:
        return ()
    try:
        tests = expected_of(
            scenario.fabric, collapse(scenario.fabric), library_alone(scenario.accelerator)
        )
    except InputError:
        return ()
    return lowest_of_tiers(tests)


def _at(tier: str) -> str:
    return {HOST: "in a host", RAIL: "on a rail"}.get(tier, f"at the {tier}")


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
