"""Offloading: what leaves the device, what that takes, and how it is asked, planned, exported."""

from __future__ import annotations

import json
from typing import Any

import pytest

import nest_core as nest
from nest_core.costs.head_room import at_most, spread_of
from nest_core.costs.parse import read_pasted
from nest_core.documents.errors import InputError

HOST_BPS = 63e9
PLAN: dict[str, Any] = {"tp": 2, "sp": True, "dp": 4, "zero": 1}
NODE = {
    "name": "node",
    "group_size": 8,
    "uplink_per": "device",
    "bandwidth_GBps": 450.0,
    "oversubscription": 1.0,
    "latency_us": 0.5,
}


def asked(offload: object = "none", **search: object) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "offload",
        "fabric": {"kind": "hierarchical", "level": [NODE]},
        "accelerator": "h100-80gb",
        "workload": {
            "model": "llama3-8b",
            "sequence_length_tokens": 8192,
            "global_batch_sequences": 8,
            "precision": "bf16",
            "optimizer": "adam",
        },
        "search": {**PLAN, "pp": 1, "cp": 1, "recompute": "none", "offload": offload, **search},
    }


def priced(offload: object, **plan: object):
    return nest.price(asked(), PLAN | {"offload": offload} | plan).report


def test_nothing_offloaded_is_a_plan_as_before():
    plain = nest.price(asked(), PLAN).report
    assert priced("none") == priced({"optimizer": 0.0}) == plain
    assert "offload" not in plain.plan.to_json()


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_optimizer_states_leave_and_their_step_is_paid_on_the_host(share):
    plain, away = priced("none"), priced({"optimizer": share})
    (before,), (after,) = plain.stages, away.stages
    assert after.memory.optimizer == pytest.approx((1 - share) * before.memory.optimizer)
    assert after.memory.host == pytest.approx(share * before.memory.optimizer)
    assert after.memory.weights == before.memory.weights
    assert after.memory.gradients == before.memory.gradients
    # bf16 with Adam: 12 bytes of states read and written, 4 of gradients and 2 of weights once on
    # the host and once on the link; dp ranks share it.
    elements = before.memory.weights / 2 / PLAN["dp"]
    host = share * elements * (2 * 12 + 2 * (4 + 2)) / HOST_BPS
    here = elements * (2 * 12 + 4 + 2) / nest.load(asked()).values.problem().update_Bps
    assert away.iteration_s - plain.iteration_s == pytest.approx(host - share * here, rel=1e-6)


def test_activations_leave_and_what_compute_does_not_cover_is_waited_for():
    plain, (before,) = priced("none"), priced("none").stages
    table = nest.load(asked()).values.problem().table(2, True, 1, 1, 1, 2)
    kept, forward = table.kept_bytes[0], table.forward_s
    backward = table.compute_s - forward
    for share in (0.1, 0.5, 1.0):
        away = priced({"activations": share})
        (after,) = away.stages
        moved = share * float(kept[1:-1].sum())
        assert before.memory.activations - after.memory.activations == pytest.approx(moved)
        assert after.memory.host == pytest.approx(moved)
        copied = share * kept[1] / HOST_BPS
        assert after.launch_s == pytest.approx(before.launch_s, abs=1e-12)
        assert after.compute_s == pytest.approx(before.compute_s)
        waits = max(0.0, copied - forward[1]) + max(0.0, copied - backward[1])
        micro_batches = 8 // PLAN["dp"]
        assert away.iteration_s - plain.iteration_s == pytest.approx(
            micro_batches * waits * (len(kept) - 2), rel=1e-6, abs=1e-12
        )


