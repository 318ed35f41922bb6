"""What a planning problem is: the arrays that costs are computed from.

A `Problem` holds everything that a plan's price depends on, and nothing about how plans are
searched. It is built from a scenario (`nest_core.scenario`) or directly from arrays.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nest_core.costs.head_room import SURE, at_most
from nest_core.costs.overlap import NO_OVERLAP, Overlap
from nest_core.costs.plan import Point, acting_zero
from nest_core.costs.software import LINKS_ALONE, Software
from nest_core.documents.presets import kept_within
from nest_core.network import BoolArray, Dispatch, FloatArray, IntArray, Kind, Network
from nest_core.workload import NO_OFFLOAD, RECOMPUTE, Offload, method_of

__all__ = [
    "AXES_OF_CALLS",
    "BUCKETED",
    "KEPT_BYTES",
    "RECOMPUTE",
    "Calls",
    "LayerTable",
    "Problem",
    "StateBytes",
    "condensed",
    "prefix",
    "with_methods",
]

KEPT_BYTES = 256 * 10**6
"""Of layer tables that are kept: one of a thousand layers takes most of a megabyte."""

BUCKETED = (1, 2)
"""ZeRO stages whose gradients DeepSpeed copies (`nest_core.hardware.memory_rules`)."""

AXES_OF_CALLS = ("tp", "cp", "ep", "etp")
"""Axes whose ranks work on one layer together."""


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Collectives of one kind in the groups of one axis, layer by layer.

    Parameters
    ----------
    kind : {"all_reduce", "reduce_scatter", "all_to_all", "ring"}
        ``all_reduce``: the reduce-scatters and all-gathers that all-reduces are made of;
        ``reduce_scatter``: those that stand alone; ``ring``: exchanges that pass every rank's part
        round the group in ``n - 1`` sends and receives.
    number : (L,)
        Of reduce-scatters and all-gathers, all-to-alls or exchanges, in both passes.
    bytes : (L,)
        Their buffers added up. The buffer of a reduce-scatter, an all-gather or a ring is the whole
        one, that of an all-to-all what one rank sends, its own part included.
    replay_number, replay_bytes : (R, L)
        Once more under each recomputation.
    """

    kind: Kind
    number: FloatArray
    bytes: FloatArray
    replay_number: FloatArray
    replay_bytes: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LayerTable:
    """Per-layer figures of one strategy, on one rank, for one micro-batch.

    ``L`` layers; the ``R`` rows are the problem's recomputations, of which methods of full
    recomputation have what bounds a layer from below (`with_methods`). An all-reduce counts as
    its reduce-scatter and its all-gather.

    Parameters
    ----------
    compute_s : (L,)
        Forward and backward, on the device.
    forward_s : (L,)
        Of it, forward.
    weight_s : (L,)
        Of it, gradients of weights: no more than forward, nor than what else is backward.
    replay_s : (R, L)
        Extra forward work under recomputation.
    launch_s : (R, L)
        What the host needs to issue the kernels of both passes and of the replay.
    calls : mapping of str to Calls
        Collectives by axis: tp, cp, ep, etp; axes without any may be left out.
    parameters : (L,)
        Elements that all data- and context-parallel ranks share.
    expert_parameters : (L,)
        Elements of the rank's own experts, which other groups share (`Point.expert_sharers`).
    tied_parameters : float
        Elements of the last layer's ``parameters`` that are a copy of the first layer's.
    kept_bytes : (R, L)
        From forward to backward.
    working_bytes : (R, L)
        Re-materialised while the layer's backward runs, and gradients of activations.
    boundary_bytes : (L + 1,)
        Sent between layers ``i - 1`` and ``i``; zero at both ends.
    host_bytes : (L,), optional
        That go to the host in forward and come back in backward; None: nothing does.
    """

    compute_s: FloatArray
    forward_s: FloatArray
    weight_s: FloatArray
    replay_s: FloatArray
    launch_s: FloatArray
    calls: Mapping[str, Calls]
    parameters: FloatArray
    expert_parameters: FloatArray
    tied_parameters: float
    kept_bytes: FloatArray
    working_bytes: FloatArray
    boundary_bytes: FloatArray
    host_bytes: FloatArray | None = None

    @property
    def layers(self) -> int:
        """Length of the chain."""
        return int(self.compute_s.shape[0])

    def size_bytes(self) -> int:
        """Return what its arrays take in memory, about: columns, and four rows per
        recomputation.
        """
        rows = len(self.replay_s)
        return 8 * self.layers * (13 + 4 * rows + (2 + 2 * rows) * len(self.calls))


