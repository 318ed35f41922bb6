"""The equation behind each term of a priced plan, with its numbers filled in.

Symbols are those of ``docs/method.md``; every equation names the section that defines them.
"""

from dataclasses import dataclass, replace

from nest_core.costs import DELAYS, Problem, Report, price
from nest_core.costs.communication import traffic_of
from nest_core.documents.units import humanise, humanise_bytes, humanise_seconds, percent
from nest_core.report.explain.summary import bottleneck, fullest

__all__ = ["Equation", "equations"]

_ROUNDING = 1e-12  # of an iteration
_ONCE = ("tied", "expert_data", "data")
_PER_MICRO_BATCH = {
    "compute": ("m × Σ compute", "Time"),
    "recomputation": ("m × Σ replay_c", "Time"),
    "kernel launches": ("m × Σ (max(device, launch_c) − device)", "Launch"),
}
"""Symbols and sections of terms that are a micro-batch's seconds m times."""


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation.

    Parameters
    ----------
    name : str
        The term of `Report.terms`, or the figure made of terms.
    symbols, numbers : str
        The right-hand side in symbols, and with numbers and its value.
    value : float
        Seconds, a share, sequences per second or bytes.
    section : str
        Of ``docs/method.md``.
    """

    name: str
    symbols: str
    numbers: str
    value: float
    section: str

    @property
    def in_words(self) -> str:
        """Both in one line."""
        return f"{self.name} = {self.symbols} = {self.numbers}"


def equations(problem: Problem, report: Report) -> tuple[Equation, ...]:
    """Every term of a report, then the figures that they add up to."""
    lines = [
        _term(problem, report, name, value if value > _ROUNDING * report.iteration_s else 0.0)
        for name, value in report.terms
    ]
    return (*lines, *_figures(problem, report), _memory(report, problem))


def _term(problem: Problem, report: Report, name: str, seconds: float) -> Equation:
    m = report.plan.point.micro_batches(problem.batch)
    worst, _ = bottleneck(report)
    result, product = humanise_seconds(seconds), f"{m:,} × {humanise_seconds(seconds / m)}"
    for start, (symbols, section) in _PER_MICRO_BATCH.items():
        if name.startswith(start):
            where = _where(report, worst) if start == "compute" else ""
            return Equation(name, symbols, f"{product} = {result}{where}", seconds, section)
    if name.startswith("communication"):
        parts = _per_micro_batch(problem, report, worst, m)
        inner = " + ".join(f"{humanise_seconds(cost)} {words}" for words, cost in parts)
        filled = f"{m:,} × ({inner})" if len(parts) > 1 else f"{product}"
        symbols = "m × (Σ cost_tp + Σ cost_dp + H − saved)"
        return Equation(name, symbols, f"{filled} = {result}", seconds, "Time, Groups, Overlap")
    return (
        _fill(report, name, seconds)
        if name.startswith("pipeline")
        else _synchronisation(problem, report, name, seconds)
    )


def _where(report: Report, stage: int) -> str:
    """Return which stage an equation is of, where there are several."""
    return f" (stage {stage + 1})" if len(report.stages) > 1 else ""


def _per_micro_batch(
    problem: Problem, report: Report, stage: int, m: int
) -> list[tuple[str, float]]:
    """Classes of what a stage sends in one micro-batch, costliest first."""
    classes = traffic_of(problem, report.plan)
    sent = {entry.words: entry.seconds[stage] / m for entry in classes if entry.name not in _ONCE}
    sharded = sum(entry.seconds[stage] for entry in classes if entry.name in _ONCE)
    sent["ZeRO"] = (sharded - (report.stages[stage].sync_s - _update(problem, report, stage))) / m
    least = 1e-6 * max(sent.values(), default=0.0)
    parts = [(words, cost) for words, cost in sent.items() if cost > least]
    return sorted(parts, key=lambda part: -part[1])


def _update(problem: Problem, report: Report, stage: int) -> float:
    """Seconds of a stage's optimizer step."""
    free = price(replace(problem, update_Bps=float("inf")), report.plan)
    return report.stages[stage].sync_s - free.stages[stage].sync_s


def _fill(report: Report, name: str, seconds: float) -> Equation:
    if report.plan.point.schedule in DELAYS:
        return Equation(
            name,
            "Σ g + max(m t − g) − m · max t, where g = t less the deferral of W",
            humanise_seconds(seconds),
            seconds,
            "Schedules",
        )
    loads = [stage.micro_batch_s for stage in report.stages]
    v = report.plan.point.interleave
    if report.plan.is_replayed:
        most = len(report.stages[0].passes)
        return Equation(
            name,
            "end of the last pass − m · max t",
            f"{humanise_seconds(seconds)}, by a replay of {most} virtual stages per stage",
            seconds,
            "Schedules",
        )
    inner = f"{humanise_seconds(sum(loads))} − {humanise_seconds(max(loads))}"
    return Equation(
        name,
        "(Σ t − max t) / v" if v > 1 else "Σ t − max t",
        (f"({inner}) / {v}" if v > 1 else inner) + f" = {humanise_seconds(seconds)}",
        seconds,
        "Schedules",
    )


def _synchronisation(problem: Problem, report: Report, name: str, seconds: float) -> Equation:
    worst = max(range(len(report.stages)), key=lambda s: report.stages[s].sync_s)
    update = _update(problem, report, worst)
    sent = max(0.0, report.stages[worst].sync_s - update)
    return Equation(
        name,
        "max e = cost_dp(Σ T_data) + P (2 o + g + w) / memory rate / sharers",
        f"{humanise_seconds(sent)} sent + {humanise_seconds(update)} updating = "
        f"{humanise_seconds(seconds)}{_where(report, worst)}",
        seconds,
        "Time",
    )


def _figures(problem: Problem, report: Report) -> tuple[Equation, ...]:
    total = humanise_seconds(report.iteration_s)
    parts = " + ".join(
        humanise_seconds(seconds)
        for _, seconds in report.terms
        if seconds > _ROUNDING * report.iteration_s
    )
    rate, devices = report.samples_per_s, problem.network.devices
    return (
        Equation(
            "iteration", "m max t + fill + max e", f"{parts} = {total}", report.iteration_s, "Time"
        ),
        Equation(
            "throughput",
            "batch / iteration",
            f"{problem.batch:,} / {total} = {humanise(rate)} sequences/s",
            rate,
            "Time",
        ),
        Equation(
            "MFU",
            "sequences/s × FLOP per sequence / (devices × peak)",
            f"{humanise(rate)} × {humanise(problem.model_flops)} / "
            f"({devices:,} × {humanise(problem.peak_flops)}) = {percent(report.mfu)}",
            report.mfu,
            "Time",
        ),
    )


def _memory(report: Report, problem: Problem) -> Equation:
    number, stage = fullest(report)
    memory = stage.memory
    states = memory.weights + memory.gradients + memory.optimizer
    passes = memory.activations + memory.stash
    moment = memory.working + memory.whole + memory.step
    return Equation(
        "memory of the fullest stage" if len(report.stages) > 1 else "memory",
        "(states + in flight × kept_c + working and whole) (1 + fragmentation) + context + "
        "communicators",
        f"({humanise_bytes(states)} + {humanise_bytes(passes)} + {humanise_bytes(moment)}) × "
        f"{1 + problem.fragmentation:.3g} + {humanise_bytes(memory.context)} + "
        f"{humanise_bytes(memory.communicators)} = "
        f"{humanise_bytes(memory.total)}{_where(report, number)}",
        memory.total,
        "Memory",
    )
