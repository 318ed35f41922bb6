"""What a framework cannot express is refused with the part, the reason and the way out."""

from __future__ import annotations

from typing import Any

import pytest
from export_cases import exported, plan, priced, scenario

from nest_core.costs import Plan, StageStrategy
from nest_core.documents.errors import InputError
from nest_core.interop.exporters import TARGETS, ExportRefused, export_plan

LAUNCHED = ["megatron", "nemo", "torchtitan", "deepspeed", "maxtext"]
UNEVEN = [0, 3, 18, 25, 34]

CASES: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    ("megatron", {"dp": 16, "pp": 4, "schedule": "gpipe"}, (), r"plan\.schedule must be 1f1b or"),
    ("nemo", {"dp": 16, "pp": 4, "schedule": "gpipe"}, (), r"plan\.schedule must be 1f1b or"),
    ("megatron", {"dp": 16, "pp": 4, "schedule": "zb_h1"}, (), r"plan\.schedule must be 1f1b or"),
    ("nemo", {"dp": 16, "pp": 4, "schedule": "zb_2p"}, (), r"plan\.schedule must be 1f1b or"),
    ("torchtitan", {"dp": 16, "pp": 4, "zero": 3, "schedule": "zb_1p"}, (),
     r"plan\.schedule must be 1f1b, gpipe or interleaved for torchtitan, whose zero-bubble"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "schedule": "zb_1p"}, (),
     r"plan\.schedule must be 1f1b for DeepSpeed"),
    ("astra-sim", {"dp": 16, "pp": 4, "schedule": "zb_2p"}, (),
     r"plan\.schedule must be 1f1b, gpipe or interleaved for ASTRA-sim"),
    ("megatron", {"dp": 32, "pp": 2, "interleave": 2}, ('workload.overlap="none"',),
     r"plan\.pp must be more than 2 for Megatron-LM where virtual stages hide none"),
    ("megatron", {"dp": 16, "pp": 4, "zero": 2}, (), r"plan\.zero must be 0 or 1 with a pipeline"),
    ("nemo", {"dp": 16, "pp": 4, "zero": 3}, (), r"plan\.zero must be 0 or 1 with a pipeline"),
    ("megatron", {"dp": 4, "cp": 4, "pp": 4, "order": ["tp", "dp", "cp", "pp"]}, (),
     r"plan\.order must be tp-cp-dp-pp or tp-cp-pp-dp"),
    ("megatron", {"dp": 4, "cp": 4, "pp": 4, "order": ["tp", "cp", "pp", "dp"]}, (),
     r"plan\.order must be tp-cp-dp-pp for Megatron-LM unless ep x etp = cp x tp"),
    ("megatron", {"dp": 32, "cp": 2}, ("workload.sequence_length_tokens=510",),
     r"sequence_length_tokens must be a multiple of 2 cp = 4"),
    ("megatron", {"dp": 64}, ('workload.precision="tf32"', 'accelerator="a100-80gb"'),
     r"workload\.precision must be fp32, fp16, bf16 or fp8"),
    ("megatron", {"dp": 64, "zero": 1}, ('workload.optimizer="adam_bf16"',),
     r"workload\.optimizer must be adam or sgd for"),
    ("megatron", {"dp": 64}, ('workload.optimizer="adam_8bit"',),
     r"workload\.optimizer must be adam or sgd without ZeRO"),
    ("torchtitan", {"dp": 16, "pp": 4, "zero": 3, "order": ["tp", "cp", "pp", "dp"]}, (),
     r"plan\.order must be tp-cp-dp-pp for torchtitan"),
    ("torchtitan", {"dp": 64, "zero": 1}, (), r"plan\.zero must be 0, 2 or 3"),
    ("torchtitan", {"dp": 32, "cp": 2}, (), r"plan\.zero must be 2 or 3 with context"),
    ("torchtitan", {"dp": 8, "cp": 8, "zero": 3, "zero_group": 4}, (),
     r"plan\.zero_group must be a multiple of cp = 8 for torchtitan"),
    ("deepspeed", {"dp": 64, "zero": 3, "zero_group": 8}, (),
     r"plan\.zero_group must be all for DeepSpeed"),
    ("torchtitan", {"dp": 64, "zero": 3, "recompute": "selective"}, (),
     r"plan\.recompute must be none or full for torchtitan"),
    ("torchtitan", {"dp": 64, "zero": 3}, ('workload.optimizer="sgd"',),
     r"workload\.optimizer must be adam"),
    ("torchtitan", {"dp": 64, "zero": 3}, ('workload.precision="fp8"',),
     r"workload\.precision must be bf16 or fp32"),
    ("torchtitan", {"dp": 64, "zero": 3}, ("workload.gradient_bytes=2",),
     r"workload\.gradient_bytes must be 4"),
    ("torchtitan", {"dp": 32, "cp": 2, "zero": 3}, ("workload.sequence_length_tokens=510",),
     r"sequence_length_tokens must be a multiple of 4 for torchtitan"),
    ("torchtitan", {"dp": 16, "tp": 2, "cp": 2, "sp": True, "zero": 3},
     ("workload.sequence_length_tokens=516",), r"sequence_length_tokens must be a multiple of 8"),
    ("torchtitan", {"dp": 8, "pp": 8, "micro_batch": 16, "zero": 3}, (),
     r"plan\.pp must not exceed the 4 micro-batches under 1f1b for torchtitan"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 2}, (), r"plan\.zero must be 0 or 1 with a pipeline"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "schedule": "gpipe"}, (),
     r"plan\.schedule must be 1f1b for DeepSpeed"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "interleave": 2}, (),
     r"plan\.schedule must be 1f1b for DeepSpeed"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "cuts": UNEVEN}, (),
     r"plan\.cuts must be even in layers or in blocks"),
    ("deepspeed", {"dp": 8, "tp": 2, "pp": 4, "zero": 1}, (),
     r"plan\.tp must be 1 with a pipeline"),
    ("deepspeed", {"dp": 32, "tp": 2, "zero": 1, "sp": True}, (), r"plan\.sp must be false"),
    ("deepspeed", {"dp": 32, "cp": 2, "zero": 1}, (), r"plan\.cp must be 1 for DeepSpeed"),
    ("deepspeed", {"dp": 64, "zero": 1, "recompute": "selective"}, (),
     r"plan\.recompute must be none or full for DeepSpeed"),
    ("deepspeed", {"dp": 64, "zero": 1, "recompute": "mlp"}, (),
     r"plan\.recompute must be none or full for DeepSpeed"),
    ("torchtitan", {"dp": 64, "zero": 3, "recompute": "core_attn+mlp"}, (),
     r"plan\.recompute must be none or full for torchtitan"),
    ("megatron", {"dp": 64, "zero": 1, "recompute": "layernorm"}, ('workload.precision="fp8"',),
     r"plan\.recompute must name neither moe_act nor layernorm in fp8 for Megatron-LM"),
    ("deepspeed", {"dp": 64}, (), r"plan\.zero must be 1 or more where gradients are wider"),
    ("deepspeed", {"dp": 64, "zero": 1}, ('workload.precision="fp8"',),
     r"workload\.precision must be bf16, fp16 or fp32"),
    ("deepspeed", {"dp": 64, "zero": 1}, ('workload.optimizer="adam_8bit"',),
     r"workload\.optimizer must be adam or sgd for DeepSpeed"),
]  # fmt: skip
EXPERTS: list[tuple[str, str, dict[str, Any], tuple[str, ...], str]] = [
    ("megatron", "mixtral-8x7b", {"dp": 32, "tp": 2}, (), r"plan\.sp must be true where experts"),
    ("megatron", "mixtral-8x7b", {"dp": 64, "ep": 8}, ('workload.precision="fp16"',),
     r"plan\.ep must be 1 in fp16 training"),
    ("megatron", "gpt-oss-120b", {"dp": 32, "tp": 2, "sp": True}, (), r"plan\.etp must be 1 for"),
    ("torchtitan", "qwen3-30b-a3b", {"dp": 32, "tp": 2, "zero": 3}, (),
     r"plan\.tp must be 1 with experts for torchtitan"),
    ("torchtitan", "qwen3-30b-a3b", {"dp": 64, "ep": 8}, (),
     r"plan\.zero must be 2 or 3 with expert parallelism"),
    ("deepspeed", "mixtral-8x7b", {"dp": 32, "tp": 2, "zero": 1}, (),
     r"plan\.tp must be 1 with experts for DeepSpeed"),
    ("deepspeed", "gpt-oss-120b", {"dp": 64, "ep": 8, "zero": 1}, (),
     r"plan\.ep must be 1 for this family"),
    ("deepspeed", "mixtral-8x7b", {"dp": 16, "pp": 4, "ep": 8, "zero": 1}, (),
     r"plan\.ep must be 1 with a pipeline"),
    ("megatron", "mixtral-8x7b", {"dp": 64, "zero": 1}, ("workload.expert_overlap=true",),
     r"expert_overlap must be false for Megatron-LM without spread experts"),
    ("nemo", "mixtral-8x7b", {"dp": 16, "pp": 4, "ep": 8, "zero": 1},
     ("workload.expert_overlap=true",), r"expert_overlap must be false .* interleaved stages"),
    ("megatron", "mixtral-8x7b", {"dp": 64, "ep": 8, "zero": 1, "recompute": "moe"},
     ("workload.expert_overlap=true",), r"expert_overlap must be false .* other than moe"),
    ("torchtitan", "qwen3-30b-a3b", {"dp": 64, "ep": 8, "zero": 3}, ('workload.dispatch="hybrid"',),
     r"workload\.dispatch must be all_to_all for torchtitan"),
    ("deepspeed", "mixtral-8x7b", {"dp": 64, "ep": 8, "zero": 1}, ("workload.expert_overlap=true",),
     r"expert_overlap must be false for DeepSpeed"),
    ("astra-sim", "mixtral-8x7b", {"dp": 64, "ep": 8, "zero": 1},
     ('workload.dispatch="once_per_node"',), r"workload\.dispatch must be all_to_all for ASTRA"),
    ("megatron", "bloom-176b", {"dp": 64}, (), r"workload\.model must not need ALiBi"),
    ("nemo", "mpt-7b", {"dp": 64}, (), r"workload\.model must not need ALiBi"),
    ("megatron", "grok-1", {"dp": 64}, (), r"must not need norms behind attention and MLP"),
    ("nemo", "bert-large", {"dp": 64}, (), r"workload\.model must be a decoder"),
    ("megatron", "bert-large", {"dp": 32, "cp": 2}, (), r"plan\.cp must be 1 for an encoder"),
    ("torchtitan", "gpt3-13b", {"dp": 64, "zero": 3}, (),
     r"workload\.model must have the sizes of a model that torchtitan ships"),
]  # fmt: skip


