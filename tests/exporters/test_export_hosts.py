"""Host files, rank files and launchers put every rank on the device where the layout has it."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from export_cases import drawn_plans, exported, plan, priced, scenario
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.costs import Plan, StageStrategy
from nest_core.costs.layout import rank_mapping
from nest_core.interop.exporters import RELEASES, ExportRefused, export_plan
from nest_core.interop.exporters.slurm import coordinates
from nest_core.interop.exporters.values import host_mapping
from nest_core.network import collapse

FABRICS = [
    "h100-spine-leaf-64",
    "nest-fat-tree-256",
    "dgx1-v100-64",
    "fat-tree-k16",
    "torus-16x16",
    "gb200-nvl72-rails",
    "unequal-racks-88",
    "drawn-8",
    "dgx-superpod-h100-as-built",
]

SLURM_STUBS = """
srun() {
  [[ $* != *SLURMD_NODENAME* ]] || { cat "$GOT"; return; }
  printf '%s\\n' "$@" > "$TOLD"; cp "$SLURM_HOSTFILE" "$LIST"
}
"""


def run_job(folder: Path, script: str) -> tuple[list[str], list[str], str]:
    """Arguments of srun, lines of its host file and the environment, from a real shell."""
    told, listed = folder / "told", folder / "list"
    shapes = json.loads((folder / "shapes.json").read_text())
    names = [*shapes["paths"]] or [f"host{number:04d}" for number in range(shapes["nodes"])]
    # One switch above all of them: every group can lie as planned.
    (folder / "got").write_text("".join(f"{name} leaf.{name}\n" for name in names))
    ran = subprocess.run(
        ["bash", "-c", SLURM_STUBS + script + '\necho "$MASTER_ADDR:$MASTER_PORT"', "job", "train"],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "TOLD": str(told),
            "LIST": str(listed),
            "GOT": str(folder / "got"),
            "SLURM_SUBMIT_DIR": str(folder),
            "SLURM_JOB_NUM_NODES": str(len(names)),
        },
    )
    return told.read_text().splitlines(), listed.read_text().splitlines(), ran.stdout.strip()


def local_rank(folder: Path, task: str, rank: int, local: int, tasks: int) -> tuple[int, int]:
    """Device and size of the node that a task finds, from a real shell."""
    ran = subprocess.run(
        ["bash", "-c", task, "task", "bash", "-c", 'echo "$LOCAL_RANK $LOCAL_WORLD_SIZE $RANK"'],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(local),
            "SLURM_NTASKS": str(tasks),
            "NEST_RANKS": str(folder / "ranks.txt"),
        },
    )
    device, size, found = map(int, ran.stdout.split())
    assert found == rank
    return device, size


def option(words: list[str], name: str) -> str:
    """The value of ``--name=value``."""
    return next(word.partition("=")[2] for word in words if word.startswith(f"--{name}="))


CASES = [
    ("h100-spine-leaf-64", {"dp": 8, "tp": 4, "pp": 2}),
    ("h100-spine-leaf-64", {"dp": 2, "tp": 4, "pp": 8, "order": ["tp", "pp", "dp", "cp"]}),
    ("h100-spine-leaf-64", {"dp": 8, "tp": 2, "pp": 4, "device_order": "rail"}),
    ("h100-spine-leaf-64", {"dp": 4, "tp": 2, "cp": 2, "pp": 2, "order": ["tp", "dp", "cp", "pp"]}),
    ("h100-spine-leaf-64", {"dp": 4, "tp": 1, "pp": 3}),
    ("fat-tree-k16", {"dp": 16, "pp": 4}),
    ("torus-16x16", {"dp": 16, "tp": 4, "pp": 4, "device_order": "snake"}),
    ("torus-16x16", {"dp": 64, "tp": 4, "device_order": "hilbert"}),
    ("gb200-nvl72-rails", {"dp": 32, "tp": 8, "pp": 2}),
    ("drawn-8", {"dp": 2, "tp": 2, "pp": 2}),
    ("dgx-superpod-h100-as-built", {"dp": 32, "tp": 8, "pp": 3}),
]


@pytest.mark.parametrize(("fabric", "fields"), CASES)
def test_slurm_places_every_rank_where_the_layout_does(
    fabric: str, fields: dict[str, object], tmp_path: Path
) -> None:
    """Slurm's own rules on what the job hands to srun, against the layout's devices."""
    asked = scenario("llama3-8b", fabric)
    bundle = exported("slurm", asked, **fields)
    for name, content in bundle.files.items():
        (tmp_path / name).write_text(str(content))
    words, hosts, master = run_job(tmp_path, str(bundle.files["job.sbatch"]))
    chosen = plan(asked, **fields)
    network, ranks = collapse(asked.fabric), chosen.point.devices_used
    where = host_mapping(network, chosen.point)
    assert int(option(words, "ntasks")) == ranks
    assert option(words, "distribution") == "arbitrary"
    assert "--nodes" not in "".join(words)  # srun refuses both
    assert len(hosts) == ranks
    assert f"#SBATCH --nodes={len(set(hosts))}\n" in str(bundle.files["job.sbatch"])
    assert master == f"{hosts[0]}:29500"
    task = str(bundle.files["task.sh"])
    sample = sorted({0, 1, 7, ranks // 2, ranks - 1} & set(range(ranks)))
    for rank in sample:
        local = hosts[:rank].count(hosts[rank])
        device, size = local_rank(tmp_path, task, rank, local, ranks)
        assert device == where.slots[rank]
        assert size == hosts.count(hosts[rank])
    used = {f"host{index:04d}": host for index, host in enumerate(where.used_hosts)}
    assert [used[host] for host in hosts] == where.hosts.tolist()
    # The layout's own devices, stage by stage and rank by rank.
    places = coordinates(chosen)
    layout, order = chosen.point.layout, chosen.point.device_order
    expected = rank_mapping(network, layout, order)
    for rank in range(ranks):
        column = places["dp"][rank] * layout.cp + places["cp"][rank]
        device = expected[places["pp"][rank], column, places["tp"][rank]]
        assert device == where.devices[rank]


@pytest.mark.parametrize("fabric", FABRICS)
def test_hosts_are_the_fabrics_nodes(fabric: str) -> None:
    """Slots count the devices of a host; hosts are numbered as their first devices are."""
    asked = scenario("llama3-8b", fabric)
    network = collapse(asked.fabric)
    chosen = plan(asked, dp=2, tp=4)
    everything = host_mapping(network, chosen.point)
    node = network.nesting[0] if network.torus is None else np.arange(network.devices)
    if fabric == "gb200-nvl72-rails":  # eighteen trays of four in what NVLink joins
        node = np.arange(network.devices) // 4
    assert len(everything.host_sizes) == len(np.unique(node))
    assert sorted(everything.host_sizes) == sorted(np.unique(node, return_counts=True)[1])
    pairs = {(int(h), int(s)) for h, s in zip(everything.hosts, everything.slots, strict=True)}
    assert len(pairs) == everything.ranks
    for rank, device in enumerate(everything.devices):
        mates = np.flatnonzero(node == node[device])
        assert mates[everything.slots[rank]] == device
        assert everything.host_sizes[everything.hosts[rank]] == len(mates)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["megatron", "nemo", "torchtitan", "deepspeed"])
@settings(max_examples=80, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_launchers_number_ranks_as_the_plan_does(target: str, data: st.DataObject) -> None:
    """Node after node and slot after slot; whatever else is refused."""
    asked = scenario("llama3-8b")
    chosen = data.draw(drawn_plans(asked))
    assume(asked.batch % (chosen.point.dp * chosen.point.micro_batch) == 0)
    m = chosen.point.micro_batches(asked.batch)
    assume(chosen.point.interleave == 1 or m % chosen.point.pp == 0)
    try:
        files = export_plan(target, asked, priced(asked, chosen)).files
    except ExportRefused:
        return
    if target == "deepspeed":
        slots = re.findall(r"^node(\d+) slots=(\d+)$", str(files["hostfile"]), re.M)
        rank_mapping_of = [(int(host), slot) for host, n in slots for slot in range(int(n))]
    else:
        script = str(files["launch.sh"])
        nodes, each = (
            int(re.findall(rf"--{name} (\d+)", script)[0]) for name in ("nnodes", "nproc-per-node")
        )
        rank_mapping_of = [(node, slot) for node in range(nodes) for slot in range(each)]
    where = host_mapping(collapse(asked.fabric), chosen.point)
    assert rank_mapping_of == list(zip(where.hosts.tolist(), where.slots.tolist(), strict=True))


def test_ranks_of_mixed_stages_have_places_of_their_own_stage() -> None:
    """A rank counts along its stage's own widths."""
    asked = scenario()
    base = plan(asked, dp=8, tp=4, pp=2)
    mixed = Plan(
        base.point, base.cuts, base.recompute,
        (StageStrategy(4, False, 1, 1, 0), StageStrategy(2, False, 2, 1, 0)),
    )  # fmt: skip
    places = coordinates(mixed)
    first, second = [r for r in range(64) if r < 32], [r for r in range(64) if r >= 32]
    assert {places["tp"][rank] for rank in first} == {0, 1, 2, 3}
    assert {places["cp"][rank] for rank in first} == {0}
    assert [(places["tp"][r], places["cp"][r]) for r in second[:4]] == [
        (0, 0), (1, 0), (0, 1), (1, 1),
    ]  # fmt: skip
    report = priced(asked, mixed)
    files = export_plan("slurm", asked, report).files
    assert "ranks.txt" not in files


