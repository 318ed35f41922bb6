"""One small scenario, planned once, and a notebook that holds it."""

from __future__ import annotations

import pytest
from nbformat import NotebookNode

import nest_core as nest
from nest_core.report.notebook import new_notebook, output_of, pin_cells
from nest_core.scenario import scenario_document


@pytest.fixture(scope="session")
def small_inputs() -> dict[str, object]:
    """The inputs of a plan that is found in a moment."""
    document, _ = scenario_document("llama2-7b-64-h100")
    overrides = {"search.tp": 1, "search.cp": 1, "search.zero": 1, "search.recompute": ["none"]}
    return {"document": document | {"baselines": {"names": []}}, "overrides": overrides}


@pytest.fixture(scope="session")
def small_answer(small_inputs) -> nest.Answer:
    """What a pin of these inputs computes."""
    return nest.plan(nest.load(small_inputs["document"], small_inputs["overrides"]))


@pytest.fixture
def small_notebook(small_inputs, small_answer) -> NotebookNode:
    """A note and a plan."""
    note = pin_cells("note", "Why", "*Small* first.", {})
    output = output_of(small_answer)
    plan = pin_cells("plan", "Llama 2", "On 64 devices.", small_inputs, output)
    return new_notebook(note + plan)
