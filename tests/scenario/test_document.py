"""A scenario as a value: computed once, equal by content, whole after a journey to a worker."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from nest_core.documents.errors import InputError
from nest_core.scenario import Scenario, document, scenario_document

PRESET, _ = scenario_document("llama2-7b-64-h100")


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Overrides of all scenarios whose values are computed from now on."""
    calls: list[dict[str, Any]] = []
    resolve = document.values_of

    def count(document: Any, overrides: Any, folder: Any) -> Any:
        calls.append(overrides)
        return resolve(document, overrides, folder)

    monkeypatch.setattr(document, "values_of", count)
    document._resolved.cache_clear()
    return calls


def test_values_are_computed_once_however_often_they_are_asked_for(resolved):
    """Also by another scenario of the same content, by its fabric, and after pickling."""
    scenario = Scenario(PRESET, {"accelerator.memory_GiB": 40.0})
    values = scenario.values
    assert scenario.fabric is values.fabric
    assert Scenario(dict(PRESET), dict(scenario.overrides)).values is values
    document._resolved.cache_clear()  # as in a process that never saw it
    assert pickle.loads(pickle.dumps(scenario)).values == values
    assert len(resolved) == 1


def test_scenarios_are_equal_by_content():
    """What a preset's name leads to is content too, so the key names the presets' edition."""
    same = Scenario({**PRESET}, {"search.tp": 2, "search.pp": 1})
    assert same == Scenario(PRESET, {"search.pp": 1, "search.tp": 2})
    assert hash(same) == hash(pickle.loads(pickle.dumps(same)))
    assert same != Scenario(PRESET, {"search.tp": 2})


def test_a_fabric_is_there_where_the_rest_is_refused():
    """The Plan page says what a ratio becomes while another field is still wrong."""
    wrong = Scenario(PRESET, {"workload.precision": "fp7", "fabric.clos.devices": 128})
    with pytest.raises(InputError, match="precision"):
        _ = wrong.values
    assert wrong.fabric.devices == 128
    alone = Scenario({"fabric": "h100-spine-leaf-64"}, {"fabric.clos.oversubscription.0": 2.0})
    assert alone.fabric == Scenario(PRESET, {"fabric.clos.oversubscription.0": 2.0}).values.fabric
    with pytest.raises(InputError, match=r"fabric\.clos\.devices"):
        _ = Scenario(PRESET, {"fabric.clos.devices": -1}).fabric
