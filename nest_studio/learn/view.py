"""The parts of the lessons page: predict, reveal, explain, and the teacher's notes.

Answers and controls are widgets bound to the address, so a link opens a lesson as it stands.
Below stand the index of a course, files that are no lessons, and a way to keep a lesson.
"""

import html
from collections.abc import Mapping
from concurrent.futures import TimeoutError as Late
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.schema.lesson import FormulaTable
from nest_core.report.notebook import PinOutput, table_output
from nest_core.report.tables import Table
from nest_core.teaching.course.folder import offered, work_brief, work_page, work_reveal
from nest_core.teaching.drawings import LessonDrawing, lesson_drawing, lesson_pictures
from nest_core.teaching.lessons import Brief, Control, Lesson, Question, Reveal, Value
from nest_studio.components.browser.keys import listen
from nest_studio.components.show import download, facts, show_picture, show_svg, told
from nest_studio.form.fields import ADDRESS, OneOf, hold, one_of, settle, widget_value
from nest_studio.jobs.waiting import Stopped, WorkerCrash, panel, submitted
from nest_studio.notebook.pins import pin_button
from nest_studio.session.stored import write_address

__all__ = [
    "KEYS",
    "LESSON",
    "asked",
    "course_foot",
    "drawing",
    "found_by",
    "lesson_bar",
    "lesson_controls",
    "lessons",
    "open_lesson",
    "pressed",
    "show_lesson",
    "stepped",
    "walk",
]

LESSON = "lesson"
WIDTH = 1000
"""Of a drawing, in pixels."""

_STYLE = """
<style>
.learn-lead { font-size: 1rem; line-height: 1.5; max-width: 62rem; }
.learn-question { font-size: 1.1rem; line-height: 1.45; font-weight: 600; max-width: 62rem; }
.learn-verdict { font-size: 1.05rem; line-height: 1.45; font-weight: 600; max-width: 62rem;
  border-left: 0.25rem solid #0072B2; padding-left: 0.7rem; }
.learn-step { font-size: var(--small); text-transform: uppercase; letter-spacing: 0.06em;
  opacity: 0.75; }
.learn-text { font-size: 0.95rem; line-height: 1.5; max-width: 62rem; margin-bottom: 0.4rem; }
.learn-drawing { margin: 8px 0; }
.learn-formulas { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr));
  gap: 0.6rem 1.6rem; }
.learn-formulas div { border-top: 1px solid rgba(128, 132, 138, 0.35); padding-top: 0.35rem;
  line-height: 1.45; }
.learn-formulas b { display: block; font-size: var(--small); font-weight: 600; }
.learn-formulas code { display: block; font-size: var(--small); background: none; padding: 0;
  white-space: normal; color: inherit; }
.learn-formulas i { display: block; font-size: var(--small); font-style: normal; opacity: 0.75; }
[class*="st-key-ask-"] [data-testid="stNumberInputStepUp"],
[class*="st-key-ask-"] [data-testid="stNumberInputStepDown"] { display: none; }
[class*="st-key-ask-"] [role="radiogroup"] p { font-size: 1rem; }
</style>
"""


def lesson_bar() -> Lesson:
    """All lessons in a row, below the page's own style; returns the one that is open."""
    st.html(_STYLE)
    by_key = {lesson.key: lesson for lesson in lessons()}
    keys, names = list(by_key), {key: lesson.short for key, lesson in by_key.items()}
    # The address says a lesson's key; of earlier versions its short name, which stays as it is.
    asked_for = offered().named(st.query_params.get(LESSON, ""))
    if asked_for is None:
        remembered = st.session_state.get(LESSON)
        open_lesson(remembered if remembered in by_key else keys[0])
    else:
        hold(LESSON, asked_for.key)
    st.segmented_control(
        "Lesson",
        keys,
        required=True,
        key=LESSON,
        format_func=names.__getitem__,
        on_change=lambda: open_lesson(st.session_state[LESSON]),
        wrap=True,
        label_visibility="collapsed",
    )
    return by_key[st.session_state[LESSON]]


