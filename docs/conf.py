"""The site: `make docs` builds it from these pages, the sources and the notebooks of examples/."""

from __future__ import annotations

import sys
from pathlib import Path

from plotly.offline import get_plotlyjs

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generate  # noqa: E402  # both folders have to be on the path first

import nest_core  # noqa: E402

project = "Nest Studio"
author = copyright = "The Nest Studio authors"
release = nest_core.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["build"]
templates_path: list[str] = []
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"  # the docstrings say types, with shapes and units
autodoc_default_options = {"members": True, "undoc-members": False}
default_role = "code"
myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def _write_pages(app):
    generate.reference(HERE / "api")
    generate.gallery(HERE.parent / "examples", HERE / "gallery")


def _plotly_where_it_is_used(app, page, template, context, doctree):
    """Pictures of the gallery are drawn by the reader's browser, without a network."""
    if page.startswith("gallery/"):
        app.add_js_file("plotly.min.js", loading_method=None, priority=100)


def _write_plotly(app, error):
    if error is None and app.builder.format == "html":
        Path(app.outdir, "_static", "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")


def setup(app):
    """Pages that are made from sources and notebooks are written before Sphinx looks for pages."""
    app.connect("builder-inited", _write_pages, priority=100)
    app.connect("html-page-context", _plotly_where_it_is_used)
    app.connect("build-finished", _write_plotly)
