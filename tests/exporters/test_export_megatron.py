"""Megatron-LM and NeMo: what is written says the plan, read by their rules."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from typing import Any

import numpy as np
import pytest
from export_cases import DATA, MEGATRON, drawn_plans, exported, plan, priced, scenario
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.costs import Plan, Point
from nest_core.costs.parse import read_pasted
from nest_core.interop.exporters import ExportRefused, export_plan
from nest_core.interop.exporters.astra_workload import groups_of
from nest_core.interop.exporters.megatron_core import layout_string, stage_fields, swapped
from nest_core.report.explain.mine import check_job

assert DATA.is_dir()


def unrolled(layout: str) -> list[str]:
    """Letters of every virtual stage: ``x*n`` is n times x."""
    plain = re.sub(r"(.)\*(\d+)", lambda match: match[1] * int(match[2]), layout)
    return plain.split("|")


def cuts_built(fields: dict[str, Any], blocks: int, pp: int) -> tuple[int, ...]:
    """The cuts that Megatron Core builds from its fields, virtual stage by virtual stage."""
    virtual_stages = fields.get("virtual_pipeline_model_parallel_size", 1) * pp
    ends_counted = fields.get("account_for_embedding_in_pipeline_split", False)
    first = fields.get("num_layers_in_first_pipeline_stage", 0)
    if layout := fields.get("pipeline_model_parallel_layout", ""):
        rows = unrolled(layout)
        assert rows[0][0] == "E"
        assert rows[-1][-1] == "L"
        assert "".join(rows) == "E" + "t" * blocks + "L"
        sizes = [row.count("t") for row in rows]
    elif first:
        last = fields["num_layers_in_last_pipeline_stage"]
        middle, rest = divmod(blocks - first - last, max(pp - 2, 1))
        assert not rest
        sizes = [first, *[middle] * (pp - 2), last]
    else:
        size, rest = divmod(blocks + 2 * ends_counted, virtual_stages)
        assert not rest
        sizes = [size] * virtual_stages
        sizes[0] -= ends_counted
        sizes[-1] -= ends_counted
    inner = [1 + end for end in itertools.accumulate(sizes)]
    return (0, *inner[:-1], blocks + 2)


@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@given(st.data())
def test_stage_fields_say_the_cuts(data: st.DataObject) -> None:
    """Read back by Megatron Core's own rules, whichever of its four ways was taken."""
    pp, v = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 3))
    layers = data.draw(st.integers(max(pp * v, 3), 60))
    inner = data.draw(st.sets(st.integers(1, layers - 1), min_size=pp * v - 1, max_size=pp * v - 1))
    kind = data.draw(st.sampled_from(["any", "blocks", "layers", "ends"]))
    if kind == "blocks" and (layers - 2) % (pp * v) == 0 and layers > 2:
        each = (layers - 2) // (pp * v)
        inner = {1 + each * k for k in range(1, pp * v)}
    if kind == "layers" and layers % (pp * v) == 0:
        inner = {layers // (pp * v) * k for k in range(1, pp * v)}
    point = Point(
        1, False, 1, pp, 1, 0, MEGATRON, interleave=v, schedule="interleaved" if v > 1 else "1f1b"
    )
    chosen = Plan(point, (0, *sorted(inner), layers), ("none",) * pp)
    fields = stage_fields(chosen)
    assert cuts_built(fields, layers - 2, pp) == chosen.cuts
    layout = fields.get("pipeline_model_parallel_layout", "")
    assert layout in ("", layout_string(chosen.cuts))


@pytest.mark.parametrize(
    ("cuts", "way"),
    [
        ((0, 9, 17, 25, 34), "even"), ((0, 8, 17, 26, 34), "first"), ((0, 9, 18, 27, 34), "first"),
        ((0, 6, 17, 25, 34), "layout"), ((0, 1, 17, 25, 34), "layout"),
    ],
)  # fmt: skip
def test_the_plainest_way_is_taken(cuts: tuple[int, ...], way: str) -> None:
    """A layout string only where nothing shorter says it."""
    fields = stage_fields(plan(scenario(), dp=16, pp=4, cuts=list(cuts)))
    assert ("pipeline_model_parallel_layout" in fields) == (way == "layout")
    assert ("num_layers_in_first_pipeline_stage" in fields) == (way == "first")


def megatron_ranks(point: Point, expert: bool) -> dict[str, set[tuple[int, ...]]]:
    """Groups as Megatron Core numbers ranks: its order: tp and cp, for experts etp and ep."""
    first, second = (point.etp, point.ep) if expert else (point.tp, point.cp)
    third = point.tp * point.sharers // (first * second)
    axes = ["tp", "second", "dp", "pp"] if not swapped(point) else ["tp", "second", "pp", "dp"]
    sizes = {"tp": first, "second": second, "dp": third, "pp": point.pp}
    grid = np.arange(point.devices_used).reshape([sizes[axis] for axis in reversed(axes)])
    found = {}
    for axis in axes:
        moved = np.moveaxis(grid, len(axes) - 1 - axes.index(axis), -1)
        found[axis] = {tuple(row) for row in moved.reshape(-1, sizes[axis]).tolist()}
    both = [len(axes) - 1 - axes.index(axis) for axis in ("dp", "second")]
    sharers = np.moveaxis(grid, both, (-2, -1)).reshape(-1, third * second)
    found["dp and second"] = {tuple(sorted(row)) for row in sharers.tolist()}
    return found


def partial_groups(
    whole: set[tuple[int, ...]], instances: int
) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Groups within and between optimizer instances, as Megatron Core cuts a list of ranks."""
    within, between = set(), set()
    for ranks in whole:
        size = len(ranks) // instances
        within |= {ranks[at : at + size] for at in range(0, len(ranks), size)}
        between |= {ranks[at::size] for at in range(size)}
    return within, between


@pytest.mark.check
@pytest.mark.parametrize("target", ["megatron", "nemo"])
@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_ranks_meet_those_of_the_layout(target: str, data: st.DataObject) -> None:
    """What is exported has Megatron Core's groups: the plan's, axis by axis."""
    asked = scenario(data.draw(st.sampled_from(["llama3-8b", "mixtral-8x7b"])))
    chosen = data.draw(drawn_plans(asked))
    point = chosen.point
    assume(asked.batch % (point.dp * point.micro_batch) == 0)
    assume(point.interleave == 1 or point.micro_batches(asked.batch) % point.pp == 0)
    try:
        bundle = export_plan(target, asked, priced(asked, chosen))
    except ExportRefused:
        return
    script = str(bundle.files["launch.sh" if target == "megatron" else "train.py"])
    flag = "--use-tp-pp-dp-mapping" if target == "megatron" else "use_tp_pp_dp_mapping=True"
    assert (flag in script) == swapped(point)
    ours = {
        axis: {tuple(row) for row in rows.tolist()}
        for axis, rows in groups_of(point).members.items()
    }
    dense, experts = megatron_ranks(point, False), megatron_ranks(point, True)
    n = point.instances
    pairs = [
        ("tp", dense["tp"]),
        ("cp", dense["second"]),
        ("etp", experts["tp"]),
        ("ep", experts["second"]),
        *zip(("data", "replicas"), partial_groups(dense["dp and second"], n), strict=True),
        *zip(("expert_data", "expert_replicas"), partial_groups(experts["dp"], n), strict=True),
    ]
    for axis, theirs in pairs:
        if axis in ours:
            assert {tuple(sorted(row)) for row in ours[axis]} == theirs
    assert ("replicas" in ours) == (n > 1)
    stage = point.layout.stage_of(point.devices_used)
    assert all(sorted(stage[list(row)]) == list(range(point.pp)) for row in dense["pp"])
    assert dense["pp"] == experts["pp"]  # Megatron Core asserts it


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_the_command_is_read_back_as_the_plan(data: st.DataObject) -> None:
    """By the reader for pasted commands: the whole script, and its plan alone; what hides behind
    compute is what the plan was priced with, whatever the stack."""
    model = data.draw(st.sampled_from(["llama3-8b", "mixtral-8x7b", "gpt3-13b"]))
    hides = {traffic: data.draw(st.booleans()) for traffic in ("tp", "pp", "dp")}
    asked = scenario(model).hiding(hides)
    chosen = data.draw(drawn_plans(asked))
    point = chosen.point
    assume(asked.batch % (point.dp * point.micro_batch) == 0)
    assume(point.interleave == 1 or point.micro_batches(asked.batch) % point.pp == 0)
    try:
        files = export_plan("megatron", asked, priced(asked, chosen)).files
    except ExportRefused:
        return
    for name in ("launch.sh", "plan.args"):
        pasted = read_pasted(str(files[name]), asked.model.blocks + 2, point.devices_used)
        found = pasted.plan
        assert asked.hiding(pasted.hidden).hidden == asked.hidden
        if name == "launch.sh":
            assert pasted.hidden["dp"] == hides["dp"]
            assert pasted.hidden.get("tp") == (hides["tp"] if point.sp else None)
        told = chosen.to_json() | {"device_order": "natural"}
        if point.pp == 1:
            told["schedule"] = "1f1b"
        order = [axis for axis in found.point.order if getattr(point, axis) > 1]
        assert order == [axis for axis in point.order if getattr(point, axis) > 1]
        assert found.to_json() | {"order": told["order"]} == told


def test_what_the_reader_and_the_writer_say_of_zero() -> None:
    """Stages 2 and 3 need Megatron-LM's sharded data parallelism and free device queues."""
    for zero, strategy in ((2, "optim_grads"), (3, "optim_grads_params")):
        script = str(exported("megatron", scenario(), dp=64, zero=zero).files["launch.sh"])
        assert f"--data-parallel-sharding-strategy {strategy}\n" in script
        assert "--use-megatron-fsdp" in script
        assert "unset CUDA_DEVICE_MAX_CONNECTIONS" in script
    script = str(exported("megatron", scenario(), dp=32, tp=2, zero=1).files["launch.sh"])
    assert "--data-parallel-sharding-strategy" not in script
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=1" in script


def arguments(script: str) -> list[str]:
    """What bash hands to torchrun, one per line, run with stubs on the path."""
    stub = 'torchrun() { printf "%s\\n" "$@"; }; exec() { "$@"; }\n'
    ran = subprocess.run(
        ["bash", "-c", stub + script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MASTER_ADDR": "first", "SLURM_PROCID": "3"},
    )
    return ran.stdout.splitlines()


@pytest.mark.parametrize("target", ["megatron", "nemo", "torchtitan"])
def test_scripts_hand_over_what_they_hold(target: str) -> None:
    """Through a real shell: quoting keeps layouts whole, nodes come from Slurm."""
    bundle = exported(
        target, scenario(), dp=16, pp=4, cuts=[0, 6, 17, 25, 34], zero=0, recompute="full"
    )
    words = arguments(str(bundle.files["launch.sh"]))
    assert words[words.index("--nnodes") + 1] == "8"
    assert words[words.index("--nproc-per-node") + 1] == "8"
    assert words[words.index("--node-rank") + 1] == "3"
    assert words[words.index("--master-addr") + 1] == "first"
    if target == "megatron":
        layout = words[words.index("--pipeline-model-parallel-layout") + 1]
        assert unrolled(layout) == ["E" + "t" * 5, "t" * 11, "t" * 8, "t" * 8 + "L"]
        assert words[-2:] == ["--vocab-size", "128256"]


def test_encoders_have_their_program_in_a_folder() -> None:
    """It moved there in 2026; Python looks for packages beside a program, not where it is run."""
    script = str(exported("megatron", scenario("bert-large"), dp=64).files["launch.sh"])
    stub = 'exec() { printf "%s\\n" "$PYTHONPATH" "$@"; }\n'
    ran = subprocess.run(
        ["bash", "-c", stub + script, "launch.sh", "--mock-data"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "MASTER_ADDR": "first", "SLURM_PROCID": "3"},
    )
    folder, *words = ran.stdout.splitlines()
    assert folder == "/"
    assert "examples/bert/pretrain_bert.py" in words
    assert words[-1] == "--mock-data"
    assert "PYTHONPATH" not in str(exported("megatron", scenario(), dp=64).files["launch.sh"])


def test_modules_to_recompute_are_named() -> None:
    """As Megatron-LM's own flag and field do, and the flags are read back as the same plan."""
    asked = scenario("mixtral-8x7b")
    fields = {"dp": 16, "pp": 4, "ep": 8, "zero": 1, "recompute": "core_attn+moe_act"}
    script = str(exported("megatron", asked, **fields).files["launch.sh"])
    words = [word for line in script.splitlines() for word in line.split()]
    at = words.index("--recompute-modules")
    assert words[at + 1 : at + 3] == ["core_attn", "moe_act"]
    assert "--recompute-granularity selective" in script
    pasted = read_pasted(str(exported("megatron", asked, **fields).files["plan.args"]), 34, 64)
    assert pasted.plan.recompute == ("core_attn+moe_act",) * 4
    assert pasted.unpriced == ()
    train = str(exported("nemo", asked, **fields).files["train.py"])
    assert 'recompute_modules=["core_attn", "moe_act"]' in train
    single = scenario("mixtral-8x7b", "h100-spine-leaf-64", 'workload.precision="fp16"')
    with pytest.raises(ExportRefused, match=r"must not name moe_act outside bf16 and fp8"):
        exported("megatron", single, **fields)


@pytest.mark.parametrize(
    ("dispatch", "words"),
    [
        ("all_to_all", ("alltoall", "")),
        ("once_per_node", ("flex", "deepep")),
        ("hybrid", ("flex", "hybridep")),
    ],
)
def test_how_experts_are_reached_is_said_and_read_back(
    dispatch: str, words: tuple[str, str]
) -> None:
    """Dispatcher, groups of experts and passes beside one another, in both frameworks."""
    asked = scenario(
        "deepseek-v3", "h100-spine-leaf-64", f'workload.dispatch="{dispatch}"',
        "workload.expert_overlap=true",
    )  # fmt: skip
    fields = {"dp": 64, "ep": 64, "zero": 1, "recompute": "mlp"}
    script = str(exported("megatron", asked, **fields).files["launch.sh"])
    said = arguments(script)
    flags = ("--moe-token-dispatcher-type", "--moe-flex-dispatcher-backend")
    assert words == tuple(said[said.index(one) + 1] if one in said else "" for one in flags)
    assert "CUDA_DEVICE_MAX_CONNECTIONS=32" in script
    pasted = read_pasted(script, 63, 64)
    assert pasted.unpriced == ()
    told = {key.rpartition(".")[2]: value for key, value in pasted.settings.items()}
    expected = {"dispatch": dispatch, "expert_overlap": True, "expert_groups": 8, "top_groups": 4}
    assert {key: told[key] for key in expected} == expected
    check_job(asked, pasted.settings)
    train = str(exported("nemo", asked, **fields).files["train.py"])
    assert f'moe_token_dispatcher_type="{words[0]}"' in train
    assert "overlap_moe_expert_parallel_comm=True" in train
    assert "moe_router_num_groups=8" in train


def test_nemo_builds_what_it_says() -> None:
    """The script's fields are the plan's and the model's."""
    bundle = exported(
        "nemo", scenario("mixtral-8x7b"), dp=16, pp=4, ep=8, zero=1, recompute="selective",
        cuts=[0, 6, 17, 25, 34],
    )  # fmt: skip
    fields: dict[str, object] = {}
    for node in ast.walk(ast.parse(str(bundle.files["train.py"]))):
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
            fields[str(node.arg)] = node.value.value
    expected = {
        "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 4,
        "expert_model_parallel_size": 8, "context_parallel_size": 1, "micro_batch_size": 1,
        "global_batch_size": 512, "recompute_granularity": "selective", "num_layers": 32,
        "hidden_size": 4096, "num_moe_experts": 8, "moe_router_topk": 2, "num_query_groups": 8,
        "pipeline_model_parallel_layout": "Et*5|t*11|t*8|t*8L", "seq_length": 512,
        "use_distributed_optimizer": True, "sequence_parallel": False,
    }  # fmt: skip
    assert {key: fields.get(key) for key in expected} == expected