def test_more_offloaded_holds_less_and_takes_no_less():
    for name in ("activations", "optimizer"):
        reports = [priced({name: share}) for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
        totals = [report.stages[0].memory.total for report in reports]
        assert totals == sorted(totals, reverse=True)
        seconds = [report.iteration_s for report in reports]
        assert seconds == sorted(seconds)


def surely(needed: float) -> float:
    """Memory that is enough for so much as surely as plans must fit."""
    return needed / at_most(1.0, spread_of("megatron").sd)


def test_the_search_offloads_where_nothing_else_fits_and_repeats_its_plan():
    needed = priced({"optimizer": 1.0}).stages[0].memory.total
    scenario = asked(["none", {"optimizer": 1.0}])
    assert nest.plan(scenario).result.best.plan.offload.spelled == "none"
    scenario["override"] = {"accelerator.memory_GiB": surely(needed + 1e6) / 2**30}
    answer = nest.plan(scenario).to_json()
    assert answer["plan"]["offload"] == {"optimizer": 1.0}
    repeated = nest.price(scenario, json.loads(json.dumps(answer["plan"]))).report
    assert repeated.iteration_s == answer["iteration_time_s"]
    alone = asked()
    alone["override"] = scenario["override"]
    assert not nest.plan(alone).to_json()["feasible"]


@pytest.mark.parametrize(
    "plan",
    [PLAN | {"offload": "optimizer:0.5"}, PLAN | {"offload": {"activations": 0.25}}],
)
def test_megatron_is_told_and_tells_back(plan):
    files = nest.export(asked(), "megatron", plan).files
    told = read_pasted(str(files["plan.args"]), 34, 8)
    assert told.plan.offload == nest.price(asked(), plan).report.plan.offload
    assert told.unpriced == ()


def test_deepspeed_is_told():
    plan = {"dp": 8, "zero": 3, "offload": "optimizer:0.5"}
    files = nest.export(asked(), "deepspeed", plan).files
    zero = json.loads(str(files["ds_config.json"]))["zero_optimization"]
    assert zero["offload_optimizer"] == {"device": "cpu", "pin_memory": True, "ratio": 0.5}


CANNOT = [
    ("megatron", {"offload": "activations:0.3"}, "Offload must name activations of whole"),
    (
        "megatron",
        {"offload": "activations:0.5", "dp": 2, "pp": 2},
        "Pipeline parallel (pp) must be 1 where",
    ),
    ("megatron", {"offload": "optimizer:1", "zero": 0}, "Offload must leave the optimizer"),
    ("deepspeed", {"offload": "optimizer:0.5", "tp": 1, "sp": False, "dp": 8}, "Offload must"),
    ("nemo", {"offload": "optimizer:1"}, "Offload must be none for Megatron-Bridge"),
    ("torchtitan", {"offload": "optimizer:1"}, "Offload must be none for torchtitan"),
]


@pytest.mark.parametrize(("target", "plan", "words"), CANNOT)
def test_what_a_framework_does_not_offload_is_refused(target, plan, words):
    assert nest.export(asked(), target, PLAN | plan).refused.startswith(words)


REFUSED = [
    ({"optimizer": 1.5}, "search.offload.optimizer must be"),
    ({}, "search.offload must be none, or name shares"),
    (["none", "some"], "search.offload"),
]


@pytest.mark.parametrize(("offload", "words"), REFUSED)
def test_what_cannot_be_offloaded_is_refused_in_a_sentence(offload, words):
    with pytest.raises(InputError) as caught:
        nest.load(asked(offload))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"offload": "optimizer:2"}, r"plan\.offload\.optimizer must be a share from 0 to 1"),
        ({"offload": "optimizer:1+optimizer:0.5"}, r"plan\.offload must name each share once"),
        (
            {"offload": "optimizer"},
            r"plan\.offload\.optimizer must be a share .*write 0\.5 for half",
        ),
        ({"offload": "weights:1"}, r"plan\.offload must be none, or name shares of activations"),
        (
            {"offload": "activations:1", "recompute": "full"},
            r"plan\.recompute must be none where activations are offloaded",
        ),
        (
            {"offload": "activations:1", "dp": 2, "pp": 2, "schedule": "zb_h1"},
            r"plan\.schedule must be no zero-bubble schedule where activations are offloaded",
        ),
    ],
)
def test_a_plan_that_does_not_exist_is_refused(plan, words):
    with pytest.raises(InputError, match=words):
        nest.price(asked(), PLAN | plan)


def test_a_device_without_a_known_link_to_its_host_offloads_nothing():
    scenario = asked({"optimizer": 1.0}) | {"accelerator": "tpu-v5p"}
    with pytest.raises(InputError, match=r"accelerator\.host_bandwidth_GBps must be given where"):
        nest.plan(scenario)
