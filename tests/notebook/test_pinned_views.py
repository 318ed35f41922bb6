"""Cells of fabrics, layers, explanations and lessons show what their pages show."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict

import pytest

from nest_core.api.layer import LayerRequest, layer
from nest_core.errors import InputError
from nest_core.explain import bindings
from nest_core.explain.layer_summary import layer_headlines
from nest_core.explain.words import binding_table
from nest_core.lessons import LESSONS, lesson
from nest_core.notebook import Cell, Notebook
from nest_core.notebook.document import from_json, portable, to_json
from nest_core.notebook.explained import WHY
from nest_core.notebook.jupyter import jupyter_notebook
from nest_core.notebook.kinds import compute
from nest_core.planner import search
from nest_core.scenario import fabric_document, resolve_scenario, scenario_document
from nest_core.workload.model_files import load_model, model_table

PINNED = {"search.tp": 1, "search.cp": 1, "search.micro_batch_sequences": 1, "search.zero": 1}
DOCUMENT, _ = scenario_document("llama2-7b-64-h100")
LAYER = asdict(
    LayerRequest(
        model_table(load_model("llama2-7b")), "h100-80gb", "block", "bf16", "flash", 4096, 1, 8,
        sp=True, cp=1, ep=1, recompute="none",
    )
)  # fmt: skip
INPUTS = {
    "fabric": {
        "document": fabric_document("h100-spine-leaf-64"),
        "overrides": {"fabric.clos.oversubscription.0": 2.0},
    },
    "layer": LAYER,
    "why": {"document": DOCUMENT, "overrides": PINNED, "part": "binding"},
    "lesson": {"lesson": "bubble", "settings": {"pp": 8}},
}


@pytest.mark.parametrize("kind", INPUTS)
def test_a_cell_crosses_between_processes_and_files(kind):
    shown = compute(kind, INPUTS[kind])
    assert shown.rows
    assert shown.pictures or shown.table
    assert pickle.loads(pickle.dumps(shown)).rows == shown.rows
    notebook = Notebook("N", (Cell("a", kind, "T", inputs=portable(kind, INPUTS[kind])),))
    assert from_json(to_json(notebook)) == notebook
    *_, code = json.loads(jupyter_notebook(notebook))["cells"]
    assert f'compute("{kind}", inputs)' in code["source"]


def test_they_show_what_pages_show():
    assert compute("layer", LAYER).headlines == layer_headlines(layer(LayerRequest(**LAYER))[1])
    fabric = compute("fabric", INPUTS["fabric"])
    assert fabric.rows[0]["devices"] == 64
    assert fabric.fabric.title.startswith("2:1: ")
    bubble = compute("lesson", INPUTS["lesson"])
    assert bubble.facts == lesson("bubble").reveal({"pp": 8, "m": 4}).texts
    scenario = resolve_scenario(DOCUMENT, PINNED)
    problem = scenario.problem()
    best = search(problem, scenario.space).best
    assert compute("why", INPUTS["why"]).table == binding_table(bindings(problem, best), best)


def test_every_lesson_and_every_explanation_has_a_key_of_its_page():
    from nest_studio.why_view import _PARTS

    assert {part.key for part in _PARTS} == set(WHY)
    for one in LESSONS:
        assert portable("lesson", {"lesson": one.key}) == {"lesson": one.key}


@pytest.mark.parametrize(
    ("kind", "inputs", "said"),
    [
        ("lesson", {"lesson": "none"}, "lesson must be one of the lessons"),
        ("lesson", {"lesson": "bubble", "settings": {"pp": 3.5}}, "settings.pp must be"),
        ("lesson", {"lesson": "bubble", "settings": {"no": 1}}, "settings.no must be"),
        ("why", {"document": DOCUMENT, "part": "other"}, "inputs.part must be"),
        ("layer", {**LAYER, "kind": "roof"}, "kind must be a layer"),
        ("layer", {**LAYER, "tp": 0}, "inputs.tp must be"),
        ("layer", {**LAYER, "accelerator": "/etc/passwd"}, "accelerator must be"),
        ("fabric", {"document": {"kind": "clos"}}, "fabric."),
    ],
)
def test_what_no_page_shows_is_one_sentence(kind, inputs, said):
    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        compute(kind, inputs)
