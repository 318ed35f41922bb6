"""The tour of a first visit: five short steps in a panel that blocks nothing.

It opens on a bare address only, in the lower corner: a link shows what it was made for, and no
answer moves down for it. Once it is over this studio's store remembers that, and it is not offered
again; the button brings it back.
"""

from dataclasses import dataclass

import streamlit as st

from nest_studio.components.show import facts
from nest_studio.form.fields import hold
from nest_studio.session.stored import is_kept, keep

__all__ = ["tour", "tour_button"]

PARAMETER, OFF = "tour", "off"
OVER = {"tour": "over"}
"""What the store remembers; its key follows from its content."""
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
        "The range beneath a figure is where four runs of five should lie, by how far this model "
        "was off on measured runs; the formulae behind all figures are under Why.",
        ".st-key-cards",
    ),
    _Stop(
        "Why",
        "The tabs below say what else there was: other planners beside this plan, what binds each "
        "stage, what more bandwidth or memory would give, and how your own plan compares.",
        ".stTabs",
    ),
    _Stop(
        "The other pages",
        "Design draws a fabric, Compare sets scenarios side by side, Explore sweeps a parameter, "
        "Lessons teach what is behind it, Notebook keeps your results.",
        ".st-key-rail",
    ),
)


def tour() -> None:
    """Draw the current step; nothing when the tour is over or was never due."""
    if STEP not in st.session_state:
        st.session_state[STEP] = None if st.query_params or is_kept(OVER) else 0
    step: int | None = st.session_state[STEP]
    if step is None or st.query_params.get(PARAMETER) == OFF:
        return
    stop = STOPS[step]
    last = step == len(STOPS) - 1
    if stop.outlined:
        st.html(
            f"<style>{stop.outlined} {{ outline: 2px solid var(--accent); "
            "outline-offset: 4px; }}</style>"
        )
    with st.container(border=True, key="tour"):
        facts(f"{step + 1} of {len(STOPS)}: {stop.title}", kind="nest-title")
        facts(stop.text)
        with st.container(horizontal=True, gap="small"):
            if last:
                st.button("Done", key="tour-done", on_click=_end)
            else:
                st.button("Next", key="tour-next", on_click=hold, args=(STEP, step + 1))
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
    hold(STEP, 0)


def _end() -> None:
    st.session_state[STEP] = None
    keep(OVER)
