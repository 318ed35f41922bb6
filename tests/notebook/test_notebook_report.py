"""The HTML report: whole, harmless, and silent on the network."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from nest_core.errors import InputError
from nest_core.notebook import Cell, Notebook, Summary, from_json, to_json
from nest_core.notebook.kinds import summarise
from nest_core.notebook.report import html_report

DRAWN = "() => document.querySelectorAll('.plot .main-svg').length >= 3"
OUTSIDE = """() => [...document.querySelectorAll('.plot')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('.main-svg text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2);
  }).map(text => text.textContent);
})"""


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
def report(small_notebook, small_shown, noon):
    return html_report(small_notebook, {"p": small_shown}, noon)


def test_every_word_of_a_cell_is_there(report, small_notebook, small_shown):
    words = Elements(report).words
    assert small_notebook.name in words
    assert "22 November 2026, 12:04 UTC" in words
    assert "nest-studio 0.1.0" in words
    for cell in small_notebook.cells:
        assert cell.title in words
    assert "<em>Small</em> first." in report
    for headline in small_shown.headlines:
        for text in (headline.name, headline.value, headline.note, *headline.formula):
            assert text in words
    for picture in small_shown.pictures:
        for text in (picture.title, picture.subtitle, picture.reading):
            assert text in words
        assert all(name in words for name, _ in picture.legend)
    for line in small_shown.facts:
        assert line in words
    for said in small_shown.fabric.said:
        assert said.head in words
    for row in small_shown.table.rows:
        assert all(value in words for value in row.values())


def test_its_fabric_is_drawn_once_as_light_as_the_report(report, small_shown):
    """A plan's report had no picture of what it was planned on."""
    (drawn,) = (held for tag, held in Elements(report).found if tag == "svg")
    assert drawn["class"] == "fabric light"
    assert float(drawn["width"]) == small_shown.fabric.width <= 182 / 25.4 * 96


def test_nothing_is_loaded_from_elsewhere(report):
    for tag, attributes in Elements(report).found:
        assert "src" not in attributes
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert attributes.get("href", "#").startswith("#")
    policy = next(a for _, a in Elements(report).found if a.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none';")


def test_plotly_is_there_once_and_only_if_needed(report, small_notebook, noon):
    assert len(re.findall(r"plotly\.js v\d", report)) == 1
    words_only = html_report(Notebook("N", small_notebook.cells[:1]), {}, noon)
    assert "plotly.js" not in words_only
    assert len(words_only) < 20_000


def test_names_notes_and_titles_cannot_run(small_shown, noon):
    evil = "</script><script>alert(1)</script>"
    cells = (Cell("a", "note", evil, evil), Cell("b", "plan", evil, "", {}))
    table = replace(small_shown.table, title=evil, rows=({evil: evil},))
    picture = replace(small_shown.pictures[0], title=evil, legend=((evil, evil),))
    plot = picture.plot
    picture = replace(picture, plot=type(plot)(plot).update_layout(xaxis_title_text=evil))
    shown = replace(small_shown, facts=(evil,), table=table, pictures=(picture,))
    text = html_report(Notebook(evil, cells), {"b": shown}, noon)
    assert evil not in text
    assert "&lt;/script>" in text
    clean = html_report(Notebook("N", (cells[0],)), {}, noon)
    assert len(re.findall("<script", clean)) == 0


def test_ratios_are_reported_and_kept_like_plans(study_inputs, study_shown, noon):
    shown = study_shown["ratios"]
    cell = Cell("r", "ratios", "Ratios", "", study_inputs["ratios"], summarise(shown, noon))
    notebook = Notebook("N", (cell,))
    assert from_json(to_json(notebook)) == notebook
    words = Elements(html_report(notebook, {"r": shown}, noon)).words
    for text in (shown.table.title, *shown.facts, *(one.title for one in shown.pictures)):
        assert text in words
    assert all(value in words for row in shown.table.rows for value in row.values())
    assert "the same figures" in words


def test_a_cell_without_figures_says_why(small_notebook, noon):
    refused = InputError("search.zero", "must name a stage", [], "add one")
    text = html_report(small_notebook, {"p": refused}, noon)
    assert html.escape(str(refused)) in text
    assert "It was not computed." in html_report(small_notebook, {}, noon)


def test_what_changed_since_the_pin_is_said(small_notebook, small_shown, report, noon):
    assert "the same figures" in report
    (row,) = small_shown.rows
    older = Summary(
        ({**row, "iteration time, s": row["iteration time, s"] * 2},),
        {"nest-studio": "0.0.9"},
        "2026-01-05T08:00:00+00:00",
    )
    cells = (replace(small_notebook.cells[1], summary=older),)
    text = html_report(Notebook("N", cells), {"p": small_shown}, noon)
    assert "Pinned on 5 January 2026, 08:00 UTC with nest-studio 0.0.9; since then:" in text
    assert "(−50.0 %)" in text


@pytest.mark.browser
def test_a_browser_draws_it_without_asking_anyone(page, report, tmp_path):
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    path = tmp_path / "report.html"
    path.write_text(report, encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_function(DRAWN)
    assert page.evaluate(OUTSIDE) == []
    assert asked == [path.as_uri()]
    assert complaints == []
    printed = page.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox *\[0 0 ([\d.]+) ([\d.]+)\]", printed)
    assert {(round(float(w)), round(float(h))) for w, h in sizes} == {(595, 842)}
    # Two sections and their three figures: the front page and what follows it.
    assert 2 <= len(sizes) <= 6
