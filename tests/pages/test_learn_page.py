"""The lessons page and the tour: every lesson, every control, every state."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from page_parts import components
from streamlit.testing.v1 import AppTest

from nest_core.teaching.course.folder import work_brief, work_reveal
from nest_core.teaching.drawings import lesson_drawing, lesson_pictures
from nest_core.teaching.lessons import LESSONS, lesson
from nest_studio.jobs import waiting as jobs

PAGE = Path(__file__).resolve().parents[2] / "pages" / "learn.py"
EVERY = pytest.mark.parametrize("shown", LESSONS, ids=lambda one: one.key)


@pytest.fixture
def learn_page():
    """``learn_page(**address)``: the page as it opens on an address's parameters."""

    def opened(**address: str) -> AppTest:
        page = AppTest.from_file(str(PAGE), default_timeout=120)
        for key, value in address.items():
            page.query_params[key] = value
        return page.run()

    return opened


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def charts(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def figures(page):
    """Charts and drawings."""
    return [*charts(page), *components(page, "nest-studio.svg")]


def titles(found):
    """Of what a lesson shows on the page."""
    drawing = lesson_drawing(found, 1000, wall=False)
    pictures = lesson_pictures(found)
    return [one.title for one in pictures or (drawing,)]


def widget(page, key):
    kinds = ("radio", "number_input", "toggle", "button", "select_slider", "button_group")
    return next(w for kind in kinds for w in getattr(page, kind) if w.key == key)


def predict(page, shown, *, right=True):
    """Answer the question."""
    question = shown.brief().question
    if not question.choices:
        said = question.right if right else question.right / 2
        return widget(page, f"{shown.key}.guess").set_value(said).run()
    keys = list(question.choices)
    said = question.right if right else next(key for key in keys if key != question.right)
    return widget(page, f"{shown.key}.guess").set_value(said).run()


@pytest.mark.sampled(3)
@EVERY
def test_every_lesson_opens_with_its_question_and_no_answer(learn_page, shown):
    page = learn_page(lesson=shown.key)
    assert not page.exception
    assert not page.error
    seen = text_of(page)
    question = shown.brief().question
    assert shown.title in seen
    assert f"Lesson {LESSONS.index(shown) + 1} of {len(LESSONS)}" in seen
    assert question.text in seen
    assert question.answer not in seen.replace(shown.brief().notes.expected, "")
    assert not charts(page)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("shown", "right"),
    [
        pytest.param(one, right, id=f"{one.key} {right}", marks=() if quick else pytest.mark.check)
        for one in LESSONS
        for right in (True, False)
        # A wrong choice and a wrong number; what is right is every lesson's own.
        for quick in (right or one.key in ("oversubscription", "stash"),)
    ],
)
def test_a_prediction_reveals(learn_page, shown, right):
    page = predict(learn_page(lesson=shown.key), shown, right=right)
    assert not page.exception
    seen = text_of(page)
    assert ("Right. " in seen) is right
    assert ("You said: " in seen) is not right
    assert shown.brief().question.answer in seen
    reveal = shown.reveal({})
    assert len(figures(page)) == len(titles(reveal.content))
    for title in titles(reveal.content):
        assert title in seen
    for formula in reveal.formulas:
        assert formula.numbers in seen
        assert formula.source in seen


@pytest.mark.sampled(3)
@EVERY
def test_show_me_reveals_without_a_prediction(learn_page, shown):
    page = learn_page(lesson=shown.key)
    widget(page, f"{shown.key}.show").set_value(True).run()
    assert f"Answer: {shown.brief().question.answer}" in text_of(page)
    assert figures(page)


@pytest.mark.sampled(8)
@EVERY
def test_every_control_moves_the_figures(learn_page, shown):
    page = learn_page(lesson=shown.key, **{f"{shown.key}.show": "true"})
    started = "step" in shown.standard
    if started:
        widget(page, f"{shown.key}.step").set_value(5).run()
    for control in shown.controls:
        other = control.values[-1] if control.values[-1] != control.standard else control.values[0]
        before = figures(page)
        if control.last:
            other = 6
        widget(page, f"{shown.key}.{control.key}").set_value(other).run()
        assert not page.exception
        after = shown.reveal(({"step": 5} if started else {}) | {control.key: other})
        assert figures(page) != before
        for title in titles(after.content):
            assert title in text_of(page)
        widget(page, f"{shown.key}.{control.key}").set_value(
            5 if control.stepped else control.standard
        ).run()


@pytest.mark.sampled(3)
@EVERY
def test_a_link_restores_prediction_and_controls(learn_page, shown):
    control = shown.controls[0]
    question = shown.brief().question
    other = control.values[-1] if control.values[-1] != control.standard else control.values[0]
    said = question.told(question.right) if question.choices else f"{question.right:g}"
    page = learn_page(
        lesson=shown.key,
        **{f"{shown.key}.guess": said, f"{shown.key}.{control.key}": control.name(other)},
    )
    assert not page.exception
    assert "Right. " in text_of(page)
    for title in titles(shown.reveal({control.key: other}).content):
        assert title in text_of(page)


