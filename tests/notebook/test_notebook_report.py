"""The HTML report: whole, harmless, and silent on the network."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from nest_core.report.notebook import cell_parts, new_notebook
from nest_core.report.notebook.report import html_report


class Elements(HTMLParser):
    """All start tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._code = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self._code = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._code = False

    def handle_data(self, data):
        if not self._code:
            self.words += data


@pytest.fixture
def report(small_notebook):
    return html_report("Seven <billion>", small_notebook)


def test_every_word_of_a_cell_is_there(report, small_notebook):
    words = Elements(report).words
    assert "Seven <billion>" in words
    assert "<em>Small</em> first." in report
    assert small_notebook.cells[-1].source in words
    table, *figures = cell_parts(small_notebook.cells[-1])
    assert table.text in words
    labels = {held.get("aria-label") for _, held in Elements(report).found}
    assert {part.text for part in figures} <= labels


def test_nothing_is_loaded_from_elsewhere(report):
    for tag, attributes in Elements(report).found:
        assert "src" not in attributes
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert attributes.get("href", "#").startswith("#")
    policy = next(a for _, a in Elements(report).found if a.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none';")


def test_plotly_is_there_once_and_only_if_needed(report, small_notebook):
    assert len(re.findall(r"plotly\.js v\d", report)) == 1
    words_only = html_report("N", new_notebook(small_notebook.cells[:1]))
    assert "plotly.js" not in words_only
    assert len(words_only) < 20_000


def test_names_notes_and_outputs_cannot_run():
    evil = "</script><script>alert(1)</script>"
    plot = {"data": [{"type": "bar", "y": [1], "name": evil}], "layout": {"title": {"text": evil}}}
    data = {"application/vnd.plotly.v1+json": plot, "text/plain": evil}
    outputs = [
        new_output("stream", text=evil),
        new_output("display_data", data=data),
        new_output("display_data", data={"image/svg+xml": evil}),
        new_output("display_data", data={"text/html": evil}),
    ]
    cells = [new_markdown_cell(evil), new_code_cell(evil, outputs=outputs)]
    text = html_report(evil, new_notebook(cells))
    assert evil not in text
    assert "&lt;/script" in text
