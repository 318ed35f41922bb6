"""Plans, devices, models and searches in sentences and table rows, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.costs import Report, Stage
from nest_core.documents.units import (
    GB,
    NOTHING,
    TERA,
    humanise,
    humanise_seconds,
    percent,
    plural,
    to_gib,
)
from nest_core.hardware import Accelerator
from nest_core.planner import SearchResult
from nest_core.workload import Model

__all__ = [
    "DUST",
    "Headline",
    "accelerator_in_words",
    "bottleneck",
    "certificate_line",
    "fullest",
    "model_in_words",
    "plan_in_words",
    "quantity",
    "stage_rows",
]

DUST = 1e-9
"""Of an iteration: less is rounding, as sums of floats leave 1e-16 for each addend."""

_ORDER_ENDS = {"dp": "replicas of a stage side by side", "pp": "stages of a replica side by side"}


@dataclass(frozen=True, slots=True)
class Headline:
    """One headline figure.

    Parameters
    ----------
    name, value, note : str
        What it is, the figure with its unit, and what stands beneath it.
    formula : tuple of str
        Lines: the formula in symbols, then with the numbers of this plan.
    span : str
        What the figure may be by its interval, or why there is none; empty where neither is
        known.
    basis : str
        What the span stands on.
    """

    name: str
    value: str
    note: str
    formula: tuple[str, ...]
    span: str = ""
    basis: str = ""


def quantity(value: float, unit: str) -> str:
    """Three significant digits with a decimal prefix: ``1.18 M tokens/s``.

    Examples
    --------
    >>> quantity(1_178_000, "tokens/s"), quantity(288, "sequences/s")
    ('1.18 M tokens/s', '288 sequences/s')
    """
    return " ".join(humanise(value, f" {unit}").split())


def bottleneck(report: Report) -> tuple[int, float]:
    """The stage (from 0) with the largest load, and how far it lies above the mean load."""
    loads = [stage.micro_batch_s for stage in report.stages]
    slowest = max(range(len(loads)), key=loads.__getitem__)
    return slowest, loads[slowest] * len(loads) / sum(loads) - 1


def fullest(report: Report) -> tuple[int, Stage]:
    """The stage (from 0) that needs most memory."""
    return max(enumerate(report.stages), key=lambda pair: pair[1].memory.total)


def accelerator_in_words(accelerator: Accelerator) -> str:
    """Memory, its bandwidth and the dense peaks: ``TPU v4: 32 GiB at 1,200 GB/s; ...``."""
    rates: dict[float, list[str]] = {}
    for precision, peak in accelerator.peak_flops:
        rates.setdefault(peak, []).append(precision)
    peaks = ", ".join(f"{peak / TERA:,.5g} in {' and '.join(at)}" for peak, at in rates.items())
    words = (
        f"{accelerator.name}: {to_gib(accelerator.memory_bytes):,.4g} GiB at "
        f"{accelerator.memory_bandwidth_Bps / GB:,.5g} GB/s; dense TFLOP/s: {peaks}"
    )
    return words if accelerator.family.calibrated else f"{words}; uncalibrated"


def model_in_words(model: Model) -> str:
    """A model's size in a few words: ``70.6 billion parameters in 80 blocks``."""
    count = humanise(model.parameters).replace("G", "billion").replace("M", "million")
    size = f"{count} parameters in {model.blocks} blocks"
    if model.experts == 1:
        return size
    return f"{size}, {model.experts} experts of which {model.top_k} work on a token"


def plan_in_words(report: Report, batch: int, devices: int) -> str:
    """Return a plan as one sentence, with its micro-batches and idle devices."""
    point = report.plan.point
    idle = devices - report.plan.devices_used
    count = point.micro_batches(batch)
    padding = point.dp * count * point.micro_batch - batch
    padded = f", padded by {plural(padding, 'sequence')}" if padding else ""
    parts = [
        report.plan.words,
        f"{plural(count, 'micro-batch', 'micro-batches')} per replica{padded}",
        f"{idle:,} devices idle" if idle else f"all {devices:,} devices used",
    ]
    if point.dp > 1 and point.pp > 1:
        inner = next(axis for axis in point.order if axis in _ORDER_ENDS)
        parts.insert(2, _ORDER_ENDS[inner])
    return "; ".join(parts) + "."


def certificate_line(result: SearchResult) -> str:
    """How the search ended, in one line."""
    counts = result.certificate
    if result.best is None:
        verdict = "No feasible plan" if counts.proven else "Stopped early"
    elif counts.proven:
        verdict = "Proven optimal"
    else:
        verdict = f"Within {percent(counts.gap)} of the optimum (stopped early)"
    open_points = f"{counts.open:,} open, " if counts.open else ""
    return (
        f"{verdict}: {counts.points:,} points, {counts.solved:,} solved, "
        f"{counts.bounded:,} bounded, {counts.infeasible:,} infeasible, {open_points}"
        f"{humanise_seconds(result.solve_seconds)}"
    )


def stage_rows(report: Report, levels: tuple[str, ...]) -> list[dict[str, object]]:
    """One row per stage for a table; units stand in the column names.

    Parameters
    ----------
    report : Report
    levels : tuple of str
        Names of the network's levels, innermost first.
    """
    return [
        {
            "stage": number,
            "layers": stage.spans,
            "recomputation": stage.recompute,
            "input over": levels[stage.producer_level] if stage.producer_level >= 0 else NOTHING,
            "load per micro-batch, ms": 1e3 * stage.micro_batch_s,
            "compute, s": stage.compute_s,
            "recompute, s": stage.recompute_s,
            "communication, s": stage.communication_s,
            "idle, s": stage.idle_s,
            "weights, GiB": to_gib(stage.memory.weights),
            "gradients, GiB": to_gib(stage.memory.gradients),
            "optimizer, GiB": to_gib(stage.memory.optimizer),
            "activations, GiB": to_gib(stage.memory.activations),
            "stash, GiB": to_gib(stage.memory.stash),
            "buffers, GiB": to_gib(stage.memory.buffers),
            "memory, GiB": to_gib(stage.memory.total),
        }
        for number, stage in enumerate(report.stages, start=1)
    ]
