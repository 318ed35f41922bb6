"""torchtitan's configuration and DeepSpeed's Python: run as written, against stand-ins."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_cases import drawn_plans, exported, plan, priced, scenario
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.documents import InputError
from nest_core.documents.presets import preset_names
from nest_core.interop.exporters import ExportRefused, export_plan
from nest_core.interop.exporters.deepspeed import uniform_parts
from nest_core.interop.exporters.torchtitan import _FLAVOURS, flavour_of


class Recorder(types.SimpleNamespace):
    """Takes any attribute and remembers it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = Recorder()
        return self.__dict__[name]


class Called:
    """A class or function that keeps what it was called with."""

    def __init__(self, **fixed: Any) -> None:
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.__dict__.update(fixed)

    def __call__(self, *args: Any, **words: Any) -> Any:
        self.calls.append((args, words))
        return self.result if "result" in self.__dict__ else Recorder(args=args, **words)


def module(name: str, **content: Any) -> types.ModuleType:
    """A module with some content."""
    made = types.ModuleType(name)
    made.__dict__.update(content)
    return made


def titan_config(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """What the exported module makes of torchtitan's own configuration."""
    source = str(files["nest_plan.py"])
    package = source.split("torchtitan.models.")[1].split()[0]
    base = source.split("config_registry import ")[1].split()[0]
    registry = Called()
    for name in ("torchtitan", "torchtitan.distributed", "torchtitan.models"):
        monkeypatch.setitem(sys.modules, name, module(name))
    full = types.SimpleNamespace(Config=lambda: "full")
    recompute = module("ac", FullAC=full)
    monkeypatch.setitem(sys.modules, "torchtitan.distributed.activation_checkpoint", recompute)
    home = f"torchtitan.models.{package}"
    monkeypatch.setitem(sys.modules, home, module(home, model_registry=registry))
    chunked = types.SimpleNamespace(loss_fn="whole")
    functions = module("registry", **{base: lambda: Recorder(loss=chunked)})
    monkeypatch.setitem(sys.modules, f"{home}.config_registry", functions)
    space: dict[str, Any] = {}
    exec(compile(source, "nest_plan.py", "exec"), space)
    config: Recorder = space["plan"]()
    return config


def torchtitan_refuses(config: Recorder, ranks: int) -> str:
    """Which rule of torchtitan 0.3.0 on PyTorch 2.14 a configuration breaks (docs/outside.md).

    `Trainer.Config._validate_cuda_graphs`, `ParallelDims._validate`, `Trainer.__init__`, and the
    schedules of `torch.distributed.pipelining`, on which 0.3.0 was run.
    """
    found, training = config.parallelism, config.training
    pp, tp, ep = (
        getattr(found, f"{axis}_parallel_degree") for axis in ("pipeline", "tensor", "expert")
    )
    cp, shard = found.context_parallel_degree, found.data_parallel_shard_degree
    copies = found.data_parallel_replicate_degree
    if not training.disable_cuda_graphs and (pp > 1 or ep > 1):
        return "CUDA graphs"
    if copies * shard * cp * tp * pp != ranks:
        return "world size"
    if shard * cp * tp % ep:
        return "expert groups"
    if training.seq_len % (
        (tp if found.enable_sequence_parallel else 1) * (2 * cp if cp > 1 else 1)
    ):
        return "sequence"
    if training.seq_len // cp % (128 if cp > 1 else 8):
        return "blocks of attention or parts of the loss"
    if training.global_batch_size % (training.local_batch_size * copies * shard):
        return "global batch"
    if pp == 1:
        return ""
    bare = [part for part in found.module_fqns_per_model_part if "layers." not in " ".join(part)]
    if cp > 1 and bare:
        return "no attention to divide"
    m, rest = divmod(training.local_batch_size, found.pipeline_parallel_microbatch_size)
    schedule = found.pipeline_parallel_schedule
    if rest or (schedule == "1F1B" and m < pp):
        return "micro-batches"
    if schedule in ("Interleaved1F1B", "InterleavedZeroBubble") and m % max(1, m // pp):
        return "rounds"
    stages = len(found.module_fqns_per_model_part)
    if schedule in ("ZBVZeroBubble", "DualPipeV") and stages != 2 * pp:
        return "stages in a V"
    if schedule == "DualPipeV" and m < stages:
        return "micro-batches in a V"
    split = ("InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")
    always = found.fsdp_reshard_after_forward == "always"
    if schedule in split and (always or config.loss != "whole"):
        return "gradients that are lost"
    return ""


@pytest.mark.parametrize("model", ["llama3-8b", "deepseek-v3"])
def test_torchtitan_takes_every_plan_that_is_exported(model: str) -> None:
    """0.3.0 refused every plan with a pipeline, and DeepSeek-V3's with expert parallelism."""
    sets = ("workload.global_batch_sequences=64", 'workload.context="all_gather"')
    asked = scenario(model, "h100-spine-leaf-64", *sets)
    exports = set()
    schedules = ("1f1b", "interleaved", "interleaved_zb", "zbv", "dualpipev")
    for pp, tp, cp, ep, schedule, micro in product(
        (1, 4, 8), (1, 2), (1, 2), (1, 8), schedules, (1, 2)
    ):
        v = 1 if schedule == "1f1b" else 2
        if (v > 1 and pp == 1) or (asked.model.experts > 1) != (ep > 1):
            continue
        fields = {"pp": pp, "tp": tp, "cp": cp, "ep": ep, "dp": 64 // (pp * tp * cp)}
        fields["zero"] = 3 if schedule in ("1f1b", "interleaved") else 2
        fields |= {"sp": tp > 1, "etp": 1, "schedule": schedule, "interleave": v}
        try:
            files = exported("torchtitan", asked, micro_batch=micro, **fields).files
        except InputError:  # no plan of this scenario, or none for torchtitan
            continue
        with pytest.MonkeyPatch.context() as patch:
            assert torchtitan_refuses(titan_config(dict(files), patch), 64) == "", fields
        exports.add(schedule)
    assert exports == set(schedules)


@settings(max_examples=120, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_torchtitan_gets_the_plan(data: st.DataObject) -> None:
    """Degrees multiply to the ranks, batches add up, virtual stages hold their modules."""
    asked = scenario(data.draw(st.sampled_from(["llama3-8b", "qwen3-8b", "qwen3-30b-a3b"])))
    chosen = data.draw(drawn_plans(asked))
    point = chosen.point
    assume(asked.batch % (point.dp * point.micro_batch) == 0)
    m = point.micro_batches(asked.batch)
    assume(point.interleave == 1 or m % point.pp == 0)
    try:
        files = dict(export_plan("torchtitan", asked, priced(asked, chosen)).files)
    except ExportRefused:
        return
    with pytest.MonkeyPatch.context() as patch:
        config = titan_config(files, patch)
    found = config.parallelism
    shard, copies = found.data_parallel_shard_degree, found.data_parallel_replicate_degree
    assert shard * copies == point.dp
    assert copies == (point.instances if point.zero >= 2 else point.dp)
    if point.zero >= 2:
        assert found.fsdp_reshard_after_forward == ("always" if point.zero == 3 else "never")
    assert found.tensor_parallel_degree == point.tp
    assert found.context_parallel_degree == point.cp
    assert found.pipeline_parallel_degree == point.pp
    assert found.expert_parallel_degree == point.ep
    assert found.enable_sequence_parallel == point.sp
    assert (config.activation_checkpoint == "full") == (chosen.recompute[0] == "full")
    training = config.training
    assert training.global_batch_size == asked.batch
    steps = asked.batch // (training.local_batch_size * point.dp)
    if point.pp > 1:
        assert training.local_batch_size // found.pipeline_parallel_microbatch_size == m
        parts = found.module_fqns_per_model_part
        assert len(parts) == point.pp * point.interleave
        chain = ["tok_embeddings", *(f"layers.{k}" for k in range(asked.model.blocks))]
        assert [name for part in parts for name in part] == [*chain, "norm", "lm_head"]
        sizes = [len(part) - ("norm" in part) for part in parts]
        assert sizes == [b - a for a, b in pairwise(chosen.cuts)]
        named = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}
        named |= {"interleaved_zb": "InterleavedZeroBubble", "zbv": "ZBVZeroBubble"}
        named |= {"dualpipev": "DualPipeV"}
        assert found.pipeline_parallel_schedule == named[point.schedule]
        assert steps == 1
    else:
        assert training.local_batch_size == point.micro_batch
        assert steps == m


def test_torchtitan_says_what_is_priced_otherwise() -> None:
    """What its second step did beside the plan (docs/outside.md), where there are micro-batches."""

    def notes(**fields: Any) -> list[str]:
        return list(exported("torchtitan", scenario(), **fields).notes[1:])

    (replicas,) = notes(dp=64, zero=0)
    assert replicas.startswith("Between its replicas torchtitan reduces gradients 8 times")
    assert len(notes(dp=64, zero=3, zero_group=8)) == 1
    (gathers,) = notes(dp=64, zero=2)
    assert "gathers them 8 times per iteration" in gathers
    assert len(notes(dp=64, zero=2, zero_group=8)) == 2
    gradients, head = notes(dp=32, pp=2, zero=3)
    # 32 blocks and the embedding or the head: 4 bytes each, of which a thirty-second is planned.
    stage = (8.03e9 - 2 * 128256 * 4096) / 2 + 128256 * 4096
    assert f"({stage * 4 * 31 / 32 / 1e9:.2f} GB" in gradients
    # Six bytes a logit, which its own stack has in the plan's price.
    assert f"once, in {512 * 128256 * 6 / 1e9:.2f} GB more" in head
    own = scenario("llama3-8b", "h100-spine-leaf-64", 'stack="torchtitan-2025"')
    assert "once, in 0.00 GB more" in exported("torchtitan", own, dp=32, pp=2).notes[-1]
    for zero in (0, 2):
        assert notes(dp=32, pp=2, zero=zero) == [head]
        assert notes(dp=32, pp=2, zero=zero, schedule="zbv", interleave=2) == []
    assert notes(dp=64, zero=3) == notes(dp=64, micro_batch=8) == notes(dp=1, pp=4) == []


def test_torchtitan_keeps_whole_gradients_in_a_pipeline() -> None:
    """They must fit beside what is planned."""
    with pytest.raises(ExportRefused, match=r"leave 13\d.\d GB free .* adds gradients"):
        exported("torchtitan", scenario("llama3-70b"), dp=32, pp=2, zero=3, recompute="full")


def test_torchtitan_has_the_whole_loss_where_backward_passes_are_split() -> None:
    """In parts it left the last stage without gradients, in silence."""
    fields: dict[str, Any] = {"dp": 32, "pp": 2, "interleave": 2}
    for schedule in ("interleaved", "interleaved_zb", "zbv", "dualpipev"):
        module = str(
            exported("torchtitan", scenario(), schedule=schedule, **fields).files["nest_plan.py"]
        )
        assert ("config.loss = config.loss.loss_fn" in module) == (schedule != "interleaved")
    # Of 12,800 tokens the logits take 9.9 GB more.
    long = scenario("llama3-8b", "h100-spine-leaf-64", "workload.sequence_length_tokens=12800")
    with pytest.raises(ExportRefused, match=r"leave 9.9 GB free .* loss of all tokens at once"):
        exported("torchtitan", long, schedule="zbv", recompute="full", zero=2, **fields)


def test_torchtitan_pipelines_no_shared_embedding(tmp_path: Path) -> None:
    """Its models refuse when they are built."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16}
    sizes |= {"num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072}
    sizes |= {"vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "qwen3", "tie_word_embeddings": True} | sizes))
    exported("torchtitan", scenario(str(file)), dp=64, zero=3)
    with pytest.raises(ExportRefused, match=r"Pipeline parallel \(pp\) must be 1 for torchtitan"):
        exported("torchtitan", scenario(str(file)), dp=32, pp=2, zero=3)


def test_torchtitan_flavours_are_found_by_their_sizes() -> None:
    """Presets of the same sizes are theirs, others are not."""
    found = {}
    for name in preset_names("models"):
        try:
            found[name] = flavour_of(scenario(name).model)
        except ExportRefused:
            continue
    assert {name: " ".join(flavour[:2]) for name, flavour in found.items()} == {
        "llama3-8b": "llama3 8B",
        "llama3.1-8b": "llama3 8B",
        "llama3-70b": "llama3 70B",
        "llama3.1-70b": "llama3 70B",
        "llama3.1-405b": "llama3 405B",
        "qwen3-8b": "qwen3 8B",
        "qwen3-32b": "qwen3 32B",
        "qwen3-30b-a3b": "qwen3 30B-A3B",
        "qwen3-235b-a22b": "qwen3 235B-A22B",
        "deepseek-v2": "deepseek_v3 236B",
        "deepseek-v3": "deepseek_v3 671B",
        "gpt-oss-20b": "gpt_oss 20b",
        "gpt-oss-120b": "gpt_oss 120b",
    }
    assert len({flavour[:2] for flavour in _FLAVOURS}) == len(_FLAVOURS)


def deepspeed_engine(
    files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *arguments: Any
) -> tuple[Called, Called]:
    """Calls of ``PipelineModule`` and ``initialize`` that the exported module makes."""
    pipeline, topology = Called(), Called()
    initialize = Called(result=("engine",))
    root = module("deepspeed", init_distributed=lambda: None, initialize=initialize)
    monkeypatch.setitem(sys.modules, "deepspeed", root)
    pipe = module("pipe", PipelineModule=pipeline)
    monkeypatch.setitem(sys.modules, "deepspeed.pipe", pipe)
    for name in ("deepspeed.runtime", "deepspeed.runtime.pipe"):
        monkeypatch.setitem(sys.modules, name, module(name))
    monkeypatch.setitem(
        sys.modules, "deepspeed.runtime.pipe.topology", module("t", ProcessTopology=topology)
    )
    pipeline.result = Recorder(parameters=lambda: "parameters")
    space: dict[str, Any] = {}
    exec(compile(str(files["nest_plan.py"]), "nest_plan.py", "exec"), space)
    assert space["engine"](*arguments) == "engine"
    pipeline.topology = topology
    return pipeline, initialize


class Block:
    """Stands for a model's block."""


def balanced(weights: list[int], parts: int) -> list[tuple[int, ...]]:
    """All cuts whose parts have weights as equal as can be."""
    from itertools import combinations

    found: dict[int, list[tuple[int, ...]]] = {}
    for inner in combinations(range(1, len(weights)), parts - 1):
        cuts = (0, *inner, len(weights))
        sums = [sum(weights[a:b]) for a, b in pairwise(cuts)]
        found.setdefault(max(sums) - min(sums), []).append(cuts)
    return found[min(found)]


@pytest.mark.parametrize("order", [["tp", "cp", "dp", "pp"], ["tp", "cp", "pp", "dp"]])
@pytest.mark.parametrize(
    ("pp", "cuts", "recompute"),
    [(4, [0, 9, 17, 25, 34], "full"), (4, [0, 9, 18, 26, 34], "none"), (2, [0, 17, 34], "full")],
)
def test_deepspeed_pipelines_get_the_plan(
    order: list[str], pp: int, cuts: list[int], recompute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topology counts the last axis fastest; its methods give the plan's cuts."""
    fields = {"dp": 64 // pp, "pp": pp, "zero": 1, "order": order}
    asked = scenario()
    bundle = exported("deepspeed", asked, **fields, cuts=cuts, recompute=recompute)
    pipeline, initialize = deepspeed_engine(
        dict(bundle.files), monkeypatch, ["layers"], Block, "loss"
    )
    (words,) = [words for _, words in pipeline.calls]
    ((_, shape),) = pipeline.topology.calls
    assert sorted(shape["axes"]) == ["data", "pipe"]
    grid = np.arange(64).reshape(shape["dims"])
    stages = np.moveaxis(grid, shape["axes"].index("pipe"), 0)
    layout = plan(asked, **fields).point.layout
    assert (stages.reshape(pp, -1) == layout.devices.reshape(pp, -1)).all()
    if words["partition_method"] == "uniform":
        assert uniform_parts(34, pp) == tuple(cuts)
    else:
        assert words["partition_method"] == "type:Block"
        assert len({b - a - (a == 0) - (b == 34) for a, b in pairwise(cuts)}) == 1
    assert words["activation_checkpoint_interval"] == (recompute == "full")
    assert words["checkpointable_layers"] == ["Block"]
    assert initialize.calls[0][1]["config"] == "ds_config.json"


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_blocks_in_equal_numbers_have_one_cut(parts: int) -> None:
    """So the method that balances one class of layers gives the plan's cuts."""
    blocks = 2 * parts
    (only,) = balanced([0] + [1] * blocks + [0], parts)
    assert only == (0, *(1 + 2 * k for k in range(1, parts)), blocks + 2)


@settings(max_examples=120, derandomize=True, database=None, deadline=None)
@given(data=st.data())
@pytest.mark.check
def test_deepspeed_configurations_add_up(data: st.DataObject) -> None:
    """Its own check: batch = micro-batch x accumulation x data-parallel ranks."""
    asked = scenario(data.draw(st.sampled_from(["llama3-8b", "mixtral-8x7b"])))
    chosen = data.draw(drawn_plans(asked))
    point = chosen.point
    assume(asked.batch % (point.dp * point.micro_batch) == 0)
    assume(point.interleave == 1 or point.micro_batches(asked.batch) % point.pp == 0)
    try:
        files = dict(export_plan("deepspeed", asked, priced(asked, chosen)).files)
    except ExportRefused:
        return
    config = json.loads(files["ds_config.json"])
    tensor = config.get("tensor_parallel", {"autotp_size": 1})["autotp_size"]
    ranks = point.devices_used // tensor // point.pp
    assert asked.batch == (
        config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * ranks
    )
    # 0.19.8 takes the product with every rank for the batch, tensor-parallel ones too.
    assert config.get("train_batch_size") == (asked.batch if tensor == 1 else None)
    assert config["zero_optimization"]["stage"] == point.zero
    assert tensor == point.tp
    experts = config.get("expert_parallel", {"autoep_size": 1})["autoep_size"]
    assert experts == point.ep


def test_deepspeed_lets_weights_go_as_priced() -> None:
    """At ZeRO 3 they are gathered for either pass: `make outside ARGS=steps` saw 2, before 1.25."""
    for zero, distance in ((2, None), (3, 0)):
        config = json.loads(
            exported("deepspeed", scenario(), dp=64, zero=zero).files["ds_config.json"]
        )
        assert config["zero_optimization"].get("stage3_max_reuse_distance") == distance


@pytest.mark.parametrize(("zero", "bytes_each"), [(1, 2 + 4 + 12 / 32), (3, 18 / 32)])
def test_deepspeed_says_what_autotp_keeps_whole(zero: int, bytes_each: float) -> None:
    """Half of Llama 3's embedding more than priced; a tied one is divided with its head."""
    (_, note) = exported("deepspeed", scenario(), dp=32, tp=2, zero=zero).notes
    more = 128_256 * 4_096 / 2 * bytes_each
    assert f"({more / 1e9:.2f} GB a rank more)" in note
    (_, note) = exported("deepspeed", scenario("gpt3-1.3b"), dp=32, tp=2, zero=zero).notes
    assert "embedding" not in note
    assert len(exported("deepspeed", scenario(), dp=64, zero=zero).notes) == 1


def test_deepspeed_needs_room_for_a_whole_embedding() -> None:
    """A plan that fits by less than what AutoTP keeps more is refused."""
    asked = scenario()
    report = priced(asked, plan(asked, dp=32, tp=2, zero=1, recompute="full"))
    full = replace(report, memory_limit_bytes=report.fullest_bytes + 1.6e9)
    with pytest.raises(ExportRefused, match=r"must leave 1\.7 GB free for DeepSpeed"):
        export_plan("deepspeed", asked, full)
    export_plan("deepspeed", asked, replace(full, memory_limit_bytes=report.fullest_bytes + 1.7e9))


def test_deepspeed_recomputes_a_plain_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pipeline the model is told to."""
    model = Recorder(parameters=lambda: "parameters", gradient_checkpointing_enable=Called())
    for recompute, times in (("full", 1), ("none", 1)):
        bundle = exported("deepspeed", scenario(), dp=64, zero=3, recompute=recompute)
        deepspeed_engine(dict(bundle.files), monkeypatch, model)
        assert len(model.gradient_checkpointing_enable.calls) == times
