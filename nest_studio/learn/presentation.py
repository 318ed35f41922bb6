"""A lesson at a projector: question and figure side by side, hands counted, keys step.

Laid out for 1280 x 720 pixels without scrolling; type of 32, 20 and 16 pixels. What the page shows
elsewhere and a class does not need (formulas, notes for the teacher, downloads) is left out.
"""

import html
import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from nest_core.teaching.drawings import lesson_drawing, lesson_pictures, projected
from nest_core.teaching.lessons import Brief, Lesson, Question, Reveal
from nest_studio.components.browser.keys import listen
from nest_studio.components.show import show_svg, told
from nest_studio.form.fields import ADDRESS, Number, hold, settle
from nest_studio.learn.view import (
    KEYS,
    LESSON,
    asked,
    found_by,
    lesson_controls,
    lessons,
    open_lesson,
    pressed,
    stepped,
)
from nest_studio.server.rail import PRESENT, present

__all__ = ["on_key", "present_button", "show_presented"]

_FIGURE_PX, _FIGURES_PX = 648, 490
_LONG = 110  # letters that stand as a heading in four lines
_MOST_HANDS = 999

_STYLE = """
<style>
.stMainBlockContainer { padding: 32px 40px 0; max-width: 1440px; margin: 0 auto; }
.stMain { overflow: hidden auto; outline: none; box-shadow: none; }
[data-testid="stLayoutWrapper"]:has(> [class*="st-key-unseen"]) { display: none; }
.wall-ask { font-size: 32px; line-height: 40px; font-weight: 600; letter-spacing: -0.3px; }
.wall-text { font-size: 20px; line-height: 28px; }
.wall-text b { font-weight: 600; }
.wall-small { font-size: 16px; line-height: 24px; color: var(--ink3); }
.wall-small.nest-legend { font-size: 16px; }
.wall-title { font-size: 20px; line-height: 28px; font-weight: 600; }
.wall-hands { text-align: right; border-top: 1px solid var(--line); padding-top: 8px; }
.wall-option { display: grid; grid-template-columns: 32px minmax(0, 1fr) 152px; gap: 8px;
  align-items: center; font-size: 20px; line-height: 24px; min-height: 56px; }
.wall-option.wall-bare { grid-template-columns: 32px minmax(0, 1fr); }
.wall-option b { font-weight: 600; }
.wall-option i { display: block; height: 16px; background: var(--fill); }
.wall-right { color: var(--accentink); font-weight: 600; }
.wall-right i { background: var(--accent); }
[class*="st-key-hand-"] { border-top: 1px solid var(--line); flex-wrap: nowrap; gap: 8px; }
[class*="st-key-hand-"] input { font-size: 20px; text-align: right; padding: 4px 8px; }
[class*="st-key-hand-"] [data-testid="stNumberInputStepUp"],
[class*="st-key-hand-"] [data-testid="stNumberInputStepDown"] { display: none; }
.st-key-wall-question [data-testid="stVerticalBlock"] { gap: 0; }
.st-key-wall-question, .st-key-wall-figure { gap: 8px; }
.st-key-wall-controls [class*="st-key-stepped"] { display: none; }
.st-key-wall-controls label p, .st-key-wall-controls button p { font-size: 16px; }
[data-testid="stLayoutWrapper"]:has(> :is(.st-key-wall-controls, .st-key-wall-ways))
  { position: fixed; bottom: 8px; width: auto; background: var(--bg); z-index: 9; }
[data-testid="stLayoutWrapper"]:has(> .st-key-wall-controls) { right: 40px; }
[data-testid="stLayoutWrapper"]:has(> .st-key-wall-ways) { left: 40px; }
.st-key-wall-controls [data-testid="stButtonGroup"] > label { min-height: 20px; }
.st-key-wall-ways button p, .st-key-wall-show button p { font-size: 16px; }
</style>
"""


