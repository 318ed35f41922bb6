"""The field's words: the glossary names what there is, the code no word that was replaced."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

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
    "seating": "rank mapping",
    "ledger": "lower bounds",
    "standing": "validity",
    "knob": "sweep parameter",
    "knobs": "sweep parameters",
    "desk": "job queue",
    "lost": "crash or failed",
    "errand": "run",
    "chunks": "virtual stages",
}
"""Words that were ours alone, and what is said instead."""

KEPT = {
    # of bytes on a wire, of cables, of two halves that are halves, and of what is lost on the way
    "sent_bytes",
    "transfer_s",
    "least_transfer_s",
    "in_network_s",
    "Wired",
    "halves",
    "lost",
    "lost_between",
    "lost_in_drawing",
    "lost_on_canvas",
    "Bundle",
    "bundle",
    "seats_picture",
    "seating",
    "training_half",
    "chunks",
    "MOST_CHUNKS",
    "LANE_GBPS",
    "lost_in_graph",
    "wire",
    "by_halves",
}
"""Public names in which such a word has its plain meaning."""


@cache
def _public() -> dict[str, str]:
    """Public classes, functions, methods and fields of ours, and the file of each."""
    found = {}
    for package in ("nest_core", "nest_studio"):
        for path in (ROOT / package).rglob("*.py"):
            found[path.stem] = str(path)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_no_public_name_has_a_word_that_was_replaced():
    def words(name: str) -> list[str]:
        return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())

    wrong = {
        name: path
        for name, path in _public().items()
        if name not in KEPT and set(words(name)) & set(REPLACED)
    }
    assert not wrong
