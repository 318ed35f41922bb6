"""What the devices of a stage do in one iteration, stream by stream.

A stage's program is a list of *entries*: work, or calls, on streams that run in order, as CUDA's
do. An entry waits for the one before it on its stream and for those that are named. What a software
stack lets run side by side has a stream of its own; the rest follows on the compute stream. Nothing
here knows how long a message takes.

A layer's pass is its work and, beside it, its collectives; a backward pass first runs again what
was recomputed. ZeRO gathers a layer's weights while the layer before runs, and reduces gradients
once they are there. Gradients that are not reduced by then follow the last pass, then the
optimizer. Weights that ZeRO 1 and 2 gather are waited for by the first passes of the next
iteration, which is as this one.

Units: seconds, bytes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

import numpy as np

from nest_core.costs import LayerTable, Plan, Point, Problem
from nest_core.costs.problem import AXES_OF_CALLS
from nest_core.costs.ragged import plan_links
from nest_core.costs.schedules import SPLIT, PassOrder, paired
from nest_core.costs.stages import BETWEEN, buckets, pairs_passes, update_layers
from nest_core.costs.zero import ZeroTraffic, copy_seconds, traffic
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.network.link_map import runs

__all__ = ["COMPUTE", "STREAMS", "TRANSFER", "WORK", "Call", "Entry", "Program", "programs"]

WORK = ("forward", "recomputation", "backward", "gradients of weights", "launch", "copy", "update")
FORWARD, AGAIN, BACKWARD, WEIGHTS, LAUNCH, COPY, UPDATE = WORK
STREAMS = ("compute", "layer", "data", "host", "copies", "receive", "return")
COMPUTE, LAYER, DATA, HOST, COPIES, RECEIVE, RETURN = range(len(STREAMS))
TRANSFER = "transfer"
_NUMBERS = ("stream", "part")
WHOLE = 3
"""Way of a backward pass that makes gradients of weights at once, beside those of `PassOrder`."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """A kind of call among the groups of an axis (`nest_core.costs.links`).

    Transfers between stages have the axes ``receive`` and ``return``.
    """

    axis: str
    kind: str


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
        """Bytes of one message of a call."""
        return round(self.size / self.times, 6)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries in order, and which wait for which.

    ``begins`` and ``ends`` are marks of the passes that run together.
    """

    rows: list[Entry] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, entry: Entry, after: Iterable[int] = ()) -> int:
        """Append an entry and return its place."""
        self.edges.extend((k, len(self.rows)) for k in after)
        self.rows.append(entry)
        return len(self.rows) - 1

    def add_calls(
        self, calls: Iterable[Entry], share: float, after: list[int], *, exposed: bool = True
    ) -> list[int]:
        """Append calls: a share of each on its own stream, the rest, if at all, among the work."""
        places = []
        for call in calls:
            for part, stream in ((share, call.stream), ((1.0 - share) * exposed, COMPUTE)):
                # The next stage waits for a transfer of nothing too.
                if part > 0 and (call.size > 0 or (call.call and call.call.kind == TRANSFER)):
                    size, times = part * call.size, part * call.times
                    row = replace(call, stream=stream, size=size, times=times)
                    places.append(self.add(row, after))
        return places


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Entries of a stage in the order in which its devices issue them.

    Parameters
    ----------
    rows : list of Entry
        Different ones.
    row, micro_batch : int array (entries,)
    edges : int array (edges, 2)
        Entries of which the second waits for the first.
    begins, ends : int array (passes,)
        Entries that open and close every pass, in the order of `PassOrder`.
    receives : int array (transfers, 2)
        Entries that bring what a pass begins with, and the pass.
    closing : int
        Entry that opens what follows the last pass; the next is the reduction of tied weights.
    """

    rows: list[Entry]
    row: IntArray
    micro_batch: IntArray
    edges: IntArray
    begins: IntArray
    ends: IntArray
    receives: IntArray
    closing: int


def programs(problem: Problem, plan: Plan) -> tuple[PassOrder, list[Program]]:
    """Return the order of passes and the program of every stage."""
    point = plan.point
    m, is_paired = point.micro_batches(problem.batch), pairs_passes(problem, point)
    order = PassOrder.of(point, m, is_paired=is_paired)
    together = order.overlaps.copy()
    if is_paired and not point.is_v_shaped:  # once as many passes are ahead as run alone
        ahead = np.round((1.0 - paired(point, m)) * m * point.interleave)
        forward = order.way == 0
        together = forward & (forward.cumsum(axis=1) > ahead[:, None])
        together &= np.roll(order.way == 1, -1, axis=1)
        together[:, -1] = False
    stages = [_Stage(problem, plan, s) for s in range(point.pp)]
    return order, [_program(stage, order, together[stage.s]) for stage in stages]


@dataclass(frozen=True, eq=False)
class _Stage:
    """What a stage's entries are made from."""

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

    @cached_property
    def copies(self) -> FloatArray:
        """Seconds of copies of gradients, layer by layer."""
        return copy_seconds(self.problem, self.point, self.table)

    @property
    def is_split(self) -> bool:
        """Whether gradients of weights are passes of their own."""
        return self.point.schedule in SPLIT

    def layers(self) -> list[int]:
        """Return all of its layers."""
        return list(self.rows)

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
        kind = "reduce_scatter" if self.point.zero and not between else "all_reduce"
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
            seconds = float(table.compute_s[layer] + self.copies[layer]) - forward_s
            seconds -= weight_s * (way == 1 and self.is_split)
            yield BACKWARD, seconds, calls, float(table.launch_s[row, layer]) - launch_s


