"""Names that visitors give lead to presets, never to files; only who names a folder reads files.

What is opened is told by the interpreter (`opened_files`), not by the code under test.
"""

from __future__ import annotations

import ast
import copy
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opened_files import opened_below

from nest_core.api.answer import answer
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.failures import load_failures
from nest_core.documents.files import read_text
from nest_core.documents.presets import load_toml, preset_path
from nest_core.hardware import load_accelerator, load_profile
from nest_core.report.notebook.inputs import checked_inputs
from nest_core.scenario import Scenario, fabric_document, load_scenario, scenario_document
from nest_core.studies.comparison import compare
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.sweeps import highest_ratios, sweep
from nest_core.workload.model_files import load_model

ROOT = Path(__file__).resolve().parent.parent
READERS = ("nest_studio/commands/", "nest_studio/session/store/")
SMALL = "llama2-7b-64-h100"
SECRET = "hunter2"
KEYS = ("fabric", "workload.model", "accelerator.profile", "accelerator")
KINDS = (".toml", ".json", ".graphml", ".conf", ".yaml", "")


@pytest.fixture
def documents():
    """A preset's document, fresh."""
    return lambda: copy.deepcopy(load_toml(preset_path("scenarios", f"{SMALL}.toml")))


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    """A folder of files that nobody may read: of every ending, none of them what it says."""
    folder = tmp_path_factory.mktemp("vault")
    for ending in KINDS:
        (folder / f"secret{ending}").write_text(f"{SECRET} = [\n{SECRET}\n")
    (folder / "scenario.toml").write_text(read_text(preset_path("scenarios", f"{SMALL}.toml")))
    return folder


def _dotted(document, key, value):
    place = document
    *tables, last = key.split(".")
    if tables == ["accelerator"]:
        place["accelerator"] = load_toml(
            preset_path("accelerators", f"{place['accelerator']}.toml")
        )
    for table in tables:
        place = place[table]
    place[last] = value
    return document


# Ways in which a name of somebody else's reaches the core.
WAYS = {
    "an override": lambda d, key, name: Scenario(d, {key: name}).values,
    "the document": lambda d, key, name: Scenario(_dotted(d, key, name)).values,
    "its overrides": lambda d, key, name: Scenario(d | {"override": {key: name}}).values,
    "parameters": lambda d, key, name: sweep_parameters(Scenario(d, {key: name})),
    "a sweep": lambda d, key, name: sweep(Scenario(d, {key: name}), [("zero", [0])]),
    "a comparison": lambda d, key, name: compare([(n, Scenario(d, {key: name})) for n in "ab"]),
    "ratios": lambda d, key, name: highest_ratios(
        Scenario(d, {key: name}), [{"model": "llama2-7b", "share": 1}], 0.02
    ),
    "a mix": lambda d, _, name: highest_ratios(Scenario(d), [{"model": name, "share": 1}], 0.02),
    "a notebook": lambda d, key, name: checked_inputs(
        "plan", {"document": d, "overrides": {key: name}}
    ),
    "a scenario": lambda _, __, name: scenario_document(name),
    "a fabric": lambda _, __, name: fabric_document(name),
    "a model": lambda _, __, name: load_model(name),
    "an accelerator": lambda _, __, name: load_accelerator(name),
    "a profile": lambda _, __, name: load_profile(name),
    "a price list": lambda _, __, name: load_prices(name),
    "failures": lambda _, __, name: load_failures(name),
    "their base": lambda _, __, name: load_failures({"base": name}),
}


def refused(way, documents, vault, key, name):
    """What is said of a name; nothing of the vault is opened or told."""
    with opened_below(vault) as opened, pytest.raises(InputError) as caught:
        WAYS[way](documents(), key, name)
    assert not opened
    assert SECRET not in str(caught.value)
    return caught.value.field, caught.value.rule, caught.value.remedy


