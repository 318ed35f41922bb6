"""The tour of a first visit: five short steps in a panel that blocks nothing.

It opens on a bare address only: a link shows what it was made for. Once it is over the address
says so, and the button brings it back.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from nest_studio.show import facts

__all__ = ["tour", "tour_button"]

PARAMETER, OFF = "tour", "off"
STEP = "tour step"


@dataclass(frozen=True, slots=True)
class _Stop:
    """One step: what it says, and what it outlines."""

    title: str
    text: str
    outlined: str = ""


STOPS = (
    _Stop(
        "What this page answers",
        "Which plan trains this model fastest on this fabric: how deep, how wide, how many "
        "replicas, and where each part sits. Every change is planned anew.",
    ),
    _Stop(
        "The form",
        "Start from a preset at the left, then override what differs: fabric, workload, limits. "
        "The address bar holds a link to what is on screen.",
        '.stSidebar [data-testid="stSidebarUserContent"]',
    ),
    _Stop(
        "The headline and its interval",
        "Each figure opens its formula with the numbers. The range beneath is where four runs of "
        "five should lie, by how far this model was off on measured runs.",
        ".stMetric",
    ),
    _Stop(
        "Why",
        "Further down: what binds each stage, what more bandwidth or memory would give, the next "
        "best choice on every axis, and how your own plan compares.",
        ".st-key-why-binding",
    ),
    _Stop(
        "The other pages",
        "Design draws a fabric, Compare sets scenarios side by side, Explore sweeps a parameter, "
        "Learn teaches what is behind it, Notebook keeps your results.",
        '[data-testid="stSidebarNav"]',
    ),
)


def tour() -> None:
    """Draw the current step; nothing when the tour is over or was never due."""
    if STEP not in st.session_state:
        st.session_state[STEP] = None if st.query_params else 0
    step: int | None = st.session_state[STEP]
    if step is None or st.query_params.get(PARAMETER) == OFF:
        return
    stop = STOPS[step]
    last = step == len(STOPS) - 1
    if stop.outlined:
        st.html(
            f"<style>{stop.outlined} {{ outline: 2px solid #0072B2; "
            "outline-offset: 4px; }}</style>"
        )
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="tour"):
        with st.container():
            facts(f"{step + 1} of {len(STOPS)}: {stop.title}", kind="nest-title")
            facts(stop.text)
        if last:
            st.button("Done", key="tour-done", on_click=_end)
        else:
            st.button("Next", key="tour-next", on_click=_go, args=(step + 1,))
            st.button("Skip", type="tertiary", key="tour-skip", on_click=_end)


def tour_button() -> None:
    """A quiet button that opens the tour from its first step."""
    st.button(
        "Tour",
        type="tertiary",
        key="tour-again",
        on_click=_start,
        help="Five steps through this page, under a minute.",
    )


def _start() -> None:
    st.query_params.pop(PARAMETER, None)
    _go(0)


def _go(step: int) -> None:
    st.session_state[STEP] = step


def _end() -> None:
    st.session_state[STEP] = None
    st.query_params[PARAMETER] = OFF
