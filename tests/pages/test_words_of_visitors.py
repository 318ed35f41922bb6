"""Nothing that a visitor writes makes someone else's browser fetch an address.

Every page is drawn with names, labels, notes and errors that hold pictures and tags, and all that
is sent to the browser is read: Markdown by a parser with everything switched on, HTML and the
labels of plots by Python's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from html_parts import Parts, texts
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

from nest_core.api.answer import answer
from nest_core.report.notebook import new_notebook, output_of, pin_cells
from nest_core.report.notebook.report import html_report
from nest_core.scenario import Scenario
from nest_studio.session.store import Database, Notebooks, StoredLinks, database_url

APP = Path(__file__).resolve().parents[2] / "nest_studio" / "server" / "script.py"
SMALL = "llama2-7b-64-h100"
FEW = {"search.pp": 1, "search.zero": 1, "search.recompute": "none", "search.schedule": "1f1b"}
ELSEWHERE = "elsewhere.example"
PICTURE = f"![a](https://{ELSEWHERE}/a)"
STYLED = f"<a style='background:url(//{ELSEWHERE}/b)'>b</a>"
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

# Of widgets and charts: what the front end shows as it is, or never shows.
PLAIN = {
    "id",
    "key",
    "value",
    "raw_value",
    "default",
    "placeholder",
    "alt",
    "query_param_key",
    "data",
    "form_id",
    "url",
    "element_id",
    "file_name",
    "config",
    "mixed_json",
    "json",
    "columns",
    "code_text",
}
OWN_STYLE = re.compile(r"font-size:[0-9]+px|color:(#[0-9A-Fa-f]{3,8}|rgba?[(][0-9., ]+[)])")
PLAIN_OPTIONS = {"Selectbox", "MultiSelect"}

LEVELS = {
    "schema": 1, "name": f"{PICTURE} {STYLED}", "kind": "hierarchical",
    "source": PICTURE,
    "level": [
        {"name": f"{PICTURE} node", "group_size": 8, "uplink_per": "device",
         "bandwidth_GBps": 450.0, "latency_us": 0.5},
        {"name": f"{STYLED} {PICTURE}", "group_size": 8, "uplink_per": "device",
         "bandwidth_GBps": 50.0, "latency_us": 2.0, "oversubscription": 2.0},
    ],
}  # fmt: skip
DRAWING = {
    "schema": 1,
    "name": PICTURE,
    "kind": "graph",
    "element": [
        *(
            {"id": f"{PICTURE} {n}", "role": "device", "group": f"{PICTURE}/{STYLED}"}
            for n in range(4)
        ),
        {"id": STYLED, "role": "switch"},
    ],
    "link": [
        {"a": f"{PICTURE} {n}", "b": STYLED, "bandwidth_GBps": 50.0, "latency_us": 1.0}
        for n in range(4)
    ],
}
MODEL = {
    "name": f"{PICTURE} {STYLED}", "family": "llama", "blocks": 4, "hidden": 512, "heads": 8,
    "kv_heads": 8, "head_dim": 64, "ffn": 1024, "vocabulary": 32000, "source": PICTURE,
}  # fmt: skip


def strings(message, kind="") -> Iterator[tuple[str, str, str]]:
    """Message type, field and text of everything in a message."""
    for field, value in message.ListFields():
        many = value if field.is_repeated else [value]
        for one in many:
            if hasattr(one, "ListFields"):
                yield from strings(one, type(one).__name__)
            elif isinstance(one, str):
                yield kind or type(message).__name__, field.name, one


def protos(node) -> Iterator[object]:
    proto = getattr(node, "proto", None)
    if hasattr(proto, "ListFields"):
        yield proto
    for child in getattr(node, "children", {}).values():
        yield from protos(child)


def foreign(label: str) -> list[dict[str, str]]:
    """Attributes of a plot label's tags, but for the colours and sizes that figures set."""
    return [
        held
        for _, held in Parts(label).tags
        if held and not (set(held) == {"style"} and OWN_STYLE.fullmatch(str(held["style"])))
    ]


def fetched(page: AppTest) -> list[str]:
    """What a browser would fetch of all that the page sent."""
    found, seen = [], 0
    for proto in protos(page._tree):
        for kind, field, text in strings(proto):
            if ELSEWHERE not in text or field in PLAIN:
                continue
            if field == "options" and kind in PLAIN_OPTIONS:
                continue
            seen += 1
            if kind == "PlotlyChart" and field == "spec":
                labels = [label for label in texts(json.loads(text)) if ELSEWHERE in label]
                found += [label for label in labels if foreign(label)]
            else:
                shown = text if kind == "Html" else MARKDOWN.render(text)
                for tag, held in Parts(shown).tags:
                    words = {name for name in held if ELSEWHERE in str(held[name])}
                    if tag in ("img", "iframe") or words - {"href", "title", "alt"}:
                        found.append(f"{kind}.{field}: {text}")
    assert seen, "nothing of the visitor's is on the page"
    return found


