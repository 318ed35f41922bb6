"""The search space: what may be chosen on every axis, and which outer points that makes.

Points are listed in three tiers, so that most of them are never written down. A *family* is a
sub-graph strategy ``(tp, sp, cp, ep, etp)``; a *row* is a family with a micro-batch, ``dp`` and
``pp``; a *point* is a row with a ZeRO stage, a schedule and an order. Rows are columns of numpy
arrays, points are numbered row by row and decoded on demand. Which points are valid:
``docs/method.md``, "The program".
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nest_core.costs import (
    AXES,
    NO_OFFLOAD,
    REPLAYED,
    Offload,
    Plan,
    Problem,
    Whole,
    acting_zero,
    micro_batches,
    seatings,
)
from nest_core.costs.checks import check_offload
from nest_core.documents.errors import InputError, require
from nest_core.network import BoolArray, IntArray, Network
from nest_core.planner.layouts import even_patterns

__all__ = [
    "ORDERS",
    "PLAIN",
    "Families",
    "Rows",
    "SearchSpace",
    "as_raised",
    "divides",
    "enumerate_rows",
]

ORDERS = (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))
"""Megatron-LM's and Alpa's order (the replicas of a stage side by side) and NEST's."""

PLAIN = ("1f1b", "zb_h1", "zb_1p", "zb_2p", "gpipe")
"""Schedules without virtual stages, the leanest first."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The choices on every axis; the planner takes their product and keeps what is valid.

    Parameters
    ----------
    tp, dp, pp, micro_batch, zero, cp, ep, interleave : tuple of int
        ``interleave`` counts virtual stages per stage under interleaved schedules; V-shaped ones
        have two, others one.
    sp : tuple of bool
    etp : tuple of int
        Expert tensor degrees, see `expert_tensor`; empty: ``tp`` everywhere.
    zero_groups : tuple of int
        Ranks that ZeRO shards over, see `states`; 0: all that share dense weights.
    recompute : tuple of str
    orders : tuple of axis orders
    device_orders : tuple of str
    seating : str
        ``any``: the device orders are to be those of a fabric's seatings too, see `seated_on`.
    idle_devices : bool
        Whether a plan may leave devices idle.
    schedules : tuple of str
        Of `SCHEDULES`.
    layouts : str
        ``even`` or ``uneven``: whether interleaved stages may have `uneven_patterns` too.
    mixed : bool
        Whether every stage has a strategy of its own (`StageStrategy`).
    offload : tuple of Offload
        What a plan may leave on the host, see `offloading`.
    as_needed : bool
        The paper's rule: recomputation, and after it ZeRO, is raised only where it does not fit.
    sharded_gradients : bool
        Of the problem: whether ZeRO 2 differs from 1 in a pipeline.
    """

    tp: tuple[int, ...]
    sp: tuple[bool, ...]
    dp: tuple[int, ...]
    pp: tuple[int, ...]
    micro_batch: tuple[int, ...]
    zero: tuple[int, ...] = (0, 1, 2, 3)
    recompute: tuple[str, ...] = ("none", "selective", "full")
    orders: tuple[tuple[str, ...], ...] = ORDERS
    device_orders: tuple[str, ...] = ("natural",)
    idle_devices: bool = True
    cp: tuple[int, ...] = (1,)
    ep: tuple[int, ...] = (1,)
    schedules: tuple[str, ...] = ("1f1b",)
    interleave: tuple[int, ...] = (1,)
    mixed: bool = False
    as_needed: bool = False
    seating: str = "consecutive"
    etp: tuple[int, ...] = ()
    layouts: str = "even"
    zero_groups: tuple[int, ...] = (0,)
    offload: tuple[Offload, ...] = (NO_OFFLOAD,)
    sharded_gradients: bool = False

    def __post_init__(self) -> None:
        require(
            not self.mixed or self.layouts != "uneven",
            "search.layouts",
            "must be even where stages are mixed",
            self.layouts,
            'set search.stage_strategies = "uniform", or search.layouts = "even"',
        )
        require(
            not self.mixed or not set(REPLAYED) & set(self.schedules),
            "search.schedule",
            "must hold none of interleaved_zb, zbv and dualpipev where stages are mixed",
            list(self.schedules),
            'set search.stage_strategies = "uniform", or leave them out',
        )
        for order in self.orders:
            require(
                sorted(order) == sorted(AXES) and order[0] == "tp",
                "search.order",
                "must name tp first, then cp, dp and pp in any order",
                list(order),
                "tensor-parallel ranks are placed side by side",
            )
            require(
                not self.mixed or order.index("cp") <= order.index("pp"),
                "search.order",
                "must name cp before pp where stages are mixed",
                list(order),
                "a stage keeps its devices whatever it makes of tp and cp only then",
            )

    def offloading(self, offload: Offload) -> Self:
        """Return the plans that offload so; activations only where nothing is recomputed."""
        with_offload = replace(self, offload=(offload,))
        if not offload.activations:
            return with_offload
        recompute, schedules = check_offload(self.recompute, self.schedules, "search")
        return replace(with_offload, recompute=recompute, schedules=schedules)

    def seated_on(self, network: Network) -> Self:
        """Return the same space with a fabric's seatings among its device orders.

        They are seatings of the natural order, and added where that is allowed.
        """
        if self.seating != "any":
            return self
        added = seatings(network) if "natural" in self.device_orders else ()
        return replace(
            self,
            device_orders=tuple(dict.fromkeys((*self.device_orders, *added))),
            seating="consecutive",
        )

    def holds(self, plan: Plan) -> bool:
        """Whether a plan of equal stages is one of the space, whatever its cuts.

        As needed none is: whether its memory is needed only the search can say.
        """
        point = plan.point
        axes = ("tp", "sp", "dp", "pp", "micro_batch", "zero", "cp", "ep")
        return (
            not (self.as_needed or self.mixed or plan.strategies)
            and all(getattr(point, axis) in getattr(self, axis) for axis in axes)
            and point.etp in self.expert_tensor(point.tp, point.sp)
            and (not point.zero or point.zero_group in self.zero_groups)
            and point.order in self.orders
            and point.device_order in self.device_orders
            and point.schedule in self.schedules
            and (point.is_v_shaped or point.interleave in (1, *self.interleave))
            and set(plan.recompute) <= set(self.recompute)
            and plan.offload in self.offload
        )

    def expert_tensor(self, tp: int, sp: bool) -> tuple[int, ...]:
        """Expert tensor degrees beside ``tp``: itself, or under sequence parallelism its divisors.

        Without it all tensor-parallel ranks hold the same tokens, and have the same experts at
        work on them.
        """
        return (
            (tp,)
            if not self.etp
            else tuple(n for n in dict.fromkeys(self.etp) if n == tp or (sp and tp % n == 0))
        )

    def stages_of_zero(self, pp: int) -> tuple[int, ...]:
        """ZeRO stages that differ in a pipeline of ``pp`` stages; of 1 and 2, where alike, 1."""
        stages = tuple(dict.fromkeys(self.zero))
        return tuple(
            zero
            for zero in stages
            if zero == acting_zero(zero, pp, self.sharded_gradients) or 1 not in stages
        )

    def groups_among(self, sharers: int, owners: int) -> tuple[int, ...]:
        """Return groups that ZeRO may shard over among ``sharers`` of dense weights, 0 for all.

        A group of one is ZeRO 0. There are as many copies of experts, which have ``owners``, as of
        dense weights: Megatron-LM's and torchtitan's rule.
        """
        groups = (g for g in self.zero_groups if not g or divides(g, sharers, owners))
        return tuple(dict.fromkeys(0 if group == sharers else group for group in groups))

    def states(self, pp: int, sharers: int, owners: int) -> tuple[tuple[int, int], ...]:
        """ZeRO stages and groups that differ where so many ranks hold the same weights."""
        if max(sharers, owners) == 1:
            return ((0, 0),)
        groups = self.groups_among(sharers, owners)
        return tuple(
            (zero, group)
            for zero in self.stages_of_zero(pp)
            for group in (groups if zero else (0,))
        )

    def orders_among(self, wide: set[str]) -> list[tuple[str, ...]]:
        """Orders that place ranks differently where these axes are wider than 1, the first each."""
        firsts: dict[tuple[str, ...], tuple[str, ...]] = {}
        for order in self.orders:
            firsts.setdefault(tuple(axis for axis in order if axis in wide), order)
        return list(firsts.values())

    def interleaves(self, layers: int, pp: int, interleave: int) -> bool:
        """Whether a chain of layers has a layout of so many virtual stages."""
        return (
            pp > 1
            and interleave > 1
            and (
                (self.layouts == "uneven" and pp * interleave <= layers)
                or bool(even_patterns(layers, pp, interleave))
            )
        )

    @property
    def replaces_gpipe(self) -> bool:
        """Whether 1F1B, which takes as long and holds less, stands for GPipe.

        Not as needed: there what holds more may raise ZeRO, and be faster for it.
        """
        return "1f1b" in self.schedules and not self.as_needed

    @property
    def plain(self) -> str:
        """The leanest schedule without virtual stages; empty if there is none.

        Without a pipeline all of them do the same, and count as this one.
        """
        return next((name for name in PLAIN if name in self.schedules), "")


