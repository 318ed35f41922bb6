"""What the notebook page says of damaged stores, and of deletes that come late."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.report.notebook import new_notebook, pin_cells
from nest_studio.session.store import Database, Notebooks


@pytest.fixture
def path(tmp_path, monkeypatch):
    found = tmp_path / "n.sqlite"
    monkeypatch.setenv("NEST_STUDIO_DATABASE", f"sqlite:///{found}")
    return found


@pytest.fixture
def opened(root, path):
    """``opened(name)``: the page, at the address of a notebook if one is named."""

    def run(name=None):
        page = AppTest.from_file(str(root / "pages" / "notebook.py"), default_timeout=120)
        if name:
            page.query_params["notebook"] = name
        return page.run()

    return run


def notes(*titles):
    return new_notebook([cell for title in titles for cell in pin_cells("note", title, "", {})])


def odd(path, document):
    """A store with a good notebook and one whose document is something else."""
    Notebooks(Database(f"sqlite:///{path}")).save("Good", notes("a"))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE odd (name, document, cells, revision, created, changed);"
            "INSERT INTO odd SELECT * FROM notebooks; DROP TABLE notebooks;"
            "ALTER TABLE odd RENAME TO notebooks;"
        )
        row = ("Odd", document, "some", 1, None, "soon")
        connection.execute("INSERT INTO notebooks VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.commit()


@pytest.mark.parametrize("document", [None, 5, 2.5, b"\x00\xff", "", "null", "[]"])
def test_a_damaged_notebook_is_a_sentence_and_the_others_open(opened, path, document):
    odd(path, document)
    page = opened("Odd")
    assert not page.exception
    assert len(page.error) == 1
    assert page.error[0].value.startswith("Notebook Odd must ")
    page.sidebar.radio[0].set_value("Good").run()
    assert not page.exception
    assert not page.error
    with closing(sqlite3.connect(path)) as connection:
        (kept,) = connection.execute("SELECT document FROM notebooks WHERE name = 'Odd'").fetchone()
    assert kept == document


def test_a_damaged_store_is_kept_aside_and_said(opened, path):
    Notebooks(Database(f"sqlite:///{path}")).save("N", notes("a"))
    data = bytearray(path.read_bytes())
    data[18:60] = bytes(42)
    path.write_bytes(data)
    page = opened("N")
    assert not page.exception
    (aside,) = (one for one in path.parent.iterdir() if ".damaged-" in one.name)
    assert aside.read_bytes() == data
    assert any(aside.name in one.value for one in page.warning)
    aside.unlink()
    assert not any(aside.name in one.value for one in page.run().warning)


def test_a_file_that_is_no_store_is_a_sentence_and_left_alone(opened, path):
    path.write_text("Dear diary, " * 100)
    page = opened("N")
    assert not page.exception
    assert page.error[0].value.startswith("Database must be one that can be read and written")
    assert path.read_text() == "Dear diary, " * 100


def test_a_notebook_that_somebody_changed_is_not_deleted_unseen(opened, path):
    store = Notebooks(Database(f"sqlite:///{path}"))
    seen = store.save("N", notes())
    page = opened("N")
    theirs = store.save("N", notes("theirs"), seen.revision)
    next(button for button in page.button if button.key == "delete-all").click().run()
    assert not page.exception
    assert store.open("N") == theirs
    assert page.error[0].value.startswith("Notebook N must still be version 1, which was opened")
    next(button for button in page.button if button.key == "delete-all").click().run()
    assert store.open("N") is None
