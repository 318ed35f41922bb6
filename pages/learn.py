"""Nine guided lessons: predict, reveal, explain."""

import streamlit as st

from nest_studio.learn_view import learn_style, lesson_bar, presenting, show_lesson

left, right = st.columns([6, 1], vertical_alignment="center")
with right:
    large = presenting()
learn_style(large=large)
with left:
    shown = lesson_bar()
show_lesson(shown, large=large)
