"""Random comparisons: planned designs with prices, models, failures and gaps of a seed's choice.

Designs are planned once, in small spaces; a comparison draws two to six of one job, and changes
what does not touch plans: prices, years, hours, how surely plans are proven, what failures cost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from nest_core.documents import InputError
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.comparison import Comparison, compare, comparison_of
from nest_core.studies.designs import beside
from nest_core.studies.equal_budget import AtBudget, Budget

PINS = {
    "search.pp": [1, 2],
    "search.zero": [1],
    "search.recompute": ["none"],
    "search.schedule": "1f1b",
    "search.micro_batch_sequences": [1, 2],
}
JOBS = {
    "llama 2": {},
    "long": {"workload.sequence_length_tokens": 2048},
    "gpt-3": {"workload.model": "gpt3-1.3b", "workload.sequence_length_tokens": 1024},
}
NAMES = ("1:1", "2:1", "3:1", "8:1", "torus", "rail-only", "fat-tree", "rail-optimised")
NODES = ("accelerators with servers", "spares")
PRICES = {
    "ownership.device_usd.typical": (300.0, 300_000.0),
    "ownership.price_usd_per_kWh.typical": (0.02, 0.4),
    "ownership.pue.typical": (1.05, 1.9),
    "ownership.years.typical": (1.0, 8.0),
}


@cache
def planned(job: str) -> Comparison:
    """All designs of a job, with failures; the last one has no plan."""
    document, _ = scenario_document("llama2-7b-64-h100")
    base = Scenario(document, PINS | JOBS[job])
    entries = []
    for name in NAMES:
        try:
            design = replace(base, overrides=beside(base, name))
            _ = design.values
        except InputError:
            continue
        entries.append((name, design))
    small = replace(base, overrides={**base.overrides, "accelerator.memory_GiB": 2.0})
    first = compare(entries[:5])
    rest = compare([*entries[5:], ("too small", small)])
    every = (*first.candidates, *rest.candidates)
    return comparison_of([candidate.source for candidate in every], every, None)


def without_a_price(candidate, rng):
    """The candidate with one line of its network, hall or energy without a price."""
    lines = list(candidate.owned.lines)
    priced = [n for n, line in enumerate(lines) if line.usd and line.part not in NODES]
    place = int(rng.choice(priced))
    lines[place] = replace(lines[place], usd=None, name=f"{lines[place].name} on request")
    return replace(candidate, owned=replace(candidate.owned, lines=tuple(lines)))


def named_in_the_plural(candidates, rng):
    """The candidates, one of them with a name that is a plural."""
    place = int(rng.integers(len(candidates)))
    name = str(rng.choice(["two planes", "16 rails", "Four thin planes"]))
    return [replace(c, name=name) if n == place else c for n, c in enumerate(candidates)]


def beside_a_loss(candidates, rng) -> float | None:
    """A limit that rounding cannot tell from what a failure costs; None where none costs any."""
    every = [c.worst_loss[0] for c in candidates if c.worst_loss and 0.001 < c.worst_loss[0] < 1]
    return float(rng.choice(every)) * (1 + float(rng.choice([-1e-5, 1e-5]))) if every else None


def random_comparison(seed: int) -> tuple[Comparison, float, float]:
    """A comparison, the share of hours for this model, and the limit of a single failure."""
    rng = np.random.default_rng(seed)
    every = planned(list(JOBS)[int(rng.integers(len(JOBS)))])
    count = int(rng.integers(2, 7))
    places = rng.choice(len(every.candidates), count, replace=False)
    changes = {
        key: float(np.exp(rng.uniform(np.log(low), np.log(high))))
        for key, (low, high) in PRICES.items()
        if rng.random() < 0.6
    }
    priced = Comparison(tuple(every.candidates[int(place)] for place in places), None).at(
        changes, {"tokens": float(np.exp(rng.uniform(np.log(1e9), np.log(15e12))))}
    )
    has_failures, is_sure, is_unpriced = rng.random(3) < (0.7, 0.2, 0.1)
    candidates = []
    for candidate in priced.candidates:
        change = {} if has_failures else {"failure": None}
        if candidate.report is not None and rng.random() < 0.15:
            change["gap"] = float(rng.choice([2e-4, 0.02, 0.3]))
        if is_sure:
            change["sureness"] = None
        if is_unpriced and candidate is priced.candidates[0]:
            lines = tuple(
                replace(line, usd=None) if line.part in NODES else line
                for line in candidate.owned.lines
            )
            change["owned"] = replace(candidate.owned, lines=lines)
        candidates.append(replace(candidate, **change))
    if seed % 7 == 3:  # the first lacks the price of a part that others have one for
        candidates[0] = without_a_price(candidates[0], rng)
    hours = 1.0 if rng.random() < 0.7 else float(rng.uniform(0.2, 1.0))
    max_loss = float(rng.choice([0.02, 0.1, 0.5]))
    if rng.random() < 0.5:
        budget = Budget("price", float(rng.choice([c.bill.price_usd.typical for c in candidates])))
        candidates = [
            replace(c, at_budget=AtBudget(budget, 8 * place, None, 1e5 * place or None))
            for place, c in enumerate(candidates)
        ]
    apart = np.random.default_rng([seed, 1])
    if apart.random() < 0.3:
        candidates = named_in_the_plural(candidates, apart)
    if apart.random() < 0.3:
        max_loss = beside_a_loss(candidates, apart) or max_loss
    return Comparison(tuple(candidates), None), hours, max_loss
