"""Documents of any shape: comparisons in links, stored states, notebooks, models, drawings.

What cannot be read is said in one sentence; what is read opens on every page that takes it.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from hostile import SMALL, TORUS, VALUES, faults, opened

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.files import decoded
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import load_toml, preset_names
from nest_core.interop.formats import read_fabric
from nest_core.report.figures import Chart
from nest_core.report.notebook import (
    PinOutput,
    new_notebook,
    pin_cells,
    read_notebook,
    write_notebook,
)
from nest_core.report.notebook.report import html_report
from nest_core.scenario import Scenario, fabric_document, load_fabric, scenario_document
from nest_core.workload.hugging_face import read_config
from nest_core.workload.model_files import load_model, model_table
from nest_studio.session.store import Notebooks, StoredLinks

DOCUMENT = scenario_document(SMALL)[0]
OVERRIDES = (
    "fabric",
    "fabric.clos",
    "fabric.clos.devices",
    "fabric.clos.oversubscribe",
    "fabric.clos.oversubscription.0",
    "fabric.level.1.oversubscription",
    "workload",
    "workload.model",
    "workload.model.blocks",
    "workload.global_batch_sequences",
    "workload.sequence_length_tokens",
    "workload.precision",
    "workload.optimizer",
    "search",
    "search.tp",
    "search.ep",
    "search.zero",
    "search.recompute",
    "search.offload",
    "search.order",
    "search.micro_batch_sequences",
    "search.memory_rule",
    "accelerator",
    "accelerator.memory_GiB",
    "name",
    "override",
    "",
    ".",
    "a.b",
    "fabric.name",
    "search.zero.0",
)
ENTRIES = [{"name": name, "document": DOCUMENT, "overrides": {}} for name in "ab"]
PINS = {
    "plan": {"document": DOCUMENT, "overrides": {"search.zero": [1]}},
    "sweep": {
        "document": DOCUMENT, "overrides": {}, "y": None,
        "x": {"parameter": "memory", "values": [60, 80.0]},
    },
    "comparison": {
        "entries": ENTRIES, "budget": {"kind": "price", "value": 1e6}, "failures": False,
    },
    "ratios": {
        "document": DOCUMENT, "overrides": {}, "loss": 0.02,
        "mix": [{"model": "llama2-7b", "share": 1.0}],
    },
}  # fmt: skip
OLD_NOTEBOOK = {
    "schema": 1, "name": "Hostile", "created": "2026-11-22T12:04:00+00:00", "changed": "",
    "cells": [
        {"id": kind, "kind": kind, "title": "P", "note": "note", "inputs": inputs,
         "summary": {"rows": [{"MFU": 0.4}], "versions": {}, "date": "2026-11-22T12:04:00+00:00"}}
        for kind, inputs in PINS.items()
    ],
}  # fmt: skip
OUTPUT = PinOutput("words", "<b>words</b>", (Chart("T", "S", "R", go.Figure(go.Bar(y=[1]))),))
NOTEBOOK = json.loads(write_notebook(new_notebook([
    cell for kind, inputs in PINS.items() for cell in pin_cells(kind, "P", "note", inputs, OUTPUT)
])))  # fmt: skip
MODELS = [model_table(load_model(name)) for name in ("llama2-7b", "deepseek-v3", "gpt3-175b")]
CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 11008,
}  # fmt: skip


def places(document: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, as keys and numbers from its root."""
    inner: Any = document.items() if isinstance(document, dict) else ()
    if isinstance(document, list):
        inner = enumerate(document)
    return [
        place for key, value in inner for place in ((*before, key), *places(value, (*before, key)))
    ]


def spoiled(document: Any, rng: random.Random, values: tuple[Any, ...] = VALUES) -> Any:
    """The document with one to three values replaced, taken out or added."""
    made = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        known = places(made)
        if not known:
            return made
        *way, last = rng.choice(known)
        place = made
        for key in way:
            place = place[key]
        if rng.random() < 0.75:
            place[last] = copy.deepcopy(rng.choice(values))
        elif isinstance(place, dict) and rng.random() < 0.5:
            place[rng.choice(("x", "", "a.b", "kind", "name"))] = copy.deepcopy(rng.choice(values))
        else:
            del place[last]
    return made