def open_lesson(key: str) -> None:
    """Have a lesson open by its key, in the session and in the address; for callbacks too."""
    hold(LESSON, key)
    write_address(LESSON, key)


def show_lesson(lesson: Lesson) -> None:
    """Show a lesson from its question to its neighbours."""
    every = lessons()
    number = every.index(lesson) + 1
    facts(f"Lesson {number} of {len(every)}", kind="learn-step")
    facts(lesson.title, kind="nest-scenario")
    facts(lesson.lead, kind="learn-lead")
    with told():
        brief = asked(lesson)
        if brief is not None:
            prediction, open_now = _predict(lesson, brief.question)
            if open_now:
                _reveal(lesson, brief.question, prediction)
            _teacher(lesson, brief)
    _neighbours(every, number)
    course_foot(lesson)


def asked(lesson: Lesson) -> Brief | None:
    """Return the lesson's question and notes; None while they are computed elsewhere."""
    answer: Brief | None = (
        lesson.brief()
        if not lesson.slow
        else panel(
            submitted(work_brief, lesson.key, lesson.text, place="lesson"),
            "Question",
            key="lesson-brief",
        )
    )
    return answer


def found_by(lesson: Lesson, settings: Mapping[str, Value]) -> Reveal | None:
    """Return what the lesson shows; None while it is computed elsewhere."""
    answer: Reveal | None = (
        lesson.reveal(settings)
        if not lesson.slow
        else panel(
            submitted(work_reveal, lesson.key, lesson.text, dict(settings), place="lesson"),
            "Planning",
            key="lesson-reveal",
        )
    )
    return answer


def _predict(lesson: Lesson, question: Question) -> tuple[str | float | None, bool]:
    """Show the question; what was predicted, and whether the answer may be seen."""
    guess, show = f"{lesson.key}.guess", f"{lesson.key}.show"
    with st.container(border=True, key=f"ask-{lesson.key}"):
        facts("Predict", kind="learn-step")
        facts(question.text, kind="learn-question")
        prediction = _guess(question, guess)
        if prediction is not None:
            st.button("Ask again", key=f"{lesson.key}.again", on_click=_forget, args=(guess, show))
            return prediction, True
        opened = st.toggle(
            "Show me", key=show, bind=ADDRESS, help="Opens the reveal without a prediction."
        )
        if not opened:
            facts("The figure appears when you have answered.", kind="nest-quiet")
    return None, opened


def _guess(question: Question, key: str) -> str | float | None:
    if not question.choices:
        number = st.number_input(
            f"Your answer, {question.unit}",
            0.0,
            question.most,
            None,
            key=key,
            bind=ADDRESS,
            format="%g",
            placeholder="a number, then Enter",
            width=380,
            help=f"0 to {question.most:g} {question.unit}.",
        )
        return None if number is None else float(number)
    picked: str | None = st.radio(
        "Your answer",
        list(question.choices),
        index=None,
        format_func=question.choices.__getitem__,
        key=key,
        bind=ADDRESS,
        label_visibility="collapsed",
    )
    return picked


def _pin_output(reveal: Reveal) -> PinOutput:
    """Return the first table below the texts, and the pictures."""
    pictures = lesson_pictures(reveal.content)
    return (
        PinOutput("\n".join(reveal.texts), pictures=pictures)
        if not reveal.tables
        else table_output(reveal.tables[0], pictures)
    )


def _forget(guess: str, show: str) -> None:
    st.session_state[guess] = None
    st.session_state[show] = False