def _program(stage: _Stage, order: PassOrder, together: BoolArray) -> Program:
    """Return a stage's entries: weights that are gathered, all passes, and what follows them."""
    s, m = stage.s, int(order.micro_batch.max()) + 1
    ways, numbers = order.way[s].tolist(), order.micro_batch[s].tolist()
    blocks: dict[tuple[tuple[int, int, bool], ...], _Entries] = {}
    chosen: list[tuple[_Entries, tuple[int, ...]]] = [(_opening(stage), ())]
    at = 0
    while at < len(ways):
        after = at + 1
        while together[after - 1]:
            after += 1
        passes = tuple(range(at, after))
        if 1 in ways[at:after]:  # gradients of weights that follow at once are part of it
            passes = tuple(k for k in passes if ways[k] != 2)
        key = tuple(
            (
                WHOLE if ways[k] == 1 and 2 in ways[at:after] else ways[k],
                int(order.virtual_stage[s, k]),
                numbers[k] == m - 1,
            )
            for k in passes
        )
        if key not in blocks:
            blocks[key] = _passes(stage, key)
        chosen.append((blocks[key], passes))
        at = after
    chosen.append((_closing(stage), ()))
    return _joined(chosen, order.micro_batch[s])


def _passes(stage: _Stage, parts: tuple[tuple[int, int, bool], ...]) -> _Entries:
    """Return passes that run together: (way, virtual stage, whether it is the last of its kind)."""
    out, gates, layers = _Entries(), [], []
    for part, (way, which, _) in enumerate(parts):
        before = _receive(out, stage, way, which, part)
        out.begins.append(out.add(Entry(COMPUTE, part=part), before))
        gates.append([out.begins[-1]])
        i, j = stage.spans[which]
        layers.append(range(i, j) if way == 0 else range(j - 1, i - 1, -1))
    behind = list(gates)  # what the layer before waited for
    for places in zip_longest(*layers):
        for part, layer in enumerate(places):
            if layer is not None:
                way, _, is_last = parts[part]
                gate = behind[part], gates[part]
                behind[part] = gates[part]
                gates[part] = _layer(out, stage, layer, way, part, gate, is_last, len(parts) > 1)
    out.ends.extend(out.add(Entry(COMPUTE, part=part), gate) for part, gate in enumerate(gates))
    return out


