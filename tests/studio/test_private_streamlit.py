"""What the studio uses of Streamlit's own parts: each of these fails when Streamlit changes it."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from pathlib import Path

import pytest
import streamlit as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import Serialized, Value, WStates

from nest_studio.server.frames import PASSED
from nest_studio.server.guard import INLINE_SCRIPT

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = re.compile(r"streamlit(\.(components\.v2(\.types)?|errors|starlette|testing\.v1|typing))?")
PRIVATE = {
    ("nest_studio/server/frames.py", "streamlit.proto.BackMsg_pb2"),
    ("nest_studio/server/frames.py", "streamlit.proto.ForwardMsg_pb2"),
    ("nest_studio/server/frames.py", "streamlit.runtime.state.session_state"),
}


def imported(file: Path) -> set[str]:
    """Modules that a file imports, those within functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "streamlit":
                names |= {f"streamlit.{a.name}" for a in node.names if hasattr(st, a.name)}
    return {name for name in names if name.split(".")[0] == "streamlit"}


def test_three_private_modules_are_used():
    files = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "nest_studio").rglob("*.py")]
    private = {
        (file.relative_to(ROOT).as_posix(), name)
        for file in files
        for name in imported(file)
        if not PUBLIC.fullmatch(name)
    }
    assert private == PRIVATE


def test_messages_of_browsers_are_of_the_kinds_that_were_judged():
    """Of a new kind somebody has to say whether visitors may send it."""
    kinds = {kind.name for kind in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields}
    refused = {"clear_cache", "load_git_info", "set_run_on_save"}
    known = PASSED | refused
    assert kinds >= PASSED
    assert not {kind for kind in kinds - known if not kind.startswith("debug_")}


def test_values_of_widgets_are_read_where_the_studio_reads_them():
    states = WStates()
    metadata = WidgetMetadata(
        id="a", deserializer=lambda value: value, serializer=str, value_type="string_value"
    )
    states.set_widget_metadata(metadata)
    assert states.widget_metadata == {"a": metadata}
    states.set_from_value("a", "sound")
    assert states.states == {"a": Value("sound")}
    assert states["a"] == "sound"
    assert Serialized.__match_args__ == ("value",)
    with pytest.raises(KeyError):
        states["b"]


def test_the_one_inline_script_of_streamlits_page_may_run():
    page = Path(st.__file__).with_name("static").joinpath("index.html").read_text("utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" == INLINE_SCRIPT
