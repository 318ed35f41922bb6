"""Scenarios of notebooks and comparisons open on Plan as they were asked for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.documents.presets import preset_names
from nest_core.report.notebook import new_notebook, pin_cells
from nest_core.scenario import Scenario, fabric_document, scenario_document
from nest_core.scenario.document import fabric_title
from nest_core.workload.model_files import load_model, model_table
from nest_studio.compare.state import CompareEntry
from nest_studio.explore.view import axes_of
from nest_studio.session.open_plan import over_preset, unsaid
from nest_studio.session.store import Database, Notebooks

SMALL = "llama2-7b-64-h100"
OTHER = "bert-large-64-v100"
LEAF = "fabric.clos.oversubscription.0"
MODEL = model_table(load_model("llama2-7b")) | {"name": "Mine", "blocks": 16}
ASKED = {
    "nothing": {},
    "workload": {
        "workload.global_batch_sequences": 512,
        "workload.sequence_length_tokens": 2048,
        "workload.optimizer": "adam_8bit",
        "workload.attention": "unfused",
    },
    "search": {
        "search.zero": [1, 2],
        "search.recompute": "none",
        "search.offload": ["none", {"activations": 1.0, "optimizer": 1.0}],
        "search.schedule": ["1f1b"],
        "search.tp": {"max": 4},
        "search.micro_batch_sequences": 2,
        "search.order": ["tp", "cp", "pp", "dp"],
        "search.memory_rule": "as_needed",
    },
    "device": {"accelerator": "a100-80gb", "accelerator.memory_GiB": 60.0},
    "other fabric": {
        "fabric": "dgx-superpod-h100",
        "fabric.clos.devices": 128,
        "fabric.clos.oversubscribe": "split_radix",
        LEAF: 2.5,
    },
    "own fabric": {"fabric": fabric_document("h100-spine-leaf-64") | {"name": "Ours"}, LEAF: 4.0},
    "own model": {"workload.model": MODEL, LEAF: 2.0},
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'n.sqlite'}"
    monkeypatch.setenv("NEST_STUDIO_DATABASE", url)
    return Notebooks(Database(url))


@pytest.fixture
def studio(root, store):
    """``studio(name, **address)``: a page of the studio, after another scenario on Plan."""

    def opened(name, **address):
        page = AppTest.from_file(
            str(root / "nest_studio" / "server" / "script.py"), default_timeout=120
        )
        page.query_params["scenario"] = OTHER
        page.query_params["accelerator.memory_GiB"] = "30"
        page.run()
        for key, value in address.items():
            page.query_params[key] = value
        return page.switch_page(f"../../pages/{name}.py").run()

    return opened


def press(page, key):
    next(button for button in page.button if button.key == key).click().run()
    assert not page.exception
    return page


def request_of(page):
    """What the Plan page answers."""
    assert not page.error
    return page.session_state["PlanPage"].scenario


def notebook(kind, inputs):
    """A notebook with one pin, whose cell is called p."""
    words, code = pin_cells(kind, "P", "", inputs)
    code.id = "p"
    return new_notebook([words, code])


def plan(overrides, document=None):
    document = document or scenario_document(SMALL)[0]
    return notebook("plan", {"document": document, "overrides": overrides})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("overrides", ASKED.values(), ids=ASKED)
def test_a_plan_cell_opens_exactly_its_scenario(studio, store, overrides):
    store.save("N", plan(overrides))
    page = press(studio("notebook", notebook="N"), "open-p")
    request = request_of(page)
    assert (over_preset(request)[0], request.overrides) == (SMALL, overrides)
    document, _ = scenario_document(SMALL)
    shown = Scenario(request.document, request.overrides).values
    assert shown == Scenario(document, overrides).values


def test_the_failures_of_a_training_run_open_with_its_scenario(studio, store):
    store.save("N", plan({"failures": "rsc-1", "search.tp": 4}))
    page = studio("notebook", notebook="N")
    (button,) = (button for button in page.button if button.key == "open-p")
    assert "cannot say" not in button.help
    assert dict(request_of(press(page, "open-p")).overrides) == {"search.tp": 4}
    assert page.session_state["run.failures"] == "rsc-1"


def test_what_the_form_cannot_say_is_said_and_the_rest_opened(studio, store):
    said = {
        "search.tp": 4,
        "search.cp": {"min": 2, "max": 4},
        "search.pp": [1, 2],
        "search.sp": True,
        LEAF: 2.0,
    }
    store.save("N", plan(said))
    page = studio("notebook", notebook="N")
    (button,) = (button for button in page.button if button.key == "open-p")
    assert "Its form cannot say search.sp as it is; all else is set." in button.help
    assert request_of(press(page, "open-p")).overrides == {
        "search.tp": 4,
        "search.cp": {"min": 2, "max": 4},
        "search.pp": [1, 2],
        LEAF: 2.0,
    }


def test_a_fabric_that_no_widget_makes_opens_as_ones_own(studio, store):
    faster = {"fabric.clos.nic_bandwidth_GBps": 25.0, LEAF: 1.25}
    document, _ = scenario_document(SMALL)
    whole = Scenario(document, faster).values.fabric
    store.save("N", plan(faster))
    request = request_of(press(studio("notebook", notebook="N"), "open-p"))
    opened = Scenario(request.document, request.overrides).values.fabric
    assert opened == replace(whole, name=fabric_title(whole))


def test_a_document_that_is_no_preset_opens_as_the_nearest_one(studio, store):
    document = json.loads(json.dumps(scenario_document(SMALL)[0])) | {"name": "Ours"}
    document["workload"]["global_batch_sequences"] = 256
    store.save("N", plan({LEAF: 2.0}, document))
    request = request_of(press(studio("notebook", notebook="N"), "open-p"))
    assert over_preset(request)[0] == SMALL
    assert request.overrides == {"workload.global_batch_sequences": 256, LEAF: 2.0}


@pytest.mark.parametrize("name", preset_names("scenarios"))
def test_every_preset_is_found_again_by_its_document(name):
    document = json.loads(json.dumps(scenario_document(name)[0]))
    assert over_preset(Scenario(document, {LEAF: 2.0})) == (name, {LEAF: 2.0})
    ours = Scenario(document | {"name": "Ours"})
    found, _ = over_preset(ours)
    assert scenario_document(found)[0]["workload"]["model"] == document["workload"]["model"]
    assert unsaid(ours) == ""


def test_scenarios_of_a_comparison_open_one_by_one(studio):
    listed = [["One", SMALL, {}], ["Two", SMALL, {LEAF: 4.0}]]
    page = studio("compare", **{"compare": json.dumps(listed), "compare.failures": "false"})
    keys = [b.key for b in page.button if str(b.key).startswith("compare-plan-")]
    assert len(keys) == 2
    request = request_of(press(page, keys[1]))
    assert (over_preset(request)[0], request.overrides) == (SMALL, {LEAF: 4.0})


def test_a_comparison_cell_opens_in_compare(studio, store):
    document, _ = scenario_document(SMALL)
    entries = [
        {"name": name, "document": document, "overrides": overrides}
        for name, overrides in (("One", {}), ("Two", {LEAF: 4.0}))
    ]
    inputs = {"entries": entries, "budget": None, "failures": False}
    store.save("N", notebook("comparison", inputs))
    page = press(studio("notebook", notebook="N"), "open-p")
    assert page.session_state["ComparePage"].history.present == tuple(
        CompareEntry(number, name, Scenario(document, overrides))
        for number, (name, overrides) in enumerate((("One", {}), ("Two", {LEAF: 4.0})))
    )
    assert [toggle.value for toggle in page.toggle if toggle.key == "compare.failures"] == [False]


QUESTIONS = {
    "one parameter": {"x": {"parameter": "oversubscription.0", "values": [1.0, 2.5]}, "y": None},
    "two parameters": {
        "x": {"parameter": "micro_batch", "values": [1, 2]},
        "y": {"parameter": "recompute", "values": ["none", "full"]},
    },
    "a ready-made question": {
        "x": {"parameter": "zero", "values": [1, 3]},
        "y": {"parameter": "micro_batch", "values": [1, 2]},
    },
    "a question of one's own": {
        "x": {"parameter": "memory", "values": [40.0, 80.0]},
        "y": {"parameter": "sequence", "values": [2048, 4096]},
    },
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_sweep_cell_asks_its_question_again_in_explore(studio, store, question):
    document, _ = scenario_document(SMALL)
    inputs = {"document": document, "overrides": {"workload.global_batch_sequences": 256}}
    store.save("N", notebook("sweep", inputs | question))
    page = press(studio("notebook", notebook="N"), "open-p")
    _, turned, request = page.session_state["ExplorePage"].sweep
    assert (over_preset(request)[0], request.overrides) == (SMALL, inputs["overrides"])
    asked = [question[axis] for axis in ("x", "y") if question[axis]]
    assert axes_of(turned) == [(one["parameter"], tuple(one["values"])) for one in asked]
    assert page.session_state["explore.asks"] == "Sweep parameters"


@pytest.mark.parametrize("shares", [{"llama2-7b": 1.0}, {"llama2-7b": 1.0, "llama3-8b": 3.0}])
@pytest.mark.sampled(2)
def test_a_ratios_cell_asks_its_question_again_in_explore(studio, store, shares):
    document, _ = scenario_document(SMALL)
    mix = [{"model": model, "share": share} for model, share in shares.items()]
    inputs = {"document": document, "overrides": {}, "mix": mix, "loss": 0.05}
    store.save("N", notebook("ratios", inputs))
    page = press(studio("notebook", notebook="N"), "open-p")
    _, found = page.session_state["ExplorePage"].ratios
    assert {key: found[key] for key in inputs} == inputs


def test_a_mix_with_a_model_of_ones_own_has_no_field_in_explore(studio, store):
    document, _ = scenario_document(SMALL)
    inputs = {"document": document, "mix": [{"model": MODEL, "share": 1.0}], "loss": 0.05}
    store.save("N", notebook("ratios", inputs))
    (button,) = (one for one in studio("notebook", notebook="N").button if one.key == "open-p")
    assert button.label == "Open in Plan"
