"""Where the studio's own files lie, in a checkout and in an installed wheel."""

from functools import cache
from pathlib import Path

__all__ = ["app_script", "page_script", "session_script", "style_sheet"]


@cache  # links of every page need it in every run
def app_script() -> Path:
    """Return the module of the server; ``pages/`` and ``.streamlit/`` lie beside it."""
    package = Path(__file__).resolve().parent
    shipped = package / "app" / "app.py"
    return shipped if shipped.is_file() else package.parent / "app.py"


def page_script(name: str) -> Path:
    """Return the script of a page, as `streamlit.Page` and `streamlit.switch_page` take it."""
    return app_script().parent / "pages" / f"{name}.py"


def session_script() -> Path:
    """Return the script that Streamlit runs for every session."""
    return Path(__file__).resolve().parent / "server" / "script.py"


def style_sheet() -> Path:
    """Return the one style sheet of all pages."""
    return Path(__file__).with_name("theme.css")
