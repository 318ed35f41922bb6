"""Every option that an export writes is one that its framework knows.

The lists in ``tests/data/export`` hold names only, gathered from each framework's own parser,
configuration classes or manual pages; their first lines say which and of which version.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
from export_cases import drawn_plans, exported, known, priced, scenario
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.documents.presets import preset_names
from nest_core.interop.exporters import ExportRefused, export_plan

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")
MODELS = sorted(preset_names("models"))
SMALL = ("llama3-8b", "mixtral-8x7b", "gpt3-13b", "qwen3-8b")
VARIANTS: list[dict[str, Any]] = [
    {"dp": 64, "zero": 3, "recompute": "full"},
    {"dp": 64, "zero": 2},
    {"dp": 8, "tp": 2, "pp": 4, "sp": True, "zero": 1, "recompute": "full"},
    {"dp": 8, "cp": 8, "zero": 3},
    {"dp": 16, "pp": 4, "zero": 1, "order": ["tp", "cp", "pp", "dp"]},
    {"dp": 16, "pp": 4, "interleave": 2},
    {"dp": 16, "pp": 4, "schedule": "gpipe"},
]


def unquoted(script: str) -> str:
    """A script without its comments."""
    return "\n".join(line for line in script.splitlines() if not line.startswith("#"))


def files(target: str, model: str, fields: dict[str, Any], *sets: str) -> dict[str, str | bytes]:
    """Files of a plan; nothing where it is refused."""
    asked = scenario(model, "h100-spine-leaf-64", *sets)
    if asked.model.experts > 1 and "ep" not in fields:
        fields = fields | {"ep": 2 if fields["dp"] % 2 == 0 else 1}
    try:
        return dict(exported(target, asked, **fields).files)
    except ExportRefused:
        return {}


def check_torchrun(script: str, flags: set[str]) -> set[str]:
    """Split off torchrun's own options, which must be its own."""
    launcher = script[script.index("exec torchrun") :]
    own = set(FLAG.findall(re.split(r"\n  (?:pretrain_|train\.py|-m )", launcher)[0]))
    assert own <= known("torchrun")
    return flags - own


def check_megatron(contents: dict[str, str | bytes]) -> None:
    script = str(contents["launch.sh"])
    body = unquoted(script)
    flags = set(FLAG.findall(body[: body.index("exec torchrun")]))
    check_torchrun(body, set())
    assert flags
    assert flags <= known("megatron")
    assert set(FLAG.findall(str(contents["plan.args"]))) <= flags


