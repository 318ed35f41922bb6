"""How the cells of a table of measured training runs are read: every rule, as a named table.

Sources write the same fact in many ways (``1.0``, ``BF16``, ``FP8(current-scaling)``,
``fsdp_full_shard(zero3)``). A rule is a list of patterns, searched without regard to case; the
first that is found decides. `NOTES` holds what may be read from the free text of a row: facts of
its configuration, never anything measured.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nest_core.documents import figure_of

__all__ = [
    "FRAMEWORKS",
    "MEMORY_KIND",
    "MEMORY_STAGE",
    "MEMORY_UNIT",
    "NOTES",
    "OPTIMIZERS",
    "ORDERS",
    "PRECISIONS",
    "RECOMPUTATIONS",
    "ROWWISE",
    "ZERO",
    "NotNumber",
    "decide",
    "figure",
    "flag",
    "positive_integer",
    "stated",
]

_Kind = TypeVar("_Kind")
Rules = Sequence[tuple[str, str]]

PRECISIONS: Rules = (
    ("nvfp4", "nvfp4"),
    ("int8", "int8"),
    (
        "fp8|float8",
        "fp8",
    ),  # hybrid, tensorwise, current or block scaling: fp8 products; see `ROWWISE`
    ("bf16", "bf16"),  # also "bf16/fp16-mixed", where the source does not say which of them
    ("fp16", "fp16"),
    ("tf32", "tf32"),
    ("fp32", "fp32"),
)
"""Column ``precision``: what matrix products are computed in."""

ROWWISE: Rules = ((r"row[- _]?wise", "yes"),)
"""Columns ``precision`` and ``notes``: fp8 products scaled row by row, which are not priced.

