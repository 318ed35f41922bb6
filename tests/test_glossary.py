"""The field's words: the glossary names what there is, the code no word that was replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

REPLACED = {
    "wires": "link map",
    "wire": "link",
    "bundle": "link group",
    "lane": "link",
    "interior": "scale-up fabric",
    "exits": "egress",
    "halves": "reduce-scatter or all-gather",
    "seats": "rank mapping",
    "ledger": "lower bounds",
    "standing": "validity",
    "knob": "sweep parameter",
    "knobs": "sweep parameters",
    "desk": "job queue",
    "lost": "crash or failed",
    "take_away": "failed",
    "errand": "run",
    "chunks": "virtual stages",
}
"""Words that were ours alone, and what is said instead."""

KEPT = {
    "Bundle": "the files of an export, which go together",
    "bundle": "the same",
    "lost": "what a file loses in another format, as `convert --json` says it",
    "lost_between": "the same",
    "lost_on_canvas": "the same",
    "lost_in_graph": "the same",
    "chunks": "of a message, and the key in JSON",
    "MOST_CHUNKS": "of a message",
    "LANE_GBPS": "a lane of InfiniBand is part of a link",
}
"""Names in which such a word has its plain meaning, and which that is."""

PRIVATE = {
    *("wire", "wires", "bundle", "halves", "seat", "seats"),
    *("ledger", "knob", "desk", "take_away", "interior"),
}
"""Words of `REPLACED` that no name of ours has, private names and arguments included."""


@cache
def _trees() -> dict[Path, tuple[ast.AST, ...]]:
    """The nodes of every module of ours."""
    return {
        path: tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for folder in ("nest_core", "nest_studio", "pages")
        for path in (ROOT / folder).rglob("*.py")
    }


@cache
def _public() -> dict[str, str]:
    """Public classes, functions, methods and fields of ours, and the file of each."""
    found = {}
    for path, nodes in _trees().items():
        found[path.stem] = str(path)
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = str(path)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = str(path)
            elif isinstance(node, ast.Assign):
                found |= {t.id: str(path) for t in node.targets if isinstance(t, ast.Name)}
    return {name: path for name, path in found.items() if not name.startswith("_")}


def test_every_name_in_the_glossary_is_there():
    rows = [
        line.split("|")
        for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| word ")
    ]
    assert len(rows) > 40
    named = {name for row in rows for name in re.findall(r"`(?:\w+\.)?(\w+)`", row[3])}
    assert all(re.search(r"`\w", row[3]) for row in rows)
    assert not named - {*_public(), *(path.name for path in (ROOT / "nest_core").iterdir())}


def _words(name: str) -> set[str]:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return {*re.findall(r"[a-z]+", plain), *re.findall(r"take_away", plain)}


def _identifiers(nodes: Iterable[ast.AST]) -> set[str]:
    """Whatever a module names: what it defines, takes, reads, imports and passes on."""
    return {
        name
        for node in nodes
        for part in ("name", "asname", "id", "attr", "arg", "module")
        if isinstance(name := getattr(node, part, None), str)
    }


def test_no_public_name_has_a_word_that_was_replaced():
    wrong = {
        name: path
        for name, path in _public().items()
        if name not in KEPT and _words(name) & set(REPLACED)
    }
    assert not wrong


def test_no_name_at_all_has_a_private_word():
    """Locals, arguments and private names too; what is kept is kept for a reason, and used."""
    used = {name: path for path, nodes in _trees().items() for name in _identifiers(nodes)}
    wrong = {name: path for name, path in used.items() if _words(name) & PRIVATE}
    assert not {name: path for name, path in wrong.items() if name not in KEPT}
    assert not KEPT.keys() - used.keys()


@pytest.mark.parametrize("name", ["wire_s", "_HalvesOf", "uplinkBundle", "take_away", "my_seats"])
def test_a_private_word_is_found_in_any_spelling(name):
    nodes = ast.walk(ast.parse(f"def of(x):\n    return [{name} for {name} in x]"))
    assert {one for one in _identifiers(nodes) if _words(one) & PRIVATE} == {name}
