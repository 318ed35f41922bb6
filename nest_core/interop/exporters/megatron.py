"""Megatron-LM: arguments of ``pretrain_gpt.py`` and a script to start it.

Options of ``megatron/training/arguments.py`` and ``megatron/training/config``; models, stages and
the rules that its checks impose in `nest_core.interop.exporters.megatron_core`. Encoders are
trained by ``examples/bert/pretrain_bert.py``, from whose folder Python would not find Megatron's
packages by itself. ZeRO 1 is its distributed optimizer, ZeRO 2 and 3 its fully sharded data
parallelism.

References
----------
.. [1] Megatron Core developer guide, "Megatron FSDP": its four options, and that it composes with
       tensor, expert and context parallelism.
"""

import shlex
from collections.abc import Iterator, Mapping

from nest_core.costs import Plan, Report
from nest_core.costs.megatron import SHARDING
from nest_core.interop.exporters.megatron_core import (
    Value,
    architecture,
    check_megatron,
    environment,
    layout_notes,
    overlap_fields,
    recompute_fields,
    stage_fields,
    swapped,
)
from nest_core.interop.exporters.values import (
    ExportFiles,
    array,
    exports,
    header,
    refuse_first,
    torchrun,
)
from nest_core.scenario import ScenarioValues
from nest_core.workload.recomputation import modules_of

__all__ = ["export_megatron"]

_NAME = "Megatron-LM"

Words = tuple[str, ...]

_RENAMED = {
    "num_moe_experts": "--num-experts",
    "layernorm_zero_centered_gamma": "--apply-layernorm-1p",
    "virtual_pipeline_model_parallel_size": "--num-virtual-stages-per-pipeline-rank",
    "num_layers_in_first_pipeline_stage": "--decoder-first-pipeline-num-layers",
    "num_layers_in_last_pipeline_stage": "--decoder-last-pipeline-num-layers",
}
_ACTIVATIONS = {
    "gelu": (),
    "swiglu": (("--swiglu",),),
    "squared_relu": (("--squared-relu",),),
    "quick_geglu": (("--quick-geglu",),),
}
_PRECISION: Mapping[str, tuple[Words, ...]] = {
    "bf16": (("--bf16",),),
    "fp16": (("--fp16",),),
    "fp32": (),
    "fp8": (("--bf16",), ("--fp8-format", "hybrid")),
}


def export_megatron(scenario: ScenarioValues, report: Report, steps: int = 100) -> ExportFiles:
    """Return launch script and plan arguments of a priced plan.

    Parameters
    ----------
    scenario : ScenarioValues
    report : Report
    steps : int
        Iterations that the script runs.

    Raises
    ------
    Refused
        Where Megatron-LM cannot express the plan.
    """
    plan = report.plan
    rank_mapping = check_megatron(scenario, plan, _NAME)
    point = plan.point
    refuse_first(
        (
            scenario.precision == "fp8"
            and {"moe_act", "layernorm"} & {*modules_of(plan.recompute[0])},
            "plan.recompute",
            f"must name neither moe_act nor layernorm in fp8 for {_NAME}, whose delayed scaling "
            "excludes them",
            plan.recompute[0],
            "pin search.recompute to none or full",
        ),
        (
            point.interleave > 1 and point.pp == 2 and not scenario.hidden.pp,
            "plan.pp",
            f"must be more than 2 for {_NAME} where virtual stages hide none of what they send, "
            "as two ranks would send one another several messages at once",
            point.pp,
            "pin search.interleave to 1, or choose another workload.overlap",
        ),
    )
    _check_offload(scenario, plan)
    chosen = plan_words(plan, scenario.batch)
    bert = scenario.model.family == "bert"
    program = "examples/bert/pretrain_bert.py" if bert else "pretrain_gpt.py"
    words = (
        ("--mock-data",),
        ("--tokenizer-type", "NullTokenizer"),
        ("--vocab-size", str(scenario.model.vocabulary)),
    )
    data = (
        ': "${1:?the data and tokenizer options of pretrain_bert.py}"\nDATA=("$@")\n'
        if bert
        else f'if (($#)); then DATA=("$@"); else {array("DATA", words).rstrip()}; fi\n'
    )
    script = (
        "#!/usr/bin/env bash\n"
        + header(scenario, plan, "megatron")
        + "# Run on every node from Megatron-LM's folder; its arguments replace the data options.\n"
        "set -euo pipefail\n"
        + exports(environment(scenario, plan.point))
        + ('export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"\n' if bert else "")
        + array("PLAN", chosen)
        + array("MODEL", _model_words(architecture(scenario, _NAME)))
        + array("TRAINING", _training_words(scenario, plan, steps))
        + data
        + torchrun(
            rank_mapping,
            [program, *(f'"${{{name}[@]}}"' for name in ("PLAN", "MODEL", "TRAINING", "DATA"))],
        )
    )
    return ExportFiles(
        {"launch.sh": script, "plan.args": "".join(f"{shlex.join(words)}\n" for words in chosen)},
        (
            "Rotary base, norm epsilon, learning rate and router losses are Megatron-LM's "
            "defaults or placeholders: the scenario does not hold them.",
            *layout_notes(plan),
        ),
    )


