"""What outlives the server: notebooks, fabrics, measurements by name; long addresses by key.

An SQLite file in the person's data folder, or the database that ``NEST_STUDIO_DATABASE`` names.
"""

from nest_studio.session.store.database import DATABASE_VARIABLE, Database, database_url
from nest_studio.session.store.documents import (
    DocumentKind,
    Documents,
    StoredAnswers,
    StoredLinks,
)
from nest_studio.session.store.notebooks import Conflict, NotebookEntry, Notebooks, SavedNotebook

__all__ = [
    "DATABASE_VARIABLE",
    "Conflict",
    "Database",
    "DocumentKind",
    "Documents",
    "NotebookEntry",
    "Notebooks",
    "SavedNotebook",
    "StoredAnswers",
    "StoredLinks",
    "database_url",
]
