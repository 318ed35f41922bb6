"""The record of the work: notebooks of pinned results as Jupyter's ``.ipynb``.

`cells` makes what a pin adds, `ipynb` reads and writes the file, `parts` is what of a cell may be
shown, `report` the HTML for print.
"""

from nest_core.report.notebook.ipynb import (
    PinOutput,
    new_notebook,
    output_of,
    pin_cells,
    pinned,
    read_notebook,
    table_output,
    write_notebook,
)
from nest_core.report.notebook.report import cell_parts

__all__ = [
    "PinOutput",
    "cell_parts",
    "new_notebook",
    "output_of",
    "pin_cells",
    "pinned",
    "read_notebook",
    "table_output",
    "write_notebook",
]
