"""Every notebook of examples/ runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
LARGE, SMALL = "llama3-70b-1024-h100", "llama2-7b-64-h100"


def test_there_are_eight_without_outputs():
    assert len(NOTEBOOKS) == 8
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert cells[0].source.startswith("# ")
        assert not any(cell.get("outputs") for cell in cells)


@pytest.fixture(scope="module")
def kernel():
    """One for all: starting it and importing takes longer than most notebooks do."""
    manager = KernelManager()
    manager.start_kernel(cwd=str(ROOT))
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("scenario", [SMALL, pytest.param(LARGE, marks=pytest.mark.check)])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.sampled(8)
def test_the_notebook_runs(path, scenario, kernel):
    """On a small fabric throughout; `make check` runs it as it is."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace(LARGE, scenario)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client = NotebookClient(notebook, km=kernel, timeout=120)
    client.execute()
    client.kc.stop_channels()  # or its sockets are a warning in some later test
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("application/vnd.plotly.v1+json" in one.get("data", {}) for one in shown) or (
        path.stem in {"06-launch", "08-predict-the-bubble"}
    )
