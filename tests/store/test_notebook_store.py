"""The store: what survives, who is refused, and what happens when several write at once."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nest_core.documents.errors import InputError
from nest_core.report.notebook import new_notebook, pin_cells
from nest_studio.session.store import Conflict, Database, Notebooks, database, database_url
from nest_studio.session.store.notebooks import VERSIONS_KEPT

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ROUNDS = 10


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'folder' / 'n.sqlite'}"


@pytest.fixture
def clock():
    times = (NOON + timedelta(minutes=minute) for minute in range(1000))
    return lambda: next(times)


@pytest.fixture
def store(url, clock):
    return Notebooks(Database(url), clock)


def notes(*titles):
    return new_notebook([cell for title in titles for cell in pin_cells("note", title, "", {})])


def titles(notebook):
    return [cell.source.removeprefix("## ") for cell in notebook.cells]


def test_a_notebook_survives_a_restart(store, url):
    saved = store.save("N", notes("a"))
    assert Notebooks(Database(url)).open("N") == saved
    assert (saved.revision, saved.changed) == (1, NOON.isoformat())
    assert store.open("M") is None


def test_saving_counts_revisions(store):
    first = store.save("N", notes())
    second = store.save("N", notes("a"), first.revision)
    assert second.revision == 2
    assert first.changed < second.changed
    assert store.open("N") == second


def test_the_list_names_cells_and_dates_in_the_order_of_names(store):
    for name in ("beta", "Alpha", "gamma"):
        store.save(name, notes("a"))
    entries = store.listed()
    assert [entry.name for entry in entries] == ["Alpha", "beta", "gamma"]
    assert {entry.count for entry in entries} == {1}
    assert entries[1].changed == NOON.isoformat()


def test_who_saw_an_older_version_is_refused(store):
    opened = store.save("N", notes())
    theirs = store.save("N", notes("theirs"), opened.revision)
    with pytest.raises(Conflict, match=r"notebook N must still be version 1, .* but is 2: look"):
        store.save("N", notes("mine"), opened.revision)
    assert store.open("N") == theirs
    assert [entry.count for entry in store.versions("N")] == [1]


@pytest.mark.parametrize(
    "away",
    [lambda store, saved: store.delete(saved), lambda store, saved: store.rename(saved, "M")],
)
def test_who_saw_a_notebook_that_is_gone_is_refused(store, away):
    saved = store.save("N", notes())
    away(store, saved)
    with pytest.raises(Conflict, match="must still have its name, but is 'renamed or deleted'"):
        store.save("N", saved.notebook, saved.revision)
    assert store.versions("N") == ()


def test_the_last_ten_versions_stay(store):
    saved = store.save("N", notes("0"))
    for number in range(1, 14):
        saved = store.save("N", notes(str(number)), saved.revision)
    assert saved.revision == 14
    versions = store.versions("N")
    assert [entry.count for entry in versions] == list(range(13, 13 - VERSIONS_KEPT, -1))
    assert titles(store.version("N", 13)) == ["12"]
    assert versions[0].changed < saved.changed
    with pytest.raises(InputError, match="version of N must be one of the last 10, but is 3"):
        store.version("N", 3)


def test_versions_go_with_their_notebook(store):
    first = store.save("N", notes("a"))
    store.rename(store.save("N", notes("b"), first.revision), "M")
    assert store.versions("N") == ()
    assert titles(store.version("M", 1)) == ["a"]
    store.delete(store.open("M"))
    assert store.versions("M") == ()


def test_a_name_is_given_once(store):
    first, _ = store.save("N", notes("a")), store.save("M", notes())
    with pytest.raises(InputError, match="notebook name must not be taken, but is 'N'"):
        store.save("N", notes())
    with pytest.raises(InputError, match="notebook name must not be taken, but is 'M'"):
        store.rename(first, "M")
    assert store.open("N") == first


@pytest.mark.parametrize("name", ["", " N", "N\nM", "x" * 101])
def test_a_name_that_is_none_is_one_sentence(store, name):
    with pytest.raises(InputError, match="notebook name must be one line of 1 to 100 characters"):
        store.save(name, notes())


def test_a_renamed_notebook_keeps_its_cells(store):
    saved = store.save("N", notes("a"))
    store.rename(saved, "M")
    assert store.open("N") is None
    renamed = store.open("M")
    assert renamed.notebook == saved.notebook
    assert store.save("M", notes("a", "b"), renamed.revision).revision == 2


def test_deleting_twice_is_deleting_once(store):
    saved = store.save("N", notes())
    store.delete(saved)
    store.delete(saved)
    assert store.listed() == ()


def test_a_notebook_that_could_not_be_read_back_is_not_written(store):
    with pytest.raises(InputError, match="notebook must hold at most 5,000,000 bytes"):
        store.save("N", notes("x" * 5_000_000))
    assert store.open("N") is None


def append(url: str, who: str) -> int:
    """Add `ROUNDS` cells, reloading as often as somebody else was faster; how often that was."""
    store, refused = Notebooks(Database(url)), 0
    for number in range(ROUNDS):
        while True:
            saved = store.open("N")
            notebook = saved.notebook if saved else notes()
            notebook.cells += notes(f"{who}-{number}").cells
            try:
                store.save("N", notebook, saved.revision if saved else 0)
            except Conflict:
                refused += 1
            else:
                break
    return refused


def check_nothing_lost(url: str, writers: list[str]) -> None:
    saved = Notebooks(Database(url)).open("N")
    found = titles(saved.notebook)
    assert sorted(found) == sorted(f"{who}-{n}" for who in writers for n in range(ROUNDS))
    assert saved.revision == len(found)
    for who in writers:
        own = [name for name in found if name.startswith(who)]
        assert own == [f"{who}-{n}" for n in range(ROUNDS)]


def test_threads_that_write_at_once_lose_nothing(url):
    writers = ["a", "b", "c", "d"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, [url] * 4, writers))
    check_nothing_lost(url, writers)


@pytest.mark.check
def test_processes_that_write_at_once_lose_nothing(url):
    writers = ["a", "b"]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(append, [(url, who) for who in writers])
    check_nothing_lost(url, writers)


def begin(url, rounds):
    """Make a store anew, again and again, at the same moment as others do."""
    for n in range(rounds):
        together = threading.Barrier(8)

        def make(n=n, together=together):
            together.wait()
            Database(f"{url}-{n}")

        with ThreadPoolExecutor(8) as pool:
            for made in [pool.submit(make) for _ in range(8)]:
                made.result()


@pytest.mark.check
def test_whoever_begins_a_store_at_once_finds_it_whole(url, tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(begin, [(url, 10)] * 2)
    assert not list(tmp_path.rglob("*damaged*"))
    for n in range(10):
        with closing(sqlite3.connect(tmp_path / "folder" / f"n.sqlite-{n}")) as made:
            assert made.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_readers_and_a_writer_do_not_wait_for_each_other(store, tmp_path):
    saved = store.save("N", notes())
    other = sqlite3.connect(tmp_path / "folder" / "n.sqlite", isolation_level=None)
    other.execute("BEGIN")
    assert other.execute("SELECT revision FROM notebooks").fetchall() == [(1,)]
    store.save("N", saved.notebook, saved.revision)
    assert other.execute("SELECT revision FROM notebooks").fetchall() == [(1,)]
    other.execute("COMMIT")
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM notebooks")
    assert store.open("N").revision == 2
    other.execute("ROLLBACK")
    other.close()


def test_a_file_that_is_no_database_is_one_sentence(tmp_path):
    path = tmp_path / "notes.sqlite"
    path.write_text("Dear diary, " * 100)
    with pytest.raises(InputError, match="database must be one that can be read and written"):
        Database(f"sqlite:///{path}")
    assert path.read_text().startswith("Dear diary")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("not a url", "NEST_STUDIO_DATABASE must be a database's URL"),
        ("sqlite+aiosqlite:///n.sqlite", "whose driver is installed, but is 'sqlite.aiosqlite'"),
        ("postgresql+asyncpg://h/n", "whose driver is installed, but is 'postgresql.asyncpg'"),
        ("nonsense://host/name", "NEST_STUDIO_DATABASE must name a database whose driver"),
        ("mysql+pymysql://me:secret@host/name", "NEST_STUDIO_DATABASE must name a database whose"),
    ],
)
def test_an_address_of_no_database_is_one_sentence(url, message):
    with pytest.raises(InputError, match=message) as caught:
        Database(url)
    assert "secret" not in str(caught.value)


def test_an_asynchronous_driver_that_is_installed_is_refused(monkeypatch):
    """SQLAlchemy makes an engine of it, whose first connection fails far from here."""
    engine = database.create_engine("sqlite://")
    monkeypatch.setattr(engine.dialect, "is_async", True)
    monkeypatch.setattr(database, "create_engine", lambda url, **options: engine)
    with pytest.raises(InputError, match="must name a driver that answers at once"):
        Database("postgresql+asyncpg://h/n")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="database must lie in a folder that can be made"):
        Database(f"sqlite:///{tmp_path / 'file' / 'n.sqlite'}")


def test_a_document_of_something_else_is_one_sentence(store, url):
    store.save("N", notes())
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE notebooks SET document = '[]'")
    with pytest.raises(InputError, match="notebook N must be a JSON object"):
        store.open("N")


HOME = Path("home of somebody")


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({}, "linux", HOME / ".local" / "share"),
        ({"XDG_DATA_HOME": "elsewhere"}, "linux", Path("elsewhere")),
        ({"XDG_DATA_HOME": "elsewhere"}, "darwin", HOME / "Library" / "Application Support"),
        ({"LOCALAPPDATA": "local"}, "win32", Path("local")),
    ],
)
def test_the_store_lies_where_the_platform_keeps_data(environment, platform, folder):
    place = folder / "nest-studio" / "notebooks.sqlite"
    assert database_url(environment, platform, HOME) == f"sqlite:///{place}"


def test_the_variable_names_another_database():
    environment = {"NEST_STUDIO_DATABASE": " sqlite:///x.sqlite "}
    assert database_url(environment, "linux", HOME) == "sqlite:///x.sqlite"
