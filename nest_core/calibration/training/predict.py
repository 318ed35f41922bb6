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

from nest_core.calibration.training.architectures import model_of
from nest_core.calibration.training.machines import accelerator_of, fabric_of, network_of
from nest_core.calibration.training.runs import (
    MEMORY_KINDS,
    MeasuredOutcome,
    MeasuredRow,
    Run,
    Unread,
    counted_bytes,
)
from nest_core.costs import RECOMPUTE, Plan, Point, Problem, Report, price
from nest_core.costs.parse import even_cuts
from nest_core.costs.shapes import PlanShape, shape_of
from nest_core.documents.errors import InputError
from nest_core.hardware import Accelerator
from nest_core.hardware.collectives import Curve
from nest_core.hardware.collectives.library import REDUCING
from nest_core.hardware.stacks import Stack, load_stack, under
from nest_core.scenario.job import Job

__all__ = ["Prediction", "job_of", "plan_of", "predict", "predict_rows", "problem_of", "stack_of"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run beside what it was predicted and measured to take.

    Parameters
    ----------
    run : Run
    outcome : MeasuredOutcome
    seconds, memory_bytes : float
        Predicted: one iteration; the fullest device.
    calibrated : bool
        Whether measurements of the accelerator's family were fitted.
    counted_bytes : tuple of (str, float)
        Of the device that the source read, what each kind of source would count
        (`nest_core.calibration.training.runs.MEMORY_KINDS`).
    shape : PlanShape, optional
        Of the plan that it was predicted with.
    """

    run: Run
    outcome: MeasuredOutcome
    seconds: float
    memory_bytes: float
    calibrated: bool
    counted_bytes: tuple[tuple[str, float], ...] = ()
    shape: PlanShape | None = None

    @property
    def error(self) -> float | None:
        """Return the relative, signed error; None where nothing was measured."""
        measured = self.outcome.seconds
        return None if measured is None else self.seconds / measured - 1

    @property
    def memory_error(self) -> float | None:
        """Return the error of the memory, counted as the source counts it.

        None where nothing was measured.
        """
        measured = self.outcome.memory_bytes
        if measured is None:
            return None
        return self.comparable_bytes / measured - 1

    @property
    def comparable_bytes(self) -> float:
        """Return the predicted memory, counted as the outcome's source counts."""
        return dict(self.counted_bytes).get(self.outcome.memory_kind, self.memory_bytes)


def predict_rows(
    rows: Iterable[MeasuredRow], device: Callable[[str], Accelerator] = accelerator_of
) -> tuple[list[Prediction], list[Unread]]:
    """Return every row predicted, or listed with the reason why not.

    Parameters
    ----------
    rows : iterable of MeasuredRow
    device : callable (str) -> Accelerator
        The device behind an accelerator's name; a fit gives its own.
    """
    predictions: list[Prediction] = []
    unread: list[Unread] = []
    for row in rows:
        try:
            accelerator = device(row.run.accelerator)
            report = predict(row.run, accelerator)
        except InputError as error:
            unread.append(Unread(row.run.id, str(error)))
        else:
            first = row.outcome.memory_stage == "first"
            memories = [stage.memory for stage in report.stages[: 1 if first else None]]
            predictions.append(
                Prediction(
                    row.run,
                    row.outcome,
                    report.iteration_s,
                    max(stage.memory.total for stage in report.stages),
                    accelerator.family.calibrated,
                    tuple(
                        (kind, max(counted_bytes(memory, kind) for memory in memories))
                        for kind in MEMORY_KINDS
                    ),
                    shape_of(report.plan),
                )
            )
    return predictions, unread


def predict(
    run: Run,
    accelerator: Accelerator | None = None,
    factors: Mapping[str, float] | None = None,
    curves: tuple[Curve, ...] = (),
) -> Report:
    """Return what a run takes, stage by stage.

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
    # What ran did fit: the centre of what is predicted decides, without room for its spread.
    problem = replace(problem, memory_spread=0.0)
    choices = (run.recompute,) if run.recompute else RECOMPUTE
    report = price(problem, plan_of(run, problem.layers, choices[0]))
    for choice in choices[1:]:
        if report.feasible:
            break
        report = price(problem, plan_of(run, problem.layers, choice))
    return report


def stack_of(run: Run) -> Stack:
    """Return the stack of a run, with what its row states of the software in place of the preset's.

    That is what it overlaps, how it launches kernels, whether element-wise operators are fused, and
    how fp8 products are scaled.
    """
    stack = load_stack(run.stack)
    overlap = tuple(
        (traffic, (run.precision,) if hidden else ())
        for traffic, hidden in zip(("tp", "pp", "dp"), run.overlap, strict=True)
    )
    compiled = run.fact("compiled")
    return replace(
        stack,
        overlap=overlap,
        launch="iteration_graphs" if run.fact("launch") else stack.launch,
        fused=stack.fused if compiled is None else compiled == "yes",
        fp8="blockwise" if "mx" in run.precision_name.lower() else stack.fp8,
    )


def plan_of(run: Run, layers: int, recompute: str) -> Plan:
    """Return degrees, schedule and cuts of a run."""
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
    """Return the ZeRO stage whose traffic a run has.

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


def job_of(
    run: Run,
    accelerator: Accelerator,
    factors: Mapping[str, float] | None = None,
    curves: tuple[Curve, ...] = (),
) -> Job:
    """Return the job of a run: what was trained, with the run's stack.

    Parameters
    ----------
    run : Run
    accelerator : Accelerator
        As its preset has it, not yet under a stack.
    factors : mapping, optional
        On what kernels and network reach; the posterior's centre by default.
    curves : tuple of Curve
        Measured on the run's cluster, in place of its stack's.

    Raises
    ------
    InputError
        If the accelerator does not compute in the run's precision.
    """
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
    return Job(
        accelerator=under(accelerator, stack, run.precision, factors),
        stack=stack,
        model=model_of(run),
        sequence=run.sequence,
        batch=run.batch,
        precision=run.precision,
        optimizer=run.optimizer,
        attention=run.attention,
        capacity=1.0 if run.fact("routing") == "capacity" else 0.0,
        gradient_bytes=run.gradient_bytes,
        recomputations=RECOMPUTE
        if run.recompute in ("", *RECOMPUTE)
        else (*RECOMPUTE, run.recompute),
        dispatch=run.fact("dispatch") or "all_to_all",  # type: ignore[arg-type]  # words of `NOTES`
        expert_overlap=run.fact("expert overlap") == "yes",
    )


def problem_of(
    run: Run,
    accelerator: Accelerator,
    factors: Mapping[str, float] | None = None,
    curves: tuple[Curve, ...] = (),
) -> Problem:
    """Return the problem of a run on its own nodes; parameters and errors are those of `job_of`."""
    return job_of(run, accelerator, factors, curves).problem_on(network_of(fabric_of(run)))