def refuses(read: Any) -> str:
    """The sentence with which something is refused; empty if it is read."""
    try:
        read()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "read",
    [
        lambda rng: (
            Scenario(spoiled(DOCUMENT, rng), {rng.choice(OVERRIDES): rng.choice(VALUES)}).values
        ),
        lambda rng: (
            Scenario(
                DOCUMENT
                | {
                    "fabric": spoiled(
                        fabric_document(rng.choice(preset_names("fabrics")[:20])), rng
                    )
                }
            ).values
        ),
        lambda rng: read_notebook(json.dumps(spoiled(NOTEBOOK, rng))),
        lambda rng: read_notebook(json.dumps(spoiled(OLD_NOTEBOOK, rng))),
        lambda rng: load_model(spoiled(rng.choice(MODELS), rng)),
        lambda rng: read_config(json.dumps(spoiled(CONFIG, rng)), "m"),
        lambda rng: read_fabric(
            json.dumps(spoiled(fabric_document("drawn-8"), rng)).encode(), "f.json"
        ),
    ],
    ids=[
        "scenario",
        "inline fabric",
        "notebook",
        "old notebook",
        "model",
        "config.json",
        "fabric file",
    ],
)
@pytest.mark.sampled(4)
def test_documents_are_read_or_refused_in_a_sentence(read):
    rng = random.Random(18)
    for _ in range(250):
        told = refuses(lambda: read(rng))
        assert "\n" not in told
        assert not told or told.endswith(".")


RAW = (
    "null", "NaN", "Infinity", "1e999", "-1e999", "9" * 300, "9" * 5000, "1e-320", "[" * 5000,
    "[" * 5000 + "]" * 5000, '{"a":' * 900 + "1" + "}" * 900, "{a=" * 900 + "1" + "}" * 900,
    "2026-11-22", "07:30:00", "inf", "nan", "-0", "-0.0", "1e9", "0", "true", '"7"', '"\\ud800"',
    "[]", "{}", '""',
)  # fmt: skip
"""What a file may say for a value; some of it in JSON or TOML alone, some in neither."""
VALUE = re.compile(r'(?<=[:=] )(?:-?[0-9][0-9.e+]*|"[^"\n]*"|true|false)')


def said_oddly(text: str, rng: random.Random) -> str:
    """A file's text with one to three of its values replaced by raw text."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        values = list(VALUE.finditer(text))
        if not values:
            return text
        found = rng.choice(values)
        text = text[: found.start()] + rng.choice(RAW) + text[found.end() :]
    return text


PRICES = load_toml(Path(__file__).parents[2] / "presets" / "prices" / "2026.toml")
FABRICS = [load_fabric(name) for name in ("h100-spine-leaf-64", "tpu-v4-2x2x4", "drawn-8")]


def priced(folder: Path, rng: random.Random) -> None:
    """Bills by a list of any shape, of its own or over the preset's."""
    whole = PRICES if rng.random() < 0.5 else {"schema": 1, "base": "2026", **part(rng)}
    text = toml_document(whole)
    try:
        if rng.random() < 0.5:
            text = toml_document(spoiled(whole, rng, TOML_VALUES))
    except (TypeError, ValueError):  # no TOML says it
        return
    if rng.random() < 0.6:
        text = said_oddly(text, rng)
    (folder / "own.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    settings = (
        [f"{rng.choice(FIGURES)}={rng.choice(RAW[:7] + RAW[12:])}"] if rng.random() < 0.3 else []
    )
    prices = load_prices("own.toml", settings, folder)
    for fabric in FABRICS:
        found = bill(fabric, prices)
        assert math.isfinite(found.price_usd.high)
        assert math.isfinite(found.power_W.high)


def part(rng: random.Random) -> dict[str, Any]:
    name = rng.choice([key for key in PRICES if key not in ("schema", "base")])
    return {name: copy.deepcopy(PRICES[name])}


FIGURES = (
    "switch.0.price_usd.typical",
    "floor.racks_per_row.typical",
    "cabling.media",
    "nic.99.name",
    "floor.row_pitch_m.low",
    "switch",
    "schema",
    "cable.0.reach_m.typical",
    "floor.nodes_per_rack",
)
TOML_VALUES = tuple(value for value in VALUES if value is not None)


def test_price_lists_are_read_or_refused_in_a_sentence(tmp_path):
    rng = random.Random(18)
    told = [refuses(lambda: priced(tmp_path, rng)) for _ in range(150)]
    assert all("\n" not in one and (not one or one.endswith(".")) for one in told)
    assert 30 < sum(map(bool, told)) < 150


