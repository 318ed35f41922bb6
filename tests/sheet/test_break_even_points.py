"""Break-evens: curves cross zero where the command line says that designs are level."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.studies.whole_bill import (
    DesignCost,
    crossing_of_hours,
    crossing_of_price,
    with_hours,
)

DESIGNS = st.builds(
    DesignCost,
    tokens_per_s=st.floats(5e5, 2e6),
    devices=st.integers(512, 1024),
    network_usd=st.floats(1e6, 2e7),
    yearly_usd=st.floats(0, 4e6),
    years=st.floats(1, 8),
    spares=st.floats(0, 0.2),
)


def dearer(first, second, usd, hours=1.0):
    """How much more the second costs for its work, the second being the reference."""
    worth = [with_hours(one, second, hours).tokens_per_s for one in (first, second)]
    paid = [
        one.devices * (1 + one.spares) * usd + one.network_usd + one.years * one.yearly_usd
        for one in (first, second)
    ]
    return (paid[1] / worth[1]) / (paid[0] / worth[0]) - 1


@settings(max_examples=60, deadline=None)
@given(DESIGNS, DESIGNS, st.floats(5e3, 9e4))
def test_tokens_cost_the_same_at_every_break_even(choice, other, usd):
    price = crossing_of_price(choice, other)
    if not (price.always or price.never):
        assert dearer(choice, other, price.at) == pytest.approx(0, abs=1e-9)
        side = 1 if price.above else -1
        assert side * dearer(choice, other, price.at * 1.01) > 0
    hours = crossing_of_hours(choice, other, usd, other)
    if not (hours.always or hours.never):
        assert dearer(choice, other, usd, hours.at) == pytest.approx(0, abs=1e-9)