def check_sentence(error: ExportRefused) -> None:
    """One sentence: field, rule, value, remedy."""
    text = str(error)
    assert text.endswith(".")
    assert ", but is " in text
    assert ": " in text
    assert "\n" not in text
    assert isinstance(error, InputError)


@pytest.mark.parametrize(("target", "fields", "sets", "match"), CASES)
def test_of_a_dense_model(
    target: str, fields: dict[str, Any], sets: tuple[str, ...], match: str
) -> None:
    """The first part that does not go is named."""
    asked = scenario("llama3-8b", "h100-spine-leaf-64", *sets)
    with pytest.raises(ExportRefused, match=match) as caught:
        exported(target, asked, **fields)
    check_sentence(caught.value)


@pytest.mark.parametrize(("target", "model", "fields", "sets", "match"), EXPERTS)
def test_of_other_models(
    target: str, model: str, fields: dict[str, Any], sets: tuple[str, ...], match: str
) -> None:
    """Experts, families and encoders."""
    asked = scenario(model, "h100-spine-leaf-64", *sets)
    with pytest.raises(ExportRefused, match=match) as caught:
        exported(target, asked, **fields)
    check_sentence(caught.value)


@pytest.mark.parametrize("target", LAUNCHED)
def test_device_orders_that_need_a_rank_file(target: str) -> None:
    """Launchers number node after node; Slurm's rank file carries the rest."""
    fields = {"dp": 64, "zero": 3, "device_order": "rail"}
    with pytest.raises(
        ExportRefused, match=r"plan\.device_order must fill node after node.*--to slurm"
    ):
        exported(target, scenario(), **fields)
    assert "ranks.txt" in exported("slurm", scenario(), **fields).files


