"""Plans: what is decided, and nothing that follows from it."""

import itertools
from dataclasses import asdict, dataclass, replace
from typing import Self, TypeVar

import numpy as np

from nest_core.costs.layout import DeviceOrder, Layout, ragged_ranks
from nest_core.costs.plan_words import plan_words
from nest_core.network import IntArray
from nest_core.workload.offload import NO_OFFLOAD, Offload

__all__ = [
    "REPLAYED",
    "SCHEDULES",
    "USUAL_SCHEDULES",
    "V_SHAPED",
    "Plan",
    "Point",
    "StageStrategy",
    "acting_zero",
    "even_cuts",
    "micro_batches",
]

Whole = TypeVar("Whole", int, IntArray)

V_SHAPED = ("zbv", "dualpipev")
"""Schedules of two virtual stages per stage, the second on the way back; both ends of the chain are
on the first stage, and the last hands over to itself."""

REPLAYED = ("interleaved_zb", *V_SHAPED)
"""Schedules of virtual stages whose times have no closed form."""

SCHEDULES = ("1f1b", "gpipe", "interleaved", "zb_h1", "zb_1p", "zb_2p", *REPLAYED)
"""Orders of forward and backward passes in a pipeline (`nest_core.costs.schedules`)."""

USUAL_SCHEDULES = SCHEDULES[:3]
"""Those that are searched where none is named: what frameworks have."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """An outer point of the search: everything that fixes the layout and the schedule.

    Parameters
    ----------
    tp, sp, dp, pp : degrees; ``sp`` has tensor parallelism's degree
    micro_batch : int
        Sequences.
    zero : int
        ZeRO stage 0-3, over the ``dp * cp`` ranks that share weights; see `acting_zero`.
    order : tuple of str
        Axes, innermost first.
    device_order : str or tuple of int
        Which devices carry the ranks: one of `DEVICE_ORDERS`, or the devices themselves.
    cp : int
        Context-parallel degree.
    ep : int
        Expert-parallel degree: so many neighbouring groups of ``etp`` ranks share the experts.
    etp : int
        Expert tensor degree: so many neighbouring ranks share an expert's width. The ranks of a
        stage, tp x cp x dp, are divided for experts into etp, then ep, then those that hold the
        same ones. 0: as ``tp``, Megatron-LM's default, under which ``ep`` divides ``dp * cp``.
    schedule : str
        One of `SCHEDULES`.
    interleave : int
        Virtual stages per stage: two where the schedule is V-shaped, several where it is
        interleaved, else one.
    zero_group : int
        Neighbouring sharers of dense weights that hold one copy of what ZeRO shards; the copies
        are kept alike by all-reduces between them. 0: all sharers, one copy.
    """

    tp: int
    sp: bool
    dp: int
    pp: int
    micro_batch: int
    zero: int
    order: tuple[str, ...]
    device_order: DeviceOrder = "natural"
    cp: int = 1
    ep: int = 1
    schedule: str = "1f1b"
    interleave: int = 1
    etp: int = 0
    zero_group: int = 0

    def __post_init__(self) -> None:
        if not self.etp:
            object.__setattr__(self, "etp", self.tp)

    @property
    def layout(self) -> Layout:
        """Where every rank sits."""
        return Layout(self.tp, self.cp, self.dp, self.pp, self.order)

    @property
    def is_v_shaped(self) -> bool:
        """Whether the second virtual stages lie on the stages in the opposite order."""
        return self.schedule in V_SHAPED

    @property
    def ends_apart(self) -> bool:
        """Whether the first and the last layer are on different stages."""
        return self.pp > 1 and not self.is_v_shaped

    @property
    def around(self) -> int:
        """How often a micro-batch goes from the last stage to the first."""
        return 0 if self.is_v_shaped else self.interleave - 1

    @property
    def placed(self) -> IntArray:
        """Virtual stages of the chain that each stage runs, (pp, interleave).

        Examples
        --------
        >>> order = ("tp", "cp", "dp", "pp")
        >>> for schedule in ("interleaved", "zbv"):
        ...     point = Point(1, False, 1, 3, 1, 0, order, schedule=schedule, interleave=2)
        ...     print(point.placed.tolist())
        [[0, 3], [1, 4], [2, 5]]
        [[0, 5], [1, 4], [2, 3]]
        """
        rounds = np.arange(self.pp * self.interleave).reshape(-1, self.pp)
        if self.is_v_shaped:
            rounds[1:] = rounds[1:, ::-1]
        return rounds.T

    @property
    def devices_used(self) -> int:
        """Number of devices that work."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def sharers(self) -> int:
        """Ranks that hold the same dense weights; they reduce gradients and shard states."""
        return self.dp * self.cp

    @property
    def expert_sharers(self) -> int:
        """Ranks that hold the same experts."""
        return self.dp * self.cp * self.tp // (self.ep * self.etp)

    @property
    def instances(self) -> int:
        """Copies of what ZeRO shards: Megatron-LM's instances of the distributed optimizer."""
        return max(1, self.sharers // self.zero_group) if self.zero_group else 1

    @property
    def shard_ranks(self) -> int:
        """Ranks among which one copy of what ZeRO shards of dense weights is divided."""
        return self.sharers // self.instances

    @property
    def expert_shard_ranks(self) -> int:
        """The same of experts: they have as many copies."""
        return self.expert_sharers // self.instances

    @property
    def experts_apart(self) -> bool:
        """Whether experts are shared by other ranks than dense weights."""
        return self.ep > 1 or self.etp != self.tp

    @property
    def shared(self) -> bool:
        """Whether any weights are held by more than one rank."""
        return max(self.sharers, self.expert_sharers) > 1

    @property
    def communicators(self) -> int:
        """Groups of several ranks that a device belongs to, each a communicator of the library.

        Those of Megatron-LM's ``parallel_state`` that a step uses: all ranks, one along each axis,
        the ranks that share gradients, and those of one replica, which clip them together.
        """
        experts = self.expert_sharers if self.experts_apart else 1
        groups = (
            self.devices_used,
            self.tp,
            self.cp,
            self.pp,
            self.ep,
            self.etp if self.experts_apart else 1,
            self.sharers,
            experts,
            self.tp * self.pp,
        )
        return sum(ranks > 1 for ranks in groups)

    def micro_batches(self, batch: int) -> int:
        """Micro-batches that each replica runs per iteration."""
        return micro_batches(batch, self.dp, self.micro_batch)


def micro_batches(batch: int, dp: Whole, micro_batch: Whole) -> Whole:
    """Micro-batches per replica and iteration; the last are padded where they do not divide.

    Examples
    --------
    >>> micro_batches(48, 4, 2), micro_batches(50, 4, 2)
    (6, 7)
    """
    number: Whole = -(-batch // (dp * micro_batch))
    return number


def acting_zero(zero: Whole, pp: Whole, sharded: bool) -> Whole:
    """Return the ZeRO stage whose traffic and memory a named one has in a pipeline of ``pp``
    stages.

    Under a pipeline 2 is 1, where gradients are added up whole and reduced once, after the last
    micro-batch. Software that reduces them after each (``sharded``) has 2 there too
    (``docs/decisions/zero-2-in-a-pipeline.md``).

    Examples
    --------
    >>> [acting_zero(zero, pp, False) for zero, pp in ((2, 1), (2, 4), (3, 4))]
    [2, 1, 3]
    >>> acting_zero(2, 4, True)
    2
    """
    acting: Whole = zero if sharded else zero - (zero == 2) * (pp > 1)
    return acting


def even_cuts(layers: int, depth: int) -> tuple[int, ...]:
    """Blocks as evenly as they go, embedding with the first part and head with the last.

    Parameters
    ----------
    depth : int
        Parts: stages, or under the interleaved schedule virtual stages.

    Examples
    --------
    >>> even_cuts(10, 3)
    (0, 4, 7, 10)
    """
    blocks = layers - 2
    if depth > blocks:
        return tuple(stage * layers // depth for stage in range(depth + 1))
    small, extra = divmod(blocks, depth)
    return (0, *(1 + stage * small + min(stage, extra) for stage in range(1, depth)), layers)


@dataclass(frozen=True, slots=True, order=True)
class StageStrategy:
    """How one stage divides its layers among its devices, where stages differ.

    Parameters
    ----------
    tp, sp, cp, ep, zero, etp, zero_group : as of a `Point`; a plan in which ``tp * cp`` differs
        is ragged.
    """

    tp: int
    sp: bool
    cp: int
    ep: int
    zero: int
    etp: int = 0
    zero_group: int = 0

    def __post_init__(self) -> None:
        if not self.etp:
            object.__setattr__(self, "etp", self.tp)

    @classmethod
    def of(cls, point: Point) -> Self:
        """Return what a point has all stages do."""
        return cls(point.tp, point.sp, point.cp, point.ep, point.zero, point.etp, point.zero_group)

    def within(self, point: Point) -> Point:
        """Return the point at which all stages do this."""
        return replace(point, **asdict(self))


@dataclass(frozen=True, slots=True)
class Plan:
    """A point with its stages.

    Parameters
    ----------
    point : Point
    cuts : tuple of int
        Virtual stage ``c`` holds layers ``cuts[c]`` to ``cuts[c + 1] - 1``, and runs where
        `Point.placed` says; length ``pp * interleave + 1``.
    recompute : tuple of str
        Per stage: none, selective or full.
    strategies : tuple of StageStrategy
        Per stage, where they differ; empty if every stage does what the point says.
    offload : Offload
        What all stages leave on the host.
    """

    point: Point
    cuts: tuple[int, ...]
    recompute: tuple[str, ...]
    strategies: tuple[StageStrategy, ...] = ()
    offload: Offload = NO_OFFLOAD

    def stage_point(self, stage: int) -> Point:
        """Return the point at which every stage does what this one does; it is priced there."""
        return self.strategies[stage].within(self.point) if self.strategies else self.point

    @property
    def is_replayed(self) -> bool:
        """Whether its time is a replay's: of `REPLAYED`, and with virtual stages of unequal size.

        They are equal in blocks, embedding and head beside those of the first and the last or
        counted as one each.
        """
        if self.point.interleave == 1 or self.point.schedule in REPLAYED:
            return self.point.interleave > 1
        first, *inner, last = (j - i for i, j in itertools.pairwise(self.cuts))
        return len(set(inner)) > 1 or first != last or first - inner[0] not in (0, 1)

    @property
    def widths(self) -> tuple[int, ...]:
        """Devices of each stage of one replica, tp x cp."""
        return (
            (self.point.tp * self.point.cp,) * self.point.pp
            if not self.strategies
            else tuple(strategy.tp * strategy.cp for strategy in self.strategies)
        )

    @property
    def ragged(self) -> bool:
        """Whether stages differ in width."""
        return bool(self.strategies) and len(set(self.widths)) > 1

    @property
    def devices_used(self) -> int:
        """Number of devices that work."""
        return self.point.dp * sum(self.widths) if self.strategies else self.point.devices_used

    @property
    def ranks(self) -> tuple[IntArray, ...]:
        """Rank numbers of every stage, each of shape (dp * cp, tp); dp * cp counts dp slowest."""
        points = [self.stage_point(s) for s in range(self.point.pp)]
        if self.ragged:
            degrees = [(point.tp, point.cp) for point in points]
            return ragged_ranks(degrees, self.point.dp, self.point.order)
        return tuple(point.layout.devices[s] for s, point in enumerate(points))

    @property
    def words(self) -> str:
        """All that it decides but its cuts, in one line."""
        return plan_words(self.to_json())

    @property
    def recompute_summary(self) -> str:
        """The common choice, or ``mixed``."""
        return self.recompute[0] if len(set(self.recompute)) == 1 else "mixed"

    def virtual_stages(self, stage: int) -> tuple[tuple[int, int], ...]:
        """First layer and the one after the last, of every virtual stage of a stage.

        Examples
        --------
        >>> point = Point(1, False, 1, 2, 1, 0, ("tp", "cp", "dp", "pp"), interleave=2)
        >>> Plan(point, (0, 3, 5, 7, 10), ("none", "none")).virtual_stages(1)
        ((3, 5), (7, 10))
        """
        return tuple((self.cuts[c], self.cuts[c + 1]) for c in self.point.placed[stage].tolist())

    def to_json(self) -> dict[str, object]:
        """Return the fields of the command line's ``plan``."""
        point = self.point
        fields: dict[str, object] = {
            "dp": point.dp,
            "tp": point.tp,
            "pp": point.pp,
            "cp": point.cp,
            "ep": point.ep,
            "etp": point.etp,
            "sp": point.sp,
            "zero": point.zero,
            "zero_group": point.zero_group or "all",
            "recompute": self.recompute_summary,
            "micro_batch": point.micro_batch,
            "schedule": point.schedule,
            "interleave": point.interleave,
            "order": list(point.order),
            "device_order": point.device_order,
            "devices_used": self.devices_used,
            "cuts": list(self.cuts),
            "stage_recompute": list(self.recompute),
        }
        if self.offload != NO_OFFLOAD:
            fields["offload"] = self.offload.shares
        if self.strategies:
            fields["stage_strategies"] = [
                asdict(strategy) | {"zero_group": strategy.zero_group or "all"}
                for strategy in self.strategies
            ]
        return fields
