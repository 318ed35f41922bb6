"""Commands load tiers one inside the other; logs of a slow part blame its tier and no other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pytest
from nccl_text import log_of, nccl_log

from nest_core.calibration.acceptance.expected import (
    MAX_RANKS,
    Expected,
    expected_of,
    library_of,
    scopes_of,
)
from nest_core.calibration.acceptance.verdict import Verdict, judge, read_runs
from nest_core.documents.errors import InputError
from nest_core.fabric import Fabric
from nest_core.network import Network, collapse
from nest_core.scenario import load_fabric

RAILS, PLAIN = "dgx-superpod-h100", "h100-spine-leaf-64"


@lru_cache(maxsize=8)
def network_of(name: str) -> tuple[Fabric, Network]:
    fabric = load_fabric(name)
    return fabric, collapse(fabric)


@lru_cache(maxsize=8)
def expected(name: str) -> tuple[Expected, ...]:
    fabric, network = network_of(name)
    return expected_of(fabric, network, library_of(fabric))


def judged(tests: Sequence[Expected], busbw: Callable[[Expected], float]) -> Verdict:
    logs = [(f"{test.scope.name}.txt", log_of(test, busbw(test))) for test in tests]
    return judge(tests, read_runs(logs))


@pytest.mark.parametrize(
    ("name", "tiers"),
    [
        (PLAIN, ["host", "leaf", "spine"]),
        (RAILS, ["host", *["rail"] * 8, "leaf", "spine"]),
        ("dgx-superpod-h100-as-built", ["host", *["rail"] * 8, "leaf", "leaf", "spine"]),
        ("dgx-superpod-h100-8192", ["host", *["rail"] * 8, "leaf", "spine", "core"]),
        ("gb200-nvl72-rails", ["host", *["rail"] * 4, "spine"]),
        ("meta-3tier-7to1", ["host", "rack", "pod", "fabric"]),
        ("dragonfly-1056", ["router", "group", "global"]),
        ("drawn-8", ["host", "spine"]),
        ("unequal-racks-88", ["host", "rack", "rack", "fabric"]),
    ],
)
def test_scopes_lie_one_inside_the_other(name, tiers):
    """By level of the devices that they span; all have as many ranks on every host."""
    fabric, network = network_of(name)
    found = scopes_of(fabric, network)
    assert [scope.tier for scope in found] == tiers
    for scope in found:
        assert scope.hosts * scope.per_host == len(scope.devices) == len(np.unique(scope.devices))
        assert len(np.unique(network.host[scope.devices])) == scope.hosts
    spans = [len(np.unique(network.node[scope.devices])) for scope in found]
    assert spans[0] <= min(spans[1:])
    assert spans[-1] == max(spans)


def test_a_rail_is_one_leaf_and_a_leaf_scope_all_rails():
    fabric, network = network_of(RAILS)
    rails = [scope for scope in scopes_of(fabric, network) if scope.tier == "rail"]
    leaf = next(scope for scope in scopes_of(fabric, network) if scope.tier == "leaf")
    for number, rail in enumerate(rails):
        assert rail.device == number
        assert set(fabric.rail_of()[rail.devices]) == {number}
        assert len(set(fabric.group_of(1)[rail.devices])) == 1
    assert set(np.concatenate([rail.devices for rail in rails])) == set(leaf.devices)


def test_what_crosses_spines_is_an_all_to_all_that_loads_them():
    """The same fabric at 4:1 is expected to carry a quarter; inner tiers do not notice."""
    full, thin = (expected(f"h100-spine-leaf-1024{ratio}") for ratio in ("", "-4to1"))
    for one, other in zip(full, thin, strict=True):
        ratio = other.predicted_busbw_Bps / one.predicted_busbw_Bps
        crosses = one.scope.tier == "spine"
        assert ratio == pytest.approx(0.256 if crosses else 1.0, rel=0.02)
        assert ("alltoall_perf" in one.command) is crosses
        assert len(one.scope.devices) <= MAX_RANKS


@pytest.mark.parametrize("name", [PLAIN, RAILS])
def test_the_threshold_is_the_lower_end_of_an_interval(name):
    for test in expected(name):
        width = math.log(test.predicted_busbw_Bps / test.threshold_Bps)
        assert 0.05 < width < 0.4


def test_a_healthy_fabric_is_accepted():
    found = judged(expected(RAILS), lambda test: 0.98 * test.predicted_busbw_Bps)
    assert found.fault is None
    assert all(outcome.passed for outcome in found.outcomes)
    assert found.finding.startswith("Accepted")
    assert found.unmatched == ()


def test_a_slow_rail_is_found_though_all_outside_it_is_slow_too():
    def busbw(test: Expected) -> float:
        slow = test.scope.name == "rail 3" or test.scope.tier in ("leaf", "spine")
        return (0.5 if slow else 1.0) * test.predicted_busbw_Bps

    found = judged(expected(RAILS), busbw)
    assert found.fault == "rail"
    assert "rail 3 stays below" in found.finding
    failed = [o.expected.scope.name for o in found.outcomes if not o.passed]
    assert failed == ["rail 3", "leaf", "spine"]


@pytest.mark.parametrize("name", [PLAIN, RAILS])
def test_a_slow_spine_is_found(name):
    """What its links carry is what the commands are priced at on uplinks of 0.4 of the width."""
    fabric, network = network_of(name)
    slow = expected_of(fabric, network.faster(2, 0.4), library_of(fabric))
    rates = {test.command: test.predicted_busbw_Bps for test in slow}
    found = judged(expected(name), lambda test: rates[test.command])
    assert found.fault == "spine"
    assert [o.expected.scope.tier for o in found.outcomes if not o.passed] == ["spine"]


def test_a_slow_host_is_found_among_healthy_ones():
    tests = expected(PLAIN)
    host = tests[0]
    logs = [
        (f"host {n}", log_of(host, share * host.predicted_busbw_Bps))
        for n, share in enumerate((1.0, 0.6, 1.0))
    ]
    found = judge(tests, read_runs(logs))
    assert found.fault == "host"
    assert found.outcomes[0].log == "host 1"
    assert "host 1" in found.finding


def test_no_tier_is_blamed_before_what_is_inside_it_was_run():
    tests = expected(PLAIN)
    found = judged(tests[1:], lambda test: 0.5 * test.predicted_busbw_Bps)
    spine_only = judge(tests, read_runs([("spine", log_of(tests[2], 1e9))]))
    assert found.fault == "leaf"  # a host's command is none of these
    assert spine_only.fault is None
    assert "host inside it was not run in full" in spine_only.finding
    assert judge(tests, ()).fault is None
    half = judge(tests, read_runs([("host", log_of(tests[0], tests[0].predicted_busbw_Bps))]))
    assert "leaf is to come" in half.finding


def test_logs_of_something_else_are_left_out_with_a_sentence():
    tests = expected(PLAIN)
    ranks = [(f"node{n}", 0) for n in range(3)]
    odd = nccl_log("all_reduce_perf", ranks, 40e9, 4 / 3)
    gather = nccl_log("all_gather_perf", ranks, 40e9, 2 / 3)
    small = log_of(tests[0], 400e9, 2**20)
    found = judge(tests, read_runs([("odd", odd), ("gather", gather), ("small", small)]))
    assert all(outcome.measured_busbw_Bps is None for outcome in found.outcomes)
    first, second, third = found.unmatched
    assert "odd holds an all-reduce on 3 ranks of 3 hosts, which no command here asks for" in first
    assert "all_gather" in second
    assert "messages of up to 1.00 MiB, the command's is 4.00 GiB" in third


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "must be the output of nccl-tests"),
        ("", "must be the output of nccl-tests"),
        ("whole", "must end with the average bus bandwidth"),
        ("uneven", "as many on every host"),
        ("wrong", "must be of a run that ended well"),
        ("silent", "must say which collective ran"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(text, message):
    leaf, spine = (log_of(test, 300e9) for test in expected(PLAIN)[1:])
    changed = {
        "whole": leaf.partition("# Avg bus")[0],
        "uneven": leaf.replace("on    node000 device  0", "on    node001 device  0"),
        "wrong": leaf.replace("0 OK", "7 FAILED"),
        "silent": spine.replace("alltoall_perf", "bench"),
    }
    with pytest.raises(InputError, match=message) as caught:
        read_runs([("my log", changed.get(text, text))])
    assert "my log" in str(caught.value)


def test_fabrics_without_hosts_or_a_known_accelerator_are_refused():
    with pytest.raises(InputError, match="must have hosts behind NICs"):
        scopes_of(*network_of("torus-16x16"))
    with pytest.raises(InputError, match="name tells none"):
        library_of(load_fabric("torus-16x16"))
    assert library_of(load_fabric("torus-16x16"), "h100-80gb").inside is not None
