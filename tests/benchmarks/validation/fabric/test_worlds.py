"""Draws of what is not known of networks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.validation.fabric.worlds import drawn_worlds
from nest_core.hardware.network_spread import load_spread


def test_draws_have_the_spread_of_the_catalogue():
    """Log-normal: eight of ten lie within 1.28 spreads of the centre, half above it."""
    transport = load_spread().transport("roce")
    logs = np.log([draw.parameters(transport, "ecmp").reach for draw in drawn_worlds(2000, seed=3)])
    assert logs.std() == pytest.approx(transport.spread, rel=0.05)
    assert logs.mean() == pytest.approx(0.0, abs=0.02)
    assert (np.abs(logs) < 1.2816 * transport.spread).mean() == pytest.approx(0.8, abs=0.03)


def test_networks_share_a_draw_where_they_are_alike():
    spread = load_spread()
    one, other = spread.transport("infiniband"), spread.transport("roce")
    for draw in drawn_worlds(5, seed=3):
        same, apart = draw.parameters(one, "adaptive"), draw.parameters(other, "ecmp")
        assert same == draw.parameters(one, "adaptive")
        assert same.incast == apart.incast
        assert same.overlap_dp == apart.overlap_dp
        assert len({same.reach, apart.reach, same.uplinks, apart.uplinks}) == 4
        assert draw.parameters(one, "adaptive", separately="b").reach != same.reach
