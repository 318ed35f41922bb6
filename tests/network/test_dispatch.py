"""Once-per-node dispatch: how many copies of a token there are, and what they load the links with.

The numbers of copies are those that enumerating every choice of a token gives; bytes on links are
added up flow by flow.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import (
    IDEAL,
    Dispatch,
    collapse,
    dispatch_phases,
    dispatched,
    message_time,
)

NODES = Hierarchical(
    "four nodes",
    (Tier("node", 4, 400e9, 1e-6), Tier("rail", 4, 50e9, 2e-6)),
)
WAYS = [(8, 1, 1, 1), (8, 3, 1, 1), (8, 2, 4, 2), (12, 3, 3, 2), (12, 4, 6, 4), (12, 2, 12, 5)]


def _choices(experts: int, top_k: int, groups: int, top_groups: int) -> list[set[int]]:
    each = experts // groups
    return [
        set(picked)
        for some in combinations(range(groups), top_groups)
        for picked in combinations([g * each + at for g in some for at in range(each)], top_k)
    ]


@pytest.mark.parametrize(("experts", "top_k", "groups", "top_groups"), WAYS)
def test_copies_are_those_of_all_choices(experts, top_k, groups, top_groups):
    dispatch = Dispatch(experts, top_k, groups, top_groups)
    every = _choices(experts, top_k, groups, top_groups)
    for block in range(1, experts + 1):
        entered = sum(min(chosen) < block for chosen in every) / len(every)
        assert dispatch.copies(block, experts) == pytest.approx(entered / top_k)


def test_node_limited_routing_reaches_so_few_nodes():
    """Eight nodes with a group each: a token of DeepSeek-V3 enters at most four."""
    limited, free = Dispatch(256, 8, 8, 4), Dispatch(256, 8)
    entered = [8 * 8 * one.copies(8, 64) for one in (limited, free)]
    assert entered[0] < 4 < entered[1] < 8
    assert Dispatch(256, 8, 8, 1).copies(8, 64) * 8 * 8 == pytest.approx(1.0)


@pytest.mark.parametrize("by_host", [False, True])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_node_is_entered_once_per_token_that_wants_it(size, by_host):
    """Of every other node, and each device once: from outside or from the one that was."""
    network = collapse(NODES)
    dispatch = Dispatch(16, 4, by_host=by_host)
    groups = np.arange(16).reshape(-1, size)
    (phase,) = dispatch_phases(network, groups, dispatch)
    crosses = network.node[phase.source] != network.node[phase.target]
    nodes = size // 4
    for device in range(16):
        out = phase.volume[crosses & (phase.source == device)].sum()
        assert out == pytest.approx((nodes - 1) * dispatch.copies(4, size))
        near = phase.volume[~crosses & (phase.target == device)].sum()
        # All tokens of the group but its own, less those that came to it to be handed on.
        assert near == pytest.approx((size - nodes) * dispatch.copies(1, size))


def test_places_in_nodes_stay():
    """Copies cross between devices with the same place in their nodes: on one rail."""
    (phase,) = dispatch_phases(collapse(NODES), np.arange(16)[None], Dispatch(16, 4))
    crosses = phase.source // 4 != phase.target // 4
    assert (phase.source[crosses] % 4 == phase.target[crosses] % 4).all()


def test_every_token_is_sent_where_a_block_has_fewer_members():
    """Five members, three and two to a node: the third's copies go by the first of two."""
    groups = np.array([[0, 1, 2, 4, 5]])
    (phase,) = dispatch_phases(collapse(NODES), groups, Dispatch(10, 2))
    crosses = phase.source // 4 != phase.target // 4
    sent = set(zip(phase.source[crosses].tolist(), phase.target[crosses].tolist(), strict=True))
    assert sent == {(0, 4), (1, 5), (2, 4), (4, 0), (5, 1)}


@pytest.mark.parametrize("top_k", [1, 2, 4, 8])
def test_never_more_than_once_per_expert(top_k):
    """A token with one expert has nothing to save; more of them, more to save."""
    network, groups = collapse(NODES), np.arange(16)[None]
    plain = message_time(network, "all_to_all", groups)
    once = dispatched(network, groups, Dispatch(32, top_k), IDEAL)
    ratio = float(once.beta_s_per_byte[0, 0] / plain.beta_s_per_byte[0, 0])
    expected = 16 * 3 * Dispatch(32, top_k).copies(4, 16) / 12
    assert ratio == pytest.approx(expected)
    assert ratio <= 1.0 + 1e-12


def test_hosts_and_nvlink_domains_differ_where_nodes_have_several_hosts():
    """HybridEP sends inside an NVLink domain to whom it concerns, DeepEP by way of its host."""
    domain = Hierarchical("domain", (Tier("domain", 16, 900e9, 1e-6),), devices_per_host=4)
    network, groups = collapse(domain), np.arange(16)[None]
    times = [
        float(dispatched(network, groups, Dispatch(64, 8, by_host=host), IDEAL).seconds(1e9)[0])
        for host in (False, True)
    ]
    assert times[0] < times[1]


def test_too_many_flows_are_one_sentence():
    wide = Hierarchical("wide", (Tier("node", 1024, 400e9, 1e-6), Tier("all", 4, 50e9, 2e-6)))
    with pytest.raises(InputError, match="must not need more than 2,000,000 flows of one group"):
        dispatched(collapse(wide), np.arange(4096)[None], Dispatch(4096, 8), IDEAL)
