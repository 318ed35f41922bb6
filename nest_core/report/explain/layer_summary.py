"""A layer's anatomy in headline figures, sentences and table rows, ready to be shown."""

from collections.abc import Mapping, Sequence

from nest_core.costs.anatomy import BOUNDS, Anatomy, OperatorBound, calls_in_words
from nest_core.costs.exchange_times import ExchangeTime
from nest_core.documents import (
    MICROSECOND,
    NOTHING,
    alike,
    and_others,
    capital,
    humanise,
    humanise_bytes,
    humanise_seconds,
    join_words,
    percent,
    plural,
    three_digits,
)
from nest_core.report.explain.summary import Headline
from nest_core.workload import Strategy

__all__ = [
    "BOUND_WORDS",
    "LAYER_WORDS",
    "exchange_finding",
    "exchange_rows",
    "kept_finding",
    "layer_finding",
    "layer_headlines",
    "layer_in_words",
    "operator_rows",
    "strategy_in_words",
    "undivided",
]

LAYER_WORDS = {
    "embedding": "embedding",
    "block": "block",
    "moe_block": "mixture-of-experts block",
    "local_block": "local block",
    "local_moe_block": "local mixture-of-experts block",
    "head": "head",
}
BOUND_WORDS: dict[OperatorBound, str] = {
    "arithmetic": "arithmetic",
    "memory": "memory bandwidth",
    "host": "the host",
}
_MEGA, _GIGA, _MIB = 1e6, 1e9, 2.0**20


def undivided(strategy: Strategy) -> Strategy:
    """The same shapes and kernels on one device."""
    return Strategy(
        micro_batch=strategy.micro_batch,
        sequence=strategy.sequence,
        width=strategy.width,
        attention=strategy.attention,
        fused=strategy.fused,
        joined=strategy.joined,
        capacity=strategy.capacity,
        scaled_activations=strategy.scaled_activations,
        accumulation=strategy.accumulation,
        launching=strategy.launching,
    )


def strategy_in_words(strategy: Strategy, kind: str) -> str:
    """The degrees above one that a kind of layer knows, as people say them."""
    ep = strategy.ep if kind.endswith("moe_block") else 1
    etp = strategy.etp if kind.endswith("moe_block") and strategy.etp != strategy.tp else 1
    parts = [
        f"{axis} {degree}"
        for axis, degree in (("tp", strategy.tp), ("cp", strategy.cp), ("ep", ep), ("etp", etp))
        if degree > 1
    ]
    if strategy.sp and strategy.tp > 1:
        parts.insert(1, "sp")
    return ", ".join(parts) or "one device"


def layer_finding(layer: Anatomy) -> str:
    """What bounds most operators, and which one takes most of the time."""
    parts = [part for part in layer.parts if part.runs]
    counts = {name: sum(part.bound == name for part in parts) for name in BOUNDS}
    times = max(counts.values())
    most = [BOUND_WORDS[name] for name, count in counts.items() if count == times]
    if len(parts) == 1:
        return f"{capital(most[0])} bounds {parts[0].name}, the only operator"
    count = f"all {times}" if times == len(parts) else f"{times} of {len(parts)}"
    verb, suffix = ("bounds", "") if len(most) == 1 else ("bound", " each")
    longest = _most_of({part.name: part.seconds / layer.device_s for part in parts}, "takes")
    return f"{capital(join_words(most))} {verb} {count} operators{suffix}; {longest} of the time"


def layer_headlines(layer: Anatomy) -> tuple[Headline, ...]:
    """Time, rate, host, memory kept and communication of a layer, in this order."""
    forward, backward = humanise_seconds(layer.forward_s), humanise_seconds(layer.backward_s)
    again = f", {humanise_seconds(layer.replay_s)} again" if layer.replay_s else ""
    total = humanise_seconds(layer.device_s)
    rate = layer.flops / layer.device_s
    peak = layer.accelerator.peak(layer.precision)
    kernels = round(layer.host_s / layer.accelerator.family.host_s) if layer.host_s else 0
    issue = humanise_seconds(layer.accelerator.family.host_s)
    behind = layer.host_s <= layer.device_s
    return (
        Headline(
            "Device time",
            total,
            f"{forward} forward, {backward} backward{again}",
            (
                "sum of the operators' seconds, one micro-batch, without communication",
                f"{forward} + {backward}{again.replace(',', ' +')} = {total}",
            ),
        ),
        Headline(
            "Of the peak",
            percent(rate / peak),
            f"{humanise(rate, 'FLOP/s')}, replays not counted",
            (
                "FLOP / device time / peak",
                f"{humanise(layer.flops, 'FLOP')} / {total} / {humanise(peak, 'FLOP/s')}"
                f" = {percent(rate / peak)}",
            ),
        ),
        Headline(
            "Host time",
            humanise_seconds(layer.host_s),
            "to issue kernels, hidden" if behind else "to issue kernels, longer than they run",
            (
                "kernels and collectives · time to issue one; runs beside the device",
                f"{kernels} · {issue} = {humanise_seconds(layer.host_s)}",
            ),
        ),
        Headline(
            "Kept for backward",
            humanise_bytes(layer.kept_bytes),
            f"with recomputation {layer.recompute}",
            (
                "tensors that backward reads again, shared ones once; the table says whose",
                f"{layer.recompute} recomputation: {humanise_bytes(layer.kept_bytes)}",
            ),
        ),
        _communication(layer),
    )


