"""One optimizer step of a tiny model as MaxText compiles our files: planned beside compiled."""

import json
import shutil
from typing import Any

from benchmarks.outside import maxtext
from benchmarks.outside.steps import _beside, plan_quantities, seen_quantities
from benchmarks.outside.tool import BUILD, Row, Tool
from nest_core.api.price import given_plan
from nest_core.costs import price
from nest_core.interop.exporters import ExportRefused, export_plan
from nest_core.scenario import ScenarioValues, load_scenario

TOOL = maxtext.TOOL
BATCH, SEQUENCE = 16, 256
"""More tokens than a layer is wide, as real models have."""
SIZES = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 256, "max_position_embeddings": SEQUENCE,
    "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "llama": SIZES | {"model_type": "llama"},
    "mixtral": SIZES | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
}
PLANS = (
    ("llama", "dp=4,zero=0"), ("llama", "dp=4,zero=1"), ("llama", "dp=4,zero=3"),
    ("llama", "dp=4,zero=3,recompute=selective"), ("llama", "dp=4,zero=3,recompute=full"),
    ("llama", "dp=1,tp=2,sp=false,zero=0"), ("llama", "dp=1,tp=2,sp=true,zero=0"),
    ("llama", "dp=2,tp=2,sp=true,zero=3"), ("llama", "dp=2,cp=2,zero=3"),
    ("llama", "dp=4,zero=3,zero_group=2"),
    ("llama", "dp=2,pp=2,zero=3,schedule=gpipe"), ("llama", "dp=2,pp=2,zero=0,schedule=gpipe"),
    ("mixtral", "dp=4,zero=3"), ("mixtral", "dp=4,ep=2,zero=3"), ("mixtral", "dp=4,ep=4,zero=3"),
)  # fmt: skip

QUANTITIES = (
    "sequences", "micro-batches", "bytes of the optimizer", "groups", "bytes of collectives"
)  # fmt: skip
"""Weights of 16 bits are copies of the optimizer's that a step makes."""


def tiny(model: str, sequence: int, *settings: str) -> ScenarioValues:
    """Return the scenario of a tiny model."""
    file = BUILD / f"tiny-{model}" / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(MODELS[model]))
    return load_scenario(
        "llama2-7b-64-h100",
        [
            f'workload.model="{file}"',
            'fabric="h100-spine-leaf-64"',
            f"workload.global_batch_sequences={BATCH}",
            f"workload.sequence_length_tokens={sequence}",
            *settings,
        ],
    )


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    chip = ('accelerator="tpu-v4"', 'workload.context="all_gather"')
    result, answers = compared(TOOL, "maxtext", PLANS, QUANTITIES, SEQUENCE, *chip)
    return [*result, recomputed(answers)]


def compared(
    tool: Tool,
    target: str,
    plans: tuple[tuple[str, str], ...],
    quantities: tuple[str, ...],
    sequence: int,
    *settings: str,
) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows of plans of tiny models, and what the target's program saw of each.

    Parameters
    ----------
    quantities : tuple of str
        Names of what is compared, as `plan_quantities` has them.
    sequence : int
        Tokens.
    """
    folder = BUILD / "plans" / f"{target}-steps"
    shutil.rmtree(folder, ignore_errors=True)
    cases, planned, result = [], {}, []
    for model, words in plans:
        scenario = tiny(model, sequence, *settings)
        plan = given_plan(scenario, scenario.problem(), words).plan
        report = price(scenario.problem(plan.recompute), plan)
        name = f"{model} {words}"
        try:
            bundle = export_plan(target, scenario, report)
        except ExportRefused as error:
            result.append(tool.row(f"one step of {name}", 1, 0, f"we refuse it: {error}"))
            continue
        (folder / name).mkdir(parents=True)
        for file, content in bundle.files.items():
            (folder / name / file).write_text(str(content))
        planned[name] = plan_quantities(scenario, report)
        axes = list(planned[name]["groups"])
        cases.append({"name": name, "ranks": plan.devices_used, "axes": axes})
    (folder / "cases.json").write_text(json.dumps(cases))
    tool.run(f"steps_{target}.py", folder)
    answers = json.loads((folder / "answers.json").read_text())
    for name, meant in planned.items():
        if "error" in answers[name]:
            result.append(tool.row(f"one step of {name}", 1, 0, answers[name]["error"]))
            continue
        happened = seen_quantities(answers[name]["ranks"])
        pairs = {key: (meant[key], happened[key]) for key in quantities if key in happened}
        result.append(_beside(tool, f"one step of {name}", pairs))
    return result, answers


def recomputed(answers: dict[str, Any]) -> Row:
    """Return the row of what recomputation does to the products of the same plan."""
    flops = {
        words.rpartition("recompute=")[2] if "recompute" in words else "none": answers[
            f"{model} {words}"
        ]["ranks"][0]["flops"]
        for model, words in PLANS
        if model == "llama" and words.startswith("dp=4,zero=3") and "group" not in words
    }
    words = ", ".join(f"{name} {flops[name] / flops['none']:.3f}" for name in flops)
    return TOOL.row("FLOPs of a step by recomputation, over those of none", None, None, words)
