"""What is not known of a network, and the curves that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.costs.software import software_of
from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_path
from nest_core.hardware import load_accelerator
from nest_core.hardware.collectives import OPS, load_curve, load_library
from nest_core.hardware.network_spread import load_spread
from nest_core.network import collapse
from nest_core.network.collective import KINDS, collective, member_groups
from nest_core.scenario import load_fabric


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


def test_no_curve_carries_more_than_its_links():
    curve = load_curve("network-infiniband")
    assert curve.reaching(1.0) is curve
    assert curve.reaching(9.0).top == pytest.approx(1.0)
    half = curve.reaching(0.5, all_to_all=0.5)
    exchange = OPS.index("all_to_all")
    for slow, plain in zip(half.regimes, curve.regimes, strict=True):
        assert slow.efficiency[0] == plain.efficiency[0] / 2
        assert slow.efficiency[exchange] == plain.efficiency[exchange] / 4


def test_switches_reduce_between_nodes_only():
    curve = load_curve("network-infiniband-sharp")
    assert curve.reduces_in_network("all_reduce", 16, nodes=2)
    assert curve.reduces_in_network("reduce_scatter", 16, nodes=2)
    assert not curve.reduces_in_network("all_reduce", 8, nodes=1)
    assert not curve.reduces_in_network("all_to_all", 16, nodes=2)
    rings = tuple(regime for regime in curve.regimes if regime.algorithm == "ring")
    assert rings == load_curve("network-infiniband").regimes
    best = max(term.efficiency for term in curve.terms("all_reduce", 64, nodes=8))
    assert best == pytest.approx(0.82 * 2 * 7 / 8)


@pytest.mark.parametrize("op", ["reduce_scatter", "all_gather"])
def test_switches_spare_halves_of_an_all_reduce_steps_and_no_bytes(op):
    """By counting: all of the message goes up (or comes down) in two steps; a ring sends all but
    one part of it in one step for every other node."""
    nodes, rate, local = 32, 50e9, load_curve("h100-nvlink4")
    curve, plain = load_curve("network-infiniband-sharp"), load_curve("network-infiniband")
    for size in (1e4, 1e6, 1e9):
        ring = plain.seconds_between(op, nodes, nodes, size, rate, local, 450e9)
        switches = 8.4e-6 + 2 * (2e-6 + 14e-6) + size / (0.82 * rate)
        found = curve.seconds_between(op, nodes, nodes, size, rate, local, 450e9)
        assert found == pytest.approx(min(ring, switches))
    assert found == ring


@pytest.mark.parametrize("op", ["reduce_scatter", "all_gather", "all_reduce"])
def test_no_collective_by_switches_is_faster_than_its_bound(op):
    network = collapse(load_fabric("h100-spine-leaf-1024"))
    software = software_of(
        replace(load_accelerator("h100-80gb"), network="network-infiniband-sharp")
    )
    kind, calls = KINDS[op]
    for nodes in (2, 8, 64):
        groups = member_groups(1024, nodes, stride=8, concurrent="one")
        protocols = software.of_groups(network, kind, groups)
        lines = software.lower_bounds(kind, nodes, nodes, 0.0, spans=True, meshed=False)
        for size in (1e3, 1e6, 1e9):
            took = collective(network, op, size, nodes, stride=8, protocols=protocols).time_s
            sent = size * (nodes - 1) / nodes
            bound = min(start + sent / (50e9 * reach) for start, reach in lines)
            assert calls * bound <= took * (1 + 1e-9)
