"""Damaged and odd stores: always a sentence, never a file or a row that is written over."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from nbformat import NotebookNode

from nest_core.documents.errors import InputError
from nest_core.report.notebook import new_notebook, pin_cells, read_notebook
from nest_studio.session.store import Conflict, Database, Notebooks, SavedNotebook, StoredLinks

ODD_TABLES = """
DROP TABLE notebooks;
CREATE TABLE notebooks (name, document, cells, revision, created, changed);
DROP TABLE states;
CREATE TABLE states (key, opened, state);
"""
"""The store's columns as another program might have made them: anything may stand in any."""


def notes(*titles: str, words: str = "") -> NotebookNode:
    return new_notebook([cell for title in titles for cell in pin_cells("note", title, words, {})])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store of several pages, closed, and the key of one of its links."""
    path = tmp_path_factory.mktemp("whole") / "n.sqlite"
    store, links = (
        Notebooks(Database(f"sqlite:///{path}")),
        StoredLinks(Database(f"sqlite:///{path}")),
    )
    for number in range(6):
        words = "".join(random.Random(number).choices("abcdefgh \n", k=3_000))
        store.save(f"N{number}", notes(*(f"c{n}" for n in range(number)), words=words))
    key = links.put({"numbers": [random.Random(1).random() for _ in range(400)]})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    return path, key


def damaged(data: bytes, dice: random.Random) -> bytes:
    """A file as disks, editors and interrupted copies leave it."""
    kind, at = dice.randrange(6), dice.randrange(len(data))
    length = dice.choice([1, 4, 16, 100, 1_000, 4_096, 10_000])
    end = min(at + length, len(data))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(end - at) + data[end:]
    if kind == 2:
        return data[:at] + dice.randbytes(end - at) + data[end:]
    if kind == 3:
        return data[:at] + data[end:]
    if kind == 4:
        return data[:at] + dice.randbytes(length) + data[at:]
    some = bytearray(data)
    for _ in range(dice.choice([1, 5, 50])):
        some[dice.randrange(min(len(some), dice.choice([100, 4_096, len(some)])))] = dice.randrange(
            256
        )
    return bytes(some)


def use(url: str, key: str) -> list[str]:
    """All that the studio does with a store; the sentences that it said."""
    said: list[str] = []

    def attempt(action):
        try:
            return action()
        except InputError as error:
            said.append(str(error))
            return None

    database = attempt(lambda: Database(url))
    if database is None:
        return said
    store, links = Notebooks(database), StoredLinks(database)
    for entry in attempt(store.listed) or ():
        saved = attempt(lambda name=entry.name: store.open(name))
        if saved is not None:
            assert saved.name == entry.name
            again = attempt(
                lambda saved=saved: store.save(saved.name, saved.notebook, saved.revision)
            )
            attempt(lambda again=again: again and store.rename(again, "renamed"))
            attempt(lambda name=entry.name: store.versions(name))
    for name in ("N1", "N2"):
        attempt(lambda name=name: store.delete(SavedNotebook(name, notes(), 1, "")))
    made = attempt(lambda: store.save("new", notes("c")))
    assert made is None or store.open("new") == made
    attempt(lambda: links.get(key))
    attempt(lambda: links.put({"a": 1}))
    return said


def check_damage(whole, folder: Path, seed: int) -> str:
    """Damage a store and use it; what became of it."""
    origin, key = whole
    path = folder / "n.sqlite"
    text = damaged(origin.read_bytes(), random.Random(seed))
    path.write_bytes(text)
    said = use(f"sqlite:///{path}", key)
    assert all(one.endswith(".") and "\n" not in one for one in said)
    aside = [one for one in folder.iterdir() if ".damaged-" in one.name]
    if aside:
        assert [one.read_bytes() for one in aside] == [text]
        assert not said, "the new one is whole"
        return "aside"
    if any(one.startswith("database ") for one in said) and said[0].startswith("database "):
        assert path.read_bytes() == text
        return "refused"
    return "usable"


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1_000), marks=pytest.mark.check)], ids=len
)
@pytest.mark.check
def test_a_damaged_file_is_kept_aside_or_refused_and_never_written(whole, tmp_path, seeds):
    became = []
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        became.append(check_damage(whole, folder, seed))
        shutil.rmtree(folder)
    assert set(became) >= {"aside", "usable"}, "the dice cover both"


def test_a_damaged_store_goes_aside_with_what_was_written_ahead(tmp_path):
    path = tmp_path / "n.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"CREATE TABLE notebooks" + bytes(4_000))
    (tmp_path / "n.sqlite-wal").write_bytes(b"ahead")
    database = Database(f"sqlite:///{path}")
    (aside,) = database.kept_aside()
    assert Notebooks(database).listed() == ()
    assert (tmp_path / f"{aside}-wal").read_bytes() == b"ahead"
    assert b"CREATE TABLE notebooks" in (tmp_path / aside).read_bytes()


def test_a_damaged_store_that_cannot_be_renamed_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "n.sqlite"
    path.write_bytes(b"CREATE TABLE notebooks" + bytes(4_000))

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(InputError, match="folder where a damaged file can be renamed"):
        Database(f"sqlite:///{path}")
    assert path.read_bytes()[:6] == b"CREATE"


def test_messages_name_no_folder_and_no_server(tmp_path):
    """Visitors read them."""
    (tmp_path / "n.sqlite").write_text("Dear diary, " * 100)
    (tmp_path / "folder").mkdir()
    for place in ("n.sqlite", "folder", "n.sqlite/below/n.sqlite"):
        with pytest.raises(InputError) as caught:
            Database(f"sqlite:///{tmp_path / place}")
        assert tmp_path.name not in str(caught.value)


ODD_DOCUMENTS = [
    None,
    5,
    1.5,
    b"blob",
    b"\xff\xfe",
    "",
    "null",
    "5",
    "[]",
    "{}",
    '{"schema": 2, "cells": [3]}',
    '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 5}',
    '{"schema": 1, "name": "N", "cells": 5}',
    "[" * 100_000,
    '{"schema": 1, "name": "\\ud800", "cells": []}',
    "x" * 6_000_000,
    "1" * 10_000,
    '{"schema": 1, "name": "N", "cells": [{"id": "a", "kind": "note", "title": "\\udfff"}]}',
]
GOOD = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


def odd_store(tmp_path: Path, *rows: tuple) -> str:
    path = tmp_path / "n.sqlite"
    Database(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ODD_TABLES)
        connection.executemany("INSERT INTO notebooks VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    return f"sqlite:///{path}"


def rows(url: str) -> list[tuple]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.text_factory = bytes
        return connection.execute("SELECT * FROM notebooks ORDER BY rowid").fetchall()


@pytest.mark.parametrize("document", ODD_DOCUMENTS, ids=lambda one: str(one)[:20])
def test_a_document_that_is_none_is_one_sentence_and_stays(tmp_path, document):
    url = odd_store(tmp_path, ("N", document, 1, 1, "", ""), ("M", GOOD, 0, 1, "", ""))
    store, before = Notebooks(Database(url)), rows(url)
    with pytest.raises(InputError) as caught:
        store.open("N")
    assert str(caught.value).endswith(".")
    assert [entry.name for entry in store.listed()] == ["M", "N"]
    assert store.open("M").notebook.cells == []
    for name in ("renamed", "M"):
        with pytest.raises(InputError):
            store.save(name, notes(), 7)
    store.save("other", notes())
    assert rows(url)[:2] == before


@pytest.mark.parametrize("revision", [None, "first", 0, -1, 1.5, b"1", 2**63 - 1])
def test_a_revision_that_is_none_is_one_sentence(tmp_path, revision):
    url = odd_store(tmp_path, ("M", GOOD, 0, revision, "", ""))
    with pytest.raises(InputError, match="notebook M must be stored as text of a counted version"):
        Notebooks(Database(url)).open("M")


def test_a_list_names_what_can_be_asked_for(tmp_path):
    odd = [
        (None, GOOD, 0, 1, "", ""), (5, GOOD, 0, 1, "", ""), (b"\xff", GOOD, 0, 1, "", ""),
        ("A", GOOD, None, 1, None, None), ("B", GOOD, "many", 1, 5, b"soon"),
        ("A", GOOD, 0, 1, "", ""),
    ]  # fmt: skip
    url = odd_store(tmp_path, *odd)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("INSERT INTO notebooks (name) VALUES (CAST(x'ff41' AS TEXT))")
        connection.commit()
    store = Notebooks(Database(url))
    assert {(entry.name, entry.count, entry.changed) for entry in store.listed()} == {
        ("A", 0, ""),
        ("B", 0, ""),
    }
    assert store.open("A").name == "A"


def test_saving_a_notebook_writes_its_own_row(tmp_path):
    url = odd_store(tmp_path, ("N", GOOD, 0, 1, "", ""), ("M", GOOD, 0, 1, "", ""))
    store = Notebooks(Database(url))
    saved = store.open("N")
    store.save("N", saved.notebook, saved.revision)
    assert store.open("M").revision == 1
    assert store.open("N").revision == 2


@pytest.mark.parametrize("state", [None, 5, 10**12, "text", b"", b"blob", b"x\x9c\x03\x00"])
def test_a_damaged_link_is_one_sentence_and_can_be_made_anew(tmp_path, state):
    url = odd_store(tmp_path)
    links = StoredLinks(Database(url))
    key = links.put({"a": 1})
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE states SET state = ?, opened = NULL", (state,))
        connection.commit()
    with pytest.raises(InputError, match="link must lead to what was stored under it"):
        links.get(key)
    assert links.put({"a": 1}) == key
    assert links.get(key) == {"a": 1}


def test_a_newer_store_is_refused_and_left_alone(whole, tmp_path):
    path = tmp_path / "n.sqlite"
    shutil.copy(whole[0], path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=2")
    before = path.read_bytes()
    with pytest.raises(InputError, match="database must have tables of version 1 or older"):
        Database(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_tables_of_another_program_are_refused(tmp_path):
    path = tmp_path / "n.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notebooks (title)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="database must be one that can be read and written"):
        Database(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_folder_in_place_of_the_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="database must be a file that can be read and written"):
        Database(f"sqlite:///{tmp_path}")


def test_a_store_that_another_program_holds_is_one_sentence(whole, tmp_path, monkeypatch):
    path = tmp_path / "n.sqlite"
    shutil.copy(whole[0], path)
    monkeypatch.setattr("nest_studio.session.store.database.PATIENCE_S", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="but is 'database is locked'"):
            Database(f"sqlite:///{path}")
    assert {one.name for one in tmp_path.iterdir()} == {"n.sqlite", "n.sqlite.lock"}


def test_a_store_that_is_moved_away_meanwhile_is_begun_anew(tmp_path):
    path = tmp_path / "n.sqlite"
    store = Notebooks(Database(f"sqlite:///{path}"))
    store.save("N", notes())
    path.rename(tmp_path / "moved")
    assert store.listed() == ()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_delete_carries_the_revision_that_it_saw(tmp_path):
    store = Notebooks(Database(f"sqlite:///{tmp_path / 'n.sqlite'}"))
    seen = store.save("N", notes())
    theirs = store.save("N", notes("theirs"), seen.revision)
    with pytest.raises(Conflict, match="notebook N must still be version 1, which was opened"):
        store.delete(seen)
    assert [entry.count for entry in store.listed()] == [1]
    store.delete(theirs)
    assert store.listed() == ()


def test_a_document_that_could_not_be_written_again_is_refused():
    """Half characters: JSON can name them and no file holds them."""
    text = GOOD.replace('"metadata": {}', '"metadata": {"title": "\\ud800"}')
    with pytest.raises(InputError, match="notebook must hold text of whole characters"):
        read_notebook(text)


@pytest.mark.skipif(os.name == "nt", reason="rights are of another kind there")
@pytest.mark.parametrize("before", ["nothing", "a store that everybody reads"])
def test_only_its_owner_may_read_the_store(tmp_path, before):
    path = tmp_path / "nest-studio" / "notebooks.sqlite"
    mask = os.umask(0)
    try:
        if before != "nothing":
            path.parent.mkdir(mode=0o777)
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("CREATE TABLE other (a)")
            path.chmod(0o666)
        database = Database(f"sqlite:///{path}")
        with database.transaction() as connection:
            connection.exec_driver_sql("INSERT INTO states VALUES ('a', 'b', 'c')")
            found = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    finally:
        os.umask(mask)
    assert len(found) == 4, "with what is written ahead, and the lock"
    assert set(found.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="rights are of another kind there")
def test_a_folder_of_somebody_elses_choice_keeps_its_rights(tmp_path):
    tmp_path.chmod(0o755)
    Database(f"sqlite:///{tmp_path / 'n.sqlite'}")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
