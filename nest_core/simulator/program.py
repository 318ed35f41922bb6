"""What the devices of a stage do in one iteration, stream by stream.

A stage's program is a list of *entries*: work, or calls, on streams that run in order, as CUDA's
do. An entry waits for the one before it on its stream and for those that are named. What a software
stack lets run side by side has a stream of its own; the rest follows on the compute stream. Nothing
here knows how long a message takes.

A layer's weights that ZeRO shards are gathered while the layer before runs, its gradients reduced
once they are there. Gradients that are not reduced by then follow the last pass, then the
optimizer. Weights that ZeRO 1 and 2 gather are waited for by the first passes of the next
iteration, which is as this one.

Units: seconds, bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from nest_core.costs import (
    PassOrder,
    Plan,
    Problem,
    paired,
    pairs_passes,
    plan_links,
    update_layers,
)
from nest_core.network import BoolArray, IntArray
from nest_core.network.link_map import runs
from nest_core.simulator.entries import (
    BACKWARD,
    COMPUTE,
    COPIES,
    COPY,
    FORWARD,
    HOST,
    LAUNCH,
    RECEIVE,
    RETURN,
    STREAMS,
    UPDATE,
    WHOLE,
    Call,
    Entry,
    StageWork,
)

__all__ = ["Program", "programs"]


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries in order, and which wait for which.

    ``begins`` and ``ends`` are marks of the passes that run together.
    """

    rows: list[Entry] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, entry: Entry, after: Iterable[int] = (), part: int = 0) -> int:
        """Append an entry of a pass and return its place."""
        self.edges.extend((k, len(self.rows)) for k in after)
        self.rows.append(replace(entry, part=part))
        return len(self.rows) - 1

    def add_calls(
        self,
        calls: Iterable[Entry],
        share: float,
        after: list[int],
        part: int = 0,
        *,
        exposed: bool = True,
    ) -> list[int]:
        """Append calls: a share of each on its own stream, the rest, if at all, among the work."""
        places = []
        for call in calls:
            for of_call, stream in ((share, call.stream), ((1.0 - share) * exposed, COMPUTE)):
                # The next stage waits for a transfer of nothing too.
                if of_call > 0 and (call.size > 0 or (call.call and call.call.kind == "transfer")):
                    size, times = of_call * call.size, of_call * call.times
                    row = replace(call, stream=stream, size=size, times=times)
                    places.append(self.add(row, after, part))
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
    stages = [StageWork(problem, plan, s) for s in range(point.pp)]
    return order, [_program(stage, order, together[stage.s]) for stage in stages]


def _program(stage: StageWork, order: PassOrder, together: BoolArray) -> Program:
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


def _passes(stage: StageWork, parts: tuple[tuple[int, int, bool], ...]) -> _Entries:
    """Return passes that run together: (way, virtual stage, whether it is the last of its kind)."""
    out, gates, layers = _Entries(), [], []
    share = stage.problem.overlap.dp
    for part, (way, which, _) in enumerate(parts):
        before = _receive(out, stage, way, which, part)
        out.begins.append(out.add(Entry(COMPUTE), before, part))
        gates.append([out.begins[-1]])
        i, j = stage.spans[which]
        layers.append(range(i, j) if way == 0 else range(j - 1, i - 1, -1))
    behind = list(gates)  # what the layer before waited for
    # Reductions of the layer before, and whether what cannot hide of them follows at once.
    late: list[list[tuple[list[Entry], bool]]] = [[] for _ in parts]
    for places in zip_longest(*layers):
        for part, layer in enumerate(places):
            if layer is not None:
                way, _, is_last = parts[part]
                # Weights of this layer go first: it waits for them, and nothing for gradients.
                gathers = stage.gathers(layer, way)
                gate = gates[part] + out.add_calls(gathers, share, behind[part], part)
                _reduce(out, late[part], share, gates[part], part)
                behind[part] = gates[part]
                gates[part] = _layer(out, stage, layer, way, part, gate, len(parts) > 1)
                late[part] = [(stage.reduces(layer), True)] if way in (1, WHOLE) else []
                if is_last and (way in (2, WHOLE) or (way == 1 and not stage.is_split)):
                    late[part].append((stage.reduces_once(layer), False))
    for part, gate in enumerate(gates):
        _reduce(out, late[part], share, gate, part)
        out.ends.append(out.add(Entry(COMPUTE), gate, part))
    return out


