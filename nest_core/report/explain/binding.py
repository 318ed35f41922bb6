"""What binds every stage of a plan, and what more of it would give.

A stage's iteration divides into compute, waiting for kernel launches, communication by class,
recomputation, and idling. Recomputation is the price of memory wherever one step less of it does
not fit; elsewhere it is compute. What a stage spends most on binds it, but a stage that does not
fit is bound by memory whatever it spends.

What more of a resource is worth to a plan that stays as it is: the difference quotient at one per
cent (kernels, host and every level's bandwidth 1 % faster) and, since a bubble shrinks with the
micro-batches of an iteration, twice as many of those. A planner may do better with the same
resource by changing the plan: `nest_core.planner.shadow`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from nest_core.costs import SPLIT, LayerTable, Plan, Problem, Report, Stage, price
from nest_core.costs.communication import STEP, Traffic, traffic_of, wider, with_tables
from nest_core.documents.units import humanise_bytes, humanise_seconds, percent
from nest_core.report.explain.summary import DUST, bottleneck

__all__ = ["Constraint", "Gain", "Kind", "StageBinding", "bindings", "gains"]


class Gain(NamedTuple):
    """What more of one resource gives.

    Parameters
    ----------
    more : str
        How much more of it, in words.
    throughput : float
        Relative gain.
    """

    more: str
    throughput: float


def gains(problem: Problem, plan: Plan) -> dict[str, Gain]:
    """Gains by resource: compute, launches, bandwidth.<level> or micro-batches."""
    before = price(problem, plan).samples_per_s
    changed: list[tuple[str, str, Problem]] = [
        ("compute", "1 % faster kernels", with_tables(problem, _faster)),
        (
            "launches",
            "1 % faster launches",
            with_tables(problem, lambda t: replace(t, launch_s=t.launch_s / (1 + STEP))),
        ),
        *(
            (f"bandwidth.{name}", f"1 % more {name} bandwidth", replace(problem, network=network))
            for name, network in wider(problem.network)
        ),
        ("micro-batches", "twice the micro-batches", replace(problem, batch=2 * problem.batch)),
    ]
    return {
        resource: Gain(more, price(other, plan).samples_per_s / before - 1)
        for resource, more, other in changed
    }


def _faster(table: LayerTable) -> LayerTable:
    rate = 1 + STEP
    return replace(
        table,
        compute_s=table.compute_s / rate,
        forward_s=table.forward_s / rate,
        weight_s=table.weight_s / rate,
        replay_s=table.replay_s / rate,
    )


Kind = Literal["compute", "communication", "memory", "launches", "bubble"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What part of a stage's iteration is spent for want of one thing.

    Parameters
    ----------
    kind : Kind
    words : str
        What it is: the class of traffic and its level, or the stage that is waited for.
    seconds, share : float
        Of the stage's iteration.
    more : str
        How much more of what is wanted.
    gain : float or None
        Relative throughput that it gives, the plan left as it is; None where nothing can be said.
    """

    kind: Kind
    words: str
    seconds: float
    share: float
    more: str
    gain: float | None


@dataclass(frozen=True, slots=True)
class StageBinding:
    """What binds a stage, and what else takes its time.

    Parameters
    ----------
    stage : int
        From 0.
    constraints : tuple of Constraint
        The binding one first, the others by their seconds.
    memory_share : float
        Of the device's memory.
    """

    stage: int
    constraints: tuple[Constraint, ...]
    memory_share: float

    @property
    def binding(self) -> Constraint:
        """The first."""
        return self.constraints[0]

    @property
    def in_words(self) -> str:
        """One sentence."""
        first = self.binding
        time = f": {percent(first.share)} of its time, {humanise_seconds(first.seconds)}"
        words = f"Stage {self.stage + 1} is bound by {first.words}{time if first.seconds else ''}"
        if not first.more:
            return f"{words}."
        if first.gain is None:
            return f"{words}; it takes {first.more}."
        way = "less" if first.gain < 0 else "more"
        return f"{words}; {first.more} would give {percent(abs(first.gain))} {way} throughput."


