"""The public API: what it takes, what it answers with, and how it refuses."""

from __future__ import annotations

import inspect
import json
import sys

import numpy as np
import pytest

import nest_core as nest
from nest_core.scenario import load_scenario

SMALL = "llama2-7b-64-h100"


@pytest.fixture(scope="module")
def small():
    return nest.load(SMALL).with_(baselines=["manual"])


@pytest.fixture(scope="module")
def planned(small):
    return nest.plan(small)


def test_every_name_is_there_and_says_what_it_is():
    assert set(nest.__all__) <= set(dir(nest))
    for name in nest.__all__:
        assert inspect.getdoc(getattr(nest, name)), name


@pytest.mark.parametrize("name", nest.list_presets())
def test_a_scenario_by_name_is_that_of_the_command_line(name):
    assert nest.load(name).values == load_scenario(name)


def test_a_scenario_is_the_same_by_name_path_and_table(tmp_path, small):
    file = tmp_path / "mine.toml"
    file.write_text(
        'schema = 1\nname = "m"\nfabric = "h100-spine-leaf-64"\naccelerator = "h100-80gb"\n'
        '[workload]\nmodel = "llama2-7b"\nsequence_length_tokens = 4096\n'
        "global_batch_sequences = 64\n"
    )
    by_path = nest.load(file)
    assert by_path == nest.load(str(file))
    assert by_path.values == nest.load(by_path.document).values


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("oversubscription", [4.0], "fabric.clos.oversubscription=[4.0]"),
        ("micro_batch", 2, "search.micro_batch_sequences=2"),
        ("micro_batch_sequences", np.int64(2), "search.micro_batch_sequences=2"),
        ("memory", np.float64(40.0), "accelerator.memory_GiB=40.0"),
        ("batch", 512, "workload.global_batch_sequences=512"),
        ("zero", (0, 1), "search.zero=[0, 1]"),
        ("model", "llama2-13b", 'workload.model="llama2-13b"'),
        ("fabric", "dgx-superpod-a100", 'fabric="dgx-superpod-a100"'),
        ("intra_node.bandwidth_GBps", 100.0, ""),
    ],
)
def test_a_keyword_changes_what_the_key_of_the_file_does(small, name, value, key):
    if not key:
        with pytest.raises(nest.InputError):
            small.with_(**{name: value})
        return
    assert nest.load(SMALL).with_(**{name: value}).values == load_scenario(SMALL, [key])


def test_a_fabric_can_be_handed_over_and_a_later_change_comes_after(small):
    wide = small.with_(fabric=nest.load_fabric("h100-spine-leaf-64"))
    assert wide.values.fabric == small.values.fabric
    twice = small.with_(oversubscription=[2.0]).with_(oversubscription=[4.0])
    assert twice.values == small.with_(oversubscription=[4.0]).values
    assert small.values.fabric.oversubscription == (1.0,)


def test_a_plan_prints_draws_and_tables_itself(planned):
    assert "proven optimal" in str(planned)
    assert planned.best.iteration_s == planned.to_json()["iteration_time_s"]
    frame = planned.to_frame()
    assert list(frame["name"]) == ["ours", "manual"]
    assert frame["iteration_time_s"][0] <= frame["iteration_time_s"][1]
    assert planned.plot().data
    assert "<table" in planned._repr_html_()


def test_a_plan_can_be_priced_placed_and_exported(small, planned):
    plan = planned.best.plan
    for given in (plan, plan.to_json(), json.dumps(plan.to_json())):
        priced = nest.price(small, given)
        assert priced.report.iteration_s == planned.best.iteration_s
    assert priced.to_frame()["difference_s"].abs().sum() == 0
    assert "0 % against the best plan" in str(priced)
    assert priced.plot().data
    assert sorted(nest.place(small, plan).to_frame()["rank"]) == list(range(64))
    files = nest.export(small, "megatron", plan).files
    assert f"--micro-batch-size {plan.point.micro_batch}" in files["plan.args"]
    for result in (planned, planned.best):
        assert nest.price(small, result).report == priced.report
        assert nest.export(small, "megatron", result).files == files


def test_a_plan_that_is_priced_is_not_ahead_of_the_best_plan(small, planned, monkeypatch):
    """Where the search has no work for a plan of its own, what is priced is the best there is."""
    monkeypatch.setattr(sys.modules["nest_core.planner.search"], "_WORK", 0.0)
    assert nest.price(small, planned).best == planned.best


def test_exported_files_are_written(small, tmp_path):
    found = nest.export(small, "megatron", "dp=64")
    for path in found.write(tmp_path / "new"):
        assert path.read_text() == found.files[path.name]


def test_levels_sweeps_and_comparisons_are_tables(small):
    levels = nest.levels("h100-spine-leaf-1024")
    assert levels.to_frame()["name"].tolist() == ["node", "leaf", "spine"]
    assert levels.plot().data
    swept = nest.sweep(small, micro_batch=[1, 2])
    assert swept.to_frame()["feasible"].tolist() == [True, True]
    found = nest.compare({"a": small, "b": small.with_(oversubscription=[4.0])}, failures=False)
    assert found.to_frame()["scenario"].tolist() == ["a", "b"]
    borne = nest.ratios(small, {"llama2-7b": 2, "qwen2-7b": 1}, loss=0.002)
    parts = [{"model": "llama2-7b", "share": 4.0}, {"model": "qwen2-7b", "share": 2.0}]
    assert borne.rows() == nest.ratios(small, parts, loss=0.002).rows()
    for study in (swept, found, borne):
        assert study.plot().data
        assert "<table" in study._repr_html_()
        assert len(study.to_frame()) == len(study.rows())
        assert max(map(len, str(study).splitlines())) <= 100


