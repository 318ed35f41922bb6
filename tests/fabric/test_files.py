"""Fabric files of every kind: what loads, what it becomes, and what is refused."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names, preset_path
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Clos, Dragonfly, Fabric, GraphFabric, Hierarchical, Torus
from nest_core.fabric.files import build_fabric
from nest_core.scenario import load_fabric

CLOS = """
[clos]
devices = 1024
devices_per_node = 8
nics_per_node = 8
nic_bandwidth_GBps = 50.0
radix = 64
tiers = 2
oversubscription = [4.0]
hop_latency_us = 0.6
{more}
[intra_node]
interconnect = "{inside}"
bandwidth_GBps = 450.0
latency_us = 0.5
"""
DRAGONFLY = """
[dragonfly]
routers_per_group = 8
nodes_per_router = 4
global_links_per_router = 4
local_bandwidth_GBps = 50.0
global_bandwidth_GBps = 50.0
hop_latency_us = 0.6
"""
GRAPH = """
[[element]]
id = "gpu0"
role = "device"
[[element]]
id = "gpu1"
role = "device"
[[element]]
id = "leaf0"
role = "switch"
radix = 4
[[link]]
a = "gpu0"
b = "leaf0"
bandwidth_GBps = 50.0
count = 1
latency_us = 0.5
[[link]]
a = "gpu1"
b = "leaf0"
bandwidth_GBps = 50.0
"""
LEVELS = """
[[level]]
name = "node"
group_sizes = [8, 8, 6]
bandwidth_GBps = 450.0
latency_us = 0.5
[[level]]
name = "rack"
group_size = 3
bandwidth_GBps = 50.0
latency_us = 1.5
"""
TORUS = """
[torus]
shape = [4, 4, 8]
wrap = [true, true, true]
link_bandwidth_GBps = 50.0
hop_latency_us = 1.0
twisted = true
"""
SLICE = '[tpu_slice]\ngeneration = "v5e"\nshape = [8, 16]\n'
INTRA = "[intra_node]\nbandwidth_GBps = 450.0\nlatency_us = 0.5\n"


def load(kind: str, tables: str, **top: Any) -> Fabric:
    """The fabric of a file with these keys at its top."""
    document = tomllib.loads(tables) | {"schema": 1, "name": "f", "kind": kind} | top
    return build_fabric(checked(FabricFile, document))


def clos(kind: str, more: str = "", inside: str = "switch", **top: Any) -> Clos:
    fabric = load(kind, CLOS.format(more=more, inside=inside), **top)
    assert isinstance(fabric, Clos)
    return fabric


@pytest.mark.parametrize("kind", ["leaf_spine", "fat_tree", "rail_optimised", "rail_only"])
def test_a_clos_file_becomes_its_kind_with_todays_defaults(kind):
    fabric = clos(kind)
    assert (fabric.kind, fabric.devices, fabric.planes) == (kind, 1024, 1)
    assert fabric.rails == (8 if kind.startswith("rail") else 1)
    assert (fabric.routing, fabric.ecmp_seed, fabric.missing) == ("adaptive", 0, ())
    assert fabric.scale_up.interconnect == "switch"


def test_every_key_of_a_clos_file_arrives():
    fabric = clos(
        "rail_optimised",
        'planes = 2\nrails = 4\npods = "rails"',
        "mesh",
        routing="ecmp",
        ecmp_seed=7,
        missing=["node 3"],
    )
    assert (fabric.planes, fabric.rails, fabric.pods) == (2, 4, "rails")
    assert (fabric.routing, fabric.ecmp_seed, fabric.missing) == ("ecmp", 7, ("node 3",))
    assert fabric.scale_up.interconnect == "mesh"
    assert fabric.devices == 1016


def test_a_dragonfly_file_has_the_most_groups_by_default():
    fabric = load("dragonfly", DRAGONFLY, routing="shortest_path")
    assert isinstance(fabric, Dragonfly)
    assert (fabric.groups, fabric.devices, fabric.routing) == (33, 1056, "shortest_path")
    more = "groups = 9\ndevices_per_node = 8\nnic_bandwidth_GBps = 25.0\n"
    fabric = load("dragonfly", DRAGONFLY + more + INTRA)
    assert isinstance(fabric, Dragonfly)
    assert (fabric.groups, fabric.devices) == (9, 9 * 8 * 4 * 8)
    assert (fabric.nic_bandwidth_Bps, fabric.scale_up.bandwidth_Bps) == (25e9, 450e9)


def test_a_graph_file_lists_devices_in_order():
    fabric = load("graph", GRAPH, routing="ecmp", ecmp_seed=1)
    assert isinstance(fabric, GraphFabric)
    assert fabric.device_ids == ("gpu0", "gpu1")
    assert fabric.explicit().edges[0, "leaf0"]["latency_s"] == 0.5e-6


def test_levels_may_list_their_groups():
    fabric = load("hierarchical", LEVELS, missing=["node 2", "device 0"])
    assert isinstance(fabric, Hierarchical)
    assert fabric.devices == 15


def test_torus_files_may_twist_and_miss_devices():
    fabric = load("torus", TORUS, missing=["device 9"])
    assert isinstance(fabric, Torus)
    assert (fabric.twisted, fabric.devices) == (True, 127)


def test_a_slice_file_becomes_a_torus():
    fabric = load("tpu_slice", SLICE, missing=["device 0"])
    assert isinstance(fabric, Torus)
    assert (fabric.wrap, fabric.link_bandwidth_Bps) == ((False, True), 50e9)
    assert (fabric.devices, fabric.hop_latency_s) == (127, pytest.approx(1e-6))
    faster = load("tpu_slice", SLICE + "link_bandwidth_GBps = 45.0\nhop_latency_us = 2.0\n")
    assert isinstance(faster, Torus)
    assert (faster.link_bandwidth_Bps, faster.hop_latency_s) == (45e9, pytest.approx(2e-6))


BOTH = LEVELS.replace("group_size = 3", "group_size = 3\ngroup_sizes = [3]")
NEITHER = LEVELS.replace("group_size = 3", "")
MANY = DRAGONFLY + "devices_per_node = 2\n"
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("hierarchical", BOTH, {}, r"level\[1\].group_size must be absent where group_sizes is given"),
    ("hierarchical", NEITHER, {}, r"level\[1\].group_size is required, unless group_sizes lists"),
    ("hierarchical", LEVELS, {"routing": "ecmp"}, "routing must be adaptive or shortest_path for"),
    (
        "hierarchical",
        LEVELS,
        {"routing": "best"},
        "routing must be 'adaptive', 'shortest_path', 'ecmp'",
    ),
    ("hierarchical", LEVELS, {"missing": ["rack"]}, r"missing\[0\] must be an element's name and"),
    ("hierarchical", LEVELS, {"missing": "rack 0"}, "missing must be a list, but is 'rack 0'"),
    ("torus", TORUS, {"routing": "ecmp"}, "routing must be adaptive or shortest_path for kind"),
    ("torus", TORUS + INTRA, {}, 'intra_node must be absent for kind = "torus"'),
    ("tpu_slice", SLICE, {"routing": "ecmp"}, "routing must be adaptive or shortest_path for kind"),
    ("tpu_slice", "", {}, 'tpu_slice is required for kind = "tpu_slice"'),
    ("torus", "", {}, 'torus is required for kind = "torus"'),
    ("dragonfly", MANY, {}, "intra_node is required for nodes of several devices"),
    ("dragonfly", DRAGONFLY, {"missing": ["device 0"]}, 'missing must be empty for kind = "drag'),
    ("graph", GRAPH, {"missing": ["device 0"]}, 'missing must be empty for kind = "graph"'),
    ("graph", DRAGONFLY, {}, 'dragonfly must be absent for kind = "graph"'),
    ("leaf_spine", DRAGONFLY, {}, 'clos is required for kind = "leaf_spine"'),
    ("graph", GRAPH, {"ecmp_seed": 3}, 'ecmp_seed must be absent or 0 unless routing is "ecmp"'),
    ("graph", GRAPH, {"ecmp_seed": -1}, "ecmp_seed must be at least 0, but is -1"),
    ("no-such-kind", GRAPH, {}, "kind must be 'hierarchical', 'leaf_spine', 'fat_tree'"),
]


@pytest.mark.parametrize(
    ("kind", "tables", "top", "message"), REFUSED, ids=[text for *_, text in REFUSED]
)
def test_what_is_no_fabric_file_is_refused(kind, tables, top, message):
    with pytest.raises(InputError, match=message) as caught:
        load(kind, tables, **top)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_every_kind_has_a_preset():
    kinds = {
        tomllib.loads(preset_path("fabrics", f"{name}.toml").read_text())["kind"]
        for name in preset_names("fabrics")
    }
    assert kinds == set(FabricFile.model_fields["kind"].annotation.__args__)


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_every_preset_loads_and_says_where_it_is_from(name):
    document = tomllib.loads(preset_path("fabrics", f"{name}.toml").read_text())
    assert len(document["source"]) > 20
    fabric = load_fabric(name)
    assert fabric.name == document["name"]
    assert f"{fabric.devices:,}" in fabric.name or "cube" in fabric.name


# Counts that presets promise in their names and sources.
PRESETS = {
    "dgx-superpod-a100": (1120, {"leaf": 56, "spine": 80, "core": 28}),
    "dgx-superpod-h100": (1024, {"leaf": 32, "spine": 16}),
    "dgx-superpod-h100-as-built": (1016, {"leaf": 32, "spine": 16}),
    "dgx-superpod-b200": (4096, {"leaf": 128, "spine": 128, "core": 64}),
    "dgx-superpod-b300": (2304, {"leaf": 32, "spine": 18}),
    "dgx-superpod-b300-ethernet": (8192, {"leaf": 256, "spine": 128}),
    "hpn-dual-plane": (15360, {"leaf": 240, "spine": 120}),
    "fat-tree-k16": (1024, {"edge": 128, "aggregation": 128, "core": 64}),
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_switches_of_their_sources(name):
    fabric = load_fabric(name)
    assert isinstance(fabric, Clos)
    assert (fabric.devices, fabric.switch_counts()) == PRESETS[name]


def test_metas_pods_are_seven_times_faster_inside():
    """3,072 devices per pod at 50 GB/s each up to it, a seventh beyond; racks have twice that."""
    fabric = load_fabric("meta-3tier-7to1")
    assert isinstance(fabric, Hierarchical)
    rack, pod, out = (fabric.capacity_Bps(level)[0] for level in (1, 2, 3))
    assert (rack, pod) == (8 * 50e9, 16 * 100e9)
    assert out == pytest.approx(3072 * 50e9 / 7)
