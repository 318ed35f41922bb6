"""What a block keeps under JAX, against what `jax.vjp` and `jax.checkpoint` save.

``tests/data/compiler/residuals.csv``: bytes of `jax.ad_checkpoint`'s saved residuals of a block of
`nest_core.calibration.compiler.program`, weights and tables of angles left out (jax 0.10.2);
``selective`` is the policy ``dots_with_no_batch_dims_saveable``.
"""

import csv
from pathlib import Path

import pytest

from nest_core.workload import Strategy, chain
from nest_core.workload.model_files import load_model

FILE = Path(__file__).parents[1] / "data" / "compiler" / "residuals.csv"
ROWS = list(csv.DictReader(FILE.read_text().splitlines()))


def kept(model, recompute, **fields):
    layers = chain(model, Strategy(**fields)).runs
    (block,) = (layer for layer, _ in layers if layer.kind == "block")
    return block.kept_bytes(recompute)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['recompute']}")
def test_a_block_keeps_what_jax_saves(row):
    model = load_model(row["model"], Path())
    shape = {"micro_batch": int(row["micro_batch"]), "sequence": int(row["sequence"])}
    ours = kept(model, row["recompute"], checkpoint="jax", **shape)
    if model.family == "gpt" and row["recompute"] == "none":  # the program leaves dropout out
        ours -= 2.0 * shape["micro_batch"] * shape["sequence"] * model.hidden
    assert ours == pytest.approx(float(row["bytes"]), rel=0.01)


def test_a_llama_block_keeps_nearly_twice_what_autograd_saves():
    model = load_model("llama2-7b", Path())
    shape = {"micro_batch": 2, "sequence": 4096}
    input_bytes = 2.0 * 2 * 4096 * model.hidden
    assert kept(model, "none", **shape) / input_bytes == pytest.approx(16.1, abs=0.05)
    assert kept(model, "none", checkpoint="jax", **shape) / input_bytes == pytest.approx(
        29.2, abs=0.1
    )


@pytest.mark.parametrize("recompute", ["none", "selective"])
@pytest.mark.parametrize("tp", [1, 4])
def test_what_derivatives_keep_is_divided_like_what_they_are_of(tp, recompute):
    model = load_model("llama2-7b", Path())
    whole = kept(model, recompute, checkpoint="jax", sequence=2048)
    part = kept(model, recompute, checkpoint="jax", sequence=2048, tp=tp, sp=tp > 1)
    assert part == pytest.approx(whole / tp, rel=1e-6)


def test_what_sequence_parallelism_reduced_is_kept_as_a_ranks_part():
    """Of PyTorch's selective checkpoints too, whose list has the reduced tensors."""
    model = load_model("llama3-8b", Path())
    whole, part = (
        kept(model, "selective", checkpoint="per_operator", sequence=2048, tp=4, sp=sp)
        for sp in (False, True)
    )
    assert part < whole
