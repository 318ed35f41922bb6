"""Curves: what must hold for every family, whatever its figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.hardware.collectives.curves import sent_bytes, steps
from nest_core.hardware.collectives.library import (
    curve_document,
    curve_from,
    load_curve,
    load_library,
)
from nest_core.hardware.collectives.measurements import OPS

LOCAL = [curve.name for curve in load_library().curves if curve.link == "nvlink"]
NETWORKS = [curve.name for curve in load_library().curves if curve.link == "network"]
SIZES = 2.0 ** np.arange(0, 36, 0.5)
RATE = 300e9


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("op", OPS)
@given(devices=st.integers(2, 72), exponent=st.floats(0, 40), more=st.floats(1, 100))
@settings(max_examples=20, deadline=None)
@pytest.mark.sampled(4)
def test_more_bytes_take_longer_and_more_bandwidth_less(name, op, devices, exponent, more):
    curve, size = load_curve(name), 2.0**exponent
    time = curve.seconds(op, devices, size, RATE)
    assert 0 < time <= curve.seconds(op, devices, size * more, RATE)
    assert curve.seconds(op, devices, size, RATE * more) <= time
    assert curve.seconds(op, devices, size, RATE, in_network=False) >= time
    assert curve.seconds(op, devices, size, RATE, latency_s=1e-4) > time


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("devices", [2, 5, 8])
def test_vectors_scalars_and_terms_agree(name, op, devices):
    """One call on many sizes, many calls on one, and a planner's own minimum over the terms."""
    curve = load_curve(name)
    many = curve.seconds(op, devices, SIZES, RATE)
    assert many.tolist() == [float(curve.seconds(op, devices, size, RATE)) for size in SIZES]
    by_hand = [
        min(
            term.base_s
            + term.steps * (curve.latency_s + term.step_s)
            + float(sent_bytes(op, devices, size)) / RATE / term.efficiency
            for term in curve.terms(op, devices)
        )
        for size in SIZES
    ]
    np.testing.assert_allclose(many, by_hand, rtol=1e-12)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("op", OPS)
def test_time_is_concave_in_bytes(name, op):
    """A minimum of affine functions is: what a planner's bounds rely on."""
    size = np.linspace(1, 1e9, 2001)
    time = load_curve(name).seconds(op, 8, size, RATE)
    assert (np.diff(time, 2) <= 1e-12).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("devices", "nodes"), [(16, 2), (2, 2), (64, 8), (4096, 512)])
def test_networks(name, op, devices, nodes):
    """Monotone in bytes, port rate and link rate; vectors agree with scalars."""
    curve, local = load_curve(name), load_curve("h100-nvlink4")

    def time(size, port=50e9, link=450e9):
        return curve.seconds_between(op, devices, nodes, size, port, local, link)

    many = time(SIZES)
    assert (np.diff(many) > 0).all()
    assert many.tolist() == [float(time(size)) for size in SIZES]
    assert (time(SIZES, port=100e9) <= many).all()
    assert (time(SIZES, link=900e9) <= many).all()


def test_in_network_reduction_opens_where_the_family_says():
    """Bytes sent m (1 + 1/n): relative to the ring's 2(n-1)/n m, more devices gain more."""
    curve = load_curve("b200-nvlink5")
    assert curve.in_network_from == 6
    assert len(curve.terms("all_reduce", 5)) == len(curve.terms("all_reduce", 6)) - 2
    assert len(curve.terms("all_gather", 8)) == len(curve.terms("all_reduce", 5))
    bus = [
        float(sent_bytes("all_reduce", n, 8e9) / curve.seconds("all_reduce", n, 8e9, 900e9))
        for n in (6, 7, 8)
    ]
    assert bus == sorted(bus)


def test_wiring_limits_groups_of_v100():
    """Two devices of a hybrid cube-mesh share one link of six."""
    curve = load_curve("v100-nvlink2")
    pair, all_ = (float(curve.seconds("all_reduce", n, 1e9, 150e9)) for n in (2, 8))
    assert pair > 3 * all_ / 1.75