def check_nemo(contents: dict[str, str | bytes]) -> None:
    fields = known("nemo")
    calls = [
        node
        for node in ast.walk(ast.parse(str(contents["train.py"])))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    seen = 0
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "get_mixed_precision_config":
            recipe = call.args[0]
            assert isinstance(recipe, ast.Constant)
            assert f"recipe.{recipe.value}" in fields
        elif name[:1].isupper():
            for word in call.keywords:
                assert f"{name}.{word.arg}" in fields
                seen += 1
    assert seen > 30
    check_torchrun(unquoted(str(contents["launch.sh"])), set())


def check_deepspeed(contents: dict[str, str | bytes]) -> None:
    keys = known("deepspeed")
    config = json.loads(contents["ds_config.json"])
    assert config.keys() <= keys
    for section in config:
        if isinstance(config[section], dict):
            assert {f"{section}.{key}" for key in config[section]} <= keys
    if "expert_parallel" in config:
        assert f"autoep preset {config['expert_parallel']['preset_model']}" in keys
    assert set(FLAG.findall(unquoted(str(contents["launch.sh"])))) <= keys
    for node in ast.walk(ast.parse(str(contents["nest_plan.py"]))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "PipelineModule":
            assert {f"PipelineModule.{word.arg}" for word in node.keywords} <= keys


def check_torchtitan(contents: dict[str, str | bytes]) -> None:
    names = known("torchtitan")
    module = str(contents["nest_plan.py"])
    package = re.search(r"torchtitan\.models\.(\w+) import model_registry", module)
    base = re.search(r"config_registry import (\w+)", module)
    flavour = re.search(r'model_registry\("([^"]+)"\)', module)
    assert package is not None
    assert base is not None
    assert flavour is not None
    assert f"{package[1]}.config_registry.{base[1]}" in names
    assert f"{package[1]}.model_registry.{flavour[1]}" in names
    assigned = set(re.findall(r"^    config\.([\w.]+) =", module, re.M))
    assert assigned - {"model_spec"} <= names
    schedule = re.search(r'pipeline_parallel_schedule = "(\w+)"', module)
    assert schedule is None or f"schedule.{schedule[1]}" in names
    check_torchrun(unquoted(str(contents["launch.sh"])), set())


def check_slurm(contents: dict[str, str | bytes]) -> None:
    options = known("slurm")
    job = str(contents["job.sbatch"])
    directives = re.findall(r"^#SBATCH (--[a-z-]+)", job, re.M)
    assert directives
    assert {f"sbatch {option}" for option in directives} <= options
    step = job[job.index("\nsrun ") :]
    assert {f"srun {option}" for option in FLAG.findall(step)} <= options


def check_astra_sim(contents: dict[str, str | bytes]) -> None:
    names = known("astra-sim")
    assert set(FLAG.findall(unquoted(str(contents["run.sh"])))) <= names
    assert {f"system {key}" for key in json.loads(contents["system.json"])} <= names
    assert {f"network {key}" for key in json.loads(contents["network.json"])} <= names
    written = contents["workload.0.et"]
    assert isinstance(written, bytes)
    words = set(re.findall(rb"(?:is|comm|pg)_[a-z_]{2,}", written))
    assert {f"attribute {word.decode()}" for word in words} <= names


def check_maxtext(contents: dict[str, str | bytes]) -> None:
    lines = unquoted(str(contents["nest_plan.yml"])).splitlines()
    keys = [line.partition(":")[0] for line in lines]
    assert keys[0] == "base_config"
    assert len(set(keys)) == len(keys)
    assert set(keys[1:]) <= known("maxtext")


CHECKS = {
    "megatron": check_megatron,
    "nemo": check_nemo,
    "deepspeed": check_deepspeed,
    "torchtitan": check_torchtitan,
    "maxtext": check_maxtext,
    "slurm": check_slurm,
    "astra-sim": check_astra_sim,
}


@pytest.mark.check
@pytest.mark.parametrize("target", sorted(set(CHECKS) - {"astra-sim"}))
def test_of_every_model(target: str) -> None:
    """A failure: a model's family, experts or latent attention need an option nobody knows."""
    written = 0
    for model in MODELS:
        for fields in VARIANTS:
            contents = files(target, model, fields)
            if contents:
                CHECKS[target](contents)
                written += 1
    assert written > 20


@pytest.mark.sampled(6)
@pytest.mark.parametrize("target", sorted(CHECKS))
@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_of_any_plan(target: str, data: st.DataObject) -> None:
    """Whatever is not refused is said in known options."""
    few = ("workload.global_batch_sequences=32",) if target == "astra-sim" else ()
    asked = scenario(data.draw(st.sampled_from(SMALL)), "h100-spine-leaf-64", *few)
    chosen = data.draw(drawn_plans(asked))
    assume(asked.batch % (chosen.point.dp * chosen.point.micro_batch) == 0)
    m = chosen.point.micro_batches(asked.batch)
    assume(chosen.point.interleave == 1 or m % chosen.point.pp == 0)
    assume(chosen.point.interleave * chosen.point.pp <= asked.model.blocks + 2)
    try:
        bundle = export_plan(target, asked, priced(asked, chosen))
    except ExportRefused:
        return
    CHECKS[target](dict(bundle.files))


@pytest.mark.parametrize("target", ["megatron", "nemo", "deepspeed", "torchtitan"])
@pytest.mark.parametrize(
    "setting",
    [
        'workload.precision="fp16"',
        'workload.precision="fp32"',
        'workload.precision="fp8"',
        'workload.optimizer="sgd"',
        'workload.optimizer="adam_8bit"',
        "workload.gradient_bytes=2",
        "workload.gradient_bytes=4",
        'workload.attention="unfused"',
        'workload.overlap="none"',
        'workload.context="all_gather"',
        "workload.capacity=1.25",
    ],
)
@pytest.mark.sampled(6)
def test_of_every_workload(target: str, setting: str) -> None:
    """Precisions, optimizers and the rest bring their own options."""
    for model in ("llama3-8b", "mixtral-8x7b"):
        for fields in ({"dp": 64, "zero": 1}, {"dp": 16, "cp": 4, "zero": 3}):
            contents = files(target, model, fields, setting)
            if contents:
                CHECKS[target](contents)


@pytest.mark.parametrize("target", sorted({*CHECKS, "torchrun"}))
def test_lists_name_their_source(target: str) -> None:
    """Names alone, and above them where they are from."""
    from export_cases import DATA

    lines = (DATA / f"{target}.txt").read_text().splitlines()
    head = " ".join(line for line in lines if line.startswith("#"))
    assert re.search(r"\d\.\d+|commit [0-9a-f]{8}", head)
    assert all(re.fullmatch(r"[\w.\- +]+", line) for line in lines if not line.startswith("#"))
