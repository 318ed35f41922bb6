"""One optimizer step of a tiny model with our files: what happens beside what was planned."""

import json
import math
import shutil
from collections import Counter
from typing import Any

from benchmarks.outside import deepspeed, torchtitan
from benchmarks.outside.tool import BUILD, Row, Tool
from nest_core.api.price import given_plan
from nest_core.costs import REPLAYED, Point, Report, price
from nest_core.interop.exporters import ExportRefused, chakra, export_plan
from nest_core.interop.exporters.astra_workload import TraceStep, groups_of, workload
from nest_core.scenario import ScenarioValues, load_scenario

TOOL = deepspeed.TOOL
SMALL, DEBUG, EXPERTS = (
    {
        "model_type": kind,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "vocab_size": words,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
    }
    for kind, hidden, inner, layers, heads, key_heads, words in (
        ("llama", 64, 128, 4, 8, 4, 256),
        ("llama", 256, 768, 6, 16, 16, 2048),
        ("qwen3_moe", 256, 768, 8, 16, 8, 2048),
    )
)
EXPERTS |= {
    "head_dim": 128,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
}
"""Models of 181 thousand parameters, and of 6 and 300 million: torchtitan's debug models."""
BATCH, SEQUENCE = 8, 256
NEAR = 0.02
"""Of a number, within which it is as planned; shards are padded."""
DEEPSPEED = (
    "dp=2,zero=0", "dp=4,zero=1", "dp=4,zero=2", "dp=2,zero=3", "dp=4,zero=3",
    "dp=2,zero=1,micro_batch=2", "dp=1,tp=2,zero=0", "dp=2,tp=2,zero=0", "dp=2,tp=2,zero=1",
    "dp=2,tp=2,zero=2", "dp=2,tp=2,zero=3", "dp=2,pp=2,zero=0", "dp=2,pp=2,zero=1",
    "dp=2,pp=2,zero=1,recompute=full",
)  # fmt: skip
TORCHTITAN = (
    "dp=2,zero=0", "dp=2,zero=2", "dp=2,zero=3", "dp=2,zero=3,micro_batch=4",
    "dp=2,zero=3,recompute=full", "dp=4,zero=2,zero_group=2", "dp=4,zero=3,zero_group=2",
    "dp=1,tp=2,sp=false", "dp=2,tp=2,sp=true,zero=3", "dp=2,cp=2,zero=3",
    "dp=2,cp=2,zero=3,recompute=full", "dp=2,pp=2,zero=0", "dp=2,pp=2,zero=2", "dp=2,pp=2,zero=3",
    "dp=2,pp=2,zero=2,schedule=interleaved,interleave=2",
    "dp=2,pp=2,zero=3,schedule=interleaved,interleave=2",
    "dp=2,pp=2,zero=2,schedule=interleaved_zb,interleave=2",
    "dp=2,pp=2,zero=2,schedule=zbv,interleave=2", "dp=2,pp=2,zero=3,schedule=zbv,interleave=2",
    "dp=2,pp=2,zero=0,schedule=dualpipev,interleave=2", "dp=4,pp=2,zero=3,zero_group=2",
    "dp=2,tp=2,pp=2,sp=true,zero=3",
)  # fmt: skip
KINDS = {
    chakra.ALL_REDUCE: "all-reduce",
    chakra.ALL_GATHER: "all-gather",
    chakra.REDUCE_SCATTER: "reduce-scatter",
    chakra.ALL_TO_ALL: "all-to-all",
}


