"""Published memory that follows from formulas: four GPTs of Korthikanti et al. 2022.

Their figures 1 and 7, as stored in calculon-ai/calculon ``calculon/llm/validation.py``: states of
the parameters, activations of the first pipeline stage, and what variants keep of a layer. They
are closed forms of the paper, not readings of a device; gradients are in fp32 (18 bytes per
parameter), attention is not fused, embedding and head are left out.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
       arXiv:2205.05198, table 3, figures 1 and 7.
.. [2] "NEST: Network- and Memory-Aware Device Placement for Distributed Deep Learning", table 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Point, in_flight, state_bytes
from nest_core.documents.units import GIB
from nest_core.workload import Layer, Model, Strategy, chain

__all__ = ["PRINTED", "TABLE_6", "Compared", "compared"]

TENSOR, SEQUENCE, VOCABULARY = 8, 2048, 51_200
FIGURES = (
    "parameters and optimizer, GiB",
    "activations, GiB",
    "activations with SP and selective, GiB",
    "SP, %",
    "selective, %",
    "SP and selective, %",
    "full, %",
)


@dataclass(frozen=True, slots=True)
class Printed:
    """One model of the paper: its configuration and `FIGURES`."""

    name: str
    blocks: int
    hidden: int
    heads: int
    micro_batch: int
    pp: int
    interleave: int
    figures: tuple[float, ...]


PRINTED = (
    Printed("22B", 48, 6144, 64, 4, 1, 1, (45.56, 59.25, 9.56, 66.84, 49.42, 16.18, 7.64)),
    Printed("175B", 96, 12288, 96, 1, 8, 3, (45.56, 66.84, 12.35, 62.04, 56.53, 18.49, 8.71)),
    Printed("530B", 105, 20480, 128, 1, 35, 3, (31.64, 114.02, 23.08, 58.31, 62.04, 20.27, 9.42)),
    Printed("1T", 128, 25600, 160, 1, 64, 1, (32.96, 131.25, 26.56, 58.31, 62.04, 20.27, 9.42)),
)

TABLE_6 = (
    ("GPT-3 175B", 10.1, 9.7),
    ("Llama 3 70B", 24.8, 22.9),
    ("Llama 2 7B", 9.8, 8.1),
    ("BERT-large", 0.21, 0.21),
)
"""Of NEST's paper [2]_: model, what Alpa's executables take and what the paper estimates, GB."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A printed figure and the same from this project's layers."""

    model: str
    figure: str
    printed: float
    predicted: float

    @property
    def error(self) -> float:
        """Relative and signed."""
        return self.predicted / self.printed - 1


def compared() -> Iterator[Compared]:
    """Every figure of every model."""
    for entry in PRINTED:
        for figure, printed, predicted in zip(FIGURES, entry.figures, _figures(entry), strict=True):
            yield Compared(entry.name, figure, printed, predicted)


def _figures(entry: Printed) -> tuple[float, ...]:
    plain, parallel = (_block(entry, sp=sp) for sp in (False, True))
    model = _model(entry)
    state = state_bytes("fp16", "adam", gradient_bytes=4.0)
    states = state.weights + state.gradients + state.optimizer
    layers = entry.blocks * _in_flight(entry) / entry.pp
    kept = plain.kept_bytes("none")
    parts = (
        parallel.kept_bytes("none"),
        plain.kept_bytes("selective"),
        parallel.kept_bytes("selective"),
        plain.kept_bytes("full"),
    )
    return (
        states * model.parameters / (TENSOR * entry.pp) / GIB,
        layers * kept / GIB,
        layers * parallel.kept_bytes("selective") / GIB,
        *(100.0 * part / kept for part in parts),
    )


def _in_flight(entry: Printed) -> float:
    """Micro-batches that the first stage holds, of as many as fill the pipeline."""
    schedule = "interleaved" if entry.interleave > 1 else "1f1b"
    point = Point(
        TENSOR,
        False,
        1,
        entry.pp,
        entry.micro_batch,
        0,
        ("tp", "cp", "dp", "pp"),
        schedule=schedule,
        interleave=entry.interleave,
    )
    return float(np.asarray(in_flight(point, 4 * entry.pp))[0])


def _model(entry: Printed) -> Model:
    return Model(
        entry.name,
        "gpt",
        blocks=entry.blocks,
        hidden=entry.hidden,
        heads=entry.heads,
        kv_heads=entry.heads,
        head_dim=entry.hidden // entry.heads,
        ffn=4 * entry.hidden,
        vocabulary=VOCABULARY,
        positions=SEQUENCE,
        tied=True,
    )


def _block(entry: Printed, *, sp: bool) -> Layer:
    strategy = Strategy(
        tp=TENSOR, sp=sp, micro_batch=entry.micro_batch, sequence=SEQUENCE, attention="unfused"
    )
    return next(layer for layer, _ in chain(_model(entry), strategy).runs if layer.kind == "block")