def _communication(layer: Anatomy) -> Headline:
    axes = dict.fromkeys(("tp", "cp", "ep", "etp"), 0.0)
    calls = dict.fromkeys(axes, 0)
    for exchange in layer.exchanges:
        number = len(exchange.node.forward) + len(exchange.node.backward)
        calls[exchange.node.axis] += number
        axes[exchange.node.axis] += number * exchange.bytes
    lines = tuple(
        f"{axis}: {calls[axis]} calls, buffers of {humanise_bytes(size)} in all"
        for axis, size in axes.items()
        if calls[axis]
    )
    note = ", ".join(f"{calls[axis]} calls in {axis}" for axis in axes if calls[axis])
    return Headline(
        "Communication buffers",
        humanise_bytes(sum(axes.values())) if lines else NOTHING,
        note or "nothing is divided",
        ("buffers of all calls, both passes, replays left out", *lines),
    )


def layer_in_words(layer: Anatomy) -> tuple[str, str]:
    """What is taken apart, and on what."""
    times = layer.model.kinds[layer.kind]
    name = LAYER_WORDS[layer.kind]
    alike = f"one of {times:,} alike" if times > 1 else "the only one"
    divided = strategy_in_words(layer.strategy, layer.kind)
    rank = "undivided" if divided == "one device" else f"one rank of {divided}"
    family = layer.accelerator.family
    fit = "fitted to measurements" if family.calibrated else "not fitted: no measurements"
    return (
        f"{capital(name)} of {layer.model.name}, {rank}",
        f"{capital(alike)} of the model's {sum(n for _, n in layer.model.runs):,} "
        f"layers. Micro-batch of {layer.strategy.micro_batch:,} × {layer.strategy.sequence:,} "
        f"tokens in {layer.precision} on {layer.accelerator.name}. Estimator: family "
        f"{family.name}, {fit}.",
    )


def kept_finding(layer: Anatomy) -> str:
    """Who keeps most for backward."""
    total = humanise_bytes(layer.kept_bytes)
    if layer.recompute == "full":
        return f"Only the layer's input is kept for backward, {total}"
    if not any(part.kept_bytes for part in layer.parts):
        return "Nothing is kept for backward"
    shares = {part.name: part.kept_bytes / layer.kept_bytes for part in layer.parts}
    return f"{_most_of(shares, 'keeps')} of the {total} for backward"


def _most_of(shares: Mapping[str, float], verb: str) -> str:
    """Return who has the largest share, all of those that read the same, and how much each."""
    most = max(shares.values())
    names = alike(shares, percent, most)
    agreed = verb if len(names) == 1 else f"each {verb[:-1]}"
    return f"{and_others(names)} {agreed} {percent(most)}"


def exchange_finding(layer: Anatomy, times: Sequence[ExchangeTime] = ()) -> str:
    """What the collectives take beside compute; without a fabric the largest buffer.

    Parameters
    ----------
    layer : Anatomy
    times : sequence of ExchangeTime
        Of every exchange on some fabric.
    """
    if not layer.exchanges:
        return "No collectives: nothing is divided"
    count = len(layer.exchanges)
    many = plural(count, "collective")
    if not times:
        sizes = [exchange.bytes for exchange in layer.exchanges]
        most = humanise_bytes(max(sizes))
        return f"{many}; the largest buffer, {most}, is that of {_largest(layer, sizes)}"
    total = sum(time.seconds for time in times)
    verb = "takes" if count == 1 else "take"
    fraction = total / (total + layer.device_s)
    return (
        f"{many} {verb} {humanise_seconds(total)}, {percent(fraction)} of the layer "
        f"if nothing hides them; longest: {_largest(layer, [time.seconds for time in times])}"
    )


def _largest(layer: Anatomy, values: Sequence[float]) -> str:
    """Return the exchange whose value is largest, and how many are as large up to rounding."""
    places = [n for n, value in enumerate(values) if value >= (1 - 1e-9) * max(values)]
    return and_others([layer.exchanges[place].node.name for place in places])


def operator_rows(layer: Anatomy) -> list[dict[str, str]]:
    """One row per operator in execution order; units stand in the column names."""
    return [
        {
            "operator": part.name,
            "forward, GFLOP": f"{part.forward.flops / _GIGA:,.3g}"
            if part.forward.flops
            else NOTHING,
            "forward, MB": three_digits(part.forward.bytes / _MEGA) if part.runs else NOTHING,
            "FLOP/B": three_digits(part.forward.flops / part.forward.bytes)
            if part.forward.flops
            else NOTHING,
            "forward, µs": three_digits(part.forward.seconds / MICROSECOND)
            if part.runs
            else NOTHING,
            "backward, µs": three_digits(part.backward.seconds / MICROSECOND)
            if part.runs
            else NOTHING,
            "of the layer, %": f"{100 * part.seconds / layer.device_s:.1f}"
            if part.runs
            else NOTHING,
            "kept, MiB": three_digits(part.kept_bytes / _MIB) if part.kept_bytes else NOTHING,
            "parameters, M": three_digits(part.operator.parameters / _MEGA)
            if part.operator.parameters
            else NOTHING,
            "bound by": BOUND_WORDS[part.bound]
            if part.runs
            else f"with {part.node.together.rpartition('.')[2]}",
        }
        for part in layer.parts
    ]


def exchange_rows(layer: Anatomy, times: Sequence[ExchangeTime] = ()) -> list[dict[str, str]]:
    """One row per collective in execution order, with its seconds where a fabric gives them."""
    rows = [
        {
            "collective": exchange.node.name,
            "axis": exchange.node.axis,
            "ranks": f"{exchange.ranks:,}",
            "forward": calls_in_words(exchange.node.forward),
            "backward": calls_in_words(exchange.node.backward),
            "buffer, MiB": three_digits(exchange.bytes / _MIB),
        }
        for exchange in layer.exchanges
    ]
    for row, time in zip(rows, times, strict=False):
        row["forward, µs"] = three_digits(time.forward_s / MICROSECOND)
        row["backward, µs"] = three_digits(time.backward_s / MICROSECOND)
    return rows
