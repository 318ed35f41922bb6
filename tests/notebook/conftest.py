"""One small scenario, planned once, and a notebook that holds it."""

from __future__ import annotations

import pytest
import small_notebook as small
from nbformat import NotebookNode

import nest_core as nest


@pytest.fixture(scope="session")
def small_inputs() -> dict[str, object]:
    """The inputs of a plan that is found in a moment."""
    return small.small_inputs()


@pytest.fixture(scope="session")
def small_answer(small_inputs) -> nest.Answer:
    """What a pin of these inputs computes."""
    return small.small_plan(small_inputs)


@pytest.fixture
def small_notebook(small_inputs, small_answer) -> NotebookNode:
    """A note and a plan."""
    return small.small_notebook(small_inputs, small_answer)