@pytest.mark.check
@pytest.mark.parametrize("seed", range(20))
def test_price_lists_are_read_or_refused_in_a_sentence_at_length(tmp_path, seed):
    rng = random.Random(100 + seed)
    for _ in range(300):
        told = refuses(lambda: priced(tmp_path, rng))
        assert "\n" not in told
        assert not told or told.endswith(".")


@pytest.mark.parametrize("sound", [NOTEBOOK, OLD_NOTEBOOK], ids=["Jupyter", "old"])
@pytest.mark.parametrize(
    "times", [pytest.param(100), pytest.param(5000, marks=pytest.mark.check)], ids=str
)
@pytest.mark.sampled(2)
def test_notebook_files_are_read_or_refused_in_a_sentence(sound, times):
    """As the page reads an upload; what is read is written and reported."""
    rng = random.Random(18)
    for _ in range(times):
        text = json.dumps(spoiled(sound, rng), indent=1)
        content = said_oddly(text, rng).encode() if rng.random() < 0.7 else text.encode()
        if rng.random() < 0.1:
            content = content[: rng.randrange(len(content))] + rng.randbytes(3)

        def read(content=content):
            notebook = read_notebook(decoded(content, "notebook"))
            html_report("N", notebook)
            assert read_notebook(write_notebook(notebook)) == notebook

        told = refuses(read)
        assert "\n" not in told
        assert not told or told.endswith(".")


def press(page, prefix):
    """Press every button of a kind, one after another, each from where it stands."""
    for key in [one.key for one in page.button if one.key and one.key.startswith(prefix)]:
        page.button(key=key).click().run()
        assert not faults(page), key
        break


def compare(root, listed) -> None:
    page = opened(
        "compare",
        {"compare": json.dumps(listed)},
        str(root / "nest_studio" / "server" / "script.py"),
    )
    assert not faults(page), listed
    press(page, "compare-plan-")
    page.run()
    assert not faults(page), listed
    page.switch_page("../../pages/compare.py").run()
    assert not faults(page), listed
    page.button(key="compare-start-over").click().run()
    assert not faults(page), listed
    assert len([one for one in page.text_input if one.label.startswith("Name of")]) == 3


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        (SMALL, {"fabric": {"kind": "fat_tree", "clos": None}}),
        (SMALL, {"fabric": {**fabric_document("torus-16x16"), "clos": None}}),
        (TORUS, {"fabric.clos.oversubscription.0": 2.0, "fabric.clos": None}),
    ],
)
def test_a_fabric_without_its_table_is_not_opened_on_plan(root, store, name, asked):
    compare(root, [["a", name, asked], ["b", SMALL, {}]])


def entries_of(seed: int) -> list[Any]:
    rng = random.Random(seed)
    name = rng.choice((SMALL, TORUS))
    asked = {rng.choice(OVERRIDES): copy.deepcopy(rng.choice(VALUES)) for _ in range(2)}
    listed: list[Any] = [["a", name, asked], ["b", SMALL, {}]]
    return spoiled(listed, rng) if seed % 4 == 0 else listed


ODD_KINDS = [
    {"search.tp": {"max": "x"}},
    {"fabric": {"kind": "leaf_spine", "clos": []}},
    {"fabric": None},
    {"workload.model": {"name": 1}},
    {"name": "\ud800"},
]
ODD_VALUES = [
    {"accelerator.memory_GiB": "many"},
    {"search.tp": []},
    {"fabric": 5},
    {"fabric.clos.devices": "x"},
    {"workload.sequence_length_tokens": 10**9},
    {"search.micro_batch_sequences": {"max": 10**6}},
    {"accelerator.memory_GiB": 1e6},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "overrides",
    [*ODD_KINDS, *(pytest.param(one, marks=pytest.mark.check) for one in ODD_VALUES)],
    ids=str,
)
@pytest.mark.sampled(2)
def test_a_comparison_of_odd_overrides_opens_and_stays_usable(root, store, overrides):
    compare(root, [["a", SMALL, overrides], ["b", SMALL, {}]])