def _reduce(
    out: _Entries,
    late: list[tuple[list[Entry], bool]],
    share: float,
    gate: list[int],
    part: int,
) -> None:
    """Append what reduces the gradients of a layer whose end is the gate."""
    for calls, exposed in late:
        out.add_calls(calls, share, gate, part, exposed=exposed)


def _layer(
    out: _Entries,
    stage: StageWork,
    layer: int,
    way: int,
    part: int,
    gate: list[int],
    is_paired: bool,
) -> list[int]:
    """Append one pass of a layer that waits for a gate; return what the next layer waits for."""
    overlap, mine = stage.problem.overlap, Entry(COMPUTE, layer=layer)
    host_bytes = stage.table.host_bytes
    for kind, seconds, calls, host_s in stage.steps(layer, way):
        places = []
        if seconds > 0:
            places.append(out.add(replace(mine, kind=kind, seconds=seconds), gate, part))
        for call in calls:
            # Experts' exchanges hide behind the other pass, which does not wait for them.
            is_free = is_paired and call.call is not None and call.call.axis == "ep"
            share = max(overlap.tp, overlap.dp) if is_free else overlap.tp
            places += out.add_calls([call], share, gate, part)
        if host_s > 0:
            # Hosts wait for what a pass receives, and else run ahead.
            entry = replace(mine, stream=HOST, kind=LAUNCH, seconds=host_s)
            begins = [out.begins[part]] if stage.point.pp > 1 else []
            places.append(out.add(entry, begins, part))
        if host_bytes is not None and host_bytes[layer] > 0 and kind in (FORWARD, BACKWARD):
            copy_s = float(host_bytes[layer]) / stage.problem.host_Bps
            entry = replace(mine, stream=COPIES, kind=COPY, seconds=copy_s)
            places.append(out.add(entry, gate, part))
        gate = places or gate
    return gate


def _receive(out: _Entries, stage: StageWork, way: int, which: int, part: int) -> list[int]:
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
    calls = [Entry(stream, "", 0.0, Call(axis, "transfer"), sent)]
    if is_cut:
        calls.append(Entry(stream, "", 0.0, Call("tp", "reduce_scatter"), size))
    places: list[int] = []
    for call in calls:
        places = out.add_calls([call], stage.problem.overlap.pp, places, part) or places
    return places


def _opening(stage: StageWork) -> _Entries:
    """Return what brings new weights beside the first passes."""
    out = _Entries()
    for layer in list(stage.rows):
        calls = stage.gathers_once(layer)
        out.add_calls(calls, stage.problem.overlap.dp, [], exposed=False)
    return out


def _closing(stage: StageWork) -> _Entries:
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
    for layer in list(stage.rows):
        for call in stage.reduces_once(layer):
            out.add_calls([replace(call, stream=COMPUTE)], exposed, [], exposed=False)
    seconds = update_layers(stage.problem, stage.point, stage.table)[list(stage.rows)].sum()
    out.ends.append(out.add(Entry(COMPUTE, UPDATE, float(seconds))))
    for layer in list(stage.rows):
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
    stream, part = np.array([(entry.stream, entry.part) for entry in rows])[row].T
    # The pass that an entry belongs to; -1 before and after all passes.
    passes = np.full((len(chosen), max(len(passes) for _, passes in chosen)), -1)
    begins, ends = np.zeros(len(micro_batches), np.int64), np.zeros(len(micro_batches), np.int64)
    for n, (block, numbers) in enumerate(chosen):
        for at, k in enumerate(numbers):
            passes[n, at] = k
            begins[k], ends[k] = first[n] + block.begins[at], first[n] + block.ends[at]
    pass_of = passes[block_of, part]
    is_received = np.array(
        [entry.call is not None and entry.call.kind == "transfer" for entry in rows]
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
    # First forward passes wait for new weights, and so do their calls; hosts run ahead.
    layer_of = np.where(stream == HOST, -1, np.array([entry.layer for entry in rows])[row])
    is_forward = np.array([entry.kind == FORWARD for entry in rows])[row]
    for k, entry in enumerate(chosen[0][0].rows):
        for first_work in np.flatnonzero(is_forward & (layer_of == entry.layer))[:1]:
            mine = np.flatnonzero((layer_of == entry.layer) & (pass_of == pass_of[first_work]))
            edges.append(np.stack([np.full(len(mine), k), mine], axis=1))
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
