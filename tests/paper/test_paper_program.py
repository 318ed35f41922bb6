"""Algorithm 1: both planners on one case, what is said of them, and its pictures."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest

from nest_core.costs import StageStrategy, price
from nest_core.paper import own
from nest_core.paper.cases import FIGURES, Cell
from nest_core.paper.own import (
    algorithm1,
    algorithm1_paragraph,
    algorithm1_row,
    own_result,
    own_scenario,
)
from nest_core.planner.baselines import Waterfall
from nest_core.report.figures.levelwise import CAUSES
from nest_core.report.figures.paper import models_of, paper_pictures

CELL = Cell("h100_spineLeaf", "bert", 64, 1)


@pytest.fixture(scope="module")
def row() -> dict[str, Any]:
    return algorithm1_row("own", CELL)


def test_cells_are_the_largest_of_both_clusters_for_all_five_models() -> None:
    largest = {cell for cell in FIGURES["figure5"].cells if cell.devices == 1024}
    assert {cell for cell in own.CELLS if cell.setup == "tpuv4_fatTree"} == largest
    there = {cell.model for cell in own.CELLS if cell.setup == "h100_spineLeaf"}
    assert there == {cell.model for cell in largest}


def test_a_row_holds_what_both_planners_take(row: dict[str, Any]) -> None:
    scenario = own_scenario(CELL.setup, CELL.model, CELL.devices, CELL.micro_batch)
    best = own_result(scenario).best
    assert best is not None
    assert row["iteration_time_s"] == price(scenario.problem(), best.plan).iteration_s
    nest = row["nest"]
    assert row["ratio"] == nest["iteration_time_s"] / row["iteration_time_s"]
    lost = nest["iteration_time_s"] - row["iteration_time_s"]
    assert sum(nest["waterfall"].values()) == pytest.approx(lost, abs=1e-12)
    for plan in (row["plan"], nest["plan"]):
        assert math.prod(plan[key] for key in "pdtec") == plan["devices_used"]


def test_degrees_that_differ_between_stages_are_named() -> None:
    """A stage's own ZeRO was told as the whole plan's, and widths as if they multiplied."""
    first = own_result(own_scenario("tpuv4_fatTree", "bert", 64, 1)).best
    assert first is not None
    one = StageStrategy(1, False, 1, 1, 0)
    wide = StageStrategy(2, True, 1, 1, 1)
    plan = replace(first.plan, strategies=(one, wide))
    found = own._degrees(plan)
    assert found["by_stage"] == ["s", "t", "zero"]
    assert not set(found) & {"s", "t", "zero"}
    assert own._plan_words(found).endswith("by stage s, t, zero")


def made(row: dict[str, Any], slower: float, promised: float, **lost: float) -> dict[str, Any]:
    """A row whose program's plan takes so many times ours, and was promised in so many of its."""
    ours = row["iteration_time_s"]
    falls = {field.name: lost.get(field.name, 0.0) * ours for field in fields(Waterfall)}
    nest = row["nest"] | {
        "iteration_time_s": slower * ours,
        "promised_s": promised * slower * ours,
        "waterfall": falls,
    }
    return row | {"ratio": slower, "nest": nest}


def test_sentences_name_ties_causes_and_broken_promises(row: dict[str, Any]) -> None:
    none = row | {"ratio": None, "nest": row["nest"] | {"reason": "no plan fits"}}
    rows = [
        made(row, 1.0, 1.0),
        made(row, 1.25, 0.8, levels=0.3, widths=-0.05),
        made(row, 0.9, 1.0, widths=-0.1),
        none,
    ]
    told = algorithm1_paragraph("own", rows)
    assert "equally fast plans in 1 of 4 cases" in told[0]
    assert told[1].endswith("its plan is 25 % slower (levels +30 % and widths -5 %).")
    assert told[2].endswith("its plan is 10 % faster (widths -10 %).")
    assert told[3].endswith("no plan fits.")
    assert "within 25 %" in told[4]
    assert algorithm1_paragraph("own", rows[:1])[1].endswith("what it promised on levels.")


def test_a_model_s_pictures_are_its_waterfalls(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "CELLS", (CELL,))
    monkeypatch.setattr(own, "algorithm1_row", lambda costs, cell: row)
    found = algorithm1("own")
    assert models_of(found) == ("bert",)
    (picture,) = paper_pictures(found, "bert")
    assert picture.title.startswith("H100 on the spine-leaf: NEST's level-wise program")
    (bars,) = picture.plot.data
    assert len(bars.x) == len(CAUSES) + 3
    assert (found.tables[0].words[0]["model"], found.rows[0]["devices"]) == ("BERT-large", 64)


def test_published_costs_say_why_nothing_is_compared() -> None:
    found = algorithm1("published")
    assert models_of(found) == paper_pictures(found) == ()
    assert all(row["reason"].startswith("Levels: the artifact's costs") for row in found.rows)
