"""What Streamlit runs for every session: page settings and navigation; the pages do the rest.

It does not stand beside ``pages/``, which Streamlit would take for its older kind of pages until
the first run has named them, so that a link straight to a page would miss the navigation.
"""

import streamlit as st

from nest_studio.paths import page_script
from nest_studio.server.arrival import arrive, say_refused
from nest_studio.server.garbage import collector
from nest_studio.server.rail import HOME, page_names, rail, theme_style


def main() -> None:
    """Show the page that the address names."""
    # Also where the person's own settings say otherwise: what fails outside scripts is shown too.
    st.set_option("client.showErrorDetails", "none")
    pages = {
        name: st.Page(page_script(name), title=title, url_path=name, default=name == HOME)
        for name, title in page_names()
    }
    page = st.navigation(list(pages.values()), position="hidden")
    arrive(page)
    theme_style()
    rail(pages, page)
    above = st.container(key="refused")
    try:
        page.run()
        say_refused(above)
    finally:  # most runs of a busy visitor are ended by the next one
        collector.after_run()


# Worker processes started with "spawn" import this file again, under another name.
if __name__ == "__main__":
    main()
