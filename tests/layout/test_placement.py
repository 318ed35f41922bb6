"""Device tables and placements made by hand: read back as written, priced as they lie."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from nest_core.costs import Plan, Point, StageStrategy, price
from nest_core.costs.layout import device_order, rank_mapping
from nest_core.costs.links import links
from nest_core.costs.parse import read_plan
from nest_core.costs.placement import COLUMNS, rank_mapping_of, read_placement
from nest_core.documents.errors import InputError
from nest_core.scenario import load_scenario

ORDERS = (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"), ("tp", "dp", "cp", "pp"))
SCENARIO = load_scenario("llama2-7b-64-h100")
PROBLEM = SCENARIO.problem()
NETWORK = PROBLEM.network


def plans():
    for order in ORDERS:
        for host_mapping in ("natural", "rail"):
            point = Point(2, False, 4, 2, 1, 1, order, host_mapping, cp=2, ep=4)
            yield Plan(point, (0, 17, 34), ("none", "none"))
    mixed = Point(4, True, 4, 2, 1, 0, ORDERS[0])
    strategies = (StageStrategy(4, True, 1, 1, 0), StageStrategy(2, False, 2, 2, 1))
    yield Plan(mixed, (0, 17, 34), ("none", "full"), strategies)


PLANS = list(plans())


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.point.order}")
def test_a_device_sits_where_costs_say(plan):
    """Groups of every class, read off the table, are those that the costs price."""
    rows = rank_mapping_of(NETWORK, plan).rows()
    assert [row["device"] for row in rows] == list(range(64))
    used = [row for row in rows if row["rank"] is not None]
    assert sorted(row["rank"] for row in used) == list(range(plan.point.devices_used))
    assert all(set(row) == set(COLUMNS) for row in rows)
    for stage in range(plan.point.pp):
        point = plan.stage_point(stage)
        here = {
            (row["dp"] * point.cp + row["cp"], row["tp"]): row
            for row in used
            if row["stage"] == stage == row["pp"] and row["replica"] == row["dp"]
        }
        placed = rank_mapping(NETWORK, point.layout, point.device_order)[stage]
        assert len(here) == placed.size
        for place, device in np.ndenumerate(placed):
            assert here[place]["device"] == device
        # Experts: blocks of ep neighbours among a stage's dp * cp ranks, by rank number.
        for tp in range(point.tp):
            line = sorted(
                (row for row in here.values() if row["tp"] == tp), key=lambda r: r["rank"]
            )
            assert [row["ep"] for row in line] == [n % point.ep for n in range(len(line))]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.point.order}")
def test_a_table_is_read_back_in_every_form(plan):
    """CSV and JSON, by rank and by coordinates, as lists and as maps: one device order."""
    found = rank_mapping_of(NETWORK, plan)
    rows = found.rows()
    expected = tuple(device_order(NETWORK, plan.point.device_order)[: plan.point.devices_used])
    by_rank = {row["rank"]: row["device"] for row in rows if row["rank"] is not None}
    few = [{k: row[k] for k in ("device", "pp", "dp", "cp", "tp")} for row in rows]
    named = [{k: row[k] for k in ("device", "stage", "replica", "cp", "tp")} for row in rows]
    rng = np.random.default_rng(0)
    for text in (
        found.to_csv(),
        json.dumps({"plan": plan.to_json(), "placement": rows}),
        json.dumps(few),
        json.dumps(list(rng.permutation(np.array(named)))),
        json.dumps([by_rank[rank] for rank in sorted(by_rank)]),
        json.dumps(by_rank),
        "rank, device\r\n" + "\r\n".join(f"{rank}, {by_rank[rank]}" for rank in by_rank) + "\r\n",
    ):
        assert read_placement(text, plan, 64) == expected


def test_the_csv_is_one_row_per_device():
    text = rank_mapping_of(NETWORK, PLANS[0]).to_csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 64
    assert tuple(rows[0]) == COLUMNS
    assert rows[-1]["device"] == "63"
    assert rows[-1]["rank"] == rows[-1]["stage"] == ""


PLAN = read_plan("dp=2,tp=4,pp=4,zero=1,micro_batch=1", 34, 64)


def at(order, plan=PLAN, problem=PROBLEM):
    return price(problem, replace(plan, point=replace(plan.point, device_order=order))).iteration_s


def test_a_named_order_written_out_costs_the_same():
    for name in ("natural", "rail", "rack"):
        assert at(tuple(device_order(NETWORK, name).tolist())) == at(name)
    assert at(tuple(range(32))) == at("natural")  # idle devices need no mention
    assert at("rail") != at("natural")


def test_what_the_fabric_cannot_tell_apart_costs_the_same_and_the_rest_does_not():
    """Exchanged nodes of one leaf and shuffled nodes are one placement, torn tp groups are not."""
    rng = np.random.default_rng(1)
    natural = at("natural")
    shuffled = np.concatenate([8 * node + rng.permutation(8) for node in range(8)])
    groups = shuffled.reshape(-1, 8)
    within = np.sort(groups, axis=1)  # the same nodes, their devices in order
    assert at(tuple(within.reshape(-1).tolist())) == natural
    torn = np.arange(64).reshape(8, 8).T.reshape(-1)  # tp across nodes
    assert at(tuple(torn.tolist())) > 1.5 * natural


def test_a_placement_moves_every_class_of_traffic():
    """The links of a hand-made placement are those of its devices, not of the rank numbers."""
    order = tuple(reversed(range(64)))
    point = replace(PLAN.point, device_order=order)
    assert rank_mapping(NETWORK, point.layout, order)[0, 0, 0] == 63
    far = tuple(range(32, 64)) + tuple(range(32))
    assert links(PROBLEM, replace(point, device_order=far)).producer_level.tolist() == (
        links(PROBLEM, replace(point, device_order="natural")).producer_level.tolist()
    )


BAD_ORDERS = [
    ((0, 1, 2), "device_order must place all 32 ranks, but is 3"),
    ((0, *range(31)), r"device_order\[1\] must differ from that of rank 0, but is 0"),
    ((*range(31), 64), r"device_order\[31\] must be one of the devices 0 to 63, but is 64"),
    ((*range(31), -1), r"device_order\[31\] must be one of the devices 0 to 63, but is -1"),
]


@pytest.mark.parametrize(("order", "message"), BAD_ORDERS)
def test_orders_that_place_nobody_or_two_are_refused(order, message):
    with pytest.raises(InputError, match=message):
        at(order)


GOOD = [f"{rank},{rank}" for rank in range(32)]
BAD_FILES = [
    ("", "must have a column device"),
    ("rank,seat\n0,0", "must have known columns, but is 'seat'"),
    ("rank\n0", "must have a column device"),
    ("rank,rank,device\n0,0,0", "must name a column once"),
    ("rank,device\n0,0,0", "row 1 must have as many cells as the header"),
    ("rank,device\n0,x", "row 1, device must be a whole number from 0, but is 'x'"),
    ("rank,device\n-1,0", "row 1, rank must be a whole number from 0, but is '-1'"),
    ("rank,device\n32,0", "row 1, rank must lie between 0 and 31, but is 32"),
    ("rank,device\n0,64", "row 1, device must lie between 0 and 63, but is 64"),
    ("rank,device\n0,5\n0,6", "row 2 must not place a rank that has a device already"),
    ("rank,device\n0,5\n1,5", "row 2, device must differ from that of rank 0, but is 5"),
    (
        "rank,device\n" + "\n".join(GOOD[:-1]),
        "must place all 32 ranks of the plan, but is",
    ),
    ("device,tp,dp\n0,0,0", "row 1, pp must be given, since pp is 4"),
    ("device,tp,dp,pp\n0,4,0,0", "must name a rank that the plan has, but is 'tp 4, cp 0"),
    ("device\n0", "row 1 must name a rank, or tp, cp, dp and pp"),
    ("[0, 1", "must be valid JSON"),
    ('{"placement": 5}', "must hold a list of rows or devices, but is 5"),
    ('[{"rank": 0, "device": 0}, 1]', "row 2 must be an object, but is 1"),
    ('[{"rank": 0, "place": 0}]', "row 1 must have known columns, but is 'place'"),
    ("[0, 0.5]", "row 2, device must be a whole number from 0, but is 0.5"),
    ('{"a": 0}', "row 1, rank must be a whole number from 0, but is 'a'"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES, ids=[text[:25] for text, _ in BAD_FILES])
def test_the_first_fault_of_a_file_is_named(text, message):
    with pytest.raises(InputError) as caught:
        read_placement(text, PLAN, 64, "mapping.csv")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_stages_of_a_mixed_plan_must_not_overlap():
    point = replace(PLANS[-1].point, order=("tp", "pp", "cp", "dp"))
    with pytest.raises(InputError, match="must keep the stages of a mixed plan apart"):
        rank_mapping_of(NETWORK, replace(PLANS[-1], point=point))
