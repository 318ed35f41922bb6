"""Jobs that share a fabric, on the Explore page."""

from __future__ import annotations

import html
import time

import pytest
from streamlit.testing.v1 import AppTest

MIX = """
schema = 1
name = "Side by side"
fabric = "h100-spine-leaf-64"

[[job]]
name = "yours"
scenario = "llama2-7b-64-h100"
devices = 32
plan = "dp=32,tp=1,pp=1,micro_batch=2,zero=2"

[[job]]
name = "theirs"
scenario = "llama2-7b-64-h100"
devices = 16
plan = "dp=16,tp=1,pp=1,micro_batch=2,zero=3"
"""

POPULATION = """
schema = 1
name = "A cluster"
fabric = "h100-spine-leaf-64"

[population]
scenario = "llama2-7b-64-h100"
overrides = { "search.tp" = 1, "search.pp" = 1, "search.zero" = [2] }
ratios = [2.0]
source = "assumed for this test"

[[population.jobs]]
devices = 48
share = 1.0
"""


@pytest.fixture
def shared_page(root):
    """``shared_page(text)``: the page with a mix's file."""

    def opened(text):
        page = AppTest.from_file(
            str(root / "nest_studio" / "server" / "script.py"), default_timeout=120
        )
        page.query_params["explore.asks"] = "Shared fabric"
        page.switch_page("../../pages/explore.py")
        page.session_state["shared opened"] = "two-jobs-64-h100"
        page.session_state["shared.text"] = text
        page.run()
        until = time.monotonic() + 100
        while page.get("progress") and time.monotonic() < until:
            time.sleep(0.2)
            page.run()
        return page

    return opened


def text_of(page):
    bodies = [element.proto.body for element in (*page.get("html"), *page.error)]
    return html.unescape(" ".join(bodies))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MIX, ("Side by side", "Placed packed", "Placed spread", "Placed joint", "theirs")),
        (POPULATION, ("A cluster", "2:1 costs this population", "assumed for this test")),
        (MIX.replace("devices = 16", "devices = 64"), ("must be at most the 64 devices",)),
        ("schema = 1\nname = 3", ("Name must be text",)),
    ],
)
def test_what_a_mix_comes_to_stands_on_the_page(shared_page, text, words):
    page = shared_page(text)
    assert not page.exception
    shown = text_of(page)
    for word in words:
        assert word in shown
