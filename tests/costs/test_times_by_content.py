"""What collectives take follows from who sends to whom, and is counted once."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from nest_core.costs.links import group_times
from nest_core.costs.software import Software
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse


def network(GBps: float = 50.0):
    tiers = (Tier("node", 4, 300e9, 1e-6), Tier("rack", 4, GBps * 1e9, 2e-6))
    return collapse(Hierarchical("sixteen", tiers))


def times(fabric, groups, team=None, kind="all_reduce"):
    team = np.zeros(len(groups), np.int64) if team is None else team
    return group_times(fabric, Software(), kind, groups, team)[kind]


def seconds(*arguments, **further):
    return times(*arguments, **further).seconds(1e9).tolist()


def test_equal_groups_are_priced_once_whoever_asks():
    fabric = network()
    groups = np.arange(16).reshape(2, 8)
    assert times(fabric, groups) is times(fabric, groups.copy())
    assert times(fabric, groups) is times(fabric, np.asfortranarray(groups))


def test_whatever_matters_tells_prices_apart():
    """Members, their order, who waits for whom, the kind and the fabric."""
    fabric, groups = network(), np.arange(16).reshape(2, 8)
    scattered = np.arange(16).reshape(8, 2).T
    plain = seconds(fabric, groups)
    assert seconds(fabric, scattered) != plain
    assert seconds(fabric, groups.reshape(4, 4)) != plain
    assert len(seconds(fabric, groups, np.arange(2))) == 2
    assert seconds(fabric, groups, kind="ring") != plain
    assert seconds(network(25.0), groups) != plain
    assert seconds(fabric.faster(1, 2.0), groups) < plain
    assert seconds(fabric, groups) == plain


def test_a_fabric_that_nobody_needs_is_let_go():
    """Memory of workers: links of large fabrics outlived their jobs."""
    fabric = network()
    times(fabric, np.arange(16).reshape(2, 8))
    gone = weakref.ref(fabric)
    del fabric
    gc.collect()
    assert gone() is None
