"""The formulae behind a comparison's figures, with its numbers filled in."""

from __future__ import annotations

from collections.abc import Callable

from nest_core.documents.units import format_money, humanise, humanise_seconds, percent
from nest_core.report.explain import quantity
from nest_core.report.figures.bill import watts
from nest_core.studies.comparison import Comparison
from nest_core.studies.equal_budget import MAX_DEVICES
from nest_core.studies.whole_bill import Candidate

__all__ = ["formulae", "unlike"]


def unlike(comparison: Comparison) -> tuple[str, ...]:
    """Return what keeps candidates from being designs for the same thing, to stand above all."""
    sentences = []
    sizes = {candidate.scenario.fabric.devices for candidate in comparison.candidates}
    if len(sizes) > 1:
        sentences.append(
            f"These designs differ in size, {min(sizes):,} to {max(sizes):,} devices: throughput, "
            "price and power are those of each as a whole."
        )
    if not comparison.one_job:
        sentences.append(
            "They do not train the same job (model, sequence length or batch): a token per second "
            "of one is not one of another."
        )
    return tuple(sentences)


def formulae(comparison: Comparison) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what each figure is, then its numbers candidate by candidate."""
    lines: list[tuple[str, Callable[[Candidate], str]]] = [
        (
            "throughput = batch · sequence length / iteration time of the best plan",
            _throughput,
        ),
        (
            "per token = whole bill / (throughput · years · share of the hours that is sold)",
            _per_tokens,
        ),
        ("per watt = throughput / typical power of the network", _per_watt),
        (
            "power with accelerators = network + devices · design power; hosts, fans and cooling "
            "are not counted",
            _all_power,
        ),
        (
            "throughput lost = 1 − throughput on what is left / throughput before; the first "
            "leaf, the first spine",
            _losses,
        ),
    ]
    if comparison.budget is not None:
        budget = (
            "at equal budget = most whole nodes (of a hierarchy: outermost groups) whose "
            "network is within the budget by its typical figure, the job and its batch as "
            f"they are, planned anew; at most {MAX_DEVICES:,} devices"
        )
        lines.append((budget, _at_budget))
    filled = [
        (formula, [(c.name, numbers(c)) for c in comparison.candidates])
        for formula, numbers in lines
    ]
    return tuple(
        (formula, tuple(f"{name}: {words}" for name, words in numbers if words))
        for formula, numbers in filled
        if any(words for _, words in numbers)
    )


def _per_tokens(candidate: Candidate) -> str:
    usd, rate, owned = candidate.usd_per_million_tokens, candidate.tokens_per_s, candidate.owned
    if usd is None or rate is None:
        return "none"
    return (
        f"{format_money(owned.total_usd.typical)} / ({quantity(rate, 'tokens/s')} · "
        f"{owned.years:g} years · {percent(owned.sold_share or 1.0)}) = "
        f"{format_money(usd.typical)} per million tokens"
    )


def _throughput(candidate: Candidate) -> str:
    if candidate.report is None or candidate.tokens_per_s is None:
        return "no feasible plan"
    scenario = candidate.scenario
    return (
        f"{scenario.batch:,} · {scenario.sequence:,} tokens / "
        f"{humanise_seconds(candidate.report.iteration_s)} = "
        f"{quantity(candidate.tokens_per_s, 'tokens/s')}"
    )


def _per_watt(candidate: Candidate) -> str:
    rate, share = candidate.tokens_per_s, candidate.tokens_per_s_per_W
    if share is None or rate is None:
        return "none"
    power = watts(candidate.bill.power_W.typical)
    return f"{quantity(rate, 'tokens/s')} / {power} = {humanise(share)}"


def _all_power(candidate: Candidate) -> str:
    accelerator, total = candidate.scenario.accelerator, candidate.all_power_W
    if accelerator.power_w is None or total is None:
        return f"{accelerator.name} has no published design power"
    return (
        f"{watts(candidate.bill.power_W.typical)} + {candidate.scenario.fabric.devices:,} · "
        f"{watts(accelerator.power_w)} = {watts(total)}"
    )


def _losses(candidate: Candidate) -> str:
    words, rate = [], candidate.tokens_per_s
    for loss in candidate.losses:
        gone = loss.missing[0] if loss.missing else f"one {loss.tier}"
        if len(loss.missing) > 1:
            gone += f" and {len(loss.missing) - 1:,} nodes"
        if loss.replanned is None or rate is None:
            words.append(f"without {gone}: {loss.note}")
            continue
        rest = quantity((1 - loss.replanned) * rate, "tokens/s")
        words.append(
            f"without {gone}, planned anew: 1 − {rest} / "
            f"{quantity(rate, 'tokens/s')} = {percent(loss.replanned)}"
        )
    return "; ".join(words)


def _at_budget(candidate: Candidate) -> str:
    design = candidate.at_budget
    if design is None or not design.devices or design.price_usd is None or design.power_W is None:
        return design.note if design else "none"
    words = (
        f"{design.devices:,} devices, {format_money(design.price_usd.typical)}, "
        f"{watts(design.power_W.typical)}"
    )
    return f"{words}; {design.note}" if design.note else words
