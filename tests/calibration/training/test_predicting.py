"""A run becomes the plan that was run, on the fabric that it ran on."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from nest_core.calibration.training.machines import (
    Machine,
    accelerator_of,
    fabric_of,
    find_machine,
    machine_of,
    network_of,
)
from nest_core.calibration.training.predict import plan_of, predict, problem_of, stack_of
from nest_core.costs import price
from nest_core.costs.plan import even_cuts
from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, look_again, preset_names, preset_path
from nest_core.hardware import load_accelerator


def plan(row):
    problem = problem_of(row.run, accelerator_of(row.run.accelerator))
    return plan_of(row.run, problem.layers, row.run.recompute or "none"), problem


def test_a_graph_of_the_whole_iteration_leaves_nothing_to_launch(one):
    told = [one(notes=notes).run for notes in ("CUDA graphs: none", "CUDA graphs: whole iteration")]
    assert [stack_of(run).launch for run in told] == ["eager", "iteration_graphs"]
    eager, graph = (predict(run).stages[0].launch_s for run in told)
    assert graph == 0.0 <= eager


def test_the_plan_is_the_row(one):
    found, problem = plan(one())
    point = found.point
    assert (point.tp, point.pp, point.dp, point.micro_batch, point.zero) == (4, 2, 2, 4, 0)
    assert (point.order, point.schedule) == (("tp", "cp", "dp", "pp"), "1f1b")
    assert found.recompute == ("full", "full")
    assert predict(one().run).iteration_s == price(problem, found).iteration_s > 0


@pytest.mark.parametrize(
    ("layers", "pp", "interleave", "notes", "blocks"),
    [
        (36, 2, 1, "", (18, 18)),
        (48, 4, 3, "", (4,) * 12),
        (126, 2, 4, "", (15, *(16,) * 6, 15)),  # embedding and head count as a layer each
        (22, 2, 4, "22 layers = first/last stage one layer fewer", (2, *(3,) * 6, 2)),
        (61, 2, 2, "", (16, 15, 15, 15)),
    ],
)
def test_cuts(one, layers, pp, interleave, notes, blocks):
    cells = {"layers": str(layers), "pp": str(pp), "vp_interleave": f"{interleave}.0"}
    row = one(**cells, gpus=str(8 * pp), notes=notes)
    cuts = np.array(plan(row)[0].cuts)
    held = np.diff(cuts)
    held[0] -= 1
    held[-1] -= 1
    assert tuple(held) == blocks
    assert cuts[0] == 0
    assert cuts[-1] == layers + 2


def test_even_cuts_where_nothing_divides(one):
    row = one(layers="35", pp="4", gpus="32")
    assert plan(row)[0].cuts == even_cuts(37, 4)


@pytest.mark.parametrize(
    ("cells", "nodes", "devices"),
    [
        ({"gpus": "16", "gpus_per_node": "8"}, [8, 8], 16),
        ({"gpus": "16", "gpus_per_node": ""}, [8, 8], 16),
        ({"gpus": "256", "gpus_per_node": "72", "dp": "32"}, [64] * 4, 256),
        ({"gpus": "8", "gpus_per_node": "72", "dp": "1"}, [8], 8),
        ({"gpus": "24", "gpus_per_node": "10", "dp": "3"}, [8, 8, 8], 24),
        ({"gpus": "40", "gpus_per_node": "16", "dp": "5"}, [16, 12, 12], 40),
        ({"gpus": "1024", "gpus_per_node": "72", "tp": "16", "dp": "32"}, [64] * 16, 1024),
        ({"gpus": "1024", "gpus_per_node": "72", "tp": "8", "dp": "64"}, [72] * 8 + [64] * 7, 1024),
        ({"gpus": "32", "gpus_per_node": "8", "tp": "16", "dp": "1"}, [8] * 4, 32),
        ({"gpus": "24", "gpus_per_node": "8", "tp": "2", "cp": "3", "dp": "2"}, [8] * 3, 24),
    ],
)
def test_nodes(one, cells, nodes, devices):
    fabric = fabric_of(one(**cells).run)
    assert fabric.devices == devices
    assert np.bincount(fabric.group_of(0)).tolist() == nodes
    assert len(fabric.tiers) == (1 if len(nodes) == 1 else 2)
    assert network_of(fabric).devices == devices


def test_bandwidths_are_the_row_s_own_first(one):
    own = fabric_of(one(intra_bw_GBps="200", inter_bw_GBps_per_gpu="6.25").run)
    assert [tier.bandwidth_Bps for tier in own.tiers] == [200e9, 6.25e9]
    usual = fabric_of(one(intra_bw_GBps="", inter_bw_GBps_per_gpu="").run)
    assert [tier.bandwidth_Bps for tier in usual.tiers] == [300e9, 25e9]
    assert all(tier.uplink_per == "device" for tier in own.tiers)


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("A100-80GB", "A100"),
        ("H100-96GB-HBM2e-500W", "H100"),
        ("GB300-NVL72", "GB300"),
        ("B300", "B300"),
        ("TPUv5e", "TPU v5e"),
        ("A100 SXM 40 GB", "A100"),
    ],
)
def test_machines(name, machine):
    assert machine_of(name).name == machine
    assert accelerator_of(name).peak_flops


@pytest.mark.parametrize(
    ("name", "preset", "devices", "intra_GBps"),
    [
        ("NVIDIA H100 PCIe", "h100-pcie-80gb", 8, 63.0),
        ("NVIDIA H100 NVL", "h100-nvl-94gb", 8, 63.0),
        ("NVIDIA A100-PCIE-80GB", "a100-pcie-80gb", 8, 31.5),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb", 8, 31.5),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb", 8, 31.5),
        ("NVIDIA H200 NVL", "h200-nvl-141gb", 8, 63.0),
        ("NVIDIA H20", "h20-96gb", 8, 450.0),
        ("NVIDIA H800", "h800-80gb", 8, 200.0),
        ("NVIDIA A800-SXM4-80GB", "a800-80gb", 8, 200.0),
        ("NVIDIA L40S", "l40s-48gb", 8, 31.5),
        ("NVIDIA GH200 480GB", "gh200-96gb", 4, 450.0),
        ("AMD Instinct MI325X OAM", "mi325x-256gb", 8, 448.0),
        ("Tesla V100-SXM2-16GB", "v100-16gb", 8, 150.0),
        ("TPU v7x", "tpu-v7x", 9216, 600.0),
        ("Ironwood", "tpu-v7x", 9216, 600.0),
        ("TPU v5 lite", "tpu-v5e", 256, 200.0),
        ("TPU v5", "tpu-v5p", 8960, 600.0),
        ("8xH100", "h100-80gb", 8, 450.0),
        ("576 GB200, 8 NVL72 racks on rails", "gb200-186gb", 72, 900.0),
    ],
)
def test_devices_are_known_by_the_names_that_drivers_print(name, preset, devices, intra_GBps):
    """A PCIe card was taken for an SXM board, L40S, H20 and TPU v7x were refused."""
    machine = machine_of(name)
    assert machine.preset == preset
    assert (machine.per_node, machine.intra_Bps) == (devices, intra_GBps * 1e9)


@pytest.mark.parametrize("preset", preset_names("accelerators"))
def test_every_accelerator_is_known_by_its_own_names(preset):
    """Of its file, of its first key and in its aliases; the rate inside nodes is its own."""
    device = load_accelerator(preset)
    names = load_toml(preset_path("accelerators", f"{preset}.toml")).get("aliases", [])
    assert {machine_of(name).preset for name in (preset, device.name, *names)} == {preset}
    assert machine_of(preset).intra_Bps == device.scale_up_Bps


def test_an_accelerator_of_ones_own_is_known_by_its_file(tmp_path, monkeypatch):
    """No code names accelerators."""
    copy = tmp_path / "presets"
    shutil.copytree(preset_path("accelerators"), copy / "accelerators")
    shutil.copytree(preset_path("estimators"), copy / "estimators")
    text = (copy / "accelerators" / "h100-80gb.toml").read_text(encoding="utf-8")
    own = text.replace("H100 SXM 80 GB", "X9 SXM 80 GB", 1).replace(
        "scale_up_devices = 8", 'aliases = ["Xenon 9"]\nusual_node = { devices = 16 }'
    )
    (copy / "accelerators" / "x9-80gb.toml").write_text(own, encoding="utf-8")
    monkeypatch.setattr("nest_core.documents.presets._root", lambda: copy)
    look_again()
    machines = {machine_of(name) for name in ("acme X9", "ACME Xenon 9")}
    monkeypatch.undo()
    look_again()
    assert machines == {Machine("X9", "x9-80gb", 16, 450e9, 50e9)}
    assert find_machine("acme X9") is None


@pytest.mark.parametrize("name", ["Abacus", "GeForce RTX 4090"])
def test_an_unknown_accelerator_is_refused(one, name):
    with pytest.raises(InputError, match="accelerator must have a preset"):
        predict(one(accelerator=name).run)


def test_schedules_that_costs_do_not_know_are_refused(one):
    with pytest.raises(InputError, match="schedule must be 1F1B"):
        predict(one(notes="schedule=ZB-V").run)


def test_unstated_recomputation_is_the_least_that_fits(one):
    light = one(recompute="", micro_batch="1").run
    assert predict(light).plan.recompute_summary == "none"
    heavy = one(recompute="", micro_batch="32").run
    report = predict(heavy)
    assert report.plan.recompute_summary != "none"
    assert report.feasible


def test_fsdp_under_a_pipeline_sends_once(one):
    cells = {"dist_opt_or_zero": "fsdp2(zero3)", "precision": "bf16", "pp": "2"}
    assert plan(one(**cells))[0].point.zero == 1
    flat = {**cells, "pp": "1", "dp": "4"}
    assert plan(one(**flat))[0].point.zero == 3


def test_more_of_everything_takes_longer(one):
    base = predict(one().run).iteration_s
    for cells in (
        {"layers": "72"},
        {"seq_len": "4096"},
        {"global_batch_seqs": "128"},
        {"hidden": "8192", "ffn_hidden": "32768"},
    ):
        assert predict(one(**cells).run).iteration_s > 1.5 * base
    slow = predict(one(inter_bw_GBps_per_gpu="1", intra_bw_GBps="30").run).iteration_s
    assert slow > base
    assert predict(one(recompute="none").run).iteration_s < 0.85 * base


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 64])
@pytest.mark.parametrize("per_node", ["8", "72"])
@pytest.mark.parametrize("dp", [1, 3, 7, 16])
def test_no_tensor_group_straddles_a_node_that_could_hold_it(one, tp, per_node, dp):
    """Nor does one that no node can hold leave a part of itself in a node of others."""
    row = one(
        gpus=str(2 * tp * dp),
        tp=str(tp),
        pp="2",
        dp=str(dp),
        gpus_per_node=per_node,
        heads="64",
        kv_heads="64",
        global_batch_seqs=str(16 * dp),
    )
    node = fabric_of(row.run).group_of(0)
    for group in node.reshape(-1, tp):
        parts = np.unique(group, return_counts=True)[1]
        assert len(parts) == 1 if tp <= int(per_node) else len(set(parts.tolist())) == 1


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        ({}, ("tp", "cp", "dp", "pp")),
        ({"rank_order": "tp-cp-pp-dp"}, ("tp", "cp", "pp", "dp")),
        ({"rank_order": "tp-cp-dp-pp"}, ("tp", "cp", "dp", "pp")),
        ({"notes": "BF16 grad reduce; ranks ordered tp-cp-pp-dp"}, ("tp", "cp", "pp", "dp")),
        ({"notes": "dp=gpus/(tp*pp*cp)"}, ("tp", "cp", "dp", "pp")),
    ],
)
def test_ranks_are_placed_in_the_order_that_the_row_states(one, cells, order):
    assert plan(one(**cells))[0].point.order == order


def test_an_order_of_another_kind_is_not_guessed(why):
    assert why(rank_order="dp-tp-pp").startswith("states rank_order as 'dp-tp-pp'")


@pytest.mark.parametrize(
    "cells",
    [{"precision": "fp8-rowwise"}, {"precision": "fp8", "notes": "float8 row-wise; compile"}],
)
def test_row_wise_fp8_is_not_priced_as_if_it_had_one_scale_per_tensor(why, cells):
    assert "scaled row by row" in why(accelerator="H100-80GB", **cells)
