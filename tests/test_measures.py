"""What the code costs its readers, as numbers that only go down.

Whoever adds statements deletes others first. Where a number below has fallen, write the new one.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("nest_core", "nest_studio", "pages")

MAX_STATEMENTS = 49_656
"""AST statements, docstrings not counted."""

MAX_VAGUE_NAMES_PER_1000_LINES = 0.2
"""Variables called `VAGUE`, per 1,000 lines; networkx has 0.1."""

MAX_REPEATED_CLASS_NAMES = 0
"""Names that more than one class has."""

VAGUE = {
    "found",
    "said",
    "told",
    "asked",
    "held",
    "one",
    "own",
    "kept",
    "known",
    "there",
    "shown",
    "named",
    "made",
    "left",
    "each",
    "whole",
    "beside",
    "apart",
}


@pytest.fixture(scope="module")
def sources():
    """Text and syntax tree of every module."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [(text, ast.parse(text)) for text in texts]


def is_docstring(node):
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def statements(tree):
    return sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in ast.walk(tree))


def test_statements_only_go_down(sources):
    assert sum(statements(tree) for _, tree in sources) <= MAX_STATEMENTS


def test_docstrings_are_no_statements():
    assert statements(ast.parse('"""Text."""\nx = 1\n"""Of x."""\nif x:\n    pass\n')) == 3


def test_names_say_what_a_value_is(sources):
    vague = sum(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE
        for _, tree in sources
        for node in ast.walk(tree)
    )
    lines = sum(text.count("\n") for text, _ in sources)
    assert 1000 * vague / lines <= MAX_VAGUE_NAMES_PER_1000_LINES


def test_a_class_has_its_name_alone(sources):
    names = Counter(
        node.name
        for _, tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    repeated = {name: count for name, count in names.items() if count > 1}
    assert len(repeated) <= MAX_REPEATED_CLASS_NAMES, repeated
