"""Rows of measured runs, read one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from run_tables import PLAIN, as_csv

from nest_core.measured.training import Row, read_runs


@pytest.fixture(scope="session")
def one() -> Callable[..., Row]:
    """``one(cell=text, ...)``: the plain row with other cells, as read."""

    def read(**cells: str) -> Row:
        rows, unread = read_runs(as_csv({**PLAIN, **cells}), "t.csv")
        assert not unread, unread
        return rows[0]

    return read


@pytest.fixture(scope="session")
def why() -> Callable[..., str]:
    """``why(cell=text, ...)``: why such a row is not read."""

    def read(**cells: str) -> str:
        rows, unread = read_runs(as_csv({**PLAIN, **cells}), "t.csv")
        assert not rows
        assert unread[0].id == cells.get("id", "A")
        return unread[0].reason

    return read
