"""Eight pages that are opened at once on a server that nobody has visited."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from live_server import OURS, ROOT, elements, served, shown

PAGES = ("", "design", "workload", "compare", "explore", "paper", "learn", "notebook")


@pytest.mark.parametrize("_", [0, *(pytest.param(n, marks=pytest.mark.check) for n in (1, 2, 3))])
@pytest.mark.check
def test_pages_opened_at_once_on_a_cold_server_are_whole(tmp_path, _):
    async def at_once(port: int):
        query = "tour=off&scenario=llama2-7b-64-h100"
        return await asyncio.gather(*(shown(port, page, query) for page in PAGES))

    with served(OURS, tmp_path) as (port, log):
        for page, messages in zip(PAGES, asyncio.run(at_once(port)), strict=True):
            assert not elements(messages, "exception"), page
            assert not [one.body for one in elements(messages, "alert") if "defect" in one.body]
            assert len(messages) > 10, page
    assert "Traceback" not in log.read_text()


@pytest.mark.check
def test_every_module_that_pages_need_is_there_before_they_are_served():
    """But what only developers have: torch, and the commands."""
    script = (
        "import asyncio, sys\n"
        "import streamlit.components.v2 as parts\n"
        "parts.component = lambda *_, **__: None  # else it asks for a running server\n"
        "from nest_studio.server.shell import import_everything\n"
        "import_everything()\n"
        "print(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(ended.stdout.split())
    late = ("tracing", "profiling", "commands", "cli", "__main__")
    ours = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in ("nest_core", "nest_studio")
        for path in (ROOT / package).rglob("*.py")
    }
    missing = {name for name in ours - loaded if not set(name.split(".")) & set(late)}
    assert not missing
    assert "torch" not in loaded
    assert {"pandas", "plotly.graph_objects", "sqlalchemy.dialects.sqlite"} <= loaded
