"""MaxText's own reading of our exports, and JAX's meshes on slices beside ours.

MaxText asks for Python 3.12.
"""

import itertools
import json
import math

from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import BUILD, Row, Tool, read_cases
from nest_core.interop.exporters.maxtext import mesh_dimensions
from nest_core.interop.exporters.releases import PACKAGES

VERSION = PACKAGES["maxtext"]
TOOL = Tool(
    "maxtext",
    VERSION,
    (
        "jax==0.11.2", "flax==0.12.12", "optax", "pydantic", "omegaconf", "absl-py", "packaging",
        "pathwaysutils", "jinja2", "qwix", "aqtp", "tokamax", "huggingface_hub", "transformers",
        "grain", "drjax", "pillow", "tiktoken", "sentencepiece", "sympy",
    ),
    alone=(f"maxtext=={VERSION}",),
    python="3.12",
)  # fmt: skip
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
    return [*export_rows(TOOL, "maxtext", "maxtext_plans.py", MODELS, PINS), meshes()]


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
