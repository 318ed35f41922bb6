"""Measured rows: the whole data beside the repository, and the cited subset."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.validation.collectives.tables import read_table
from nest_core.hardware.collectives.library import Library, load_library
from nest_core.hardware.collectives.measurements import Measurement

SUBSET = Path(__file__).resolve().parent / "data" / "calibration"
FILES = ("nccl_measured.csv", "collectives_measured.csv")


def read_rows(folder: Path) -> list[Measurement]:
    """Both tables of a folder."""
    return [row for name in FILES for row in read_table((folder / name).read_text(), name)[0]]


@pytest.fixture(scope="session")
def subset() -> list[Measurement]:
    """The rows that lie in the repository."""
    return read_rows(SUBSET)


@pytest.fixture(scope="session")
def whole(shared_data: Path) -> list[Measurement]:
    """All measured rows."""
    return read_rows(shared_data)


@pytest.fixture(scope="session")
def library() -> Library:
    """The shipped curves."""
    return load_library()
