"""A plan's fullest stage as XLA compiles it for the scenario's TPUs, term by term beside ours."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from nest_core.api.price import Given, given_or_best
from nest_core.api.results import Result
from nest_core.api.scenario import Named, load
from nest_core.calibration.compiler.collectives import KINDS, collectives_of_program
from nest_core.costs import Problem, Report, in_flight, price, state_shares
from nest_core.documents import InputError, humanise_bytes, require, require_extra
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, ScenarioValues
from nest_core.workload import NO_OFFLOAD, RECOMPUTE, chain

if TYPE_CHECKING:
    from nest_core.calibration.compiler.program import StageProgram

__all__ = ["Compilation", "compiled", "stage_program"]

_GENERATIONS = {"TPU v4": "v4", "TPU v5p": "v5p", "TPU v5e": "v5e", "TPU v6e (Trillium)": "v6e"}
"""By accelerator, what libtpu calls its generation; a chip of v7x is two devices there."""

_OPERATORS = {
    "input": ("", "tokens"),
    "linear": ("",),
    "norm": ("rmsnorm", "layernorm"),
    "embedding": ("",),
    "position": ("",),
    "reshape": ("",),
    "attention": ("", "dropout"),
    "dropout": ("",),
    "elementwise": ("add", "rope", "gelu", "swiglu", "geglu", "relu2"),
    "loss": ("cross_entropy",),
}
"""What the program in JAX writes: functions by operator."""


@dataclass(frozen=True, slots=True)
class Compilation(Result):
    """What the compiler says of a plan's fullest stage, beside what we do.

    Parameters
    ----------
    report : Report
        The plan's price.
    stage : int
        Its fullest stage.
    terms : mapping of str to (float, float)
        Bytes on a device, ours and the compiler's.
    ours, theirs : mapping of str to (float, float)
        Collectives by kind: how many an iteration has, and the bytes of their buffers.
    limit_bytes : float
        Of a device, as the compiler hands them out.
    versions : mapping of str to str
    """

    report: Report
    stage: int
    terms: Mapping[str, tuple[float, float]]
    ours: Mapping[str, tuple[float, float]]
    theirs: Mapping[str, tuple[float, float]]
    limit_bytes: float
    versions: Mapping[str, str]

    @property
    def fits(self) -> bool:
        """Whether the compiler takes the stage."""
        return self.terms["in all"][1] <= self.limit_bytes

    def rows(self) -> list[dict[str, Any]]:
        """Return bytes of every term."""
        return [
            {"term": term, "ours_bytes": ours, "compiler_bytes": theirs}
            for term, (ours, theirs) in self.terms.items()
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio compiled --json``."""
        calls = [
            (kind, self.ours.get(kind, (0.0, 0.0)), self.theirs.get(kind, (0.0, 0.0)))
            for kind in KINDS
            if kind in {*self.ours, *self.theirs}
        ]
        return {
            "plan": self.report.plan.to_json(),
            "stage": self.stage,
            "rows": self.rows(),
            "collectives": [
                {
                    "kind": kind,
                    "count": theirs[0],
                    "bytes": theirs[1],
                    "ours_count": ours[0],
                    "ours_bytes": ours[1],
                }
                for kind, ours, theirs in calls
            ],
            "fits": self.fits,
            "compiler_limit_bytes": self.limit_bytes,
            "versions": dict(self.versions),
        }

    def tables(self) -> tuple[Table, ...]:
        """Return memory and collectives, ours beside the compiler's."""
        fields = self.to_json()
        return (
            Table(
                f"The compiler {'takes' if self.fits else 'refuses'} stage {self.stage + 1}: "
                f"{humanise_bytes(self.terms['in all'][1])} of {humanise_bytes(self.limit_bytes)}",
                "Bytes on a device; "
                + ", ".join(f"{name} {number}" for name, number in self.versions.items()),
                [
                    {
                        "term": row["term"],
                        "ours": humanise_bytes(row["ours_bytes"]),
                        "compiler": humanise_bytes(row["compiler_bytes"]),
                        "compiler / ours": f"{row['compiler_bytes'] / row['ours_bytes']:.2f}"
                        if row["ours_bytes"]
                        else "–",
                    }
                    for row in fields["rows"]
                ],
            ),
            Table(
                "Collectives of an iteration",
                "How many and the bytes of their buffers",
                [
                    {
                        "collective": row["kind"].replace("_", "-"),
                        "ours": f"{row['ours_count']:,.0f}",
                        "our bytes": humanise_bytes(row["ours_bytes"]),
                        "compiler": f"{row['count']:,.0f}",
                        "its bytes": humanise_bytes(row["bytes"]),
                    }
                    for row in fields["collectives"]
                ],
            ),
        )

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables()))


