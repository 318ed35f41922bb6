"""The record of the work: notebooks of pinned results, what they show, and their exports.

Values and edits are in `cells`, the JSON file in `document`, what a cell computes in `kinds`;
`report` writes HTML for print, `jupyter` a notebook that computes the same figures again.
"""

from nest_core.notebook.cells import (
    Cell,
    CellKind,
    Notebook,
    Summary,
    add_cell,
    changes,
    delete_cell,
    duplicate_cell,
    move_cell,
    new_id,
    rename,
    replace_cell,
)
from nest_core.notebook.document import from_json, to_json

__all__ = [
    "Cell",
    "CellKind",
    "Notebook",
    "Summary",
    "add_cell",
    "changes",
    "delete_cell",
    "duplicate_cell",
    "from_json",
    "move_cell",
    "new_id",
    "rename",
    "replace_cell",
    "to_json",
]