def _check_offload(scenario: ScenarioValues, plan: Plan) -> None:
    """Refuse what Megatron-LM does not offload."""
    layers = plan.offload.activations * scenario.model.blocks
    refuse_first(
        (
            bool(layers) and (layers != round(layers) or layers >= scenario.model.blocks),
            "plan.offload",
            f"must name activations of whole layers, fewer than all {scenario.model.blocks}, for "
            f"{_NAME}",
            plan.offload.words,
            "choose another share",
        ),
        (
            bool(layers) and plan.point.pp > 1,
            "plan.pp",
            f"must be 1 where activations are offloaded for {_NAME}",
            plan.point.pp,
            "pin search.pp to 1",
        ),
        (
            bool(plan.offload.optimizer)
            and (
                plan.point.zero != 1 or scenario.optimizer != "adam" or scenario.precision == "fp32"
            ),
            "plan.offload",
            f"must leave the optimizer on the device but for Adam at ZeRO 1 in 16 or 8 bits for "
            f"{_NAME}, which offloads its precision-aware optimizer only",
            plan.offload.words,
            "pin search.zero to 1, or search.offload to none",
        ),
    )


def plan_words(plan: Plan, batch: int) -> list[Words]:
    """Return the options that say the plan, one with its value each."""
    point = plan.point
    stages, offload = stage_fields(plan), plan.offload
    if "pipeline_model_parallel_layout" in stages:  # which has the chunks in it
        stages.pop("virtual_pipeline_model_parallel_size", None)
    return [
        ("--tensor-model-parallel-size", str(point.tp)),
        ("--pipeline-model-parallel-size", str(point.pp)),
        ("--context-parallel-size", str(point.cp)),
        ("--expert-model-parallel-size", str(point.ep)),
        ("--micro-batch-size", str(point.micro_batch)),
        ("--global-batch-size", str(batch)),
        *_where(point.etp != point.tp, ("--expert-tensor-parallel-size", str(point.etp))),
        *_where(point.sp, ("--sequence-parallel",)),
        *_options(stages),
        *_where(swapped(point), ("--use-tp-pp-dp-mapping",)),
        *_options(recompute_fields(plan)),
        *_where(
            offload.activations,
            ("--cpu-offloading-num-layers", str(round(offload.activations * (plan.cuts[-1] - 2)))),
        ),
        *_where(
            offload.optimizer,
            ("--optimizer-cpu-offload",),
            ("--optimizer-offload-fraction", f"{offload.optimizer:g}"),
            ("--use-precision-aware-optimizer",),
        ),
        *_where(point.zero, ("--use-distributed-optimizer",)),
        *_where(
            point.instances > 1, ("--num-distributed-optimizer-instances", str(point.instances))
        ),
        *_where(
            point.zero > 1,
            ("--use-megatron-fsdp",),
            ("--data-parallel-sharding-strategy", SHARDING[point.zero]),
            ("--no-gradient-accumulation-fusion",),
            ("--ckpt-format", "fsdp_dtensor"),
        ),
    ]


def _where(holds: object, *words: Words) -> tuple[Words, ...]:
    """Return options of a condition that holds; none of one that does not."""
    return words if holds else ()


def _model_words(fields: Mapping[str, Value]) -> Iterator[Words]:
    for name, value in fields.items():
        if name == "activation":
            yield from _ACTIVATIONS[str(value)]
        elif name == "tied":
            yield from [] if value else [("--untie-embeddings-and-output-weights",)]
        elif name == "add_bias_linear":
            yield from [] if value else [("--disable-bias-linear",)]
        elif name == "num_query_groups":
            yield from (("--group-query-attention",), ("--num-query-groups", str(value)))
        else:
            yield from _options({name: value})


def _options(fields: Mapping[str, Value]) -> list[Words]:
    """Return configuration fields as the flags that set them."""
    return [
        words
        for name, value in fields.items()
        for words in _option(_RENAMED.get(name, "--" + name.replace("_", "-")), value)
    ]


def _option(flag: str, value: Value) -> list[Words]:
    if isinstance(value, bool):
        return [(flag,)] if value else []
    if flag == "--moe-layer-freq" and isinstance(value, tuple):
        return [(flag, f"([0]*{value.count(0)}+[1]*{value.count(1)})")]
    if flag == "--recompute-modules" and isinstance(value, tuple):
        return [(flag, *map(str, value))]
    return [(flag, (",".join(map(str, value)) if isinstance(value, tuple) else str(value)))]


def _training_words(scenario: ScenarioValues, plan: Plan, steps: int) -> list[Words]:
    point = plan.point
    precision, sums = scenario.precision, scenario.gradient_bytes
    hidden = scenario.hidden
    return [
        *_PRECISION[precision],
        ("--optimizer", "sgd" if scenario.optimizer == "sgd" else "adam"),
        *_where(
            scenario.optimizer == "adam_8bit",
            ("--use-precision-aware-optimizer",),
            ("--exp-avg-dtype", "fp8"),
            ("--exp-avg-sq-dtype", "fp8"),
        ),
        *_where(sums == 2.0 and precision in ("bf16", "fp8"), ("--grad-reduce-in-bf16",)),
        *_where(sums == 4.0 and precision == "fp16", ("--accumulate-allreduce-grads-in-fp32",)),
        ("--attention-backend", scenario.attention),
        *_where(
            point.cp > 1, ("--cp-comm-type", "p2p" if scenario.context == "ring" else "all_gather")
        ),
        *_where(hidden.dp, ("--overlap-grad-reduce",)),
        *_where(hidden.dp and point.zero, ("--overlap-param-gather",)),
        *_where(point.interleave > 1 and not hidden.pp, ("--no-overlap-p2p-communication",)),
        *_options(overlap_fields(scenario, point)),
        ("--lr", "1.0e-4"),
        ("--train-iters", str(steps)),
        ("--eval-iters", "0"),
        ("--log-interval", "1"),
        ("--log-throughput",),
    ]
