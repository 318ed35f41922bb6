"""Rows of studies, by the key of everything that they depend on."""

import itertools
import json
from collections.abc import Iterable, Mapping

from sqlalchemy import delete, insert, select

from nest_core.studies.rows import TRANSIENT, RowCache, StudyRow
from nest_studio.session.store.database import ANSWERS, Database

__all__ = ["StoredAnswers"]

_AT_ONCE = 500
"""Keys of one question: SQLite takes 999 parameters at least."""


class StoredAnswers(RowCache):
    """The rows of a database (`RowCache`); what is `TRANSIENT` is this run's alone.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def get(self, keys: Iterable[str]) -> dict[str, StudyRow]:
        """Return the stored rows among ``keys``."""
        rows_by_key: dict[str, StudyRow] = {}
        rest = iter(keys)
        while part := list(itertools.islice(rest, _AT_ONCE)):
            query = select(ANSWERS.c.key, ANSWERS.c.answer).where(ANSWERS.c.key.in_(part))
            with self._database.transaction() as connection:
                rows = connection.execute(query).all()
            rows_by_key |= {key: StudyRow.from_json(json.loads(answer)) for key, answer in rows}
            rows_by_key |= {key: self.rows[key] for key in part if key in self.rows}
        return rows_by_key

    def put(self, rows: Mapping[str, StudyRow]) -> None:
        """Store rows in one transaction; those that are `TRANSIENT` for this run alone."""
        self.rows |= {key: row for key, row in rows.items() if row.status in TRANSIENT}
        lasting = [
            {"key": key, "answer": json.dumps(row.to_json())}
            for key, row in rows.items()
            if row.status not in TRANSIENT
        ]
        if not lasting:
            return
        with self._database.transaction() as connection:
            row_keys = [row["key"] for row in lasting]
            for first in range(0, len(row_keys), _AT_ONCE):  # another run may have come first
                connection.execute(
                    delete(ANSWERS).where(ANSWERS.c.key.in_(row_keys[first : first + _AT_ONCE]))
                )
            connection.execute(insert(ANSWERS), lasting)
