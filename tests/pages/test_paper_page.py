"""The paper's page: what its pictures claim, and that every name can be shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.paper import NAMES, Reproduction, own, reproduce
from nest_core.paper.cases import FIGURES, Cell
from nest_core.report.figures.paper import models_of, paper_pictures

MODELS = tuple(dict.fromkeys(cell.model for cell in FIGURES["figure5"].cells))
ORDERS = ("published", "as_published", "right_order")


@pytest.fixture(scope="module")
def figure5() -> Reproduction:
    return reproduce("figure5", "published")


def rows_of(found: Reproduction, model: str) -> list[dict[str, Any]]:
    return [row for row in found.rows if row["model"] == model]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(5)
def test_bars_are_shares_of_the_optimum(figure5: Reproduction, model: str) -> None:
    """Printed bars are of NEST's figure, ours of ours; none in the right order exceeds 100 %."""
    rows = rows_of(figure5, model)
    plot = paper_pictures(figure5, model)[1].plot
    keys = [(name, key) for name in rows[0]["baselines"] for key in ORDERS]
    assert len(plot.data) == len(keys)
    for trace, (name, key) in zip(plot.data, keys, strict=True):
        for share, row in zip(trace.y, rows, strict=True):
            value = row["baselines"][name][key]
            whole = row["published"] if key == "published" else row["ours"]
            assert share == (None if value is None else pytest.approx(100 * value / whole))
            assert key != "right_order" or share is None or share <= 100 * (1 + 1e-9)
    crosses = sum(note.text == "X" for note in plot.layout.annotations)
    assert crosses == sum(
        all(row["baselines"][name][key] is None for key in ORDERS)
        and not row["baselines"][name]["right_order_reason"].startswith("Placement:")
        for row in rows
        for name in row["baselines"]
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(5)
def test_printed_and_computed_stand_on_one_axis(figure5: Reproduction, model: str) -> None:
    rows = rows_of(figure5, model)
    plot = paper_pictures(figure5, model)[0].plot
    assert plot.layout.yaxis2.matches == "y"
    half = len(plot.data) // 2
    ours, computed = plot.data[0], plot.data[half]
    assert ours.name == computed.name == "NEST / ours"
    assert list(ours.y) == [row["published"] for row in rows]
    assert list(computed.y) == [row["ours"] for row in rows]
    assert list(plot.data[half + 1].y) == [
        row["baselines"]["manual"]["right_order"] for row in rows
    ]


def test_titles_state_the_finding(figure5: Reproduction) -> None:
    """GPT-3's Manual is the optimum in its right order, three quarters of it as published."""
    beside, shares = paper_pictures(figure5, "gpt3")
    assert "Manual reaches 100 % of the optimum in its right order, 75 % as published" in (
        shares.title
    )
    assert beside.title.startswith("Our optimum is NEST's in all 5 printed cells")


def test_a_picture_without_printed_numbers_says_so() -> None:
    found = reproduce("figure11", "published")
    plot = paper_pictures(found, "llama2")[0].plot
    assert "no numbers are printed" in " ".join(n.text for n in plot.layout.annotations)


@pytest.fixture
def page(root: Path) -> AppTest:
    return AppTest.from_file(str(root / "pages" / "paper.py"), default_timeout=120)


def text_of(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_shown_with_its_paragraph(page: AppTest, name: str) -> None:
    page.run()
    page.segmented_control(key="name").set_value(name).run()
    assert not page.exception
    found = reproduce(name, "published")
    shown = text_of(page)
    for table in found.tables:
        assert table.title in shown
    for sentence in found.paragraph:
        assert sentence.replace("`", "")[:40].replace("'", "&#x27;").replace('"', "&quot;") in shown
    charts = page.get("plotly_chart")
    model = "llama3" if models_of(found) else ""
    assert len(charts) == len(paper_pictures(found, model))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["figure2", "figure10", "table7"])
def test_own_costs_are_shown(page: AppTest, name: str) -> None:
    page.run()
    page.segmented_control(key="name").set_value(name)
    page.segmented_control(key="costs").set_value("own").run()
    assert not page.exception
    assert "own costs" in text_of(page) or page.get("plotly_chart")


@pytest.mark.check
def test_a_model_s_waterfalls_stand_above_its_rows(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster each, of the chosen model alone."""
    cells = [Cell(setup, "bert", 64, 1) for setup in ("tpuv4_fatTree", "h100_spineLeaf")]
    monkeypatch.setattr(own, "CELLS", (*cells, Cell("tpuv4_fatTree", "llama2", 128, 1)))
    page.run()
    page.segmented_control(key="name").set_value("algorithm1")
    page.segmented_control(key="costs").set_value("own").run()
    assert not page.exception
    assert page.segmented_control(key="model").value == "bert"
    assert len(page.get("plotly_chart")) == 2
    shown = text_of(page)
    assert shown.count("64 TPUv4-like accelerators on the fat tree</td>") == 1
    assert "128 TPUv4-like accelerators on the fat tree</td>" not in shown


def test_a_model_s_rows_and_pictures_are_its_own(page: AppTest, figure5: Reproduction) -> None:
    page.run()
    assert models_of(figure5) == MODELS
    for model in MODELS:
        page.segmented_control(key="model").set_value(model).run()
        assert not page.exception
        drawn = json.loads(page.get("plotly_chart")[1].proto.spec)
        expected = json.loads(paper_pictures(figure5, model)[1].plot.to_json())
        assert [t["y"] for t in drawn["data"]] == [t["y"] for t in expected["data"]]