def bindings(problem: Problem, report: Report) -> tuple[StageBinding, ...]:
    """What binds every stage of a priced plan."""
    plan = report.plan
    worth = gains(problem, plan)
    traffic = traffic_of(problem, plan)
    levels = [name for name, _ in wider(problem.network)]
    leaner = _less_recomputation(problem, plan)
    slowest, _ = bottleneck(report)
    m = plan.point.micro_batches(problem.batch)
    result = []
    for number, stage in enumerate(report.stages):
        needs = _memory_wanted(stage, leaner.stages[number] if leaner else None, problem)
        parts = [
            Constraint(
                "compute",
                "compute",
                stage.compute_s - stage.launch_s + (0.0 if needs else stage.recompute_s),
                0.0,
                *worth["compute"],
            ),
            Constraint("launches", "kernel launches", stage.launch_s, 0.0, *worth["launches"]),
            *(_communication(entry, number, levels, worth) for entry in traffic),
            _memory(stage, needs, leaner, report),
            *_idle(report, number, slowest, m, worth),
        ]
        shares = [
            replace(part, share=part.seconds / report.iteration_s)
            for part in parts
            if part.seconds > DUST * report.iteration_s or (part.kind == "memory" and needs)
        ]
        over = _over(stage, problem) > 0
        shares.sort(key=lambda part: (not (over and part.kind == "memory"), -part.seconds))
        result.append(
            StageBinding(number, tuple(shares), stage.memory.total / problem.memory_bytes)
        )
    return tuple(result)


def _communication(
    entry: Traffic, stage: int, levels: list[str], worth: Mapping[str, Gain]
) -> Constraint:
    level = entry.level[stage]
    if level < 0:
        words = f"the latency of {entry.words}"
        return Constraint("communication", words, entry.seconds[stage], 0.0, "", None)
    words, gain = f"{entry.words} over the {levels[level]} level", f"bandwidth.{levels[level]}"
    return Constraint("communication", words, entry.seconds[stage], 0.0, *worth[gain])


def _idle(
    report: Report, number: int, slowest: int, m: int, worth: Mapping[str, Gain]
) -> tuple[Constraint, ...]:
    """Waiting: for the slowest stage, and for the pipeline to fill and to drain."""
    stage, pace = report.stages[number], report.stages[slowest].micro_batch_s
    behind = min(stage.idle_s, m * (pace - stage.micro_batch_s))
    mean = sum(entry.micro_batch_s for entry in report.stages) / len(report.stages)
    point = report.plan.point
    passes = m if point.schedule in SPLIT else m - 1 / point.interleave
    even = report.iteration_s - passes * (pace - mean)
    return (
        Constraint(
            "bubble",
            f"waiting for stage {slowest + 1}",
            behind,
            0.0,
            "stages of equal load",
            report.iteration_s / even - 1,
        ),
        Constraint(
            "bubble",
            "the pipeline's fill and drain",
            stage.idle_s - behind,
            0.0,
            *worth["micro-batches"],
        ),
    )


def _memory_wanted(stage: Stage, leaner: Stage | None, problem: Problem) -> float:
    """Bytes that a stage lacks: to fit at all, else to recompute one step less; 0 for none."""
    over = _over(stage, problem)
    if leaner is None or stage.recompute_s <= leaner.recompute_s:
        return over
    return over or _over(leaner, problem)


def _over(stage: Stage, problem: Problem) -> float:
    """Bytes that a stage lacks; 0 if it fits, as `price` decides."""
    over = stage.memory.total - problem.planned_bytes
    return over if over > 1e-9 * problem.planned_bytes else 0.0


def _memory(stage: Stage, needs: float, leaner: Report | None, report: Report) -> Constraint:
    if not needs:
        return Constraint("memory", "memory", 0.0, 0.0, "", None)
    more = f"{humanise_bytes(needs)} more per device"
    if leaner is None or stage.memory.total > report.memory_limit_bytes:
        return Constraint("memory", "memory", stage.recompute_s, 0.0, more, None)
    words = f"memory, which takes {stage.recompute} recomputation"
    gain = leaner.samples_per_s / report.samples_per_s - 1
    return Constraint(
        "memory", words, stage.recompute_s, 0.0, f"{more} here, and what other stages lack,", gain
    )


def _less_recomputation(problem: Problem, plan: Plan) -> Report | None:
    """The plan with one step less recomputation in every stage; None where there is none."""
    if set(plan.recompute) == {"none"}:
        return None
    less = tuple("selective" if name == "full" else "none" for name in plan.recompute)
    return price(problem, replace(plan, recompute=less))
