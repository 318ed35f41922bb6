"""The figures of sweeps and ratios, from outcomes made up for the purpose."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.costs import Plan, Point
from nest_core.documents.schema import Parameter
from nest_core.planner import search
from nest_core.report.figures.study import ratio_rows, ratios_finding, ratios_picture
from nest_core.report.figures.sweep import pareto_set, pictures
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Ratios, RatioStep, Sweep, TierRatios, sweep
from nest_core.studies.uncertainty import PairedRate, ParameterSpread, Sureness, interval_of

GIB = 2.0**30
PLAN = {
    "dp": 8, "tp": 4, "pp": 2, "cp": 1, "ep": 1, "sp": True, "zero": 1, "recompute": "none",
    "micro_batch": 1, "schedule": "1f1b", "interleave": 1,
}  # fmt: skip


def outcome(x, rate=None, y=None, **more):
    if rate is None:
        found = {"status": "memory", "reason": "No plan fits.", "needed_bytes": 96 * GIB}
    else:
        found = {
            "status": "solved",
            "plan": PLAN,
            "tokens_per_s": rate,
            "mfu": 0.4,
            "bubble": 0.1,
            "memory_bytes": 60 * GIB,
        }
    values = (x,) if y is None else (x, y)
    return StudyRow(**{"limit_bytes": 80 * GIB, "values": values, **found, **more})


def axis(parameter, values, **more):
    return Parameter(parameter, parameter, values=tuple(values), **more)


def line(parameter, points, **more):
    turned = axis(parameter, [p.values[0] for p in points], **more)
    return Sweep("made up", (turned,), tuple(points), True)


def plane(rates, **more):
    """Rows of rates, one per y."""
    points = [
        outcome(x, rate, y, **more) for y, row in enumerate(rates) for x, rate in enumerate(row)
    ]
    axes = axis("first", range(len(rates[0]))), axis("second", range(len(rates)))
    return Sweep("made up", axes, tuple(points), True)


def trace(picture, name=None, **about):
    (found,) = [
        one
        for one in picture.plot.data
        if (name is None or one.name == name) and all(one[k] == v for k, v in about.items())
    ]
    return found


def clickable(picture):
    return {
        int(number): (x, y)
        for one in picture.plot.data
        if one.customdata is not None
        for number, x, y in zip(one.customdata, one.x, one.y, strict=True)
    }


@pytest.mark.parametrize(
    ("rates", "title"),
    [
        ([100.0, 80.0, 50.0], "Throughput falls 50.0 % from 0 to 2; the plan stays"),
        ([50.0, 60.0, 75.0], "Throughput rises 50.0 % from 0 to 2; the plan stays"),
        ([50.0, 75.0, 200.0], "Throughput rises 4-fold from 0 to 2; the plan stays"),
        ([50.0, 75.0, 60.0], "Fastest at 1; the plan stays"),
        (
            [100.0, 99.9],
            "The parameter hardly matters: throughput stays within 0.1 %; the plan stays",
        ),
        ([None, 75.0, None], "Only 1 has a plan; 2 of 3 points have no plan"),
        ([None, None], "No plan fits at any of these points"),
    ],
)
def test_the_title_states_what_the_rates_do(rates, title):
    swept = line("parameter", [outcome(x, rate) for x, rate in enumerate(rates)])
    assert pictures(swept)[0].title == title


def test_the_points_where_the_plan_changes_are_named_between_their_neighbours():
    points = [
        outcome(1, 100.0),
        outcome(2, 90.0),
        outcome(4, None),
        outcome(8, 70.0, plan=PLAN | {"tp": 8, "pp": 1}),
    ]
    first = pictures(line("parameter", points))[0]
    assert first.title.endswith("the plan changes once; 1 of 4 points has no plan")
    (upright,) = first.plot.layout.shapes
    assert upright.x0 == upright.x1 == (2 + 8) / 2
    assert "tp 4→8<br>pp 2→1" in [note.text for note in first.plot.layout.annotations]


def test_the_data_of_a_picture_are_the_points_in_their_own_units():
    """A failure: a logarithm or a place number leaves as the parameter's value."""
    found = line("micro_batch", [outcome(1, 4.0e3), outcome(8, 5.0e3)])
    for picture in pictures(found):
        assert picture.rows() == found.rows()
    assert [row[found.x.column] for row in found.rows()] == [1, 8]


