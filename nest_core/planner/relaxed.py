"""Points relaxed to best-case communication: which could come in under a time, and how soon.

Memory is as it is, and so are layers, which do not divide: what bounds know nothing of. Transfers
are at their best case position by position, as some leave their node and others do not. Compiled;
see `nest_core.documents.compiled`.
"""

from collections import namedtuple
from typing import NamedTuple

import numpy as np

from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, FloatArray, IntArray

__all__ = [
    "HopBounds",
    "Layouts",
    "RelaxedPoints",
    "RelaxedTables",
    "covers",
    "divided",
    "longest",
]

_NEAR = 1e-3  # a bound of the longest load is found to so much of it


RelaxedTables = namedtuple(
    "RelaxedTables",
    "time dense experts tied kept working allowed transfer_saved limit",
)
"""What layers take and hold, prefix sums over ``L`` layers.

Attributes
----------
time : (tables, 3, L + 1)
    Seconds at best-case communication; rows: recomputations.
dense, experts : (tables, L + 1), tied : (tables,)
    Elements without the last layer's tied copy, and the copy.
kept : (tables, 3, L + 1), working : (2, tables, 3, L)
    Bytes; ``working`` layer by layer, alone and where passes are paired.
allowed : (choices,)
    Rows of tables whose recomputation may be used.
transfer_saved : float
    Seconds saved per second of transfers that has compute to hide behind.
limit : float
    Bytes that tensors may hold.
"""


class HopBounds(NamedTuple):
    """What transfers between stages take at least.

    Attributes
    ----------
    near : (points,)
        Seconds of any transfer.
    far : (blocks, points)
        Seconds of one that leaves a block of a kind (a node, a leaf).
    together : (blocks, points)
        Stages that follow one another in such a block; 0 where that is not so simple.
    copies : (points,)
        Chains of stages that follow one another; a position waits for the slowest.
    """

    near: FloatArray
    far: FloatArray
    together: IntArray
    copies: IntArray


RelaxedPoints = namedtuple(
    "RelaxedPoints",
    "table pp interleave turns micro_batches stashing paired delay state_bytes stepping "
    "gathered_bytes fetched hops",
)
"""Points, all of shape (points,) but for bytes per element: (2, points), dense and expert.

Attributes
----------
table : index into `RelaxedTables`
pp, interleave, micro_batches : degrees
turns : whether virtual stages, where there are several, lie in a V
stashing : whether all micro-batches are in flight
paired : whether forward passes run beside backward passes, 0 or 1; see `pairs_passes`
delay : by how many micro-batches a stage delays W behind the one before; see `LATE`
state_bytes, stepping, gathered_bytes, fetched : bytes per element
    Of what a stage holds, of what the optimizer step adds, of the layer that runs and of the
    one before it.
hops : HopBounds
"""


Layouts = namedtuple("Layouts", "first is_even cuts")
"""Layouts of points of virtual stages.

Attributes
----------
is_even : (layouts,)
    Whether the form of equal virtual stages is its time.
first : (points, 2)
    Of each point the first of its layouts, and the one after the last.
cuts : (layouts, virtual stages + 1)
    Filled up with zeros.
"""


@compiled
def _hop(hops: HopBounds, p: int, pp: int, to: int) -> float:
    """Seconds of the transfers between positions ``to - 1`` and ``to``, either way."""
    seconds = hops.near[p]
    for block in range(hops.together.shape[0]):
        stages = hops.together[block, p]
        if stages > 0 and hops.far[block, p] > seconds:
            for copy in range(min(hops.copies[p], stages)):
                if (copy * pp + to) % stages == 0:
                    seconds = hops.far[block, p]
                    break
    return float(seconds)


@compiled
def _runs(tables: RelaxedTables, cases: RelaxedPoints, p: int, c: int, layer: int) -> float:
    """Bytes that live only while a layer runs."""
    # Without branches that read tables last: see `_inside` of the exact program.
    t, before = cases.table[p], max(layer - 1, 0)
    is_last = layer == tables.dense.shape[1] - 2
    wide = tables.dense[t, layer + 1] - tables.dense[t, layer] + is_last * tables.tied[t]
    working = tables.working[cases.paired[p], t, c, layer] + cases.gathered_bytes[0, p] * wide
    working += cases.gathered_bytes[1, p] * (
        tables.experts[t, layer + 1] - tables.experts[t, layer]
    )
    working += cases.fetched[0, p] * (tables.dense[t, layer] - tables.dense[t, before])
    working += cases.fetched[1, p] * (tables.experts[t, layer] - tables.experts[t, before])
    return float(working)