def test_placements_made_by_hand_go_into_the_rank_file() -> None:
    """Devices in any order: the file says which rank has which."""
    asked = scenario("llama3-8b", "dgx1-v100-64")
    base = plan(asked, dp=2, tp=2, pp=2)
    devices = (63, 1, 17, 9, 8, 40, 2, 33)
    placed = Plan(replace(base.point, device_order=devices), base.cuts, base.recompute)
    files = export_plan("slurm", asked, priced(asked, placed)).files
    rows = [line.split() for line in str(files["ranks.txt"]).splitlines() if line[0] != "#"]
    nodes = sorted({device // 8 for device in devices})
    assert [(int(r[0]), nodes[int(r[1])] * 8 + int(r[2])) for r in rows] == list(enumerate(devices))
    assert "seating by hand" in str(files["job.sbatch"])
    with pytest.raises(ExportRefused, match=r"Order of devices must fill node after node"):
        export_plan("megatron", asked, priced(asked, placed))


def test_mixed_widths_across_the_pipeline_axis_are_refused() -> None:
    """Where pp lies between tp and cp, other widths move ranks to other stages."""
    asked = scenario()
    base = plan(asked, dp=4, tp=4, cp=2, pp=2, order=["tp", "pp", "cp", "dp"])
    mixed = Plan(
        base.point, base.cuts, base.recompute,
        (StageStrategy(4, False, 2, 1, 0), StageStrategy(2, False, 4, 1, 0)),
    )  # fmt: skip
    with pytest.raises(
        ExportRefused, match=r"Division of a stage's layers must leave every rank to one stage"
    ):
        coordinates(mixed)


def test_files_say_their_version_and_plan() -> None:
    """The first lines of every text file that has room for comments."""
    for target, release in RELEASES.items():
        for name, content in exported(target, scenario(), dp=64, zero=3).files.items():
            if isinstance(content, str) and not name.endswith((".json", ".args")):
                head = "\n".join(content.splitlines()[:14])
                assert f"# Checked against {release}.\n" in head, (target, name)
                assert "dp 64" in head
                assert name.endswith((".sbatch", ".sh", ".py", ".yml")) or name == "hostfile"
