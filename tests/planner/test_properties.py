"""What must hold of the planner and its network whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_instances import Instance, Tables, random_instance

from nest_core.costs import LayerTable
from nest_core.costs.software import Software
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware.collectives import Curve
from nest_core.network import Network, collapse, collectives, transfers
from nest_core.planner import SearchResult, search

pytestmark = pytest.mark.slow

_quick = settings(max_examples=15, deadline=None, derandomize=True)
_MORE = st.floats(1.0, 50.0)
instances = st.integers(0, 10**6).map(random_instance)


def _on(instance: Instance, tiers: tuple[Tier, ...]) -> Instance:
    """The instance on another fabric."""
    fabric = Hierarchical("changed", tiers)
    problem = replace(instance.problem, network=collapse(fabric))
    return replace(instance, fabric=fabric, problem=problem)


def _answer(instance: Instance) -> SearchResult:
    return search(instance.problem, instance.space)


def _seconds(instance: Instance) -> float:
    best = _answer(instance).best
    return best.iteration_s if best else float("inf")


def _never_worse(better: float, than: float) -> bool:
    return better <= than * (1 + 1e-12)


# --- more of something -------------------------------------------------------------------------


@_quick
@given(instances, st.integers(0, 2), _MORE)
def test_more_bandwidth_never_hurts(instance, level, factor):
    tiers = list(instance.fabric.tiers)
    level %= len(tiers)
    tiers[level] = replace(tiers[level], bandwidth_Bps=factor * tiers[level].bandwidth_Bps)
    assert _never_worse(_seconds(_on(instance, tuple(tiers))), _seconds(instance))


@_quick
@given(instances, st.integers(0, 2), st.floats(0.0, 1.0))
@pytest.mark.check
def test_less_latency_never_hurts(instance, level, factor):
    tiers = list(instance.fabric.tiers)
    level %= len(tiers)
    tiers[level] = replace(tiers[level], latency_s=factor * tiers[level].latency_s)
    assert _never_worse(_seconds(_on(instance, tuple(tiers))), _seconds(instance))


@_quick
@given(instances, _MORE)
def test_more_memory_never_hurts(instance, factor):
    memory = factor * instance.problem.memory_bytes
    roomier = replace(instance, problem=replace(instance.problem, memory_bytes=memory))
    assert _never_worse(_seconds(roomier), _seconds(instance))


@_quick
@given(instances, st.data())
def test_more_choices_never_hurt(instance, data):
    axis = data.draw(st.sampled_from(["tp", "micro_batch", "zero", "recompute", "orders"]))
    fewer = getattr(instance.space, axis)[: data.draw(st.integers(1, 3))]
    pinned = replace(instance, space=replace(instance.space, **{axis: fewer}, idle_devices=True))
    free = replace(instance, space=replace(instance.space, idle_devices=True))
    assert _never_worse(_seconds(free), _seconds(pinned))


@_quick
@given(instances, st.integers(1, 2))
def test_one_more_group_never_hurts(instance, groups):
    """The smaller fabric is the first part of the larger one; the rest may idle."""
    instance = replace(instance, space=replace(instance.space, idle_devices=True))
    *inner, top = instance.fabric.tiers
    wider = (*inner, replace(top, group_size=top.group_size + groups))
    assert _never_worse(_seconds(_on(instance, wider)), _seconds(instance))


@_quick
@given(instances, st.floats(0.01, 100.0), st.floats(0.0, 1.0), st.sampled_from(["device", "child"]))
@pytest.mark.check
def test_one_more_tier_never_hurts(instance, bandwidth, latency, uplink_per):
    instance = replace(instance, space=replace(instance.space, idle_devices=True))
    taller = (*instance.fabric.tiers, Tier("outer", 2, bandwidth, latency, uplink_per))
    assert _never_worse(_seconds(_on(instance, taller)), _seconds(instance))


# --- units and labels --------------------------------------------------------------------------


def _slower(tables: Tables, factor: float) -> Tables:
    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        entry = tables(tp, sp, micro_batch, cp, ep, etp)
        return replace(
            entry,
            compute_s=factor * entry.compute_s,
            forward_s=factor * entry.forward_s,
            replay_s=factor * entry.replay_s,
            launch_s=factor * entry.launch_s,
        )

    return table


def _slower_library(software: Software, factor: float) -> Software:
    def curve(found: Curve | None) -> Curve | None:
        if found is None:
            return None
        regimes = tuple(
            replace(
                regime,
                base_s=tuple(factor * base for base in regime.base_s),
                step_s=factor * regime.step_s,
            )
            for regime in found.regimes
        )
        return replace(found, regimes=regimes)

    return Software(curve(software.inside), curve(software.between))


@_quick
@given(instances, st.floats(1e-3, 1e3))
@pytest.mark.check
def test_the_unit_of_time_does_not_matter(instance, factor):
    tiers = tuple(
        replace(tier, bandwidth_Bps=tier.bandwidth_Bps / factor, latency_s=factor * tier.latency_s)
        for tier in instance.fabric.tiers
    )
    slow = _on(instance, tiers)
    problem = replace(
        slow.problem,
        table=_slower(instance.problem.table, factor),
        update_Bps=instance.problem.update_Bps / factor,
        software=_slower_library(instance.problem.software, factor),
    )
    assert _seconds(replace(slow, problem=problem)) == pytest.approx(
        factor * _seconds(instance), rel=1e-9, abs=0
    )


def _relabelled(tiers: tuple[Tier, ...], dice: np.random.Generator) -> np.ndarray:
    """A random automorphism of the tree: the children of every group change places."""
    if not tiers:
        return np.zeros(1, dtype=np.int64)
    *inner, top = tiers
    children = [_relabelled(tuple(inner), dice) for _ in range(top.group_size)]
    size = len(children[0])
    places = dice.permutation(top.group_size)
    return np.concatenate(
        [size * place + child for place, child in zip(places, children, strict=True)]
    )


fabrics = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.floats(1.0, 100.0),
        st.floats(0.0, 1.0),
        st.sampled_from(["device", "child"]),
        st.floats(1.0, 4.0),
    ),
    min_size=1,
    max_size=3,
).map(lambda tiers: tuple(Tier(f"tier {n}", *tier) for n, tier in enumerate(tiers)))


def _networks(
    tiers: tuple[Tier, ...], seed: int
) -> tuple[Network, np.ndarray, np.random.Generator]:
    dice = np.random.default_rng(seed)
    return collapse(Hierarchical("tree", tiers)), _relabelled(tiers, dice), dice


@_quick
@given(fabrics, st.integers(0, 1000))
def test_relabelling_keeps_levels(tiers, seed):
    network, label, _ = _networks(tiers, seed)
    assert sorted(label) == list(range(network.devices))
    a, b = np.indices((network.devices, network.devices))
    assert (network.level(label[a], label[b]) == network.level(a, b)).all()


@_quick
@given(fabrics, st.integers(0, 1000))
def test_relabelling_keeps_collectives(tiers, seed):
    """Groups of devices a stride apart, as plans have them, that occupy blocks evenly."""
    network, label, dice = _networks(tiers, seed)
    sizes = np.cumprod([tier.group_size for tier in tiers])
    stride = int(dice.choice([1, *sizes[:-1]]))
    size = int(dice.choice([n for n in sizes // stride if n]))
    count = network.devices // (stride * size)
    blocks = np.arange(count * stride * size).reshape(count, size, stride)
    groups = blocks.transpose(0, 2, 1).reshape(-1, size)
    before = collectives(network, groups)
    after = collectives(network, label[groups])
    np.testing.assert_allclose(after.alpha_s, before.alpha_s, rtol=1e-12)
    np.testing.assert_allclose(after.beta_s_per_byte, before.beta_s_per_byte, rtol=1e-12)


@_quick
@given(fabrics, st.integers(0, 1000))
def test_relabelling_keeps_transfers(tiers, seed):
    network, label, dice = _networks(tiers, seed)
    source = dice.integers(network.devices, size=12)
    target = dice.integers(network.devices, size=12)
    apart = source != target
    before = transfers(network, source[apart], target[apart])
    after = transfers(network, label[source[apart]], label[target[apart]])
    back = transfers(network, target[apart], source[apart])
    for other in (after, back):
        np.testing.assert_array_equal(other.alpha_s, before.alpha_s)
        np.testing.assert_array_equal(other.beta_s_per_byte, before.beta_s_per_byte)


# --- the same again ----------------------------------------------------------------------------


@_quick
@given(st.integers(0, 10**6))
def test_the_same_problem_has_the_same_answer(seed):
    """Plans, times and counts, with nothing shared between the two."""
    first, again = (
        search(made.problem, made.space, top=5, clock=lambda: 0.0)
        for made in (random_instance(seed), random_instance(seed))
    )
    assert first == again
