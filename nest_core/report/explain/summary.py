"""Plans, devices, models and searches in sentences and table rows, ready to be shown.

What a certificate is over, axis by axis: for files, and in one sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nest_core.costs import SCHEDULES_IN_WORDS, Report, Stage, seatings_among
from nest_core.documents import (
    GB,
    NOTHING,
    TERA,
    capital,
    grouped,
    humanise,
    humanise_bytes,
    humanise_seconds,
    join_words,
    plural,
    to_gib,
)
from nest_core.hardware import Accelerator
from nest_core.planner import Certificate, SearchResult, SearchSpace
from nest_core.workload import Model

__all__ = [
    "DUST",
    "Headline",
    "accelerator_in_words",
    "axes_of",
    "bottleneck",
    "certificate_line",
    "fullest",
    "model_in_words",
    "plan_in_words",
    "proven_over",
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


def fullest_words(report: Report) -> str:
    """Return which stages need most memory, as far as its figure says."""
    needs = [humanise_bytes(stage.memory.total) for stage in report.stages]
    number, stage = fullest(report)
    count = needs.count(humanise_bytes(stage.memory.total))
    return (
        f"stage {number + 1} is fullest"
        if count == 1
        else f"{count} of {len(needs)} stages are fullest"
    )


def accelerator_in_words(accelerator: Accelerator) -> str:
    """Memory, its bandwidth and the dense peaks: ``TPU v4: 32 GiB at 1,200 GB/s; ...``."""
    rates = grouped((peak, precision) for precision, peak in accelerator.peak_flops)
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
    return (
        size
        if model.experts == 1
        else f"{size}, {model.experts} experts of which {model.top_k} work on a token"
    )


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
        parts.insert(2, _ORDER_ENDS[next(axis for axis in point.order if axis in _ORDER_ENDS)])
    return "; ".join(parts) + "."


def certificate_line(result: SearchResult) -> str:
    """How the search ended, in one line."""
    counts = result.certificate
    is_found = result.best is not None
    verdict = (
        ("Proven optimal" if is_found else "No feasible plan")
        if counts.proven
        else f"Best so far, {counts.room} ({counts.stopped})"
        if is_found
        else capital(counts.stopped)
    )
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


_LISTED = 16
"""So many degrees are listed; of more the bounds are told."""


def axes_of(space: SearchSpace) -> dict[str, Any]:
    """The axes that a search was over, by the keys and in the values of ``[search]``.

    Degrees are those that are valid on their own; ``etp`` is ``tp`` where it is none of its own.

    Examples
    --------
    >>> dp = tuple(range(1, 65))
    >>> space = SearchSpace(tp=(1, 2), sp=(False,), dp=dp, pp=(1,), micro_batch=(1,))
    >>> axes = axes_of(space)
    >>> axes["tp"], axes["dp"], axes["layouts"], axes["offload"]
    ([1, 2], {'min': 1, 'max': 64}, 'even', ['none'])
    """
    return {
        **{axis: _degrees(getattr(space, axis)) for axis in ("tp", "cp", "ep")},
        "etp": _degrees(space.etp) if space.etp else "tp",
        **{axis: _degrees(getattr(space, axis)) for axis in ("pp", "dp")},
        "sp": list(space.sp),
        "micro_batch_sequences": _degrees(space.micro_batch),
        "zero": list(space.zero),
        "zero_group": [group or "all" for group in space.zero_groups],
        "recompute": list(space.recompute),
        "offload": [offload.shares or "none" for offload in space.offload],
        "schedule": list(space.schedules),
        "interleave": _degrees(space.interleave),
        "layouts": space.layouts,
        "order": [list(order) for order in space.orders],
        "device_order": list(space.device_orders),
        "idle_devices": space.idle_devices,
        "stage_strategies": "mixed" if space.mixed else "uniform",
        "memory_rule": "as_needed" if space.as_needed else "joint",
    }


def proven_over(certificate: Certificate) -> str:
    """The same in one sentence.

    Examples
    --------
    >>> space = SearchSpace(tp=(1, 2, 4, 8), sp=(True,), dp=(4, 8), pp=(1,), micro_batch=(1,),
    ...     orders=(("tp", "cp", "dp", "pp"),), device_orders=("rack",))
    >>> print(proven_over(Certificate(1.0, 0.0, True, 1, 1, 0, 0, space)).replace("; ", ";\\n"))
    Over tp 1 to 8, cp 1, ep 1, etp as tp, pp 1, dp 4 and 8, micro-batch 1, with sp;
    ZeRO 0 to 3 over all ranks;
    recomputation none, selective and full;
    offload none;
    schedule 1F1B;
    uniform stages cut at any layer;
    rank order tp-cp-dp-pp;
    ranks on consecutive devices (rack), some idle or none.
    """
    space = certificate.space
    degrees = {
        "tp": space.tp,
        "cp": space.cp,
        "ep": space.ep,
        "etp": space.etp,
        "pp": space.pp,
        "dp": space.dp,
        "micro-batch": space.micro_batch,
    }
    parts = [
        "Over "
        + ", ".join(f"{name} {_values(every)}" for name, every in degrees.items())
        + f", {'with and without' if len(space.sp) > 1 else 'with' if space.sp[0] else 'without'}"
        " sp",
        f"ZeRO {_values(space.zero)} over "
        f"{join_words([str(n or 'all') for n in space.zero_groups])} "
        "ranks",
        f"recomputation {join_words(space.recompute)}",
        f"offload {join_words([offload.words or 'none' for offload in space.offload], 'or')}",
        _schedules(space),
        f"{'mixed' if space.mixed else 'uniform'} stages cut at any layer"
        + (", ZeRO and recomputation as needed" if space.as_needed else ""),
        _counted("rank order", ["-".join(order) for order in space.orders]),
        _seatings(space),
    ]
    return "; ".join(parts) + "."


def _degrees(values: tuple[int, ...]) -> list[int] | dict[str, int]:
    return list(values) if len(values) <= _LISTED else {"min": min(values), "max": max(values)}


def _values(values: tuple[int, ...]) -> str:
    if not values:
        return "as tp"
    return (
        join_words([str(value) for value in values])
        if len(values) <= 2
        else f"{min(values)} to {max(values)}"
    )


def _schedules(space: SearchSpace) -> str:
    schedules = _counted("schedule", [SCHEDULES_IN_WORDS[name] for name in space.schedules])
    if not {"interleaved", "interleaved_zb"} & set(space.schedules):
        return schedules
    several = tuple(v for v in space.interleave if v > 1)
    layouts = "even" if space.layouts == "even" else "even and uneven"
    return f"{schedules} with {_values(several)} virtual stages in {layouts} layouts"


def _seatings(space: SearchSpace) -> str:
    seatings = seatings_among(space.device_orders)
    straight = [order for order in space.device_orders if order not in seatings]
    seated = f" or in {len(seatings)} {_counted('seating', seatings, ': ')}" if seatings else ""
    idle = "some idle or none" if space.idle_devices else "none idle"
    return f"ranks on consecutive devices ({', '.join(straight)}){seated}, {idle}"


def _counted(noun: str, names: Sequence[str], of: str = " ") -> str:
    return f"{noun}{'s' if len(names) > 1 else ''}{of}{join_words(names)}"
