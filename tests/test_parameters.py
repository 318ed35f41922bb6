"""The catalogue of parameters: one value too many is refused in one sentence, wherever it is said.

Entries are found by walking the tables of the files, so that a new one is tried too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nest_core.bill.prices import Prices
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import assign, toml_document, toml_value
from nest_core.documents.schema import (
    Parameter,
    ScenarioFile,
    StudyTable,
    WorkloadTable,
    names_of,
    parameter,
)
from nest_core.documents.schema.checking import alternatives
from nest_core.report.notebook.inputs import checked_inputs
from nest_core.scenario import Scenario, expanded, load_scenario, scenario_document
from nest_core.studies.parameters import distinct, parse_values, sweep_parameters
from nest_studio.form.fabric import fabric_fields, fabric_words
from nest_studio.form.pinning import PINS, pin_words, pinned_value
from nest_studio.form.scenario import FORM
from nest_studio.server.arrival import refused

SMALL = "llama2-7b-64-h100"
FABRICS = {
    "level": "v100-pods-64",
    "dragonfly": "dragonfly-1056",
    "torus": "torus-16x16",
    "tpu_slice": "tpu-v4-2x2x4",
}


def entries(table: type[BaseModel] = ScenarioFile, before: str = "") -> Iterator[str]:
    """Keys of all fields that say what they are called; of lists the first entry."""
    for name, field in table.model_fields.items():
        key, one = f"{before}{name}", alternatives(field)[0]
        while get_origin(one.annotation) is list:
            key, field = f"{key}.0", FieldInfo.from_annotation(get_args(one.annotation)[0])
            one = alternatives(field)[0]
        if isinstance(one.annotation, type) and issubclass(one.annotation, BaseModel):
            yield from entries(one.annotation, f"{key}.")
        elif field.title:
            yield key


KEYS = tuple(entries())


def beyond(of: Parameter) -> list[Any]:
    """Values one step out of bounds, or no choice."""
    if of.choices:
        return ["none of them"]
    if of.kind in (bool, str):
        return []
    return [of.low - 1, of.high + 1] if of.kind is int else [of.low / 2 - 1, 2 * of.high]


def told(reading: Any) -> str:
    with pytest.raises(InputError) as caught:
        reading()
    return str(caught.value)


def fabric_of(key: str) -> dict[str, Any]:
    """An override that gives a scenario a fabric which has the key."""
    part = key.split(".")[1]
    return {"fabric": FABRICS[part]} if part in FABRICS else {}


CASES = [(key, value) for key in KEYS for value in beyond(parameter(key))]


def test_the_catalogue_holds_what_people_set():
    assert len(KEYS) > 30
    assert {
        "fabric.clos.oversubscription.0",
        "fabric.level.0.oversubscription",
        "fabric.clos.devices",
        "accelerator.memory_GiB",
        "workload.global_batch_sequences",
        "search.tp",
        "workload.sequence_length_tokens",
        "search.micro_batch_sequences",
        "search.zero",
        "search.recompute",
        "workload.overlap",
    } <= set(KEYS)
    assert all(parameter(key).label for key in KEYS)


@pytest.mark.parametrize(("key", "value"), CASES, ids=[f"{k}={v}" for k, v in CASES])
def test_a_value_beyond_is_refused_in_one_sentence(key, value, tmp_path):
    of, fabric = parameter(key), fabric_of(key)
    sentence = told(lambda: of.checked(value))
    document, _ = scenario_document(SMALL)
    merged, _ = expanded(document, fabric)
    fields = {**FORM, **fabric_fields(merged["fabric"])}
    assign(merged, key, value)
    file = tmp_path / "scenario.toml"
    file.write_text(toml_document(merged))
    assert told(lambda: load_scenario(str(file))) == sentence
    sets = [f"{name}={toml_value(one)}" for name, one in (fabric | {key: value}).items()]
    assert told(lambda: load_scenario(SMALL, sets)) == sentence
    if key in fields and key != "fabric.clos.oversubscribe":
        assert fields[key].fit(value) is None
    (_, link) = refused({key: [str(value)]}, {}, {key: None})[key]
    assert sentence.replace("_", "") in link.replace("\\", "").replace("_", "")
    for swept in sweep_parameters(Scenario(document, fabric)):
        if swept.key == key:
            assert told(lambda one=swept: distinct(one, [value], "x.values")) == sentence
            if of.kind is int:
                assert told(lambda one=swept: parse_values(one, repr(value))) == sentence


LISTED = ("search.zero_group", "search.schedule", "search.offload")
"""Of which the form holds several."""


@pytest.mark.parametrize("key", KEYS)
def test_the_ends_of_a_range_and_every_choice_are_taken(key):
    of = parameter(key)
    if of.kind is str and not of.choices:
        assert of.checked("rack") == "rack"
        return
    ends = of.options if of.choices or of.kind is bool else (of.low, of.high)
    assert [of.checked(end) for end in ends] == list(ends)
    if key in PINS:
        for end in ends:
            text = pin_words(key, end)
            assert FORM[key].fit(text) == (text,)
            assert pinned_value(key, text) == end
    elif key in FORM and not key.startswith(LISTED):
        assert [FORM[key].fit(end) for end in ends] == [(end,) for end in ends]


def test_a_default_of_a_file_is_a_value():
    for key in KEYS:
        of = parameter(key)
        if of.default is not None and not isinstance(of.default, list):
            assert of.checked(of.default) == of.default


def test_notebooks_from_before_say_knob():
    """What notebooks have kept is read as what it is called now."""
    document, _ = scenario_document(SMALL)
    old = {"document": document, "x": {"knob": "zero", "values": [0, 1]}, "y": None}
    new = old | {"x": {"parameter": "zero", "values": [0, 1]}}
    assert checked_inputs("sweep", old) == new | {"overrides": {}}


def test_a_parameter_that_no_file_has_is_none():
    for key in ("search.rails", "fabric.clos.oversubscription.x", "workload"):
        with pytest.raises(KeyError):
            parameter(f"{key}.z")


def test_resolved_scenarios_take_what_the_catalogue_takes():
    document, _ = scenario_document(SMALL)
    assert Scenario(document, {"search.zero": 3}).values.space.zero == (3,)


@pytest.mark.parametrize(
    "module", ["design/bill", "compare/view", "compare/state", "explore/view", "form/model"]
)
def test_bounds_of_fields_come_from_the_catalogue(module):
    """No page writes a bound down: it draws `number_of` a parameter and takes its `field_of`."""
    path = Path(__file__).parent.parent / "nest_studio" / f"{module}.py"
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    called = [(getattr(call.func, "attr", getattr(call.func, "id", "")), call) for call in calls]
    assert "number_input" not in [name for name, _ in called]
    for name, call in called:
        ends = [end for end in call.args[:2] if name == "Number" and isinstance(end, ast.Constant)]
        assert len(ends) < 2, ast.unparse(call)


def test_what_is_read_of_a_price_stands_on_the_price():
    price = parameter("switch.0.price_usd.typical", Prices)
    assert (price.title, price.low, price.high) == ("price, $", 0, 1e9)
    limit = parameter("floor.rack_power_limit_kW.typical", Prices)
    assert (limit.title, limit.text) == ("rack power limit, kW", "Of a rack with nodes.")


def test_a_parameter_in_thousands_has_its_bounds_in_thousands():
    watts = parameter("budget_W", StudyTable)
    kilowatts = watts.scaled(1e-3, "kW")
    assert (kilowatts.low, kilowatts.high, kilowatts.title) == (0.001, 1e12, "budget, kW")
    percent = parameter("loss", StudyTable).scaled(100, "%")
    assert (percent.low, percent.high) == (0.1, 90.0)


def test_names_are_keys_with_and_without_their_unit_and_in_short():
    names = dict(names_of(WorkloadTable))
    key = "global_batch_sequences"
    assert {name for name, of in names.items() if of == key} == {key, "global_batch", "batch"}
    assert parameter(f"workload.{key}").name == "batch"
    assert parameter("accelerator.memory_GiB").name == "memory"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("fat_tree", "fat-tree"),
        ("tpu_slice", "torus"),
        ("hierarchical", "levels"),
        ("star", "star"),
    ],
)
def test_the_form_calls_a_fabric_by_its_kind(kind, words):
    """One that the library does not have by its own key, not by another kind's name."""
    assert fabric_words({"kind": kind}, {}) == words