def with_methods(table: LayerTable, recomputations: Sequence[str]) -> LayerTable:
    """Return the table with a row for each of the recomputations; it has those that are no methods.

    What a layer does under a method depends on where its stage begins (`StageMemory.passes`,
    `Problem.heads`). Its row is what a layer takes and holds at least: under ``block`` the seconds
    of nothing recomputed, under ``uniform`` its share of the least input that is kept; while it
    runs the largest may be counted already.
    """
    methods = [method_of(name) for name in recomputations]
    if not any(layers for _, layers in methods):
        return table
    replayed_row = iter(range(len(table.replay_s)))
    last = len(table.replay_s) - 1
    base = [{"block": 0, "uniform": last}[name] if n else next(replayed_row) for name, n in methods]
    again = table.replay_s[-1] > 0
    kept_bytes, working_bytes = table.kept_bytes[base], table.working_bytes[base]
    for row, (name, layers) in enumerate(methods):
        if name == "block":
            kept_bytes[row] = np.minimum(table.kept_bytes[0], table.kept_bytes[-1])
            working_bytes[row] = np.minimum(table.working_bytes[0], table.working_bytes[-1])
        elif name and again.any():
            entry = table.kept_bytes[-1, again]
            kept_bytes[row, again] = entry.min() / layers
            working_bytes[row, again] -= entry.max() - entry
    return replace(
        table,
        replay_s=table.replay_s[base],
        launch_s=table.launch_s[base],
        calls={
            axis: replace(
                call,
                replay_number=call.replay_number[base],
                replay_bytes=call.replay_bytes[base],
            )
            for axis, call in table.calls.items()
        },
        kept_bytes=kept_bytes,
        working_bytes=working_bytes,
    )