@EVERY
def test_teachers_notes_are_closed_and_complete(learn_page, shown):
    page = learn_page(lesson=shown.key)
    notes = next(box for box in page.expander if box.label == "Teacher's notes")
    assert not notes.proto.expanded
    told = shown.brief().notes
    inside = html.unescape(" ".join(part.proto.body for part in notes.get("html")))
    assert f"About {shown.minutes} minutes" in inside
    assert told.expected in inside
    for mistake in told.mistakes:
        assert mistake.answer in inside
        assert mistake.overlooks in inside


@pytest.fixture
def projected(learn_page):
    """``projected(**address)``: a lesson at the projector."""
    return lambda **address: learn_page(present="on", **address)


def test_hands_are_counted_and_shown_beside_the_right_answer_at_the_reveal(projected):
    hands = {"a": 3, "b": 12, "c": 6, "d": 0}
    address = {f"steps.hands.{key}": str(count) for key, count in hands.items() if count}
    page = projected(lesson="steps", **address)
    seen = text_of(page)
    shown = lesson("steps")
    question = shown.brief().question
    assert question.text in seen
    assert "21 hands" in seen
    assert question.answer not in seen
    assert "✓" not in seen
    assert '<i style="width' not in seen
    widget(page, "wall-show").click().run()
    seen = text_of(page)
    assert question.answer in seen
    for key, count in hands.items():
        text = question.choices[key]
        right = key == question.right
        bar = f'<i style="width: {152 * count / 12:.0f}px"></i>' if count else ""
        assert f"<span>{text}{' ✓' if right else ''}</span>{bar}" in seen
    widget(page, "steps.hands.d").set_value(24).run()
    assert "45 hands" in text_of(page)
    assert '<i style="width: 152px"></i>' in text_of(page)


@pytest.mark.parametrize("shown", [lesson("bubble"), lesson("stash"), lesson("passes")])
def test_a_projector_shows_question_and_figure_and_nothing_for_the_teacher(projected, shown):
    page = projected(lesson=shown.key)
    assert not page.exception
    assert shown.lead in text_of(page)
    assert not page.expander
    widget(page, "wall-show").click().run()
    seen = text_of(page)
    reveal = shown.reveal({})
    wall = lesson_drawing(reveal.content, 648, wall=True)
    assert (wall.title if wall else lesson_pictures(reveal.content)[0].title) in seen
    assert len(figures(page)) == 1
    assert shown.brief().notes.discuss[0] in seen
    assert shown.brief().notes.expected not in seen
    widget(page, "wall-show").click().run()
    assert shown.brief().question.answer not in text_of(page)


def _keyed():
    import streamlit as st

    from nest_studio.learn.presentation import on_key

    st.session_state.setdefault("steps.step", 0)
    st.session_state["lesson"] = st.query_params["lesson"]
    for name in st.query_params.get_all("press"):
        on_key(name)


@pytest.mark.parametrize(
    ("names", "opened", "step"),
    [
        (["next"], True, 0),
        (["next"] * 4, True, 3),
        (["show", "next", "next", "back"], True, 1),
        (["next", "back"], False, 0),
        (["back"], False, 0),
        (["next"] * 40, True, 14),
    ],
)
def test_arrows_reveal_then_step_and_the_way_back_closes(names, opened, step):
    page = AppTest.from_function(_keyed, default_timeout=30)
    page.query_params["lesson"] = "steps"
    page.query_params["press"] = names
    page.run()
    assert not page.exception
    state = page.session_state
    assert bool(state.get("steps.show")) is opened
    assert state["steps.step"] == step


def test_a_page_listens_to_arrows_and_a_presenters_remote(learn_page):
    page = learn_page(lesson="steps", **{"steps.show": "true"})
    (keys,) = components(page, "nest-studio.keys")
    assert keys["keys"] == {
        "ArrowRight": "next",
        "PageDown": "next",
        "ArrowLeft": "back",
        "PageUp": "back",
    }
    assert not components(learn_page(**{"bubble.show": "true"}), "nest-studio.keys")


def test_asking_again_hides_the_answer(learn_page):
    page = predict(learn_page(), lesson("bubble"))
    assert charts(page)
    widget(page, "bubble.again").click().run()
    assert widget(page, "bubble.guess").value is None
    assert not charts(page)


def test_next_and_previous_walk_through_all_lessons(learn_page):
    page = learn_page()
    assert widget(page, "learn-previous").disabled
    for shown in LESSONS[1:]:
        widget(page, "learn-next").click().run()
        assert shown.title in text_of(page)
    assert widget(page, "learn-next").disabled
    widget(page, "learn-previous").click().run()
    assert LESSONS[-2].title in text_of(page)


