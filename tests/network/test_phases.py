"""Times of phases: linear where they should be, and changed by nothing that does not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fabric_specs import CLOS, EVERY, TORI, clos, tree

from nest_core.network import (
    IDEAL,
    MessageTime,
    Phase,
    Protocol,
    collapse,
    collectives,
    price_phases,
    transfers,
)
from nest_core.network.traffic import algorithms, hierarchical_reduce_scatter
from nest_core.network.tree import TreeLinkMap

STATIC = {
    "ecmp": clos(64, ratios=(2.0,), routing="ecmp"),
    "shortest path": clos(64, ratios=(2.0,), routing="shortest_path"),
}
FABRICS = {name: fabric for name, fabric in {**EVERY, **STATIC}.items() if fabric.devices > 1}
SLOW = Protocol(base_s=5e-6, step_inside_s=1e-6, step_outside_s=2e-6, inside=0.5, outside=0.25)


def traffic(devices: int, seed: int = 0) -> Phase:
    """Any flows of any volume and steps, for three owners."""
    dice = np.random.default_rng(seed)
    count = 2 * devices
    return Phase(
        dice.integers(devices, size=count),
        dice.integers(devices, size=count),
        dice.integers(3, size=count),
        dice.uniform(0.1, 1.0, count),
        dice.integers(1, 5, count).astype(float),
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FABRICS)
def test_time_is_linear_in_volume_and_steps(name):
    """Thrice the bytes take three times as long to move and no longer to start."""
    network = collapse(FABRICS[name])
    phase = traffic(network.devices)
    once = price_phases(network.link_map, [phase], 3)
    more = price_phases(network.link_map, [replace(phase, volume=3 * phase.volume)], 3)
    assert more.beta_s_per_byte == pytest.approx(3 * once.beta_s_per_byte, rel=1e-12)
    assert more.alpha_s == pytest.approx(once.alpha_s, rel=1e-12)
    later = price_phases(network.link_map, [replace(phase, steps=3 * phase.steps)], 3)
    assert later.alpha_s == pytest.approx(3 * once.alpha_s, rel=1e-12)
    assert later.beta_s_per_byte == pytest.approx(once.beta_s_per_byte, rel=1e-12)


@pytest.mark.parametrize("name", FABRICS)
def test_flows_that_are_not_listed_take_what_listed_ones_take(name, monkeypatch):
    """To the bit: uplinks of trees are walked in one loop, and listed for pictures and others."""
    link_map, devices = collapse(FABRICS[name]).link_map, FABRICS[name].devices
    phase = traffic(devices, seed=5)
    turns = replace(phase, turn=np.arange(2 * devices) % 2)
    for flows in (phase, turns, replace(phase, volume=0 * phase.volume)):
        parts = [replace(flows, **half) for half in halves(flows)]
        walked = price_phases(link_map, [flows, parts.__iter__], 3, (Protocol(), SLOW))
        with monkeypatch.context() as patch:
            patch.setattr(TreeLinkMap, "is_plain", False)
            listed = price_phases(link_map, [flows, parts.__iter__], 3, (Protocol(), SLOW))
        assert (walked.alpha_s == listed.alpha_s).all()
        assert (walked.beta_s_per_byte == listed.beta_s_per_byte).all()


def halves(phase: Phase) -> list[dict[str, np.ndarray]]:
    """Fields of the first flows of a phase, and of the others."""
    fields = {
        name: value
        for name in ("source", "target", "owner", "volume", "steps", "turn")
        if (value := getattr(phase, name)) is not None
    }
    middle = len(phase.source) // 2
    return [
        {name: value[part] for name, value in fields.items()}
        for part in (slice(middle), slice(middle, None))
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FABRICS)
def test_phases_follow_one_another(name):
    """Times add up; nothing to do takes no time."""
    link_map, devices = collapse(FABRICS[name]).link_map, FABRICS[name].devices
    parts = [traffic(devices, seed) for seed in (1, 2)]
    one, other = (price_phases(link_map, [part], 3) for part in parts)
    found = price_phases(link_map, parts, 3)
    assert found.alpha_s == pytest.approx(one.alpha_s + other.alpha_s)
    assert found.beta_s_per_byte == pytest.approx(one.beta_s_per_byte + other.beta_s_per_byte)
    nothing = price_phases(link_map, [], 3)
    assert not nothing.alpha_s.any()
    assert not nothing.beta_s_per_byte.any()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FABRICS)
def test_the_order_of_flows_and_the_names_of_owners_do_not_matter(name):
    network = collapse(FABRICS[name])
    phase = traffic(network.devices)
    order = np.random.default_rng(9).permutation(len(phase.source))
    renamed = np.array([2, 0, 1])
    shuffled = Phase(
        phase.source[order],
        phase.target[order],
        renamed[phase.owner[order]],
        phase.volume[order],
        phase.steps[order],
    )
    once = price_phases(network.link_map, [phase], 3)
    again = price_phases(network.link_map, [shuffled], 3)
    assert again.alpha_s[:, renamed] == pytest.approx(once.alpha_s, rel=1e-12)
    assert again.beta_s_per_byte[:, renamed] == pytest.approx(once.beta_s_per_byte, rel=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FABRICS)
def test_more_bandwidth_is_never_slower(name):
    """A wider level helps or does not; all of them twice as wide halve the time; starting takes
    as long as ever."""
    network = collapse(FABRICS[name])
    phase = traffic(network.devices)
    before = price_phases(network.link_map, [phase], 3)
    everything = network
    for level in range(len(network.levels)):
        wider = network.faster(level, 2.0)
        after = price_phases(wider.link_map, [phase], 3)
        assert (after.beta_s_per_byte <= before.beta_s_per_byte * (1 + 1e-12)).all()
        assert (after.beta_s_per_byte >= before.beta_s_per_byte / 2 * (1 - 1e-12)).all()
        assert (after.alpha_s == before.alpha_s).all()
        assert wider.levels[level].link_bandwidth_Bps == pytest.approx(
            2 * network.levels[level].link_bandwidth_Bps
        )
        if level == 0 or network.torus is None:
            everything = everything.faster(level, 2.0)
    after = price_phases(everything.link_map, [phase], 3)
    assert after.beta_s_per_byte == pytest.approx(before.beta_s_per_byte / 2, rel=1e-12)


def test_faster_widens_the_uplinks_into_its_own_level():
    """4:1 above the leaves is what 16 flows between leaves wait for: 4 spine links of 50.

    Four times as wide, the NICs of 50 remain; NICs alone do not help.
    """
    network = collapse(CLOS["two tiers, 4:1"])
    source = np.arange(16)

    def beta(network):
        return transfers(network, source, source + 16).beta_s_per_byte.max()

    assert beta(network) == pytest.approx(16 / 200e9)
    assert beta(network.faster(2, 8.0)) == pytest.approx(1 / 50e9)
    assert beta(network.faster(1, 8.0)) == pytest.approx(16 / 200e9)
    assert beta(network.faster(0, 8.0)) == pytest.approx(16 / 200e9)
    inside = transfers(network.faster(0, 8.0), np.array([0]), np.array([1]))
    assert inside.beta_s_per_byte.item() == pytest.approx(1 / (8 * 450e9))


def test_a_protocol_enters_where_it_should():
    """Two nodes of four, NICs of 50: 2 steps inside, then 1 across.

    Ideal: 2 x 0.5 + 1.5 us; 3/4 at 450 and 1/8 at 50 GB/s. The protocol adds 5 us once, 1 us
    to each step inside and 2 to that across; it reaches half of 450 and a quarter of 50.
    """
    network = collapse(tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "device", 1)))
    half = hierarchical_reduce_scatter(network, np.arange(8)[None])
    found = price_phases(network.link_map, half, 1, (Protocol(), SLOW))
    assert found.alpha_s[:, 0] == pytest.approx([2.5e-6, 5e-6 + 2 * 1.5e-6 + 3.5e-6])
    assert found.beta_s_per_byte[:, 0] == pytest.approx(
        [3 / 4 / 450e9 + 1 / 8 / 50e9, 3 / 4 / 225e9 + 1 / 8 / 12.5e9]
    )


def test_a_protocol_decides_link_by_link_which_one_is_slowest():
    """A flow between nodes crosses a port of 100 and its node's uplink of 120: ideally the port
    is slower, with a tenth of the uplink the uplink is."""
    network = collapse(tree((4, 100, 0.5, "device", 1), (2, 120, 1.5, "child", 1)))
    protocols = (Protocol(), Protocol(outside=0.1), Protocol(inside=0.1))
    found = transfers(network, np.array([0]), np.array([4]), protocols)
    assert found.beta_s_per_byte[:, 0] == pytest.approx([1 / 100e9, 1 / 12e9, 1 / 10e9])


def test_a_protocol_may_say_how_many_steps_it_takes_inside():
    """Seven steps inside become two; those between nodes stay."""
    network = collapse(tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "device", 1)))
    phase = Phase(
        np.array([0, 0]), np.array([1, 4]), np.array([0, 1]), np.ones(2), np.array([7.0, 7.0])
    )  # fmt: skip
    found = price_phases(network.link_map, [phase], 2, (Protocol(steps_inside=2.0),))
    assert found.alpha_s[0] == pytest.approx([2 * 0.5e-6, 7 * 1.5e-6])


@pytest.mark.parametrize("name", FABRICS)
def test_collectives_have_a_regime_per_algorithm_and_protocol(name):
    """Algorithm by algorithm, protocols within; an ideal protocol changes nothing, and none of
    the real ones is faster than it."""
    network = collapse(FABRICS[name])
    group = np.arange(network.devices)[None]
    ideal = collectives(network, group)
    both = collectives(network, group, (*IDEAL, SLOW))
    ways = len(algorithms(network, "reduce_scatter"))
    assert ideal.alpha_s.shape == (ways, 1)
    assert both.alpha_s.shape == both.beta_s_per_byte.shape == (2 * ways, 1)
    assert (both.alpha_s[::2] == ideal.alpha_s).all()
    assert (both.beta_s_per_byte[::2] == ideal.beta_s_per_byte).all()
    assert (both.alpha_s[1::2] > ideal.alpha_s).all()
    assert (both.beta_s_per_byte[1::2] > ideal.beta_s_per_byte).all()


def test_protocols_take_turns_as_messages_grow():
    """One starts sooner, the other moves more: they change places at 2 us * 90 GB/s = 180 kB."""
    network = collapse(tree((2, 90, 0.0, "device", 1)))
    quick, wide = Protocol(base_s=1e-6, inside=0.5), Protocol(base_s=3e-6)
    found = transfers(network, np.array([0]), np.array([1]), (quick, wide))
    sizes = np.array([[0.0], [90e3], [180e3], [360e3]])
    expected = np.array([[1e-6], [3e-6], [5e-6], [7e-6]])
    assert found.seconds(sizes) == pytest.approx(expected)


def test_message_times_are_the_fastest_regime():
    """`fastest` joins ways, `along` lines members up with sizes, `nothing` takes no time."""
    one = MessageTime(np.array([[1.0, 5.0]]), np.array([[1.0, 1.0]]))
    other = MessageTime(np.array([[3.0, 1.0]]), np.array([[0.5, 3.0]]))
    found = one.fastest(other)
    assert found.alpha_s.shape == (2, 2)
    assert found.seconds(2.0).tolist() == [3.0, 7.0]
    assert found.seconds([2.0, 1.0]).tolist() == [3.0, 4.0]
    table = found.along(1).seconds(np.array([2.0, 10.0]))
    assert table.tolist() == [[3.0, 8.0], [7.0, 15.0]]
    assert MessageTime.nothing(3).seconds(1e9).tolist() == [0.0] * 3


def test_a_time_under_hashing_is_the_mean_over_its_draws():
    """Of the fabric's `variants`, each priced on its own."""
    link_map = collapse(clos(64, ratios=(2.0,), routing="ecmp")).link_map
    assert link_map.variants > 1
    phase = traffic(64)
    draws = [
        price_phases(replace(link_map, variants=1, seed=link_map.seed + draw), [phase], 3)
        for draw in range(link_map.variants)
    ]
    betas = np.array([draw.beta_s_per_byte for draw in draws])
    found = price_phases(link_map, [phase], 3)
    assert found.beta_s_per_byte == pytest.approx(betas.mean(axis=0))
    assert betas.std(axis=0).max() > 0
    assert (found.alpha_s == draws[0].alpha_s).all()


@pytest.mark.parametrize("name", ["the paper's uplinks", "two tiers", "4x4", *TORI])
def test_flows_to_oneself_take_no_time_and_slow_nobody(name):
    network = collapse(EVERY[name])
    itself = transfers(network, np.array([0, 0]), np.array([0, 1]))
    alone = transfers(network, np.array([0]), np.array([1]))
    assert itself.alpha_s[0].tolist() == [0.0, alone.alpha_s.item()]
    assert itself.beta_s_per_byte[0].tolist() == [0.0, alone.beta_s_per_byte.item()]
    quiet = transfers(network, np.array([0]), np.array([0]))
    assert quiet.seconds(1e9).tolist() == [0.0]
