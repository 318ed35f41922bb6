"""The store of this server: notebooks by name, and long states that addresses carry by key."""

from __future__ import annotations

from functools import lru_cache

from nest_core.store import Database, Links, Notebooks, database_url

__all__ = ["kept_aside", "links", "notebooks"]


def notebooks() -> Notebooks:
    """Notebooks by name; InputError where the store cannot be used."""
    return Notebooks(_database(database_url()))


def links() -> Links:
    """States by key, in the same database."""
    return Links(_database(database_url()))


def kept_aside() -> tuple[str, ...]:
    """Names of files that held notebooks, were damaged and were kept beside the present one."""
    return _database(database_url()).kept_aside()


@lru_cache(maxsize=8)
def _database(url: str) -> Database:
    return Database(url)
