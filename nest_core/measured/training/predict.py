"""The price of a measured run: its row as a problem and a plan, judged by `costs.price`.

Nothing here reads an outcome. What the software did follows from the run by rules that are the
same for all rows:

* layers are cut into equal virtual stages of blocks; where blocks do not divide, embedding and head
  count as a layer each if that makes them divide (or the notes say so), else as even as it goes;
* ranks are placed in the order that the row states, else in Megatron-LM's, tensor-parallel
  innermost;
* unstated recomputation is the first of none, selective and full that fits into memory;
* kernels, overlap and what they reach are those of its stack (`nest_core.hardware.stacks`), and
  what the row says of them goes before;
* FSDP under a pipeline sends once per iteration, or as its stack does (`_zero`);
* experts are balanced; their slots are padded where the notes name a capacity;
* tokens are sent once per expert, or as the library does that the notes name (DeepEP, HybridEP).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from nest_core.costs import (
    RECOMPUTE,
    LayerTable,
    Overlap,
    Plan,
    Point,
    Problem,
    Report,
    price,
    state_bytes,
)
from nest_core.costs.memory import FRAGMENTATION
from nest_core.costs.parse import even_cuts
from nest_core.costs.shapes import Shape, shape_of
from nest_core.costs.software import software_of
from nest_core.costs.tables import (
    dispatch_of,
    element_bytes,
    keeps_transposed,
    layer_table,
    lower_bound_table,
)
from nest_core.errors import InputError
from nest_core.hardware import Accelerator
from nest_core.hardware.collectives import Curve
from nest_core.hardware.collectives.library import REDUCING
from nest_core.hardware.stacks import Stack, load_stack, under
from nest_core.measured.training.architectures import model_of
from nest_core.measured.training.machines import accelerator_of, fabric_of, network_of
from nest_core.measured.training.memory import (
    KINDS,
    counted_bytes,
    run_reserved_bytes,
    run_state,
    run_table,
)
from nest_core.measured.training.runs import Outcome, Row, Run, Unread
from nest_core.workload import Strategy

__all__ = ["Prediction", "plan_of", "predict", "predict_rows", "problem_of", "stack_of"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run beside what it was predicted and measured to take.

    Parameters
    ----------
    run : Run
    outcome : Outcome
    seconds, memory_bytes : float
        Predicted: one iteration; the fullest device.
    calibrated : bool
        Whether measurements of the accelerator's family were fitted.
    counted_bytes : tuple of (str, float)
        Of the device that the source read, what each kind of source would count
        (`nest_core.measured.training.memory.KINDS`).
    shape : Shape, optional
        Of the plan that it was predicted with.
    """

    run: Run
    outcome: Outcome
    seconds: float
    memory_bytes: float
    calibrated: bool
    counted_bytes: tuple[tuple[str, float], ...] = ()
    shape: Shape | None = None

    @property
    def error(self) -> float | None:
        """Relative and signed; None where nothing was measured."""
        measured = self.outcome.seconds
        return None if measured is None else self.seconds / measured - 1

    @property
    def memory_error(self) -> float | None:
        """Of the memory, counted as the source counts it; None where nothing was measured."""
        measured = self.outcome.memory_bytes
        if measured is None:
            return None
        return self.comparable_bytes / measured - 1

    @property
    def comparable_bytes(self) -> float:
        """The predicted memory, counted as the outcome's source counts."""
        return dict(self.counted_bytes).get(self.outcome.memory_kind, self.memory_bytes)


