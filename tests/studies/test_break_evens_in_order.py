"""Designs in order, with ties inside the paired interval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nest_core.documents.errors import InputError
from nest_core.scenario import scenario_or_fabric
from nest_core.studies.break_evens import ordered
from nest_core.studies.designs import whole_bills
from nest_core.studies.solving import SwitchLoss

PINS = {
    "search.tp": 2,
    "search.pp": 1,
    "search.zero": [1],
    "search.recompute": ["none"],
    "search.micro_batch_sequences": 1,
}


@pytest.fixture(scope="module")
def bills():
    asked = scenario_or_fabric("llama2-7b-64-h100", PINS, None)
    return whole_bills(asked, ["1:1", "2:1", "torus", "spine=LPO"])


def test_days_and_price_are_in_order_and_ties_are_mutual(bills):
    for by in ("days", "price"):
        rows = ordered(bills, by)
        values = [row.value for row in rows]
        assert values == sorted(values)
        assert rows[0].rank == 1
        ties = {row.name: set(row.ties) for row in rows}
        assert all(name in ties[other] for name, found in ties.items() for other in found)


def test_what_the_paired_interval_cannot_tell_apart_ties_and_a_torus_does_not(bills):
    rows = {row.name: row for row in ordered(bills, "days")}
    assert "spine=LPO" in rows["1:1"].ties  # the same links, other optics
    assert rows["1:1"].rank == rows["spine=LPO"].rank == 1
    assert rows["torus"].ties == ()
    assert rows["torus"].rank == 4


def test_without_plans_the_whole_bill_orders_and_nothing_ties():
    fabrics = whole_bills(
        scenario_or_fabric("h100-spine-leaf-64", {}, None), ["1:1", "2:1", "fat-tree"]
    )
    rows = ordered(fabrics)
    assert [row.name for row in rows] == ["2:1", "1:1", "fat-tree"]
    assert [row.value for row in rows] == [
        b.owned.total_usd.typical for b in (fabrics[1], fabrics[0], fabrics[2])
    ]
    assert all(row.value is None and row.text == "unknown" for row in ordered(fabrics, "days"))


def test_the_worst_single_failure_orders_by_what_is_lost(bills):
    small, large = (
        SwitchLoss("spine", ("spine 0",), 64, 0.1, 0.02),
        SwitchLoss("leaf", ("leaf 0",), 63, 0.4, 0.3),
    )
    lost = [
        replace(bills[0], losses=(small, large)),
        replace(bills[1], losses=(small,)),
        replace(bills[2], losses=()),
    ]
    rows = ordered(lost, "failure")
    assert [(row.name, row.value, row.note) for row in rows] == [
        ("2:1", 0.02, "one spine"),
        ("1:1", 0.3, "one leaf"),
        ("torus", None, ""),
    ]
    with pytest.raises(InputError, match="order must be price, days or failure"):
        ordered(lost, "colour")


@pytest.mark.parametrize(
    ("beside", "sentence"),
    [
        (["1:1", "1:1"], "--compare must name every design once"),
        (["scale-up 7"], "scale-up size must divide the 64 devices"),
        (["spine=DAC"], r"optics\.spine must reach the 6 m"),
        (["no-such"], "fabric must"),
    ],
)
def test_designs_that_there_are_not_are_refused(beside, sentence):
    with pytest.raises(InputError, match=sentence):
        whole_bills(scenario_or_fabric("h100-spine-leaf-64", {}, Path()), beside)


def test_another_scale_up_keeps_devices_and_nics():
    (found,) = whole_bills(scenario_or_fabric("h100-spine-leaf-64", {}, None), ["scale-up 16"])
    assert (found.owned.devices, found.owned.network.nics, found.owned.network.nodes) == (64, 64, 4)
    assert found.owned.lines[0].usd is None  # no listed server has 16 devices
