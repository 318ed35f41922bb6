"""One small scenario, computed once, and a notebook that holds it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nest_core.notebook import Cell, Notebook
from nest_core.notebook.kinds import Shown, compute, summarise
from nest_core.scenario import scenario_document

NOW = datetime(2026, 11, 22, 12, 4, tzinfo=UTC)


@pytest.fixture(scope="session")
def noon() -> datetime:
    """When everything is pinned."""
    return NOW


@pytest.fixture(scope="session")
def small_inputs() -> dict[str, object]:
    """The inputs of a plan that is found in a moment."""
    document, _ = scenario_document("llama2-7b-64-h100")
    return {"document": document, "overrides": {"workload.global_batch_sequences": 512}}


@pytest.fixture(scope="session")
def small_shown(small_inputs) -> Shown:
    """What a cell of these inputs shows."""
    return compute("plan", small_inputs)


@pytest.fixture(scope="session")
def study_inputs(small_inputs) -> dict[str, dict[str, object]]:
    """Inputs of small studies, by kind."""
    tight = {**small_inputs["overrides"], "fabric.clos.oversubscription.0": 4.0}
    entries = [
        {"name": "1:1", **small_inputs},
        {"name": "4:1", "document": small_inputs["document"], "overrides": tight},
    ]
    parameter = {"parameter": "zero", "values": [0, 1]}
    return {
        "sweep": {**small_inputs, "x": parameter, "y": None},
        "comparison": {"entries": entries, "budget": None, "failures": False},
        "ratios": {
            **small_inputs,
            "mix": [{"model": "llama2-7b", "share": 3.0}, {"model": "qwen2-7b", "share": 1.0}],
            "loss": 0.002,
        },
    }


@pytest.fixture(scope="session")
def study_shown(study_inputs) -> dict[str, Shown]:
    """What cells of these studies show, by kind."""
    return {kind: compute(kind, inputs) for kind, inputs in study_inputs.items()}


@pytest.fixture
def small_notebook(small_inputs, small_shown) -> Notebook:
    """A note and a plan."""
    return Notebook(
        "Seven billion",
        (
            Cell("n", "note", "Why", "*Small* first."),
            Cell(
                "p", "plan", "Llama 2", "On 64 devices.", small_inputs, summarise(small_shown, NOW)
            ),
        ),
        "2026-11-22T12:00:00+00:00",
        "2026-11-22T12:04:00+00:00",
    )
