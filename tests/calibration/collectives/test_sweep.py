"""Collectives against message size: the same as one collective, and as the fitted curves."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.calibration.collectives.sweep import LIBRARY_NETWORK, SIZES, load_measured, sweep
from nest_core.costs.software import Software
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.hardware.collectives.library import load_library
from nest_core.hardware.collectives.measurements import OPS
from nest_core.network import collapse
from nest_core.network.algorithms import ALGORITHMS, IN_NETWORK
from nest_core.network.collective import collective
from nest_core.scenario import load_fabric

LIBRARY = load_library()
H100 = LIBRARY["h100-nvlink4"]
INSIDE = Software(H100)
H100_CLUSTER = Software(H100, LIBRARY[LIBRARY_NETWORK])
NODES = collapse(load_fabric("h100-spine-leaf-64"))
TORUS = collapse(load_fabric("tpu-v4-4x4x4"))
FEW = SIZES[::8]


@pytest.mark.sampled(15)
@pytest.mark.parametrize("network", [NODES, TORUS], ids=["nodes", "torus"])
@pytest.mark.parametrize("concurrent", ["one", "all"])
@pytest.mark.parametrize(("size", "stride"), [(8, 1), (8, 8), (6, 3), (64, 1)])
@pytest.mark.parametrize("op", ["all_reduce", "all_to_all", "broadcast"])
@pytest.mark.parametrize("algorithm", ["fastest", "library"])
def test_every_size_is_priced_as_one_collective_is(
    network, op, algorithm, size, stride, concurrent
):
    asked = {"stride": stride, "concurrent": concurrent, "algorithm": algorithm}
    found = sweep(network, op, size, sizes=FEW, **asked)
    for index, bytes_ in enumerate(FEW):
        answer = collective(network, op, float(bytes_), size, **asked)
        assert found.seconds[index] == pytest.approx(answer.time_s)
        assert found.bus_Bps[index] == pytest.approx(answer.bus_bandwidth_Bps)


@pytest.mark.parametrize(
    ("op", "algorithm"),
    [(op, name) for op, names in ALGORITHMS.items() for name in names if name != "multi_ring"],
)
def test_a_named_algorithm_keeps_below_the_bound(op, algorithm):
    found = sweep(NODES, op, 16, algorithm=algorithm, sizes=FEW)
    assert set(found.algorithms) == {algorithm}
    assert (found.bus_Bps <= found.bound_Bps * (1 + 1e-9)).all()
    assert (found.seconds >= found.bound_s * (1 - 1e-9)).all()
    assert (np.diff(found.seconds) >= 0).all()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_library_on_a_ring_in_one_node_is_its_curve(op, size):
    name = "direct" if op == "all_to_all" else "ring"
    found = sweep(NODES, op, size, algorithm=name, software=INSIDE)
    expected = H100.seconds(op, size, SIZES, 450e9, in_network=False)
    assert found.seconds == pytest.approx(expected, rel=1e-9)


def test_the_switch_reduces_as_the_curve_says():
    found = sweep(NODES, "all_reduce", 8, algorithm="in_network", software=INSIDE, sizes=FEW[-2:])
    expected = H100.seconds("all_reduce", 8, FEW[-2:], 450e9)
    assert found.seconds == pytest.approx(expected, rel=0.01)
    assert found.bound_Bps > 450e9


def test_ideal_links_do_not_reduce_unless_asked():
    found = sweep(NODES, "all_reduce", 8)
    assert not set(found.algorithms) & IN_NETWORK
    assert found.bound_Bps == pytest.approx(450e9)


@pytest.mark.parametrize("size", [16, 64])
def test_a_library_is_slower_than_ideal_links(size):
    library = sweep(NODES, "all_reduce", size, algorithm="library", software=H100_CLUSTER)
    ideal = sweep(NODES, "all_reduce", size)
    assert (library.seconds > ideal.seconds).all()


@pytest.mark.parametrize("name", preset_names("measured"))
@pytest.mark.parametrize("op", OPS)
def test_measured_runs_have_a_curve_that_is_near(name, op):
    points = load_measured(name, op, 8)
    rate = LIBRARY[name].bandwidths[0][1]
    predicted = LIBRARY[name].seconds(op, 8, points.size_bytes, rate)
    large = points.size_bytes >= 2**16
    assert np.median(np.abs(predicted / points.seconds - 1)[large]) < 0.15
    assert "Apache-2.0" in points.source


def test_there_is_no_measurement_of_other_groups():
    assert load_measured("h100-nvlink4", "all_reduce", 3) is None
    assert load_measured("v100-nvlink2", "all_reduce", 8) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"op": "all_scatter"}, "op must be one of all_reduce"),
        ({"size": 65}, "size must lie between 2 and 64"),
        ({"size": 8, "stride": 10}, "stride must keep a group of 8 within the 64 devices"),
        ({"algorithm": "quantum"}, "algorithm must be one that all_reduce has"),
        ({"algorithm": "multi_ring"}, "multi_ring must run on a torus"),
        ({"op": "broadcast", "software": INSIDE}, "op must be one of all_reduce, all_gather"),
    ],
)
def test_refusals_are_one_sentence(arguments, message):
    asked = {"network": NODES, "op": "all_reduce", "size": 8} | arguments
    with pytest.raises(InputError, match=message):
        sweep(asked.pop("network"), asked.pop("op"), asked.pop("size"), **asked)
