"""Measured training runs: what was run, separate from what was measured.

A `Run` is a configuration, a `MeasuredOutcome` what came of it. Predictions are made from runs
alone, so nothing measured can enter them. Seconds, bytes and bytes/s.
"""

from dataclasses import dataclass
from typing import Literal

from nest_core.costs import Memory, Point
from nest_core.fabric import Fabric

__all__ = [
    "MEMORY_KINDS",
    "MeasuredOutcome",
    "MeasuredRow",
    "Run",
    "Unread",
    "counted_bytes",
]


@dataclass(frozen=True, slots=True)
class Run:
    """One training configuration, as its row states it.

    Parameters
    ----------
    id, source, model, accelerator, precision_name : str
        As written.
    layers, hidden, heads, kv_heads, ffn, vocabulary, sequence : int
        ``layers`` counts transformer blocks; ``ffn`` is one expert's width in a mixture.
    gated : bool
    experts, top_k : int
        1 and 1 for dense models.
    devices, per_node : int
        ``per_node`` 0: the accelerator's usual.
    intra_Bps, inter_Bps : float
        Per device and direction, inside and between nodes; 0: the accelerator's usual.
    point : Point
        Degrees, micro-batch, ZeRO stage, schedule and order of ranks; its schedule is one of
        `SCHEDULES`, or ``zero-bubble``, which none of them is sure to be.
    batch : int
    precision : {"fp32", "tf32", "bf16", "fp16", "fp8", "int8", "nvfp4"}
    optimizer : {"adam", "adam_bf16"}
    gradient_bytes : float
        Per gradient element; 0: usual for the precision.
    recompute : str
        As `nest_core.workload.recomputation` spells it; empty: unstated.
    framework : {"megatron", "fsdp", "deepspeed", "jax"}
    stack : str
        Of ``presets/stacks``: what software it ran.
    attention : {"flash", "unfused"}
    embedding_stage : bool
        Whether embedding and head count as a layer each where the pipeline is cut.
    overlap : tuple of bool
        Whether tensor-, pipeline- and data-parallel communication overlaps compute.
    head_dim, dense_layers : int
        Where the notes give them; 0: unstated.
    facts : tuple of (str, str)
        Others that the notes state (`nest_core.calibration.training.cells.NOTES`), and ``fsdp2``,
        the second generation of PyTorch's FSDP, where the run names it.
    quality, subset : str
        The table's own marks: how sure a row is, and ``calib15`` where it may be fitted.
    assumed : tuple of str
        Columns whose default was needed.
    fabric : Fabric, optional
        That it ran on, its first devices; else nodes as the columns have them.
    """

    id: str
    source: str
    model: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    gated: bool
    vocabulary: int
    sequence: int
    experts: int
    top_k: int
    accelerator: str
    devices: int
    per_node: int
    intra_Bps: float
    inter_Bps: float
    point: Point
    batch: int
    precision_name: str
    precision: str
    optimizer: str
    gradient_bytes: float
    recompute: str
    framework: str
    stack: str
    attention: Literal["flash", "unfused"]
    embedding_stage: bool
    overlap: tuple[bool, bool, bool]
    head_dim: int = 0
    dense_layers: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    quality: str = ""
    subset: str = ""
    assumed: tuple[str, ...] = ()
    fabric: Fabric | None = None

    def fact(self, name: str) -> str | None:
        """Return what the notes state, if they do."""
        return dict(self.facts).get(name)


@dataclass(frozen=True, slots=True)
class MeasuredOutcome:
    """What was measured.

    Parameters
    ----------
    seconds : float or None
        Of one iteration; None where the row gives none.
    memory_bytes : float or None
        On one device, as the source counts it.
    memory_kind : {"allocated", "reserved", "device", "unstated"}
        Held by tensors; with what the allocator keeps; with the driver's and the communication
        library's; or the row does not say.
    memory_stage : {"fullest", "first"}
        Whose it is, where the row says that it was read on the first stage only.
    """

    seconds: float | None = None
    memory_bytes: float | None = None
    memory_kind: str = "unstated"
    memory_stage: Literal["fullest", "first"] = "fullest"


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A run with its outcome."""

    run: Run
    outcome: MeasuredOutcome


@dataclass(frozen=True, slots=True)
class Unread:
    """A row that is not predicted, and why."""

    id: str
    reason: str


MEMORY_KINDS = {
    "allocated": "what tensors held",
    "unstated": "not stated; compared with what tensors hold",
    "reserved": "what PyTorch's allocator held",
    "device": "what the driver showed",
}
"""How sources count memory, by `Outcome.memory_kind`."""


def counted_bytes(memory: Memory, kind: str) -> float:
    """Return a stage's bytes as a source counts them.

    Parameters
    ----------
    memory : Memory
    kind : str
        One of `MEMORY_KINDS`.
    """
    return {"device": memory.total, "reserved": memory.reserved}.get(kind, memory.tensors)
