"""Host, scale-up domain and rack are three sizes: exports start one launcher per host.

Hosts by hand, from the vendors' descriptions: a DGX or HGX server is one host of eight, a GB200
NVL72 rack is eighteen compute trays of four that NVLink joins into one domain of 72.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.costs.plan import Point
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric.files import build_fabric
from nest_core.interop.exporters.values import host_mapping
from nest_core.network import collapse
from nest_studio.cli import run

HOSTS = {
    "a100-fat-tree-512": 8,
    "dgx-superpod-a100": 8,
    "dgx-superpod-b200": 8,
    "dgx-superpod-b300": 8,
    "dgx-superpod-b300-ethernet": 8,
    "dgx-superpod-h100": 8,
    "dgx1-v100-64": 8,
    "gb200-nvl72-rails": 4,
    "h100-spine-leaf-64": 8,
    "h100-spine-leaf-1024": 8,
    "hpn-dual-plane": 8,
    "mi300x-mesh-64": 8,
    "rail-only-1024": 8,
}
SCENARIO = """
schema = 1
name = "hosts"
fabric = {fabric}
accelerator = "h100-80gb"
[workload]
model = "llama3-8b"
sequence_length_tokens = 1024
global_batch_sequences = {batch}
"""


@pytest.fixture
def exported(tmp_path, capsys):
    """Every text of an export in which each device is a replica."""

    def asked(fabric: str, devices: int, target: str) -> str:
        file = tmp_path / "scenario.toml"
        file.write_text(SCENARIO.format(fabric=fabric, batch=devices))
        plan = f"dp={devices},zero=2" if target == "torchtitan" else f"dp={devices},zero=1"
        assert run(["export", str(file), "--to", target, "--plan", plan, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert not told["refused"]
        return "\n".join(told["files"].values())

    return asked


def _started(text: str, target: str) -> tuple[int, int]:
    """How many nodes and how many processes on each an export starts."""
    if target == "deepspeed":
        slots = re.findall(r"slots=(\d+)", text)
        assert len(set(slots)) == 1
        return len(slots), int(slots[0])
    nodes, each = (
        (r"--nodes=(\d+)", r"--gpus-per-node=(\d+)")
        if target == "slurm"
        else (r"--nnodes (\d+)", r"--nproc-per-node (\d+)")
    )
    first, second = re.search(nodes, text), re.search(each, text)
    assert first
    assert second
    return int(first[1]), int(second[1])


@pytest.mark.parametrize("target", ["megatron", "nemo", "deepspeed", "torchtitan", "slurm"])
def test_an_nvl72_rack_is_eighteen_hosts(exported, target):
    text = exported('"gb200-nvl72-rails"', 576, target)
    assert _started(text, target) == (144, 4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOSTS)
def test_a_launcher_starts_on_every_host_of_a_preset(exported, name, capsys):
    assert run(["levels", name, "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    nodes, each = _started(exported(f'"{name}"', devices, "megatron"), "megatron")
    assert each == HOSTS[name]
    assert nodes * each == devices


def test_a_slurm_block_is_what_nvlink_joins(tmp_path, capsys):
    """Slurm's nodes are the trays; its base block is the rack."""
    target = tmp_path / "topology.conf"
    assert run(["convert", "gb200-nvl72-rails", str(target), "--to", "slurm-block"]) == 0
    capsys.readouterr()
    lines = target.read_text().splitlines()
    assert lines[0] == "BlockName=block0 Nodes=node[0000-0017]"
    assert lines[-1].startswith("BlockSizes=18")


def _rack_scale(kind: str, nodes: int, hosts: int, each: int, missing: list[str]) -> FabricFile:
    document: dict[str, object] = {
        "schema": 1,
        "name": "racks",
        "kind": kind,
        "devices_per_host": each,
        "missing": missing,
    }
    if kind in ("hierarchical", "bridged"):
        sizes = {"node": hosts * each, "rack": nodes}
        if kind == "bridged":  # hosts of pairs
            sizes = {"pair": 2, "host": each, "rack": hosts * nodes}
            document |= {"kind": "hierarchical", "devices_per_host": 2 * each}
        document["level"] = [
            {"name": name, "group_size": size, "bandwidth_GBps": 100.0, "latency_us": 1.0}
            for name, size in sizes.items()
        ]
    else:
        document["clos"] = {
            "devices": nodes * hosts * each,
            "devices_per_node": hosts * each,
            "nics_per_node": hosts * each,
            "nic_bandwidth_GBps": 50.0,
            "radix": 512,
            "tiers": 1,
            "oversubscription": [],
            "hop_latency_us": 0.6,
        }
        document["intra_node"] = {"bandwidth_GBps": 900.0, "latency_us": 0.5}
    return checked(FabricFile, document)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(["hierarchical", "leaf_spine", "bridged"]),
    nodes=st.integers(1, 4),
    hosts=st.integers(1, 5),
    each=st.integers(1, 4),
    lost=st.sets(st.integers(0, 15), max_size=3),
)
def test_every_rank_sits_on_the_host_that_holds_its_device(kind, nodes, hosts, each, lost):
    """With failed devices, a host keeps what is left of its own and lends none of another's."""
    per_host = each * (2 if kind == "bridged" else 1)
    every = nodes * hosts * per_host
    lost = {number for number in lost if number < every}
    if len(lost) == every:
        lost = set()
    file = _rack_scale(kind, nodes, hosts, each, [f"device {number}" for number in sorted(lost)])
    network = collapse(build_fabric(file))
    left = [number for number in range(every) if number not in lost]
    rank_mapping = host_mapping(
        network,
        Point(
            dp=len(left),
            tp=1,
            sp=False,
            pp=1,
            micro_batch=1,
            zero=0,
            order=("tp", "cp", "dp", "pp"),
        ),
    )
    owner = [number // per_host for number in left]
    names = list(dict.fromkeys(owner))
    assert rank_mapping.hosts.tolist() == [names.index(host) for host in owner]
    assert rank_mapping.host_sizes.tolist() == [owner.count(host) for host in names]
    assert int(rank_mapping.per_host.sum()) == len(left)
    assert np.unique(np.stack([rank_mapping.hosts, rank_mapping.slots]), axis=1).shape[1] == len(
        left
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"devices_per_host": 5}, "devices_per_host must divide the 72 devices of a node"),
        ({"devices_per_host": 0}, "devices_per_host must be at least 1"),
        ({"kind": "torus"}, "devices_per_host must be absent"),
    ],
)
def test_hosts_that_cannot_be_are_refused(change, message, tmp_path, capsys, root):
    text = Path(root, "presets/fabrics/gb200-nvl72-rails.toml").read_text()
    if "kind" in change:
        text = (
            'schema = 1\nname = "t"\nkind = "torus"\ndevices_per_host = 4\n[torus]\n'
            "shape = [4, 4]\nwrap = [true, true]\n"
            "link_bandwidth_GBps = 50.0\nhop_latency_us = 1.0\n"
        )
    else:
        text = text.replace(
            "devices_per_host = 4", f"devices_per_host = {change['devices_per_host']}"
        )
    (tmp_path / "f.toml").write_text(text)
    assert run(["levels", str(tmp_path / "f.toml")]) == 2
    assert message in capsys.readouterr().err
