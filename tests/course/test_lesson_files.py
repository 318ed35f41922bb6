"""A teacher's own lessons: what a file may say, what is wrong with one in a sentence, pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.report.notebook.inputs import SCENARIO_KINDS
from nest_core.report.notebook.ipynb import KINDS
from nest_core.teaching.course import LESSONS_VARIABLE
from nest_core.teaching.course.folder import (
    find_figure,
    find_lesson,
    lesson_file,
    lesson_text,
    offered,
)
from nest_core.teaching.drawings import lesson_pictures
from nest_core.teaching.lessons import FIGURES, LESSONS
from nest_core.teaching.lessons.files import read_lesson

SENTENCE = re.compile(r"^[^\n]+ must [^\n]+, but is [^\n]+: [^\n]+\.$")


@pytest.fixture(scope="module")
def words():
    """The studio's first lesson as a teacher might copy it."""
    text = read_text(preset_path("lessons", "bubble.toml"))
    return text.replace('short = "Bubble"', 'short = "Mine"')


def _read(text):
    return read_lesson(text, "mine", find_figure)


def test_every_figure_has_its_lesson_and_every_file_is_one():
    assert set(preset_names("lessons")) == set(FIGURES) == {one.key for one in LESSONS}


def test_a_file_chooses_controls_and_where_they_start(words):
    text = f'{words}\n[[control]]\nkey = "pp"\nlabel = "Stages"\nvalues = [4, 8]\nstart = 8\n'
    mine = _read(text)
    assert [(one.key, one.label, one.values) for one in mine.controls] == [("pp", "Stages", (4, 8))]
    whole = next(one for one in LESSONS if one.key == "bubble")
    assert mine.reveal({}).texts == whole.reveal({"pp": 8}).texts
    assert mine.reveal({}).formulas == whole.reveal({"pp": 8}).formulas


def test_a_question_can_be_asked_of_other_numbers(words):
    mine = _read(words.replace("pp = 4\nm = 4", "pp = 3\nm = 7"))
    question = mine.brief().question
    assert question.text.startswith("3 stages that take equally long, 7 micro-batches")
    assert question.choices[question.right] == "22.2 %"