@compiled
def _used(
    cases: RelaxedPoints, p: int, elements: float, expert_elements: float, passes: float
) -> float:
    """Bytes of a stage at its fullest: its states, and its passes or its optimizer step."""
    steps = elements * cases.stepping[0, p] + expert_elements * cases.stepping[1, p]
    states = elements * cases.state_bytes[0, p] + expert_elements * cases.state_bytes[1, p]
    return float(states + max(passes, steps))


@compiled
def _load(tables: RelaxedTables, within: float, transfer: float) -> float:
    """Seconds of a stage per micro-batch, with what of its transfers nothing hides."""
    return float(within + transfer - tables.transfer_saved * min(transfer, within))


@compiled
def _covered(tables: RelaxedTables, cases: RelaxedPoints, p: int, cap: float) -> bool:
    """`covers` of one point."""
    layers = tables.dense.shape[1] - 1
    slack = tables.limit * (1.0 + 1e-12)
    t, pp, m = cases.table[p], cases.pp[p], cases.micro_batches[p]
    dense, experts = tables.dense[t], tables.experts[t]
    kept_bytes, time = tables.kept[t], tables.time[t]
    # Greedy from the last stage: `first` is the earliest layer at which a stage that ends at j may
    # begin. Bytes and load only grow with the stage, so if any cut covers the chain, the greedy
    # one does: by induction its stage s begins no later than that of any cut. One layer stays for
    # each stage before (docs/method.md, "What exact means": screening packs greedily from the last
    # stage).
    j = layers
    retire = 0.0
    for s in range(pp - 1, -1, -1):
        in_flight = m if cases.stashing[p] else min(m, pp - s)
        if cases.delay[p] > 0:
            in_flight = min(m, cases.delay[p] * (pp - 1) + 1)
        copy = tables.tied[t] if j == layers and pp > 1 else 0.0
        arrive = _hop(cases.hops, p, pp, s) if s > 0 else 0.0
        transfer = arrive + retire
        retire, first = arrive, j
        for n in range(tables.allowed.shape[0]):
            c = tables.allowed[n]
            i = j
            high = 0.0
            while i > s:
                high = max(high, _runs(tables, cases, p, c, i - 1))
                elements = dense[j] - dense[i - 1] + copy
                routed = experts[j] - experts[i - 1]
                passes = in_flight * (kept_bytes[c, j] - kept_bytes[c, i - 1]) + high
                load = _load(tables, time[c, j] - time[c, i - 1], transfer)
                if _used(cases, p, elements, routed, passes) > slack or load > cap:
                    break
                i -= 1
            first = min(first, i)
        # A stage that takes nothing is passed over: another cut may give it a lighter layer.
        j = first
        if j == 0:
            return True
    return False


@compiled
def covers(tables: RelaxedTables, cases: RelaxedPoints, cap: FloatArray) -> BoolArray:
    """Return whether stages that fit, each at most ``cap`` seconds long, can cover the chain.

    Parameters
    ----------
    cap : (points,)

    Notes
    -----
    Stage costs only grow with the stage, so taking as many layers as fit, from the last stage
    backwards, and leaving one for each stage before, decides it. Without a cap the answer is exact.
    """
    covered = np.zeros(len(cases.table), dtype=np.bool_)
    for p in range(len(covered)):
        covered[p] = _covered(tables, cases, p, cap[p])
    return covered


@compiled
def longest(
    tables: RelaxedTables, cases: RelaxedPoints, low: FloatArray, cap: FloatArray
) -> FloatArray:
    """Return seconds that the longest stage takes at least; infinite where that is above ``cap``.

    Parameters
    ----------
    low, cap : (points,)
        Seconds that it takes anyway, and that it may take.
    """
    bound = low.copy()
    for p in range(len(bound)):
        if _covered(tables, cases, p, low[p] * (1.0 + 1e-12)):
            continue
        below, above = low[p], cap[p]
        if above < np.inf:
            if not _covered(tables, cases, p, above):
                bound[p] = np.inf
                continue
        else:
            above = 2.0 * below
            while above < np.inf and not _covered(tables, cases, p, above):
                below, above = above, 2.0 * above
        # The bound is `below`, which was shown to be impossible: bisection that stops early is
        # loose, never wrong.
        while above - below > _NEAR * above:
            middle = 0.5 * (below + above)
            if _covered(tables, cases, p, middle):
                above = middle
            else:
                below = middle
        bound[p] = below
    return bound


@compiled
def _placed(cases: RelaxedPoints, p: int, s: int, k: int) -> int:
    """Return the number in the chain of a stage's ``k``-th virtual stage; see `Point.placed`."""
    stages = cases.pp[p]
    return int((k + 1) * stages - 1 - s if k and cases.turns[p] else k * stages + s)