def as_raised(states: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """ZeRO stages with their groups in the order in which memory makes them needed.

    The least divided comes first: small groups before large ones, in each the lowest stage, as in
    the ladder of the paper's table 7.

    Examples
    --------
    >>> as_raised([(3, 0), (1, 0), (1, 8), (3, 8), (0, 0)])
    [(0, 0), (1, 8), (3, 8), (1, 0), (3, 0)]
    """
    return sorted(states, key=lambda state: (state[0] > 0, state[1] == 0, state[1], state[0]))


def divides(group: int, sharers: Whole, owners: Whole) -> Any:
    """Whether a part of the sharers may be a group of ZeRO's; ``owners`` hold the same experts."""
    return (group > 1) & (sharers % group == 0) & (owners * group % sharers == 0)


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """Sub-graph strategies as columns."""

    tp: IntArray
    sp: IntArray
    cp: IntArray
    ep: IntArray
    etp: IntArray

    def __len__(self) -> int:
        return len(self.tp)

    def one(self, family: int) -> tuple[int, bool, int, int, int]:
        """``tp``, ``sp``, ``cp``, ``ep`` and ``etp`` of one."""
        tp, sp, cp, ep, etp = (
            int(column[family]) for column in (self.tp, self.sp, self.cp, self.ep, self.etp)
        )
        return tp, bool(sp), cp, ep, etp

    def without_experts(self) -> tuple[Self, IntArray]:
        """Families with all experts on every rank, and which of them each family is then.

        Where tensor parallelism divides experts too, it still does.
        """
        etp = np.where(self.etp == self.tp, self.tp, 1)
        keys = np.stack([self.tp, self.sp, self.cp, np.ones_like(self.tp), etp])
        distinct, which = np.unique(keys, axis=1, return_inverse=True)
        return type(self)(*distinct), which


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Micro-batch, ``dp`` and ``pp`` as they go together, as columns."""

    micro_batch: IntArray
    dp: IntArray
    pp: IntArray


# Without slots, for columns that are found once.
@dataclass(frozen=True, eq=False)
class Rows:
    """Families, each with batches: there may be millions, so that columns are made for parts.

    Parameters
    ----------
    families : Families
    batches : Batches
        Those that rows have.
    family, batch : (rows,)
        Indices into both.
    """

    families: Families
    batches: Batches
    family: npt.NDArray[np.int32]
    batch: npt.NDArray[np.int32]
    _columns: dict[str, IntArray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.family)

    def chosen(self, which: IntArray | slice) -> Self:
        """Return some of them."""
        return type(self)(self.families, self.batches, self.family[which], self.batch[which])

    @cached_property
    def micro_batch(self) -> IntArray:
        """Sequences of a micro-batch, (rows,)."""
        return self.batches.micro_batch[self.batch]

    @cached_property
    def dp(self) -> IntArray:
        """Replicas, (rows,)."""
        return self.batches.dp[self.batch]

    @cached_property
    def pp(self) -> IntArray:
        """Stages, (rows,)."""
        return self.batches.pp[self.batch]

    @property
    def devices_used(self) -> IntArray:
        """Devices that the plans of every row use."""
        return np.asarray(self.column("tp") * self.column("cp") * self.dp * self.pp)

    def column(self, name: str) -> IntArray:
        """``tp``, ``sp``, ``cp``, ``ep`` or ``etp`` of every row."""
        if name not in self._columns:
            self._columns[name] = np.asarray(getattr(self.families, name)[self.family])
        return self._columns[name]

    @cached_property
    def owners(self) -> IntArray:
        """Ranks that hold the same experts, (rows,)."""
        tp, cp, ep, etp = (self.column(name) for name in ("tp", "cp", "ep", "etp"))
        return np.asarray(tp * cp * self.dp // (ep * etp))

    @cached_property
    def reach(self) -> IntArray:
        """Tensor-parallel groups that share experts, (rows,); 0 where they are within one."""
        tp, ep, etp = (self.column(name) for name in ("tp", "ep", "etp"))
        return np.where(ep * etp % tp == 0, ep * etp // tp, 0)

    @cached_property
    def shared(self) -> BoolArray:
        """Whether more than one rank holds any weights, (rows,)."""
        return np.asarray(np.maximum(self.dp * self.column("cp"), self.owners) > 1)


def enumerate_rows(problem: Problem, space: SearchSpace) -> Rows:
    """All valid rows, family by family.

    Raises
    ------
    InputError
        If the pins leave none; the sentence names the rule that removes the last one, and the
        nearest change of one axis that leaves some.
    """
    try:
        return _rows(problem, space)
    except InputError as error:
        nearest = _nearest(problem, space)
        if not nearest:
            raise
        raise InputError(error.field, error.rule, error.value, nearest) from error


def _nearest(problem: Problem, space: SearchSpace) -> str:
    """Return changes of one axis that leave a row, each as near as there is to what was asked."""
    devices, batch = problem.network.devices, problem.batch
    sizes = range(1, batch + 1)
    axes = {
        "dp": [size for size in sizes if size <= devices and problem.divides(size, 1)],
        "pp": list(range(1, min(problem.layers, devices) + 1)),
        "micro_batch": [size for size in sizes if problem.divides(1, size)],
        "ep": [size for size in space.ep if size > 1] and [1],
    }
    changes = []
    for axis, valid in axes.items():
        wanted = getattr(space, axis)
        distance = {value: min(abs(np.log(value / entry)) for entry in wanted) for value in valid}
        for value in sorted(distance, key=lambda entry: (distance[entry], entry)):
            if value not in wanted and _leaves_rows(problem, _pinned(space, axis, value)):
                name = "micro_batch_sequences" if axis == "micro_batch" else axis
                changes.append(f"search.{name} = {value}")
                break
    if not space.idle_devices and _leaves_rows(problem, replace(space, idle_devices=True)):
        changes.append("search.idle_devices = true")
    if not problem.pad_batch and _leaves_rows(replace(problem, pad_batch=True), space):
        changes.append("search.pad_batch = true")
    return "set " + ", or ".join(changes) if changes else ""


def _pinned(space: SearchSpace, axis: str, value: int) -> SearchSpace:
    if axis == "dp":
        return replace(space, dp=(value,))
    if axis == "pp":
        return replace(space, pp=(value,))
    return replace(space, ep=(value,)) if axis == "ep" else replace(space, micro_batch=(value,))


def _leaves_rows(problem: Problem, space: SearchSpace) -> bool:
    try:
        _rows(problem, space)
    except InputError:
        return False
    return True


def _rows(problem: Problem, space: SearchSpace) -> Rows:
    families = _families(space)
    devices = problem.network.devices
    micro, dp, pp = _batches(problem, space)
    parts: list[npt.NDArray[np.int32]] = []
    dp_pp = dp * pp  # devices of a replica's width
    met = {"fits": False, "shared": False, "full": False, "divided": False}
    for family, width in enumerate((families.tp * families.cp).tolist()):
        fits = width * dp_pp <= devices
        shared = fits & (dp * width % int(families.ep[family] * families.etp[family]) == 0)
        full = shared & ((width * dp_pp == devices) | np.bool_(space.idle_devices))
        cp, ep, etp = (int(getattr(families, name)[family]) for name in ("cp", "ep", "etp"))
        sharers, owners = dp * cp, dp * width // (ep * etp)
        divided = full & np.any(
            [divides(group, sharers, owners) if group else full for group in space.zero_groups],
            axis=0,
        )
        valid = divided | (full & ((0 in space.zero) | (np.maximum(sharers, owners) == 1)))
        for name, columns_of in (
            ("fits", fits),
            ("shared", shared),
            ("full", full),
            ("divided", divided),
        ):
            met[name] = met[name] or bool(columns_of.any())
        parts.append(np.flatnonzero(valid).astype(np.int32))
    least = int((families.tp * families.cp).min() * dp_pp.min())
    refusals = (
        (
            "fits",
            "search.tp x search.cp x search.dp x search.pp",
            f"must not exceed the fabric's {devices} devices",
            least,
            "lower the smallest tp, cp, dp or pp allowed",
        ),
        (
            "shared",
            "search.ep",
            "must divide dp x cp" if not space.etp else "times etp must divide tp x cp x dp",
            list(space.ep)[:8],
            "allow a smaller ep, or a dp that it divides",
        ),
        (
            "full",
            "search.idle_devices",
            "must be true when no allowed tp x cp x dp x pp equals the device count",
            space.idle_devices,
            "allow idle devices or other degrees",
        ),
        (
            "divided",
            "search.zero_group",
            "must hold all, or a divisor of dp x cp above 1 that keeps the ranks with the same "
            "experts equal",
            list(space.zero_groups)[:8],
            "add all, or allow another dp",
        ),
    )
    for name, axis, rule, value, remedy in refusals:
        require(met[name], axis, rule, value, remedy)
    owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
    batch = np.concatenate(parts)
    used = np.bincount(batch, minlength=len(dp)) > 0
    batches = Batches(micro[used], dp[used], pp[used])
    return Rows(families, batches, owner, (np.cumsum(used, dtype=np.int32) - 1)[batch])


def _batches(problem: Problem, space: SearchSpace) -> tuple[IntArray, IntArray, IntArray]:
    """Micro-batch, ``dp`` and ``pp`` as they go together, whatever the family."""
    grid = np.meshgrid(
        np.array(space.micro_batch), np.array(space.dp), np.array(space.pp), indexing="ij"
    )
    micro, dp, pp = (axis.reshape(-1).astype(np.int64) for axis in grid)
    rules = (
        (
            np.asarray(problem.divides(dp, micro)),
            "search.dp",
            "times micro_batch_sequences must "
            + ("leave each replica a part of" if problem.pad_batch else "divide")
            + f" the batch of {problem.batch}",
            list(space.dp)[:8],
            "allow smaller ones"
            if problem.pad_batch
            else "allow divisors of the batch, or set search.pad_batch = true",
        ),
        (
            pp <= problem.layers,
            "search.pp",
            f"must not exceed the model's {problem.layers} layers",
            int(pp.min()),
            "lower pp",
        ),
        (
            _schedulable(problem, space, dp, pp, micro),
            "search.schedule",
            "must leave one: interleaving needs pp above 1 that divides the micro-batches of a "
            "replica, dualpipev two for each stage, and all virtual stages of equally many layers",
            list(space.schedules),
            'allow 1f1b, another pp, interleave or micro-batch, or set search.layouts = "uneven"',
        ),
    )
    keep = np.ones(micro.shape, dtype=bool)
    for passes, axis, rule, value, remedy in rules:
        keep &= passes
        require(keep.any(), axis, rule, value, remedy)
    return micro[keep], dp[keep], pp[keep]


def _families(space: SearchSpace) -> Families:
    widths = [(tp, sp) for tp, sp in itertools.product(space.tp, space.sp) if tp > 1 or not sp]
    require(
        widths,
        "search.sp",
        "must allow false where tp is 1",
        list(space.sp),
        "add false or a larger tp",
    )
    families = [
        (tp, sp, cp, ep, etp)
        for (tp, sp), cp, ep in itertools.product(widths, space.cp, space.ep)
        for etp in space.expert_tensor(tp, sp)
    ]
    require(
        families,
        "search.etp",
        "must hold tp, or with sequence parallelism a divisor of tp",
        list(space.etp)[:8],
        "add 1, and true to search.sp",
    )
    return Families(*np.array(families, dtype=np.int64).T)


def _schedulable(
    problem: Problem, space: SearchSpace, dp: IntArray, pp: IntArray, micro: IntArray
) -> BoolArray:
    """Whether a row has any schedule."""
    if space.plain:
        return np.ones(len(pp), dtype=bool)
    m = micro_batches(problem.batch, dp, micro)
    schedulable = np.zeros(len(pp), dtype=np.bool_)
    for name, fills, several in (
        ("interleaved", m % pp == 0, space.interleave),
        ("interleaved_zb", m % pp == 0, space.interleave),
        ("zbv", m > 0, (2,)),
        ("dualpipev", m >= 2 * pp, (2,)),
    ):
        depths = [
            depth
            for depth in np.unique(pp).tolist()
            if name in space.schedules
            if any(space.interleaves(problem.layers, depth, v) for v in several)
        ]
        schedulable |= fills & np.isin(pp, depths)
    return schedulable