def present_button() -> None:
    """Show the way to the projector."""
    st.button("Present", on_click=_open, help="Question and figure alone, for a projector.")


def _open() -> None:
    present(True)
    st.query_params[PRESENT] = "on"


def show_presented(lesson: Lesson) -> None:
    """Show a lesson alone on the screen."""
    st.html(_STYLE)
    with st.container(key="unseen-show"):
        opened = st.toggle("Show me", key=f"{lesson.key}.show", bind=ADDRESS)
    with told():
        _question_and_figure(lesson, opened=opened)
    _ways(lesson, opened=opened)
    moved = [
        f"{every.key}.{name}"
        for every in lessons()
        for name in ("show", *(control.key for control in every.controls))
    ]
    listen(
        {**KEYS, "Enter": "show", "Escape": "leave", "n": "following", "p": "previous"},
        on_key,
        [LESSON, *moved],
        key="wall-keys",
        everywhere=True,
    )


def _question_and_figure(lesson: Lesson, *, opened: bool) -> None:
    brief = asked(lesson)
    if brief is None:
        return
    question_place, figure_place = st.columns([496, 648], gap="large")
    with question_place.container(key="wall-question"):
        _question(lesson, brief, opened=opened)
    with figure_place.container(key="wall-figure"):
        if not opened:
            _before(lesson)
            return
        reveal = _figure(lesson, brief.notes.discuss)
    if reveal is not None:
        with question_place:
            _told(brief.question, reveal)


def _question(lesson: Lesson, brief: Brief, *, opened: bool) -> None:
    """Show the question, what hands are raised for, and how many were."""
    st.html(_asked_html(brief.question.text))
    counts: dict[str, int] = {}
    rows = []
    for key, text in brief.hands.items():
        with st.container(horizontal=True, key=f"hand-{key}", vertical_alignment="center"):
            rows.append((key, text, st.empty()))
            counts[key] = _hands(lesson, key)
    most, total = max(counts.values(), default=0), sum(counts.values())
    for key, text, place in rows:
        share = counts[key] / most if most and opened else 0.0
        right = opened and key == brief.right_hand
        place.html(_option_html(key, text, share, right=right, counted=opened and total > 0))
    st.html(
        f'<div class="wall-small wall-hands">{total} hand{"s" * (total > 1)}</div>'
        if total
        else '<div class="wall-small wall-hands">Hands are counted at the right.</div>'
    )


def _hands(lesson: Lesson, choice: str) -> int:
    key = f"{lesson.key}.hands.{choice}"
    settle(key, Number(0, _MOST_HANDS))
    return int(
        st.number_input(
            f"Hands for {choice.upper()}",
            0,
            _MOST_HANDS,
            0,
            key=key,
            bind=ADDRESS,
            label_visibility="collapsed",
            width=64,
        )
    )


def _asked_html(text: str) -> str:
    """Return the question in large type; where it is long, what leads to it in the smaller one."""
    sentences = re.split(r"(?<=[.:?!]) ", text)
    lead, ask = ([], text) if len(text) <= _LONG else (sentences[:-1], sentences[-1])
    return "".join(
        f'<div class="wall-{kind}">{html.escape(words)}</div>'
        for kind, words in (("text", " ".join(lead)), ("ask", ask))
        if words
    )


def _option_html(key: str, text: str, share: float, *, right: bool, counted: bool) -> str:
    bar = f'<i style="width: {152 * share:.0f}px"></i>' if counted else ""
    kind = f"wall-option{' wall-right' if right else ''}{'' if counted else ' wall-bare'}"
    return (
        f'<div class="{kind}"><b>{key.upper()}</b>'
        f"<span>{html.escape(text)}{' ✓' * right}</span>{bar}</div>"
    )


