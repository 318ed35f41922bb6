"""Comparisons: every figure against another way to it, budgets kept, equals told as equal."""

from __future__ import annotations

import csv
import io
import json
import pickle
from dataclasses import replace

import pytest
from percent_columns import uneven

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.report.figures.comparison import pictures
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_core.studies.comparison import MOST, compare, differing, settings_of
from nest_core.studies.equal_budget import MAX_DEVICES, Budget, at_budget
from nest_core.studies.whole_bill import bill_of_scenario
from nest_studio.cli import run as command

JOB = "llama2-7b-64-h100"

# Few plans, so that many sizes are solved quickly; ZeRO 3 fits everywhere.
QUICK = {
    "search.tp": [1, 8],
    "search.pp": 1,
    "search.cp": 1,
    "search.zero": 3,
    "search.recompute": "full",
    "search.schedule": "1f1b",
    "search.micro_batch_sequences": 1,
}


def entry(name, scenario=JOB, **overrides):
    """Overrides with ``__`` for the dots of their keys."""
    document, _ = scenario_document(scenario)
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return name, Scenario(document, dotted)


def quick(name, **overrides):
    _, made = entry(name, **overrides)
    return name, replace(made, overrides=QUICK | made.overrides)


def inputs(*entries, budget=None, failures=False):
    return {"entries": list(entries), "budget": budget, "failures": failures}