@pytest.mark.parametrize("target", LAUNCHED)
def test_an_order_that_changes_nothing_is_no_obstacle(target: str) -> None:
    """Racks one after another are this fabric's own numbering."""
    assert exported(target, scenario(), dp=64, zero=3, device_order="rack").files


@pytest.mark.parametrize("target", ["megatron", "nemo", "torchtitan"])
def test_half_a_node(target: str) -> None:
    """torchrun has as many ranks on every node; DeepSpeed's host file need not."""
    with pytest.raises(
        ExportRefused, match=r"plan\.devices_used must put as many ranks on every node"
    ):
        exported(target, scenario(), dp=12 // 3, tp=1, pp=3, zero=0)
    hosts = str(exported("deepspeed", scenario(), dp=4, pp=3, zero=1,
                         cuts=[0, 12, 23, 34]).files["hostfile"])  # fmt: skip
    assert "node0000 slots=8\nnode0001 slots=4\n" in hosts


@pytest.mark.parametrize("target", LAUNCHED)
def test_stages_that_recompute_differently(target: str) -> None:
    """None of them has a choice per stage."""
    with pytest.raises(ExportRefused, match=r"plan\.recompute must be the same in every stage"):
        exported(target, scenario(), dp=32, pp=2, zero=0, stage_recompute=["full", "none"])


@pytest.mark.parametrize("target", [*LAUNCHED, "astra-sim"])
def test_stages_that_divide_their_layers_differently(target: str) -> None:
    """Sharding per stage is one case of it."""
    asked = scenario()
    base = plan(asked, dp=32, pp=2)
    for other in (StageStrategy(1, False, 1, 1, 1), StageStrategy(1, False, 1, 1, 3)):
        mixed = Plan(
            base.point, base.cuts, base.recompute, (StageStrategy(1, False, 1, 1, 0), other)
        )
        with pytest.raises(
            ExportRefused, match=r"plan\.stage_strategies must be the same in every"
        ):
            export_plan(target, asked, priced(asked, mixed))


def test_strategies_that_agree_are_uniform() -> None:
    """One strategy written out for every stage is no mixture."""
    asked = scenario()
    base = plan(asked, dp=32, pp=2, zero=1)
    same = StageStrategy.of(base.point)
    spelled = Plan(base.point, base.cuts, base.recompute, (same, same))
    files = [export_plan("megatron", asked, priced(asked, p)).files for p in (base, spelled)]
    assert files[0] == files[1]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_schedule_without_a_pipeline_is_no_obstacle(target: str) -> None:
    """GPipe of one stage is gradient accumulation."""
    assert exported(target, scenario(), dp=64, zero=3, schedule="gpipe").files


def test_fabrics_that_are_no_product() -> None:
    """ASTRA-sim's network says which ones."""
    asked = scenario("llama3-8b", "unequal-racks-88")
    with pytest.raises(InputError, match="must be a product of rings, full meshes and switches"):
        exported("astra-sim", asked, dp=8, tp=8)


def test_traces_that_grow_too_large() -> None:
    """The number of nodes is counted before any is written."""
    big = scenario("llama3-8b", "h100-spine-leaf-1024", "workload.global_batch_sequences=8192")
    with pytest.raises(
        ExportRefused, match=r"must need at most 1,000,000 trace nodes for ASTRA-sim"
    ):
        exported("astra-sim", big, dp=32, pp=32)


def test_unknown_targets() -> None:
    """The message lists those that there are."""
    asked = scenario()
    report = priced(asked, plan(asked, dp=64))
    with pytest.raises(InputError, match=r"to must be a known target, but is 'jax': pick mega"):
        export_plan("jax", asked, report)
