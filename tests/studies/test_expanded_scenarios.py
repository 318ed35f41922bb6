"""One way to read a scenario's fabric and overrides, whoever reads it."""

from __future__ import annotations

import copy

import pytest

from nest_core.bill.prices import prices_of
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import assign
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric.files import build_fabric
from nest_core.scenario import Scenario, expanded, fabric_document, scenario_document
from nest_core.studies.comparison import settings_of

PRESET = "llama2-7b-64-h100"
CHANGES = {
    "nothing": {},
    "another preset": {"fabric": "dgx-superpod-h100"},
    "a preset and a ratio": {"fabric": "dgx-superpod-h100", "fabric.clos.oversubscription.0": 2.0},
}


@pytest.mark.parametrize("name", preset_names("scenarios"))
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_fabrics_table_builds_the_scenarios_fabric(name, changes):
    document, folder = scenario_document(name)
    table = Scenario(document, changes, folder).fabric_table
    assert (
        build_fabric(checked(FabricFile, table))
        == Scenario(document, changes, folder).values.fabric
    )


def test_settings_and_parameters_read_the_same_fabric():
    document, folder = scenario_document(PRESET)
    changes = CHANGES["a preset and a ratio"]
    told = settings_of(Scenario(document, changes, folder))
    assert float(told["fabric.clos.oversubscription.0"]) == 2.0
    assert Scenario(document, changes, folder).fabric_table["clos"]["oversubscription"] == [2.0]


def test_overrides_given_go_before_the_scenarios_own():
    document, folder = scenario_document(PRESET)
    own = document | {"override": {"fabric": "a100-fat-tree-512", "search.zero": 1, "search.tp": 2}}
    merged, changes = expanded(own, {"search.zero": 3, "fabric": "dgx-superpod-h100"}, folder)
    assert "override" not in merged
    assert merged["fabric"] == fabric_document("dgx-superpod-h100")
    assert changes == {"search.tp": 2, "search.zero": 3}


def test_what_was_given_is_left_alone():
    document, folder = scenario_document(PRESET)
    document["fabric"] = {"kind": "torus", "torus": {"shape": [4, 4]}}
    merged, _ = expanded(document, {}, folder)
    assign(merged, "fabric.torus.shape.0", 2)
    assert document["fabric"]["torus"]["shape"] == [4, 4]
    assert merged["fabric"]["name"] == "inline"


def test_a_rate_inside_nodes_is_not_written_into_what_was_given():
    """A failure: the next accelerator finds the rate of the last one where none is stated."""
    element = [{"id": name, "role": "device", "group": "node"} for name in ("a", "b", "c")]
    rates = {"a": 450.0, "b": 7.0}
    link = [{"a": a, "b": "c", "bandwidth_GBps": rate} for a, rate in rates.items()]
    given = {"kind": "graph", "assumed_inside_GBps": 450.0, "element": element, "link": link}
    document = {"fabric": given, "accelerator": {"scale_up_GBps": 900.0}}
    before = copy.deepcopy(document)
    merged, _ = expanded(document)
    assert [entry["bandwidth_GBps"] for entry in merged["fabric"]["link"]] == [900.0, 7.0]
    assert merged["fabric"]["assumed_inside_GBps"] == 900.0
    assert "level" not in merged["fabric"]
    assert document == before


def test_keys_that_are_set_change_no_one_elses_tables():
    inner = {"list": [{"key": 1}, {"key": 1}]}
    document = {"table": inner}
    assign(document, "table.list.1.key", 2)
    assign(document, "table.other", 3)
    assert document["table"] == {"list": [{"key": 1}, {"key": 2}], "other": 3}
    assert inner == {"list": [{"key": 1}, {"key": 1}]}


def test_amounts_that_are_changed_stay_as_they_were_given():
    figure = {"typical": 1.0, "kind": "vendor", "date": "now", "source": "a quote"}
    amounts = {"switch": [{"name": "QM9700", "price_usd": figure}]}
    before = copy.deepcopy(amounts)
    prices = prices_of(amounts, {"switch.0.price_usd.typical": 2.0})
    assert prices.switch[0].price_usd.typical == 2.0
    assert amounts == before


@pytest.mark.parametrize(
    ("document", "overrides", "sentence"),
    [
        ({"override": 3}, {}, r"override must be a table, but is 3"),
        ({}, {"fabric": "nowhere"}, r"fabric must be a preset or a table"),
        ({}, {"accelerator": "nothing"}, r"accelerator must be one of the presets"),
    ],
)
def test_what_is_not_known_is_one_sentence(document, overrides, sentence):
    whole, folder = scenario_document(PRESET)
    with pytest.raises(InputError, match=sentence):
        expanded(whole | document, overrides, folder)
