"""Sweeps: every point is the plan of a scenario that was written out in full."""

from __future__ import annotations

import json

import pytest

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.planner import search
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_core.studies.parameters import (
    parameter_named,
    parse_values,
    sweep_parameters,
    with_values,
)
from nest_core.studies.sweeps import changes, sweep

PRESET = "llama2-7b-64-h100"
LARGE = "gpt3-175b-64-h100"
FEW = {"search.schedule": ["1f1b"], "search.cp": 1, "search.dp": 1}
"""Few plans to choose from."""

SCENARIOS = preset_names("scenarios")


def asked(x, y=(None, ()), preset=PRESET, **overrides):
    document, _ = scenario_document(preset)
    return Scenario(document, overrides), [(key, list(values)) for key, values in (x, y) if key]


def known(preset=PRESET, overrides=None):
    document, _ = scenario_document(preset)
    return sweep_parameters(Scenario(document, overrides or {}))


WRITTEN = [
    (PRESET, "oversubscription.0", 3, ["fabric.clos.oversubscription=[3.0]"]),
    (PRESET, "speed.nic", 12.5, ["fabric.clos.nic_bandwidth_GBps=12.5"]),
    (PRESET, "speed.node", 100, ["fabric.intra_node.bandwidth_GBps=100.0"]),
    (PRESET, "node", 4, ["fabric.clos.devices_per_node=4", "fabric.clos.nics_per_node=4"]),
    (PRESET, "devices", 32, ["fabric.clos.devices=32"]),
    (PRESET, "batch", 512, ["workload.global_batch_sequences=512"]),
    (PRESET, "micro_batch", 4, ["search.micro_batch_sequences={min=4, max=4}"]),
    (PRESET, "zero", 3, ["search.zero=[3]"]),
    (PRESET, "recompute", "full", ['search.recompute=["full"]']),
    (PRESET, "sequence", 8192, ["workload.sequence_length_tokens=8192"]),
    (PRESET, "memory", 40, ["accelerator.memory_GiB=40.0"]),
    ("bert-large-64-v100", "oversubscription.2", 4, ["fabric.level.2.oversubscription=4.0"]),
    ("bert-large-64-v100", "speed.1", 25, ["fabric.level.1.bandwidth_GBps=25.0"]),
    (
        "bert-large-64-v100", "node", 4,
        ["fabric.level.0.group_size=4", "fabric.level.1.group_size=8"],
    ),
    ("bert-large-64-v100", "devices", 128, ["fabric.level.2.group_size=4"]),
    ("llama2-7b-64-tpu-torus", "devices", 32, ["fabric.torus.shape=[4, 4, 2]"]),
    ("llama2-7b-64-tpu-torus", "speed.link", 90, ["fabric.torus.link_bandwidth_GBps=90.0"]),
]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("preset", "parameter", "value", "sets"), WRITTEN, ids=[f"{w[0]}-{w[1]}" for w in WRITTEN]
)
@pytest.mark.sampled(4)
def test_a_point_is_the_plan_of_the_scenario_it_stands_for(preset, parameter, value, sets):
    (point,) = sweep(*asked((parameter, [value]), preset=preset)).points
    scenario = load_scenario(preset, sets)
    best = search(scenario.problem(), scenario.space).best
    assert point.plan == json.loads(json.dumps(best.plan.to_json()))
    assert point.iteration_s == best.iteration_s
    assert point.tokens_per_s == pytest.approx(
        scenario.batch * scenario.sequence / best.iteration_s
    )
    assert point.mfu == best.mfu
    assert point.memory_bytes == max(stage.memory.total for stage in best.stages)
    assert point.devices == scenario.fabric.devices
    assert point.network_usd == bill(scenario.fabric, load_prices()).price_usd.typical


def test_two_parameters_turn_together_row_by_row():
    found = sweep(*asked(("zero", [1, 3]), ("micro_batch", [1, 2])))
    assert [point.values for point in found.points] == [(1, 1), (3, 1), (1, 2), (3, 2)]
    for point in found.points:
        assert (point.plan["zero"], point.plan["micro_batch"]) == point.values


def test_an_override_of_the_form_gives_way_to_the_parameter():
    plain = sweep(*asked(("memory", [40])))
    changed = sweep(*asked(("memory", [40]), **{"accelerator.memory_GiB": 20.0}))
    assert changed.points == plain.points
    assert changed.x.present == 20.0


def test_a_point_that_does_not_fit_says_by_how_much():
    found = sweep(*asked(("memory", [40, 80]), preset=LARGE, **FEW))
    small, large = found.points
    assert small.status == "memory"
    assert small.reason.startswith("No plan fits into memory")
    assert large.feasible
    enough = small.needed_bytes / 2**30 + 0.01
    assert sweep(*asked(("memory", [enough]), preset=LARGE, **FEW)).points[0].feasible


def test_a_point_that_no_scenario_has_is_a_point_with_a_reason():
    wrong, right = sweep(*asked(("micro_batch", [3, 4]))).points
    assert wrong.status == "invalid"
    assert wrong.reason.startswith("search.micro_batch_sequences must divide the batch of 1024")
    assert right.feasible


def test_a_time_limit_is_no_proof():
    (point,) = sweep(*asked(("zero", [1]), **{"search.time_limit_s": 1e-9})).points
    assert point.status in ("time limit", "solved")
    assert not point.proven


