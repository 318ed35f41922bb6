"""Words of people stay words in Markdown, in plots, in notes and in spreadsheets.

The judges are parsers that the code under test does not use: `markdown-it` with everything
switched on, Python's `html.parser`, and a spreadsheet's rule for what a cell computes.
"""

from __future__ import annotations

import ast
import csv
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go
import pytest
from html_parts import Parts, loads, texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nest_core.documents.text import as_cell, as_markdown, as_plot, csv_text, of_cell
from nest_core.fabric import Element, GraphFabric, Link
from nest_core.interop.formats import read_fabric, write_fabric
from nest_core.report.figures import Chart
from nest_core.report.notebook import pin_cells
from nest_core.report.notebook.report import note_html, note_markdown
from nest_core.scenario import load_fabric

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = "//elsewhere.example/x.png"
MARKS = st.sampled_from(
    [
        "!",
        "[",
        "]",
        "(",
        ")",
        "<",
        ">",
        "&",
        "\\",
        "`",
        "``",
        "*",
        "_",
        "~",
        "$",
        ":",
        "#",
        "+",
        "-",
        "=",
        "|",
        "1.",
        "2)",
        "\n",
        "\n\n",
        "    ",
        " ",
        "a",
        "é",
        "&lt;",
        "&#33;",
        "img src=",
        "'",
        '"',
        "data:image/png;base64,iVBORw0KGgo=",
        "http:",
        ELSEWHERE,
        "https:" + ELSEWHERE,
        "[r]: //elsewhere.example/y\n",
        "<b>",
        "<br>",
        "<span style='background: url(",
        "</span>",
        "javascript:alert(1)",
        ":red",
        "{",
        "}",
        "---",
        "> ",
        "```\n",
        "```mermaid\n",
    ]
)
WORDS = st.lists(MARKS, max_size=12).map("".join)


# Everything a front end could read: raw HTML too.
EAGER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def check_words(words):
    shown = EAGER.render(as_markdown(words)).strip()
    plain = re.sub(r"\s", " ", words).strip().replace("\0", "\ufffd")
    assert Parts(shown).tags == ([("p", {})] if plain else [])
    assert html.unescape(shown.removeprefix("<p>").removesuffix("</p>")) == plain


@settings(max_examples=300, deadline=None)
@given(WORDS)
@example("![a](https://elsewhere.example/x.png)")
@example("    indented")
@example("1. one")
def test_words_in_markdown_are_text(words):
    """A failure: a name that a stranger chose acts as Markdown in someone else's browser."""
    check_words(words)


@pytest.mark.check
@settings(max_examples=20_000, deadline=None)
@given(st.one_of(WORDS, st.text(max_size=40)))
def test_any_words_in_markdown_are_text(words):
    check_words(words)


@pytest.mark.parametrize(
    "words", [":red[x]", ":material/home:x", "$x$", "$$x$$", "~x~", ":small{}"]
)
def test_what_only_the_front_end_knows_is_quoted(words):
    """Directives and mathematics are Streamlit's own; a backslash stands before each."""
    quoted = as_markdown(words)
    assert quoted != words
    assert re.sub(r"\\(.)", r"\1", quoted) == words


@pytest.mark.parametrize(
    "said",
    [
        "workload.global_batch_sequences must be at least 1, but is 0: raise it.",
        "H100, 2:1, 80 GiB; https://elsewhere.example",
        "Stage 4 is the bottleneck, 12 % above the mean",
    ],
)
def test_usual_sentences_are_left_alone(said):
    assert as_markdown(said) == said


@settings(max_examples=25, deadline=None)
@given(WORDS)
@example(f"<span style='cursor: url({ELSEWHERE})'>")
@example(f"<a href='https:{ELSEWHERE}' style='background: url({ELSEWHERE})'>a</a>")
def test_names_in_plots_are_text(words):
    """A failure: a name brings a style or a link into the labels of a plot."""
    figure = go.Figure(
        go.Bar(
            x=[words, "b"],
            y=[1, 2],
            name=words,
            text=[words, words],
            customdata=[[words]] * 2,
            hovertemplate=f"{words}<br><b>%{{y}}</b><extra>{words}</extra>",
        ),
        layout={"annotations": [{"text": words}], "xaxis": {"title": {"text": words}}},
    )
    shown = Chart(words, words, "", figure)
    for drawn in (shown.drawn(), shown.titled()):
        for text in texts(json.loads(drawn.to_json())):
            for tag, attributes in Parts(text).tags:
                assert tag in ("b", "br", "i", "sub", "sup", "extra")
                assert not attributes


