"""One optimizer step of a tiny model with our files: what happens beside what was planned.

What makes a step has a module each: ``deepspeed_steps``, ``trainer_steps`` (transformers),
``torchtitan_steps``, ``maxtext_steps``, ``megatron_steps``.
"""

import json
import math
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import Any

from benchmarks.outside.tool import BUILD, Row, Tool
from nest_core.api.price import given_plan
from nest_core.costs import REPLAYED, Point, Report, price
from nest_core.interop.exporters import ExportRefused, chakra, export_plan
from nest_core.interop.exporters.astra_workload import TraceStep, groups_of, workload
from nest_core.scenario import ScenarioValues, load_scenario

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 256,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
"""A model of 181 thousand parameters, of which the others are made."""
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
NEAR = 0.02
"""Of a number, within which it is as planned; shards are padded."""
KINDS = {
    chakra.ALL_REDUCE: "all-reduce",
    chakra.ALL_GATHER: "all-gather",
    chakra.REDUCE_SCATTER: "reduce-scatter",
    chakra.ALL_TO_ALL: "all-to-all",
}


@dataclass(frozen=True, slots=True)
class TinyJob:
    """A plan of a tiny model.

    Parameters
    ----------
    plan : str
        As a user writes it.
    model : dict
        Its configuration, as Hugging Face has it.
    batch, sequence : int
        Sequences of a step, and tokens of each.
    settings : tuple of str
        Of the scenario.
    """

    plan: str
    model: dict[str, Any]
    batch: int
    sequence: int
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the plan behind its model."""
        return f"{self.model['model_type']} {self.plan}"

    def scenario(self, folder: str) -> ScenarioValues:
        """Return its scenario, whose model lies in a folder of its target."""
        file = BUILD / "tiny" / folder / f"{self.name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self.model))
        return load_scenario(
            "llama2-7b-64-h100",
            [
                f'workload.model="{file}"',
                'fabric="h100-spine-leaf-64"',
                f"workload.global_batch_sequences={self.batch}",
                f"workload.sequence_length_tokens={self.sequence}",
                *self.settings,
            ],
        )


def stepped(
    tool: Tool,
    target: str,
    jobs: list[TinyJob],
    quantities: tuple[str, ...] = (),
    program: str = "",
) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows of a target, whose program makes the step of all jobs, and what it saw.

    Parameters
    ----------
    quantities : tuple of str
        Names of what is compared, as `plan_quantities` has them; empty: all that were looked at.
    program : str
        What makes the steps, ``inside/steps_PROGRAM.py``; empty: it is called as the target.
    """
    program = program or target
    folder = BUILD / "plans" / f"{program}-steps"
    shutil.rmtree(folder, ignore_errors=True)
    cases, planned, result = [], {}, []
    for job in jobs:
        scenario = job.scenario(program)
        plan = given_plan(scenario, scenario.problem(), job.plan).plan
        report = price(scenario.problem(plan.recompute), plan)
        try:
            bundle = export_plan(target, scenario, report)
        except ExportRefused as error:
            result.append(tool.row(f"one step of {job.name}", 1, 0, f"we refuse it: {error}"))
            continue
        (folder / job.name).mkdir(parents=True)
        for file, content in bundle.files.items():
            (folder / job.name / file).write_text(str(content))
        planned[job.name] = plan_quantities(scenario, report)
        cases.append(
            {
                "name": job.name,
                "ranks": plan.devices_used,
                "batch": job.batch,
                "sequence": job.sequence,
                "plan": plan.to_json(),
                "config": job.model,
                "axes": list(planned[job.name]["groups"]),
            }
        )
    (folder / "cases.json").write_text(json.dumps(cases))
    tool.run(f"steps_{program}.py", folder)
    answers = json.loads((folder / "answers.json").read_text())
    for name, meant in planned.items():
        if "error" in answers[name]:
            result.append(tool.row(f"one step of {name}", 1, 0, answers[name]["error"]))
            continue
        happened = seen_quantities(answers[name]["ranks"])
        pairs = {key: (meant[key], happened[key]) for key in quantities or meant if key in happened}
        result.append(beside(tool, f"one step of {name}", pairs))
    return result, answers


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


def beside(tool: Tool, what: str, pairs: dict[str, tuple[Any, Any]]) -> Row:
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
