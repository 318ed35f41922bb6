"""MaxText's own reading of our exports, what its blocks keep, and JAX's meshes beside ours.

``tests/data/compiler/maxtext.csv`` has what a layer more keeps; it is traced again here.

MaxText asks for Python 3.12.
"""

import csv
import itertools
import json
import math

import nest_core as nest
from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import BUILD, ROOT, Row, Tool, read_cases
from nest_core.interop.exporters.maxtext import mesh_dimensions
from nest_core.interop.exporters.releases import PACKAGES

VERSION = PACKAGES["maxtext"]
TOOL = Tool(
    "maxtext",
    VERSION,
    (
        "jax==0.11.2", "flax==0.12.12", "optax", "pydantic", "omegaconf", "absl-py", "packaging",
        "pathwaysutils", "jinja2", "qwix", "aqtp", "tokamax", "huggingface_hub", "transformers",
        "grain", "drjax", "pillow", "tiktoken", "sentencepiece", "sympy", "libtpu==0.0.48.1",
        "requests",
    ),
    alone=(f"maxtext=={VERSION}",),
    python="3.12",
)  # fmt: skip
RESIDUALS = ROOT / "tests" / "data" / "compiler" / "maxtext.csv"
LEAST = {
    "schema": 1,
    "name": "residuals",
    "accelerator": "tpu-v4",
    "fabric": "tpu-v4-4x4x4",
    "workload": {
        "model": "llama3-8b",
        "sequence_length_tokens": 1536,
        "global_batch_sequences": 64,
        "precision": "bf16",
    },
}
"""One sequence a device."""
MODELS = ("llama3-8b", "mixtral-8x7b", "qwen3-8b", "qwen3-30b-a3b", "llama2-70b", "deepseek-v3")
PINS = (
    "search.zero=[0, 1, 3]",
    'search.recompute=["none", "full"]',
    'search.order=[["tp", "cp", "dp", "pp"]]',
    'search.schedule=["gpipe"]',
)
SLICES = ((4, 4), (8, 8), (16, 16), (2, 2, 4), (4, 4, 4), (4, 4, 8), (4, 8, 8))


def rows() -> list[Row]:
    """Return how many exports are read as meant, and how many meshes lie as ours do."""
    exports = export_rows(TOOL, "maxtext", "maxtext_plans.py", MODELS, PINS)
    return [*exports, residuals(), meshes()]


def residuals() -> Row:
    """Return of how many policies a layer more keeps what it did."""
    stored = list(csv.DictReader(RESIDUALS.read_text().splitlines()))
    folder = BUILD / "plans" / "residuals"
    cases = []
    for row in stored:
        scenario = nest.load(LEAST, {"workload.model": row["model"]})
        is_named = row["policy"].startswith("products")
        recompute = "none" if row["policy"].endswith("context") else "selective"
        plan = f"dp=64,zero=3,micro_batch=1,recompute={recompute if is_named else 'full'}"
        home = folder / f"{row['model']}-{row['policy']}"
        home.mkdir(parents=True, exist_ok=True)
        files = nest.export(scenario, "maxtext", plan).files
        (home / "nest_plan.yml").write_text(files["nest_plan.yml"])
        cases.append(
            {
                "file": str(home / "nest_plan.yml"),
                "fields": {} if is_named else {"remat_policy": row["policy"]},
                "dense_layers": scenario.values.model.dense_blocks,
            }
        )
    (folder / "cases.json").write_text(json.dumps(cases))
    TOOL.run("maxtext_residuals.py", folder)
    answers = json.loads((folder / "answers.json").read_text())
    alike = [answer == float(row["bytes"]) for row, answer in zip(stored, answers, strict=True)]
    return TOOL.row("bytes that a layer keeps, by policy, as before", len(stored), sum(alike))


def meshes() -> Row:
    """Return of how many meshes of three axes JAX and we agree whether they lie on a slice."""
    cases = []
    for shape in SLICES:
        sizes = [2**k for k in range(math.prod(shape).bit_length())]
        for degrees in itertools.product(sizes, repeat=3):
            if math.prod(degrees) == math.prod(shape):
                dimensions = mesh_dimensions(degrees, shape)
                case = {"name": f"{len(cases)}", "shape": shape, "degrees": degrees}
                cases.append(case | {"lies": dimensions is not None})
    folder = BUILD / "plans" / "meshes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.json").write_text(json.dumps(cases))
    answers = read_cases(TOOL, "maxtext_meshes.py", folder)
    agreed = sum(answer["accepted"] for answer in answers)
    remark = "" if agreed == len(answers) else next(a["reason"] for a in answers if a["reason"])
    return Row("jax", "0.11.2", "meshes on slices, ours beside", len(answers), agreed, remark)
