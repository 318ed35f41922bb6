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

How widely a predicted training time spreads under the posterior of measured runs.

``presets/validation/posterior.toml`` holds what measured runs say of kernels, links and software
(`nest_core.hardware.posterior`); it is fitted by ``benchmarks/validation``. A prediction is
linearised at the posterior's centre, in the logarithms of time and of the factors.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nest_core.calibration.training.machines import accelerator_of, fabric_of, model_of, network_of
from nest_core.calibration.training.runs import (
    MEMORY_KINDS,
    MeasuredOutcome,
    MeasuredRow,
    Run,
    Unread,
    counted_bytes,
)
from nest_core.costs import RECOMPUTE, Plan, Problem, Report, even_cuts, price
from nest_core.costs.shapes import PlanShape, shape_of
from nest_core.documents import InputError, require
from nest_core.hardware import (
    PARAMETERS,
    REDUCING,
    Accelerator,
    Curve,
    Knowledge,
    Posterior,
    Stack,
    hiding,
    load_stack,
    under,
)
from nest_core.network import FloatArray
from nest_core.scenario.job import Job
from nest_core.workload import offloading, ordered

__all__ = [
    "Prediction",
    "job_of",
    "knowledge_of",
    "plan_of",
    "predict",
    "predict_rows",
    "problem_of",
    "slopes_of",
    "spread",
    "stack_of",
]


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
        return None if measured is None else self.comparable_bytes / measured - 1

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
                    report.fullest_bytes,
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
    problem = problem_of(run, accelerator or accelerator_of(run.accelerator), factors, curves)
    # What ran did fit: the centre of what is predicted decides, without room for its spread.
    problem = replace(problem, memory_spread=0.0)
    choices = (run.recompute,) if run.recompute else RECOMPUTE
    for choice in choices:
        report = price(problem, plan_of(run, problem.layers, choice))
        if report.feasible:
            break
    return report


def stack_of(run: Run) -> Stack:
    """Return the stack of a run, with what its row states of the software in place of the preset's.

    That is what it overlaps, how it launches kernels, whether element-wise operators are fused, and
    how fp8 products are scaled.
    """
    stack = load_stack(run.stack)
    traffic = dict(zip(("tp", "pp", "dp"), run.overlap, strict=True))
    compiled = run.fact("compiled")
    return replace(
        hiding(stack, run.precision, traffic),
        launch=run.fact("launch") or stack.launch,  # type: ignore[arg-type]  # words of `NOTES`
        fused=stack.fused if compiled is None else compiled == "yes",
        fp8="blockwise" if "mx" in run.precision_name.lower() else stack.fp8,
    )


def plan_of(run: Run, layers: int, recompute: str) -> Plan:
    """Return degrees, schedule and cuts of a run."""
    point = run.point
    require(
        point.schedule != "zero-bubble",
        "schedule",
        "must be 1F1B, plain or interleaved, ZB-H1, ZB-1p or ZB-2p",
        "zero-bubble",
        "leave the row out",
    )
    zero = point.zero
    if run.framework == "fsdp" and point.pp > 1:
        # FSDP keeps its weights gathered from micro-batch to micro-batch, and its gradients whole,
        # so that it sends once per iteration, as ZeRO 1 does; a stack may shard gradients too.
        zero = 2 if load_stack(run.stack).sharded_gradients else 1
    acting = replace(point, sp=point.sp and point.tp > 1, zero=zero)
    cuts = _cuts(layers, point.pp * point.interleave, run.embedding_stage)
    offload = offloading(run.fact("offload") or "none")
    return Plan(acting, cuts, (recompute,) * point.pp, offload=offload)


def _cuts(layers: int, virtual_stages: int, embedding_stage: bool) -> tuple[int, ...]:
    """Return first layers of the virtual stages; embedding and head are layers 0 and the last.

    Both count as layers where a row says so, or where nothing else divides them evenly.

    Examples
    --------
    >>> _cuts(16, 4, False)  # 14 blocks
    (0, 4, 8, 12, 16)
    """
    counted = layers % virtual_stages == 0 and (layers - 2) % virtual_stages != 0
    as_layers = virtual_stages > 1 and (counted or (embedding_stage and layers >= virtual_stages))
    return (
        tuple(stage * layers // virtual_stages for stage in range(virtual_stages + 1))
        if as_layers
        else even_cuts(layers, virtual_stages)
    )


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
    require(
        run.precision in accelerator.precisions,
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
        recomputations=ordered((run.recompute or "none",)),
        dispatch=run.fact("dispatch") or "all_to_all",  # type: ignore[arg-type]  # words of `NOTES`
        expert_overlap=run.fact("expert overlap") == "yes",
    )


def problem_of(
    run: Run,
    accelerator: Accelerator,
    factors: Mapping[str, float] | None = None,
    curves: tuple[Curve, ...] = (),
) -> Problem:
    """Return the problem of a run on its fabric or nodes; parameters and errors as of `job_of`."""
    return job_of(run, accelerator, factors, curves).problem_on(
        network_of(run.fabric or fabric_of(run))
    )


STEP = 0.05
"""Of a logarithm, for derivatives."""


def spread(run: Run, posterior: Posterior, plan: Plan | None = None) -> float:
    """Return the standard deviation of the logarithm of a run's time, for a source not seen yet.

    Parameters
    ----------
    run, posterior
    plan : Plan, optional
        Another than the run's.
    """
    knowledge = knowledge_of(run, posterior)
    _, slopes = slopes_of(run, knowledge, plan)
    run_sd = knowledge.experts_sd if run.experts > 1 else knowledge.run_sd
    return float(
        np.sqrt(slopes @ knowledge.covariance @ slopes + knowledge.source_sd**2 + run_sd**2)
    )


def knowledge_of(run: Run, posterior: Posterior) -> Knowledge:
    """Return what the posterior holds of a run's family, framework and stack."""
    stack = load_stack(run.stack)
    return posterior.of(accelerator_of(run.accelerator).family.name, stack.framework, stack.name)


def slopes_of(run: Run, knowledge: Knowledge, plan: Plan | None = None) -> tuple[float, FloatArray]:
    """Return the logarithm of a run's predicted time, and its slopes by those of the factors."""

    def predicted(values: FloatArray) -> float:
        factors = knowledge.factors(values)
        report = (
            predict(run, factors=factors)
            if plan is None
            else price(problem_of(run, accelerator_of(run.accelerator), factors), plan)
        )
        return float(np.log(report.iteration_s))

    here = predicted(knowledge.centre)
    steps = STEP * np.eye(len(PARAMETERS))
    return here, np.array([(here - predicted(knowledge.centre - step)) / STEP for step in steps])
