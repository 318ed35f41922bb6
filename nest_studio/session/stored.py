"""Where state stands: in a session, in the address, and in the store of this server.

A session has typed values. The store has notebooks and fabrics by name, and long states by keys
that addresses carry.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_studio.session.store import (
    Database,
    DocumentKind,
    Documents,
    Notebooks,
    StoredAnswers,
    StoredLinks,
    database_url,
)

__all__ = [
    "ASIDE",
    "address",
    "answers",
    "documents",
    "is_kept",
    "keep",
    "kept_aside",
    "links",
    "notebooks",
    "recall",
    "session_value",
    "write_address",
]

ASIDE = "aside."
"""What stands in an address before the state of something that is not on the screen."""
T = TypeVar("T")


def session_value(kind: type[T]) -> T:
    """Return this session's value of a kind, made without arguments when it is first asked for."""
    value: T = st.session_state.setdefault(kind.__name__, kind())
    return value


def address(name: str) -> str:
    """Return the text of a parameter of the address, on the screen or not; empty without one."""
    return st.query_params.get(name, "").removeprefix(ASIDE)


def write_address(name: str, text: str | None, *, shown: bool = True) -> None:
    """Have the address say a text, as of something on the screen or not; without a text nothing."""
    if not text:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != (full := text if shown else f"{ASIDE}{text}"):
        st.query_params[name] = full


def notebooks() -> Notebooks:
    """Notebooks by name; InputError where the store cannot be used."""
    return Notebooks(_database(database_url()))


def documents(kind: DocumentKind) -> Documents:
    """Fabrics, measurements or studies by name, in the same database."""
    return Documents(_database(database_url()), kind)


def answers() -> StoredAnswers:
    """Answers of studies, in the same database."""
    return StoredAnswers(_database(database_url()))


def links() -> StoredLinks:
    """States by key, in the same database."""
    return StoredLinks(_database(database_url()))


def keep(state: Mapping[str, Any]) -> str:
    """The key that brings a state back; empty, and said, where the store does not take it."""
    try:
        return links().put(dict(state))
    except InputError as error:
        st.toast(as_markdown(error))
        return ""


def recall(key: str) -> dict[str, Any] | None:
    """The state of a key; None where there is none, and said where the store cannot be read."""
    try:
        return links().get(key)
    except InputError as error:
        st.toast(as_markdown(error))
        return None


def is_kept(state: Mapping[str, Any]) -> bool:
    """Whether a state was kept before; not where the store cannot be read."""
    try:
        return links().has(state)
    except InputError:
        return False


def kept_aside() -> tuple[str, ...]:
    """Names of files that held notebooks, were damaged and were kept beside the present one."""
    return _database(database_url()).kept_aside()


@lru_cache(maxsize=8)
def _database(url: str) -> Database:
    return Database(url)
