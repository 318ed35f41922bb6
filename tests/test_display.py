"""How core values show themselves in Jupyter."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from nest_core.api.answer import answer
from nest_core.network import collapse
from nest_core.report.explain.headlines import levels_table
from nest_core.report.explain.summary import plan_in_words
from nest_core.report.explain.words import stages_table
from nest_core.report.tables import html_table
from nest_core.scenario import load_fabric, load_scenario

ALONE = "baselines.names=[]"


class Cells(HTMLParser):
    """Text by row of all tables, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.words += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def found():
    return answer(
        load_scenario("llama2-7b-64-h100", ["workload.global_batch_sequences=512", ALONE])
    )


def test_an_answer_shows_headlines_plan_and_stages(found):
    cells = Cells(found._repr_html_())
    shown = {row[0]: row[1] for row in cells.rows}
    for headline in found.headlines():
        assert shown[headline.name] == headline.value
    assert plan_in_words(found.result.best, 512, 64) in cells.words
    assert cells.rows[-1][0] == str(len(found.result.best.stages))


def test_an_answer_without_a_plan_says_why():
    found = answer(load_scenario("llama2-7b-64-h100", ["accelerator.memory_GiB=3.0", ALONE]))
    words = Cells(found._repr_html_()).words
    assert found.result.reason in words
    assert found.advice in words


def test_a_report_shows_its_degrees_and_every_stage():
    report = answer(load_scenario("llama2-7b-64-h100", ["search.pp=4", ALONE])).result.best
    assert len(report.stages) == 4
    cells = Cells(stages_table(report)._repr_html_())
    assert report.plan.words in cells.words
    assert [row[0] for row in cells.rows[1:]] == [str(n + 1) for n in range(len(report.stages))]


@pytest.mark.parametrize("name", ["h100-spine-leaf-1024", "tpu-v4-4x4x4", "dragonfly-1056"])
def test_a_network_shows_its_levels(name):
    network = collapse(load_fabric(name))
    cells = Cells(levels_table(network)._repr_html_())
    assert cells.words.startswith("With all sending, a device has ")
    assert [row[0] for row in cells.rows[1:]] == [level.name for level in network.levels]


def test_cells_are_escaped():
    text = html_table([{"<a>": "<script>"}])
    assert "<script>" not in text
    assert Cells(text).rows == [["<a>"], ["<script>"]]
