"""Fixtures of the published model: the cited instances and the reader of reference runs."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]

Reference = list[dict[str, str]]


@pytest.fixture(scope="session")
def cited_data() -> Path:
    """The subset that travels with the repository."""
    return _ROOT / "tests" / "data" / "published"


@pytest.fixture(scope="session")
def read_reference() -> Callable[[Path], Reference]:
    """Reader of a table of the artifact's runs; empty cells are infeasible placements."""

    def read(path: Path) -> Reference:
        with path.open(newline="") as stream:
            return list(csv.DictReader(stream))

    return read
