"""The formulae behind a comparison's figures, with its numbers filled in."""

from __future__ import annotations

from nest_core.documents.units import format_money, humanise, humanise_seconds, percent
from nest_core.explain import quantity
from nest_core.report.figures.bill import watts
from nest_core.studies.comparison import Comparison
from nest_core.studies.equal_budget import MOST_DEVICES
from nest_core.studies.whole_bill import Candidate, WholeBill

__all__ = ["formulae", "unlike"]


def unlike(comparison: Comparison) -> tuple[str, ...]:
    """What keeps candidates from being designs for the same thing, to be said above all figures."""
    every = [one.scenario for one in comparison.candidates]
    found = []
    sizes = sorted({scenario.fabric.devices for scenario in every})
    if len(sizes) > 1:
        found.append(
            f"These designs differ in size, {sizes[0]:,} to {sizes[-1]:,} devices: throughput, "
            "price and power are those of each as a whole."
        )
    if not comparison.one_job:
        found.append(
            "They do not train the same job (model, sequence length or batch): a token per second "
            "of one is not one of another."
        )
    return tuple(found)


def formulae(comparison: Comparison) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What each figure is, then its numbers candidate by candidate."""
    every = comparison.candidates
    found = [
        (
            "throughput = batch · sequence length / iteration time of the best plan",
            tuple(_throughput(one) for one in every),
        ),
        (
            "per token = whole bill / (throughput · years · share of the hours that is sold)",
            tuple(_per_tokens(one) for one in comparison.candidates),
        ),
        (
            "per watt = throughput / typical power of the network",
            tuple(
                _over(one, watts(one.bill.power_W.typical), one.tokens_per_s_per_W) for one in every
            ),
        ),
        (
            "power with accelerators = network + devices · design power; hosts, fans and cooling "
            "are not counted",
            tuple(_all_power(one) for one in every),
        ),
    ]
    if any(one.losses for one in every):
        found.append(
            (
                "throughput lost = 1 − throughput on what is left / throughput before; the first "
                "leaf, the first spine",
                tuple(_losses(one) for one in every if one.losses),
            )
        )
    if comparison.budget is not None:
        found.append(
            (
                "at equal budget = most whole nodes (of a hierarchy: outermost groups) whose "
                "network is within the budget by its typical figure, the job and its batch as "
                f"they are, planned anew; at most {MOST_DEVICES:,} devices",
                tuple(_at_budget(one) for one in every),
            )
        )
    return tuple(found)


def _per_tokens(one: WholeBill) -> str:
    usd, rate = one.usd_per_million_tokens, one.tokens_per_s
    if usd is None or rate is None:
        return f"{one.name}: none"
    sold = one.owned.sold_share or 1.0
    return (
        f"{one.name}: {format_money(one.owned.total_usd.typical)} / "
        f"({quantity(rate, 'tokens/s')} · "
        f"{one.owned.years:g} years · {percent(sold)}) = {format_money(usd.typical)} per "
        "million tokens"
    )


def _throughput(one: Candidate) -> str:
    if one.report is None or one.tokens_per_s is None:
        return f"{one.name}: no feasible plan"
    return (
        f"{one.name}: {one.scenario.batch:,} · {one.scenario.sequence:,} tokens / "
        f"{humanise_seconds(one.report.iteration_s)} = {quantity(one.tokens_per_s, 'tokens/s')}"
    )


def _over(one: Candidate, spent: str, value: float | None) -> str:
    if value is None or one.tokens_per_s is None:
        return f"{one.name}: none"
    return f"{one.name}: {quantity(one.tokens_per_s, 'tokens/s')} / {spent} = {humanise(value)}"


def _all_power(one: Candidate) -> str:
    device, every = one.scenario.accelerator.power_w, one.all_power_W
    if device is None or every is None:
        return f"{one.name}: {one.scenario.accelerator.name} has no published design power"
    return (
        f"{one.name}: {watts(one.bill.power_W.typical)} + {one.scenario.fabric.devices:,} · "
        f"{watts(device)} = {watts(every)}"
    )


def _losses(one: Candidate) -> str:
    words = []
    for loss in one.losses:
        switch = loss.missing[0] if loss.missing else f"one {loss.tier}"
        nodes = len(loss.missing) - 1
        gone = f"{switch} and {nodes:,} nodes" if nodes > 0 else switch
        if loss.replanned is None or one.tokens_per_s is None:
            words.append(f"without {gone}: {loss.note}")
            continue
        left = quantity((1 - loss.replanned) * one.tokens_per_s, "tokens/s")
        words.append(
            f"without {gone}, planned anew: 1 − {left} / "
            f"{quantity(one.tokens_per_s, 'tokens/s')} = {percent(loss.replanned)}"
        )
    return f"{one.name}: {'; '.join(words)}"


def _at_budget(one: Candidate) -> str:
    found = one.at_budget
    if found is None or not found.devices or found.price_usd is None or found.power_W is None:
        return f"{one.name}: {found.note if found else 'none'}"
    words = (
        f"{one.name}: {found.devices:,} devices, {format_money(found.price_usd.typical)}, "
        f"{watts(found.power_W.typical)}"
    )
    return f"{words}; {found.note}" if found.note else words