@compiled
def _fits(
    tables: RelaxedTables, cases: RelaxedPoints, layouts: Layouts, at: int, p: int, s: int, c: int
) -> bool:
    """Whether a stage of a layout may fit: where passes are replayed, of layers that run, those
    count that virtual stages begin and end with.
    """
    t, stages, v = cases.table[p], cases.pp[p], cases.interleave[p]
    turns, m, is_even = cases.turns[p], cases.micro_batches[p], layouts.is_even[at]
    ahead = (2 - (cases.delay[p] > 0)) * (stages - 1 - s) + (v - 1) * stages + 1
    done, rest = divmod(min(ahead, m * v), stages * v)
    elements, routed, activations, high = 0.0, 0.0, 0.0, 0.0
    for k in range(v):
        part = _placed(cases, p, s, k)
        i, j = layouts.cuts[at, part], layouts.cuts[at, part + 1]
        elements += tables.dense[t, j] - tables.dense[t, i]
        if j == tables.dense.shape[1] - 1 and not turns:
            elements += tables.tied[t]
        routed += tables.experts[t, j] - tables.experts[t, i]
        forward = float(done * stages + min(max(rest - k * stages, 0), stages))
        if turns:  # both schedules, before the first backward pass
            forward = float(min(m, s + 1 if k else 2 * stages - 1 - s))
        elif is_even:
            forward = min(m * v, ahead) / v
        activations += forward * (tables.kept[t, c, j] - tables.kept[t, c, i])
        # The largest of all layers would be dearer to find; two of them can only say too little,
        # and a stage that is let through here is priced in full later.
        for layer in range(i, j, 1 if is_even else max(1, j - i - 1)):
            high = max(high, _runs(tables, cases, p, c, layer))
    used = _used(cases, p, elements, routed, activations + high)
    return bool(used <= tables.limit * (1.0 + 1e-12))


@compiled
def _lightest(
    tables: RelaxedTables,
    cases: RelaxedPoints,
    layouts: Layouts,
    at: int,
    p: int,
    s: int,
    transfer: float,
) -> float:
    """Seconds of a stage of a layout at least; infinite where it does not fit."""
    t, lightest = cases.table[p], np.inf
    for n in range(tables.allowed.shape[0]):
        c = tables.allowed[n]
        within = 0.0
        for k in range(cases.interleave[p]):
            part = _placed(cases, p, s, k)
            within += tables.time[t, c, layouts.cuts[at, part + 1]]
            within -= tables.time[t, c, layouts.cuts[at, part]]
        load = _load(tables, within, transfer)
        if load < lightest and _fits(tables, cases, layouts, at, p, s, c):
            lightest = load
    return float(lightest)


@compiled
def divided(
    tables: RelaxedTables, cases: RelaxedPoints, layouts: Layouts, sync: FloatArray, cutoff: float
) -> FloatArray:
    """Return a lower bound of points of virtual stages; infinite above the cutoff, or where none
    fit.

    Parameters
    ----------
    sync : (points,)
        Seconds that come once.

    Notes
    -----
    Of even layouts it is ``sum(t) / v + (m - 1 / v) max(t)``. Else a stage starts when those before
    it have run their first virtual stages forward, and those end with them backward, where no
    gradients of weights may come later. Before its first backward pass it holds all that it has run
    forward.
    """
    seconds = np.full(len(cases.table), np.inf)
    for p in range(len(seconds)):
        t, stages, v, m = cases.table[p], cases.pp[p], cases.interleave[p], cases.micro_batches[p]
        least = np.nextafter(cutoff, np.inf)
        # The last stage feeds the first, but at the ends of the chain.
        around = 0.0 if cases.turns[p] else (v - 1) * cases.hops.near[p]
        for at in range(layouts.first[p, 0], layouts.first[p, 1]):
            total, most, longest, before, arrive = 0.0, 0.0, 0.0, 0.0, around
            for s in range(stages):
                retire = around
                if s < stages - 1:
                    retire = v * _hop(cases.hops, p, stages, s + 1)
                load = _lightest(tables, cases, layouts, at, p, s, arrive + retire)
                arrive = retire
                total += load
                most = max(most, load)
                longest = max(longest, m * load + before)
                if longest + sync[p] >= least:
                    break
                first = np.inf
                for n in range(tables.allowed.shape[0]):
                    time = tables.time[t, tables.allowed[n], layouts.cuts[at, s + 1]]
                    time -= tables.time[t, tables.allowed[n], layouts.cuts[at, s]]
                    first = min(first, time)
                last = cases.turns[p] or cases.delay[p] > 0 or layouts.is_even[at]
                before += 0.0 if last else first
            if layouts.is_even[at] and total < np.inf:
                # Each stage takes its own lightest choice: loads of stages do not depend on one
                # another.
                longest = m * most + (total - most) / v
            if longest + sync[p] < least:
                seconds[p] = least = longest + sync[p]
    return seconds
