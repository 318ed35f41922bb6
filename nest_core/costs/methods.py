"""What a stage holds under a method of full recomputation, layer by layer.

Blocks are counted from the first layer of a stage in one piece on. ``block:n`` keeps the inputs of
the first ``n`` and everything of the others. ``uniform:n`` keeps the input of every n-th; its
backward runs ``n`` forward passes again before it starts, so that all they keep is there at once.
Layers that are no blocks are never run again. Source: NVIDIA/Megatron-LM@002526d,
``_checkpointed_forward`` in ``megatron/core/transformer/transformer_block.py``.
"""

from nest_core.documents.compiled import compiled
from nest_core.network import FloatArray, IntArray

__all__ = ["KEPT", "PEAK", "grow"]

KEPT, PEAK, _ALIVE, _COUNT = range(4)
"""Of a stage's state: bytes kept per micro-batch, the most that lives while a layer runs, what of
it the open chunk has made again, and how many blocks there are."""


@compiled
def grow(
    state: FloatArray,
    layer: int,
    kept_bytes: FloatArray,
    peak: FloatArray,
    again: IntArray,
    head: int,
    chunk: int,
) -> None:
    """Add a layer to a stage.

    Parameters
    ----------
    state : (4,)
        Zeros before the first layer.
    kept_bytes : (2, L + 1), peak : (2, L)
        As of `nest_core.costs.StageMemory`: nothing recomputed, and full.
    again : (L + 1,)
        Blocks before each layer.
    head : int
        Where the layers end that are run again one by one; of no matter with a ``chunk``.
    chunk : int
        Layers that are run again at once, or 0.
    """
    full = 1 if layer < head and chunk == 0 else 0
    if chunk > 0 and again[layer + 1] > again[layer]:
        if state[_COUNT] % chunk == 0:
            entry = kept_bytes[1, layer + 1] - kept_bytes[1, layer]
            state[KEPT] += entry
            state[_ALIVE] = -entry
        state[_ALIVE] += kept_bytes[0, layer + 1] - kept_bytes[0, layer]
        state[PEAK] = max(state[PEAK], state[_ALIVE] + peak[0, layer])
        state[_COUNT] += 1.0
    else:
        state[KEPT] += kept_bytes[full, layer + 1] - kept_bytes[full, layer]
        state[PEAK] = max(state[PEAK], peak[full, layer])