def test_once_stopped_what_is_there_is_kept_and_nothing_that_was_cut_short():
    whole = sweep(*asked(("zero", [0, 1, 2, 3])))
    told = []
    some = sweep(
        *asked(("zero", [0, 1, 2, 3])),
        progress=lambda share, words: told.append((share, words)),
        stop=lambda: len(told) > 2,
    )
    assert whole.complete
    assert not some.complete
    assert some.points == whole.points[:2]
    assert told[1] == (0.25, "point 2 of 4, ZeRO stage ZeRO 1")


def test_rows_are_plain_and_carry_units():
    rows = sweep(*asked(("memory", [40, 80]), preset=LARGE, **FEW)).rows()
    json.dumps(rows)
    assert [row["memory_per_device_GiB"] for row in rows] == [40, 80]
    assert [row["feasible"] for row in rows] == [False, True]
    assert rows[1]["zero"] == 0
    assert rows[1]["tokens_per_s"] > 0


def test_changes_name_what_plans_differ_in_but_not_what_was_turned():
    one, other = sweep(*asked(("micro_batch", [2, 8]))).points
    said = changes(one, other)
    assert "micro-batch 2 → 8" in said
    assert f"dp {one.plan['dp']} → {other.plan['dp']}" in said
    assert "micro-batch 2 → 8" not in changes(one, other, ("micro_batch",))
    assert changes(one, one) == ()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (asked(("rails", [1])), "rails must be a parameter of the scenario, but is 'rails'"),
        (asked(("zero", [4])), "search.zero must be at most 3, but is 4: change it"),
        (asked(("zero", [1.5])), "search.zero must be a whole number or a list, but is 1.5"),
        (
            asked(("recompute", ["some"])),
            "search.recompute must be 'none', 'selective', 'full', a table or a list, but is",
        ),
        (asked(("zero", [])), "zero must have 1 to 40 values"),
        (asked(("memory", ["80"])), "accelerator.memory_GiB must be a number, but is '80'"),
        (asked(("memory", [True])), "accelerator.memory_GiB must be a number, but is True"),
        (asked(("zero", [1]), ("zero", [2])), "zero must be swept once"),
        (
            asked(("memory", range(10, 50)), ("batch", range(1, 12))),
            "values must make at most 400 points, but is 440",
        ),
        (asked(("zero", [1]), **{"fabric": "nowhere"}), "fabric must be a preset"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(inputs, message):
    with pytest.raises(InputError, match=message):
        sweep(*inputs)


@pytest.mark.parametrize("preset", SCENARIOS)
def test_every_parameter_has_values_worth_trying_and_keeps_what_is_there(preset):
    document, _ = scenario_document(preset)
    scenario = Scenario(document, {}).values
    for parameter in known(preset):
        assert len(parameter.values) >= 2, parameter.name
        assert parameter.values == parse_values(parameter, ", ".join(map(str, parameter.values)))
        if parameter.present is None or parameter.name == "recompute":
            continue
        assert parameter.present in parameter.values
        same = Scenario(document, with_values({}, [(parameter, parameter.present)])).values
        assert same.fabric == scenario.fabric
        assert same.batch == scenario.batch
        assert same.sequence == scenario.sequence
        assert same.accelerator == scenario.accelerator


@pytest.mark.parametrize("fabric", preset_names("fabrics"))
def test_a_fabrics_parameters_keep_the_fabric_where_it_is(fabric):
    document, _ = scenario_document(PRESET)
    overrides = {"fabric": fabric}
    before = Scenario(document, overrides).values.fabric
    for parameter in known(overrides=overrides):
        if parameter.fabric:
            turned = with_values(overrides, [(parameter, parameter.present)])
            assert Scenario(document, turned).values.fabric == before, parameter.name


def test_a_fabrics_table_has_the_overrides_in_it():
    document, _ = scenario_document(PRESET)
    overrides = {"fabric": "dgx-superpod-h100", "fabric.clos.oversubscription.0": 2.0}
    assert Scenario(document, overrides).fabric_table["clos"]["oversubscription"] == [2.0]
    assert Scenario(document, {"fabric": "dgx-superpod-h100"}).fabric_table["clos"][
        "oversubscription"
    ] == [1.0]


@pytest.mark.parametrize(
    ("parameter", "text", "message"),
    [
        ("memory", "80, much", "accelerator.memory_GiB must be a number, but is 'much'"),
        ("memory", "nan", "accelerator.memory_GiB must be a finite number"),
        ("memory", "0.0001", "accelerator.memory_GiB must be at least 0.001, but is 0.0001"),
        (
            "recompute",
            "no",
            "search.recompute must be 'none', 'selective', 'full', a table or a list, but is 'no'",
        ),
        ("zero", " , ", "ZeRO stage must have 1 to 40 values, but is 0"),
    ],
)
def test_values_are_read_or_refused_in_one_sentence(parameter, text, message):
    with pytest.raises(InputError, match=message):
        parse_values(parameter_named(known(), parameter), text)


def test_values_stay_in_the_order_asked_and_are_kept_once():
    assert parse_values(parameter_named(known(), "memory"), "80; 40,80.0") == (80.0, 40.0)
    assert parse_values(parameter_named(known(), "recompute"), "full, none") == (
        "full",
        "none",
    )


def test_a_sweep_has_its_points_in_the_order_asked():
    """A failure: values came back sorted, whatever was asked."""
    swept = sweep(*asked(("micro_batch", [4, 1]), ("zero", [2, 0])))
    assert [row.values for row in swept.points] == [(4, 2), (1, 2), (4, 0), (1, 0)]
    values = [(row["micro_batch_sequences"], row["zero"]) for row in swept.rows()]
    assert values == [(4, 2), (1, 2), (4, 0), (1, 0)]
