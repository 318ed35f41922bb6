"""Guided lessons: predict, reveal, explain; on a page, or alone at a projector."""

import streamlit as st

from nest_studio.learn.presentation import present_button, show_presented
from nest_studio.learn.view import lesson_bar, show_lesson
from nest_studio.server.rail import presenting

if presenting():
    with st.container(key="unseen"):
        lesson = lesson_bar()
    show_presented(lesson)
else:
    lessons_place, button_place = st.columns([6, 1], vertical_alignment="center")
    with button_place:
        present_button()
    with lessons_place:
        lesson = lesson_bar()
    show_lesson(lesson)
