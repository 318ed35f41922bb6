"""Collectives step by step: the phases that are priced, their bytes, links and seconds."""

from __future__ import annotations

import numpy as np
import pytest
from fabric_specs import clos, rails, torus, tree

from nest_core.documents.errors import InputError
from nest_core.network import collapse
from nest_core.network.algorithms import ALGORITHMS, algorithm_stages
from nest_core.network.collective import collective
from nest_core.network.steps import steps

SIZE = 1e8
NODES = tree((4, 450.0, 1.0, "device", 1.0), (4, 50.0, 5.0, "device", 1.0))
FABRICS = {
    "nodes": NODES,
    "shared uplinks": tree((4, 450.0, 1.0, "device", 1.0), (4, 50.0, 5.0, "child", 2.0)),
    "hashed": clos(32, radix=16, routing="ecmp"),
    "rails": rails(32),
    "torus": torus((4, 4), (True, True)),
}
PAIRS = [
    (op, name)
    for op in ("all_reduce", "all_to_all", "broadcast")
    for name in ALGORITHMS[op]
    if name not in ("halving_doubling_far", "hierarchical_ring_bidirectional")
]


def _taken(network, op, name):
    try:
        return steps(network, op, name, SIZE, 16)
    except InputError:  # not on this fabric: `collective` says so too
        with pytest.raises(InputError):
            collective(network, op, SIZE, 16, algorithm=name)
        return None


@pytest.mark.parametrize("fabric", FABRICS)
def test_the_last_step_ends_at_the_price(fabric):
    network = collapse(FABRICS[fabric])
    seen = 0
    for op, name in PAIRS:
        found = _taken(network, op, name)
        if found is not None:
            seen += 1
            priced = collective(network, op, SIZE, 16, algorithm=name).time_s
            assert found.seconds == pytest.approx(priced), name
            assert found.seconds == pytest.approx(sum(one.taken_s for one in found.states))
    assert seen > 8


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(("op", "name"), [("all_reduce", "ring"), ("all_to_all", "pairwise")])
def test_a_link_of_half_the_rate_changes_price_and_steps_alike(level, op, name):
    network = collapse(NODES)
    slower = network.faster(level, 0.5)
    before, after = (steps(one, op, name, SIZE, 16) for one in (network, slower))
    priced = [collective(one, op, SIZE, 16, algorithm=name).time_s for one in (network, slower)]
    assert after.seconds - before.seconds == pytest.approx(priced[1] - priced[0])
    assert len(after.states) == len(before.states)
    busy = [sum(one.busy_s[level] for one in found.states) for found in (before, after)]
    assert busy[1] == pytest.approx(2 * busy[0])
    assert (priced[1] > priced[0]) is (level == 1)  # NVLink has time to spare


@pytest.mark.parametrize(("op", "name"), PAIRS)
def test_steps_send_what_the_phases_send_over_the_links_that_they_take(op, name):
    network = collapse(NODES)
    found = _taken(network, op, name)
    if found is None:
        return
    links = network.link_map
    whole = np.zeros(len(links.capacity_Bps))
    stages = algorithm_stages(op, name, network, found.groups)
    for phase in (phase for stage in stages for phase in stage):
        routes = links.routes(phase.source, phase.target)
        crossing = SIZE * phase.volume[routes.flow] * routes.share
        whole += np.bincount(routes.link_group, crossing, len(whole))
    assert found.states[-1].sent_bytes == pytest.approx(whole)
    assert [one.number for one in found.states] == list(range(1, len(found.states) + 1))
    for one in found.states:
        assert (one.busy_s <= one.taken_s * (1 + 1e-9)).all()


def test_a_ring_hands_on_an_nth_in_every_step():
    found = steps(collapse(NODES), "all_reduce", "ring", SIZE, 16)
    assert len(found.states) == 30
    for one in found.states:
        assert one.flow_bytes == pytest.approx(SIZE / 16)
        assert sorted(one.source.tolist()) == list(range(16))
        assert ((one.source + 1) % 16 == one.target).all()
    # 6.25 MB over a NIC of 50 GB/s, 5 µs: NVLink needs a ninth of it.
    assert found.states[0].taken_s == pytest.approx(125e-6 + 5e-6)
    assert found.busy(30)[0] == pytest.approx(125e-6 / 9 / 130e-6)


def test_too_many_steps_are_refused():
    with pytest.raises(InputError, match=r"algorithm must not have more than 4,096 steps"):
        steps(collapse(clos(128)), "all_to_all", "ring", SIZE, 128)
