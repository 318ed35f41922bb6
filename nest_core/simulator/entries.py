"""What the layers of a stage do in a pass: work of its devices, and calls.

A layer's pass is its work and, beside it, its collectives; a backward pass first runs again what
was recomputed. ZeRO gathers a layer's weights before a pass and reduces its gradients after it, or
once after the last.

Units: seconds, bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from nest_core.costs import (
    AXES_OF_CALLS,
    BETWEEN,
    SPLIT,
    LayerTable,
    Plan,
    Point,
    Problem,
    ZeroTraffic,
    buckets,
    copy_seconds,
    traffic,
)
from nest_core.network import Kind

__all__ = ["STREAMS", "WORK", "Call", "Entry", "StageWork"]

WORK = ("forward", "recomputation", "backward", "gradients of weights", "launch", "copy", "update")
FORWARD, AGAIN, BACKWARD, WEIGHTS, LAUNCH, COPY, UPDATE = WORK
STREAMS = ("compute", "layer", "data", "host", "copies", "receive", "return")
COMPUTE, LAYER, DATA, HOST, COPIES, RECEIVE, RETURN = range(len(STREAMS))
WHOLE = 3
"""Way of a backward pass that makes gradients of weights at once, beside those of `PassOrder`."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """A kind of call among the groups of an axis (`nest_core.costs.links`).

    Transfers between stages have the axes ``receive`` and ``return``.
    """

    axis: str
    kind: Kind | Literal["transfer"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Work or a call of all devices of a stage.

    Parameters
    ----------
    stream : int
        Of `STREAMS`.
    kind : str
        Of `WORK`; empty of calls, and of marks that others wait for.
    seconds : float
    call : Call or None
    size, times : float
        Bytes of all equal messages of a call, and how many they are.
    layer : int
        -1 where it belongs to none.
    part : int
        Of passes that run together, to which it belongs.
    """

    stream: int
    kind: str = ""
    seconds: float = 0.0
    call: Call | None = None
    size: float = 0.0
    times: float = 1.0
    layer: int = -1
    part: int = 0

    @property
    def message(self) -> float:
        """Bytes of one message; those of a share of a call are the whole's but for rounding."""
        return round(self.size / self.times, 6)


@dataclass(frozen=True, eq=False)
class StageWork:
    """What the layers of a stage do and send, pass by pass."""

    problem: Problem
    plan: Plan
    s: int

    @cached_property
    def point(self) -> Point:
        """Degrees of the stage."""
        return self.plan.stage_point(self.s)

    @cached_property
    def table(self) -> LayerTable:
        """Its layers' figures."""
        at = self.point
        return self.problem.table(at.tp, at.sp, at.micro_batch, at.cp, at.ep, at.etp)

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Layers of its virtual stages."""
        return self.plan.virtual_stages(self.s)

    @cached_property
    def rows(self) -> dict[int, int]:
        """Recomputation of every layer, as a row of the table."""
        layers = [layer for i, j in self.spans for layer in range(i, j)]
        rows = self.problem.layer_rows(self.plan.recompute[self.s], self.spans)
        return dict(zip(layers, rows.tolist(), strict=True))

    @cached_property
    def zero(self) -> int:
        """ZeRO stage as it acts."""
        return self.problem.acting_zero(self.point)

    @cached_property
    def sent(self) -> ZeroTraffic:
        """Bytes per parameter that it sends."""
        return traffic(self.zero, self.problem.state)

    @property
    def is_split(self) -> bool:
        """Whether gradients of weights are passes of their own."""
        return self.point.schedule in SPLIT

    def calls(self, layer: int, *, is_again: bool) -> list[Entry]:
        """Return a layer's collectives in one pass, or in what runs again."""
        entries, row = [], self.rows[layer]
        for axis in AXES_OF_CALLS:
            if axis in self.table.calls and getattr(self.point, axis) > 1:
                calls = self.table.calls[axis]
                number, size = (
                    (calls.replay_number[row, layer], calls.replay_bytes[row, layer])
                    if is_again
                    else (calls.number[layer] / 2, calls.bytes[layer] / 2)
                )
                if number > 0:
                    call = Call(axis, calls.kind)
                    entries.append(Entry(LAYER, "", 0.0, call, float(size), float(number), layer))
        return entries

    def shards(self, layer: int, sizes: tuple[float, ...], *, between: bool = False) -> list[Entry]:
        """Return a layer's calls among ranks that hold the same weights; bytes per parameter."""
        kind: Kind = "reduce_scatter" if self.point.zero and not between else "all_reduce"
        entries = []
        for axis, ranks, elements in buckets(self.point, self.table):
            if (ranks > 1 or between) and elements[layer] > 0:
                call = Call(BETWEEN[axis] if between else axis, kind)
                sent = float(elements[layer]) / (ranks if between else 1)
                entries += [Entry(DATA, "", 0.0, call, size * sent, 1.0, layer) for size in sizes]
        return entries

    def gathers(self, layer: int, way: int) -> list[Entry]:
        """Return what brings a layer's weights before a pass."""
        step = self.sent.step
        sizes = (step[1:2] if way == 0 else step[2:]) if self.zero == 3 and way != 2 else ()
        return self.shards(layer, sizes)

    def reduces(self, layer: int) -> list[Entry]:
        """Return what reduces a layer's gradients after every micro-batch."""
        return self.shards(layer, self.sent.step[: 1 if self.zero == 3 else None])

    def reduces_once(self, layer: int) -> list[Entry]:
        """Return what reduces them after the last."""
        is_gathered = self.zero in (1, 2)
        calls = self.shards(layer, self.sent.sync[:-1] if is_gathered else self.sent.sync)
        if self.point.instances > 1:
            calls += self.shards(layer, self.sent.between, between=True)
        return calls

    def gathers_once(self, layer: int) -> list[Entry]:
        """Return what brings a layer's new weights."""
        return self.shards(layer, self.sent.sync[-1:] if self.zero in (1, 2) else ())

    def steps(self, layer: int, way: int) -> Iterator[tuple[str, float, list[Entry], float]]:
        """Yield what a layer does in a pass: work, its seconds, calls beside it, the host's."""
        table, row = self.table, self.rows[layer]
        forward_s, weight_s = float(table.forward_s[layer]), float(table.weight_s[layer])
        launch_s = float(table.launch_s[0, layer]) / 2
        calls = self.calls(layer, is_again=False)
        if way == 0:
            yield FORWARD, forward_s, calls, launch_s
        elif way == 2:
            yield WEIGHTS, weight_s, [], 0.0
        else:
            again = self.calls(layer, is_again=True)
            yield AGAIN, float(table.replay_s[row, layer]), again, 0.0
            copies_s = copy_seconds(self.problem, self.point, table)
            seconds = float(table.compute_s[layer] + copies_s[layer]) - forward_s
            seconds -= weight_s * (way == 1 and self.is_split)
            yield BACKWARD, seconds, calls, float(table.launch_s[row, layer]) - launch_s
