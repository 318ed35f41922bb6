"""Figures cut to a few cells, so that every name runs within seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.paper import cases, own

KEPT = {
    "figure5": {("llama3", 64, 1), ("llama3", 128, 1), ("gpt3", 1024, 1)},
    "figure6": {("bert", 256, 1), ("bert", 256, 8)},
    "figure7": {("mixtral", 128, 1), ("gpt3-35b", 128, 1)},
    "figure11": {("llama2", 512, 1), ("llama2", 512, 2)},
}


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the cells of `KEPT`, and two cells for algorithm 1."""
    for name, keys in KEPT.items():
        figure = cases.FIGURES[name]
        cells = tuple(cell for cell in figure.cells if cell.key in keys)
        assert len(cells) == len(keys)
        monkeypatch.setitem(cases.FIGURES, name, replace(figure, cells=cells))
    cells = tuple(cases.Cell(setup, "bert", 64, 1) for setup in ("tpuv4_fatTree", "h100_spineLeaf"))
    monkeypatch.setattr(own, "CELLS", cells)
