"""Documents are checked key by key, and the first finding becomes one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.documents.schema import (
    MAX_DEPTH,
    AcceleratorFile,
    FabricFile,
    SearchTable,
    check_plain,
    checked,
)
from nest_core.workload.model_files import ModelFile

FABRIC: dict[str, Any] = {
    "schema": 1,
    "name": "f",
    "kind": "leaf_spine",
    "clos": {
        "devices": 64, "devices_per_node": 8, "nics_per_node": 8, "nic_bandwidth_GBps": 50.0,
        "radix": 64, "tiers": 2, "oversubscription": [1.0], "hop_latency_us": 0.6,
    },
    "intra_node": {"bandwidth_GBps": 450.0, "latency_us": 0.5},
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """The fabric with one key set; `...` takes it out."""
    document: dict[str, Any] = {
        key: dict(entry) if isinstance(entry, dict) else entry for key, entry in FABRIC.items()
    }
    *tables, last = path.split(".")
    place = document
    for part in tables:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


@pytest.mark.parametrize(
    ("kind", "model"),
    [("fabrics", FabricFile), ("accelerators", AcceleratorFile), ("models", ModelFile)],
)
def test_every_preset_keeps_its_schema_and_names_its_source(kind, model):
    """A figure without a source is a guess that nobody can check."""
    assert preset_names(kind)
    for name in preset_names(kind):
        assert checked(model, load_toml(preset_path(kind, f"{name}.toml"))).source


SENTENCES: list[tuple[str, Any, str]] = [
    ("clos.devices", ..., "clos.devices is required, but is 'missing': add it."),
    ("kind", ..., "kind is required, but is 'missing': add it."),
    ("schema", ..., "schema is required, but is 'missing': add it."),
    ("schema", 2, "schema must be 1, but is 2: change it."),
    ("clos.radx", 64, "clos.radx is not a known key, but is 64: write radix."),
    ("clos.zzz", 1, "clos.zzz is not a known key, but is 1: known keys are devices, "),
    ("closs", {}, "closs is not a known key, but is {}: write clos."),
    ("name", "", "name must be text that is not empty, but is '': change it."),
    ("name", "n" * 201, "name must be text of at most 200 characters, but is 'nnn"),
    ("name", 5, "name must be text, but is 5: change it."),
    ("clos", 5, "clos must be a table, but is 5: write { devices = … }."),
    ("clos.devices", "64", "clos.devices must be a whole number, but is '64': change it."),
    ("clos.devices", 64.0, "clos.devices must be a whole number, but is 64.0: change it."),
    ("clos.devices", True, "clos.devices must be a whole number, but is True: change it."),
    ("clos.devices", 0, "clos.devices must be at least 1, but is 0: change it."),
    ("clos.devices", -8, "clos.devices must be at least 1, but is -8: change it."),
    ("clos.tiers", 4, "clos.tiers must be at most 3, but is 4: change it."),
    ("clos.nic_bandwidth_GBps", float("nan"), "must be a finite number, but is nan: change it."),
    ("clos.nic_bandwidth_GBps", float("inf"), "must be a finite number, but is inf: change it."),
    ("clos.nic_bandwidth_GBps", -50, "must be at least 1e-09, but is -50: change it."),
    ("clos.nic_bandwidth_GBps", 0, "must be at least 1e-09, but is 0: change it."),
    ("clos.nic_bandwidth_GBps", 1e19, "must be at most 1e+18, but is 1e+19: change it."),
    ("clos.nic_bandwidth_GBps", 10**400, "the document must hold whole numbers of at most 64 bits"),
    ("clos.nic_bandwidth_GBps", "fast", "must be a number, but is 'fast': change it."),
    ("clos.hop_latency_us", -0.1, "clos.hop_latency_us must be at least 0"),
    ("clos.oversubscription", 4.0, "clos.oversubscription must be a list, but is 4.0"),
    ("clos.oversubscription", [0.5], "clos.oversubscription[0] must be at least 1"),
    ("clos.oversubscription", ["a"], "clos.oversubscription[0] must be a number, but is 'a'"),
    ("clos.oversubscription", [1.0] * 3, "must be a list of at most 2 entries, but is [1.0, 1.0"),
    ("kind", "mesh", "kind must be 'hierarchical'"),
    ("routing", "random", "routing must be 'adaptive'"),
]


@pytest.mark.parametrize(
    ("path", "value", "sentence"), SENTENCES, ids=[f"{p}={str(v)[:20]}" for p, v, _ in SENTENCES]
)
def test_a_finding_is_one_sentence_with_field_rule_value_and_remedy(path, value, sentence):
    """What a person sees; a failure hides the field or the rule."""
    with pytest.raises(InputError) as caught:
        checked(FabricFile, changed(path, value))
    message = str(caught.value)
    assert sentence in message
    assert message.endswith(".")
    assert "\n" not in message


def test_whole_numbers_are_numbers_but_not_the_other_way_round():
    """TOML people write 50 for 50.0; 8.0 devices are a mistake."""
    file = checked(FabricFile, changed("clos.nic_bandwidth_GBps", 50))
    assert file.clos is not None
    assert file.clos.nic_bandwidth_GBps == 50.0


@pytest.mark.parametrize(
    ("search", "sentence"),
    [
        ({"tp": [1, "x"]}, "search.tp[1] must be a whole number, but is 'x'"),
        ({"tp": [0]}, "search.tp[0] must be at least 1, but is 0"),
        ({"tp": {"min": 1, "max": "x"}}, "search.tp.max must be a whole number, but is 'x'"),
        ({"tp": {"mim": 1}}, "search.tp.mim is not a known key, but is 1: write min"),
        ({"tp": "x"}, "search.tp must be a whole number, a list or a table, but is 'x'"),
        ({"zero_group": "x"}, "search.zero_group must be 'all', a whole number or a list, but"),
        ({"zero": [0, 4]}, "search.zero[1] must be at most 3, but is 4"),
        ({"sp": [True, 1]}, "search.sp[1] must be true or false, but is 1"),
        ({"order": [["tp", "xx"]]}, "search.order[0][1] must be 'tp', 'cp', 'dp' or 'pp'"),
        (
            {"recompute": ["none", "x"]},
            "search.recompute[1] must be 'none', 'selective', 'full' or a table, but is 'x'",
        ),
        ({"top": 1.5}, "search.top must be a whole number, but is 1.5"),
    ],
    ids=str,
)
def test_of_several_alternatives_the_one_that_was_meant_is_told(search, sentence):
    """A pin, a list or bounds: a bad entry of a list is about the entry, not about the list."""
    with pytest.raises(InputError) as caught:
        checked(SearchTable, search, "search.")
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "value",
    [2**63 - 1, -(2**63), True, 1.5, "text", [1, [2]], {"a": {"b": [1]}}, [], {}],
    ids=str,
)
def test_plain_values_pass(value):
    check_plain("x", value)


def nested(depth: int, kind: type) -> Any:
    value: Any = kind()
    for _ in range(depth - 1):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 10_000])
def test_deep_nesting_is_refused_without_recursion(kind, depth):
    """Deep values can neither be copied nor shown; a failure is a RecursionError."""
    check_plain("x", nested(MAX_DEPTH, kind))
    with pytest.raises(InputError, match="x must nest at most 32 tables and arrays, but is"):
        check_plain("x", nested(depth, kind))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 16**6000], ids=["above", "below", "far"])
def test_numbers_over_64_bits_are_refused(number):
    """TOML's are 64 bits long; Python cannot even show the long ones."""
    with pytest.raises(InputError, match="x must hold whole numbers of at most 64 bits"):
        check_plain("x", {"a": [number]})
