"""What the server answers where the page of the root is asked for, and when it opens a browser."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
import streamlit as st
from starlette.requests import Request
from starlette.routing import Match
from streamlit import config

from nest_core.scenario import Scenario, scenario_document
from nest_studio.form.scenario import DEFAULT_SCENARIO
from nest_studio.jobs.tasks.requests import warm_up
from nest_studio.server import shell


@pytest.fixture
def option():
    """``option(name, value)``: one of Streamlit's, until the test ends."""
    before = {}

    def change(name, value):
        before.setdefault(name, st.get_option(name))
        config.set_option(name, value)

    yield change
    for name, value in before.items():
        config.set_option(name, value)


@pytest.mark.parametrize("prefix", ["", "/nest", "/nest/studio"])
@pytest.mark.parametrize("query", ["", "scenario=a&tour=off"])
def test_the_page_at_the_root_is_led_there(prefix, query):
    scope = {"type": "http", "path": f"{prefix}/plan", "headers": [], "server": None}
    scope |= {"method": "GET", "query_string": query.encode()}
    (route,) = (route for route in shell.ROUTES if route.matches(scope)[0] is Match.FULL)
    answer = route.endpoint(Request(scope))
    expected = f"./?{query}" if query else "./"
    assert (answer.status_code, answer.headers["location"]) == (307, expected)


@pytest.mark.parametrize(
    ("headless", "address", "prefix", "expected"),
    [
        (True, "localhost", "", []),
        (False, "localhost", "", ["http://localhost:8765"]),
        (False, "localhost", "nest", ["http://localhost:8765/nest"]),
        (False, "::1", "", ["http://[::1]:8765"]),
        (False, "0.0.0.0", "", ["http://localhost:8765"]),
    ],
)
def test_the_browser_opens_unless_told_not_to(
    option, monkeypatch, headless, address, prefix, expected
):
    option("server.headless", headless)
    option("server.address", address)
    option("server.port", 8765)
    option("server.baseUrlPath", prefix)
    opened, begun = [], []
    monkeypatch.setattr(shell, "import_everything", lambda: None)
    monkeypatch.setattr(shell, "believe_only_what_fits", lambda: None)
    monkeypatch.setattr(shell, "job_queue", lambda: SimpleNamespace(start=begun.append))
    monkeypatch.setattr(shell.typer, "launch", opened.append)

    async def serve():
        async with shell.serving(None):
            await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(serve())
    assert opened == expected
    (first,) = begun
    assert first.func is warm_up
    assert first.args == (Scenario(scenario_document(DEFAULT_SCENARIO)[0]),)
