"""Measurements by name: kept, listed, renamed, deleted; what is damaged is one sentence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.store import Database, Kept, KeptMeasurements
from nest_core.store.database import MEASUREMENTS

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
DOCUMENT = {"name": "mine", "entries": [{"name": "a.log"}]}


@pytest.fixture
def database(tmp_path):
    return Database(f"sqlite:///{tmp_path / 'store.sqlite'}")


@pytest.fixture
def kept(database):
    return KeptMeasurements(database, lambda: NOON)


def test_what_is_kept_is_listed_and_opened(kept):
    kept.save("b", DOCUMENT, 1, over=False)
    kept.save("A", {}, 0, over=False)
    stamp = "2026-11-25T12:00:00+00:00"
    assert kept.listed() == (Kept("A", 0, stamp), Kept("b", 1, stamp))
    assert kept.open("b") == DOCUMENT
    assert kept.open("c") is None


def test_a_taken_name_is_refused_unless_it_is_replaced(kept):
    kept.save("b", {"old": 1}, 0, over=False)
    with pytest.raises(InputError, match="name must not be taken"):
        kept.save("b", DOCUMENT, 1, over=False)
    assert kept.open("b") == {"old": 1}
    kept.save("b", DOCUMENT, 1, over=True)
    assert kept.open("b") == DOCUMENT


def test_rename_and_delete(kept):
    kept.save("a", DOCUMENT, 1, over=False)
    kept.save("b", {}, 0, over=False)
    with pytest.raises(InputError, match="must not be taken"):
        kept.rename("a", "b", DOCUMENT)
    kept.rename("a", "c", {**DOCUMENT, "name": "c"})
    assert [each.name for each in kept.listed()] == ["b", "c"]
    assert kept.open("c")["name"] == "c"
    kept.delete("c")
    kept.delete("c")
    with pytest.raises(InputError, match="must still have their name"):
        kept.rename("c", "d", DOCUMENT)


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000])
def test_a_damaged_document_is_one_sentence(kept, database, text):
    kept.save("a", DOCUMENT, 1, over=False)
    with database.transaction() as connection:
        connection.execute(update(MEASUREMENTS).values(document=text))
    with pytest.raises(InputError, match="measurements a must be stored as a document"):
        kept.open("a")
    assert [each.name for each in kept.listed()] == ["a"]


def test_too_much_is_refused(kept):
    with pytest.raises(InputError, match="at most"):
        kept.save("a", {"text": "x" * MAX_FILE_BYTES}, 1, over=False)
