"""What a pin adds: words, code that runs by itself and gives the same figures, and output."""

from __future__ import annotations

import ast
import re
from dataclasses import asdict

import pytest
from nbclient import NotebookClient

import nest_core as nest
from nest_core.api.layer import LayerRequest
from nest_core.documents.errors import InputError
from nest_core.report.notebook import new_notebook, output_of, pin_cells, pinned, table_output
from nest_core.report.notebook.ipynb import KINDS
from nest_core.report.tables import Table
from nest_core.scenario import fabric_document
from nest_core.workload.model_files import load_model, model_table
from nest_studio.plan.tabs import _PARTS

PLOT = "application/vnd.plotly.v1+json"
STUDY = {"schema": 1, "name": "S", "scenario": "llama2-7b-64-h100"}
FEW = {"search.tp": [8], "search.pp": [1], "search.micro_batch_sequences": [1]}
LAYER = asdict(
    LayerRequest(
        model_table(load_model("llama2-7b")), "h100-80gb", "block", "bf16", "flash", 4096, 1, 8,
        sp=True, cp=1, ep=1, recompute="none",
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def inputs(small_inputs):
    """Inputs of every kind of pin."""
    why = {f"why {part.key}": small_inputs | {"part": part.key} for part in _PARTS}
    axes = [{"parameter": "batch", "values": [128, 256]}]
    design = {"families": ["spine-leaf"], "ratios": [1.0, 4.0]}
    return {
        "plan": small_inputs,
        "sweep": small_inputs | {"x": {"parameter": "batch", "values": [512, 1024]}, "y": None},
        "study": {"study": STUDY | {"overrides": FEW, "axes": axes}},
        "study design": {"study": STUDY | {"overrides": FEW, "design": design}},
        "comparison": {
            "entries": [{"name": name, **small_inputs} for name in "ab"],
            "budget": {"kind": "price", "value": None},
            "failures": False,
        },
        "ratios": small_inputs | {"mix": [{"model": "llama2-7b", "share": 1.0}], "loss": 0.02},
        "fabric": {
            "document": fabric_document("h100-spine-leaf-64"),
            "overrides": {"fabric.clos.oversubscription.0": 2.0},
        },
        "layer": LAYER,
        "lesson": {"lesson": "bubble", "settings": {"pp": 8, "m": 4}},
    } | why


@pytest.mark.check
def test_the_code_of_every_kind_shows_something(inputs, capsys):
    assert {name.split()[0] for name in inputs} == set(KINDS)
    for name, values in inputs.items():
        shown = []
        _, code = pin_cells(name.split()[0], "T", "", values)
        exec(code.source, {"display": lambda *found, shown=shown: shown.extend(found)})
        assert shown, name


@pytest.mark.parametrize("kind", ["plan", "sweep", "study", "comparison", "ratios", "fabric"])
def test_code_of_results_imports_the_public_api_alone(inputs, kind):
    _, code = pin_cells(kind, "T", "", inputs[kind])
    nodes = list(ast.walk(ast.parse(code.source)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["import nest_core as nest"]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    names = {node.attr for node in attributes if ast.unparse(node.value) == "nest"}
    assert names <= set(nest.__all__)


def test_the_inputs_stand_in_the_code_and_in_the_metadata(inputs):
    _, code = pin_cells("plan", "T", "N", inputs["plan"])
    _, assignment, *_ = ast.parse(code.source).body
    assert ast.literal_eval(assignment.value) == inputs["plan"]
    pin = pinned(code)
    assert (pin["title"], pin["note"], pin["inputs"]) == ("T", "N", inputs["plan"])


def test_a_fabrics_overrides_are_written_into_its_document(inputs):
    _, code = pin_cells("fabric", "T", "", inputs["fabric"])
    assert pinned(code)["inputs"]["document"]["clos"]["oversubscription"][0] == 2.0


def test_run_in_jupyter_it_shows_what_was_pinned(small_notebook, small_answer, tmp_path):
    before = [output.data for output in small_notebook.cells[-1].outputs]
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(small_notebook, timeout=300, kernel_name="python3", resources=folder).execute()
    after = [output.data for output in small_notebook.cells[-1].outputs]
    assert [set(data) for data in after] == [set(data) for data in before]
    same = [re.sub(r"[\d.,]+ m?s\. Over", "Over", data[0]["text/html"]) for data in (before, after)]
    assert same[0] == same[1]  # but for the time that the search took
    figures = [data[PLOT]["data"] for data in after if PLOT in data]
    assert len(figures) == len(small_answer.pictures()) == 3
    assert figures == [data[PLOT]["data"] for data in before if PLOT in data]


def test_a_result_is_shown_as_text_html_and_pictures(small_answer):
    output = output_of(small_answer)
    assert output.text == str(small_answer)
    assert "<table" in output.html
    assert "iteration_time_s" in output.figures


def test_a_table_is_shown_as_text_and_html():
    output = table_output(Table("The <finding>", "", ({"name": "a", "value": "1"},)))
    assert output.text.splitlines()[0] == "The <finding>"
    assert "The &lt;finding&gt;" in output.html
    assert table_output(Table("Nothing", "", ())).text == "Nothing"


def test_words_are_markdown_that_loads_nothing():
    (cell,) = pin_cells("note", "A\n# B", "![x](//elsewhere.example/x.png)", {})
    assert cell.source.startswith("## A # B\n\n<p>!<a ")


def test_a_kind_that_there_is_not_is_one_sentence():
    with pytest.raises(InputError, match="kind must be a kind of pins, but is 'plot'"):
        pin_cells("plot", "T", "", {})


def test_only_a_whole_pin_is_one(inputs):
    words, code = pin_cells("plan", "T", "", inputs["plan"])
    assert pinned(words) is None
    for name in ("kind", "title", "inputs"):
        edited = new_notebook([code]).copy()["cells"][0]
        edited = {**edited, "metadata": {"nest_studio": {**pinned(code), name: 1}}}
        assert pinned(edited) is None
