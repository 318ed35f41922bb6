"""A teacher's own lessons on the page, the index, and the way from a notebook's cell to a file."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.documents.files import read_text
from nest_core.documents.presets import preset_path
from nest_core.teaching.course import LESSONS_VARIABLE
from nest_core.teaching.lessons import LESSONS

PAGE = Path(__file__).resolve().parents[2] / "pages" / "learn.py"


def _seen(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a lesson, and a file that names a figure that does not exist."""
    text = read_text(preset_path("lessons", "bubble.toml"))
    mine = text.replace('short = "Bubble"', 'short = "Mine"').replace('"The bubble"', '"My bubble"')
    (tmp_path / "mine.toml").write_text(mine)
    (tmp_path / "other.toml").write_text(mine.replace('figure = "bubble"', 'figure = "bubbles"'))
    monkeypatch.setenv(LESSONS_VARIABLE, str(tmp_path))
    return tmp_path


def test_own_lessons_stand_behind_the_studios(folder):
    page = AppTest.from_file(str(PAGE), default_timeout=60)
    page.query_params["lesson"] = "Mine"
    page.query_params["mine.guess"] = "42.9 %"
    page.run()
    assert not page.exception
    seen = _seen(page)
    assert f"Lesson {len(LESSONS) + 1} of {len(LESSONS) + 1}" in seen
    assert "My bubble" in seen
    assert "Right. 42.9 %" in seen
    assert len(page.get("plotly_chart")) == 1


def test_the_index_has_minutes_aims_and_a_sentence_for_a_file_that_is_none(folder):
    page = AppTest.from_file(str(PAGE), default_timeout=60).run()
    minutes = sum(one.minutes for one in LESSONS) + 12
    index = next(box for box in page.expander if box.label.startswith("All lessons"))
    assert index.label == f"All lessons: {len(LESSONS) + 1}, {minutes} minutes"
    told = html.unescape(" ".join(part.proto.body for part in index.get("html")))
    assert all(aim in told for one in LESSONS for aim in one.aims)
    assert "other.toml: figure must be one of the figures, but is 'bubbles': use bubble" in told
    assert any(one.label == "↓ This lesson (HTML)" for one in page.get("download_button"))
