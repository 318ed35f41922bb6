"""Links: a state's key follows from the state, and brings it back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nest_core.errors import InputError
from nest_core.store import Database, Links

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@pytest.fixture
def links(tmp_path):
    return Links(Database(f"sqlite:///{tmp_path / 'l.sqlite'}"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=4))
def test_what_was_put_is_got(links, state):
    key = links.put(state)
    assert links.get(key) == state
    assert len(key) == 16
    assert key.replace("-", "a").replace("_", "a").isalnum()


def test_the_same_state_has_the_same_key_in_every_store(links, tmp_path):
    other = Links(Database(f"sqlite:///{tmp_path / 'other.sqlite'}"))
    key = links.put({"a": 1, "b": [2]})
    assert other.put({"b": [2], "a": 1}) == key == links.put({"a": 1, "b": [2]})
    assert links.put({"a": 2, "b": [2]}) != key


def test_a_link_survives_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path / 'l.sqlite'}"
    key = Links(Database(url)).put({"page": "explore"})
    assert Links(Database(url)).get(key) == {"page": "explore"}


def test_an_unknown_key_has_no_state(links):
    assert links.get("nothing") is None


def test_many_may_put_the_same_at_once(tmp_path):
    url = f"sqlite:///{tmp_path / 'l.sqlite'}"
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: Links(Database(url)).put({"a": 1}), range(24)))
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