def test_steps_go_forward_and_back_within_their_range(learn_page):
    page = learn_page(lesson="levels", **{"levels.show": "true"})
    assert widget(page, "levels.step.back").disabled
    for count in range(1, 10):
        widget(page, "levels.step.forward").click().run()
        assert f"{count} of 9 cells" in text_of(page)
    assert widget(page, "levels.step.forward").disabled
    assert "Iteration of this plan" in text_of(page)
    widget(page, "levels.step.back").click().run()
    assert "8 of 9 cells" in text_of(page)


@pytest.mark.parametrize(
    "address",
    [
        {"lesson": "Nothing"},
        {"bubble.guess": "5 %"},
        {"bubble.pp": "3", "bubble.show": "true"},
        {"lesson": "stash", "stash.guess": "many"},
    ],
)
def test_nonsense_in_the_address_is_ignored(learn_page, address):
    page = learn_page(**address)
    assert not page.exception
    assert not page.error
    assert "Lesson " in text_of(page)


def test_labels_carry_help(learn_page):
    for shown in LESSONS:
        page = learn_page(lesson=shown.key, **{f"{shown.key}.show": "true"})
        for control in (*page.select_slider, *page.number_input):
            assert control.help


class SlowQueue:
    """Begins no job until it is told to work; then all at once."""

    def __init__(self):
        self.asked, self.works = {}, False

    def ask(self, key, function, *args, urgent=True, wanted_by=None):
        job, *_ = self.asked.setdefault(key, (jobs.WorkerJob(key), function, args))
        if self.works and not job.done():
            job.set_result(function(*args, progress=lambda share, words: None, stop=lambda: False))
        return job


@pytest.fixture
def slow_queue(monkeypatch):
    found = SlowQueue()
    monkeypatch.setattr(jobs, "job_queue", lambda: found)
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)
    return found


@EVERY
def test_only_slow_lessons_are_computed_elsewhere(learn_page, slow_queue, shown):
    slow_queue.works = True
    page = learn_page(lesson=shown.key, **{f"{shown.key}.show": "true"})
    assert figures(page)
    asked = {function for _, function, _ in slow_queue.asked.values()}
    assert asked == ({work_brief, work_reveal} if shown.slow else set())


def test_a_link_keeps_its_answer_while_the_question_is_computed(learn_page, slow_queue):
    shown = lesson("oversubscription")
    address = {
        "lesson": shown.key,
        "large": "true",
        "oversubscription.after": "4:1",
        "oversubscription.guess": "8 or less: inside the node",
    }
    page = learn_page(**address)
    assert not page.exception
    assert shown.title in text_of(page)
    assert shown.brief().question.text not in text_of(page)
    assert [button.label for button in page.button if button.label == "Cancel"]
    assert {key: page.query_params[key] for key in address} == address
    slow_queue.works = True
    page.run()
    assert "Right. " in text_of(page)
    for picture in lesson_pictures(shown.reveal({"after": 4}).content):
        assert picture.title in text_of(page)


def _toured():
    import streamlit as st

    from nest_studio.plan.tour import tour, tour_button

    tour()
    tour_button()
    st.write("the page")


@pytest.fixture
def toured(store):
    """``toured(**address)``: a page with the tour, as it opens on an address's parameters."""

    def opened(**address: str) -> AppTest:
        page = AppTest.from_function(_toured, default_timeout=30)
        for key, value in address.items():
            page.query_params[key] = value
        return page.run()

    return opened


def test_a_first_visit_is_shown_round_in_five_steps(toured):
    page = toured()
    for count in range(1, 6):
        assert f"{count} of 5: " in text_of(page)
        assert page.markdown[-1].value == "the page"
        last = count == 5
        widget(page, "tour-done" if last else "tour-next").click().run()
        assert not page.exception
    assert " of 5: " not in text_of(page)
    assert " of 5: " not in text_of(toured()), "once and for all"


def test_the_tour_takes_less_than_a_minute_to_read(toured):
    page = toured()
    words = 0
    for _ in range(5):
        words += len(text_of(page).split())
        page.button[0].click().run()
    assert words < 230  # a minute's silent reading


def test_the_tour_can_be_skipped_and_brought_back(toured):
    page = toured()
    widget(page, "tour-skip").click().run()
    assert " of 5: " not in text_of(page)
    widget(page, "tour-again").click().run()
    assert "1 of 5: " in text_of(page)
    assert "tour" not in page.query_params


@pytest.mark.parametrize("address", [{"tour": "off"}, {"scenario": "llama2-7b-64-h100"}])
def test_a_link_is_no_first_visit(toured, address):
    page = toured(**address)
    assert " of 5: " not in text_of(page)
    widget(page, "tour-again").click().run()
    assert "1 of 5: " in text_of(page)
