"""Has MaxText trace its loss for eight chips, and writes what a layer more keeps on one of them.

None is there and nothing is compiled: libtpu describes the slice (it chooses the attention), and
`jax.ad_checkpoint` says what the forward pass saves.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {
    "DECOUPLE_GCLOUD": "TRUE",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
}

import jax
from jax._src.ad_checkpoint import saved_residuals
from maxtext.trainers.pre_train import train_compile

DEVICES = 8
GIVEN = {
    "run_name": "residuals", "skip_jax_distributed_system": True, "enable_checkpointing": False,
    "compile_topology": "v5p-16", "compile_topology_num_slices": 1,
    "ici_fsdp_parallelism": DEVICES,
}  # fmt: skip
VALUE_AND_GRAD = jax.value_and_grad


class Traced(Exception):
    """The loss was traced, with what the layers that are scanned keep."""


def _traced(loss: Any, **_: Any) -> Any:
    """Stand in for `jax.value_and_grad` of MaxText's loss."""

    def trace(parameters: Any, custom: Any, rest: Any, config: Any, data: Any) -> None:
        shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
            (parameters, custom, rest, data),
        )
        saved = saved_residuals(lambda p, c, r, d: loss(p, c, r, config, d)[0], *shapes)
        raise Traced(
            sum(
                value.size * value.dtype.itemsize
                for value, source in saved
                if source.startswith("output of scan")
            )
        )

    return trace


def kept(case: dict[str, Any], layers: int) -> int:
    """Return the bytes that scanned layers keep on all devices."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        fields = GIVEN | {
            "base_output_directory": folder,
            "base_num_decoder_layers": layers,
            **case["fields"],
        }
        words = [f"{key}={value}" for key, value in fields.items()]
        try:
            train_compile.is_oom(["train", case["file"], *words])
        except Traced as traced:
            return int(traced.args[0])
    raise RuntimeError("the loss was not traced")


if __name__ == "__main__":
    jax.value_and_grad = _traced
    folder = Path(sys.argv[1])
    answers = []
    for case in json.loads((folder / "cases.json").read_text()):
        fewer, more = (kept(case, case["dense_layers"] + count) for count in (1, 2))
        answers.append((more - fewer) / DEVICES)
    (folder / "answers.json").write_text(json.dumps(answers))
