"""StoredLinks: a state's key follows from the state, and brings it back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_studio.session.store import Database, StoredLinks

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@pytest.fixture
def links(tmp_path):
    return StoredLinks(Database(f"sqlite:///{tmp_path / 'l.sqlite'}"))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=4))
def test_what_was_put_is_got(links, state):
    key = links.put(state)
    assert links.get(key) == state
    assert links.has(state)
    assert not links.has({**state, "and": "more"})
    assert len(key) == 16
    assert key.replace("-", "a").replace("_", "a").isalnum()


def test_the_same_state_has_the_same_key_in_every_store(links, tmp_path):
    other = StoredLinks(Database(f"sqlite:///{tmp_path / 'other.sqlite'}"))
    key = links.put({"a": 1, "b": [2]})
    assert other.put({"b": [2], "a": 1}) == key == links.put({"a": 1, "b": [2]})
    assert links.put({"a": 2, "b": [2]}) != key


def test_a_link_survives_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path / 'l.sqlite'}"
    key = StoredLinks(Database(url)).put({"page": "explore"})
    assert StoredLinks(Database(url)).get(key) == {"page": "explore"}


def test_an_unknown_key_has_no_state(links):
    assert links.get("nothing") is None


def test_many_may_put_the_same_at_once(tmp_path):
    url = f"sqlite:///{tmp_path / 'l.sqlite'}"
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: StoredLinks(Database(url)).put({"a": 1}), range(24)))
    assert len(set(keys)) == 1


def test_a_drawing_takes_little_room(links, tmp_path):
    elements = [
        {"id": f"node {n // 8} GPU {n % 8}", "role": "device", "group": f"rack {n // 64}"}
        for n in range(2_000)
    ]
    key = links.put({"document": {"element": elements}})
    assert links.get(key) == {"document": {"element": elements}}
    assert (tmp_path / "l.sqlite").stat().st_size < 100_000


def test_a_state_over_five_megabytes_is_one_sentence(links):
    with pytest.raises(InputError, match="link must hold at most 5,000,000 bytes"):
        links.put({"a": "x" * 5_000_000})


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.time = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

    def __call__(self):
        return self.time

    def later(self, hours=2.0):
        self.time += timedelta(hours=hours)


@pytest.fixture
def clock():
    return Clock()


def few(tmp_path, clock, most=3):
    return StoredLinks(Database(f"sqlite:///{tmp_path / 'few.sqlite'}"), clock, most)


def kept(links, keys):
    """Which of the keys are known, without opening any."""
    with links._database.transaction() as connection:
        found = set(connection.exec_driver_sql("select key from states").scalars())
    return [key in found for key in keys]


def test_the_longest_unopened_goes_when_there_are_too_many(tmp_path, clock):
    links, keys = few(tmp_path, clock), []
    for number in range(5):
        keys.append(links.put({"n": number}))
        clock.later()
    assert kept(links, keys) == [False, False, True, True, True]
    assert links.get(keys[0]) is None


@pytest.mark.parametrize("opens", ["get", "put"])
def test_opening_a_link_keeps_it(tmp_path, clock, opens):
    links, keys = few(tmp_path, clock), []
    for number in range(3):
        keys.append(links.put({"n": number}))
        clock.later()
    assert links.get(keys[0]) == {"n": 0} if opens == "get" else links.put({"n": 0}) == keys[0]
    clock.later()
    keys.append(links.put({"n": 3}))
    assert kept(links, keys) == [True, False, True, True]


def test_what_was_just_put_stays_whatever_the_clock_says(tmp_path, clock):
    links = few(tmp_path, clock)
    for number in range(20):
        if number % 2:
            clock.later(-30)  # set back
        key = links.put({"n": number})
        assert links.get(key) == {"n": number}
    assert sum(kept(links, [links.put({"n": 19})])) == 1


def test_a_zone_does_not_change_the_order(tmp_path, clock):
    links = few(tmp_path, clock, 1)
    links.put({"n": 0})
    clock.time = (clock.time + timedelta(hours=2)).astimezone(timezone(-timedelta(hours=9)))
    keys = [links.put({"n": 1})]
    clock.later()
    keys.append(links.put({"n": 2}))
    assert kept(links, keys) == [False, True]


def test_sessions_that_put_at_once_leave_as_many_as_are_kept(tmp_path, clock):
    def session(number):
        links = few(tmp_path, clock, 10)
        keys = [links.put({"session": number % 4, "n": n}) for n in range(12)]
        assert all(key for key in keys)
        return keys

    few(tmp_path, clock, 10)
    with ThreadPoolExecutor(8) as pool:
        keys = {key for found in pool.map(session, range(8)) for key in found}
    assert len(keys) == 48
    assert sum(kept(few(tmp_path, clock, 10), keys)) == 10


def test_a_database_without_its_table_is_one_sentence(tmp_path, clock):
    links = few(tmp_path, clock)
    with links._database.transaction() as connection:
        connection.exec_driver_sql("drop table states")
    with pytest.raises(InputError, match="database must be one that can be read and written"):
        links.put({"n": 1})