WRONG = {
    "figure": ('figure = "bubble"', 'figure = "bubbles"', "figure must be one of the figures"),
    "key": ("minutes = 12", "minuets = 12", r"minuets is not a known key|minutes is required"),
    "value": ("minutes = 12", "minutes = 0", "minutes must be at least 1"),
    "name": ("{over:percent} on", "{ovre:percent} on", "question.answer must name what the figure"),
    "form": (
        "{over:percent} on",
        "{over:percnt} on",
        "question.answer must use a form that there is",
    ),
    "given": ("pp = 4\n", "pipes = 4\n", "question.given.pipes must be something that the figure"),
    "range": ("pp = 4\n", "pp = 0\n", "question.given.pp must be a whole number from 1 to 64"),
    "right": ('right = "c"', 'right = "e"', "question.right must be the key of a choice"),
    "toml": ("[question]", "[question", "mine.toml must be valid TOML"),
    "control": (
        "[notes]",
        '[[control]]\nkey = "p"\n[notes]',
        r"control\[0\].key must be a control",
    ),
    "values": (
        "[notes]",
        '[[control]]\nkey = "pp"\nvalues = [3]\n[notes]',
        r"control\[0\].values must be among what the figure offers",
    ),
    "drawn": ("m = { min = 2,", "m = { min = 0,", "exercise.given.m must be a whole number"),
    "asked": ('answer = "idle"', 'answer = "idel"', "exercise.answer must name what the figure"),
    "inputs": ("[notes]", "[inputs]\nx = 1\n[notes]", "inputs must be left out with this figure"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_one_sentence(words, case):
    before, after, rule = WRONG[case]
    assert before in words
    with pytest.raises(InputError, match=f"^({rule})") as caught:
        _read(words.replace(before, after, 1)).brief()
    assert str(caught.value).count("\n") == 0
    assert case == "key" or SENTENCE.match(str(caught.value))


def test_one_bad_file_keeps_no_other_from_being_shown(words, tmp_path):
    (tmp_path / "a-good.toml").write_text(words)
    (tmp_path / "b-figure.toml").write_text(words.replace('"bubble"', '"nothing"'))
    (tmp_path / "c-taken.toml").write_text(words.replace('"Mine"', '"ZeRO"'))
    (tmp_path / "d-bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "e f.toml").write_text(words)
    (tmp_path / "notes.txt").write_text("no lesson")
    there = offered({LESSONS_VARIABLE: str(tmp_path)})
    assert there.lessons[:-1] == LESSONS
    assert there.lessons[-1].key == "a-good"
    assert [name for name, _ in there.troubles] == [
        "b-figure.toml",
        "c-taken.toml",
        "d-bytes.toml",
        "e f.toml",
    ]
    assert all(SENTENCE.match(reason) for _, reason in there.troubles)
    with pytest.raises(InputError, match="figure must be one of the figures"):
        find_lesson("b-figure", None, {LESSONS_VARIABLE: str(tmp_path)})


def test_a_file_is_read_again_when_it_changes(words, tmp_path):
    environment = {LESSONS_VARIABLE: str(tmp_path)}
    assert offered(environment).lessons == LESSONS
    (tmp_path / "mine.toml").write_text(words)
    assert offered(environment).named("mine").minutes == 12
    (tmp_path / "mine.toml").write_text(words.replace("minutes = 12", "minutes = 100"))
    assert offered(environment).named("mine").minutes == 100


def test_no_folder_is_said():
    there = offered({LESSONS_VARIABLE: "nowhere at all"})
    assert there.lessons == LESSONS
    assert "must be a folder of lesson files" in there.troubles[0][1]


@pytest.fixture(scope="module")
def document():
    """A scenario."""
    return load_toml(preset_path("scenarios", "llama2-7b-64-h100.toml"))


def _pin(kind, document):
    entries = [{"name": name, "document": document, "overrides": {}} for name in "ab"]
    inputs = {
        "plan": {
            "document": document,
            "overrides": {"search.tp": 1, "fabric": "a100-fat-tree-512"},
        },
        "sweep": {
            "document": document,
            "overrides": {},
            "x": {"parameter": "zero", "values": [0, 1]},
            "y": None,
        },
        "comparison": {"entries": entries, "budget": None, "failures": False},
        "ratios": {
            "document": document,
            "overrides": {},
            "mix": [{"model": "llama2-7b", "share": 1.0}],
            "loss": 0.02,
        },
    }[kind]
    figures = ["iteration time, s", "plan"]
    title, note = 'A "pin": Llama 2', "Mind the {braces}"
    return {"kind": kind, "title": title, "note": note, "inputs": inputs, "figures": figures}


@pytest.mark.parametrize("kind", SCENARIO_KINDS)
def test_a_pin_becomes_a_lesson_that_asks_for_the_same(kind, document):
    pin = _pin(kind, document)
    text = lesson_text(pin)
    assert "{iteration time, s}, {plan}" in text
    mine = read_lesson(text, "pinned", find_figure)
    assert mine.title == pin["title"]
    assert mine.slow
    assert lesson_file(mine.title) == "a-pin-llama-2.toml"
    asked = tomllib.loads(text)["inputs"]
    assert asked == {key: value for key, value in pin["inputs"].items() if value is not None}


@pytest.mark.parametrize("kind", ["sweep", "ratios"])
@pytest.mark.sampled(2)
def test_a_lesson_of_a_study_shows_its_rows(kind, document):
    mine = read_lesson(lesson_text(_pin(kind, document)), "pinned", find_figure)
    shown = mine.reveal({})
    assert lesson_pictures(shown.content) == shown.content
    (rows,) = shown.tables
    assert rows.title == shown.texts[0]
    assert len(rows.rows) >= 2


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ("[inputs]\n", "inputs.document is required"),
        ("", "inputs is required with this figure"),
        ("[inputs]\nfolder = 1\n[inputs.document]\n", "inputs.folder is not a known key"),
    ],
)
def test_inputs_that_are_none_are_one_sentence(document, inputs, sentence):
    text = lesson_text(_pin("plan", document))
    text = text[: text.index("[inputs")] + inputs
    with pytest.raises(InputError, match=f"^{sentence}"):
        read_lesson(text, "pinned", find_figure)


def test_a_plan_of_a_pin_answers_its_own_question(document):
    """With a control over its scenario, and its figures named in words."""
    text = lesson_text(_pin("plan", {**document, "baselines": {"names": []}}))
    text = text.replace("a100-fat-tree-512", "h100-spine-leaf-64")
    text = text.replace("Write the answer and its reason.", "{iteration time, s:4} s.", 1)
    text += '\n[[control]]\nkey = "search.zero"\nvalues = [1, 3]\n'
    mine = read_lesson(text, "pinned", find_figure)
    first, third = (mine.reveal({"search.zero": zero}) for zero in (1, 3))
    assert "ZeRO 1" in " ".join(first.texts)
    assert "ZeRO 3" in " ".join(third.texts)
    assert lesson_pictures(first.content) == first.content
    assert re.fullmatch(r"5\.\d+ s\.", mine.brief().question.answer)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in SCENARIO_KINDS])
def test_a_cell_without_figures_of_a_scenario_is_no_lesson(kind):
    with pytest.raises(InputError, match="cell must have figures of a scenario"):
        lesson_text({"kind": kind, "title": "Words"})


def test_the_index_of_the_docs_is_the_lessons():
    text = read_text(Path(__file__).resolve().parents[2] / "docs" / "howto" / "teacher.md")
    for one in LESSONS:
        assert f"| {one.title} | {one.minutes} | {'; '.join(one.aims)} |" in text
