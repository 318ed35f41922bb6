"""What visitors see of a defect: one sentence, and the log the rest."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from live_server import ROOT, elements, served, shown

SECRET = "the secret of line 7"
FRAGMENT = """
import streamlit as st

@st.fragment
def part():
    return [][len("SECRET")]

part()
"""
ASKING = """
import streamlit as st

st.set_option("client.showErrorDetails", "full")
1 / 0  # SECRET
"""
FAILING = {
    "learn": f"raise KeyError('{SECRET}')",
    "paper": FRAGMENT.replace("SECRET", SECRET),
    "compare": f"import nest_core.no_such_module_of_ours  # {SECRET}",
    "notebook": "def this is no Python",
    "workload": ASKING.replace("SECRET", SECRET),
    "explore": "from nest_core.documents.errors import InputError\n"
    "raise InputError('radix', 'must be even', 63, 'use 64')",
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A studio whose pages fail, started with settings that ask for details."""
    folder = tmp_path_factory.mktemp("failing")
    for name in ("pages", ".streamlit", "nest_studio"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("frontend"))
    shutil.copy(ROOT / "app.py", folder)
    for name, text in FAILING.items():
        (folder / "pages" / f"{name}.py").write_text(text)
    command = [
        "streamlit",
        "run",
        "app.py",
        "--server.headless=true",
        "--server.port={port}",
        "--client.showErrorDetails=full",
    ]
    with served(command, folder, folder, PYTHONPATH=str(ROOT)) as found:
        yield found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("page", FAILING)
def test_visitors_see_no_traceback(failing, page):
    port, log = failing
    messages = asyncio.run(shown(port, page))
    told = [one for one in elements(messages, "alert") if one.body]
    sent = b"".join(one.SerializeToString() for one in messages)
    for part in (SECRET, "Traceback", "KeyError", "IndexError", "ZeroDivision", "ModuleNotFound"):
        assert part.encode() not in sent
    assert not any(one.stack_trace for one in elements(messages, "exception"))
    if page == "notebook":  # no script has begun that could speak
        return
    assert len(told) == 1
    if page == "explore":
        assert told[0].body == "radix must be even, but is 63: use 64."
    else:
        assert told[0].body.startswith("This part of the page failed, which is a defect")
        assert "Traceback" in log.read_text()
