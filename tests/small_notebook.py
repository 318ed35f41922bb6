"""A notebook of one small plan."""

from __future__ import annotations

from nbformat import NotebookNode

import nest_core as nest
from nest_core.report.notebook import new_notebook, output_of, pin_cells
from nest_core.scenario import scenario_document

__all__ = ["small_inputs", "small_notebook", "small_plan"]


def small_inputs() -> dict[str, object]:
    """Return the inputs of a plan that is found in a moment."""
    document, _ = scenario_document("llama2-7b-64-h100")
    overrides = {"search.tp": 1, "search.cp": 1, "search.zero": 1, "search.recompute": ["none"]}
    return {"document": document | {"baselines": {"names": []}}, "overrides": overrides}


def small_plan(inputs: dict[str, object]) -> nest.Answer:
    """Return what a pin of these inputs computes."""
    return nest.plan(nest.load(inputs["document"], inputs["overrides"]))


def small_notebook(inputs: dict[str, object], plan: nest.Answer) -> NotebookNode:
    """Return a note and a plan."""
    note = pin_cells("note", "Why", "*Small* first.", {})
    cells = pin_cells("plan", "Llama 2", "On 64 devices.", inputs, output_of(plan))
    return new_notebook(note + cells)
