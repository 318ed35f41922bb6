"""Documents by name: saved, opened, renamed, deleted; nobody's is replaced unasked."""

from __future__ import annotations

import sqlite3

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES
from nest_studio.session.store import Database, Documents

DRAWING = {"schema": 1, "name": "Halle Ä", "kind": "graph", "element": [{"id": "gpu 0"}]}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "f.sqlite"


@pytest.fixture
def fabrics(file):
    return Documents(Database(f"sqlite:///{file}"), "fabrics")


def test_what_was_saved_is_opened_also_in_another_session(fabrics, file):
    assert fabrics.save("  hall B ", DRAWING) == "hall B"
    fabrics.save("Hall a", {"kind": "torus"})
    other = Documents(Database(f"sqlite:///{file}"), "fabrics")
    assert other.names() == ("Hall a", "hall B")
    assert other.open("hall B") == DRAWING
    assert other.open("hall C") is None


def test_renamed_and_deleted(fabrics):
    fabrics.save("a", DRAWING)
    assert fabrics.rename("a", "b") == "b"
    assert fabrics.names() == ("b",)
    assert fabrics.open("b") == DRAWING
    fabrics.delete("b")
    fabrics.delete("b")
    assert fabrics.names() == ()
    with pytest.raises(InputError, match="must be of a fabric that is kept"):
        fabrics.rename("b", "c")


def test_a_taken_name_is_refused_and_what_has_it_stays(fabrics):
    fabrics.save("a", DRAWING)
    fabrics.save("b", {"kind": "torus"})
    for refused in (lambda: fabrics.save("a", {}), lambda: fabrics.rename("b", "a")):
        with pytest.raises(InputError, match="name must not be taken, but is 'a'"):
            refused()
    assert fabrics.open("a") == DRAWING
    fabrics.save("a", {"kind": "mesh"}, replace=True)
    assert fabrics.open("a") == {"kind": "mesh"}


@pytest.mark.parametrize("name", ["", " \t", "x" * 101, "two\nlines", "h100-spine-leaf-64"])
def test_names_that_are_none_are_refused(fabrics, name):
    with pytest.raises(InputError, match="name must"):
        fabrics.save(name, DRAWING)
    assert fabrics.names() == ()


@pytest.mark.parametrize("text", ["[1", "[1]", "[" * 100_000])
def test_a_damaged_document_is_said_and_can_be_deleted(fabrics, file, text):
    fabrics.save("a", DRAWING)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE fabrics SET document = ?", [text])
    with pytest.raises(InputError, match="fabric a must be stored as a document"):
        fabrics.open("a")
    assert fabrics.names() == ("a",)
    fabrics.delete("a")
    assert fabrics.names() == ()


def test_too_much_is_refused(fabrics):
    with pytest.raises(InputError, match="fabric must hold at most"):
        fabrics.save("a", {"text": "x" * MAX_FILE_BYTES})


def test_measurements_stand_apart_and_may_change_with_their_name(fabrics, file):
    fabrics.save("a", DRAWING)
    kept = Documents(Database(f"sqlite:///{file}"), "measurements")
    assert kept.names() == ()
    kept.save("h100-spine-leaf-64", {"name": "old"})
    kept.rename("h100-spine-leaf-64", "new", {"name": "new"})
    assert kept.open("new") == {"name": "new"}
    assert fabrics.names() == ("a",)


def test_a_store_of_before_gets_its_table(file):
    Database(f"sqlite:///{file}")
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE fabrics")
    later = Documents(Database(f"sqlite:///{file}"), "fabrics")
    later.save("a", DRAWING)
    assert later.names() == ("a",)