def opened(name: str, **address: str) -> AppTest:
    page = AppTest.from_file(str(APP), default_timeout=120)
    for key, value in address.items():
        page.query_params[key] = value
    return page.run() if name == "plan" else page.switch_page(f"../../pages/{name}.py").run()


def own(document) -> dict[str, str]:
    """The address of a fabric of one's own."""
    links = StoredLinks(Database(database_url()))
    return {"own": links.put({"document": document, "notes": [PICTURE]}), "fabric": "My fabric"}


QUICK = {"scenario": SMALL, "search.tp": "1", "search.zero": "1", "tour": "off"}


@pytest.mark.parametrize(
    "name", ["plan", "design", pytest.param("explore", marks=pytest.mark.check)]
)
def test_a_fabric_of_a_visitors(name):
    """Its own name, its levels', and what is computed from them."""
    assert not fetched(opened(name, **QUICK, **own(LEVELS)))


def test_a_drawing_of_a_visitors():
    assert not fetched(opened("design", **QUICK, **own(DRAWING)))


@pytest.mark.parametrize("name", ["plan", "workload"])
def test_a_model_of_a_visitors(name):
    key = "workload.model" if name == "plan" else "layer.model"
    address = QUICK | {"own_model": json.dumps(MODEL), key: "My model"}
    assert not fetched(opened(name, **address))


def test_what_a_fabric_that_is_none_says():
    broken = {**LEVELS, "level": [LEVELS["level"][0], {**LEVELS["level"][1], PICTURE: 1}]}
    for name in ("plan", "design"):
        assert not fetched(opened(name, **QUICK, **own(broken)))


def test_an_address_with_settings_that_there_are_not():
    page = opened("plan", **QUICK, **{f"fabric.{PICTURE}": PICTURE, "accelerator": PICTURE})
    assert not fetched(page)


def test_a_comparison_of_a_visitors():
    entries = [
        [PICTURE, SMALL, {**FEW, "fabric": LEVELS}],
        [STYLED, SMALL, {**FEW, "workload.model": MODEL}],
        [f"{PICTURE} 3", SMALL, {PICTURE: PICTURE}],
        ["4", SMALL, {"fabric": {"name": PICTURE, PICTURE: 1}}],
        ["5", SMALL, {"search.tp": PICTURE, "name": STYLED}],
    ]
    page = opened("compare", **{"compare": json.dumps(entries), "compare.failures": "false"})
    assert not fetched(page)
    assert page.error


@pytest.fixture(scope="module")
def hostile():
    """A notebook whose every word is a picture."""
    inputs = {
        "document": {
            "schema": 1,
            "name": f"{PICTURE} {STYLED}",
            "description": PICTURE,
            "fabric": LEVELS,
            "accelerator": "h100-80gb",
            "workload": {
                "model": MODEL,
                "sequence_length_tokens": 1024,
                "global_batch_sequences": 64,
            },
        },
        "overrides": {**FEW, "baselines.names": []},
    }
    note = f"{PICTURE}\n\n{STYLED}\n\n[![c][r]](https://{ELSEWHERE})\n\n[r]: //{ELSEWHERE}/r\n"
    output = output_of(answer(Scenario(inputs["document"], inputs["overrides"]).values))
    bad = inputs | {"overrides": {PICTURE: PICTURE, "search.tp": PICTURE}}
    return new_notebook(
        [
            *pin_cells("note", PICTURE, note, {}),
            *pin_cells("plan", f"{PICTURE} {STYLED}", note, inputs, output),
            *pin_cells("plan", PICTURE, note, bad),
        ]
    )


def test_a_notebook_of_a_visitors(hostile, tmp_path, monkeypatch):
    monkeypatch.setenv("NEST_STUDIO_DATABASE", f"sqlite:///{tmp_path / 'n.sqlite'}")
    name = f"N {PICTURE} {STYLED}"[:100].strip()
    Notebooks(Database(database_url())).save(name, hostile)
    assert not fetched(opened("notebook", notebook=name))
    assert not fetched(opened("notebook", notebook=f"{PICTURE} that there is not"))


def test_a_report_and_a_jupyter_notebook_of_a_visitors(hostile):
    """In the report nothing is fetched even without its content security policy."""
    text = html_report(f"N {PICTURE} {STYLED}", hostile)
    assert "Content-Security-Policy" in text
    for tag, held in Parts(text).tags:
        for name, value in held.items():
            inert = name in ("href", "aria-label") or name.startswith("data-")
            assert inert or ELSEWHERE not in str(value), (tag, held)
    eager = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for cell in hostile.cells:
        if cell["cell_type"] == "markdown":
            rendered = Parts(eager.render(cell["source"])).tags
            assert all(
                name == "href" or ELSEWHERE not in str(held[name])
                for _, held in rendered
                for name in held
            ), cell["source"]
            assert not {"img", "style", "svg"} & {tag for tag, _ in rendered}
        for output in cell.get("outputs", ()):
            for label in texts(output.data.get("application/vnd.plotly.v1+json", {})):
                assert not foreign(label)
