"""Lessons as files that run by themselves."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re

import pytest
from plotly.offline import get_plotlyjs

from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.documents.presets import preset_path
from nest_core.teaching.course import page
from nest_core.teaching.course.folder import find_figure
from nest_core.teaching.course.page import MOST_BYTES, lesson_page
from nest_core.teaching.drawings import lesson_pictures
from nest_core.teaching.lessons import LESSONS, lesson
from nest_core.teaching.lessons.files import read_lesson
from nest_studio.cli import run

QUICK = {"stash", "experts", "program"}
"""Of few states; all others are for `make check`."""


def _own_part(made):
    """The file without the plotting library, which it holds once."""
    before, after = made.text.split(f"<script>{get_plotlyjs()}</script>\n")
    return before + after


def _data(made):
    (text,) = re.findall(r'<script type="text/plain" id="lesson">(.*?)</script>', made.text)
    return json.loads(gzip.decompress(base64.b64decode(text)))


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(one, id=one.key, marks=() if one.key in QUICK else pytest.mark.check)
        for one in LESSONS
    ],
)
def test_a_lesson_holds_all_its_states_and_names_no_address(shown):
    made = lesson_page(shown)
    own = _own_part(made)
    assert len(own.encode()) == made.own_bytes <= MOST_BYTES
    assert "://" not in own
    assert not re.search(r"<[^>]*\s(src|href|action)=", own)
    data = _data(made)
    assert "://" not in json.dumps(data)
    sizes = [len(control["names"]) for control in data["controls"]]
    assert len(data["states"]) == made.states <= max(1, math.prod(sizes))
    start = ",".join(str(control["start"]) for control in data["controls"])
    places, _ = data["states"][start]
    titles = [data["kept"][place]["title"] for place in places]
    pictures = lesson_pictures(shown.reveal({}).content)
    assert titles[-len(pictures) :] == [one.title for one in pictures] or not pictures
    assert all(data["kept"][place] for places, _ in data["states"].values() for place in places)


def _mine(before, after):
    text = read_text(preset_path("lessons", "stash.toml"))
    return read_lesson(text.replace(before, after, 1), "mine", find_figure)


@pytest.mark.parametrize("said", ["http://elsewhere.example/x", "see ftp://a.b", "url(x)"])
def test_words_that_name_an_address_are_refused(said):
    with pytest.raises(InputError, match="mine must name no network address"):
        lesson_page(_mine("A device holds", said))


def test_words_are_text_in_the_file():
    made = lesson_page(_mine("A device holds", "<b>A</b> & <script>x</script>"))
    assert "&lt;b&gt;A&lt;/b&gt; &amp; &lt;script&gt;" in made.text
    assert made.text.count("<script") == 3  # data, library, script


def test_too_many_states_or_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(page, "MOST_STATES", 5)
    with pytest.raises(InputError, match="stash must have at most 5 states of its controls"):
        lesson_page(lesson("stash"))
    monkeypatch.undo()
    monkeypatch.setattr(page, "MOST_BYTES", 10_000)
    with pytest.raises(InputError, match="stash must come to at most 10,000 bytes beside"):
        lesson_page(lesson("stash"))


def test_a_file_may_hold_fewer_values_than_the_studio():
    export = '[export]\nschedule = ["gpipe"]\nrecompute = ["none"]\n\n[notes]'
    made = lesson_page(_mine("[notes]", export))
    names = [control["names"] for control in _data(made)["controls"]]
    assert names == [["1F1B", "GPipe"], ["none"]]
    assert made.states == 2


def test_the_command_lists_lessons_and_writes_one(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["lesson", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["lessons"]
    assert [one["lesson"] for one in found] == [one.key for one in LESSONS]
    assert run(["lesson", "stash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "stash.html"
    assert (tmp_path / "stash.html").stat().st_size > MOST_BYTES
