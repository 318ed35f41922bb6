"""The release that a target is written for is said in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from export_cases import DATA

from nest_core.interop.exporters import RELEASES, TARGETS
from nest_core.interop.exporters.releases import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"\d+(?:\.\d+){2}|commit [0-9a-f]{8}")


def test_every_target_has_one() -> None:
    """With a number or a commit."""
    assert RELEASES.keys() == TARGETS.keys()
    assert all(NUMBER.search(release) for release in RELEASES.values())


@pytest.mark.parametrize("target", sorted(RELEASES))
def test_lists_of_options_are_of_that_release(target: str) -> None:
    """What ``tests/data/export`` holds was gathered from it."""
    lines = (DATA / f"{target}.txt").read_text().splitlines()
    head = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
    ours = set(NUMBER.findall(RELEASES[target])) - {"commit 6dc63e14"}  # Chakra's
    assert ours
    assert all(number.removeprefix("commit ") in head for number in ours)


def test_sources_do_not_repeat_it() -> None:
    """Modules of targets and the programs that run tools take it from `releases`."""
    numbers = {number for release in RELEASES.values() for number in NUMBER.findall(release)}
    sources = [
        *(ROOT / "nest_core" / "interop" / "exporters").glob("*.py"),
        *(ROOT / "benchmarks" / "outside").glob("*.py"),
    ]
    for path in sources:
        if path.name != "releases.py":
            text = path.read_text()
            assert not [number for number in numbers if number in text], path


def test_documents_name_the_same() -> None:
    """The table of targets, and whatever else README and the change log say."""
    table = (ROOT / "docs" / "export.md").read_text()
    for target, release in RELEASES.items():
        row = re.search(rf"^\| `{target}` \| ([^|]+) \|", table, re.M)
        assert row is not None
        assert row[1].startswith(release)
    names = "|".join((*PACKAGES, "MaxText", "DeepSpeed", "Megatron-Bridge"))
    for name in ("README.md", "CHANGELOG.md", "docs/export.md", "docs/tour.md"):
        text = (ROOT / name).read_text()
        # "0.1.0 to 0.3.0" are releases whose logs are read.
        for package, number in re.findall(rf"\b({names}) (\d+\.\d+\.\d+)(?! to)", text):
            assert number == PACKAGES[package.lower()], (name, package)