def _layer(
    out: _Entries,
    stage: _Stage,
    layer: int,
    way: int,
    part: int,
    gates: tuple[list[int], list[int]],
    is_last: bool,
    is_paired: bool,
) -> list[int]:
    """Append one pass of a layer; return what the next layer waits for.

    ``gates`` are what the layer before waited for, and what this one does.
    """
    overlap, mine = stage.problem.overlap, Entry(COMPUTE, layer=layer, part=part)
    gate = gates[1] + out.add_calls(_of(part, stage.gathers(layer, way)), overlap.dp, gates[0])
    host_bytes = stage.table.host_bytes
    for kind, seconds, calls, host_s in stage.steps(layer, way):
        places = [out.add(replace(mine, kind=kind, seconds=seconds), gate)] if seconds > 0 else []
        for call in _of(part, calls):
            # Experts' exchanges hide behind the other pass, which does not wait for them.
            is_free = is_paired and call.call is not None and call.call.axis == "ep"
            share = max(overlap.tp, overlap.dp) if is_free else overlap.tp
            places += out.add_calls([call], share, gate)
        if host_s > 0:
            # Hosts wait for what a pass receives, and else run ahead.
            entry = replace(mine, stream=HOST, kind=LAUNCH, seconds=host_s)
            places.append(out.add(entry, [out.begins[part]] if stage.point.pp > 1 else []))
        if host_bytes is not None and host_bytes[layer] > 0 and kind in (FORWARD, BACKWARD):
            copy_s = float(host_bytes[layer]) / stage.problem.host_Bps
            entry = replace(mine, stream=COPIES, kind=COPY, seconds=copy_s)
            places.append(out.add(entry, gate))
        gate = places or gate
    if way in (1, WHOLE):
        out.add_calls(_of(part, stage.reduces(layer)), overlap.dp, gate)
    if is_last and (way in (2, WHOLE) or (way == 1 and not stage.is_split)):
        reduces = _of(part, stage.reduces_once(layer))
        out.add_calls(reduces, overlap.dp, gate, exposed=False)
    return gate


def _of(part: int, calls: Iterable[Entry]) -> list[Entry]:
    return [replace(call, part=part) for call in calls]


def _receive(out: _Entries, stage: _Stage, way: int, which: int, part: int) -> list[int]:
    """Append what brings a pass its activations, or their gradients, from another stage.

    Tensor-parallel ranks that hold the same tensor send a part each and gather it on arrival
    (Narayanan et al. 2021, SC, section 4.1).
    """
    point, (i, j) = stage.point, stage.spans[which]
    number = int(point.placed[stage.s, which])
    last = point.pp * point.interleave - 1
    if way == 2 or number == (0 if way == 0 else last):
        return []
    other = number - 1 if way == 0 else number + 1
    if other in point.placed[stage.s]:  # in a V a stage hands over to itself
        return []
    size = float(stage.table.boundary_bytes[i if way == 0 else j])
    is_cut = point.tp > 1 and not point.sp
    comes_back = point.is_v_shaped and which == 1
    stream, axis = (RECEIVE, "receive") if (way == 0) != comes_back else (RETURN, "return")
    sent = size / point.tp if is_cut else size
    calls = [Entry(stream, "", 0.0, Call(axis, TRANSFER), sent, part=part)]
    if is_cut:
        calls.append(Entry(stream, "", 0.0, Call("tp", "reduce_scatter"), size, part=part))
    places: list[int] = []
    for call in calls:
        places = out.add_calls([call], stage.problem.overlap.pp, places) or places
    return places


def _opening(stage: _Stage) -> _Entries:
    """Return what brings new weights beside the first passes."""
    out = _Entries()
    for layer in stage.layers():
        calls = stage.gathers_once(layer)
        out.add_calls(calls, stage.problem.overlap.dp, [], exposed=False)
    return out