def _before(lesson: Lesson) -> None:
    """Show what to know, and the fabric before anything moves."""
    st.html(f'<div class="wall-text">{html.escape(lesson.lead)}</div>')
    if not lesson.slow:
        first = {control.key: control.values[0] for control in lesson.controls if control.stepped}
        drawn = lesson_drawing(lesson.reveal(first).content, _FIGURE_PX, wall=True)
        if drawn is not None:
            show_svg(drawn.svg, key="wall-drawing")


def _figure(lesson: Lesson, discuss: Sequence[str]) -> Reveal | None:
    """Show controls, the figure and what to go on with."""
    with st.container(key="wall-controls"):
        settings = lesson_controls(lesson, rows=True)
    reveal = found_by(lesson, settings)
    if reveal is None:
        return None
    drawn = lesson_drawing(reveal.content, _FIGURE_PX, wall=True)
    if drawn is not None:
        _titles(drawn.title, drawn.subtitle)
        show_svg(drawn.svg, key="wall-drawing")
    pictures = () if drawn is not None else lesson_pictures(reveal.content)
    for picture in pictures[:1]:
        _titles(picture.title, picture.subtitle, picture.legend)
        st.plotly_chart(
            projected(picture, _FIGURES_PX - 36 * (len(pictures) - 1)).drawn(),
            key=f"wall-{lesson.key}",
            config={"displayModeBar": False},
            alt=f"{picture.title}. {picture.subtitle}.",
        )
    for other in pictures[1:]:  # a wall has room for a single one that can be read
        _titles(other.title, "")
    for following in discuss[:1]:
        st.html(f'<div class="wall-text"><b>Next:</b> {html.escape(following)}</div>')
    return reveal


def _titles(title: str, subtitle: str, legend: tuple[tuple[str, str], ...] = ()) -> None:
    colours = "".join(
        f'<span><i style="background: {colour}"></i>{html.escape(name)}</span>'
        for name, colour in legend
    )
    below = f'<div class="wall-small">{html.escape(subtitle)}</div>' if subtitle else ""
    below += f'<div class="wall-small nest-legend">{colours}</div>' if colours else ""
    st.html(f'<div class="wall-title">{html.escape(title)}</div>{below}')


def _told(question: Question, reveal: Reveal) -> None:
    """Show the answer, and why."""
    st.html(
        f'<div class="wall-text"><b>{html.escape(question.answer)}</b> '
        f"{html.escape(reveal.texts[0] if reveal.texts else '')}</div>"
    )


def _ways(lesson: Lesson, *, opened: bool) -> None:
    """Show what keys do, for a mouse."""
    with st.container(horizontal=True, key="wall-ways", gap="small"):
        st.button(
            "Ask again" if opened else "Reveal (Enter)",
            key="wall-show",
            type="tertiary",
            on_click=hold,
            args=(f"{lesson.key}.show", not opened),
        )
        st.button("Leave (Esc)", key="wall-leave", type="tertiary", on_click=present, args=(False,))


def on_key(name: str) -> None:
    """Answer a key: arrows reveal first, then step."""
    every = lessons()
    here = [lesson.key for lesson in every].index(st.session_state[LESSON])
    lesson, place = every[here], here + {"following": 1, "previous": -1}.get(name, 0)
    show = f"{lesson.key}.show"
    opened = bool(st.session_state.get(show, False))
    if name == "leave":
        present(False)
    elif name in ("following", "previous"):
        if 0 <= place < len(every):
            open_lesson(every[place].key)
    elif name == "show" or (name == "next" and not opened):
        st.session_state[show] = True
    elif opened:
        _step(lesson, name)


def _step(lesson: Lesson, name: str) -> None:
    """Step on or back; back from the first one closes the reveal."""
    control = stepped(lesson)
    key = f"{lesson.key}.{control.key}" if control else ""
    now: Any = st.session_state.get(key, control.standard if control else None)
    if name == "back" and control is not None and now == control.values[0]:
        st.session_state[f"{lesson.key}.show"] = False
    else:
        pressed(lesson, name)