def _reveal(lesson: Lesson, question: Question, prediction: str | float | None) -> None:
    facts("Reveal", kind="learn-step")
    facts(question.verdict(prediction), kind="learn-verdict")
    settings = lesson_controls(lesson)
    reveal = found_by(lesson, settings)
    if reveal is None:
        return
    if not lesson.text:  # a notebook has no folder of lessons
        pin_button(
            "lesson",
            lesson.title,
            {"lesson": lesson.key, "settings": dict(settings)},
            key="lesson",
            output=lambda: _pin_output(reveal),
        )
    _pictures(lesson, reveal)
    for rows in reveal.tables:
        st.html(rows.to_html())
    control = stepped(lesson)
    if control is not None and control.stepped:
        listen(
            KEYS,
            lambda name: pressed(lesson, name),
            [f"{lesson.key}.{control.key}"],
            key="learn-keys",
        )
    facts("Explain", kind="learn-step")
    facts(*reveal.texts, kind="learn-text")
    st.html(_formulas(reveal.formulas))


def _pictures(lesson: Lesson, reveal: Reveal) -> None:
    """Side by side where they are small, else one above the other."""
    pictures = lesson_pictures(reveal.content)
    drawn = None if pictures else lesson_drawing(reveal.content, WIDTH, wall=False)
    if drawn is not None:
        drawing(lesson, drawn)
    places = st.columns(len(pictures)) if len(pictures) > 1 else [st.container() for _ in pictures]
    for number, (place, picture) in enumerate(zip(places, pictures, strict=True)):
        show_picture(picture, f"{lesson.key}-{number}", place)


def drawing(lesson: Lesson, drawn: LessonDrawing) -> None:
    """Show a drawing below its finding, with a way to keep it."""
    st.html(
        f'<div class="nest-title">{html.escape(drawn.title)}</div>'
        f'<div class="nest-subtitle">{html.escape(drawn.subtitle)}</div>'
    )
    show_svg(drawn.svg, key=f"{lesson.key}.drawn")
    facts(drawn.reading, kind="nest-reading")
    download(
        "Save the drawing (SVG)",
        lambda: drawn.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1),
        f"{lesson.key}.svg",
        "image/svg+xml",
        key=f"{lesson.key}.svg",
    )


def lesson_controls(lesson: Lesson, *, rows: bool = False) -> Mapping[str, Value]:
    """Draw the controls in a row, and return what they say.

    Parameters
    ----------
    lesson : Lesson
    rows : bool
        Whether all values of what is not stepped stand in sight.
    """
    settings: dict[str, Value] = dict(lesson.standard)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for control in lesson.controls:
            kind = "stepped" if control.stepped else "control"
            with st.container(
                horizontal=True,
                key=f"{kind}-{lesson.key}-{control.key}",
                width="content",
                vertical_alignment="bottom",
            ):
                settings[control.key] = _control(
                    lesson, control, control.offered(settings), row=rows
                )
    return settings


def stepped(lesson: Lesson) -> Control | None:
    """Return the control that arrows walk through: one that is made for it, else the first."""
    return next(
        (control for control in lesson.controls if control.stepped),
        next(iter(lesson.controls), None),
    )


def _control(
    lesson: Lesson, control: Control, offered: tuple[Value, ...], *, row: bool = False
) -> Any:
    key = f"{lesson.key}.{control.key}"
    ways = st.container(horizontal=True, width="content") if control.stepped else None
    words = row or isinstance(control.standard, str) or bool(control.names)
    if words and not control.stepped:
        return one_of(
            st,
            control.label,
            offered,
            control.standard,
            key,
            format_func=control.name,
            bind=ADDRESS,
            help=control.help,
        )
    settle(key, OneOf(offered))
    value = st.select_slider(
        control.label,
        offered,
        control.standard,
        format_func=control.name,
        key=key,
        bind=ADDRESS,
        help=control.help,
        width=210,
    )
    if ways is not None:
        for label, by, end in (("Back", -1, offered[0]), ("Forward", 1, offered[-1])):
            ways.button(
                label,
                key=f"{key}.{label.lower()}",
                on_click=walk,
                args=(lesson, control, by),
                disabled=value == end,
            )
    return value


