"""What training software holds on a device beside the tensors that every implementation has.

* **FSDP** (PyTorch's and those like it). The optimizer steps on fp32 shards of the gradients, which
  need no copies. Products in fp8 (torchao) keep 16-bit inputs for backward.
* **Eager loss** (torchtitan, NeMo AutoModel). The loss is PyTorch's own in fp32, uncompiled:
  log-probabilities and their gradient stand in memory at once.
* **DeepSpeed's ZeRO 1 and 2**. fp16 gradients are copied into a bucket of half a billion elements
  (``reduce_bucket_size``); the bf16 optimizer keeps 16-bit gradients beside the fp32 ones that
  they are added up in.

What frameworks do is recalled from their code, not read again, but for DeepSpeed's bucket; which
of it counts was decided with measured rows in view (``docs/validation.md``, "Memory").

* **XLA** (JAX's stacks). The program owns its device: addresses are given out when it is compiled,
  and nothing is lost between them. The gradients of a micro-batch are a tree of their own, whole
  for all layers of a stage, before they are added to the fp32 sums; they are reduced as they
  are, in 16 bits, after every micro-batch under any ZeRO. What a scanned layer keeps lies in one
  stack over all layers, and is copied out of it when its backward runs. Read off programs compiled
  for TPUs (libtpu 0.0.42.1, ``benchmarks/outside/tpu.py``).
"""

from dataclasses import dataclass

__all__ = ["FRAGMENTATION", "PLAIN_MEMORY", "MemoryRules"]

_FP16_BYTES = 2.0

_BUCKET_BYTES = 5e8 * _FP16_BYTES
"""DeepSpeed's ``reduce_bucket_size`` unless configured (recalled), in fp16."""

FRAGMENTATION = 0.055
"""Share of what tensors hold that PyTorch's allocator holds beyond it.

Fifteen runs of Megatron-LM on B200 state both peaks (MooreThreads/SimuMax@4dcaae5,
``docs/b200/b200_release_v1.2_summary.md``): the allocator's is 2.9 to 9.3 % above the tensors',
5.5 % on average. Validation against them counts what tensors held, which this share does not enter.
"""

_EAGER_LOSS_BYTES = 6.0
"""Per logit, beside the fp32 log-probabilities and the 16-bit gradient that every loss has: the
fp32 gradient (4) and, when that is cast, 16-bit logits that still stand (2)."""


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """The memory rules of a software stack.

    Parameters
    ----------
    sharded_masters : bool
        Whether the optimizer steps on fp32 shards of gradients, as FSDP does.
    eager_loss : bool
        Whether the loss is PyTorch's own, uncompiled.
    deepspeed_zero : bool
        Whether ZeRO 1 and 2 are DeepSpeed's.
    xla : bool
        Whether XLA compiles the whole step.
    """

    sharded_masters: bool = False
    eager_loss: bool = False
    deepspeed_zero: bool = False
    xla: bool = False

    @property
    def fragmentation(self) -> float:
        """Share of what tensors hold that the allocator holds beyond it."""
        return 0.0 if self.xla else FRAGMENTATION

    @property
    def loss_bytes_per_logit(self) -> float:
        """Bytes per logit that the loss holds beside what every loss holds."""
        return _EAGER_LOSS_BYTES if self.eager_loss else 0.0

    def input_bytes(self, multiplied: float, stored: float) -> float:
        """Return bytes per element of inputs that projections keep for backward.

        Parameters
        ----------
        multiplied, stored : float
            Bytes of an element as products multiply it, and as activations are stored.
        """
        return stored if self.sharded_masters else multiplied

    def bucket_bytes(self, precision: str) -> float:
        """Return bytes of the bucket of gradients under ZeRO 1 and 2."""
        return _BUCKET_BYTES if self.deepspeed_zero and precision == "fp16" else 0.0

    @property
    def second_gradient_stages(self) -> tuple[int, ...]:
        """ZeRO stages under which gradients stand beside those that they are added up in."""
        return (0, 1, 2, 3) if self.xla else (1, 2)

    def second_gradient_bytes(self, precision: str, weight_bytes: float) -> float:
        """Return bytes per parameter of gradients beside those that they are added up in."""
        if self.xla:
            return weight_bytes
        return _FP16_BYTES if self.deepspeed_zero and precision == "bf16" else 0.0


PLAIN_MEMORY = MemoryRules()
"""Software that holds nothing of its own."""
