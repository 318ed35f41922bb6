"""The file of a notebook: an ``.ipynb`` of nbformat 4, whoever wrote it.

Notebooks of the studio's own JSON, which versions before this one kept, are read as ``.ipynb`` too.
"""

import json
import secrets
from collections.abc import Mapping
from typing import Any

import nbformat
from nbformat import NotebookNode

from nest_core.documents import MAX_FILE_BYTES, InputError, require, table
from nest_core.documents.schema import check_plain
from nest_core.report.notebook.cells import pin_cells
from nest_core.studies.parameters import renamed

__all__ = ["new_notebook", "read_notebook", "write_notebook"]

_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def new_notebook(cells: list[NotebookNode] | None = None) -> NotebookNode:
    """Return a notebook of these cells."""
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=cells or [], metadata=metadata)
    return notebook


def write_notebook(notebook: NotebookNode) -> str:
    """Return the text of a notebook's file.

    Raises
    ------
    InputError
        If it is longer than a file may be.
    """
    text: str = nbformat.v4.writes(notebook, ensure_ascii=False) + "\n"
    if (size := len(text.encode())) > MAX_FILE_BYTES:
        raise InputError(
            "notebook", f"must hold at most {MAX_FILE_BYTES:,} bytes", size, "split it"
        )
    return text


def read_notebook(text: str, where: str = "notebook") -> NotebookNode:
    """Return the notebook of a file's text, each of its cells with an id of its own.

    Parameters
    ----------
    text : str
    where : str
        What messages call the file.

    Raises
    ------
    InputError
        If it is too long, no JSON, or no notebook; the message says which part breaks what.
    """
    document = _document(text, where)
    if "nbformat" not in document and {"schema", "cells"} <= document.keys():
        return _converted(document, where)
    require(
        document.get("nbformat") == 4,
        where,
        "must be a Jupyter notebook of format 4",
        document.get("nbformat"),
        "save it anew in Jupyter",
    )
    try:
        _give_ids(document)
        nbformat.validate(nbformat.from_dict(document))
    except (AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        raise InputError(
            where,
            "must hold what the Jupyter notebook format asks for",
            " ".join(str(error).split("\n", 1)[0].split())[:200],
            "save it anew in Jupyter",
        ) from error
    notebook: NotebookNode = nbformat.v4.reads(json.dumps(document))
    return notebook


def _give_ids(document: dict[str, Any]) -> None:
    """Make a document one of minor version 5, whose cells have ids, each another one."""
    document["nbformat_minor"] = max(document["nbformat_minor"], nbformat.v4.nbformat_minor)
    seen: set[str] = set()
    for cell in document["cells"]:
        if cell.get("id", "") in {"", *seen}:
            cell["id"] = secrets.token_hex(4)
        seen.add(cell["id"])


def _document(text: str, where: str) -> dict[str, Any]:
    require(
        len(text.encode("utf-8", "replace")) <= MAX_FILE_BYTES,
        where,
        f"must hold at most {MAX_FILE_BYTES:,} bytes",
        "larger",
        "split it",
    )
    try:
        document = json.loads(text)
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InputError(where, "must be valid JSON", str(error), "save it anew") from error
    check_plain(where, document)
    if not isinstance(document, dict):
        raise InputError(where, "must be a JSON object", document, "save it as .ipynb")
    return document


def _converted(document: Mapping[str, Any], where: str) -> NotebookNode:
    """Return the notebook of the studio's earlier JSON.

    Figures come back when its cells are run.
    """
    cells: list[NotebookNode] = []
    try:
        for cell in document["cells"]:
            inputs = {key: renamed(value) for key, value in cell.get("inputs", {}).items()}
            added = pin_cells(cell["kind"], str(cell["title"]), str(cell.get("note", "")), inputs)
            if cell["kind"] != "note" and cell.get("summary"):
                added[-1].outputs = [_summary(cell["summary"])]
            cells += added
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            where,
            "must be a notebook of the studio, with whole cells",
            f"damaged ({error})",
            "bring another",
        ) from error
    return new_notebook(cells)


def _summary(summary: Mapping[str, Any]) -> NotebookNode:
    """Return the figures that an earlier notebook kept of a cell, a line each."""
    rows = [[name, str(value)] for row in summary["rows"] for name, value in row.items()]
    text = f"Pinned {summary['date']}\n{table(['figure', 'value'], rows)}"
    output: NotebookNode = nbformat.v4.new_output("display_data", data={"text/plain": text})
    return output
