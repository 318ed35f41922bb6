"""``make compare``: what moved between two versions, and nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def compare(root):
    if not (root / ".git").exists():
        pytest.skip("a version to compare with needs a checkout with its history")
    spec = importlib.util.spec_from_file_location("compare", root / "benchmarks" / "compare.py")
    module = sys.modules["compare"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.check
def test_a_changed_price_is_found_with_all_that_follows(compare, root, tmp_path, capsys):
    """A dearer switch moves the bill by its difference, and no level; the checkout stays."""
    status = ["git", "-C", str(root), "status", "--porcelain"]
    known = subprocess.run(status, capture_output=True, text=True, check=True).stdout
    trees = compare.copies("HEAD", tmp_path)
    prices = "presets/prices/2026.toml"
    text = (root / prices).read_text(encoding="utf-8")
    for tree in trees:
        (tree / prices).write_text(text, encoding="utf-8")
    dearer = text.replace("low = 36000, typical = 38000,", "low = 36000, typical = 48000,")
    assert dearer != text
    (trees[1] / prices).write_text(dearer, encoding="utf-8")
    asked = [
        ("bills", "bom h100-spine-leaf-64"),
        ("sizing", "levels h100-spine-leaf-64"),
        ("sizing", "nosuch"),
    ]
    sides = [compare.answers(tree, [command for _, command in asked]) for tree in trees]
    found = compare.report("HEAD", asked, sides)
    total = next(item for item in found if item.figure == "price_usd")
    switches = sum(sides[0][0]["switches"].values())
    assert total.after - total.before == pytest.approx(10_000 * switches)
    assert total.relative == pytest.approx(total.after / total.before - 1)
    assert {item.kind for item in found} == {"bills"}
    printed = capsys.readouterr().out
    assert f"price_usd: {total.before:g} -> {total.after:g}  {total.relative:+.3%}" in printed
    assert "nosuch" not in printed  # lacking in both is no difference
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == known


def test_what_one_version_lacks_is_listed(compare, capsys):
    refused = {"exit code": 2, "error": "No such command 'bill' (see nest-studio --help)."}
    asked = [("bills", "bill x"), ("plans", "plan x")]
    found = compare.report(
        "HEAD", asked, ([refused, {"mfu": 0.5, "plan": None}], [{}, {"mfu": 0.4, "zero": 1}])
    )
    assert "before: bill x" in capsys.readouterr().out
    assert [(item.figure, item.before, item.after) for item in found] == [
        ("mfu", 0.5, 0.4),
        ("zero", None, 1),
    ]


def test_entries_are_told_apart_by_name_and_times_of_the_search_are_left_out(compare):
    before = {"rows": [{"name": "a", "x": 1}, {"name": "b", "x": 2}], "solve_seconds": 1.0}
    after = {"rows": [{"name": "b", "x": 2}, {"name": "a", "x": 3}], "solve_seconds": 2.0}
    (item,) = compare.moved("plans", "plan", before, after)
    assert (item.figure, item.relative) == ("rows[a].x", 2.0)


def test_times_of_searches_are_left_out_of_tables_and_paragraphs(compare):
    words = "The searches took {} at most; ours takes {} at most, in at most {} each; 2 of {}."
    before = {
        "rows": [{"mist_search_seconds": 1.0}],
        "paragraph": words.format("257 ms", "1.2 s", "90 µs", 3),
    }
    after = {
        "rows": [{"mist_search_seconds": 2.0}],
        "paragraph": words.format("1.1 s", "39 ms", "1 ms", 3),
    }
    assert list(compare.moved("paper rows", "paper", before, after)) == []
    after["paragraph"] = words.format("257 ms", "1.2 s", "90 µs", 4)
    assert len(list(compare.moved("paper rows", "paper", before, after))) == 1