def test_a_mesh_that_was_never_measured():
    """MI300X, 4 GiB all-reduce: bus bandwidth 312.9 GB/s on eight devices and 47.7 on two

    (stas00/ml-engineering@744d01e). The pooled figures and the wiring alone are a quarter too fast.
    """
    curve = load_curve("mesh8")
    for devices, measured in ((8, 312.9e9), (2, 47.7e9)):
        time = curve.seconds("all_reduce", devices, 2.0**32, 448e9)
        assert float(sent_bytes("all_reduce", devices, 2.0**32) / time) == pytest.approx(
            measured, rel=0.3
        )


@pytest.mark.parametrize("nodes", [1, 2, 3, 64])
def test_steps_are_those_of_rings_and_trees(nodes):
    inside, between = steps("all_gather", 8 * nodes, nodes)
    assert (inside + between, between) == (8 * nodes - 1, nodes - 1)
    assert steps("all_reduce", 8 * nodes, nodes) == (14, 2 * math.ceil(math.log2(nodes)))


@pytest.mark.parametrize("name", preset_names("collectives"))
def test_presets_survive_being_written(name, tmp_path):
    """TOML and back changes nothing."""
    curve = load_curve(name)
    path = tmp_path / "curve.toml"
    path.write_text(toml_document(curve_document(curve)))
    assert curve_from(load_toml(path), name) == curve


@pytest.mark.parametrize("name", preset_names("collectives"))
def test_presets_say_where_they_come_from(name):
    """Facts, status and source; what is fitted also names rows, seed and date."""
    document = load_toml(preset_path("collectives", f"{name}.toml"))
    provenance = document["provenance"]
    assert document["facts"]
    assert provenance["status"]
    assert provenance["source"]
    if provenance["status"].startswith("fitted"):
        assert {"rows_fitted", "seed", "date", "systems"} <= set(provenance)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100-nvlink3"),
        ("NVIDIA H200", "h100-nvlink4"),
        ("h200_sxm", "h100-nvlink4"),
        ("GB200", "b200-nvlink5"),
        ("NVIDIA B300 SXM6", "b200-nvlink5"),
        ("AMD Instinct MI300X", "mesh8"),
        ("AMD MI250X", "pooled"),
        ("NVIDIA H100 PCIe", None),
        ("RTX 4090", None),
    ],
)
def test_accelerators_find_their_family(name, family, library):
    found = library.local(name)
    assert (found and found[0].name) == family


@pytest.mark.parametrize(
    ("op", "devices", "rate", "message"),
    [
        ("broadcast", 8, RATE, "op must be one of"),
        ("all_reduce", 8, 0.0, "bandwidth_Bps must be positive"),
        ("all_reduce", 8, math.nan, "bandwidth_Bps must be positive"),
        ("all_reduce", 1, RATE, "devices must be at least 2"),
    ],
)
def test_nonsense_is_refused(op, devices, rate, message):
    with pytest.raises(InputError, match=message):
        load_curve("a100-nvlink3").seconds(op, devices, 1e6, rate)


def test_uneven_nodes_are_refused():
    curve, local = load_curve("network-efa"), load_curve("a100-nvlink3")
    with pytest.raises(InputError, match="nodes must divide 9 devices evenly"):
        curve.seconds_between("all_reduce", 9, 2, 1e6, 1e9, local, RATE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"link": "rope"}, "link must be one of"),
        ({"latency_us": -1}, "latency_us must be finite and not negative"),
        ({"latency_us": "soon"}, "latency_us must be a number"),
        ({"regimes": []}, "regimes must have a ring"),
        ({"regimes": [{}]}, "must have the keys"),
        ({"own_block": 3}, "must have the keys"),
    ],
)
def test_broken_presets_are_refused(change, message):
    document = load_toml(preset_path("collectives", "a100-nvlink3.toml")) | change
    with pytest.raises(InputError, match=message):
        curve_from(document, "mine")
