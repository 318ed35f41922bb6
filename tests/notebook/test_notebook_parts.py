"""What of a stranger's cell is shown: nothing that runs, nothing that is fetched."""

from __future__ import annotations

import base64
import json

import pytest
from nbformat.v4 import new_code_cell, new_output

from nest_core.report.notebook import cell_parts

PLOT = "application/vnd.plotly.v1+json"
ELSEWHERE = "https://elsewhere.example/x.png"
SVG = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def parts_of(*outputs):
    return list(cell_parts(new_code_cell("x", outputs=list(outputs))))


def shown(**data):
    return parts_of(new_output("display_data", data=data))[0]


def test_text_of_every_kind_of_output_is_text():
    texts = parts_of(
        new_output("stream", text="\x1b[31mred\x1b[0m"),
        new_output("error", ename="ValueError", evalue="no", traceback=["\x1b[0m"]),
        new_output("execute_result", data={"text/plain": "<b>4</b>"}, execution_count=1),
    )
    assert [(part.kind, part.text) for part in texts] == [
        ("text", "red"),
        ("text", "ValueError: no"),
        ("text", "<b>4</b>"),
    ]


def test_html_and_scripts_are_never_shown_as_such():
    page = "<script>alert(1)</script>"
    assert shown(**{"text/html": page, "text/plain": "a table"}).text == "a table"
    assert shown(**{"text/html": page}).text == "an output of text/html"
    assert shown(**{"application/javascript": page}).text == "an output of application/javascript"


def test_pictures_are_data_in_which_nothing_runs():
    assert shown(**{"image/png": "iVBO\nRw0="}).text == "data:image/png;base64,iVBORw0="
    assert shown(**{"image/png": f'x" src="{ELSEWHERE}'}).kind == "text"
    drawn = shown(**{"image/svg+xml": SVG})
    assert drawn.kind == "image"
    assert base64.b64decode(drawn.text.rpartition(",")[2]).decode() == SVG


def test_a_figure_keeps_its_traces_and_loses_what_plotly_would_fetch():
    label = f'<a href="{ELSEWHERE}">x</a>'
    layout = {
        "images": [{"source": ELSEWHERE}],
        "template": {"layout": {"images": [{"source": ELSEWHERE}]}},
        "map": {"style": ELSEWHERE},
        "title": {"text": label},
    }
    spec = {"data": [{"type": "bar", "y": [1, 2], "text": [label, "b"]}], "layout": layout}
    part = shown(**{PLOT: spec, "text/plain": "two bars"})
    assert part.kind == "figure"
    drawn = json.loads(part.figure.to_json())
    assert set(drawn["layout"]) <= {"title", "template"}
    assert drawn["data"][0]["y"] == [1, 2]
    assert "<a" not in json.dumps(drawn)


@pytest.mark.parametrize(
    "spec",
    [
        {"data": [{"type": "image", "source": ELSEWHERE}]},
        {"data": [{"type": "scattermap", "lat": [1], "lon": [1]}]},
        {"data": [{"type": "bar", "nothing": 1}]},
        {"data": "x"},
        {"data": [1]},
        {"data": [], "layout": []},
        {"data": [{"type": "bar"}], "layout": {"xaxis": 3}},
    ],
)
def test_a_figure_that_is_none_of_plain_traces_is_its_words(spec):
    part = shown(**{PLOT: spec, "text/plain": "words"})
    assert (part.kind, part.text) == ("text", "words")
