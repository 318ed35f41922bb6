"""Break-evens of whole bills against a search in exact fractions, and what their sentences say."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.bill.ownership import owned
from nest_core.bill.prices import load_prices
from nest_core.report.explain.training import training
from nest_core.scenario import load_fabric, load_scenario
from nest_core.studies.break_evens import between, of_design
from nest_core.studies.solving import solve
from nest_core.studies.uncertainty import interval_of, paired_sd, sureness_of
from nest_core.studies.whole_bill import (
    BreakEvenPoint,
    DesignCost,
    WholeBill,
    crossing_of_hours,
    crossing_of_price,
    crossing_of_years,
)

DESIGNS = st.builds(
    DesignCost,
    st.integers(1, 2_000).map(float),
    st.integers(1, 64),
    st.integers(0, 5_000).map(float),
    st.integers(0, 500).map(float),
    st.integers(1, 10).map(float),
    st.sampled_from([0.0, 0.125]),
)
ENDS = (Fraction(1, 1000), Fraction(1, 3), Fraction(999, 1000), Fraction(1001, 1000), Fraction(3))


def whole(design: DesignCost, price: Fraction, years: Fraction | None = None) -> Fraction:
    kept = Fraction(design.years) if years is None else years
    paid = Fraction(design.devices) * (1 + Fraction(design.spares))
    return Fraction(design.network_usd) + kept * Fraction(design.yearly_usd) + paid * price


def holds(found: BreakEvenPoint, ahead, most: Fraction) -> None:
    """On both sides of a crossing, and everywhere where there is none, who is ahead is as said."""
    at = most if found.at == float("inf") else Fraction(found.at)
    for part in ENDS:
        value = (at if at > 0 else most) * part
        if value <= most and abs(value - at) > at * Fraction(1, 10**6):
            expected = (value > at) if found.above else (value < at)
            if at in (0, most):
                expected = found.always
            assert ahead(value) is None or ahead(value) == expected


def beats(mine: Fraction, theirs: Fraction) -> bool | None:
    return None if mine == theirs else mine > theirs


@given(DESIGNS, DESIGNS, st.integers(1, 2_000))
@settings(max_examples=150, deadline=None)
def test_there_is_one_crossing_at_most_and_it_is_the_one_found(one, other, price):
    """In the price of an accelerator, in years, in the share of hours: each side has one winner."""
    usd, rates = Fraction(price), (Fraction(one.tokens_per_s), Fraction(other.tokens_per_s))

    def by_price(x):
        return beats(rates[0] * whole(other, x), rates[1] * whole(one, x))

    def by_years(kept):
        return beats(rates[0] * whole(other, usd, kept), rates[1] * whole(one, usd, kept))

    def by_hours(share):
        level = rates[1] / other.devices
        worth = [
            share * rate / level + (1 - share) * each.devices
            for rate, each in zip(rates, (one, other), strict=True)
        ]
        return beats(worth[0] * whole(other, usd), worth[1] * whole(one, usd))

    holds(crossing_of_price(one, other), by_price, Fraction(10**9))
    holds(crossing_of_years(one, other, float(price)), by_years, Fraction(10**7))
    holds(crossing_of_hours(one, other, float(price), other), by_hours, Fraction(1))


@pytest.fixture(scope="module")
def pair():
    """One job on a fabric at 1:1 and at 8:1, planned, and their sureness."""
    found = []
    for ratio in ("1.0", "8.0"):
        scenario = load_scenario(
            "llama2-7b-64-h100",
            [
                f"fabric.clos.oversubscription=[{ratio}]",
                "search.tp=2",
                "search.pp=1",
                "search.zero=[1]",
                'search.recompute=["none"]',
            ],
        )
        problem = scenario.problem()
        report = solve(scenario, problem).best
        sure = sureness_of(scenario, problem, report)
        assert interval_of(scenario, problem, report) == sure.interval
        bill = owned(scenario.fabric, load_prices(), scenario.accelerator.name)
        run = training(scenario, report, 1e12, sure.interval)
        name = f"{float(ratio):g}:1"
        found.append(WholeBill(name, bill, scenario, report, sureness=sure, training=run))
    return found


def test_a_paired_interval_is_narrower_than_either_and_alike_both_ways(pair):
    fast, slow = (one.sureness for one in pair)
    sd = paired_sd(fast, slow)
    assert sd == pytest.approx(paired_sd(slow, fast))
    assert 0 < sd < min(fast.interval.spread, slow.interval.spread)
    assert paired_sd(fast, fast) == pytest.approx(0.015 * np.sqrt(2))


def test_break_evens_of_a_pair_are_those_of_their_designs(pair):
    fast, slow = pair
    usd = fast.owned.device_usd
    price, hours, years = between(slow, fast, usd, 1.0, fast.cost())  # whichever is named first
    assert price.quantity == "device_usd"
    crossing = crossing_of_price(fast.cost(), slow.cost())
    expected = None if crossing.always or crossing.never else pytest.approx(crossing.at)
    assert price.value == expected
    whole_usd = [one.owned.total_usd.typical for one in (fast, slow)]
    designs = [one.cost().whole_usd(usd.typical) for one in (fast, slow)]
    assert designs == pytest.approx(whole_usd)
    assert (hours.quantity, years.quantity) == ("share_of_hours", "years")
    for one in (price, hours, years):
        assert one.sentence.count(" costs less than ") == 1
        assert one.sentence.endswith(".")
        assert one.low is None or one.value is None or one.low <= one.value
        assert one.high is None or one.value is None or one.value <= one.high


def test_without_a_price_of_accelerators_the_break_even_stands(pair):
    (only,) = between(*pair, None, 1.0, pair[0].cost())
    assert only.quantity == "device_usd"
    unpriced = WholeBill("B200", owned(load_fabric("dgx-superpod-b200"), load_prices(), "B200"))
    (alone,) = of_design(unpriced)
    assert alone.value > 0
    assert "less than half of the bill while an accelerator with its server share costs over" in (
        alone.sentence
    )
    assert "storage and staff, which have no source" in alone.sentence


def test_a_design_ahead_at_every_price_says_so():
    bill = owned(load_fabric("h100-spine-leaf-64"), load_prices(), "H100 SXM 80 GB")
    fast, slow = (
        WholeBill(name, bill, training=SimpleNamespace(effective_tokens_per_s=lambda at=rate: at))
        for name, rate in (("fast", 2e5), ("slow", 1e5))
    )
    price, hours, years = between(fast, slow, bill.device_usd, 1.0, fast.cost())
    start = "At predicted speeds fast costs less than slow"
    assert price.sentence == f"{start} whatever an accelerator costs."
    assert hours.sentence == f"{start} however few of its hours train this model."
    assert years.sentence == f"{start} however long it is kept."
    assert (price.value, price.low, price.high, price.winner) == (None, 0.0, 0.0, "fast")