def compiled(scenario: Scenario | Named, plan: Given | None = None) -> Compilation:
    """Compile the fullest stage of a plan for the scenario's TPUs, none of which is there.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    plan : optional
        As `nest_core.price` takes it; the best plan without it.

    Raises
    ------
    InputError
        If JAX or libtpu is not installed, or the scenario is none for TPUs: another accelerator, a
        slice that there is not, a block that is not written in JAX, or a plan that leaves devices
        idle.
    """
    report, stage, job, mesh = stage_program(scenario, plan)
    from nest_core.calibration.compiler.program import compile_step, memory_limit

    problem = load(scenario).values.problem(report.plan.recompute)
    step = compile_step(job, mesh)
    shorter = compile_step(replace(job, blocks=job.blocks // 2), mesh)
    update = compile_step(job, mesh, passes=False)
    memory, point, block = report.stages[stage].memory, job.point, problem.layers // 2
    states = memory.weights + memory.optimizer
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    kept_bytes = float(table.kept_bytes[problem.row(job.recompute), block])
    gradients = state_shares(job.zero, point.shard_ranks, problem.state)[1]
    terms = {
        "what a block adds": (
            job.in_flight * kept_bytes + gradients * float(table.parameters[block]),
            (step.temporaries - shorter.temporaries) / (job.blocks - job.blocks // 2),
        ),
        "weights and optimizer states": (states, step.arguments),
        "gradients, activations and temporaries": (memory.tensors - states, step.temporaries),
        "temporaries of the optimizer step": (memory.step, update.temporaries),
        "in all": (memory.tensors, step.arguments + step.temporaries),
    }
    return Compilation(
        report,
        stage,
        terms,
        _collectives(load(scenario).values, problem, report, stage),
        collectives_of_program(step.text),
        memory_limit(mesh),
        {name: version(name) for name in ("jax", "jaxlib", "libtpu")},
    )


def stage_program(
    scenario: Scenario | Named, plan: Given | None = None
) -> tuple[Report, int, StageProgram, Any]:
    """Return a plan's price, its fullest stage, what that runs and its mesh; as `compiled`."""
    values = load(scenario).values
    problem = values.problem()
    generation = _check(values, problem)
    given, _ = given_or_best(values, plan)
    if given is None:
        raise InputError("plan", "must be given where none fits", "none", "name one with --plan")
    chosen = given.plan
    report = price(values.problem(chosen.recompute), chosen)
    require(
        chosen.point.devices_used == problem.network.devices and not chosen.ragged,
        "plan.devices_used",
        "must be the whole slice in equal stages",
        chosen.devices_used,
        f"plan on all {problem.network.devices} devices",
    )
    stage = max(range(chosen.point.pp), key=lambda s: report.stages[s].memory.tensors)
    require_extra("tpu", ("jax", "libtpu"), "compile for TPUs")
    from nest_core.calibration.compiler.program import slice_mesh

    job = _program(values, problem, report, stage)
    shape = problem.network.torus.shape  # type: ignore[union-attr]  # refused by _check
    return report, stage, job, slice_mesh(generation, shape, chosen.point)


def _check(values: ScenarioValues, problem: Problem) -> str:
    """Return what libtpu calls the scenario's TPUs."""
    generation = _GENERATIONS.get(values.accelerator.name)
    require(
        generation and problem.network.torus,
        "accelerator",
        "must be a TPU on a torus that libtpu compiles for",
        values.accelerator.name,
        "pick " + ", ".join(f"tpu-{name}" for name in _GENERATIONS.values()),
    )
    layers = {kind: values.model.trace[kind].nodes for kind in values.model.kinds}
    written = {"embedding", "block", "head"} >= layers.keys() and all(
        node.function in _OPERATORS.get(node.op, ()) for nodes in layers.values() for node in nodes
    )
    require(
        written and values.precision == "bf16" and values.optimizer == "adam",
        "workload.model",
        "must be dense, of plain attention, in bf16 with adam to be written in JAX",
        f"{values.model.name} in {values.precision} with {values.optimizer}",
        "pick a model of the Llama or GPT family",
    )
    return str(generation)


def _program(values: ScenarioValues, problem: Problem, report: Report, stage: int) -> StageProgram:
    """Return what a stage of a plan runs."""
    from nest_core.calibration.compiler.program import StageProgram

    plan, point = report.plan, report.plan.point
    layers = [layer for i, j in plan.virtual_stages(stage) for layer in range(i, j)]
    ends = [layer in layers for layer in (0, problem.layers - 1)]
    recompute = plan.recompute[stage]
    blocks = len(layers) - sum(ends)
    require(
        recompute in RECOMPUTE and blocks > 1 and plan.offload == NO_OFFLOAD,
        "plan",
        "must recompute none, selective or full in stages of several blocks, offloading nothing",
        plan.words,
        "pin search.recompute and search.pp",
    )
    micro_batches = point.micro_batches(values.batch)
    together = math.ceil(in_flight(point, micro_batches)[stage])
    return StageProgram(
        values.model,
        values.sequence,
        point,
        problem.acting_zero(point),
        recompute,
        blocks,
        ends[0],
        ends[1],
        micro_batches // together,
        together,
    )


def _collectives(
    values: ScenarioValues, problem: Problem, report: Report, stage: int
) -> dict[str, tuple[float, float]]:
    """Return number and bytes of our collectives in an iteration of a stage, pipelines left out."""
    plan, point = report.plan, report.plan.point
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(kind: str, number: float, size: float) -> None:
        totals[kind][0] += number
        totals[kind][1] += number * size

    strategy = values.strategy(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    rounds = point.micro_batches(values.batch)
    layers = [layer for layer, times in chain(values.model, strategy).runs for _ in range(times)]
    zero, state = problem.acting_zero(point), problem.state
    for number in (n for i, j in plan.virtual_stages(stage) for n in range(i, j)):
        layer = layers[number]
        for call in layer.collectives:
            add(call.op, rounds * (call.forward + call.backward), call.bytes)
        for call in layer.replayed(plan.recompute[stage])[1]:
            add(call.op, rounds * call.forward, call.bytes)
        if point.shared:
            sums = (state.reduced or state.gradients) * layer.parameters
            often = rounds if zero > 1 or state.reduced else 1
            add("reduce_scatter" if zero else "all_reduce", often, sums)
        if point.shared and zero:
            add("all_gather", 2 * rounds if zero == 3 else 1, state.weights * layer.parameters)
    return {kind: (number, size) for kind, (number, size) in totals.items()}