def test_plots_keep_their_own_tags():
    own = "<b>node</b><br><span style='font-size:10px'>tp 8</span><extra></extra>"
    own += '<span style="color:#0072B2">a</span><span style="color:rgba(1, 2, 3, 0.5)">b</span>'
    assert as_plot({"text": [own], "y": [1.5, None]}) == {"text": [own], "y": [1.5, None]}


PICTURES = (
    "![a](https:{0})",
    "![a]({0})",
    "![a][r]\n\n[r]: https:{0}",
    "![r]\n\n[r]: https:{0}",
    "<img src=https:{0}>",
    "<IMG/SRC='{0}'>",
    "[![a]({0})](https:{0})",
    "![a](<https:{0}> 'b')",
    "- ![a]({0})",
    "> ![a]({0})",
    "| a |\n|---|\n| ![a]({0}) |",
    "# ![a]({0})",
    "**![a]({0})**",
    "<style>p {{ background: url({0}) }}</style>",
    "<div style='background: url({0})'>a</div>",
    "a\n\n<svg><image href={0}></svg>",
    "<!-- --><iframe src={0}>",
    "<x\n\n><img src={0}>",
    "> ```\n> a\n>\n> ![b]({0})\n> ```",
    "```\na\n\n![b]({0})\n<img src={0}>\n```",
    '```mermaid\nflowchart\n  A@{{ img: "https:{0}" }}\n```',
    "<https:{0}>",
    "&lt;img src={0}&gt;",
    "\\![a]({0})",
    "`a` ![b]({0}) `c`",
    "<!DOCTYPE x>![a]({0})",
    "![a](data:text/html,<img src={0}>)",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)",
    "<![CDATA[<img src={0}>]]>",
    "![a](\n{0}\n)",
)


@pytest.mark.parametrize("written", PICTURES)
def test_a_note_loads_nothing(written):
    """On the page, in the report, and in Jupyter, whose Markdown takes HTML."""
    note = written.format(ELSEWHERE)
    assert not loads(note_html(note))
    assert not loads(EAGER.render(note_markdown(note)))
    (cell,) = pin_cells("note", note[:60], note, {})
    assert not loads(EAGER.render(cell.source))
    assert "```mermaid" not in cell.source


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(MARKS, st.sampled_from(PICTURES)), max_size=8).map("".join))
def test_no_note_loads_anything(written):
    note = written.replace("{0}", ELSEWHERE)
    assert not loads(note_html(note))
    assert not loads(EAGER.render(note_markdown(note)))


@pytest.mark.check
@settings(max_examples=20_000, deadline=None)
@given(st.lists(st.one_of(MARKS, st.sampled_from(PICTURES)), max_size=14).map("".join))
def test_no_note_of_many_loads_anything(written):
    note = written.replace("{0}", ELSEWHERE)
    assert not loads(note_html(note))
    assert not loads(EAGER.render(note_markdown(note)))


def test_pictures_that_are_data_stand_in_notes():
    shown = note_html("![a chart](data:image/png;base64,iVBORw0KGgo=)")
    assert Parts(shown).tags == [
        ("p", {}),
        ("img", {"src": "data:image/png;base64,iVBORw0KGgo=", "alt": "a chart"}),
    ]
    assert ("a", {"href": "https:" + ELSEWHERE}) in Parts(
        note_html(f"![a chart](https:{ELSEWHERE})")
    ).tags


FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def computes(cell: str) -> bool:
    """Whether a spreadsheet takes a cell's text for a formula; a plain number is none."""
    try:
        float(cell)
    except ValueError:
        return cell.lstrip().startswith(FORMULA) or cell.startswith(("\t", "\r", "\n"))
    return False


CELL = st.one_of(
    st.lists(
        st.sampled_from(
            [
                "=",
                "+",
                "-",
                "@",
                "\t",
                "\r",
                "'",
                " ",
                "1",
                ".5",
                "e9",
                "SUM(A1)",
                "a",
                ",",
                ";",
                '"',
                "\n",
                "\uff1d",
                "cmd|' /C calc'!A0",
            ]
        ),
        max_size=6,
    ).map("".join),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(),
    st.none(),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=4))
def test_cells_compute_nothing_and_numbers_stay_numbers(rows):
    """A failure: a name opens a calculator, or a figure comes out as text."""
    head, *found = csv.reader(io.StringIO(csv_text(["a", "=b"], rows), newline=""))
    assert head == ["a", "'=b"]
    assert len(found) == len(rows)
    for asked, row in zip(rows, found, strict=True):
        for value, cell in zip(asked, row, strict=True):
            if isinstance(value, int | float):
                assert type(value)(cell) == value
            else:
                assert not computes(cell)
                assert of_cell(cell) == (value or "").replace("\r", "\n")