def predict_rows(
    rows: Iterable[Row], device: Callable[[str], Accelerator] = accelerator_of
) -> tuple[list[Prediction], list[Unread]]:
    """Every row predicted, or listed with the reason why not.

    Parameters
    ----------
    rows : iterable of Row
    device : callable (str) -> Accelerator
        The device behind an accelerator's name; a fit gives its own.
    """
    found: list[Prediction] = []
    left: list[Unread] = []
    for row in rows:
        try:
            accelerator = device(row.run.accelerator)
            report = predict(row.run, accelerator)
        except InputError as error:
            left.append(Unread(row.run.id, str(error)))
        else:
            first = row.outcome.memory_stage == "first"
            held = [stage.memory for stage in report.stages[: 1 if first else None]]
            found.append(
                Prediction(
                    row.run,
                    row.outcome,
                    report.iteration_s,
                    max(stage.memory.total for stage in report.stages),
                    accelerator.family.calibrated,
                    tuple(
                        (kind, max(counted_bytes(memory, kind) for memory in held))
                        for kind in KINDS
                    ),
                    shape_of(report.plan),
                )
            )
    return found, left


def predict(
    run: Run,
    accelerator: Accelerator | None = None,
    factors: Mapping[str, float] | None = None,
    curves: tuple[Curve, ...] = (),
) -> Report:
    """What a run takes, stage by stage.

    Parameters
    ----------
    run : Run
    accelerator : Accelerator, optional
        Another than the preset behind the run's.
    factors : mapping, optional
        On what its kernels and network reach, instead of the posterior's centre.
    curves : tuple of Curve
        Measured on the run's cluster, in place of its stack's.

    Raises
    ------
    InputError
        If the run is outside what costs can describe; the sentence says why.
    """
    device = accelerator or accelerator_of(run.accelerator)
    problem = problem_of(run, device, factors, curves)
    choices = (run.recompute,) if run.recompute else RECOMPUTE
    report = price(problem, plan_of(run, problem.layers, choices[0]))
    for choice in choices[1:]:
        if report.feasible:
            break
        report = price(problem, plan_of(run, problem.layers, choice))
    return report


def stack_of(run: Run) -> Stack:
    """The stack of a run, overlapping and launching as the run does."""
    overlap = tuple(
        (traffic, (run.precision,) if hidden else ())
        for traffic, hidden in zip(("tp", "pp", "dp"), run.overlap, strict=True)
    )
    stack = replace(load_stack(run.stack), overlap=overlap)
    return replace(stack, launch="iteration_graphs") if run.fact("launch") else stack


def plan_of(run: Run, layers: int, recompute: str) -> Plan:
    """Degrees, schedule and cuts of a run."""
    if run.schedule == "zero-bubble":
        raise InputError(
            "schedule",
            "must be 1F1B, plain or interleaved, ZB-H1, ZB-1p or ZB-2p",
            "zero-bubble",
            "leave the row out",
        )
    point = Point(
        tp=run.tp,
        sp=run.sp and run.tp > 1,
        dp=run.dp,
        pp=run.pp,
        micro_batch=run.micro_batch,
        zero=_zero(run),
        order=run.order,
        cp=run.cp,
        ep=run.ep,
        etp=run.etp,
        schedule=run.schedule,
        interleave=run.interleave,
    )
    return Plan(point, _cuts(run, layers), (recompute,) * run.pp)


def _zero(run: Run) -> int:
    """The ZeRO stage whose traffic a run has.

    Under a pipeline FSDP keeps its weights gathered from micro-batch to micro-batch, and its
    gradients whole, so that it sends once per iteration, as ZeRO 1 does. Where its stack shards
    gradients there too, it is ZeRO 2.
    """
    if run.framework == "fsdp" and run.pp > 1:
        return 2 if load_stack(run.stack).sharded_gradients else 1
    return run.zero


def _cuts(run: Run, layers: int) -> tuple[int, ...]:
    """First layers of the virtual stages; embedding and head are layers 0 and ``layers - 1``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> _cuts(SimpleNamespace(pp=4, interleave=1, embedding_stage=False), 16)  # 14 blocks
    (0, 4, 8, 12, 16)
    """
    virtual_stages = run.pp * run.interleave
    counted = layers % virtual_stages == 0 and (layers - 2) % virtual_stages != 0
    if virtual_stages > 1 and (counted or (run.embedding_stage and layers >= virtual_stages)):
        return tuple(
            virtual_stage * layers // virtual_stages for virtual_stage in range(virtual_stages + 1)
        )
    return even_cuts(layers, virtual_stages)


