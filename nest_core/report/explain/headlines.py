"""The five figures that stand above an answer, each with its interval and formula.

Every figure keeps the formula it came from with its numbers filled in, so that a page, a
notebook or a report can print both without computing anything.

A fabric and what it collapses to in headline figures and sentences, ready to be shown.
"""

from collections.abc import Sequence

from nest_core.costs import (
    DELAYS,
    Interval,
    Report,
    mfu_convention,
    model_flops,
    span_in_words,
    spread_of,
)
from nest_core.documents.units import (
    GB,
    MICROSECOND,
    NOTHING,
    humanise,
    humanise_bytes,
    humanise_rate,
    humanise_seconds,
    percent,
)
from nest_core.fabric import Fabric
from nest_core.hardware import SHARE, WIDTH, Stack
from nest_core.network import Network, full_bisection_Bps, knows_nodes
from nest_core.planner.baselines import Baseline, fastest
from nest_core.report.explain.summary import DUST, Headline, fullest, fullest_words, quantity
from nest_core.report.explain.validity import Validity
from nest_core.report.tables import Table
from nest_core.scenario import ScenarioValues

__all__ = ["fabric_headlines", "headlines", "levels_table"]


def headlines(
    scenario: ScenarioValues,
    best: Report | None,
    estimate: Validity | None,
    interval: Interval | None,
    baselines: Sequence[Baseline] | None,
) -> tuple[Headline, ...]:
    """Throughput, speed-up, iteration time, bubble and memory head-room, in this order.

    Parameters
    ----------
    scenario : ScenarioValues
    best : Report or None
        The best plan's.
    estimate : Validity or None
        What that report stands on.
    interval : Interval or None
        Where its time will lie.
    baselines : sequence of Baseline or None
        None while they are still being priced: no speed-up is claimed then.
    """
    if best is None or estimate is None or interval is None:
        names = ("Throughput", "Speed-up", "Iteration time", "Pipeline bubble", "Memory head-room")
        return tuple(Headline(name, NOTHING, "no feasible plan", ()) for name in names)
    return (
        _throughput(scenario, best, estimate, interval),
        _speedup(best, baselines),
        _iteration(scenario, best, estimate, interval),
        _bubble(scenario.batch, best),
        _head_room(best, scenario.stack),
    )


def _basis(scenario: ScenarioValues, estimate: Validity) -> str:
    """What the ranges of time and rates stand on."""
    return f"{percent(SHARE)} interval under {scenario.stack.name}. {estimate.in_words}"


def _throughput(
    scenario: ScenarioValues, best: Report, estimate: Validity, interval: Interval
) -> Headline:
    tokens = best.samples_per_s * scenario.sequence
    return Headline(
        "Throughput",
        quantity(tokens, "tokens/s"),
        f"{quantity(best.samples_per_s, 'sequences/s')}, "
        f"{quantity(best.tokens_per_s_per_device, 'tokens/s')} per device",
        (
            "throughput = batch · sequence length / iteration time",
            f"= {scenario.batch:,} · {scenario.sequence:,} tokens / "
            f"{humanise_seconds(best.iteration_s)} = {quantity(tokens, 'tokens/s')}",
        ),
        span_in_words(interval.around(tokens), lambda rate: quantity(rate, "tokens/s")),
        _basis(scenario, estimate),
    )


def _speedup(best: Report, baselines: Sequence[Baseline] | None) -> Headline:
    if baselines is None:
        return Headline("Speed-up", "…", "pricing the baselines", ())
    rival = fastest(baselines)
    if rival is None or rival.report is None:
        why = "no baseline is feasible here" if baselines else "no baseline was asked for"
        return Headline("Speed-up", NOTHING, why, ())
    speedup = rival.report.iteration_s / best.iteration_s
    tied = abs(speedup - 1) < 0.005
    return Headline(
        "Speed-up",
        f"{speedup:.2f} ×",
        f"as fast as {rival.label}" if tied else f"over {rival.label}, the best baseline",
        (
            "speed-up = the best feasible baseline's iteration time / ours",
            f"= {humanise_seconds(rival.report.iteration_s)} ({rival.label}) / "
            f"{humanise_seconds(best.iteration_s)} = {speedup:.2f}",
        ),
    )


