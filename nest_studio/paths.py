"""Where the studio's own files lie, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

__all__ = ["app_script", "style_sheet"]


def app_script() -> Path:
    """The script that Streamlit runs; ``pages/`` and ``.streamlit/`` lie beside it."""
    package = Path(__file__).resolve().parent
    shipped = package / "app" / "app.py"
    return shipped if shipped.is_file() else package.parent / "app.py"


def style_sheet() -> Path:
    """The one style sheet of all pages."""
    return Path(__file__).with_name("theme.css")
