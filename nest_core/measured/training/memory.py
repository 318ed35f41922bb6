"""Memory of a measured run: what its software adds to the costs, and what its source counted.

Nothing here reads an outcome but `counted_bytes`, which says how one is compared.

* **FSDP** (PyTorch). The optimizer steps on fp32 shards, which need no copies. Products in fp8
  (torchao) keep 16-bit activations.
* **FSDP2**, of it: as torchtitan trains. The loss is PyTorch's own in fp32, uncompiled:
  log-probabilities and their gradient stand in memory at once. What recomputation keeps is in
  `nest_core.workload.reruns`.
* **DeepSpeed** (ZeRO 1 and 2 of stacks whose ``deepspeed_zero`` says so). fp16 gradients are
  copied into a bucket of half a billion elements (``reduce_bucket_size``); the bf16 optimizer
  keeps 16-bit gradients beside the fp32 ones they are added up in.

What frameworks do is recalled from their code, not read again, but for DeepSpeed's bucket; which
of it is counted was decided with the measured rows in view (``docs/validation.md``, "Memory").
"""

from __future__ import annotations

from dataclasses import replace

from nest_core.costs import LayerTable, Memory, StateBytes
from nest_core.hardware.stacks import load_stack
from nest_core.measured.training.runs import Run
from nest_core.workload import Model, Strategy

__all__ = ["KINDS", "counted_bytes", "run_reserved_bytes", "run_state", "run_table"]

KINDS = {
    "allocated": "what tensors held",
    "unstated": "not stated; compared with what tensors hold",
    "reserved": "what PyTorch's allocator held",
    "device": "what the driver showed",
}
"""How sources count memory, by `Outcome.memory_kind`."""

BUCKET_ELEMENTS = 5e8
"""DeepSpeed's ``reduce_bucket_size`` unless configured (recalled)."""

EAGER_LOSS_BYTES = 6.0
"""Per logit, beside the fp32 log-probabilities and the 16-bit gradient that every loss has: the
fp32 gradient (4) and, when that is cast, 16-bit logits still held (2)."""


def counted_bytes(memory: Memory, kind: str) -> float:
    """A stage's bytes as a source counts them.

    Parameters
    ----------
    memory : Memory
    kind : str
        One of `KINDS`.
    """
    if kind == "device":
        return memory.total
    return memory.reserved if kind == "reserved" else memory.tensors


def run_state(run: Run, state: StateBytes) -> StateBytes:
    """Bytes per parameter in the run's software."""
    if run.framework == "fsdp":  # master weights and gradients are shards in fp32 already
        return replace(state, temporary=0.0)
    if _deepspeed(run) and run.precision == "bf16":
        return replace(state, own_gradients=2.0)
    return state


def run_reserved_bytes(run: Run, reserved: float) -> float:
    """Bytes taken before the first tensor, with the software's bucket."""
    bucket = _deepspeed(run) and run.precision == "fp16"
    return reserved + (2.0 * BUCKET_ELEMENTS if bucket else 0.0)


def run_table(run: Run, model: Model, strategy: Strategy, table: LayerTable) -> LayerTable:
    """Bytes per layer in the run's software."""
    if not run.fact("fsdp2"):
        return table
    working = table.working_bytes.copy()
    logits = strategy.micro_batch * strategy.sequence * model.vocabulary / (run.tp * run.cp)
    working[:, -1] += EAGER_LOSS_BYTES * logits
    return replace(table, working_bytes=working)


def _deepspeed(run: Run) -> bool:
    """Whether what ZeRO shards is DeepSpeed's."""
    return run.zero in (1, 2) and load_stack(run.stack).deepspeed_zero