def _iteration(
    scenario: ScenarioValues, best: Report, estimate: Validity, interval: Interval
) -> Headline:
    m = best.plan.point.micro_batches(scenario.batch)
    worst, fill = max(stage.micro_batch_s for stage in best.stages), best.fill_s
    sync = best.iteration_s - m * worst - fill
    flops = model_flops(scenario.model, scenario.sequence)
    all_scores = model_flops(scenario.model, scenario.sequence, whole_scores=True) / flops
    peak = scenario.accelerator.peak(scenario.precision)
    convention = (
        " as Megatron-LM prints it" if "as Megatron" in mfu_convention(scenario.model) else ""
    )
    return Headline(
        "Iteration time",
        humanise_seconds(best.iteration_s),
        f"MFU {percent(best.mfu)}{convention}, {span_in_words(interval.around(best.mfu), percent)}",
        (
            f"iteration = m · max t + {_fill(best)} + synchronisation and optimizer step",
            f"= {m:,} · {humanise_seconds(worst)} + {humanise_seconds(fill)} + "
            f"{humanise_seconds(sync)} = {humanise_seconds(best.iteration_s)}",
            "spent on: "
            + ", ".join(f"{humanise_seconds(seconds)} {name}" for name, seconds in _spent(best)),
            "MFU = sequences/s · model FLOP per sequence / (devices · peak FLOP/s), "
            + mfu_convention(scenario.model),
            f"= {humanise(best.samples_per_s)}/s · {humanise(flops, 'FLOP')} / "
            f"({scenario.fabric.devices:,} · {humanise(peak, 'FLOP/s')}) = "
            f"{percent(best.mfu)}; {percent(best.mfu * all_scores)} with all scores counted, as in "
            "Narayanan et al. 2021",
            f"{percent(SHARE)} interval = iteration · exp(± {WIDTH:.3g} · σ), σ² of kernels and "
            "network, of sources and of runs",
            f"= {humanise_seconds(interval.centre_s)} · exp(± {WIDTH:.3g} · "
            f"{interval.spread:.3g}) = "
            + span_in_words((interval.low_s, interval.high_s), humanise_seconds),
        ),
        span_in_words((interval.low_s, interval.high_s), humanise_seconds),
        _basis(scenario, estimate),
    )


def _spent(best: Report) -> list[tuple[str, float]]:
    """Terms that take any time; what is left by rounding is none."""
    least = DUST * best.iteration_s
    return [(name, seconds) for name, seconds in best.terms if seconds > least]


def _fill(best: Report) -> str:
    """The seconds of fill and drain, in symbols; virtual stages let the next begin earlier, and
    gradients of weights (W) that wait let the others go on.
    """
    if best.plan.point.schedule in DELAYS:
        return "(Σ g + max(m t − g) − m · max t)"
    if best.plan.is_replayed:
        return "(end of the last pass − m · max t)"
    return "(Σ t − max t)" + (" / v" if best.plan.point.interleave > 1 else "")


def _bubble(batch: int, best: Report) -> Headline:
    loads = [stage.micro_batch_s for stage in best.stages]
    v, m = best.plan.point.interleave, best.plan.point.micro_batches(batch)
    fill, equal = humanise_seconds(best.fill_s), ""
    if best.plan.point.schedule not in DELAYS and not best.plan.is_replayed:
        fill = f"({humanise_seconds(sum(loads))} − {humanise_seconds(max(loads))})"
        fill += f" / {v}" if v > 1 else ""
        equal = f", for equal stages (p − 1) / {'m' if v == 1 else '(v m)'} (Narayanan et al. 2021)"
    return Headline(
        "Pipeline bubble",
        percent(best.bubble),
        f"{humanise_seconds(best.fill_s)} of fill and drain, over the time without them",
        (
            f"bubble fraction = {_fill(best)} / (m · max t){equal}",
            f"= {fill} / ({m:,} · {humanise_seconds(max(loads))}) = {percent(best.bubble)}",
        ),
    )


def _head_room(best: Report, stack: Stack) -> Headline:
    spread = spread_of(stack.framework)
    number, stage = fullest(best)
    memory = stage.memory
    parts = (
        ("weights", memory.weights),
        ("gradients", memory.gradients),
        ("optimizer", memory.optimizer),
        ("activations", memory.activations),
        ("stash", memory.stash),
        ("buffers", memory.buffers),
    )
    sure = spread.sd > 0.0
    used, limit = humanise_bytes(memory.total), humanise_bytes(best.memory_limit_bytes)
    free = humanise_bytes(best.memory_limit_bytes - memory.total)
    return Headline(
        "Memory head-room",
        free,
        f"{fullest_words(best)}: {used} of {limit}"
        + (f", {spread.chance_in_words(memory.total, best.memory_limit_bytes)}" if sure else ""),
        (
            "head-room = memory per device − the fullest stage's need",
            f"= {limit} − {used} = {free}",
            f"stage {number + 1}: "
            + " + ".join(f"{humanise_bytes(size)} {name}" for name, size in parts),
        ),
        span_in_words((memory.total / spread.factor, memory.total * spread.factor), humanise_bytes)
        if sure
        else "no interval",
        spread.in_words(stack.name),
    )


