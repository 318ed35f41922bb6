"""What every lesson promises: a question, a reveal that its controls move, notes, sources."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.schema.lesson import NotesTable
from nest_core.teaching.drawings import lesson_drawing, lesson_pictures, projected
from nest_core.teaching.drawings.program_board import levels_board
from nest_core.teaching.lessons import LESSONS, lesson
from nest_core.teaching.lessons.lesson import Brief, Question

EVERY = pytest.mark.parametrize("shown", LESSONS, ids=lambda one: one.key)


def _drawn(reveal):
    drawing = lesson_drawing(reveal.content, 648, wall=True)
    pictures = [picture.plot.to_json() for picture in lesson_pictures(reveal.content)]
    return [*pictures, *([drawing.svg] if drawing else [])]


def _some_settings(shown):
    """All settings; of a walk every control alone, and the walk's first, middle and last step."""
    if not any(control.last for control in shown.controls):
        for values in itertools.product(*(control.values for control in shown.controls)):
            keys = (control.key for control in shown.controls)
            yield dict(zip(keys, values, strict=True))
        return
    for control in shown.controls:
        offered = control.offered(shown.standard)
        few = {offered[0], offered[len(offered) // 2], offered[-1]}
        for value in few if control.stepped else offered:
            yield {"step": 5, control.key: value}


def test_there_are_fourteen_with_names_of_their_own():
    assert len(LESSONS) == 14
    for field in ("key", "short", "title"):
        assert len({getattr(one, field) for one in LESSONS}) == 14


@EVERY
def test_a_question_has_one_right_answer(shown):
    question = shown.brief().question
    if question.choices:
        assert question.right in question.choices
        assert len(set(question.choices.values())) == len(question.choices)
    else:
        assert 0 < question.right <= question.most
        assert question.unit


@EVERY
def test_notes_name_wrong_answers_and_no_right_one(shown):
    brief = shown.brief()
    question, notes = brief.question, brief.notes
    assert 5 <= shown.minutes <= 30
    assert len(notes.mistakes) >= 2
    assert notes.discuss
    for mistake in notes.mistakes:
        assert mistake.answer != question.answer
        assert mistake.overlooks.endswith((".", ")"))
        if not question.choices:
            assert not question.is_right(float(mistake.answer))


@EVERY
def test_every_control_moves_a_figure(shown):
    for control in shown.controls:
        assert control.standard in control.values
        at = {"step": 5} if "step" in shown.standard else {}
        seen = {
            json.dumps(_drawn(shown.reveal({**at, control.key: value})))
            for value in control.offered(shown.standard)[:16]
        }
        assert len(seen) > 1, control.key


@EVERY
def test_every_setting_can_be_shown(shown):
    for settings in _some_settings(shown):
        reveal = shown.reveal(settings)
        drawing = lesson_drawing(reveal.content, 648, wall=False)
        pictures = (*lesson_pictures(reveal.content), *([drawing] if drawing else []))
        assert pictures
        assert all(picture.title and picture.subtitle and picture.reading for picture in pictures)
        assert reveal.texts
        for formula in reveal.formulas:
            assert formula.name
            assert formula.symbols
            assert formula.source
            assert re.search(r"\d", formula.numbers)
            assert "nan" not in formula.numbers
            assert "inf" not in formula.numbers.split()


@EVERY
def test_a_reveal_is_a_function_of_its_settings(shown):
    assert _drawn(shown.reveal({})) == _drawn(shown.reveal(shown.standard))


@EVERY
def test_pictures_have_text_of_16_pixels_at_a_projector_and_fit_their_place(shown):
    for picture in lesson_pictures(shown.reveal({}).content):
        large = projected(picture, 240)
        assert large.plot.layout.height == min(240, round(4 / 3 * picture.plot.layout.height))
        assert large.plot.layout.font.size == 16
        notes = zip(picture.plot.layout.annotations, large.plot.layout.annotations, strict=True)
        for before, after in notes:
            assert after.text == before.text
            assert after.font.size == pytest.approx(4 / 3 * before.font.size)
        traces = (json.loads(plot.to_json())["data"] for plot in (picture.plot, large.plot))
        for before, after in zip(*traces, strict=True):
            assert (after["x"], after["y"]) == (before["x"], before["y"])


@pytest.mark.parametrize(
    ("right", "wrong", "hands", "hand"),
    [
        (8.0, ["32", "1", "7"], ["1 GiB", "7 GiB", "8 GiB", "32 GiB"], "c"),
        (8.0, ["none", "8.01"], ["4 GiB", "8 GiB", "16 GiB", "32 GiB"], "b"),
        (6.3, ["6", "0.28", "20"], ["0.28 GiB", "6.3 GiB", "12.6 GiB", "20 GiB"], "b"),
    ],
)
def test_hands_for_a_number_are_raised_for_typical_ones(right, wrong, hands, hand):
    question = Question(text="How many?", right=right, answer="…", unit="GiB", most=100.0)
    mistakes = [{"answer": text, "overlooks": "…"} for text in wrong]
    brief = Brief(question, NotesTable(expected="…", mistakes=mistakes))
    assert list(brief.hands.values()) == hands
    assert brief.right_hand == hand


def test_a_step_past_the_last_one_is_the_last_one():
    walk = lesson("steps")
    ring = walk.reveal({"step": 126}).content
    assert ring.step == len(ring.steps.states) == 14
    assert walk.reveal({"step": 126, "fabric": "8 × 8"}).content.step == 126


def test_oversubscription_opens_at_the_ratio_that_it_asks_about():
    shown = lesson("oversubscription")
    assert f"{shown.standard['after']}\u00a0:\u00a01" in shown.brief().question.text


def test_a_lesson_is_found_by_its_key():
    assert lesson("zero").key == "zero"
    with pytest.raises(InputError, match="lesson must be one of the lessons"):
        lesson("zerro")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"p": 4}, r"bubble\.p must be a control of the lesson, but is 'p': use pp, m, schedule\."),
        ({"pp": 3}, r"bubble\.pp must be a value that the lesson offers, but is 3: use 2, 4, 8\."),
    ],
)
def test_settings_that_a_lesson_lacks_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        lesson("bubble").reveal(settings)


