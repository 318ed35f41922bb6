"""Figures of a comparison: the same order and colours, bars that are the figures, one scale."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from nest_core.network import collapse
from nest_core.report.documents import DESIGN_COLOURS
from nest_core.report.figures.comparison import pictures
from nest_core.report.figures.style import LIMIT, MEMORY_COLOURS, TIME_COLOURS
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.comparison import compare

JOB = "llama2-7b-64-h100"
FABRICS = {
    "Spine-leaf": "h100-spine-leaf-1024-4to1",
    "Rails <b>": "dgx-superpod-h100",
    "Torus": "torus-16x16",
}


@pytest.fixture(scope="module")
def compared():
    """Three fabrics, of which the torus says of no switch that it could be lost."""
    document, _ = scenario_document(JOB)
    few = {
        "search.pp": 1,
        "search.cp": 1,
        "search.zero": 1,
        "search.recompute": "none",
        "search.schedule": "1f1b",
    }
    entries = [
        (name, Scenario(document, few | {"fabric": fabric})) for name, fabric in FABRICS.items()
    ]
    return compare(entries, budget={"kind": "price", "value": 4e6})


@pytest.fixture(scope="module")
def drawn(compared):
    names = ("throughput", "budget", "losses", "balance", "levels")
    return dict(zip(names, pictures(compared), strict=True))


def bars(picture, axis="x"):
    return [t for t in picture.plot.data if t.type == "bar" and (t.xaxis or "x") == axis]


def shown(picture, axis="x"):
    (bar,) = bars(picture, axis)
    return list(bar.x)


def test_every_bar_is_its_figure(compared, drawn):
    every = compared.candidates
    assert drawn["throughput"].subtitle == "Training throughput, M tokens/s"
    assert shown(drawn["throughput"]) == pytest.approx([c.tokens_per_s / 1e6 for c in every])
    assert shown(drawn["budget"]) == pytest.approx([c.at_budget.tokens_per_s / 1e6 for c in every])
    assert shown(drawn["budget"], "x2") == [c.at_budget.devices for c in every]


def test_scenarios_keep_their_order_and_colour(compared, drawn):
    for name in ("throughput", "budget", "losses"):
        picture = drawn[name]
        ticks = [tick.strip() for tick in picture.plot.layout.yaxis.ticktext]
        assert ticks == ["Spine-leaf", "Rails &lt;b>", "Torus"]
        assert picture.plot.layout.yaxis.range[0] > picture.plot.layout.yaxis.range[1]
        for bar in (t for t in picture.plot.data if t.type == "bar" and t.name != "batch"):
            assert tuple(bar.marker.color) == DESIGN_COLOURS[: len(compared.candidates)]


def test_no_scenario_has_a_colour_that_means_something_else():
    meant = {*TIME_COLOURS.values(), *MEMORY_COLOURS.values(), LIMIT}
    assert not meant & set(DESIGN_COLOURS)
    assert len(set(DESIGN_COLOURS)) == 6


def test_both_losses_of_the_worst_failure_stand_on_one_axis(compared, drawn):
    same, anew = drawn["losses"].plot.data[:2]
    failures = [one.failure for one in compared.candidates]
    assert list(same.x) == pytest.approx([100 * failure.loss for failure in failures])
    assert list(anew.x) == pytest.approx([100 * failure.replanned_loss for failure in failures])
    assert list(same.y) == list(anew.y) == list(range(len(failures)))
    for text, failure in zip(same.text, failures, strict=True):
        assert text.strip().startswith(f"{failure.elements[0]}: "[:30])


def test_stages_stand_on_one_axis_and_fill_the_iteration(compared, drawn):
    layout = drawn["balance"].plot.layout
    assert layout.yaxis.range == layout.yaxis2.range == layout.yaxis3.range
    scale = 1.0 if drawn["balance"].subtitle.endswith(", s") else 1e-3
    for row, one in enumerate(compared.candidates):
        stacked = np.sum([b.y for b in bars(drawn["balance"], f"x{row + 1}" if row else "x")], 0)
        assert stacked * scale == pytest.approx([one.report.iteration_s] * len(stacked), rel=1e-4)


def test_all_level_matrices_have_one_colour_scale(compared, drawn):
    layout, maps = drawn["levels"].plot.layout, drawn["levels"].plot.data
    assert {heat.coloraxis for heat in maps} == {"coloraxis"}
    lowest = min(np.nanmin(heat.z) for heat in maps)
    highest = max(np.nanmax(heat.z) for heat in maps)
    assert layout.coloraxis.cmin <= lowest + 1e-6
    assert layout.coloraxis.cmax >= highest - 1e-6
    for heat, one in zip(maps, compared.candidates, strict=True):
        network = collapse(one.scenario.fabric)
        last = np.array([(len(heat.z) - 1) * int(heat.dx)])
        far = network.levels[int(network.level(np.array([0]), last)[0])]
        assert heat.customdata[0][-1] == pytest.approx(far.bandwidth_Bps, rel=1e-3)
        assert 10 ** heat.z[0][-1] == pytest.approx(far.bandwidth_Bps, rel=1e-3)


def test_titles_state_what_the_bars_say(compared, drawn):
    rates = {one.name: one.tokens_per_s for one in compared.candidates}
    best, last = max(rates, key=rates.get), min(rates, key=rates.get)
    title = drawn["throughput"].title
    labels = dict(zip(rates, bars(drawn["throughput"])[0].text, strict=True))
    assert title == f"{best} trains {labels[best]}, {last} {labels[last]}"
    assert drawn["budget"].title.startswith("On a network of $4.00 M: ")


def test_one_difference_is_one_number_in_two_places_at_most(compared):
    """What lies between two designs is told with one base, in few places."""
    told = [
        number
        for line in compared.lines()
        for text in line.texts
        for number in re.findall(r"\([+−]([\d.,]+) %\)", text)
    ]
    assert told
    counted = Counter(told)
    assert max(counted.values()) <= 2, counted


def test_equals_are_called_equal(compared):
    one = compared.candidates[0]
    twins = replace(compared, candidates=(one, replace(one, name="Twin")))
    assert pictures(twins)[0].title.startswith("Each trains ")


def test_without_any_plan_every_figure_still_stands(compared):
    nothing = tuple(
        replace(
            one, report=None, reason="no plan fits", sureness=None, failure=None, at_budget=None
        )
        for one in compared.candidates
    )
    bare = replace(compared, candidates=nothing, budget=None).at({})
    found = pictures(bare)
    assert len(found) == 3
    assert found[0].title == "No scenario has a plan"
    shown, pointed = bars(found[0])
    assert list(shown.text) == ["no feasible plan"] * 3
    told = [text.replace("<br>", " ").replace("&lt;", "<") for text in pointed.customdata]
    assert told == [f"{one.name}: no plan {one.reason}" for one in bare.candidates]
    assert pointed.opacity == 0
    assert found[1].title == "There is no plan to balance"


def test_names_are_no_markup(drawn):
    for picture in drawn.values():
        assert "<b>" not in json.dumps(picture.plot.to_plotly_json(), default=str).replace(
            "&lt;b>", ""
        )
