"""The HTML report of a notebook in a browser: it is drawn, asks nobody and prints on A4."""

from __future__ import annotations

import re

import pytest
from small_notebook import small_inputs, small_notebook, small_plan

from nest_core.report.notebook.report import html_report

pytestmark = pytest.mark.browser

DRAWN = "() => document.querySelectorAll('.plot .main-svg').length >= 3"
OUTSIDE = """() => [...document.querySelectorAll('.plot')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('.main-svg text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2);
  }).map(text => text.textContent);
})"""


def test_a_browser_draws_it_without_asking_anyone(page, tmp_path):
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    path = tmp_path / "report.html"
    inputs = small_inputs()
    notebook = small_notebook(inputs, small_plan(inputs))
    path.write_text(html_report("Seven <billion>", notebook), encoding="utf-8")
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