def walk(lesson: Lesson, control: Control, by: int) -> None:
    """Move a control so many values on, for callbacks."""
    settings = {
        other.key: value
        for other in lesson.controls
        if (value := widget_value(f"{lesson.key}.{other.key}", OneOf(other.values))) is not None
    }
    offered = control.offered({**lesson.standard, **settings})
    now = settings.get(control.key, control.standard)
    here = offered.index(now) if now in offered else len(offered) - 1
    st.session_state[f"{lesson.key}.{control.key}"] = offered[
        min(max(here + by, 0), len(offered) - 1)
    ]


KEYS = {"ArrowRight": "next", "PageDown": "next", "ArrowLeft": "back", "PageUp": "back"}
"""Keys that step, those of a presenter's remote too."""


def pressed(lesson: Lesson, name: str) -> None:
    """Step for a key."""
    control = stepped(lesson)
    if control is not None:
        walk(lesson, control, {"next": 1, "back": -1}.get(name, 0))


def _formulas(formulas: tuple[FormulaTable, ...]) -> str:
    return "".join(
        (
            '<div class="learn-formulas">',
            *(
                f"<div><b>{html.escape(formula.name)}</b><code>{html.escape(formula.symbols)}</code>"
                f"<code>{html.escape(formula.numbers)}</code>"
                f"<i>{html.escape(formula.source)}</i></div>"
                for formula in formulas
            ),
            "</div>",
        )
    )


def _teacher(lesson: Lesson, brief: Brief) -> None:
    notes = brief.notes
    with st.expander("Teacher's notes", key=f"notes-{lesson.key}"):
        facts(f"About {lesson.minutes} minutes. Expected: {notes.expected}", kind="learn-text")
        mistakes = [{"answer": m.answer, "what it overlooks": m.overlooks} for m in notes.mistakes]
        if mistakes:
            st.html(Table("Typical wrong answers", "", mistakes).to_html())
        if notes.discuss:
            facts("Go on with", kind="learn-step")
            facts(*notes.discuss, kind="learn-text")


def _neighbours(lessons: tuple[Lesson, ...], number: int) -> None:
    """Ways to the lessons before and after."""
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for label, place in (("Previous", number - 2), ("Next", number)):
            exists = 0 <= place < len(lessons)
            st.button(
                f"{label}: {lessons[place].short}" if exists else label,
                key=f"learn-{label.lower()}",
                disabled=not exists,
                on_click=open_lesson,
                args=(lessons[place].key if exists else "",),
            )


PATIENCE_S = 300.0


def lessons() -> tuple[Lesson, ...]:
    """All that are offered, in order."""
    return offered().lessons


def course_foot(shown: Lesson) -> None:
    """Below a lesson: a way to keep it, and the index of all."""
    index = offered()
    with st.expander(
        f"All lessons: {len(index.lessons)}, "
        f"{sum(lesson.minutes for lesson in index.lessons)} minutes",
        key="lesson-index",
    ):
        st.html(
            Table(
                "Lessons in their order",
                "",
                [
                    {
                        "lesson": lesson.key,
                        "title": lesson.title,
                        "minutes": str(lesson.minutes),
                        "aims: afterwards people can": "; ".join(lesson.aims) or "–",
                    }
                    for lesson in index.lessons
                ],
            ).to_html()
        )
        if index.troubles:
            facts("Files that are no lessons yet", kind="learn-step")
            facts(*(f"{name}: {reason}" for name, reason in index.troubles), kind="learn-text")
    download(
        "↓ This lesson (HTML)",
        lambda: _page(shown),
        f"{shown.key}.html",
        "text/html",
        key=f"{shown.key}.html",
        help="One file with all states of the controls, which runs without a network.",
    )


def _page(lesson: Lesson) -> str:
    """Return the lesson's file, or one that says why there is none."""
    # Without a place: a file is asked for outside of the session, which would count as gone.
    job = submitted(work_page, lesson.key, lesson.text, urgent=False)
    try:
        return str(job.result(PATIENCE_S).text)
    except InputError as error:
        reason = str(error)
    except (Late, Stopped, WorkerCrash):
        reason = "It was not computed in time: write it with nest-studio lesson."
    return f'<!doctype html><meta charset="utf-8"><title>No lesson</title>{html.escape(reason)}'