Their products are other kernels than those of one scale per tensor, and every operand is cast
twice, along its rows and along its columns. No fact that this project has says what either takes:
torchao's own table (pytorch/ao, docs/source/workflows/training.md) has whole steps only.
"""

ORDERS: Rules = tuple(
    (rf"(ranks?|rank[ _]order)\D{{0,20}}\b{'-'.join(order)}\b", " ".join(order))
    for order in (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))
)
"""Column ``notes``: along which axes ranks are numbered, innermost first; column ``rank_order``
holds the order alone."""

OPTIMIZERS: Rules = (
    ("pure", "adam_bf16"),  # weights, gradients and both moments in 16 bits, no master copy
    ("", "adam"),
)
"""Column ``precision``: which states the optimizer keeps."""

ZERO: Rules = (
    ("zero-?3", "3"),
    ("zero-?2", "2"),
    ("zero-?1", "1"),
    ("distributed_optimizer", "1"),  # Megatron-LM's name of ZeRO 1
    ("fsdp", "3"),
    ("none|^$", "0"),
)
"""Column ``dist_opt_or_zero``: the ZeRO stage."""

FRAMEWORKS: Rules = (
    ("jax|maxtext|tpu", "jax"),  # what runs on TPUs is compiled by XLA
    ("fsdp", "fsdp"),
    ("deepspeed|zero-?3", "deepspeed"),
    ("", "megatron"),
)
"""Columns ``dist_opt_or_zero``, ``notes`` and ``accelerator``: the kind of framework."""

RECOMPUTATIONS: Rules = (("full", "full"), ("selective", "selective"), ("none", "none"))
"""Column ``recompute``; an empty cell states nothing."""

NOTES: Mapping[str, Rules] = {
    "schedule": (
        (r"schedule=zb-h1", "zb_h1"),
        (r"schedule=zb-1p", "zb_1p"),
        (r"schedule=zb-2p", "zb_2p"),
        (r"schedule=zb", "zero-bubble"),
        (r"interleaved 1f1b|1f1b-interleaved", "interleaved"),
        (r"schedule=1f1b|\b1f1b\b", "1f1b"),
    ),
    "attention": (("flash", "flash"),),
    "gradients": (("bf16 grad reduce", "2"), (r"fp32 grad accum", "4")),
    "embedding stage": (
        (r"embedding as own pp layer|one layer fewer|embedding/loss take a slot", "yes"),
    ),
    "tied": (("tied embeddings", "yes"),),
    "activation": (("squared-relu", "relu2"),),
    "position": (("alibi", "alibi"),),
    "attention kind": ((r"\bmla\b", "mla"), ("parallel layers", "parallel")),
    "routing": (("dropless", "dropless"), ("capacity.factor 1|token-drop", "capacity")),
    "compiled": (("compile", "yes"), (r"\beager\b", "no")),
    "in-network reduction": (
        (r"no (ib )?sharp|\bsharp[:=]? ?(no|off|n/a|0|false)\b", "no"),
        (r"\bsharp\b", "yes"),
    ),
    "launch": (
        (r"graphs: whole iteration|full.iteration.(cuda.)?graph", "iteration_graphs"),
        (r"\bgraphs?: .*(attn|moe_router)", "layer_graphs"),
    ),
    "dispatch": ((r"hybrid-?ep", "hybrid"), ("deepep", "once_per_node")),
    "expert overlap": ((r"overlap_moe_expert_parallel_comm|moe_a2a_overlap", "yes"),),
    "tensor overlap": (
        (r"async ?tp", "yes"),
        (r"vanilla tp|no tp\S* overlap", "no"),
        (r"\btp\S* (comm )?overlap on", "yes"),
    ),
    "pipeline overlap": (
        (r"no \S*pp\S* overlap", "no"),
        (r"\bpp\S* (comm )?overlap on|/pp\S* (comm )?overlap on", "yes"),
    ),
    "data overlap": (
        (r"no \S*dp overlap", "no"),
        (r"\bdp\S* (comm )?overlap on", "yes"),
    ),
}
"""Column ``notes``: fact, and the words that state it; in-network reduction also in column
``sharp``."""

MEMORY_UNIT: Rules = (("gib", "GiB"), ("", "GB"))
"""Column ``notes``: the unit of column ``mem_GB_per_gpu``."""

MEMORY_KIND: Rules = (
    ("allocated", "allocated"),  # what tensors held at once
    ("nvidia-smi", "device"),  # with what the allocator and the driver kept
    ("reserved|torchtitan", "reserved"),  # with the allocator's; torchtitan prints that peak
    ("", "unstated"),
)
"""Columns ``notes`` and ``source``: what was counted as memory in use."""

MEMORY_STAGE: Rules = ((r"rank 0 \(first stage\)", "first"), ("", "fullest"))
"""Column ``notes``: on which stage it was counted."""


class NotNumber(ValueError):
    """A cell of a configuration that should be a number and is not one."""


def decide(rules: Rules, text: str) -> str | None:
    """Return what the first rule that is found in a text says; None if none is.

    Examples
    --------
    >>> decide(PRECISIONS, "FP8(current-scaling)"), decide(ZERO, "fsdp_shard_grad_op(zero2)")
    ('fp8', '2')
    """
    folded = text.strip().lower()
    return next((value for pattern, value in rules if re.search(pattern, folded)), None)


def stated(fact: str, notes: str) -> str | None:
    """Return a fact of `NOTES`, if the text states it.

    Examples
    --------
    >>> stated("tensor overlap", "BF16 grad reduce; DP/PP/TP overlap on; weak scaling")
    'yes'
    """
    return decide(NOTES[fact], notes)


def figure(text: str) -> float | None:
    """Return a number; None for an empty cell and for ``nan``.

    Raises
    ------
    NotNumber
        For anything else that is no finite number.
    """
    cell = text.strip()
    if not cell or cell.lower() in ("nan", "none", "null", "-"):
        return None
    value = figure_of(cell)
    if not math.isfinite(value):
        raise NotNumber(cell)
    return value


def _figure_as(
    text: str, holds: Callable[[float], bool], kind: Callable[[float], _Kind]
) -> _Kind | None:
    value = figure(text)
    if value is None:
        return None
    if not holds(value):
        raise NotNumber(text.strip())
    return kind(value)


def positive_integer(text: str, max_value: int = 10**9) -> int | None:
    """Return a positive whole number (``8``, ``8.0``); None for an empty cell.

    Raises
    ------
    NotNumber
    """
    return _figure_as(text, lambda value: value == int(value) and 1 <= value <= max_value, int)


def flag(text: str) -> bool | None:
    """Return whether a cell says ``1.0`` or ``true``, ``0.0`` or ``false``; None for an empty cell.

    Raises
    ------
    NotNumber
    """
    truth = {"true": True, "yes": True, "false": False, "no": False}.get(text.strip().lower())
    return _figure_as(text, (0.0, 1.0).__contains__, bool) if truth is None else truth
