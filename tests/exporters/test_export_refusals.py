"""What a framework cannot express is refused with the part, the reason and the way out."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from export_cases import exported, plan, priced, scenario

import nest_core as nest
from nest_core.costs import Plan, StageStrategy
from nest_core.documents.errors import InputError
from nest_core.interop import exporters
from nest_core.interop.exporters import TARGETS, ExportRefused, export_plan

LAUNCHED = ["megatron", "nemo", "torchtitan", "deepspeed", "maxtext"]
UNEVEN = [0, 3, 18, 25, 34]

CASES: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    ("megatron", {"dp": 16, "pp": 4, "schedule": "gpipe"}, (), r"Schedule must be 1F1B or"),
    ("nemo", {"dp": 16, "pp": 4, "schedule": "gpipe"}, (), r"Schedule must be 1F1B or"),
    ("megatron", {"dp": 16, "pp": 4, "schedule": "zb_h1"}, (), r"Schedule must be 1F1B or"),
    ("nemo", {"dp": 16, "pp": 4, "schedule": "zb_2p"}, (), r"Schedule must be 1F1B or"),
    ("torchtitan", {"dp": 16, "pp": 4, "zero": 3, "schedule": "zb_1p"}, (),
     r"Schedule must be 1F1B, GPipe, interleaved, interleaved ZB-1p, ZB-V or DualPipeV for torch"),
    ("megatron", {"dp": 16, "pp": 4, "schedule": "zbv"}, (),
     r"Schedule must be 1F1B or interleaved .*, but is ZB-V"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "schedule": "zbv"}, (),
     r"Schedule must be 1F1B for DeepSpeed.* but is ZB-V"),
    ("astra-sim", {"dp": 16, "pp": 4, "schedule": "dualpipev", "micro_batch": 1}, (),
     r"Schedule must be 1F1B, GPipe or interleaved for ASTRA-sim, but is DualPipeV"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "schedule": "zb_1p"}, (),
     r"Schedule must be 1F1B for DeepSpeed"),
    ("astra-sim", {"dp": 16, "pp": 4, "schedule": "zb_2p"}, (),
     r"Schedule must be 1F1B, GPipe or interleaved for ASTRA-sim"),
    ("megatron", {"dp": 32, "pp": 2, "interleave": 2}, ('workload.overlap="none"',),
     r"Pipeline parallel \(pp\) must be more than 2 for Megatron-LM where virtual stages"),
    ("megatron", {"dp": 16, "pp": 4, "zero": 2}, (), r"ZeRO stage must be 0 or 1 with a pipeline"),
    ("nemo", {"dp": 16, "pp": 4, "zero": 3}, (), r"ZeRO stage must be 0 or 1 with a pipeline"),
    ("megatron", {"dp": 4, "cp": 4, "pp": 4, "order": ["tp", "dp", "cp", "pp"]}, (),
     r"Order of axes must be tp-cp-dp-pp or tp-cp-pp-dp"),
    ("megatron", {"dp": 4, "cp": 4, "pp": 4, "order": ["tp", "cp", "pp", "dp"]}, (),
     r"Order of axes must be tp-cp-dp-pp for Megatron-LM unless ep x etp = cp x tp"),
    ("megatron", {"dp": 32, "cp": 2}, ("workload.sequence_length_tokens=510",),
     r"Sequence length must be a multiple of 2 cp = 4"),
    ("megatron", {"dp": 64}, ('workload.precision="tf32"', 'accelerator="a100-80gb"'),
     r"Precision must be fp32, fp16, bf16 or fp8"),
    ("megatron", {"dp": 64, "zero": 1}, ('workload.optimizer="adam_bf16"',),
     r"Optimizer must be adam or sgd for"),
    ("megatron", {"dp": 64}, ('workload.optimizer="adam_8bit"',),
     r"Optimizer must be adam or sgd without ZeRO"),
    ("torchtitan", {"dp": 16, "pp": 4, "zero": 3, "order": ["tp", "cp", "pp", "dp"]}, (),
     r"Order of axes must be tp-cp-dp-pp for torchtitan"),
    ("torchtitan", {"dp": 64, "zero": 1}, (), r"ZeRO stage must be 0, 2 or 3"),
    ("torchtitan", {"dp": 32, "cp": 2}, (), r"ZeRO stage must be 2 or 3 with context"),
    ("torchtitan", {"dp": 8, "cp": 8, "zero": 3, "zero_group": 4}, (),
     r"Number of ranks that ZeRO shards over must be a multiple of cp = 8 for torchtitan"),
    ("torchtitan", {"dp": 8, "cp": 2, "pp": 4, "zero": 3, "cuts": [0, 1, 12, 23, 34]}, (),
     r"Division into stages must leave embedding and head a block each with context parallelism"),
    ("deepspeed", {"dp": 64, "zero": 3, "zero_group": 8}, (),
     r"Number of ranks that ZeRO shards over must be all for DeepSpeed"),
    ("torchtitan", {"dp": 64, "zero": 3, "recompute": "selective"}, (),
     r"Recomputation must be none or full for torchtitan"),
    ("torchtitan", {"dp": 64, "zero": 3}, ('workload.optimizer="sgd"',),
     r"Optimizer must be adam"),
    ("torchtitan", {"dp": 64, "zero": 3}, ('workload.precision="fp8"',),
     r"Precision must be bf16 or fp32"),
    ("torchtitan", {"dp": 64, "zero": 3}, ("workload.gradient_bytes=2",),
     r"Bytes per gradient must be 4"),
    ("torchtitan", {"dp": 32, "cp": 2, "zero": 3}, (),
     r"Context exchange must be all_gather for torchtitan"),
    ("torchtitan", {"dp": 32, "cp": 2, "zero": 3},
     ("workload.sequence_length_tokens=510",),
     r"Sequence length must be a multiple of 256 for torchtitan"),
    ("torchtitan", {"dp": 64, "zero": 3}, ("workload.sequence_length_tokens=516",),
     r"Sequence length must be a multiple of 8 for torchtitan"),
    ("torchtitan", {"dp": 2, "tp": 32, "sp": True, "zero": 3},
     ('workload.model="llama3-8b"', "workload.sequence_length_tokens=528"),
     r"Tensor parallel \(tp\) must divide the 8 key-value heads for torchtitan"),
    ("torchtitan", {"dp": 16, "pp": 4, "zero": 3, "schedule": "interleaved_zb", "interleave": 2},
     (), r"ZeRO stage must be 0 or 2 with split backward passes for torchtitan"),
    ("torchtitan", {"dp": 8, "pp": 8, "micro_batch": 16, "zero": 3}, (),
     r"Pipeline parallel \(pp\) must not exceed the 4 micro-batches under 1F1B for torchtitan"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 2}, (), r"ZeRO stage must be 0 or 1 with a pipeline"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "schedule": "gpipe"}, (),
     r"Schedule must be 1F1B for DeepSpeed"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "interleave": 2}, (),
     r"Schedule must be 1F1B for DeepSpeed"),
    ("deepspeed", {"dp": 16, "pp": 4, "zero": 1, "cuts": UNEVEN}, (),
     r"Division into stages must be even in layers or in blocks"),
    ("deepspeed", {"dp": 8, "tp": 2, "pp": 4, "zero": 1}, (),
     r"Tensor parallel \(tp\) must be 1 with a pipeline"),
    ("deepspeed", {"dp": 32, "tp": 2, "zero": 1, "sp": True}, (),
     r"Sequence parallel \(sp\) must be off"),
    ("deepspeed", {"dp": 32, "cp": 2, "zero": 1}, (),
     r"Context parallel \(cp\) must be 1 for DeepSpeed"),
    ("deepspeed", {"dp": 64, "zero": 1, "recompute": "selective"}, (),
     r"Recomputation must be none or full for DeepSpeed"),
    ("deepspeed", {"dp": 64, "zero": 1, "recompute": "mlp"}, (),
     r"Recomputation must be none or full for DeepSpeed"),
    ("torchtitan", {"dp": 64, "zero": 3, "recompute": "core_attn+mlp"}, (),
     r"Recomputation must be none or full for torchtitan"),
    ("megatron", {"dp": 64, "zero": 1, "recompute": "layernorm"}, ('workload.precision="fp8"',),
     r"Recomputation must name neither moe_act nor layernorm in fp8 for Megatron-LM"),
    ("deepspeed", {"dp": 16, "pp": 4}, ("workload.gradient_bytes=2",),
     r"ZeRO stage must be 1 with a pipeline in bf16 for DeepSpeed"),
    ("deepspeed", {"dp": 64}, (), r"ZeRO stage must be 1 or more where gradients are wider"),
    ("deepspeed", {"dp": 64, "zero": 1}, ('workload.precision="fp8"',),
     r"Precision must be bf16, fp16 or fp32"),
    ("deepspeed", {"dp": 64, "zero": 1}, ('workload.optimizer="adam_8bit"',),
     r"Optimizer must be adam or sgd for DeepSpeed"),
]  # fmt: skip
EXPERTS: list[tuple[str, str, dict[str, Any], tuple[str, ...], str]] = [
    ("megatron", "mixtral-8x7b", {"dp": 32, "tp": 2}, (),
     r"Sequence parallel \(sp\) must be on where experts"),
    ("megatron", "mixtral-8x7b", {"dp": 64, "ep": 8}, ('workload.precision="fp16"',),
     r"Expert parallel \(ep\) must be 1 in fp16 training"),
    ("megatron", "gpt-oss-120b", {"dp": 32, "tp": 2, "sp": True}, (),
     r"Expert tensor \(etp\) must be 1 for"),
    ("torchtitan", "qwen3-30b-a3b", {"dp": 32, "tp": 2, "zero": 3}, (),
     r"Tensor parallel \(tp\) must be 1 with experts for torchtitan"),
    ("torchtitan", "gpt-oss-120b", {"dp": 32, "cp": 2, "zero": 3}, (),
     r"Context parallel \(cp\) must be 1 with GPT-OSS for torchtitan"),
    ("torchtitan", "qwen3-30b-a3b", {"dp": 64, "ep": 8}, (),
     r"ZeRO stage must be 2 or 3 with expert parallelism"),
    ("deepspeed", "mixtral-8x7b", {"dp": 32, "tp": 2, "zero": 1}, (),
     r"Tensor parallel \(tp\) must be 1 with experts for DeepSpeed"),
    ("deepspeed", "gpt-oss-120b", {"dp": 64, "ep": 8, "zero": 1}, (),
     r"Expert parallel \(ep\) must be 1 for this family"),
    ("deepspeed", "mixtral-8x7b", {"dp": 16, "pp": 4, "ep": 8, "zero": 1}, (),
     r"Expert parallel \(ep\) must be 1 with a pipeline"),
    ("megatron", "mixtral-8x7b", {"dp": 64, "zero": 1}, ("workload.expert_overlap=true",),
     r"Expert overlap must be off for Megatron-LM without spread experts"),
    ("nemo", "mixtral-8x7b", {"dp": 16, "pp": 4, "ep": 8, "zero": 1},
     ("workload.expert_overlap=true",), r"Expert overlap must be off .* interleaved stages"),
    ("megatron", "mixtral-8x7b", {"dp": 64, "ep": 8, "zero": 1, "recompute": "moe"},
     ("workload.expert_overlap=true",), r"Expert overlap must be off .* other than moe"),
    ("torchtitan", "qwen3-30b-a3b", {"dp": 64, "ep": 8, "zero": 3}, ('workload.dispatch="hybrid"',),
     r"Expert dispatch must be all_to_all for torchtitan"),
    ("deepspeed", "mixtral-8x7b", {"dp": 64, "ep": 8, "zero": 1}, ("workload.expert_overlap=true",),
     r"Expert overlap must be off for DeepSpeed"),
    ("astra-sim", "mixtral-8x7b", {"dp": 64, "ep": 8, "zero": 1},
     ('workload.dispatch="once_per_node"',), r"Expert dispatch must be all_to_all for ASTRA"),
    ("megatron", "bloom-176b", {"dp": 64}, (), r"Model must not need ALiBi"),
    ("nemo", "mpt-7b", {"dp": 64}, (), r"Model must not need ALiBi"),
    ("megatron", "grok-1", {"dp": 64}, (), r"must not need norms behind attention and MLP"),
    ("nemo", "bert-large", {"dp": 64}, (), r"Model must be a decoder"),
    ("megatron", "bert-large", {"dp": 32, "cp": 2}, (),
     r"Context parallel \(cp\) must be 1 for an encoder"),
    ("torchtitan", "gpt3-13b", {"dp": 64, "zero": 3}, (),
     r"Model must have the sizes of a model that torchtitan ships"),
]  # fmt: skip


def check_sentence(error: ExportRefused) -> None:
    """One sentence in the words of forms and plans: field, rule, value, remedy."""
    text = str(error)
    assert text.endswith(".")
    assert text[0].isupper()
    assert ", but is " in text
    assert ": " in text
    assert "\n" not in text
    assert not re.search(
        r"\b(plan|search|workload)\.\w|\b(True|False|1f1b|gpipe)\b|--|(?<!\w)'", text
    ), text
    assert isinstance(error, InputError)
    assert str(pickle.loads(pickle.dumps(error))) == text


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
        ExportRefused, match=r"Order of devices must fill node after node.*export for Slurm"
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
        ExportRefused, match=r"Number of devices used must be the same on every node"
    ):
        exported(target, scenario(), dp=12 // 3, tp=1, pp=3, zero=0)
    hosts = str(exported("deepspeed", scenario(), dp=4, pp=3, zero=1,
                         cuts=[0, 12, 23, 34]).files["hostfile"])  # fmt: skip
    assert "node0000 slots=8\nnode0001 slots=4\n" in hosts


@pytest.mark.parametrize("target", LAUNCHED)
def test_stages_that_recompute_differently(target: str) -> None:
    """None of them has a choice per stage."""
    with pytest.raises(ExportRefused, match=r"Recomputation must be the same in every stage"):
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
            ExportRefused, match=r"Division of a stage's layers must be the same in all"
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


def test_every_field_has_words() -> None:
    """Whichever rule is broken: all fields that refusals name are called as people see them."""
    keys = re.compile(r"\b(?:plan|search|workload)\.[a-z_]+")
    texts = re.compile(r'"(?:[^"\n])*"')
    named = {
        key
        for path in Path(exporters.__file__).parent.glob("*.py")
        for text in texts.findall(path.read_text())
        for key in keys.findall(re.sub(r"\{[^{}]*\}", "", text))
    } - {"plan.args"}  # a file
    assert len(named) > 30
    for key in sorted(named):
        words = str(ExportRefused(key, f"must be as {key} is", 1, f"pin {key} to 2"))
        assert not keys.search(words)
        assert "_" not in words
        assert words.lower().count(words[: words.index(" must be")].lower()) == 3


def test_values_are_in_plain_words() -> None:
    """Lists are read, not printed, and what is said twice is said once."""
    half = {"dp": 16, "pp": 4, "zero": 0, "stage_recompute": ["full", "none"] * 2}
    with pytest.raises(ExportRefused, match=r"but is full and none: pin recomputation to one"):
        exported("megatron", scenario(), **half)
    with pytest.raises(ExportRefused, match=r"but is 4 and 8: use whole nodes"):
        exported("megatron", scenario(), dp=4, pp=3, zero=0)
    with pytest.raises(ExportRefused, match=r"but is on: set sequence parallel \(sp\) to off"):
        exported("deepspeed", scenario(), dp=32, tp=2, zero=1, sp=True)


@pytest.mark.parametrize("to", ["jax", []])
def test_unknown_targets(to: Any) -> None:
    """The message lists those that there are."""
    with pytest.raises(InputError, match=r"to must be a known target, but is .*: pick megatron, "):
        nest.export("llama2-7b-64-h100", to)
