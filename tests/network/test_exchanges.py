"""All-to-alls: what they take at least, without a list of their flows."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from fabric_specs import CLOS, RAILS, TORI, rails

from nest_core.network import Protocol, collapse, message_time
from nest_core.network import groups as groups_of_flows
from nest_core.network.exchanges import (
    Dispatch,
    all_to_all,
    counts_leaving,
    dispatched,
    least_all_to_all,
)
from nest_core.network.groups import exchange
from nest_core.network.phases import price_phases

LISTED = {
    **RAILS,
    "rails, a leaf failed": rails(missing=("leaf 0",), routing="ecmp"),
    "meshed nodes": CLOS["meshed nodes"],
    **{
        f"{name}, hashed": replace(fabric, routing="ecmp")
        for name, fabric in {**CLOS, **RAILS}.items()
        if fabric.tiers > 1
    },
}
FAILED = {
    "a rail": rails(missing=("leaf 0",)),
    "rails of two units": rails(64, radix=16, missing=("leaf 0", "leaf 5", "leaf 6")),
    "three of four rails": rails(missing=("leaf 0", "leaf 1", "leaf 3")),
    "three tiers": rails(128, tiers=3, ratios=(1.0, 1.0), missing=("leaf 2", "leaf 7")),
    "a rail of uneven units": rails(56, radix=16, missing=("leaf 1", "leaf 6")),
}
PROTOCOLS = (Protocol(), Protocol(5e-6, 1e-6, 2e-6, 0.5, 0.8))


@pytest.mark.parametrize("name", list(LISTED))
@pytest.mark.sampled(4)
def test_no_all_to_all_takes_less_than_its_least(name):
    """Groups that lie anywhere, in teams of any size; of ideal uplinks it is what they take."""
    network = collapse(LISTED[name])
    assert counts_leaving(network)
    dice, tight = np.random.default_rng(len(name)), 0.0
    for size in (2, 3, 8):
        count = network.devices // size
        groups = np.arange(count * size).reshape(count, size)
        for members in (groups, groups.reshape(size, count).T, dice.permutation(groups.flat)):
            members = np.reshape(members, (count, size))
            team = np.sort(dice.integers(count, size=count))
            found = message_time(network, "all_to_all", members, PROTOCOLS, team)
            least = least_all_to_all(network, members, PROTOCOLS, team)
            assert (least.alpha_s <= found.alpha_s * (1 + 1e-12)).all()
            assert (least.beta_s_per_byte <= found.beta_s_per_byte * (1 + 1e-12)).all()
            tight = max(tight, least.beta_s_per_byte.max() / found.beta_s_per_byte.max())
    assert tight > (
        0.999 if network.link_map.ideal else 0.15
    )  # few flows seldom meet all links alike where these are hashed


@pytest.mark.parametrize("name", list(FAILED))
def test_an_all_to_all_past_failed_leaves_is_that_of_all_its_flows(name):
    """Compare refused "2,000,000 flows" once a leaf had failed, and lost the page with it."""
    network = collapse(FAILED[name])
    assert network.link_map.egress is not None
    assert network.link_map.ideal
    dice = np.random.default_rng(len(name))
    for size in (2, 3, 8, 16):
        count = network.devices // size
        for groups in (np.arange(count * size), dice.permutation(network.devices)[: count * size]):
            members, team = groups.reshape(count, size), np.sort(dice.integers(count, size=count))
            flows = exchange(members, volume=1.0 / size, steps=1.0)
            listed = price_phases(network.link_map, [flows], count, PROTOCOLS, team)
            found = message_time(network, "all_to_all", members, PROTOCOLS, team)
            assert found.alpha_s == pytest.approx(listed.alpha_s, rel=1e-12)
            assert found.beta_s_per_byte == pytest.approx(listed.beta_s_per_byte, rel=1e-12)


@pytest.mark.parametrize("name", ["meshed nodes", "rail-only", "rails, hashed", "2x3x5, mixed"])
def test_flows_that_are_listed_in_parts_take_as_long_as_in_one(name, monkeypatch):
    """Above two million flows an all-to-all was refused, and a plan with it."""
    network = collapse({**LISTED, **TORI}[name])
    assert not getattr(network.link_map, "ideal", False)
    size = 8
    count = network.devices // size
    members = np.random.default_rng(1).permutation(network.devices)[: count * size]
    members, team = members.reshape(count, size), np.arange(count) // 2
    ways = (
        lambda: all_to_all(network, members, PROTOCOLS, team),
        lambda: dispatched(network, members, Dispatch(32, 4), PROTOCOLS, team),
    )
    for way in ways:
        whole = way()
        with monkeypatch.context() as patch:
            patch.setattr(groups_of_flows, "MOST_FLOWS", 130)
            patch.setattr(groups_of_flows, "PART_FLOWS", 130)
            parts = way()
        assert parts.alpha_s == pytest.approx(whole.alpha_s, rel=1e-12)
        assert parts.beta_s_per_byte == pytest.approx(whole.beta_s_per_byte, rel=1e-12)


def test_devices_that_leave_through_others_meet_as_far_in_as_those():
    """Pairs of a unit on different rails, the first of which has lost its leaf."""
    network = collapse(LISTED["rails, a leaf failed"])
    pairs = np.array([pair for pair in permutations(range(16), 2) if 0 in pair])
    team = np.arange(len(pairs))
    least = least_all_to_all(network, pairs, (Protocol(),), team).alpha_s[0]
    for pair, seconds in zip(pairs, least, strict=True):
        found = message_time(network, "all_to_all", pair[None], (Protocol(),))
        assert seconds <= found.alpha_s[0, 0] * (1 + 1e-12), pair
