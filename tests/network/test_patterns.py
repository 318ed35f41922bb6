"""Patterns: who sends to whom, and the planner's time against loads on explicit links."""

from __future__ import annotations

import json

import numpy as np
import pytest
from explicit_loads import explicit_seconds
from fabric_specs import EXPLICIT, tree

from nest_core.documents.errors import InputError
from nest_core.fabric.dragonfly import Dragonfly
from nest_core.network import collapse
from nest_core.network.dragonfly import dragonfly_network
from nest_core.network.patterns import (
    data_parallel_groups,
    pattern_phases,
    pipeline_flows,
    traffic,
)
from nest_studio.cli import run

CASES = [
    ("dp_ring", False, "fwd"),
    ("dp_hier", False, "fwd"),
    ("pp", False, "fwdbwd"),
    ("pp", True, "fwd"),
    ("pp", True, "fwdbwd"),
]
# Where a device drives one NIC of a pool that counts as one link group, links say a little more.
POOLED = ("three NICs for four devices",)


def walked_seconds(fabric, network, asked):
    """Walk every flow of a pattern of 1e8 bytes with networkx."""
    phases = pattern_phases(network, *asked)
    columns = (
        (phase.source.tolist(), phase.target.tolist(), phase.volume.tolist(), phase.steps.tolist())
        for phase in phases
    )
    flows = [
        [(a, b, 1e8 * volume, steps) for a, b, volume, steps in zip(*column, strict=True)]
        for column in columns
    ]
    draws = network.link_map.variants
    return sum(explicit_seconds(fabric, flows, draw) for draw in range(draws)) / draws


def fabrics():
    return [name for name, fabric in EXPLICIT.items() if fabric.devices > 3 and name not in POOLED]


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", fabrics())
def test_the_planner_prices_what_explicit_links_carry(name):
    """networkx's paths, walked flow by flow, find the same time: a second opinion on routes."""
    fabric = EXPLICIT[name]
    network = collapse(fabric)
    replicas = [k for k in range(2, fabric.devices) if fabric.devices % k == 0][:3]
    for replica in replicas:
        for pattern, whole, directions in CASES:
            stage = replica if whole else 1
            found = traffic(network, pattern, replica, stage, 1e8, directions, fabric)
            walked = walked_seconds(fabric, network, (pattern, replica, stage, directions))
            assert found.time_s == pytest.approx(walked, rel=1e-9)
            assert found.explicit_time_s == pytest.approx(walked, rel=1e-9)
            assert found.contention_free_s <= found.time_s * (1 + 1e-9)


def test_a_dragonfly_is_priced_as_its_links_carry():
    fabric = Dragonfly("d", 4, 2, 2, 50e9, 25e9, 6e-7, 450e9, 5e-7, devices_per_node=2)
    network = dragonfly_network(fabric)
    for pattern, whole, directions in CASES:
        stage = 16 if whole else 4
        found = traffic(network, pattern, 16, stage, 1e8, directions, fabric)
        walked = walked_seconds(fabric, network, (pattern, 16, stage, directions))
        assert found.explicit_time_s == found.time_s == pytest.approx(walked, rel=1e-9)


def test_pipelines_send_to_the_next_stage():
    source, target = pipeline_flows(8, 4, 1)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [
        (0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7),
    ]  # fmt: skip
    source, target = pipeline_flows(8, 4, 4, "fwdbwd")
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [
        (0, 4), (1, 5), (2, 6), (3, 7), (4, 0), (5, 1), (6, 2), (7, 3),
    ]  # fmt: skip


def test_data_parallel_groups_are_strided():
    assert data_parallel_groups(8, 2).tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_four_flows_on_one_uplink_take_four_times_as_long():
    """Two nodes of four share 40 GB/s uplinks: 1e9 bytes each, four at once."""
    fabric = tree((4, 100, 0.0, "device", 1), (2, 40, 0.0, "child", 1))
    found = traffic(collapse(fabric), "pp", 4, 4, 1e9, "fwd", fabric)
    assert found.time_s == pytest.approx(4 / 40)
    assert found.contention_free_s == pytest.approx(1 / 40)
    assert found.explicit_time_s == pytest.approx(4 / 40)


def test_one_replica_synchronises_nothing():
    fabric = tree((4, 100, 0.1, "device", 1))
    found = traffic(collapse(fabric), "dp_ring", 4, None, 1e9, "fwd", fabric)
    assert (found.time_s, found.explicit_time_s, found.contention_free_s) == (0.0, 0.0, 0.0)


def test_large_fabrics_have_no_explicit_time():
    fabric = tree((8, 100, 0.1, "device", 1), (256, 40, 0.2, "child", 1))
    found = traffic(collapse(fabric), "pp", 2048, 8, 1e6, "fwd", fabric)
    assert found.explicit_time_s is None
    assert np.isfinite(found.time_s)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dp_tree", 4, 1, 1.0), "pattern must be dp_ring, dp_hier or pp"),
        (("pp", 3, 1, 1.0), "replica must be a number of devices that divides"),
        (("pp", 4, 3, 1.0), "stage must be a number of devices that divides"),
        (("pp", 4, None, 1.0), "stage must be given for pp"),
        (("pp", 4, 1, -1.0), "bytes must be a finite number between 0 and"),
        (("pp", 4, 1, 1.0, "both"), "directions must be fwd or fwdbwd"),
        (("dp_ring", 4, None, 1.0, "both"), "directions must be fwd or fwdbwd"),
    ],
)
def test_bad_patterns_are_refused(arguments, message):
    network = collapse(tree((4, 100, 0.1, "device", 1), (2, 40, 0.2, "child", 1)))
    with pytest.raises(InputError, match=message):
        traffic(network, *arguments)


def test_the_command_prints_json_and_text(capsys):
    fixed = ["traffic", "h100-spine-leaf-64", "--pattern", "pp", "--replica", "16"]
    assert run([*fixed, "--stage", "4", "--bytes", "1e6", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["time_s"] == pytest.approx(fields["explicit_time_s"])
    assert set(fields["busiest_links"][0]) == {
        "link", "utilisation", "users", "alike", "load_bytes", "capacity_Bps",
    }  # fmt: skip
    assert run([*fixed, "--stage", "4", "--bytes", "1e6"]) == 0
    assert "with contention" in capsys.readouterr().out
    assert run([*fixed, "--stage", "5", "--bytes", "1e6"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