def fabric_headlines(
    fabric: Fabric, network: Network, bisection_Bps: float | None, error: float | None
) -> tuple[Headline, ...]:
    """Devices, levels, bisection, its share of full bisection, collapse error, in this order.

    Parameters
    ----------
    fabric : Fabric
    network : Network
        What it collapses to.
    bisection_Bps, error : float or None
        As `nest_core.network.bisection.bisection_Bps` and
        `nest_core.network.patterns.collapse_error` find them; None where it takes too long.
    """
    return (
        Headline(
            "Devices", f"{network.devices:,}", fabric.extent(), ("devices present, idle or not",)
        ),
        Headline(
            "Levels",
            f"{len(network.levels):,}",
            _level_names(network),
            ("a level is a class of pairs of devices that communicate alike",),
        ),
        *_bisection(bisection_Bps, network),
        _collapse_error(error),
    )


def _bisection(cut: float | None, network: Network) -> tuple[Headline, Headline]:
    if cut is None:
        reason = "one device has no halves" if network.devices < 2 else "too many links to cut"
        return (
            Headline("Bisection", "–", reason, ()),
            Headline("Of full bisection", "–", reason, ()),
        )
    bisection_card = Headline(
        "Bisection",
        humanise_rate(cut),
        "between the halves, one way",
        (
            "bisection = least cut found between two halves of the devices, nodes undivided",
            f"= {humanise_rate(cut)} one way",
        ),
    )
    if not knows_nodes(network):
        return bisection_card, Headline(
            "Of full bisection", "–", "no NICs drawn: where nodes end is not known", ()
        )
    full = full_bisection_Bps(network)
    return (
        bisection_card,
        Headline(
            "Of full bisection",
            percent(cut / full),
            f"full: {humanise_rate(full)}",
            (
                "share = bisection / "
                "what one half could send if nothing above the nodes limited it",
                f"= {humanise_rate(cut)} / {humanise_rate(full)} = {percent(cut / full)}",
            ),
        ),
    )


def _collapse_error(error: float | None) -> Headline:
    if error is None:
        return Headline(
            "Collapse error",
            "–",
            "not computed for large drawings",
            ("nest-studio levels FILE computes it, in minutes",),
        )
    return Headline(
        "Collapse error",
        percent(error) if error < 1 else f"{humanise(error)} ×",
        "levels are exact here" if error == 0 else "levels alone; times count links",
        (
            "collapse error = worst of |time by levels alone / time by links − 1| over sampled "
            "placements",
            "plans and collectives are priced on the links and do not carry it",
        ),
    )


def _level_names(network: Network) -> str:
    names = [level.name for level in network.levels]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]}"


def _level_finding(network: Network) -> str:
    """What a device has at the innermost and at the outermost level."""
    inner, outer = network.levels[0], network.levels[-1]
    first, last = (humanise_rate(level.bandwidth_Bps) for level in (inner, outer))
    return (
        f"With all sending, a device has {first}"
        if len(network.levels) == 1
        else f"With all sending, a device has {first} at {inner.where}, {last} at {outer.name}"
    )


def levels_table(network: Network) -> Table:
    """Return one row per level, innermost first; units stand in the column names.

    On a torus levels class pairs of devices by hops and have no groups.
    """
    return Table(
        _level_finding(network),
        "Levels; bandwidth is one way",
        [
            {"level": level.name, "kind": level.kind}
            | (
                {}
                if network.torus is not None
                else {
                    "group, devices": f"{level.group_size:,}" if level.group_size else "–",
                    "groups": f"{level.groups:,}",
                    "links per uplink": f"{level.links:,.4g}",
                }
            )
            | {
                "all sending, GB/s per device": humanise(level.bandwidth_Bps / GB),
                "one sending, GB/s": humanise(level.single_flow_Bps / GB),
                "latency, µs": f"{level.latency_s / MICROSECOND:.3g}",
            }
            for level in network.levels
        ],
    )
