"""Layer tables from a model on an accelerator: operators become seconds and bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from nest_core.costs.problem import RECOMPUTE, LayerTable, StateBytes
from nest_core.hardware import Accelerator, backward_seconds, forward_seconds
from nest_core.workload import Chain, Collective, Layer, Model, Strategy, chain

__all__ = ["OPTIMIZERS", "element_bytes", "layer_table", "model_flops", "state_bytes"]

OPTIMIZERS = ("adam", "adam_bf16", "adam_8bit", "sgd")


def element_bytes(precision: str) -> float:
    """Bytes of one activation or weight element."""
    return 4.0 if precision in ("fp32", "tf32") else 2.0


def state_bytes(precision: str, optimizer: str) -> StateBytes:
    """Bytes per parameter of weights, gradients and optimizer states.

    Mixed precision keeps an fp32 master copy beside the 16-bit weights. bf16 and fp8 training
    accumulates gradients in fp32, fp16 training keeps them in 16 bits (Megatron-LM). Adam has
    two moments in fp32, bf16 (``adam_bf16``, which also drops the master copy) or 8 bits
    (Dettmers et al. 2022).
    """
    weights = element_bytes(precision)
    mixed = weights == 2.0
    gradients = 4.0 if precision in ("fp32", "tf32", "bf16", "fp8") else 2.0
    master = 4.0 if mixed else 0.0
    if optimizer == "adam_bf16":
        return StateBytes(weights, 2.0 if mixed else 4.0, 4.0)
    moments = {"adam": 8.0, "adam_8bit": 2.0, "sgd": 0.0}[optimizer]
    return StateBytes(weights, gradients, master + moments)


@lru_cache(maxsize=4096)
def layer_table(
    model: Model, strategy: Strategy, accelerator: Accelerator, precision: str
) -> LayerTable:
    """Per-layer figures of a model under a strategy on an accelerator."""
    layers = chain(model, strategy)
    rows = [_row(layer, accelerator, precision) for layer, _ in layers.runs]
    counts = [count for _, count in layers.runs]
    columns = np.repeat(np.array(rows), counts, axis=0).T
    boundary = np.zeros(layers.layers + 1)
    boundary[1:-1] = np.repeat([layer.output_bytes for layer, _ in layers.runs], counts)[:-1]
    return LayerTable(
        compute_s=columns[0],
        replay_s=columns[1:4],
        tp_halves=columns[4],
        tp_bytes=columns[5],
        tp_replay_halves=columns[6:9],
        tp_replay_bytes=columns[9:12],
        parameters=columns[12],
        tied_parameters=layers.runs[-1][0].tied_parameters,
        kept_bytes=columns[13:16],
        working_bytes=columns[16:19],
        boundary_bytes=boundary,
    )


def _row(layer: Layer, accelerator: Accelerator, precision: str) -> list[float]:
    forward = [forward_seconds(op, accelerator, precision) for op in layer.operators]
    backward = sum(backward_seconds(op, accelerator, precision) for op in layer.operators)
    core = sum(seconds for op, seconds in zip(layer.operators, forward, strict=True) if op.core)
    again = (0.0, core, sum(forward)) if layer.recomputable else (0.0, 0.0, 0.0)
    once = _halves(layer.collectives, backward=False)
    back = _halves(layer.collectives, backward=True)
    repeated = once if layer.recomputable else (0.0, 0.0)
    kept = [layer.kept_bytes(name) for name in RECOMPUTE]
    return [
        sum(forward) + backward,
        *again,
        once[0] + back[0],
        once[1] + back[1],
        0.0, 0.0, repeated[0],
        0.0, 0.0, repeated[1],
        layer.parameters,
        *kept,
        *(kept[0] - size for size in kept),
    ]  # fmt: skip


def _halves(collectives: tuple[Collective, ...], *, backward: bool) -> tuple[float, float]:
    """Number of halves and their bytes; an all-reduce is a reduce-scatter and an all-gather."""
    number = size = 0.0
    for call in collectives:
        times = (call.backward if backward else call.forward) * (
            2 if call.op == "all_reduce" else 1
        )
        number += times
        size += times * call.bytes
    return number, size


def model_flops(model: Model, sequence: int) -> float:
    """Forward and backward FLOP of one sequence, nothing recomputed, for MFU.

    Attention counts the whole score matrix, as Megatron-LM's figures do, and backward twice
    the forward pass.
    """
    layers: Chain = chain(
        replace(model, causal=False),
        Strategy(1, False, 1, sequence, attention="flash"),
    )
    forward = sum(op.flops * count for layer, count in layers.runs for op in layer.operators)
    return 3.0 * forward
