"""Answers of studies, by the key of everything that they depend on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import delete, insert, select

from nest_core.store.database import ANSWERS, Database

__all__ = ["TRANSIENT", "StoredAnswers"]

TRANSIENT = ("failed", "beyond")
"""Statuses of answers that depend on more than their keys."""

_AT_ONCE = 500
"""Keys of one question: SQLite takes 999 parameters at least."""


class StoredAnswers:
    """The answers of a database; what is `TRANSIENT` is this run's alone.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._own: dict[str, dict[str, Any]] = {}

    def known(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Those that are there."""
        found: dict[str, dict[str, Any]] = {}
        rest = iter(keys)
        while part := list(itertools.islice(rest, _AT_ONCE)):
            asked = select(ANSWERS.c.key, ANSWERS.c.answer).where(ANSWERS.c.key.in_(part))
            with self._database.transaction() as connection:
                rows = connection.execute(asked).all()
            found |= {key: json.loads(answer) for key, answer in rows}
            found |= {key: self._own[key] for key in part if key in self._own}
        return found

    def keep(self, answers: Mapping[str, dict[str, Any]]) -> None:
        """Keep some in one transaction; those that are `TRANSIENT` for this run alone."""
        self._own |= {key: one for key, one in answers.items() if one["status"] in TRANSIENT}
        rows = [
            {"key": key, "answer": json.dumps(one)}
            for key, one in answers.items()
            if one["status"] not in TRANSIENT
        ]
        if not rows:
            return
        with self._database.transaction() as connection:
            own = [row["key"] for row in rows]
            for first in range(0, len(own), _AT_ONCE):  # another run may have come first
                part = own[first : first + _AT_ONCE]
                connection.execute(delete(ANSWERS).where(ANSWERS.c.key.in_(part)))
            connection.execute(insert(ANSWERS), rows)
