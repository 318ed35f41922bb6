"""The record of the work: notebooks of pinned results, what they show, and their exports.

Values and all edits are in `cells`, the JSON file in `document`, what a cell computes in `kinds`;
`report` writes HTML for print, `jupyter` a notebook that computes the same figures again.
"""

from nest_core.notebook.cells import Cell, CellKind, Notebook, Summary, add_cell, new_id
from nest_core.notebook.document import from_json, to_json

__all__ = [
    "Cell",
    "CellKind",
    "Notebook",
    "Summary",
    "add_cell",
    "from_json",
    "new_id",
    "to_json",
]
