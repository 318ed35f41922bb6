"""The studio's entry: page settings and navigation; the pages do the rest."""

import streamlit as st

from nest_studio.garbage import Collector

PAGES = (
    ("design", "Design"),
    ("plan", "Plan"),
    ("workload", "Workload"),
    ("compare", "Compare"),
    ("explore", "Explore"),
    ("paper", "Paper"),
    ("learn", "Learn"),
    ("notebook", "Notebook"),
)
"""Files of ``pages/``, which are addresses too, and titles."""


def main() -> None:
    """Show the page that the address names."""
    st.set_page_config(page_title="Nest Studio", page_icon="🪺", layout="wide")
    pages = [
        st.Page(f"pages/{name}.py", title=title, url_path=name, default=name == "plan")
        for name, title in PAGES
    ]
    st.navigation(pages).run()
    _collector().after_run()


@st.cache_resource(show_spinner=False)
def _collector() -> Collector:
    """The one of this server."""
    return Collector()


# Worker processes started with "spawn" import this file again and must not draw.
if __name__ == "__main__":
    main()
