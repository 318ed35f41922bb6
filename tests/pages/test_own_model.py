"""A model of one's own: pasted, uploaded or from the form, on every page and in every file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from our_plan import our_plan
from plan_cards import big_figures, shown_figures

from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_core.workload.model_files import load_model, model_of
from nest_studio.form.model import OWN_MODEL
from nest_studio.session.scenario_file import scenario_toml

CONFIGS = Path(__file__).resolve().parents[1] / "data" / "configs"
SMALL = "llama2-7b-64-h100"
MISTRAL = (CONFIGS / "mistral-7b.json").read_text(encoding="utf-8")


@pytest.fixture
def own_page(plan_page):
    """The plan page of a small scenario, My model chosen."""
    page = plan_page(scenario=SMALL)
    page.selectbox(key="workload.model").set_value(OWN_MODEL).run()
    assert not page.exception
    return page


def values(page):
    return big_figures(" ".join(element.proto.body for element in page.get("html")))


def expected(*settings):
    return shown_figures(our_plan(load_scenario(SMALL, settings)))


def own(page):
    return page.session_state["OwnModel"].table


def paste(page, text):
    return page.text_area(key="own model text").input(text).run()


def size(page, field):
    revision = page.session_state["OwnModel"].revision
    return page.number_input(key=f"own model {revision} {field}")


def use_sizes(page):
    return next(button for button in page.button if button.label == "Use these sizes").click().run()


def test_it_begins_as_a_copy_of_the_preset(own_page):
    assert not own_page.error
    assert model_of(own(own_page)) == load_model("llama2-7b")
    assert values(own_page) == expected()


def test_a_pasted_configuration_is_planned(own_page):
    paste(own_page, MISTRAL)
    assert not own_page.exception
    assert not own_page.error
    table = own(own_page)
    assert (table["hidden"], table["kv_heads"], table["window"]) == (4096, 8, 4096)
    assert values(own_page) == expected('workload.model="mistral-7b"')
    assert any("7.24 billion" in caption.value for caption in own_page.caption)


def test_the_form_shows_what_was_pasted(own_page):
    size(own_page, "hidden").set_value(64)
    paste(own_page, (CONFIGS / "gpt2-xl.json").read_text(encoding="utf-8"))
    shown = {field: size(own_page, field).value for field in ("hidden", "heads", "positions")}
    assert shown == {"hidden": 1600, "heads": 25, "positions": 1024}


def test_an_uploaded_configuration_is_planned(own_page):
    upload = own_page.file_uploader(key="own model file")
    upload.upload("config.json", MISTRAL.encode(), "application/json").run()
    assert not own_page.exception
    assert not own_page.error
    assert values(own_page) == expected('workload.model="mistral-7b"')


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json must be valid JSON"),
        ('{"model_type": "falcon"}', "model_type must be one of "),
        (
            MISTRAL.replace('"num_key_value_heads": 8', '"num_key_value_heads": 5'),
            "num_key_value_heads must divide num_attention_heads = 32, but is 5",
        ),
        (MISTRAL.replace("14336", "-14336"), "intermediate_size must be at least 1, but is -14336"),
    ],
    ids=["syntax", "type", "contradiction", "negative"],
)
@pytest.mark.sampled(3)
def test_a_bad_paste_is_one_sentence_and_the_last_model_stays(own_page, text, message):
    paste(own_page, MISTRAL)
    before = values(own_page)
    paste(own_page, text)
    assert not own_page.exception
    (notice,) = own_page.error
    assert notice.value.startswith(message)
    assert values(own_page) == before
    assert own(own_page)["kv_heads"] == 8
    paste(own_page, MISTRAL)
    assert not own_page.error


def test_sizes_from_the_form_are_planned(own_page):
    size(own_page, "blocks").set_value(16)
    size(own_page, "ffn").set_value(8192)
    use_sizes(own_page)
    assert not own_page.exception
    assert not own_page.error
    assert own(own_page)["name"] == OWN_MODEL
    name = f'workload.model.name="{OWN_MODEL}"'  # baselines go by the name
    settings = "workload.model.blocks=16", "workload.model.ffn=8192", name
    assert values(own_page) == expected(*settings)
    size(own_page, "heads").set_value(7)
    use_sizes(own_page)
    (notice,) = own_page.error
    assert notice.value.startswith("model.kv_heads must divide model.heads = 7, but is 32")
    assert values(own_page) == expected(*settings)


def test_another_family_has_other_sizes(own_page):
    family = next(box for box in own_page.selectbox if box.label.endswith("family"))
    family.set_value("mixtral").run()
    assert not own_page.exception
    for field, value in (("experts", 8), ("top_k", 2), ("expert_ffn", 4096)):
        size(own_page, field).set_value(value)
    use_sizes(own_page)
    assert not own_page.exception
    assert not own_page.error
    assert own(own_page)["family"] == "mixtral"
    assert "8 experts of which 2" in " ".join(caption.value for caption in own_page.caption)


def test_learned_positions_shorten_the_sequence(own_page):
    paste(own_page, (CONFIGS / "gpt2-xl.json").read_text(encoding="utf-8"))
    assert not own_page.error
    assert own_page.number_input(key="workload.sequence_length_tokens").value == 1024


def test_it_survives_other_pages_presets_and_a_reload(own_page, plan_page):
    paste(own_page, MISTRAL)
    table = own(own_page)
    own_page.switch_page("../../pages/design.py").run()
    own_page.switch_page("../../pages/plan.py").run()
    assert not own_page.exception
    assert own(own_page) == table
    own_page.selectbox(key="scenario").set_value(SMALL).run()
    own_page.selectbox(key="workload.model").set_value("llama2-7b").run()
    kept = own_page.query_params["own_model"]
    assert kept.startswith("aside."), "the address names the model on the screen"
    away = plan_page(scenario=SMALL, own_model=kept)
    assert away.selectbox(key="workload.model").value == "llama2-7b"
    away.selectbox(key="workload.model").set_value(OWN_MODEL).run()
    assert own(away) == table
    own_page.selectbox(key="workload.model").set_value(OWN_MODEL).run()
    assert own(own_page) == table
    address = own_page.query_params["own_model"]
    address = address[0] if isinstance(address, list) else address
    again = plan_page(scenario=SMALL, own_model=address, **{"workload.model": OWN_MODEL})
    assert not again.exception
    assert own(again) == table
    assert values(again) == values(own_page)


@pytest.mark.parametrize("address", ["{", "[]", '{"name": 5}', "[" * 3000, '{"a": ' * 300])
def test_a_broken_address_starts_from_the_preset(plan_page, address):
    page = plan_page(scenario=SMALL, own_model=address, **{"workload.model": OWN_MODEL})
    assert not page.exception
    assert model_of(own(page)) == load_model("llama2-7b")


def test_the_downloaded_scenario_holds_it(own_page):
    paste(own_page, MISTRAL)
    request = own_page.session_state["PlanPage"].scenario
    assert request.overrides["workload.model"] == own(own_page)
    written = tomllib.loads(scenario_toml(request.document, request.overrides))
    document, _ = scenario_document(SMALL)
    assert Scenario(written).values.model == model_of(own(own_page))
    table = json.loads(json.dumps(own(own_page)))
    document["workload"] = {**document["workload"], "model": table}
    assert Scenario(document).values.model == model_of(table)


def test_a_model_that_came_by_link_changes_like_any_other(plan_page):
    page = plan_page(**{"scenario": SMALL, "tour": "off", "workload.model": OWN_MODEL})
    paste(page, MISTRAL)
    assert not page.exception
    assert values(page) == expected('workload.model="mistral-7b"')