def test_a_swept_value_stands_in_its_row_even_where_no_scenario_has_it(small):
    """Memory per device is also what a row tells of a point, and was lost where there is none."""
    swept = nest.sweep(small, memory=[1.0, 80.0])
    assert swept.to_frame()["memory_per_device_GiB"].tolist() == [1.0, 80.0]


def test_compared_scenarios_are_called_by_what_sets_them_apart(small):
    """Titles used to be cut in the middle of what all of them share."""
    tight = small.with_(oversubscription=[4.0])
    found = nest.compare([small, tight, tight], failures=False)
    assert [one.name for one in found.found.candidates] == [
        "1. spine-leaf 1:1",
        "2. spine-leaf 4:1",
        "3. spine-leaf 4:1",
    ]


def test_a_loaded_scenario_can_be_loaded_and_changed(small):
    assert nest.load(small) is small
    assert nest.load(small, {"search.zero": 1}) == small.with_(zero=1)


WRONG = {
    "overubscription must be a parameter of this scenario, but is [2]: write oversubscription.":
        lambda s: s.with_(overubscription=[2]),
    "accelerator.memory_GiB must be a finite number, but is nan: change it.":
        lambda s: s.with_(memory=float("nan")),
    "fabric.clos.oversubscription must be a list, but is 4.0: change it.":
        lambda s: s.with_(oversubscription=4.0),
    "fabric must be a table, but is 5: write { schema = … }.": lambda s: s.with_(fabric=5),
    "scenario must be a preset's name, a path or a table, but is None: name one.":
        lambda s: nest.plan(None),
    "overrides must be a table of dotted keys, but is 3: ": lambda s: nest.load(SMALL, 3),
    "overrides must be a table of dotted keys, but is {1: 1}: ":
        lambda s: nest.load(SMALL, {1: 1}),
    "zero must be text, a number, a list or a table, but is <generator object ":
        lambda s: s.with_(zero=(i for i in (0, 1))),
    "fabric.clos must be text, a number, a list or a table, but is <object ":
        lambda s: nest.levels({"clos": object()}),
    "progress must be a function, but is 3: ": lambda s: nest.plan(s, progress=3),
    "stop must be a function, but is True: ": lambda s: nest.plan(s, stop=True),
    "placement must be a path, but is 3: ": lambda s: nest.price(s, "dp=64", placement=3),
    "plan must be a file's name, the fields of a plan or a command, but is None: ":
        lambda s: nest.price(s, nest.plan(s.with_(memory=2.0))),
    "to must be a known target, but is []: pick ": lambda s: nest.export(s, []),
    "folder must be a path, but is None: ":
        lambda s: nest.export(s, "megatron", "dp=64").write(None),
    "zero must be a list, but is 1: ": lambda s: nest.sweep(s, zero=1),
    "recompute must be a list, but is 'none': ": lambda s: nest.sweep(s, recompute="none"),
    "micro_bach must be a parameter of the scenario, but is 'micro_bach': write micro_":
        lambda s: nest.sweep(s, micro_bach=[1]),
    "scenarios must be a list, but is None: ": lambda s: nest.compare(None),
    "scenarios must be a list, but is 'llama2-7b-64-h100': ": lambda s: nest.compare(SMALL),
    "failures must be True or False, but is 'no': ": lambda s: nest.compare([s, s], failures="no"),
    "mix must be a list, but is 'llama2-7b': ": lambda s: nest.ratios(s, "llama2-7b"),
    "mix[0].share must be a finite number, but is nan: ":
        lambda s: nest.ratios(s, {"llama2-7b": float("nan")}),
    "loss must be at most 0.9, but is 2: ":
        lambda s: nest.ratios(s, {"llama2-7b": 1.0}, 2),
    "scenario must be a preset or a path to a .toml file, but is 'no': pick ":
        lambda s: nest.load("no"),
    "fabric must be a preset's name, a path or a table, but is 3: name one.":
        lambda s: nest.levels(3),
    "accelerator must be one of the presets, but is 'x': pick ":
        lambda s: nest.load_accelerator("x"),
    "workload.model must be a preset, a path to a config.json or trace or a table, but is 'x':":
        lambda s: nest.load_model("x"),
    "plan must be a file's name, the fields of a plan or a command, but is 5: give one.":
        lambda s: nest.price(s, 5),
    "plan.dp must be a whole number from 1 to 10,000,000, but is nan: ":
        lambda s: nest.price(s, {"dp": float("nan")}),
    "to must be a known target, but is 'word': pick ": lambda s: nest.export(s, "word"),
    "rails must be a parameter of the scenario, but is 'rails': pick ":
        lambda s: nest.sweep(s, rails=[1]),
    "sweep must have one or two parameters, but is []: name them.": lambda s: nest.sweep(s),
    "fabric.clos.oversubscription[0] must be a finite number, but is nan: change it.":
        lambda s: nest.sweep(s, oversubscription=[float("nan")]),
    "entries must list 2 to 6 scenarios, but is 1: add or remove some.":
        lambda s: nest.compare([s]),
    "kind must be a kind of presets, but is 'no': pick ": lambda s: nest.list_presets("no"),
    "placement must come with a plan, but is 'p.csv': give the plan.":
        lambda s: nest.place(s, placement="p.csv"),
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG)
def test_bad_input_is_one_sentence(small, sentence):
    with pytest.raises(nest.InputError) as caught:
        WRONG[sentence](small)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", nest.list_presets())
def test_every_keyword_is_a_key_that_the_file_may_have(name):
    """What a scenario is asked to change is refused for its value at most, never for its key."""
    asked = nest.load(name)
    for keyword in dict(asked._keys()):
        with pytest.raises(nest.InputError) as caught:
            asked.with_(**{keyword: object()})
        assert "is not a known key" not in str(caught.value), keyword
