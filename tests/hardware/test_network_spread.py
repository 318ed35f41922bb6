"""Draws of what is not known of a network, and what they change."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.errors import InputError
from nest_core.hardware.collectives import OPS, load_curve, load_library
from nest_core.hardware.network_spread import load_spread
from nest_core.presets import load_toml, preset_path


def draws(count: int):
    rng, spread = np.random.default_rng(3), load_spread()
    return [spread.draw(rng) for _ in range(count)]


def test_the_catalogue_names_a_source_for_every_spread():
    def leaves(entry):
        if "spread" in entry:
            yield entry
        else:
            for value in entry.values():
                yield from leaves(value)

    found = list(leaves(load_toml(preset_path("network", "spread.toml"))))
    assert len(found) == len(load_spread().spreads) + len(load_spread().transports)
    assert all(entry["source"] and 0 < entry["spread"] < 1 for entry in found)


def test_curves_and_transports_agree_on_their_centre():
    """A curve that was fitted is the centre of its transport; every kind of network has one."""
    spread = load_spread()
    for curve in load_library().curves:
        if curve.link == "network" and "pooled" not in curve.name and "start" not in curve.name:
            transport = spread.of_curve(curve)
            assert transport.name != "unknown"
            assert transport.share == pytest.approx(curve.top, rel=0.01)
    assert spread.of_curve(None).name == "unknown"
    with pytest.raises(InputError, match="must be one of the catalogue"):
        spread.transport("pigeon")


def test_draws_have_the_spread_of_the_catalogue():
    """Log-normal: eight of ten lie within 1.28 spreads of the centre, half above it."""
    transport = load_spread().transport("roce")
    logs = np.log([draw.parameters(transport, "ecmp").reach for draw in draws(2000)])
    assert logs.std() == pytest.approx(transport.spread, rel=0.05)
    assert logs.mean() == pytest.approx(0.0, abs=0.02)
    assert (np.abs(logs) < 1.2816 * transport.spread).mean() == pytest.approx(0.8, abs=0.03)


def test_networks_share_a_draw_where_they_are_alike():
    spread = load_spread()
    one, other = spread.transport("infiniband"), spread.transport("roce")
    for draw in draws(5):
        same, apart = draw.parameters(one, "adaptive"), draw.parameters(other, "ecmp")
        assert same == draw.parameters(one, "adaptive")
        assert same.incast == apart.incast
        assert same.overlap_dp == apart.overlap_dp
        assert len({same.reach, apart.reach, same.uplinks, apart.uplinks}) == 4
        assert draw.parameters(one, "adaptive", apart="b").reach != same.reach


def test_no_curve_carries_more_than_its_links():
    curve = load_curve("network-infiniband")
    assert curve.reaching(1.0) is curve
    assert curve.reaching(9.0).top == pytest.approx(1.0)
    half = curve.reaching(0.5, all_to_all=0.5)
    exchange = OPS.index("all_to_all")
    for slow, plain in zip(half.regimes, curve.regimes, strict=True):
        assert slow.efficiency[0] == plain.efficiency[0] / 2
        assert slow.efficiency[exchange] == plain.efficiency[exchange] / 4


def test_switches_reduce_all_reduces_between_nodes_only():
    curve = load_curve("network-infiniband-sharp")
    assert curve.reduces_in_network("all_reduce", 16, nodes=2)
    assert not curve.reduces_in_network("all_reduce", 8, nodes=1)
    assert not curve.reduces_in_network("reduce_scatter", 16, nodes=2)
    plain = load_curve("network-infiniband")
    assert curve.without_reduction().regimes == plain.regimes
    best = max(term.efficiency for term in curve.terms("all_reduce", 64, nodes=8))
    assert best == pytest.approx(0.82 * 2 * 7 / 8)
