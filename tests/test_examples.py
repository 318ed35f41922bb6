"""Every notebook of examples/ runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_eight_without_outputs():
    assert len(NOTEBOOKS) == 8
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert cells[0].source.startswith("# ")
        assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("application/vnd.plotly.v1+json" in one.get("data", {}) for one in shown) or (
        path.stem in {"06-launch", "08-predict-the-bubble"}
    )
