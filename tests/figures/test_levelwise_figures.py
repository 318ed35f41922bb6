"""Level-wise cost matrices and the waterfall: what is drawn is what was computed."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from nest_core.costs import Plan, Point, price
from nest_core.planner.baselines import Baseline, Waterfall
from nest_core.planner.baselines.cost_matrices import cost_matrices
from nest_core.planner.levelwise import PAPER_ORDER
from nest_core.report.figures.levelwise import CAUSES, cost_matrices_figure, waterfall_figure
from nest_core.scenario import load_scenario


@pytest.fixture(scope="module")
def planned():
    problem = load_scenario("llama2-7b-64-h100").problem()
    point = Point(4, True, 8, 2, 1, 1, PAPER_ORDER)
    return problem, Plan(point, (0, 17, problem.layers), ("none", "none"))


def test_every_cell_is_drawn_once_outermost_level_first(planned):
    found = cost_matrices(*planned)
    picture = cost_matrices_figure(found)
    (cells,) = picture.plot.data
    values = 10 ** np.asarray(cells.z, float)
    assert values.shape == found.seconds.T.shape
    scale = np.nanmax(found.seconds) / np.nanmax(values)
    assert values * scale == pytest.approx(found.seconds.T[::-1], nan_ok=True)
    dashes = [note for note in picture.plot.layout.annotations if note.text == "–"]
    assert len(dashes) == np.isnan(found.seconds).sum()
    outlined = {(round(s.x0 + 0.5), round(s.y0 + 0.5)) for s in picture.plot.layout.shapes}
    rows, columns = np.nonzero(found.own.T[::-1])
    assert outlined == set(zip(columns.tolist(), rows.tolist(), strict=True))


def test_its_title_names_what_a_level_further_out_would_cost_most(planned):
    found = cost_matrices(*planned)
    row = list(found.ranks).index("tp")
    ratio = found.seconds[row, 1] / found.seconds[row, 0]
    title = cost_matrices_figure(found).title
    assert (
        title == f"Tensor traffic stays at level node; one level out it takes {ratio:.3g} × as long"
    )


def test_its_data_and_its_pickle_are_whole(planned):
    found = cost_matrices(*planned)
    picture = pickle.loads(pickle.dumps(cost_matrices_figure(found)))
    rows = picture.rows()
    assert len(rows) == found.seconds.size
    told = [row["time_s"] for row in rows if row["own_plan"]]
    assert told == found.seconds[found.own].tolist()


def test_without_a_plan_it_says_why():
    assert cost_matrices_figure(None, "no plan fits").title == "No plan fits"


def _nest(planned, waterfall, promised=1.0):
    report = price(*planned)
    entry = Baseline(
        "nest", "NEST", "in part", report, "", 0.1, promised_s=promised * report.iteration_s
    )
    return report.iteration_s, replace(entry, waterfall=waterfall)


def test_bars_lead_from_ours_to_what_it_takes(planned):
    took, nest = _nest(planned, None, promised=0.9)
    parts = (0.5, 0.1, -0.2, 0.3, 0.0)
    nest = replace(nest, waterfall=Waterfall(*(part * 0.1 * took for part in parts)))
    ours = took - nest.waterfall.total
    picture = waterfall_figure(nest, ours)
    (bars,) = picture.plot.data
    ends = np.array(bars.base) + np.array(bars.x)
    assert len(ends) == len(CAUSES) + 3
    assert nest.origin in picture.reading
    assert np.array(bars.base)[2:6] == pytest.approx(ends[1:5])  # each begins where one ended
    scale = (took - ours) / ends[-2]
    assert ends[5] * scale == pytest.approx(took - ours)
    assert ends[-1] * scale == pytest.approx(0.9 * took - ours)
    assert picture.title == (
        f"NEST's level-wise program is {100 * (took / ours - 1):.3g} % slower than the exact "
        "search, most of it by its schedule"
    )


@pytest.mark.parametrize(("ratio", "word"), [(1.0, "tie"), (1.1, "slower"), (0.95, "faster")])
def test_ties_and_leads_are_called_so(planned, ratio, word):
    took, nest = _nest(planned, None)
    assert word in waterfall_figure(nest, took / ratio).title


def test_what_cannot_be_compared_says_why(planned):
    _, nest = _nest(planned, None)
    assert waterfall_figure(None, 1.0, "it is being run").title == "it is being run"
    refused = replace(nest, report=None, reason="no plan fits")
    assert waterfall_figure(refused, 1.0).title == "No comparison: no plan fits"
    assert "no plan to compare with" in waterfall_figure(nest, None).title
