"""Models of a person's own trace: priced as the preset whose operators and sizes they have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nest_core.costs.tables import layer_table, model_flops
from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_path
from nest_core.hardware import load_accelerator
from nest_core.scenario import Scenario
from nest_core.workload import Strategy, load_model
from nest_core.workload.model_files import OF_THE_JOB
from nest_core.workload.models import sizes

MODELS = ("nemotron4-15b", "llama2-7b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b")
DEVICE = load_accelerator("h100-80gb")


def trace_of(name: str) -> dict[str, object]:
    """A preset as its own trace: what ``trace --output`` writes of such a module."""
    model = load_model(name)
    document = json.loads(preset_path("traces", f"{model.family}.json").read_text())
    kinds = [kind for kind, _ in model.runs]
    layers = {kind: document["layers"][kind] for kind in kinds}
    named = {
        symbol for kind in kinds for node in model.trace[kind].nodes for symbol in node.symbols
    }
    if "experts" in named:
        named |= {"top_k"}
    given = {size: int(sizes(model, 1, 1)[size]) for size in named - OF_THE_JOB}
    given |= {"blocks": model.blocks}
    given |= {"dense_blocks": model.dense_blocks} if model.dense_blocks else {}
    return document | {"layers": layers, "model": given}


def written(folder: Path, document: object) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_presets_trace_is_priced_as_the_preset(tmp_path, name):
    known, mine = load_model(name), load_model(str(written(tmp_path, trace_of(name))), tmp_path)
    assert (mine.runs, mine.parameters) == (known.runs, known.parameters)
    assert model_flops(mine, 2048) == model_flops(known, 2048)
    for strategy in (Strategy(sequence=2048), Strategy(tp=4, sp=True, cp=2, sequence=2048)):
        one, other = (layer_table(m, strategy, DEVICE, "bf16") for m in (known, mine))
        assert str(one) == str(other)


def test_a_scenario_plans_a_trace_and_changes_its_sizes(tmp_path):
    """The file is named like a ``config.json``; ``--set`` changes single sizes of it."""
    written(tmp_path, trace_of("llama2-7b"))
    document = load_toml(preset_path("scenarios", "llama2-7b-64-h100.toml"))
    mine = Scenario(document, {"workload.model": "mine.json"}, tmp_path).values
    assert mine.space.tp == Scenario(document).values.space.tp
    changes = {"workload.model": "mine.json", "workload.model.blocks": 2}
    assert Scenario(document, changes, tmp_path).values.model.runs[1] == ("block", 2)
    with pytest.raises(InputError, match=r"workload\.model\.experts must be a size that the trace"):
        _ = Scenario(document, changes | {"workload.model.experts": 8}, tmp_path).values


def test_without_heads_tensor_parallelism_is_one(tmp_path, caplog):
    trace = trace_of("llama2-7b")
    numbers = json.dumps(trace["layers"]).replace('"kv_heads"', "32").replace('"heads"', "32")
    named = {size: value for size, value in trace["model"].items() if "heads" not in size}
    written(tmp_path, trace | {"layers": json.loads(numbers), "model": named})
    document = load_toml(preset_path("scenarios", "llama2-7b-64-h100.toml"))
    del document["search"]["tp"]
    mine = Scenario(document, {"workload.model": "mine.json"}, tmp_path).values
    assert mine.space.tp == (1,)
    assert "names no heads: tensor parallelism is 1" in caplog.text


def test_no_link_names_a_trace(tmp_path):
    path = written(tmp_path, trace_of("llama2-7b"))
    for named in (str(path), {"trace": str(path)}):
        with pytest.raises(InputError, match=r"workload\.model.* must be a preset or a table"):
            load_model(named)


def node(document: dict, index: int) -> dict:
    return document["layers"]["block"][index]


WRONG = {
    "must be a trace with the sizes": lambda d: d.pop("model"),
    "must say how many blocks": lambda d: d["model"].pop("blocks"),
    "must give every size, but is 'no hidden'": lambda d: d["model"].pop("hidden"),
    r"model\.heads must be at least 1": lambda d: d["model"].update(heads=0),
    "must read earlier operators": lambda d: node(d, 1).update(inputs=["nowhere"]),
    "must have lengths of whole numbers": lambda d: node(d, 1).update(shape=[["width"]]),
    "must name micro_batch and sequence": lambda d: node(d, 0).update(shape=[[8], ["hidden"]]),
    "must be operators as nest-studio": lambda d: node(d, 2).update(weights=[]),
    "must not mix tokens": lambda d: node(d, 1).update(weights=[[["sequence"]]]),
    "must be a view of the widths": lambda d: [
        each.update(shape=[["micro_batch"], ["sequence"], ["hidden"]])
        for each in d["layers"]["block"]
        if each["name"] == "attention.query"
    ],
    r"layers\.block": lambda d: d["layers"].update(block=7),
    "other": lambda d: node(d, 0).update(other=1),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_one_sentence(tmp_path, message):
    document = trace_of("llama2-7b")
    WRONG[message](document)
    with pytest.raises(InputError, match=message) as found:
        load_model(str(written(tmp_path, document)), tmp_path)
    assert "\n" not in str(found.value)
