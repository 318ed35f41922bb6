"""Fabrics by name: saved, opened, renamed, deleted; nobody's is replaced unasked."""

from __future__ import annotations

import sqlite3

import pytest

from nest_core.errors import InputError
from nest_core.store import Database, Fabrics

DRAWING = {"schema": 1, "name": "Halle Ä", "kind": "graph", "element": [{"id": "gpu 0"}]}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "f.sqlite"


@pytest.fixture
def fabrics(file):
    return Fabrics(Database(f"sqlite:///{file}"))


def test_what_was_saved_is_opened_also_in_another_session(fabrics, file):
    assert fabrics.save("  hall B ", DRAWING) == "hall B"
    fabrics.save("Hall a", {"kind": "torus"})
    other = Fabrics(Database(f"sqlite:///{file}"))
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
        with pytest.raises(InputError, match="name must be free, but is 'a'"):
            refused()
    assert fabrics.open("a") == DRAWING
    fabrics.save("a", {"kind": "mesh"}, replace=True)
    assert fabrics.open("a") == {"kind": "mesh"}


@pytest.mark.parametrize("name", ["", " \t", "x" * 101, "two\nlines", "h100-spine-leaf-64"])
def test_names_that_are_none_are_refused(fabrics, name):
    with pytest.raises(InputError, match="name must"):
        fabrics.save(name, DRAWING)
    assert fabrics.names() == ()


def test_a_damaged_document_is_said_and_can_be_deleted(fabrics, file):
    fabrics.save("a", DRAWING)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE fabrics SET document = '[1'")
    with pytest.raises(InputError, match="fabric a must be stored as a document"):
        fabrics.open("a")
    fabrics.delete("a")
    assert fabrics.names() == ()


def test_a_store_of_before_gets_its_table(file):
    Database(f"sqlite:///{file}")
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE fabrics")
    later = Fabrics(Database(f"sqlite:///{file}"))
    later.save("a", DRAWING)
    assert later.names() == ("a",)
