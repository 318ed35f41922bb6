"""The studio's entry: page settings and navigation; the pages do the rest."""

from pathlib import Path

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from nest_studio.server.arrival import arrive, say_refused
from nest_studio.server.frames import believe_only_what_fits
from nest_studio.server.garbage import collector
from nest_studio.server.rail import HOME, page_names, rail, theme_style
from nest_studio.server.shell import guards, opened, page_routes, say_defect


def main() -> None:
    """Show the page that the address names."""
    # Also where the person's own settings say otherwise: what fails outside scripts is shown too.
    st.set_option("client.showErrorDetails", "none")
    pages = {
        name: st.Page(f"pages/{name}.py", title=title, url_path=name, default=name == HOME)
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


# Streamlit runs this file for every session, and imports it once for the server. Worker processes
# started with "spawn" import it under another name again and must do neither.
if __name__ == "__main__":
    main()
elif __name__ == Path(__file__).stem:
    # The pages are named above. Until the first run Streamlit would take the folder beside this
    # file for the older kind of pages, and a link straight to a page would miss the navigation.
    PagesManager.uses_pages_directory = False
    believe_only_what_fits()
    routes = page_routes([name for name, _ in page_names()], HOME)
    app = st.App(
        __file__, routes=routes, lifespan=opened, middleware=guards(), on_script_error=say_defect
    )