@pytest.mark.parametrize("way", WAYS)
def test_a_strangers_path_is_not_opened(way, documents, vault, monkeypatch):
    """A failure: a link, an upload or a notebook reads files of the server."""
    monkeypatch.chdir(vault)
    for key, ending in product(KEYS, KINDS):
        for name in (f"secret{ending}", str(vault / f"secret{ending}")):
            refused(way, documents, vault, key, name)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_does_not_depend_on_the_file(way, documents, vault):
    """A failure: messages tell which files the server has."""
    for key, ending in product(KEYS, KINDS):
        there, absent = (str(vault / f"{stem}{ending}") for stem in ("secret", "absent"))
        said = refused(way, documents, vault, key, there)
        assert said == refused(way, documents, vault, key, absent)


PARTS = st.sampled_from(
    [
        "..",
        ".",
        "/",
        "//",
        "\\",
        "~",
        "secret",
        ".toml",
        ".json",
        "scenario.toml",
        "{vault}",
        "file:",
        "%2e%2e",
        "\0",
        " ",
        "presets",
        "models",
        "llama2-7b",
        SMALL,
        "\u2024\u2024",
        "$HOME",
    ]
)


def any_name(vault, documents, parts, way, key):
    name = "".join(parts).format(vault=vault)
    said = ""
    with opened_below(vault) as opened:
        try:
            WAYS[way](documents(), key, name)
        except InputError as error:
            said = str(error)
    assert not opened
    assert SECRET not in said


QUICK = ("an override", "a notebook", "a scenario", "a fabric", "a model", "a profile")
FIXED = (HealthCheck.function_scoped_fixture,)


@settings(max_examples=60, deadline=None, suppress_health_check=FIXED)
@given(parts=st.lists(PARTS, max_size=6), way=st.sampled_from(QUICK), key=st.sampled_from(KEYS))
def test_no_name_opens_a_file(vault, documents, monkeypatch, parts, way, key):
    monkeypatch.chdir(vault)
    any_name(vault, documents, parts, way, key)


@pytest.mark.check
@settings(max_examples=5000, deadline=None, suppress_health_check=FIXED)
@given(parts=st.lists(PARTS, max_size=9), way=st.sampled_from(QUICK), key=st.sampled_from(KEYS))
def test_no_name_of_many_opens_a_file(vault, documents, monkeypatch, parts, way, key):
    monkeypatch.chdir(vault)
    any_name(vault, documents, parts, way, key)


def test_who_names_a_folder_reads_files(vault, tmp_path):
    """The command line and one's own programs: relative to the file, and absolute."""
    scenario = (vault / "scenario.toml").read_text()
    (tmp_path / "mine.toml").write_text(
        read_text(preset_path("fabrics", "h100-spine-leaf-64.toml"))
    )
    (tmp_path / "s.toml").write_text(scenario + '\n[override]\nfabric = "mine.toml"\n')
    found = load_scenario("s.toml", folder=tmp_path)
    assert found == load_scenario(str(tmp_path / "s.toml"))
    assert answer(found).result.best is not None
    with pytest.raises(InputError, match="scenario must be one of the presets"):
        load_scenario("s.toml", folder=None)


OPENERS = {
    "open",
    "preset_path",
    "load_scenario",
    "load_fabric",
    "read_given",
    "read_plan",
    "read_instance",
    "Path",
    "PurePath",
}
SERVES = {
    "nest_studio/paths.py",
    "nest_studio/server/shell.py",
    "nest_studio/__main__.py",
    "nest_studio/server/system.py",
    "nest_studio/jobs/workers.py",
}
"""Where the server finds its own parts; nothing of a visitor reaches them."""


def test_pages_open_nothing():
    """What can open a path is named by no page and by nothing that pages share."""
    sources = [*(ROOT / "pages").glob("*.py"), *(ROOT / "nest_studio").rglob("*.py")]
    found = []
    for path in sources:
        name = path.relative_to(ROOT).as_posix()
        if name in SERVES or name.startswith(READERS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func.id if isinstance(node.func, ast.Name) else ""
                gives = {keyword.arg for keyword in node.keywords}
                if called in OPENERS or "folder" in gives:
                    found.append(f"{name}:{node.lineno}")
    assert not found
