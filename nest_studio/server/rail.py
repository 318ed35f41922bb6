"""The rail at the left: the product's name, and its pages in groups of what one does with them.

Pages are data, so that one more is one more line. The rail, the one style sheet (`theme.css`) and
the browser's title are drawn by ``app.py`` before a page; `presenting` hides all of it.
"""

import html
from collections.abc import Mapping
from functools import cache
from typing import Any

import streamlit as st

from nest_core.report.documents import COLOURS
from nest_studio.paths import style_sheet

__all__ = [
    "GROUPS",
    "HOME",
    "PRESENT",
    "PRODUCT",
    "head",
    "page_names",
    "present",
    "presenting",
    "rail",
    "theme_style",
]

PRODUCT = "Nest Studio"
GROUPS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Build": (("design", "Design"), ("workload", "Workload")),
    "Decide": (("plan", "Plan"), ("compare", "Compare"), ("explore", "Explore")),
    "Keep": (("measure", "Measurements"), ("notebook", "Notebook")),
    "Learn": (("learn", "Lessons"), ("paper", "Paper")),
}
"""Pages by group: files of ``pages/``, which are addresses too, and titles."""
HOME = "plan"
"""The page at the root."""
WIDTH = 224
"""Of the rail, in pixels."""

PRESENT = "present"
"""In the address ``?present=on``, and in the session True, while all chrome is hidden."""
_BARE = (
    "<style>.stSidebar, .stAppHeader, [data-testid='stExpandSidebarButton'] { display: none; } "
    ".stMainBlockContainer { padding: 24px 32px; }</style>"
)
_TITLE = "title of the page"


def page_names() -> tuple[tuple[str, str], ...]:
    """Files and titles of all pages, in the rail's order."""
    return tuple(page for pages in GROUPS.values() for page in pages)


def present(on: bool) -> None:
    """Hide all chrome from the next run on, or show it again; for callbacks."""
    st.session_state[PRESENT] = on
    if not on:
        st.query_params.pop(PRESENT, None)


def presenting() -> bool:
    """Whether a page stands alone, as at a projector: asked for in the address or by `present`."""
    return bool(st.session_state.get(PRESENT, st.query_params.get(PRESENT) == "on"))


@cache
def _style() -> str:
    return f"<style>{COLOURS}{style_sheet().read_text('utf-8')}</style>"


def theme_style() -> None:
    """The style of all pages; comes first, so that nothing is drawn without it."""
    st.html(_style())
    if presenting():
        st.html(_BARE)


def rail(pages: Mapping[str, Any], shown: Any) -> None:
    """The product's name and the groups of pages, above whatever a page puts below them.

    Parameters
    ----------
    pages : mapping of str to StreamlitPage
        By file.
    shown : StreamlitPage
        The one that is drawn next.
    """
    st.session_state[_TITLE] = shown.title
    st.set_page_config(
        page_title=f"{shown.title} · {PRODUCT}",
        page_icon="🪺",
        layout="wide",
        initial_sidebar_state=WIDTH,
    )
    # Few elements, laid out in a grid by the style sheet: every run of every page sends them all.
    with st.sidebar, st.container(key="rail", gap=None):
        st.html(f'<div class="nest-brand">{PRODUCT}</div>')
        for group, entries in GROUPS.items():
            st.html(f'<div class="nest-group">{group}</div>')
            for name, title in entries:
                place: Any = st.container(key="rail-here") if pages[name] == shown else st
                place.page_link(pages[name], label=title)


def head(subject: str) -> None:
    """A page's title: its subject, which the browser's tab says after the page's name."""
    st.set_page_config(page_title=f"{st.session_state.get(_TITLE, PRODUCT)} · {subject}")
    st.html(f'<h1 class="nest-scenario">{html.escape(subject)}</h1>')