def test_a_verdict_says_what_was_said_and_what_is():
    answer, choices = "8, since they come back late.", {"a": "four", "b": "eight"}
    asked = Question(text="How many?", right="b", answer=answer, choices=choices)
    assert asked.verdict(None) == "Answer: 8, since they come back late."
    assert asked.verdict("b") == "Right. 8, since they come back late."
    assert asked.verdict("a") == "You said: four. Computed: 8, since they come back late."


@pytest.mark.parametrize(("said", "right"), [(98.0, True), (102.0, True), (90.0, False)])
def test_a_number_may_be_a_little_off(said, right):
    asked = Question(text="How many?", right=100.0, answer="100 MiB.", unit="MiB", most=500.0)
    assert asked.is_right(said) is right
    assert asked.verdict(90.0).startswith("You said: 90 MiB. ")


@pytest.mark.parametrize("mapping", ["012", "123"])
@pytest.mark.parametrize("step", range(1, 9))
def test_the_unknown_stage_is_drawn_where_its_row_assumes_it(mapping, step):
    table = lesson("levels").reveal({"step": step, "seats": mapping}).content
    devices = levels_board(table).devices
    cell = table.filled[-1]
    unknowns = [number for number, device in enumerate(devices) if device.look == "producer"]
    if cell.level is None:
        assert not unknowns
        return
    if cell.stage == 1 and cell.level == 0 and mapping == "123":  # stages 2 and 3 fill their node
        assert not unknowns
        assert "same node (full)" in levels_board(table).reading
        return
    (unknown,) = unknowns
    assert devices[unknown].words == f"stage {cell.stage}?"
    name = f"stage {cell.stage + 1}"
    (placed,) = [number for number, device in enumerate(devices) if device.words == name]
    assert (unknown // 2 == placed // 2) is (cell.level == 0)
