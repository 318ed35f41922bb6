"""The paper's page: what its figure claims, and that every model can be shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.figures.paper import figure5_picture
from nest_core.published import PAPER_MODELS, figure5

ROWS = figure5()


@pytest.mark.parametrize("model", PAPER_MODELS)
def test_bars_are_shares_of_the_optimum(model: str) -> None:
    """Every bar is baseline over ours; none exceeds the proven optimum; X marks what misfits."""
    rows = [row for row in ROWS if row["model"] == model]
    plot = figure5_picture(rows).plot
    assert len(plot.data) == 6
    for trace, (name, key) in zip(
        plot.data,
        [(n, k) for n in ("manual", "mcmc", "phaze") for k in ("as_published", "right_order")],
        strict=True,
    ):
        for share, row in zip(trace.y, rows, strict=True):
            value = row["baselines"][name][key]
            if value is None:
                assert share is None
            else:
                assert share == pytest.approx(100 * value / row["ours"])
                assert share <= 100 * (1 + 1e-9)
    crosses = sum(annotation.text == "X" for annotation in plot.layout.annotations)
    misfits = sum(
        row["baselines"][name]["right_order"] is None
        for row in rows
        for name in ("manual", "mcmc", "phaze")
    )
    assert crosses == misfits


def test_title_states_the_reversal() -> None:
    """GPT-3's Manual is the optimum in its right order and three quarters of it as published."""
    title = figure5_picture([row for row in ROWS if row["model"] == "gpt3"]).title
    assert "Manual reaches 100 % of the optimum in its right order, 75 % as published" in title


def test_page_shows_every_model(root: Path) -> None:
    """No exception, a chart and a table for each."""
    page = AppTest.from_file(str(root / "pages" / "paper.py"), default_timeout=60).run()
    assert not page.exception
    for model in PAPER_MODELS:
        page.segmented_control(key="model").set_value(model).run()
        assert not page.exception
        assert len(page.dataframe) == 1
