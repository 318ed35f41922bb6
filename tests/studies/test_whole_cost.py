"""Break-evens: the lead against a search over prices in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.bill.prices import load_prices
from nest_core.studies.whole_cost import Design, break_even, device_price, lead

DESIGNS = st.builds(
    Design,
    st.integers(1, 2_000).map(float),
    st.integers(1, 64),
    st.integers(0, 5_000).map(float),
)
PRICES = st.integers(0, 2_000)


def per_dollar(design, price):
    whole = Fraction(design.network_usd) + design.devices * Fraction(price)
    return Fraction(design.tokens_per_s) / whole if whole else Fraction(10**30)


def holds(designs, found):
    """The winner is level or ahead within its range, and not ahead outside it."""
    low, high = Fraction(found.low), None if found.high == float("inf") else Fraction(found.high)
    top = high if high is not None else low + 10_000
    for part in (Fraction(1, 1000), Fraction(1, 2), Fraction(999, 1000)):
        price = low + (top - low) * part
        mine = per_dollar(designs[found.design], price)
        assert all(mine * (1 + Fraction(1, 10**9)) >= per_dollar(one, price) for one in designs)
    for edge, rival, step in ((low, found.below, -1), (high, found.above, 1)):
        if rival is not None:
            price = edge * (1 + step * Fraction(1, 1000))
            assert per_dollar(designs[rival], price) > per_dollar(designs[found.design], price)


@given(st.lists(DESIGNS, min_size=2, max_size=6), PRICES)
@settings(max_examples=200, deadline=None)
def test_a_lead_is_where_nobody_trains_more_per_dollar(designs, price):
    found = lead(designs, float(price))
    assert found.low <= price * (1 + 1e-12)
    assert price <= found.high * (1 + 1e-12)
    holds(designs, found)


@given(DESIGNS, DESIGNS)
@settings(max_examples=100, deadline=None)
def test_at_the_break_even_both_train_as_much_per_dollar(one, other):
    edge = break_even(one, other)
    if edge:
        assert one.per_usd(edge) == pytest.approx(other.per_usd(edge))


@pytest.mark.check
@given(st.lists(DESIGNS, min_size=2, max_size=6), PRICES)
@settings(max_examples=20_000, deadline=None)
def test_many_leads(designs, price):
    holds(designs, lead(designs, float(price)))


DEAR, CHEAP = Design(102.0, 10, 60.0), Design(100.0, 10, 40.0)


@pytest.mark.parametrize(
    ("first", "second", "at", "low", "high"),
    [
        (DEAR, CHEAP, 1_000.0, 96.0, float("inf")),
        (CHEAP, DEAR, 1.0, 0.0, 96.0),
        (Design(102.0, 10, 40.0), Design(100.0, 10, 60.0), 1.0, 0.0, float("inf")),
    ],
    ids=["faster and dearer", "slower and cheaper", "faster and cheaper"],
)
def test_all_signs(first, second, at, low, high):
    """By hand: x (102 · 10 − 100 · 10) = 100 · 60 − 102 · 40 = 1,920, so x = 96."""
    found = lead([first, second], at)
    assert (found.design, found.low, found.high) == (0, pytest.approx(low), pytest.approx(high))


def test_where_all_is_free_the_first_cent_decides():
    found = lead([Design(1.0, 1, 0.0), Design(2.0, 1, 0.0)], 0.0)
    assert (found.design, found.low, found.high) == (1, 0.0, float("inf"))


def test_a_break_even_that_no_accelerator_reaches_is_none():
    """A ten-millionth faster on a dearer network pays from 20 billion dollars a piece on."""
    found = lead([Design(1e6, 64, 400e3), Design(1e6 + 0.15, 64, 600e3)], 37e3)
    assert (found.design, found.low, found.high) == (0, 0.0, float("inf"))


def test_the_listed_price_is_sourced_and_says_when_it_is_anothers():
    own, other = (device_price(name, load_prices()) for name in ("H100 SXM 80 GB", "Gaudi 3"))
    assert own.usd == pytest.approx(37_000)
    assert "2024-08" in own.basis
    assert "no price" not in own.basis
    assert other.usd == own.usd
    assert other.basis.startswith("no price of a Gaudi 3 is listed")
