"""What is chosen for a stage: degrees, shapes and kernels."""

from dataclasses import dataclass
from typing import Literal

from nest_core.documents.errors import require
from nest_core.workload.operators import (
    PLAIN_LAUNCHES,
    WRITTEN_ONCE,
    Accumulation,
    Launching,
)

__all__ = ["Strategy"]

LEAST_CAPACITY = 0.01


@dataclass(frozen=True, slots=True)
class Strategy:
    """The sub-graph strategy of a stage and the shapes it works on.

    Parameters
    ----------
    tp : int
        Tensor-parallel degree.
    sp : bool
        Sequence parallelism, of the same degree.
    micro_batch : int
        Sequences.
    sequence : int
        Tokens per sequence.
    width : float
        Bytes per activation element.
    attention : {"flash", "unfused"}
        Scores stay on the chip, or are written out.
    fused : bool
        Whether neighbouring element-wise operators run as one kernel.
    joined : bool
        Whether projections of one module that read the same tensor run as one product.
    checkpoint : {"whole", "per_operator", "per_operator_narrow", "jax"}
        How recomputation runs: as Megatron-LM's, as PyTorch's
        (`nest_core.workload.recomputation`), there with products in 8 bits or not, or as JAX's,
        whose backward pass also keeps what derivatives in JAX read.
    cp : int
        Context-parallel degree; ranks take equal causal work (two chunks, one from each end).
    context : {"ring", "all_gather"}
        How ranks see each other's keys and values.
    ep : int
        Expert-parallel degree.
    etp : int
        Expert tensor degree: ranks that share an expert's width. 0: as ``tp``, Megatron-LM's
        default.
    imbalance : float
        Tokens of the busiest rank's experts over the mean, where experts are spread.
    capacity : float
        Slots of an expert over the mean, filled or not; 0: dropless.
    dispatch : {"all_to_all", "once_per_node", "hybrid"}
        What carries tokens to experts; only of an all-to-all they arrive sorted by rank.
    scaled_activations : bool
        Whether the probabilities of routing scale what an expert's last product reads, and not
        what it makes, which then need not be kept: the experts that a token went to are added up.
    accumulation : Accumulation
        Where gradients of weights are added up.
    launching : Launching
        How the host issues kernels.
    """

    tp: int = 1
    sp: bool = False
    micro_batch: int = 1
    sequence: int = 1
    width: float = 2.0
    attention: Literal["flash", "unfused"] = "flash"
    fused: bool = True
    joined: bool = True
    checkpoint: Literal["whole", "per_operator", "per_operator_narrow", "jax"] = "whole"
    cp: int = 1
    context: Literal["ring", "all_gather"] = "ring"
    ep: int = 1
    etp: int = 0
    imbalance: float = 1.0
    capacity: float = 0.0
    dispatch: Literal["all_to_all", "once_per_node", "hybrid"] = "all_to_all"
    scaled_activations: bool = False
    accumulation: Accumulation = WRITTEN_ONCE
    launching: Launching = PLAIN_LAUNCHES

    def __post_init__(self) -> None:
        if not self.etp:
            object.__setattr__(self, "etp", self.tp)
        for name in ("tp", "cp", "ep", "etp", "micro_batch", "sequence"):
            value = getattr(self, name)
            require(value >= 1, f"strategy.{name}", "must be at least 1", value, "correct it")
        require(
            self.imbalance >= 1.0,
            "strategy.imbalance",
            "must be at least 1",
            self.imbalance,
            "1 is balanced",
        )
        require(
            self.capacity == 0.0 or self.capacity >= LEAST_CAPACITY,
            "strategy.capacity",
            f"must be 0 or at least {LEAST_CAPACITY}",
            self.capacity,
            "0 is dropless",
        )
