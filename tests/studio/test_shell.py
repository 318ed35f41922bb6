"""What the server answers at a page's address, and when it opens a browser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.requests import Request
from streamlit import config, file_util

from nest_studio.jobs.tasks.requests import import_tasks
from nest_studio.server import shell

OWN = Path(file_util.get_static_dir(), "index.html").read_text("utf-8")


@pytest.fixture
def option():
    """``option(name, value)``: one of Streamlit's, until the test ends."""
    before = {}

    def change(name, value):
        before.setdefault(name, config.get_option(name))
        config.set_option(name, value)

    yield change
    for name, value in before.items():
        config.set_option(name, value)


@pytest.mark.parametrize(
    ("prefix", "path"), [("", "/design"), ("nest/studio", "/nest/studio/design")]
)
def test_a_page_is_answered_with_streamlits_shell_and_its_root(option, prefix, path):
    option("server.baseUrlPath", prefix)
    _, route = shell.page_routes(["plan", "design"], "plan")
    answer = route.endpoint(None)
    text = answer.body.decode()
    assert (route.path, answer.status_code) == (path, 200)
    assert answer.headers["cache-control"] == "no-cache"
    added = text.index("<script>window.__streamlit = ")
    assert added < text.index('<script type="module"'), "before the front end reads it"
    assert len(text.splitlines()) == len(OWN.splitlines())


@pytest.mark.parametrize(
    ("query", "expected"), [(b"", "./"), (b"scenario=a&tour=off", "./?scenario=a&tour=off")]
)
def test_the_page_at_the_root_is_led_there(query, expected):
    route, _ = shell.page_routes(["plan", "design"], "plan")
    scope = {"type": "http", "path": "/plan", "query_string": query, "headers": [], "server": None}
    answer = route.endpoint(Request(scope))
    assert (answer.status_code, answer.headers["location"]) == (307, expected)


def test_a_shell_without_a_head_is_refused():
    with pytest.raises(ValueError, match="no single <head>"):
        shell.with_root("<html></html>")


@pytest.mark.parametrize(
    ("headless", "prefix", "expected"),
    [
        (True, "", []),
        (False, "", ["http://localhost:8765"]),
        (False, "nest", ["http://localhost:8765/nest"]),
    ],
)
def test_the_browser_opens_unless_told_not_to(option, monkeypatch, headless, prefix, expected):
    option("server.headless", headless)
    option("server.address", "localhost")
    option("server.port", 8765)
    option("server.baseUrlPath", prefix)
    opened, begun = [], []
    monkeypatch.setattr(shell, "import_everything", lambda: None)
    monkeypatch.setattr(shell, "job_queue", lambda: SimpleNamespace(start=begun.append))
    monkeypatch.setattr(shell.typer, "launch", opened.append)

    async def serve():
        async with shell.opened(None):
            await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(serve())
    assert opened == expected
    assert begun == [import_tasks]