@pytest.mark.parametrize("several", [ODD_VALUES[:4], ODD_VALUES[4:]], ids=["read", "large"])
@pytest.mark.sampled(2)
def test_odd_overrides_side_by_side_open_and_stay_usable(root, store, several):
    compare(root, [["b", SMALL, {}], *(["a", SMALL, overrides] for overrides in several)])


@pytest.mark.check
def test_comparisons_of_any_shape_break_no_page(root, store):
    for seed in range(2):
        compare(root, entries_of(seed))


@pytest.mark.check
@pytest.mark.parametrize("seed", range(300))
def test_comparisons_of_any_shape_break_no_page_at_length(root, store, seed):
    compare(root, entries_of(100 + seed))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", ["plan", "design", "compare", "explore", "workload"])
def test_a_comparisons_key_is_no_fabric(root, store, page):
    key = StoredLinks(store).put({"compare": json.dumps([["a", SMALL, {}]])})
    shown = opened(
        page,
        {"own": key, "fabric": "My fabric"},
        str(root / "nest_studio" / "server" / "script.py"),
    )
    assert not faults(shown)
    if page in ("plan", "design", "explore"):
        assert any("is not in this studio's store" in one.value for one in shown.info)


def test_a_fabrics_key_is_no_comparison(root, store):
    key = StoredLinks(store).put({"document": {"schema": 1}, "notes": []})
    page = opened(
        "compare", {"compare": f"kept.{key}"}, str(root / "nest_studio" / "server" / "script.py")
    )
    assert not faults(page)
    assert any("cannot be read" in one.value for one in page.warning)


def notebook(root, store, document) -> None:
    """A notebook that is taken can be opened and leads to other pages."""
    try:
        Notebooks(store).save("Hostile", read_notebook(json.dumps(document)))
    except InputError:
        return
    page = opened(
        "notebook", {"notebook": "Hostile"}, str(root / "nest_studio" / "server" / "script.py")
    )
    assert not faults(page), document
    for prefix in ("open-", "down-"):
        page = opened(
            "notebook", {"notebook": "Hostile"}, str(root / "nest_studio" / "server" / "script.py")
        )
        press(page, prefix)
        page.run()
        assert not faults(page), (prefix, document)
        page.switch_page("../../pages/notebook.py").run()
        assert not faults(page), (prefix, document)


def notebook_with(kind, **changes):
    """A notebook of one pin some of whose inputs are others."""
    return new_notebook(pin_cells(kind, "P", "", PINS[kind] | changes))


MIXES = [
    [{"model": "llama2-7b"}],
    [{"share": 1.0}],
    [{"model": "llama2-7b", "share": 1.0}] * 2,
    [{"model": "llama2-7b", "share": 5e6}, {"model": "llama2-13b", "share": 1.0}],
    [{"model": "llama2-7b", "share": "half"}],
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mix", MIXES, ids=range(len(MIXES)))
def test_a_notebook_with_an_odd_mix_opens(root, store, mix):
    notebook(root, store, notebook_with("ratios", mix=mix, loss=0.9))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "budget", [{"kind": "pieces"}, {"kind": "price", "value": 5e14}, {"value": 1.0}, {}]
)
@pytest.mark.sampled(2)
def test_a_notebook_with_an_odd_budget_opens(root, store, budget):
    notebook(root, store, notebook_with("comparison", budget=budget))


@pytest.mark.parametrize("overrides", [{"accelerator.memory_GiB": "x"}, {"search.tp": []}])
def test_a_notebook_with_odd_overrides_opens(root, store, overrides):
    notebook(root, store, notebook_with("plan", overrides=overrides))


def test_a_stored_notebook_that_is_none_leaves_the_shelf(root, store):
    Notebooks(store).save("Sound", new_notebook(pin_cells("note", "N", "words", {})))
    page = opened(
        "notebook", {"notebook": "Sound"}, str(root / "nest_studio" / "server" / "script.py")
    )
    with store.transaction() as connection:
        connection.exec_driver_sql("UPDATE notebooks SET document = '{}' WHERE name = 'Sound'")
    page.run()
    assert not faults(page)
    assert any("must be a Jupyter notebook of format 4" in one.value for one in page.error)
    assert page.radio(key="notebook list").options == ["Sound"]


@pytest.mark.check
@pytest.mark.parametrize("seed", range(200))
def test_notebooks_of_any_shape_open_at_length(root, store, seed):
    notebook(root, store, spoiled(NOTEBOOK, random.Random(seed)))
