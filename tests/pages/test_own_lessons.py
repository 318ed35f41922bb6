"""A teacher's own lessons on the page, the index, and the way from a notebook's cell to a file."""

from __future__ import annotations

import html
import json
import time
import tomllib
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.documents.files import read_text
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import load_toml, preset_path
from nest_core.report.notebook.inputs import SCENARIO_KINDS
from nest_core.teaching.course import LESSONS_VARIABLE
from nest_core.teaching.course.folder import (
    find_lesson,
    lesson_file,
    lesson_text,
    offered,
    work_reveal,
)
from nest_core.teaching.course.page import lesson_page
from nest_core.teaching.lessons import LESSONS
from nest_studio.cli import run

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


@pytest.mark.parametrize("spell", [str, str.upper, str.title])
def test_a_lesson_has_one_name_in_the_address_the_command_and_the_page(folder, spell):
    (folder / "mine.toml").rename(folder / "Mine-Too.toml")
    for shown in (*LESSONS, find_lesson("mine-too", None)):
        names = {find_lesson(spell(name), None).key for name in (shown.key, shown.short)}
        assert names == {shown.key} == {shown.key.lower()}
    for key in ("experts", "passes", "mine-too"):
        page = AppTest.from_file(str(PAGE), default_timeout=60)
        page.query_params["lesson"] = spell(key)
        page.run()
        assert find_lesson(key, None).title in _seen(page)
        assert page.session_state["lesson"] == key


def test_a_lessons_address_says_the_name_that_commands_take(folder, capsys):
    page = AppTest.from_file(str(PAGE), default_timeout=60).run()
    assert page.query_params["lesson"] == "bubble"
    next(button for button in page.button if button.key == "learn-next").click().run()
    assert LESSONS[1].key in page.query_params["lesson"]
    assert LESSONS[1].title in _seen(page)
    assert run(["lesson", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["lessons"]
    index = next(box for box in page.expander if box.label.startswith("All lessons"))
    told = html.unescape(" ".join(part.proto.body for part in index.get("html")))
    for row in rows:
        assert f">{row['lesson']}<" in told
        assert f">{row['title']}<" in told
        page.query_params["lesson"] = row["lesson"]
        page.run()
        assert row["title"] in _seen(page)


def _scenario(**overrides):
    return {"document": load_toml(preset_path("scenarios", "llama2-7b-64-h100.toml"))} | {
        "overrides": {"baselines.names": ["manual"]} | overrides
    }


PINS = {
    "plan": _scenario(),
    "no plan fits": _scenario(**{"search.tp": 1, "search.zero": 0, "search.pp": 1}),
    "sweep": _scenario() | {"x": {"parameter": "zero", "values": [0, 1]}, "y": None},
    "comparison": {
        "entries": [{"name": name, **_scenario()} for name in ("this", "that")],
        "failures": False,
    },
    "ratios": _scenario() | {"mix": [{"model": "llama2-7b", "share": 1.0}], "loss": 0.02},
}


@pytest.mark.parametrize("name", PINS)
@pytest.mark.parametrize("address", [{}, {"present": "on"}], ids=["page", "projector"])
def test_a_lesson_of_every_kind_of_cell_runs_to_its_end(tmp_path, monkeypatch, name, address):
    kind = name if name in SCENARIO_KINDS else "plan"
    pin = {"kind": kind, "title": f"My {name}", "note": "", "inputs": PINS[name], "figures": []}
    (tmp_path / lesson_file(pin["title"])).write_text(lesson_text(pin))
    monkeypatch.setenv(LESSONS_VARIABLE, str(tmp_path))
    key = offered().lessons[-1].key
    page = AppTest.from_file(str(PAGE), default_timeout=120)
    page.query_params.update({"lesson": key, **address})
    page.run()
    _at_rest(page)
    assert "Write what is to be predicted?" in _seen(page)
    assert not page.get("plotly_chart")
    page.session_state[f"{key}.show"] = True
    page.run()
    _at_rest(page)
    assert "Write the answer and its reason." in _seen(page)
    assert page.get("plotly_chart")
    assert "Write what to ask next?" in _seen(page)


def _at_rest(page):
    """Wait until nothing is awaited."""
    for _ in range(240):
        assert not page.exception
        assert not page.error
        if not any(button.label == "Cancel" for button in page.button):
            return
        time.sleep(0.25)
        page.run()
    raise AssertionError("it did not end")


@pytest.mark.parametrize("kind", ["plan", "sweep", "comparison", "ratios"])
def test_the_plans_of_a_lesson_say_how_far_they_are(kind):
    pin = {"kind": kind, "title": "Mine", "note": "", "inputs": PINS[kind], "figures": []}
    told = []
    work_reveal(
        "mine",
        lesson_text(pin),
        {},
        progress=lambda share, words: told.append((share, words)),
        stop=lambda: False,
    )
    assert len({words for _, words in told}) > (kind != "comparison")  # which says its seconds
    assert all(0 <= share <= 1 and words for share, words in told)


@pytest.mark.parametrize("table", ["mistakes", "discuss", "explain", "aims"])
@pytest.mark.parametrize("address", [{}, {"present": "on"}], ids=["page", "projector"])
def test_a_lesson_needs_no_lists(folder, table, address):
    text = tomllib.loads(read_text(folder / "mine.toml"))
    for part in (text, text["notes"]):
        part.pop(table, None)
    (folder / "mine.toml").write_text(toml_document(text))
    page = AppTest.from_file(str(PAGE), default_timeout=60)
    page.query_params.update({"lesson": "mine", "mine.show": "true", **address})
    page.run()
    _at_rest(page)
    assert len(page.get("plotly_chart")) == 1
    assert lesson_page(offered().named("mine")).states