def printed(capsys, *arguments):
    capsys.readouterr()
    assert command([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_scenario_beside_itself_differs_in_nothing():
    found = compare(**inputs(quick("a"), quick("b"), budget={"kind": "price"}, failures=True))
    assert [line.figure for line in found.lines() if any(line.differs)] == []
    first, second = found.rows()
    assert first.pop("scenario") == "a"
    assert second.pop("scenario") == "b"
    assert first == second
    assert found.candidates[0].settings == ()


def test_nests_program_stands_beside_the_exact_search_where_it_is_asked_for():
    plain = compare(**inputs(quick("a"), quick("b", workload__global_batch_sequences=512)))
    assert [one.nest for one in plain.candidates] == [None, None]
    entries = (quick("a"), quick("b", workload__global_batch_sequences=512))
    found = compare(**inputs(*entries) | {"level_wise": True})
    part = [line for line in found.lines() if line.part == "NEST, level-wise program (paper)"]
    assert part[1].figure == "Promised"
    for place, one in enumerate(found.candidates):
        assert part[0].values[place] == one.nest.report.iteration_s
        lost = sum(line.values[place] for line in part[2:])
        assert lost == pytest.approx(one.nest.report.iteration_s - one.report.iteration_s, abs=1e-9)
    assert len(found.lines()) == len(plain.lines()) + len(part)
    (picture,) = set(map(_title, pictures(found))) - set(map(_title, pictures(plain)))
    assert picture == "NEST's level-wise program and the exact search tie everywhere"


def _title(picture):
    return picture.title


@pytest.mark.parametrize("name", ["h100-spine-leaf-64", "dgx-superpod-h100", "v100-pods-64"])
@pytest.mark.sampled(3)
def test_value_for_money_is_that_of_the_commands(capsys, name):
    """Throughput by ``plan``, price and power by ``bom``, divided here."""
    found = compare(**inputs(quick("one", fabric=name), quick("another"))).candidates[0]
    sets = [f"{key}={json.dumps(value)}" for key, value in QUICK.items()]
    options = [part for text in (*sets, f'fabric="{name}"') for part in ("--set", text)]
    plan = printed(capsys, "plan", JOB, *options, "--set", "baselines.names=[]")
    bom = printed(capsys, "bom", name)
    tokens = plan["samples_per_s"] * found.scenario.sequence
    assert found.tokens_per_s == pytest.approx(tokens, rel=1e-9)
    assert found.tokens_per_s_per_W == pytest.approx(tokens / bom["power_w"], rel=1e-9)
    assert found.bill.price_usd.typical == pytest.approx(bom["price_usd"])
    watts = bom["power_w"] + 700.0 * found.scenario.fabric.devices  # an H100 SXM draws 700 W
    assert found.all_power_W == pytest.approx(watts)


def test_whole_bills_are_those_of_the_command_at_any_price():
    """Prices move without planning anew, and come to what a plan at these prices comes to."""
    asked = inputs(quick("one"), quick("two", fabric="v100-pods-64"))
    changes = {"ownership.device_usd.typical": 30_000.0, "ownership.sold_share.typical": 0.7}
    moved = compare(**asked).at(changes, {"tokens": 1e12})
    for one, (name, scenario) in zip(moved.candidates, asked["entries"], strict=True):
        own = {f"prices.{key}": value for key, value in changes.items()}
        again = bill_of_scenario(
            name, Scenario(scenario.document, {**scenario.overrides, **own}), tokens=1e12
        )
        assert one.to_json() == again.to_json()
    assert (
        compare(**asked, prices=changes).at(changes).lines() == compare(**asked).at(changes).lines()
    )


def test_the_interval_is_that_of_the_command(capsys):
    found = compare(**inputs(entry("one", "llama3-70b-1024-h100", **WIDE), quick("another")))
    options = [
        p
        for key, value in WIDE.items()
        for p in ("--set", f"{key.replace('__', '.')}={json.dumps(value)}")
    ]
    plan = printed(capsys, "plan", "llama3-70b-1024-h100", *options, "--set", "baselines.names=[]")
    tokens = plan["samples_per_s"] * plan["interval"]["centre_s"] * 4096
    span = found.candidates[0].tokens_per_s_span
    ends = [tokens / plan["interval"][end] for end in ("high_s", "low_s")]
    assert span == pytest.approx(ends)
    assert found.candidates[1].name == "another"


WIDE = {"search__tp": 4, "search__pp": 4, "search__zero": 1, "search__schedule": "1f1b"}


def test_order_is_that_of_the_inputs_and_changes_no_figure():
    a, b = quick("a"), quick("b", fabric="mi300x-mesh-64")
    forward, backward = compare(**inputs(a, b)), compare(**inputs(b, a))
    assert [one.name for one in backward.candidates] == ["b", "a"]
    rates = {one.name: one.tokens_per_s for one in forward.candidates}
    assert rates == {one.name: one.tokens_per_s for one in backward.candidates}


BUDGETS = [("price", 90_000.0), ("price", 2.5e6), ("power", 7_000.0)]


@pytest.mark.parametrize(("kind", "value"), BUDGETS)
@pytest.mark.parametrize(
    "name",
    [
        "h100-spine-leaf-64",
        "h100-spine-leaf-1024-4to1",
        "rail-only-1024",
        "v100-pods-64",
        "nest-fat-tree-256",
    ],
)
def test_a_budget_is_kept_and_used_up(name, kind, value):
    """What is found fits; one part more does not, or cannot be built, or is not tried."""
    _, scenario = quick("x", fabric=name)
    prices = load_prices()
    found = at_budget(scenario, Budget(kind, value), prices)
    fabric = scenario.fabric

    def cost(devices):
        if hasattr(fabric, "devices_per_node"):
            sized = replace(fabric, devices=devices, installed=0)
        else:
            *inner, outer = fabric.tiers
            each = fabric.devices // outer.group_size
            sized = replace(fabric, tiers=(*inner, replace(outer, group_size=devices // each)))
        figures = bill(sized, prices)
        return (figures.price_usd if kind == "price" else figures.power_W).typical

    step = getattr(fabric, "devices_per_node", 0) or fabric.devices // fabric.tiers[-1].group_size
    if found.devices == 0:
        assert cost(step) > value
        return
    assert found.devices % step == 0
    assert found.spent == pytest.approx(cost(found.devices))
    assert found.spent <= value
    try:
        assert cost(found.devices + step) > value or found.devices + step > MAX_DEVICES
    except InputError:
        assert "no ports for more" in found.note
    assert found.report is None or found.report.plan.point.devices_used <= found.devices


def test_the_first_network_fits_its_own_budget():
    found = compare(
        **inputs(quick("a"), quick("b", fabric="torus-16x16"), budget={"kind": "power"})
    )
    first, torus = (one.at_budget for one in found.candidates)
    assert found.budget.value == bill(load_scenario(JOB).fabric, load_prices()).power_W.typical
    assert first.devices >= 64
    assert first.tokens_per_s >= found.candidates[0].tokens_per_s * (1 - 1e-9)
    assert torus.devices == 256
    assert torus.note == "it cannot be scaled: as it is"


def test_a_fabric_that_cannot_be_scaled_may_not_fit():
    asked = inputs(
        quick("a"), quick("b", fabric="torus-16x16"), budget={"kind": "price", "value": 9e4}
    )
    assert compare(**asked).candidates[1].at_budget.note == "it cannot be scaled, and costs more"


PINNED = {"search__dp": 64, "search__tp": 1}


def test_a_degree_that_does_not_fit_what_is_left_is_told_and_harms_nothing_else():
    """A replica per device of 64: not with a leaf less, nor on a smaller budget."""
    asked = inputs(
        quick("a", **PINNED), quick("b"), budget={"kind": "price", "value": 2e5}, failures=True
    )
    first, second = compare(**asked).candidates
    assert first.report is not None
    assert first.failure.least_loss == 1.0
    assert 0 < first.at_budget.devices < 64
    assert first.at_budget.tokens_per_s is None
    assert first.at_budget.note.startswith("Data parallel (dp) must ")
    assert second.at_budget.tokens_per_s > 0


def test_what_has_no_plan_says_why():
    found = compare(**inputs(quick("a"), quick("b", accelerator__memory_GiB=2.5)))
    scenario = load_scenario(
        JOB,
        [
            "accelerator.memory_GiB=2.5",
            *(f"{key}={json.dumps(value)}" for key, value in QUICK.items()),
        ],
    )
    second = found.candidates[1]
    assert second.report is None
    assert second.reason == search(scenario.problem(), scenario.space).reason
    assert second.tokens_per_s is None
    texts = {line.figure: line.texts for line in found.lines()}
    assert texts["Throughput"][1] == "–"
    assert texts["Why no plan"] == ("–", second.reason)


CHANGES = [
    {"fabric.clos.oversubscription.0": 4.0},
    {"accelerator.memory_GiB": 60.0, "workload.optimizer": "sgd"},
    {"search.tp": {"max": 4}, "fabric.clos.devices": 128},
    {"workload.model": "llama2-13b"},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_the_keys_that_differ_are_those_that_were_changed(changes):
    document, _ = scenario_document(JOB)
    before, after = (settings_of(Scenario(document, change)) for change in ({}, changes))
    assert set(differing([before, after])) == set(changes)


def test_a_value_that_is_the_default_differs_in_nothing():
    document, _ = scenario_document(JOB)
    stated = {"workload.overlap": "fitted", "search.idle_devices": True}
    assert differing([settings_of(Scenario(document, o)) for o in ({}, stated)]) == ()


def test_fabrics_of_two_kinds_differ_in_their_kind_alone():
    document, _ = scenario_document(JOB)
    every = [settings_of(Scenario(document, o)) for o in ({}, {"fabric": "torus-16x16"})]
    assert differing(every) == ("fabric.kind",)


def test_shares_of_one_line_have_equal_decimals():
    staged = {"search__pp": 2, "search__tp": [8]}
    entries = [
        quick(str(size), workload__global_batch_sequences=size, **staged) for size in (64, 512)
    ]
    found = compare(**inputs(*entries))
    assert not uneven({line.column: text} for line in found.lines() for text in line.texts)


def test_the_table_as_csv_has_the_numbers():
    found = compare(**inputs(quick("a"), quick("=1+1")))
    head, *rows = csv.reader(io.StringIO(found.to_csv()))
    assert head == ["part", "figure", "unit", "a", "'=1+1"]
    by_figure = {row[1]: row for row in rows}
    assert float(by_figure["tokens_per_s"][3]) == found.candidates[0].tokens_per_s
    assert len(rows) == len(found.lines()) == len({line.column for line in found.lines()})


def test_a_comparison_crosses_processes():
    found = compare(**inputs(quick("a"), quick("b", fabric="drawn-8")))
    assert pickle.loads(pickle.dumps(found)) == found


REFUSED = [
    (inputs(quick("a")), "entries must list 2 to 6 scenarios, but is 1: "),
    (inputs(*(quick(str(n)) for n in range(MOST + 1))), "entries must list 2 to 6 scenarios"),
    (inputs(quick("a"), quick("a")), "entries.name must name each scenario once, but is 'a'"),
    (inputs(quick("a"), quick(" ")), r"entries\[1\].name must be text of 1 to 60 characters"),
    (
        inputs(quick("a"), quick("b")) | {"prices": {"ownership.pue.typical": 0.5}},
        "prices.ownership.pue.typical must be at least 1",
    ),
    (inputs(quick("a"), quick("b"), budget={"kind": "mass"}), "budget.kind must be price or power"),
    (
        inputs(quick("a"), quick("b"), budget={"kind": "price", "value": 0}),
        "budget.value must be at least 1.0, but is 0",
    ),
    (
        inputs(quick("a"), quick("b", fabric__clos__devices=63)),
        "b: clos.devices must be a multiple",
    ),
]


@pytest.mark.parametrize(("asked", "message"), REFUSED)
def test_what_is_no_comparison_is_one_sentence(asked, message):
    with pytest.raises(InputError, match=message):
        compare(**asked)