def tiny(config: dict[str, Any], *settings: str) -> ScenarioValues:
    """Return the scenario of a tiny model."""
    file = BUILD / "tiny-{model_type}-{hidden_size}".format(**config) / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(config))
    return load_scenario(
        "llama2-7b-64-h100",
        [
            f'workload.model="{file}"',
            'fabric="h100-spine-leaf-64"',
            f"workload.global_batch_sequences={BATCH}",
            f"workload.sequence_length_tokens={SEQUENCE}",
            'workload.context="all_gather"',
            *settings,
        ],
    )


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all of them."""
    return [
        *stepped(torchtitan.TOOL, "torchtitan", DEBUG, TORCHTITAN),
        *stepped(torchtitan.TOOL, "torchtitan", EXPERTS, ("dp=2,ep=2,zero=3",)),
        *stepped(deepspeed.TOOL, "deepspeed", SMALL, DEEPSPEED),
    ]


def stepped(tool: Tool, target: str, config: dict[str, Any], plans: tuple[str, ...]) -> list[Row]:
    """Return the rows of a target and model, whose program makes the step of all plans."""
    folder = BUILD / "plans" / f"{target}-steps"
    shutil.rmtree(folder, ignore_errors=True)
    cases, planned, result = [], {}, []
    for plan in plans:
        narrow = target == "deepspeed" and "zero=0" in plan
        scenario = tiny(config, *["workload.gradient_bytes=2"] * narrow)
        problem = scenario.problem()
        given = given_plan(scenario, problem, plan).plan
        report = price(scenario.problem(given.recompute), given)
        try:
            bundle = export_plan(target, scenario, report)
        except ExportRefused as error:
            result.append(tool.row(f"one step of {plan}", 1, 0, f"we refuse it: {error}"))
            continue
        (folder / plan).mkdir(parents=True)
        for file, content in bundle.files.items():
            (folder / plan / file).write_text(str(content))
        planned[plan] = plan_quantities(scenario, report)
        cases.append(
            {
                "name": plan,
                "ranks": given.devices_used,
                "batch": BATCH,
                "sequence": SEQUENCE,
                "plan": given.to_json(),
                "config": config,
            }
        )
    (folder / "cases.json").write_text(json.dumps(cases))
    tool.run(f"steps_{target}.py", folder)
    answers = json.loads((folder / "answers.json").read_text())
    for plan, quantities in planned.items():
        if "error" in answers[plan]:
            result.append(tool.row(f"one step of {plan}", 1, 0, answers[plan]["error"]))
            continue
        happened = seen_quantities(answers[plan]["ranks"])
        pairs = {
            name: (quantities[name], happened[name]) for name in quantities if name in happened
        }
        result.append(_beside(tool, f"one step of {plan}", pairs))
    return result


def plan_quantities(scenario: ScenarioValues, report: Report) -> dict[str, Any]:
    """Return what a plan says of one step, by name; bytes are those of every rank, in turn."""
    plan, problem = report.plan, scenario.problem(report.plan.recompute)
    point, ranks = plan.point, range(plan.devices_used)
    stages = [int(stage) for stage in point.layout.stage_of(len(ranks))]
    steps = [] if point.schedule in REPLAYED else workload(problem, plan)
    pipelines = {"pp": point.layout.devices.reshape(point.pp, -1).T} if point.pp > 1 else {}
    return {
        "sequences": scenario.batch,
        "micro-batches": point.micro_batches(scenario.batch),
        "gradient's norm over that of the plan's batch": 1.0,
        "bytes of weights": [report.stages[stage].memory.weights for stage in stages],
        "bytes of gradients": [report.stages[stage].memory.gradients for stage in stages],
        "bytes of the optimizer": [report.stages[stage].memory.optimizer for stage in stages],
        "groups": {
            axis: sorted(sorted(group) for group in groups.tolist())
            for axis, groups in (groups_of(point).members | pipelines).items()
            if axis != "tied"
        },
    } | (
        {}  # traces are of other schedules
        if point.schedule in REPLAYED
        else {"bytes of collectives": [_planned_bytes(steps[stage], point) for stage in stages]}
    )


def _planned_bytes(steps: list[TraceStep], point: Point) -> dict[str, int]:
    """Return bytes of whole tensors by kind and axis."""
    members = {axis: rows.shape[1] for axis, rows in groups_of(point).members.items()}
    sizes: Counter[str] = Counter()
    for step in steps:
        if step.kind == chakra.COLLECTIVE and step.axis != "tied":
            whole = members[step.axis] if step.op == chakra.ALL_GATHER else 1
            sizes[f"{KINDS[step.op]} {step.axis}"] += step.size * whole
    return dict(sizes)


def seen_quantities(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the same of what every rank saw; what no program looked at is left out."""
    first = ranks[0]
    axes = [
        axis for axis in first["groups"] if any(len(rank["groups"][axis]) > 1 for rank in ranks)
    ]
    seen = {
        "groups": {
            axis: [list(group) for group in sorted({tuple(rank["groups"][axis]) for rank in ranks})]
            for axis in axes
        },
        "bytes of weights": [rank["parameter_bytes"] for rank in ranks],
        "bytes of the optimizer": [rank["optimizer_bytes"] for rank in ranks],
        "bytes of collectives": [_seen_bytes(rank) for rank in ranks],
    }
    if "gradient_bytes" in first:
        seen["bytes of gradients"] = [rank["gradient_bytes"] for rank in ranks]
    if "micro_batches" in first:
        seen |= {"sequences": first["sequences"], "micro-batches": first["micro_batches"]}
    if "norm" in first:
        ratio = first["norm"] / first["reference"]
        seen["gradient's norm over that of the plan's batch"] = round(ratio, 2)
    return seen


def _seen_bytes(rank: dict[str, Any]) -> dict[str, int]:
    """Return bytes by kind and axis; the group is named where no axis has it."""
    axes = {tuple(group): axis for axis, group in rank["groups"].items()}
    sizes: Counter[str] = Counter()
    for kind, group, size in rank["collectives"]:
        axis = axes.get(tuple(group), f"ranks {group}")
        # Experts' ranks may be those of the data.
        axis = "ep" if kind == "all-to-all" and group == rank["groups"].get("ep") else axis
        sizes[f"{kind} {axis}"] += size
    return dict(sizes)


def _beside(tool: Tool, what: str, pairs: dict[str, tuple[Any, Any]]) -> Row:
    """Return the row of a plan: how many quantities are as planned, and all of them in words."""
    same = {name: _alike(*pair) for name, pair in pairs.items()}
    words = [
        f"{name} {_words(happened)}" + ("" if same[name] else f", planned {_words(planned)}")
        for name, (planned, happened) in sorted(pairs.items(), key=lambda item: same[item[0]])
    ]
    return tool.row(what, len(pairs), sum(same.values()), "; ".join(words))


def _alike(planned: Any, happened: Any) -> bool:
    """Return whether two quantities are the same, numbers within `NEAR`."""
    if isinstance(planned, dict):
        return planned.keys() == happened.keys() and all(
            _alike(value, happened[key]) for key, value in planned.items()
        )
    if isinstance(planned, list):
        pairs = zip(planned, happened, strict=False)
        return len(planned) == len(happened) and all(_alike(a, b) for a, b in pairs)
    return math.isclose(planned, happened, rel_tol=NEAR)


def _words(value: Any) -> str:
    """Return a quantity in words; of ranks that are alike, one."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(entry)}" for key, entry in value.items()) or "none"
    if isinstance(value, list):
        words = [_words(entry) for entry in value]
        if (value and not isinstance(value[0], (list, int))) or len(set(words)) == 1:
            return " | ".join(dict.fromkeys(words))
        return " ".join(f"[{word}]" if isinstance(value[0], list) else word for word in words)
    return f"{value:,.0f}" if abs(value) > 9 else f"{value:g}"