def _closing(stage: _Stage) -> _Entries:
    """Return what follows the last pass: gradients, optimizer, and weights that nothing hides.

    The ends of a pipeline first add up gradients of tied weights; the first stage's entry stands
    for both.
    """
    out, exposed = _Entries(), 1.0 - stage.problem.overlap.dp
    out.add(Entry(COMPUTE))
    tied_bytes = stage.table.tied_parameters * stage.problem.state.gradients
    if stage.s == 0 and stage.point.ends_apart and tied_bytes:
        size = 2 * tied_bytes * plan_links(stage.problem, stage.plan, stage.point).tied_share
        out.add(Entry(COMPUTE, "", 0.0, Call("tied", "all_reduce"), float(size), 2.0))
    else:
        out.add(Entry(COMPUTE))
    for layer in stage.layers():
        for call in stage.reduces_once(layer):
            out.add_calls([replace(call, stream=COMPUTE)], exposed, [], exposed=False)
    seconds = update_layers(stage.problem, stage.point, stage.table)[stage.layers()].sum()
    out.ends.append(out.add(Entry(COMPUTE, UPDATE, float(seconds))))
    for layer in stage.layers():
        for call in stage.gathers_once(layer):
            out.add_calls([replace(call, stream=COMPUTE)], exposed, [], exposed=False)
    return out


def _joined(chosen: list[tuple[_Entries, tuple[int, ...]]], micro_batches: IntArray) -> Program:
    """Return blocks of entries one after another."""
    blocks = list({id(block): block for block, _ in chosen}.values())
    place = {id(block): n for n, block in enumerate(blocks)}
    which = np.array([place[id(block)] for block, _ in chosen])
    sizes = np.array([len(block.rows) for block in blocks])
    first = np.cumsum([0, *sizes[which]])
    block_of, row = runs(np.cumsum([0, *sizes[:-1]])[which], sizes[which])
    rows = [entry for block in blocks for entry in block.rows]
    stream, part = (np.array([getattr(entry, name) for entry in rows])[row] for name in _NUMBERS)
    # The pass that an entry belongs to; -1 before and after all passes.
    passes = np.full((len(chosen), max(len(passes) for _, passes in chosen)), -1)
    begins, ends = np.zeros(len(micro_batches), np.int64), np.zeros(len(micro_batches), np.int64)
    for n, (block, numbers) in enumerate(chosen):
        for at, k in enumerate(numbers):
            passes[n, at] = k
            begins[k], ends[k] = first[n] + block.begins[at], first[n] + block.ends[at]
    pass_of = passes[block_of, part]
    is_received = np.array(
        [entry.call is not None and entry.call.kind == TRANSFER for entry in rows]
    )
    receives = np.flatnonzero(is_received[row])
    inner = [np.array(block.edges, np.int64).reshape(-1, 2) for block in blocks]
    counts = np.array([len(pairs) for pairs in inner])
    edge_of, pair = runs(np.cumsum([0, *counts[:-1]])[which], counts[which])
    edges = [np.concatenate(inner)[pair] + first[edge_of][:, None]]
    for queue in (np.flatnonzero(stream == number) for number in range(len(STREAMS))):
        edges.append(np.stack([queue[:-1], queue[1:]], axis=1))
        last = queue[queue < first[-2]][-1:]
        edges.append(np.stack([last, np.full(len(last), first[-2])], axis=1))
    # First forward passes wait for new weights.
    layers = {entry.layer: k for k, entry in enumerate(chosen[0][0].rows)}
    forward = np.flatnonzero(np.array([entry.kind == FORWARD for entry in rows])[row])
    layer_of = np.array([entry.layer for entry in rows])[row[forward]]
    for layer, k in layers.items():
        edges.append(
            np.array([[k, place] for place in forward[layer_of == layer][:1]]).reshape(-1, 2)
        )
    return Program(
        rows,
        row,
        np.where(pass_of < 0, -1, micro_batches[pass_of]),
        np.concatenate(edges).astype(np.int64),
        begins,
        ends,
        np.stack([receives, pass_of[receives]], axis=1),
        int(first[-2]),
    )
