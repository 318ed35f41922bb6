"""The JSON file of a notebook: no loss, and one sentence for whatever is no notebook."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest_core.errors import InputError
from nest_core.notebook import Cell, Notebook, Summary, from_json, to_json
from nest_core.notebook.document import to_document

DATE = "2026-11-22T12:04:00+00:00"
FIGURES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20),
)  # fmt: skip
SUMMARIES = st.builds(
    Summary,
    st.lists(st.dictionaries(st.text(max_size=9), FIGURES, max_size=4), max_size=3).map(tuple),
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=2),
    st.just(DATE),
)
TITLES = st.text(min_size=1, max_size=30)


@given(
    st.text("abc Ωé-", min_size=1, max_size=20).map(str.strip).filter(bool),
    st.lists(st.tuples(TITLES, st.text(max_size=60), st.none() | SUMMARIES), max_size=4),
)
def test_a_notebook_is_read_back_without_loss(name, parts):
    cells = tuple(
        Cell(f"c{number}", "note", title, note, {}, summary)
        for number, (title, note, summary) in enumerate(parts)
    )
    notebook = Notebook(name, cells, DATE, DATE)
    assert from_json(to_json(notebook)) == notebook


def test_a_pinned_plan_is_read_back_without_loss(small_notebook):
    assert from_json(to_json(small_notebook)) == small_notebook


def test_the_file_says_its_schema(small_notebook):
    assert json.loads(to_json(small_notebook))["schema"] == 1


@pytest.fixture
def document(small_notebook):
    return copy.deepcopy(to_document(small_notebook))


def put(document, path, value):
    *tables, last = path
    for part in tables:
        document = document[part]
    document[last] = value


SCENARIO = ("cells", 1, "inputs", "document")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), 2, "schema must be 1, but is 2"),
        (("name",), "", "notebook name must have 1 to 100 characters"),
        (("extra",), 1, "extra is not a known key"),
        (("cells",), {}, "cells must be a list"),
        (("cells", 0, "kind"), "plot", r"cells\[0\].kind must be 'plan', 'sweep'"),
        (("cells", 0, "id"), "a b", r"cells\[0\].id must be 1 to 64 letters"),
        (("cells", 0, "id"), "p", "cells must have different ids"),
        (("cells", 0, "title"), "", r"cells\[0\].title must be text that is not empty"),
        (("cells", 0, "note"), "x" * 50_001, "note must be text of at most 50000 characters"),
        (("cells", 0, "inputs"), {"x": 1}, r"cells\[0\].inputs.x is not a known key"),
        (("cells", 1, "inputs"), {}, r"cells\[1\].inputs.document is required"),
        (("cells", 1, "summary", "date"), "today", "date must be a date with its time zone"),
        (("cells", 1, "summary", "date"), "2026-11-22", "date must be a date with its time zone"),
        (("changed",), "yesterday", "changed must be a date with its time zone"),
        (("cells", 1, "summary", "rows", 0, "t"), [1], "rows.* must be "),
        (("cells", 1, "summary", "rows", 0, "t"), 2**70, "whole numbers of at most 64 bits"),
        ((*SCENARIO, "fabric"), "../secret.toml", "document.fabric must be a preset or a table"),
        ((*SCENARIO, "workload", "model"), "/x.json", "workload.model must be a preset or a"),
        ((*SCENARIO, "override"), {"accelerator.profile": "p.json"}, "profile must be one of"),
        ((*SCENARIO, "override"), {"workload": {"model": "m.json"}}, "model must be a preset"),
        (("cells", 1, "inputs", "overrides"), {"fabric": "f.graphml"}, "fabric must be a preset"),
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_one_sentence(document, path, value, message):
    put(document, path, value)
    with pytest.raises(InputError, match=message) as caught:
        from_json(json.dumps(document))
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "notebook must be JSON"),
        ("{", "notebook must be JSON"),
        ("[1]", "notebook must be a JSON object"),
        ('{"schema": NaN}', "notebook must hold finite numbers"),
        ('{"nbformat": 4, "cells": []}', "notebook must be a notebook of the studio"),
        ("[" * 200_000, "notebook must not nest deeply"),
        ('{"a": 1' + "0" * 5_000 + "}", "notebook must be JSON"),
        ('"' + "x" * 5_000_001 + '"', "notebook must hold at most 5,000,000 bytes"),
    ],
)
def test_what_is_no_json_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        from_json(text)


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("sweep", {"document": {}}, "inputs.x is required"),
        ("comparison", {"entries": []}, "entries must be a list of at least 2 entries"),
        ("comparison", {"entries": [1, 2]}, r"entries\[0\] must be a table"),
        ("ratios", {"document": {}, "mix": []}, "mix must be a list of at least 1 entr"),
        (
            "ratios",
            {"document": {}, "mix": [{"model": "m.json", "share": 1.0}], "loss": 0.1},
            r"mix\[0\].model must be a preset",
        ),
        (
            "comparison",
            {"entries": [{"name": n, "document": {"fabric": "f.toml"}} for n in "ab"]},
            r"entries\[0\].document.fabric must be a preset",
        ),
    ],
)
def test_inputs_are_checked_by_kind(kind, inputs, message):
    cell = {"id": "a", "kind": kind, "title": "T", "inputs": inputs}
    with pytest.raises(InputError, match=message):
        from_json(json.dumps({"schema": 1, "name": "N", "cells": [cell]}))


def test_a_folder_is_refused(small_inputs):
    cell = {"id": "a", "kind": "plan", "title": "T", "inputs": {**small_inputs, "folder": "/etc"}}
    with pytest.raises(InputError, match=r"inputs\.folder is not a known key"):
        from_json(json.dumps({"schema": 1, "name": "N", "cells": [cell]}))
