"""Plans, devices, models and searches in sentences and table rows, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.costs import Plan, Point, Report, Stage
from nest_core.hardware import Accelerator
from nest_core.layout import DeviceOrder, seatings_among
from nest_core.planner import Result
from nest_core.units import GB, TERA, humanise, humanise_seconds, to_gib
from nest_core.workload import Model

__all__ = [
    "DUST",
    "NOTHING",
    "SCHEDULES_IN_WORDS",
    "Headline",
    "accelerator_in_words",
    "bottleneck",
    "certificate_line",
    "fullest",
    "model_in_words",
    "plan_in_words",
    "quantity",
    "schedule_in_words",
    "seated_in_words",
    "share",
    "stage_rows",
]

DUST = 1e-9
"""Of an iteration: less is rounding, as sums of floats leave 1e-16 for each addend."""
NOTHING = "–"
"""Where a figure or a cell has no value."""

SCHEDULES_IN_WORDS = {
    "1f1b": "1F1B",
    "interleaved": "interleaved 1F1B",
    "gpipe": "GPipe",
    "zb_h1": "ZB-H1",
    "zb_1p": "ZB-1p",
    "zb_2p": "ZB-2p",
}
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


def share(value: float) -> str:
    """A share as a percentage with three significant digits at most.

    Examples
    --------
    >>> share(0.1397), share(0.0), share(0.00044)
    ('14.0 %', '0 %', '0.044 %')
    """
    return f"{humanise(100 * value)} %"


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
    """A plan as one sentence in the field's terms."""
    point = report.plan.point
    idle = devices - report.plan.devices_used
    padding = point.dp * point.micro_batches(batch) * point.micro_batch - batch
    parts = [
        f"{point.dp:,} {_plural('replica', point.dp)} (dp {point.dp})",
        f"{point.pp} pipeline {_plural('stage', point.pp)} (pp {point.pp})",
        *_within_stages(report.plan),
        f"{point.micro_batches(batch):,} "
        f"{'micro-batch' if point.micro_batches(batch) == 1 else 'micro-batches'} of "
        f"{point.micro_batch} "
        f"{_plural('sequence', point.micro_batch)} per replica, {schedule_in_words(point)}"
        + (f", padded by {padding:,} {_plural('sequence', padding)}" if padding else ""),
        point.zero_words if not report.plan.strategies else "strategies differ by stage",
        f"recomputation {report.plan.recompute_summary}",
    ]
    if report.plan.offload.words:
        parts.append(f"{report.plan.offload.words} on the host")
    if point.dp > 1 and point.pp > 1:
        inner = next(axis for axis in point.order if axis in _ORDER_ENDS)
        parts.append(_ORDER_ENDS[inner])
    parts += seated_in_words(point.device_order)
    parts.append(f"all {devices:,} devices used" if not idle else f"{idle:,} devices idle")
    return "; ".join(parts) + "."


def seated_in_words(order: DeviceOrder) -> list[str]:
    """The seating of a device order, if it is one.

    Examples
    --------
    >>> seated_in_words("8 per node"), seated_in_words("natural"), seated_in_words((1, 0))
    (['seated 8 per node'], [], [])
    """
    return [f"seated {name}" for name in seatings_among([order] if isinstance(order, str) else [])]


def _within_stages(plan: Plan) -> list[str]:
    """How stages divide their layers; of unequal ones their devices."""
    point = plan.point
    if plan.ragged:
        widths = ", ".join(map(str, plan.widths))
        return [f"stages of unequal width, {widths} devices per replica"]
    tensor = f"tensor parallelism over {point.tp} {_plural('device', point.tp)} (tp {point.tp}"
    return [
        tensor + (", with sequence parallelism)" if point.sp else ")"),
        *_beside_tensor(point),
    ]


def _beside_tensor(point: Point) -> list[str]:
    """Context and expert parallelism, where there is any."""
    found = []
    if point.cp > 1:
        found.append(f"each sequence over {point.cp} devices (cp {point.cp})")
    if point.ep > 1:
        found.append(f"experts over {point.ep} ranks (ep {point.ep})")
    if point.etp != point.tp:
        found.append(f"each expert over {point.etp} (etp {point.etp})")
    return found


def schedule_in_words(point: Point) -> str:
    """The schedule with its virtual stages.

    Examples
    --------
    >>> schedule_in_words(Point(1, False, 1, 2, 1, 0, ("tp", "cp", "dp", "pp")))
    '1F1B'
    """
    if point.schedule == "interleaved":
        return f"interleaved 1F1B with {point.interleave} virtual stages per stage"
    return SCHEDULES_IN_WORDS[point.schedule]


def certificate_line(result: Result) -> str:
    """How the search ended, in one line."""
    found = result.certificate
    if result.best is None:
        verdict = "No feasible plan" if found.proven else "Stopped early"
    elif found.proven:
        verdict = "Proven optimal"
    else:
        verdict = f"Within {share(found.gap)} of the optimum (stopped early)"
    left = f"{found.open:,} open, " if found.open else ""
    return (
        f"{verdict}: {found.points:,} points, {found.solved:,} solved, {found.bounded:,} bounded, "
        f"{found.infeasible:,} infeasible, {left}{humanise_seconds(result.solve_seconds)}"
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


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"
