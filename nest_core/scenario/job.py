"""A training job: model, device, batch and software, without any plan or fabric.

A scenario (`nest_core.scenario`) is a job and a search space; a measured run
(`nest_core.calibration.training`) is a job and the plan that was run. `Job.problem_on` is the only
function that makes a `Problem` of either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self

from nest_core.costs import (
    IDEAL_OVERLAP,
    NO_OVERLAP,
    LayerTable,
    Overlap,
    Problem,
    StateBytes,
    dispatch_of,
    element_bytes,
    keeps_transposed,
    layer_table,
    model_flops,
    software_of,
    spread_of,
    state_bytes,
)
from nest_core.fabric import Fabric
from nest_core.hardware import Accelerator, Stack, hidden_shares, hiding, load_family
from nest_core.network import Network, collapse, reduce_scatters
from nest_core.workload import RECOMPUTE, Accumulation, Launching, Model, Strategy, check_experts

__all__ = ["Job", "overlap_of"]


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained, on what, in which precision and with which software.

    Parameters
    ----------
    accelerator : Accelerator
        As it is under the stack (`nest_core.hardware.stacks.under`).
    stack : Stack
        The software: its kernels, how it recomputes, and its memory rules.
    model : Model
    sequence, batch : int
        Tokens per sequence, sequences per iteration.
    precision, optimizer : str
    attention : {"flash", "unfused"}
    context : {"ring", "all_gather"}
        How context-parallel ranks exchange keys and values.
    imbalance, capacity : float
        See `Strategy`.
    overlap : {"none", "ideal", "fitted"}
        ``fitted``: the fractions of the accelerator's family.
    gradient_bytes : float
        Per gradient element; 0: usual for precision and optimizer (`state_bytes`).
    pad_batch : bool
        See `Problem`.
    recomputations : tuple of str
        What stages may run again in backward.
    dispatch : {"all_to_all", "once_per_node", "hybrid"}
        How tokens reach experts: a copy per expert, per host, or per node (`Dispatch`).
    expert_overlap : bool
        See `Overlap`.
    collectives : str
        The algorithm of reduce-scatters, all-gathers and all-reduces; ``library``: the fastest.
    """

    accelerator: Accelerator
    stack: Stack
    model: Model
    sequence: int
    batch: int
    precision: str
    optimizer: str
    attention: Literal["flash", "unfused"] = "flash"
    context: Literal["ring", "all_gather"] = "ring"
    imbalance: float = 1.0
    capacity: float = 0.0
    overlap: Literal["none", "ideal", "fitted"] = "fitted"
    gradient_bytes: float = 0.0
    pad_batch: bool = False
    recomputations: tuple[str, ...] = RECOMPUTE
    dispatch: Literal["all_to_all", "once_per_node", "hybrid"] = "all_to_all"
    expert_overlap: bool = False
    collectives: str = "library"

    def strategy(self, tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> Strategy:
        """Return the sub-graph strategy of a stage with these degrees."""
        return Strategy(
            tp=tp,
            sp=sp,
            micro_batch=micro_batch,
            sequence=self.sequence,
            width=element_bytes(self.precision),
            attention=self.attention,
            fused=self.stack.fused,
            joined=self.stack.joined,
            checkpoint=self.stack.checkpointing(self.precision),
            cp=cp,
            context=self.context,
            ep=ep,
            etp=etp,
            imbalance=self.imbalance,
            capacity=self.capacity,
            dispatch=self.dispatch,
            scaled_activations=self.stack.scaled_activations,
            accumulation=self.accumulation,
            launching=Launching(
                self.stack.eager_experts,
                self.stack.casts(self.precision),
                self.stack.launch == "layer_graphs",
            ),
        )

    @property
    def state(self) -> StateBytes:
        """Bytes per parameter of the training state."""
        device, stack = self.accelerator, self.stack
        return state_bytes(
            self.precision,
            self.optimizer,
            self.gradient_bytes,
            transposed=keeps_transposed(device.family.name, stack.fp8),
            memory=stack.memory,
        )

    @property
    def accumulation(self) -> Accumulation:
        """Where gradients of weights are added up: where they are stored."""
        how = self.stack.accumulation
        return Accumulation(0.0 if how == "none" else self.state.gradients, how == "product")

    def table(self, tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        """Return per-layer figures under these degrees."""
        strategy = self.strategy(tp, sp, micro_batch, cp, ep, etp)
        check_experts(self.model, strategy)
        return layer_table(
            self.model,
            strategy,
            self.accelerator,
            self.precision,
            recomputations=self.recomputations,
            memory=self.stack.memory,
        )

    @property
    def hidden(self) -> Overlap:
        """What hides behind compute; a model without experts has nothing for `expert_overlap`."""
        return replace(
            overlap_of(self.overlap, self.accelerator),
            experts=self.expert_overlap and self.model.experts > 1,
        )

    def hiding(self, traffic: Mapping[str, bool]) -> Self:
        """Return the job with software that hides classes of traffic, or does not.

        Parameters
        ----------
        traffic : mapping of str to bool
            By class, ``tp``, ``pp`` or ``dp``; others stay as the stack has them.
        """
        stack, device = hiding(self.stack, self.precision, traffic), self.accelerator
        shares: dict[str, Any] = hidden_shares(
            load_family(device.family.name), stack, self.precision
        )
        family = replace(
            device.family,
            **{
                f"overlap_{name}": shares[f"overlap_{name}"]
                for name, hides in traffic.items()
                if hides != self.stack.overlaps(name, self.precision)
            },
        )
        return replace(self, stack=stack, accelerator=replace(device, family=family))

    def lower_bound(self, tp: int, sp: bool, cp: int, ep: int, etp: int) -> LayerTable:
        """Return what one sequence takes and holds at least, at any micro-batch; see `Problem`."""
        strategy = self.strategy(tp, sp, 1, cp, ep, etp)
        if ep == 1:  # it also stands for ranks that hold, and launch, fewer experts
            strategy = replace(strategy, launching=replace(strategy.launching, is_eager=False))
        check_experts(self.model, strategy)
        return layer_table(
            self.model,
            strategy,
            self.accelerator,
            self.precision,
            self.recomputations,
            self.stack.memory,
            bound=True,
        )

    def problem_on(self, fabric: Fabric | Network) -> Problem:
        """Return the arrays that plans for this job are priced from.

        Parameters
        ----------
        fabric : Fabric or Network
            A network is a fabric that was collapsed already.
        """
        device, stack = self.accelerator, self.stack
        bandwidth = device.memory_bandwidth_Bps * device.family.memory_efficiency
        network = fabric if isinstance(fabric, Network) else collapse(fabric)
        if self.collectives != "library":
            network = replace(network, algorithm=self.collectives)
            reduce_scatters(network)  # refuses what does not run on it
        return Problem(
            network=network,
            # Tables are kept by all that they follow from, which takes long to look up.
            table=lru_cache(256)(self.table),
            batch=self.batch,
            tokens=self.sequence,
            memory_bytes=device.memory_bytes,
            reserved_bytes=device.reserved_bytes,
            state=self.state,
            copies=stack.copies,
            update_Bps=bandwidth,
            model_flops=model_flops(self.model, self.sequence),
            peak_flops=device.peak(self.precision),
            software=software_of(device),
            overlap=self.hidden,
            fragmentation=stack.memory.fragmentation,
            communicator_bytes=device.communicator_bytes,
            bucket_bytes=stack.memory.bucket_bytes(self.precision),
            memory_spread=spread_of(stack.framework).sd,
            lower_bound=None if device.profile else lru_cache(256)(self.lower_bound),
            pad_batch=self.pad_batch,
            recomputations=self.recomputations,
            sharded_gradients=stack.sharded_gradients,
            dispatch=dispatch_of(self.dispatch, self.model),
            host_Bps=device.host_Bps,
            stack=stack.name,
        )


def overlap_of(name: str, accelerator: Accelerator) -> Overlap:
    """Return what hides behind compute: nothing, all that can, or what the family reaches."""
    if name != "fitted":
        return IDEAL_OVERLAP if name == "ideal" else NO_OVERLAP
    family = accelerator.family
    return Overlap("fitted", family.overlap_tp, family.overlap_pp, family.overlap_dp)
