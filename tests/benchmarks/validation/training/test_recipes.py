"""What published runs leave to their recipes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_tables import SUBSET

from benchmarks.validation.training.recipes import with_recipe
from nest_core.calibration.training.reading import read_runs
from nest_core.calibration.training.runs import MeasuredRow

ROWS, _ = read_runs((SUBSET / "train_measurements.csv").read_text(), "t.csv")
PLAIN = replace(ROWS[0].run, facts=(), recompute="", gradient_bytes=0.0, assumed=("recompute",))


def run(model: str, accelerator: str, precision: str, container: str, **changed: object) -> object:
    source = f"NVIDIA-NeMo/Megatron-Bridge @067f987 docs/x.md, {container} container, {model}"
    row = replace(
        ROWS[0],
        run=replace(
            PLAIN, source=source, model=model, accelerator=accelerator, precision_name=precision,
            **changed,
        ),
    )  # fmt: skip
    return with_recipe(row).run


def test_other_sources_are_as_they_were():
    for row in ROWS:
        if "Megatron-Bridge" not in row.run.source:
            assert with_recipe(row) is row


@pytest.mark.parametrize(
    ("container", "launch"),
    [("25.11", None), ("26.02.01", "layer_graphs"), ("26.06.01", "iteration_graphs")],
)
def test_containers_differ(container, launch):
    """By release, its patch left out."""
    found = run("Qwen3-235B-A22B", "GB200-NVL72", "MXFP8", container)
    assert found.fact("launch") == launch
    assert (found.recompute, found.gradient_bytes) == ("none", 2.0)


def test_what_a_row_states_goes_before():
    stated = {"recompute": "full", "assumed": (), "facts": (("dispatch", "once_per_node"),)}
    found = run("DeepSeek-V3", "GB200-NVL72", "MXFP8", "26.08", **stated, gradient_bytes=4.0)
    assert (found.recompute, found.gradient_bytes) == ("full", 4.0)
    assert found.fact("dispatch") == "once_per_node"


def test_a_dense_model_has_its_gradients_in_16_bits_and_no_more():
    found = run("Llama3-70B", "GB200-NVL72", "MXFP8", "26.08")
    assert isinstance(ROWS[0], MeasuredRow)
    assert (found.facts, found.recompute, found.gradient_bytes) == ((), "", 2.0)