def test_points_in_any_order_are_drawn_from_left_to_right_and_keep_their_numbers():
    """A failure: a line that runs back, or a click that opens another point's plan."""
    points = [outcome(8, 5.0e3), outcome(1, 4.0e3), outcome(2, 4.5e3)]
    first = pictures(line("micro_batch", points))[0]
    (drawn,) = (trace for trace in first.plot.data if trace.customdata and trace.x)
    assert list(drawn.x) == sorted(drawn.x)
    rates = [points[number].tokens_per_s for number in drawn.customdata]
    assert rates == [4.0e3, 4.5e3, 5.0e3]


def test_what_the_parameter_pins_is_no_change_of_plan():
    points = [outcome(zero, 100.0, plan=PLAN | {"zero": zero}) for zero in (0, 1)]
    assert not pictures(line("zero", points))[0].plot.layout.shapes
    assert pictures(line("other", points))[0].plot.layout.shapes


def test_every_point_can_be_pointed_at_whether_or_not_it_has_a_plan():
    swept = line("parameter", [outcome(x, rate) for x, rate in enumerate([100.0, None, 80.0])])
    found = clickable(pictures(swept)[0])
    assert {number: place[0] for number, place in found.items()} == {0: 0.0, 1: 1.0, 2: 2.0}


def test_what_has_no_plan_is_hatched_and_says_what_it_needs():
    first, memory = pictures(line("parameter", [outcome(0, 100.0), outcome(1)]))
    hatched = trace(first, fill="toself")
    assert hatched.fillpattern.shape == "/"
    assert [x for x in hatched.x if x is not None] == [0.5, 1.5, 1.5, 0.5, 0.5]
    assert "needs 96.0 GiB" in [note.text for note in first.plot.layout.annotations]
    assert trace(memory, "enough for some plan").y == (None, 96.0)
    assert trace(memory, "fullest stage").y == (60.0, None)
    assert trace(memory, "what a device has").y == (80.0, 80.0)
    assert memory.title == "Fullest at 0: 75 % of a device's memory"


def test_the_frontier_runs_between_what_fits_and_what_does_not():
    rates = [[None, 10.0, 20.0], [None, None, 30.0]]
    (picture,) = pictures(plane(rates))
    border = trace(picture, "memory ends")
    edges = {
        (border.x[i], border.y[i], border.x[i + 1], border.y[i + 1])
        for i in range(0, len(border.x), 3)
    }
    assert edges == {
        (0.5, -0.5, 0.5, 0.5),  # left of the 10
        (0.5, 0.5, 1.5, 0.5),  # above the 10
        (1.5, 0.5, 1.5, 1.5),  # left of the 30
    }
    assert (
        picture.title == "Fastest at first 2, second 1: 30.0 tokens/s; 3 of 6 points have no plan"
    )
    assert [list(row) for row in trace(picture, type="heatmap").z] == rates


def test_cells_are_numbered_as_the_sweep_numbers_its_points():
    rates = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    swept = plane(rates)
    for number, (x, y) in clickable(pictures(swept)[0]).items():
        assert swept.points[number].tokens_per_s == rates[y][x]