def test_a_fabric_with_such_names_comes_back():
    """Edge lists are read again: the apostrophe is no part of a name."""
    names = ("=1+1", "'=2", "-3", "@node", "+x", "plain", "'tis")
    elements = (*(Element(name, "device") for name in names), Element("s", "switch"))
    links = tuple(Link(name, "s", 1e9, 1, 1e-6) for name in names)
    written = write_fabric(GraphFabric("g", elements, links), "csv").text
    cells = [cell for row in csv.reader(io.StringIO(written)) for cell in row]
    assert not any(computes(cell) for cell in cells)
    found = read_fabric(written.encode(), "edges.csv").document
    assert {entry["id"] for entry in found["element"]} == {*names, "s"}


@pytest.mark.parametrize("name", ["h100-spine-leaf-64"])
def test_a_usual_edge_list_has_no_apostrophes(name):
    written = write_fabric(load_fabric(name), "csv").text
    assert "'" not in str(written)


def test_only_one_place_writes_csv():
    """Who writes rows by hand forgets the apostrophe."""
    own = {
        "nest_core/documents/text.py",
        "nest_core/bill/cables.py",  # millions of rows in pieces, of cells that are quoted
    }
    writes = re.compile(r"\.writerows?\(|\bDictWriter\(|\.to_csv\(\s*(?:index|path)")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("nest_core", "nest_studio", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if writes.search(path.read_text(encoding="utf-8"))
    }
    assert found == own
    assert as_cell("=1") == "'=1"


MESSAGES = {"error", "warning", "info", "success", "toast", "caption", "markdown", "write"}
LABELLED = {
    "button",
    "checkbox",
    "expander",
    "metric",
    "popover",
    "radio",
    "selectbox",
    "slider",
    "text_area",
    "text_input",
    "toggle",
    "number_input",
    "segmented_control",
    "download_button",
    "file_uploader",
    "multiselect",
    "subheader",
    "spinner",
    "progress",
    "select_slider",
    "caption",
}
OURS = {
    "PINS[key]",
    "_quiet('Batch')",
    "_quiet('Devices')",
    "_quiet('Fabric')",
    "_quiet('Model')",
    "before",
    "choice.key.upper()",
    "'  \\n'.join((sentence for _, sentence in told.values()))",
    "_HELP.get(field, '')",
    "_LABELS[field]",
    "cabling.text",
    "capital(of.label)",
    "control.help",
    "control.label",
    "label",
    "label_of(cabling)",
    "help_of(of)",
    "help_of(overlap)",
    "help_of(parameter(key))",
    "label_of(of)",
    "label_of(overlap)",
    "label_of(parameter(MEANING))",
    "least",
    "len(plans)",
    "len(rows)",
    "len(sweep.points)",
    "len(there.lessons)",
    "minutes",
    "of.text",
    "parameter(MEANING).text",
    "part.title",
    "place",
    "points",
    "question.unit",
    "ratio.text",
    "text",
    "tokens",
    "unit",
    "unread",
    "what",
}
"""Expressions of pages that hold words and counts of the studio's own, and of no visitor."""


def unquoted(value: ast.expr) -> Iterator[str]:
    """Parts of what a page says that are neither constant, nor a number, nor quoted."""
    if isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id.isupper()):
        return
    if isinstance(value, ast.JoinedStr):
        for part in value.values:
            if not (isinstance(part, ast.FormattedValue) and part.format_spec):
                yield from unquoted(part)
    elif isinstance(value, ast.FormattedValue):
        yield from unquoted(value.value)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from unquoted(part)
    elif isinstance(value, ast.IfExp):
        yield from unquoted(value.body)
        yield from unquoted(value.orelse)
    elif isinstance(value, ast.BinOp):
        yield from unquoted(value.left)
        yield from unquoted(value.right)
    elif not ("as_markdown" in ast.unparse(value) or ast.unparse(value) in OURS):
        yield ast.unparse(value)


def test_pages_quote_what_they_did_not_write():
    """Messages and labels are Markdown; a failure names the words that are not quoted."""
    found = []
    for path in [*(ROOT / "pages").glob("*.py"), *(ROOT / "nest_studio").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            called = node.func.attr
            said = [keyword.value for keyword in node.keywords if keyword.arg == "help"]
            if called in MESSAGES | LABELLED:
                said += node.args[:1] if called != "progress" else node.args[1:2]
            where = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
            found += [f"{where} {part}" for value in said for part in unquoted(value)]
    assert not found