def _with_its_table(view: tuple[LayerTable, IntArray]) -> int:
    """Bytes of a condensed table and of the whole one, which is kept to know it again."""
    brief, runs = view
    return brief.size_bytes() * (1 + int(runs.sum()) // brief.layers)


@kept_within(4096, KEPT_BYTES, _with_its_table)
def condensed(table: LayerTable) -> tuple[LayerTable, IntArray]:
    """One layer for every run of equal ones, and how many each stands for, shape (runs,).

    The last layer is a run of its own, as its tied copy sets it apart. Boundaries are those
    between runs.
    """
    calls = table.calls.values()
    columns = np.concatenate(
        [
            [table.compute_s, table.forward_s, table.weight_s],
            [table.parameters, table.expert_parameters],
            *([] if table.host_bytes is None else [[table.host_bytes]]),
            table.replay_s,
            table.launch_s,
            table.kept_bytes,
            table.working_bytes,
            *([call.number, call.bytes] for call in calls),
            *(part for call in calls for part in (call.replay_number, call.replay_bytes)),
        ]
    )
    opens = np.ones(table.layers, dtype=bool)
    opens[1:-1] = (columns[:, 1:-1] != columns[:, :-2]).any(axis=0)
    first = np.flatnonzero(opens)
    brief = LayerTable(
        compute_s=table.compute_s[first],
        forward_s=table.forward_s[first],
        weight_s=table.weight_s[first],
        replay_s=table.replay_s[:, first],
        launch_s=table.launch_s[:, first],
        calls={
            axis: Calls(
                call.kind,
                call.number[first],
                call.bytes[first],
                np.ascontiguousarray(call.replay_number[:, first]),
                np.ascontiguousarray(call.replay_bytes[:, first]),
            )
            for axis, call in table.calls.items()
        },
        parameters=table.parameters[first],
        expert_parameters=table.expert_parameters[first],
        tied_parameters=table.tied_parameters,
        kept_bytes=table.kept_bytes[:, first],
        working_bytes=table.working_bytes[:, first],
        boundary_bytes=table.boundary_bytes[np.append(first, table.layers)],
        host_bytes=None if table.host_bytes is None else table.host_bytes[first],
    )
    return brief, np.diff(np.append(first, table.layers))


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes per parameter held by the training state, before any sharding.

    Parameters
    ----------
    weights, gradients, optimizer : float
        As they are stored and sent.
    second_gradients : float
        Of gradients in their own precision that stay beside those that are added up and sent.
    second_stages : tuple of int
        ZeRO stages under which they do.
    reduced : float
        Of gradients as they are reduced where that is after every micro-batch, whatever ZeRO
        shards; 0: as ZeRO's stage lets them, as wide as they are stored.
    temporary : float
        That the optimizer step needs while it runs, sharded like its states.
    unheld : float
        Of weights, what is sent and not held: they arrive wider than they stay.
    """

    weights: float
    gradients: float
    optimizer: float
    second_gradients: float = 0.0
    second_stages: tuple[int, ...] = BUCKETED
    reduced: float = 0.0
    temporary: float = 0.0
    unheld: float = 0.0


@dataclass(frozen=True, eq=False)
class Problem:
    """A fabric, a workload and a device, ready to be priced.

    Parameters
    ----------
    network : Network
    table : callable (tp, sp, micro_batch, cp, ep, etp) -> LayerTable
        Must be pure; called once per strategy.
    batch : int
        Sequences per iteration.
    tokens : int
        Per sequence.
    memory_bytes, reserved_bytes : float
        Device memory, and what of it driver and context take.
    fragmentation : float
        Share of what tensors hold that the allocator holds beyond it.
    communicator_bytes : float
        That the communication library holds on a device per communicator.
    bucket_bytes : float
        That software copies gradients into under ZeRO 1 and 2.
    memory_spread : float
        Standard deviation of the logarithm of what is held over what is predicted.
    certainty : float
        How surely plans must fit.
    lower_bound : callable (tp, sp, cp, ep, etp) -> LayerTable, optional
        One sequence at best: of a micro-batch of ``b`` sequences no seconds or bytes are under
        ``b`` times these; elements and numbers of calls are the same, launches no fewer. It
        spares the planner most tables. None: there is none.
    pad_batch : bool
        Whether a batch that ``dp * micro_batch`` does not divide is padded. Time and memory are
        those of the padded one, throughput counts real sequences.
    state : StateBytes
    update_Bps : float
        Memory bandwidth that the optimizer step reaches.
    model_flops : float
        Of one sequence, forward and backward, without recomputation, as MFU counts them; 0 if
        unknown.
    peak_flops : float
        Of one device.
    software : Software
        What the communication library adds to the links' time.
    overlap : Overlap
        What hides behind compute; named on screen.
    recomputations : tuple of str
        What the rows of tables stand for, `RECOMPUTE` first.
    sharded_gradients : bool
        Whether software reduces gradients after every micro-batch of a pipeline where ZeRO shards
        them.
    copies : tuple of {"weights", "gradients"}
        What software copies on the device before it is reduced or after it was gathered, where
        ZeRO shards it.
    dispatch : Dispatch or None
        Where tokens on their way to experts are sent once only; None: once per expert.
    host_Bps : float
        Of a device's link to its host, one way; 0 if unknown.
    offload : Offload
        What the figures above leave on the host; see `nest_core.costs.offload.offloaded`.
    host_optimizer : float
        Bytes per parameter of optimizer states on the host, before any sharding.
    stack : str
        Name of the software whose memory rules hold; sentences about memory name it.
    """

    network: Network
    table: Callable[[int, bool, int, int, int, int], LayerTable]
    batch: int
    tokens: int
    memory_bytes: float
    reserved_bytes: float
    state: StateBytes
    update_Bps: float
    model_flops: float
    peak_flops: float
    software: Software = LINKS_ALONE
    overlap: Overlap = NO_OVERLAP
    fragmentation: float = 0.0
    communicator_bytes: float = 0.0
    bucket_bytes: float = 0.0
    memory_spread: float = 0.0
    certainty: float = SURE
    lower_bound: Callable[[int, bool, int, int, int], LayerTable] | None = None
    pad_batch: bool = False
    recomputations: tuple[str, ...] = RECOMPUTE
    sharded_gradients: bool = False
    copies: tuple[str, ...] = ()
    dispatch: Dispatch | None = None
    host_Bps: float = 0.0
    offload: Offload = NO_OFFLOAD
    host_optimizer: float = 0.0
    stack: str = ""

    def divides(self, dp: int | IntArray, micro_batch: int | IntArray) -> bool | BoolArray:
        """Whether the batch can be divided so; padded, no replica or micro-batch is padding alone.

        A micro-batch is then no larger than the largest share of a replica.
        """
        return (
            (dp <= self.batch) & ((micro_batch - 1) * dp < self.batch)
            if self.pad_batch
            else self.batch % (dp * micro_batch) == 0
        )

    def acting_zero(self, point: Point) -> int:
        """Return the ZeRO stage whose traffic and memory a point has."""
        return acting_zero(point.zero, point.pp, self.sharded_gradients)

    def row(self, recompute: str) -> int:
        """Return the row of tables that a recomputation has."""
        return self.recomputations.index(recompute)

    def rows(self, allowed: Collection[str]) -> IntArray:
        """Rows of the recomputations that are allowed, in the order of tables."""
        matching = [row for row, name in enumerate(self.recomputations) if name in allowed]
        return np.array(matching, dtype=np.int64)

    def bounding(self, allowed: IntArray) -> IntArray:
        """Return allowed rows, and that of full where layers of a stage may do either that or
        nothing.
        """
        last = len(self.recomputations) - 1
        some = self.heads[allowed, 0].any() and last not in allowed
        return np.append(allowed, last) if some else allowed

    def layer_rows(self, recompute: str, virtual_stages: Iterable[tuple[int, int]]) -> IntArray:
        """Return the row that tells what every layer of a stage runs, one virtual stage after
        another.
        """
        row = self.row(recompute)
        parts = []
        for i, j in virtual_stages:
            head = min(j, int(self.heads[row, i]))
            parts += [np.full(head - i, len(self.recomputations) - 1), np.full(j - head, row)]
        return np.concatenate(parts)

    @cached_property
    def again(self) -> IntArray:
        """How many layers before each full recomputation would run again, shape (L + 1,)."""
        plain = self.table(1, False, 1, 1, 1, 1)
        return np.append(0, np.cumsum(plain.replay_s[-1] > 0)).astype(np.int64)

    @cached_property
    def heads(self) -> IntArray:
        """Where layers end that ``block:n`` runs again, of a stage from each layer on, (R, L + 1).

        Other recomputations are alike in all layers, and have none.
        """
        result = np.tile(np.arange(self.layers + 1), (len(self.recomputations), 1))
        for row, name in enumerate(self.recomputations):
            method, layers = method_of(name)
            if method == "block":
                result[row] = np.minimum(
                    np.searchsorted(self.again, self.again + layers), self.layers
                )
        return result

    @cached_property
    def chunks(self) -> IntArray:
        """How many layers ``uniform:n`` runs again at once; 0 of other recomputations, (R,)."""
        methods = map(method_of, self.recomputations)
        return np.array([n if name == "uniform" else 0 for name, n in methods], dtype=np.int64)

    @property
    def under(self) -> str:
        """Return `` under STACK`` for sentences about memory; empty without a stack."""
        return f" under {self.stack}" if self.stack else ""

    @property
    def planned_bytes(self) -> float:
        """Bytes that a plan may be predicted to hold, so that it fits as surely as it must."""
        return at_most(self.memory_bytes, self.memory_spread, self.certainty)

    @property
    def tensor_bytes(self) -> float:
        """Bytes that the tensors of a device may hold at most, under any plan."""
        return (self.planned_bytes - self.reserved_bytes) / (1.0 + self.fragmentation)

    def context_bytes(self, point: Point) -> float:
        """Return bytes that driver, context and the bucket of gradients take."""
        return self.reserved_bytes + self._bucket(point)

    def room(self, point: Point) -> float:
        """Return bytes that the tensors of a device of this point may hold at most."""
        buffers = point.communicators * self.communicator_bytes + self._bucket(point)
        return self.tensor_bytes - buffers / (1.0 + self.fragmentation)

    def _bucket(self, point: Point) -> float:
        return self.bucket_bytes if self.acting_zero(point) in BUCKETED else 0.0

    @cached_property
    def layers(self) -> int:
        """Length of the chain."""
        return self.table(1, False, 1, 1, 1, 1).layers


def prefix(values: FloatArray) -> FloatArray:
    """Prefix sums along the last axis with a leading zero."""
    result = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=result[..., 1:])
    return result