def test_a_sweep_that_was_cut_short_is_drawn_as_far_as_it_goes():
    whole = plane([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for count in range(1, 6):
        first, *_ = pictures(replace(whole, points=whole.points[:count], complete=False))
        assert len(clickable(first)) == count
    some = line("parameter", [outcome(x, 10.0 + x) for x in range(4)])
    for count in range(1, 4):
        assert len(clickable(pictures(replace(some, points=some.points[:count]))[0])) == count
    assert pictures(replace(some, points=())) == ()


def test_scaling_is_told_against_the_smallest_fabric_with_a_plan():
    rates = [None, 100.0, 190.0, 340.0]
    points = [
        outcome(devices, rate, devices=devices)
        for devices, rate in zip((8, 16, 32, 64), rates, strict=True)
    ]
    _, _, scaling = pictures(line("devices", points, doubling=True, fabric=True))
    assert scaling.title == "From 16 to 64 devices throughput grows 3.4-fold: 85 % of ideal"
    assert trace(scaling, "ideal").y == (100.0, 200.0, 400.0)
    assert [note.text for note in scaling.plot.layout.annotations] == ["100 %", "95 %", "85 %"]


def priced(pairs):
    return [outcome(x, rate, network_usd=usd) for x, (usd, rate) in enumerate(pairs)]


@given(
    st.lists(
        st.tuples(st.integers(1, 9).map(float), st.integers(1, 9).map(float)),
        min_size=1,
        max_size=12,
    )
)
def test_the_pareto_set_is_what_nothing_else_beats(pairs):
    kept = {(p.network_usd, p.tokens_per_s) for p in pareto_set(priced(pairs))}
    unbeaten = {
        (usd, rate)
        for usd, rate in pairs
        if not any((u <= usd and r >= rate) and (u, r) != (usd, rate) for u, r in pairs)
    }
    assert kept == unbeaten


def test_the_pareto_picture_names_the_cheapest_network_that_is_nearly_as_good():
    points = priced([(100e3, 1000.0), (80e3, 990.0), (60e3, 900.0), (90e3, 950.0)])
    *_, picture = pictures(line("ratio", points, fabric=True))
    assert picture.title == ("Ratio 1 keeps 99 % of the throughput for $80.0 k instead of $100 k")
    assert trace(picture, "Pareto set").y == (0.9, 0.99, 1.0)


def test_one_network_that_is_cheapest_and_fastest_is_named():
    *_, picture = pictures(line("ratio", priced([(100.0, 9.0), (80.0, 10.0)]), fabric=True))
    assert picture.title == "Nothing is cheaper or faster than ratio 1"


def test_fabrics_of_different_sizes_and_equal_prices_have_no_pareto_picture():
    several = priced([(100.0, 10.0), (80.0, 9.0)])
    for parameter, fabric, points in (
        ("devices", True, several),
        ("batch", False, several),
        ("ratio", True, priced([(100.0, 10.0), (100.0, 9.0)])),
    ):
        swept = line(parameter, points, fabric=fabric)
        assert not [p for p in pictures(swept) if "price" in p.subtitle]


def test_names_that_people_gave_are_not_read_as_tags():
    (first, *_) = pictures(line("parameter", [outcome(0, None, reason="<b>no</b>")]))
    said = list(itertools.chain.from_iterable(t.hovertext or () for t in first.plot.data))
    assert any("&lt;b>no&lt;/b>" in text for text in said)


def ratios():
    def step(ratio, loss):
        trained = PairedRate(1 - loss, 0.0 if ratio == 1 else 0.02)
        return RatioStep(ratio, f"realised {ratio:g}:1", loss, (loss,), "", trained=trained)

    leaf = [step(1.0, 0.0), step(1.5, 0.01), step(2.0, 0.04)]
    spine = [step(1.0, 0.0), step(1.5, 0.001)]
    return Ratios(
        "made up",
        (("model", 1.0),),
        0.02,
        (
            TierRatios(
                "oversubscription.0", "leaf", 1.0, tuple(leaf), leaf[1], leaf[2], (2e6, 1e6)
            ),
            TierRatios("oversubscription.1", "spine", 1.0, tuple(spine), spine[1], None, None),
        ),
        True,
    )


def test_ratios_are_told_with_both_sides_of_the_limit():
    found = ratios()
    assert ratios_finding(found) == (
        "Leaf 1.5:1 (sure to 69 %), spine 1.5:1 (sure to 83 %, and no higher was tried): the most "
        "that costs the mix less than 2 %"
    )
    leaf, spine = ratio_rows(found)
    assert (leaf["80 % interval"], leaf["sure to"]) == ("−1.6 to +3.5 %", "69 %")
    assert (leaf["highest"], leaf["costs"]) == ("1.5:1", "1.0 %")
    assert (leaf["the next"], leaf["would cost"]) == ("2:1", "4.0 %")
    assert leaf["network, from 1:1"] == "$2.00 M → $1.00 M"
    assert (spine["the next"], spine["would cost"]) == ("–", "–")
    picture = ratios_picture(found)
    assert UNMEASURED_RATIO in picture.reading
    assert picture.title == ("Leaf reaches the limit at 2:1; spine stays below the limit to 1.5:1")
    assert trace(picture, "leaf").y == (0.0, 1.0, 4.0)
    assert trace(picture, "leaf").marker.symbol == ("circle", "circle", "circle-open")


def test_intervals_are_a_band_along_points_with_plans():
    sds = {0: 0.0, 1: 0.1, 4: 0.05}
    rates = {0: 100.0, 1: 90.0, 4: 40.0}
    points = [
        outcome(x, rate, paired=PairedRate(rate / 100.0, sds[x])) for x, rate in rates.items()
    ]
    points[2:2] = [outcome(2), outcome(3, 50.0)]
    picture, _ = pictures(line("parameter", points))
    band = trace(picture, name="80 % interval of the difference")
    width = math.exp(1.2815516 * 0.1)
    assert band.y[:2] == pytest.approx((100.0, 90.0 * width), rel=1e-5)  # nothing at the reference
    assert band.y[2:4] == pytest.approx((90.0 / width, 100.0), rel=1e-5)
    assert band.x.count(None) == 2  # two neighbours, and one alone
    assert 90.0 * width < picture.plot.layout.yaxis.range[1]
    texts = trace(picture, mode="lines+markers").hovertext
    assert "<br>reference beside parameter 0" in texts[0]
    low, high = (100 * (0.9 * width**sign - 1) for sign in (-1, 1))
    assert f"−10.0 % ({low:+.1f} to {high:+.1f} %) beside".replace("-", "−") in texts[1]
    assert "to parameter 0 on the same cluster" in picture.reading


@pytest.mark.parametrize(("rate", "words"), [
    (98.0, "Throughput falls 2.0 % (−4.4 to 8.0 %) from 0 to 1, which runs on one cluster may not"),
    (50.0, "Throughput falls 50.0 % (46.8 to 53.0 %) from 0 to 1; the plan"),
])  # fmt: skip
def test_a_title_says_how_surely_and_whether_one_cluster_could_tell(rate, words):
    def known(rate):
        spread = ParameterSpread((), np.zeros((0, 0)), (), 0.07, 0.0)
        order = ("tp", "cp", "dp", "pp")
        at = Point(tp=1, sp=False, pp=1, dp=round(rate), micro_batch=1, zero=0, order=order)
        plan = Plan(at, (0, 1), ("none",))
        return {"sureness": Sureness(plan, 1.0, spread, np.zeros(0))}

    points = [outcome(0, 100.0, **known(100.0)), outcome(1, rate, **known(rate))]
    assert pictures(line("parameter", points))[0].title.startswith(words)


def test_the_plan_stays_only_where_nothing_of_it_changes():
    """A failure: "the plan stays" stood where virtual stages went from 10 to 5."""
    other = outcome(2, 90.0, plan=PLAN | {"interleave": 5})
    title = pictures(line("parameter", [outcome(1, 100.0), other]))[0].title
    assert "stays" not in title
    assert title.endswith("the plan changes once")
    cuts = outcome(2, 90.0, plan=PLAN | {"cuts": [0, 3]})
    title = pictures(line("parameter", [outcome(1, 100.0, plan=PLAN | {"cuts": [0, 2]}), cuts]))[
        0
    ].title
    assert title.endswith("only the plan's cuts change")
    same = pictures(line("parameter", [outcome(1, 100.0), outcome(2, 90.0)]))[0].title
    assert same.endswith("the plan stays")


def test_cells_of_a_plane_say_what_the_fullest_device_holds_and_whether_it_fits():
    (picture,) = pictures(plane([[1.0, 2.0], [None, 4.0]]))
    said = [note.text for note in picture.plot.layout.annotations]
    assert sum("60.0 GiB fits" in text for text in said) == 3
    assert sum("no plan fits" in text and "needs 96.0 GiB" in text for text in said) == 1


def test_a_sweep_has_the_interval_that_a_plan_has():
    document, _ = scenario_document("llama2-7b-64-h100")
    pinned = {"search.tp": 1, "search.cp": 1, "search.micro_batch_sequences": 1}
    found = sweep(Scenario(document, pinned), [("zero", [1])])
    scenario = Scenario(document, {**pinned, "search.zero": 1}).values
    problem = scenario.problem()
    best = search(problem, scenario.space).best
    (point,) = found.points
    assert point.interval == interval_of(scenario, problem, best)
    (row,) = found.rows()
    assert row["iteration_time_low_s"] < row["iteration_time_s"] < row["iteration_time_high_s"]