def problem_of(
    run: Run,
    accelerator: Accelerator,
    factors: Mapping[str, float] | None = None,
    curves: tuple[Curve, ...] = (),
) -> Problem:
    """A run's fabric, workload and device, as it is under the run's stack, as arrays."""
    if run.precision not in accelerator.precisions:
        raise InputError(
            "precision",
            f"must be one that {accelerator.name} computes in",
            run.precision,
            "pick " + ", ".join(accelerator.precisions),
        )
    stack = replace(stack_of(run), curves=curves) if curves else stack_of(run)
    if run.fact("in-network reduction") and accelerator.network in REDUCING:
        accelerator = replace(accelerator, network=REDUCING[accelerator.network])
    accelerator = under(accelerator, stack, run.precision, factors)
    model = model_of(run)
    base = _strategy(run)
    rows = RECOMPUTE if run.recompute in ("", *RECOMPUTE) else (*RECOMPUTE, run.recompute)

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        strategy = replace(base, tp=tp, sp=sp, micro_batch=micro_batch, cp=cp, ep=ep, etp=etp)
        wide = element_bytes(run.precision) if run.framework == "fsdp" else None
        found = layer_table(model, strategy, accelerator, run.precision, wide, rows)
        return run_table(run, model, strategy, found)

    def lower_bound(tp: int, sp: bool, cp: int, ep: int, etp: int) -> LayerTable:
        strategy = replace(base, tp=tp, sp=sp, cp=cp, ep=ep, etp=etp)
        least = lower_bound_table(model, strategy, accelerator, run.precision, rows)
        return run_table(run, model, strategy, least)

    recipe = "blockwise" if "mx" in run.precision_name.lower() else load_stack(run.stack).fp8
    transposed = keeps_transposed(accelerator.family.name, recipe)
    state = state_bytes(run.precision, run.optimizer, run.gradient_bytes, transposed=transposed)
    return Problem(
        network=network_of(fabric_of(run)),
        table=table,
        batch=run.batch,
        tokens=run.sequence,
        memory_bytes=accelerator.memory_bytes,
        reserved_bytes=run_reserved_bytes(run, accelerator.reserved_bytes),
        state=run_state(run, state),
        update_Bps=accelerator.memory_bandwidth_Bps * accelerator.family.memory_efficiency,
        model_flops=0.0,
        peak_flops=accelerator.peak(run.precision),
        software=software_of(accelerator),
        overlap=_overlap(run, accelerator),
        fragmentation=FRAGMENTATION,
        communicator_bytes=accelerator.communicator_bytes,
        lower_bound=None if accelerator.profile else lower_bound,
        recomputations=rows,
        sharded_gradients=load_stack(run.stack).sharded_gradients,
        dispatch=dispatch_of(_dispatch(run), model),
    )


def _strategy(run: Run) -> Strategy:
    told, stack = run.fact("compiled"), load_stack(run.stack)
    return Strategy(
        sequence=run.sequence,
        width=element_bytes(run.precision),
        attention=run.attention,
        fused=stack.fused if told is None else told == "yes",
        joined=stack.joined,
        checkpoint=stack.checkpointing(run.precision),
        capacity=1.0 if run.fact("routing") == "capacity" else 0.0,
        dispatch=_dispatch(run),
    )


def _dispatch(run: Run) -> Literal["all_to_all", "once_per_node", "hybrid"]:
    return run.fact("dispatch") or "all_to_all"  # type: ignore[return-value]  # words of `NOTES`


def _overlap(run: Run, accelerator: Accelerator) -> Overlap:
    """The family's shares under the run's stack."""
    family = accelerator.family
    experts = run.experts > 1 and run.fact("expert overlap") == "yes"
    shares = (family.overlap_tp, family.overlap_pp, family.overlap_dp)
    if not any((*shares, experts)):
        return Overlap("none")
    return Overlap("fitted", *shares, experts=experts)
