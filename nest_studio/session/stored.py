"""The store of this server: notebooks and fabrics by name, long states that addresses carry."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_studio.session import store
from nest_studio.session.store import (
    Database,
    Documents,
    Notebooks,
    StoredAnswers,
    StoredLinks,
    database_url,
)

__all__ = [
    "answers",
    "fabrics",
    "is_kept",
    "keep",
    "kept_aside",
    "kept_measurements",
    "kept_studies",
    "links",
    "notebooks",
    "recall",
]


def notebooks() -> Notebooks:
    """Notebooks by name; InputError where the store cannot be used."""
    return Notebooks(_database(database_url()))


def kept_measurements() -> Documents:
    """Measurements by name, in the same database."""
    return store.kept_measurements(_database(database_url()))


def kept_studies() -> Documents:
    """Studies by name, in the same database."""
    return store.kept_studies(_database(database_url()))


def answers() -> StoredAnswers:
    """Answers of studies, in the same database."""
    return StoredAnswers(_database(database_url()))


def fabrics() -> Documents:
    """Fabrics by name, in the same database."""
    return store.kept_fabrics(_database(database_url()))


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
