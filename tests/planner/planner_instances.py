"""Random small problems for the planner: up to 7 layers, 8 devices and 3 levels.

A mixture of families; each makes some options worth their cost so that no option of the
planner stays untried. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from oracle import Choice, Oracle, Pick

from nest_core.costs import (
    IDEAL_OVERLAP,
    NO_OVERLAP,
    Calls,
    LayerTable,
    Overlap,
    Problem,
    StateBytes,
)
from nest_core.costs.software import LINKS_ALONE, Software
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware.collectives import Curve, Regime
from nest_core.network import collapse
from nest_core.planner import ORDERS, SearchSpace

Tables = Callable[[int, bool, int, int, int], LayerTable]

# Group sizes, innermost first: equal and odd ones, and levels that join one child only.
_SHAPES = (
    (8,), (7,), (5,), (4,), (2, 4), (4, 2), (2, 3), (3, 2), (2, 2), (2, 2, 2), (2, 1, 3), (1, 4, 2),
)  # fmt: skip
_NESTED = ((2, 4), (2, 2, 2), (2, 3), (2, 2), (4, 2))


@dataclass(frozen=True)
class Family:
    """What makes its instances special; factors scale what a plain instance would have.

    Parameters
    ----------
    tensor, boundary, weights, kept : float
        Bytes of tensor parallelism, between stages, of parameters and of activations.
    slope : float
        How much the layers get slower, or faster, along the chain.
    quantile : (float, float)
        Device memory among the peaks of random plans.
    loose : float
        Probability of unlimited memory.
    pipelined : bool
        Whether every plan has two stages or more.
    tp, zero : tuple of int
        Allowed widths and ZeRO stages.
    fall : float
        Bandwidth of a level over that of the level inside, at most about.
    layers, pp, shapes, batches
        Lengths of the chain, deepest pipeline, group sizes and batches to draw from.
    """

    name: str
    tensor: float = 1.0
    boundary: float = 1.0
    weights: float = 1.0
    kept: float = 1.0
    slope: float = 0.5
    quantile: tuple[float, float] = (0.0, 1.0)
    loose: float = 0.4
    pipelined: bool = False
    tp: tuple[int, ...] = (1, 2, 4)
    zero: tuple[int, ...] = (0, 1, 2, 3)
    fall: float = 1.0
    layers: tuple[int, ...] = (2, 3, 4, 5, 6, 6, 7, 7)
    pp: int = 8
    shapes: tuple[tuple[int, ...], ...] = _SHAPES
    batches: tuple[int, ...] = (4, 6, 8, 12, 12, 16, 24)


FAMILIES = (
    Family("plain"),
    Family("deep", tensor=60, boundary=0.1, weights=6, kept=1.5, slope=2, quantile=(0, 0.2),
           loose=0, zero=(0,), shapes=((5,), (7,), (6,), (8,), (2, 3), (1, 3, 2), (2, 4)),
           batches=(9, 10, 14, 16)),
    Family("crossing", tensor=80, boundary=40, weights=0.5, kept=1.5, slope=2, fall=0.5,
           quantile=(0, 0.3), loose=0.3, tp=(1, 2), pipelined=True, shapes=_NESTED,
           batches=(9, 10, 12, 14, 15)),
    Family("stateful", boundary=20, weights=4, kept=0.1, quantile=(0, 0.07), loose=0,
           layers=(5, 6, 7), tp=(1,), pp=2, zero=(2, 3), batches=(2, 4, 4, 6, 8)),
    Family("tight", tensor=40, kept=3, weights=2, slope=2, quantile=(0, 0.1), loose=0,
           batches=(6, 8, 12)),
    Family("odd", tensor=4, fall=0.1, batches=(2, 3, 5, 9), shapes=((8,), (2, 4), (2, 3), (4, 2))),
)  # fmt: skip
_TURNS = (0, 1, 1, 2, 2, 2, 2, 3, 4, 4, 5)


@dataclass(frozen=True)
class Instance:
    """A problem with the fabric that it came from."""

    seed: int
    family: Family
    fabric: Hierarchical
    problem: Problem
    space: SearchSpace

    @property
    def oracle(self) -> Oracle:
        """A fresh oracle of it."""
        return Oracle(self.fabric, self.problem, self.space)


def random_instance(seed: int, shapes: tuple[tuple[int, ...], ...] = ()) -> Instance:
    """The instance of a seed; so does the family, and its shapes unless given."""
    dice = np.random.default_rng(seed)
    family = FAMILIES[_TURNS[seed % len(_TURNS)]]
    family = replace(family, shapes=shapes or family.shapes)
    fabric = random_fabric(dice, family)
    tables = random_tables(dice, family, layers=int(dice.choice(family.layers)))
    problem = random_problem(dice, family, fabric, tables)
    problem = replace(
        problem,
        state=random_state(seed, problem.state),
        fragmentation=0.07 * (seed % 4),
        communicator_bytes=4.0 * (seed % 3),
        bucket_bytes=30.0 * (seed % 3 == 1),
    )
    space = random_space(dice, family, fabric.devices, problem.batch, problem.layers)
    loose = Instance(seed, family, fabric, problem, space)
    memory = _memory(dice, loose)
    return replace(
        loose,
        problem=replace(
            problem,
            memory_bytes=memory,
            software=random_software(seed),
            overlap=random_overlap(seed),
        ),
    )


def holed_instance(seed: int) -> Instance:
    """Nodes with odd sizes or failed devices, ranks seated anyhow."""
    whole = random_instance(seed, shapes=((4, 3), (3, 3), (2, 2, 2), (4, 2), (5, 2), (6, 2)))
    dice = np.random.default_rng([seed, 17])
    gone = dice.choice(whole.fabric.devices, size=int(dice.integers(0, 3)), replace=False)
    fabric = replace(whole.fabric, missing=tuple(f"device {number}" for number in sorted(gone)))
    space = replace(whole.space, device_orders=("natural",), idle_devices=True, seating="any")
    problem = replace(whole.problem, network=collapse(fabric))
    return replace(whole, fabric=fabric, problem=problem, space=space)


def random_state(seed: int, state: StateBytes) -> StateBytes:
    """Two instances in three with gradients of their own, an optimizer step that needs more."""
    own, temporary = ((0.0, 0.0), (2.0, 4.0), (0.0, 40.0))[seed % 3]
    unheld = 0.5 * (seed % 2) * state.weights
    return replace(state, second_gradients=own, temporary=temporary, unheld=unheld)


def random_problem(
    dice: np.random.Generator, family: Family, fabric: Hierarchical, tables: Tables
) -> Problem:
    return Problem(
        network=collapse(fabric),
        table=tables,
        batch=int(dice.choice(family.batches)),
        tokens=128,
        memory_bytes=float("inf"),
        reserved_bytes=float(dice.uniform(0, 20)),
        state=StateBytes(2.0, float(dice.choice([2.0, 4.0])), float(dice.choice([4.0, 12.0]))),
        update_Bps=float(dice.uniform(50, 500)),
        model_flops=1.0,
        peak_flops=1.0,
    )


def random_overlap(seed: int) -> Overlap:
    """Some overlap in every other instance; all of it in a few."""
    if seed % 2:
        return NO_OVERLAP
    if seed % 16 == 0:
        return IDEAL_OVERLAP
    return Overlap("fitted", *np.random.default_rng([seed, 13]).uniform(0, 1, 4))


def random_software(seed: int) -> Software:
    """A library for every third instance: protocols that start dear and end fast, or reduce."""
    if seed % 3:
        return LINKS_ALONE
    dice = np.random.default_rng([seed, 11])

    def curve(link: str) -> Curve:
        regimes, base, reach = [], 0.002, float(dice.uniform(0.05, 0.5))
        for name in ("LL", "Simple", "NVLS")[: 3 if link == "nvlink" else 2]:
            bases = tuple(base * float(dice.uniform(0.5, 2)) for _ in range(4))
            reaches = tuple(reach * float(dice.uniform(0.7, 1)) for _ in range(4))
            algorithm = "in_network" if name == "NVLS" else "ring"
            regimes.append(Regime(name, algorithm, bases, base / 4, reaches))
            base, reach = 5 * base, min(1.0, 2 * reach)
        own = tuple(float(dice.uniform(0, 0.8)) for _ in range(4))
        first = int(dice.integers(2, 6)) if link == "nvlink" else None
        return Curve("random", link, 0.0, own, tuple(regimes), first)

    return Software(curve("nvlink"), curve("network"))


def random_fabric(dice: np.random.Generator, family: Family) -> Hierarchical:
    """Bandwidths fall and latencies rise outward, mostly."""
    shape = family.shapes[dice.integers(len(family.shapes))]
    bandwidth = float(dice.uniform(20, 200))
    latency = float(dice.choice([0.0, 0.01, 0.1])) * float(dice.uniform(0.2, 1))
    tiers = []
    for number, size in enumerate(shape):
        tiers.append(
            Tier(
                f"tier {number}",
                size,
                bandwidth,
                latency,
                "device" if dice.random() < 0.5 else "child",
                float(dice.choice([1.0, 1.0, 1.5, 2.0, 4.0])),
            )
        )
        bandwidth *= float(dice.uniform(0.2, 1.1)) * family.fall
        latency *= float(dice.uniform(0.8, 4))
    return Hierarchical(f"{family.name} {shape}", tuple(tiers))


def random_tables(
    dice: np.random.Generator,
    family: Family,
    layers: int,
    experts: float = 0.3,
    exchange: float = 1.0,
    unlike: float = 0.1,
) -> Tables:
    """A pure function: the table of one strategy is drawn from its own stream.

    ``experts`` is the probability that the model has some, ``exchange`` scales the bytes of
    context and expert parallelism, ``unlike`` is how much a layer's time under one strategy may
    stray from what its time under another lets expect.
    """
    ramp = np.exp(np.linspace(0, family.slope * dice.choice([-1, 1]), layers))
    chain = _Chain(
        seconds=dice.uniform(0.3, 3, layers) * ramp,
        weights=dice.uniform(0, 6, layers) * ramp * family.weights,
        kept=dice.uniform(5, 60, layers) * np.sqrt(ramp) * family.kept,
        boundary=dice.uniform(1, 10, layers + 1) * family.boundary,
        tensor=family.tensor,
        tied=bool(dice.random() < 0.35),
        batching=float(dice.uniform(0.2, 0.8)),
        unlike=unlike,
    )
    entropy = int(dice.integers(2**31))
    made: dict[tuple[int, ...], LayerTable] = {}
    more = _Extras.drawn(np.random.default_rng([entropy, 5]), layers, experts, exchange)

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        key = (tp, sp, micro_batch, cp, ep, *([etp] if etp != tp else []))
        if key not in made:
            own = np.random.default_rng([entropy, tp, int(sp), micro_batch])
            plain = chain.table(own, tp, sp, micro_batch)
            spread = np.random.default_rng([entropy, *map(int, key)])
            made[key] = more.added(plain, spread, cp, ep, (etp, tp))
        return made[key]

    return table


@dataclass(frozen=True)
class _Chain:
    """Layers on one device with micro-batches of one sequence."""

    seconds: np.ndarray
    weights: np.ndarray
    kept: np.ndarray
    boundary: np.ndarray
    tensor: float
    tied: bool
    batching: float
    unlike: float

    def table(self, dice: np.random.Generator, tp: int, sp: bool, micro_batch: int) -> LayerTable:
        """A strategy roughly does what it should, no two layers alike."""
        layers = len(self.seconds)
        compute = self.seconds * micro_batch**self.batching / tp**0.95
        compute *= dice.uniform(1 - self.unlike, 1 + self.unlike, layers)
        talks = (tp > 1) * dice.choice([0.0, 1.0, 1.0, 1.0], layers)
        number = 4 * talks * (1 + sp)
        sent = self.tensor * micro_batch * (1 - 0.2 * sp) * dice.uniform(0.5, 4, layers) * talks
        share = 1 / tp if sp else (0.3 + 0.7 / tp)
        none = self.kept * micro_batch * share * dice.uniform(0.9, 1.1, layers)
        held = np.stack([none, none * dice.uniform(0.15, 0.6, layers), none * 0.05])
        replay = np.array([0.0, dice.uniform(0.005, 0.04), dice.uniform(0.08, 0.2)])
        parameters = self.weights / tp
        edge = self.boundary * micro_batch / (tp if sp else 1)
        edge[[0, -1]] = 0.0
        none_sent = 0 * sent
        calls = Calls(
            "reduce_scatter" if sp else "all_reduce",
            number,
            sent,
            np.stack([none_sent, none_sent, number / 2]),
            np.stack([none_sent, none_sent, sent / 2]),
        )
        return LayerTable(
            compute_s=compute,
            forward_s=compute / 3,
            weight_s=compute * np.where(np.arange(layers) % 2, 0.25, 0.1),
            replay_s=compute * replay[:, None],
            launch_s=np.zeros((3, layers)),
            calls={"tp": calls},
            parameters=parameters,
            expert_parameters=np.zeros(layers),
            tied_parameters=float(min(parameters[0], parameters[-1])) if self.tied else 0.0,
            kept_bytes=held,
            working_bytes=none - held,
            boundary_bytes=edge,
        )


@dataclass(frozen=True)
class _Extras:
    """Hosts that are slow to launch, experts, and what cp and ep change."""

    launch: np.ndarray
    experts: np.ndarray
    exchange: np.ndarray

    @classmethod
    def drawn(
        cls, dice: np.random.Generator, layers: int, experts: float, exchange: float
    ) -> _Extras:
        """Neither, one or both."""
        slow, mixed = dice.random(2) < (0.3, experts)
        return cls(
            slow * dice.uniform(0, 3, layers),
            mixed * dice.uniform(0, 8, layers) * dice.choice([0.0, 1.0], layers),
            dice.uniform(0.5, 20, layers) * exchange,
        )

    def added(
        self,
        table: LayerTable,
        dice: np.random.Generator,
        cp: int,
        ep: int,
        widths: tuple[int, int],
    ) -> LayerTable:
        """The table of one context- and expert-parallel rank.

        ``widths``: ranks that share an expert's width, and that of the rest.
        """
        layers, (etp, tp) = table.layers, widths
        calls = dict(table.calls)
        for axis, degree, kinds in (
            ("cp", cp, ("ring", "reduce_scatter")),
            ("ep", ep, ("all_to_all",)),
            ("etp", etp if etp != tp else 1, ("reduce_scatter",)),
        ):
            if degree > 1:
                number = dice.choice([0.0, 2.0, 4.0], layers)
                size = number * self.exchange * dice.uniform(0.5, 1.5, layers)
                again = np.array([0.0, 0.3, 0.5])[:, None]
                kind = kinds[dice.integers(len(kinds))]
                calls[axis] = Calls(kind, number, size, again * number, again * size)
        launch = self.launch * np.array([1.0, 1.1, 1.4])[:, None]
        forward = table.forward_s / cp * dice.uniform(0.8, 1.2, layers)
        hottest = dice.uniform(1.0, 1.2, layers) if ep > 1 else 1.0
        return replace(
            table,
            compute_s=table.compute_s / cp * hottest,
            forward_s=forward,
            weight_s=table.weight_s / cp * 0.8,
            replay_s=table.replay_s / cp,
            launch_s=launch,
            calls=calls,
            expert_parameters=self.experts / ep * (tp / etp),
            kept_bytes=table.kept_bytes / cp * hottest,
            working_bytes=table.working_bytes / cp,
            boundary_bytes=table.boundary_bytes / cp,
        )


def random_space(
    dice: np.random.Generator, family: Family, devices: int, batch: int, layers: int
) -> SearchSpace:
    """Mostly everything; now and then an axis is pinned."""

    def some(p: float) -> bool:
        return bool(dice.random() < p)

    every = tuple(range(1, devices + 1))
    widths = family.tp[:2] if some(0.2) else family.tp
    micro = tuple(b for b in (1, 2, 3, 4) if batch % b == 0)[:3]
    depths = tuple(pp for pp in every[family.pipelined :] if pp <= min(layers, family.pp))
    # Without idle devices some degrees must use them all.
    fills = any(
        tp * dp * pp == devices and batch % dp == 0 for tp, dp, pp in product(widths, every, depths)
    )
    pinned = ((1, 2, 3), (0, 1), (0, 2), (0, 3))[dice.integers(4)]
    return SearchSpace(
        tp=widths,
        sp=(False,) if some(0.15) else (False, True),
        dp=every,
        pp=depths,
        micro_batch=micro[:1] if some(0.15) else micro,
        zero=pinned if some(0.3) and len(family.zero) == 4 else family.zero,
        recompute=("none",) if some(0.1) else ("none", "selective", "full"),
        orders=ORDERS[:1] if some(0.1) else ORDERS,
        idle_devices=some(0.85) or not fills,
    )


def random_plan(
    dice: np.random.Generator, instance: Instance, choices: list[Choice]
) -> tuple[Choice, tuple[int, ...], tuple[str, ...]]:
    """Any point, any cut, any recomputation."""
    choice = choices[dice.integers(len(choices))]
    layers = instance.problem.layers
    inner = sorted(1 + dice.choice(layers - 1, choice.pp - 1, replace=False))
    cuts = (0, *(int(cut) for cut in inner), layers)
    recompute = tuple(str(name) for name in dice.choice(instance.space.recompute, choice.pp))
    return choice, cuts, recompute


def _memory(dice: np.random.Generator, instance: Instance) -> float:
    """Somewhere among what random plans take; below the leanest of them at times."""
    if dice.random() < instance.family.loose:
        return float("inf")
    oracle = instance.oracle
    choices = sorted(oracle.choices())
    peaks = []
    for _ in range(60):
        stages = oracle.price(*random_plan(dice, instance, choices)).stages
        peaks.append(max(stage.memory for stage in stages))
    return float(np.quantile(peaks, dice.uniform(*instance.family.quantile))) * float(
        dice.uniform(0.8, 1.2)
    )


def large_instance(seed: int) -> Instance:
    """Too large to enumerate, good for pricing: up to 96 devices in 4 levels, a longer chain."""
    dice = np.random.default_rng([seed, 1])
    family = FAMILIES[seed % len(FAMILIES)]
    shapes = ((4, 2, 3, 4), (3, 5, 4), (8, 3, 2), (6, 7), (2, 2, 2, 2), (5, 1, 3, 2), (96,))
    family = replace(family, shapes=shapes, batches=(24, 36, 60), layers=(9, 12), tp=(1, 2, 3, 4))
    fabric = random_fabric(dice, family)
    tables = random_tables(dice, family, layers=int(dice.choice(family.layers)))
    problem = random_problem(dice, family, fabric, tables)
    problem = replace(
        problem,
        state=random_state(seed, problem.state),
        fragmentation=0.07 * (seed % 4),
        communicator_bytes=4.0 * (seed % 3),
        bucket_bytes=30.0 * (seed % 3 == 1),
    )
    every = tuple(range(1, fabric.devices + 1))
    space = replace(
        random_space(dice, family, fabric.devices, problem.batch, problem.layers),
        pp=tuple(pp for pp in every if pp <= problem.layers),
        idle_devices=True,
    )
    loose = Instance(seed, family, fabric, problem, space)
    return replace(
        loose,
        problem=replace(
            problem,
            memory_bytes=_memory(dice, loose),
            software=random_software(seed + 1),
            overlap=random_overlap(seed),
        ),
    )


def any_choice(dice: np.random.Generator, instance: Instance) -> Choice:
    """Any point that exists, of all degrees, orders and schedules: more than planners search."""
    devices, problem = instance.fabric.devices, instance.problem
    while True:
        tp, cp, dp = (int(dice.choice([1, 1, 2, 3, 4])) for _ in range(3))
        pp = int(dice.choice([1, 2, 2, 3, 4]))
        schedule = str(dice.choice(["1f1b", "gpipe", "interleaved"]))
        v = int(dice.choice([2, 3])) if schedule == "interleaved" and pp > 1 else 1
        micro = int(dice.choice([1, 2]))
        divisors = [ep for ep in range(1, dp * cp + 1) if dp * cp % ep == 0]
        m = problem.batch // (dp * micro)
        if (
            tp * cp * dp * pp <= devices
            and pp * v <= problem.layers
            and problem.batch % (dp * micro) == 0
            and (v == 1 or m % pp == 0)
        ):
            sp, ep = bool(tp > 1 and dice.random() < 0.5), int(dice.choice(divisors))
            free = tp == 1 or sp  # else all tensor-parallel ranks hold the same tokens
            ranks = tp * cp * dp // ep
            wide = [n for n in range(1, ranks + 1) if free and ranks % n == 0] or [tp]
            etp = tp if dice.random() < 0.4 else int(dice.choice(wide))
            zero = int(dice.integers(4))
            groups = _zero_groups(dp * cp, dp * cp * tp // (ep * etp)) if zero else [0]
            return Choice(
                tp=tp,
                sp=sp,
                dp=dp,
                pp=pp,
                micro_batch=micro,
                zero=zero,
                order=tuple(str(axis) for axis in dice.permutation(["tp", "cp", "dp", "pp"])),
                device_order=str(dice.choice(["natural", "rail", "rack"])),
                cp=cp,
                ep=ep,
                schedule="1f1b" if v == 1 and schedule == "interleaved" else schedule,
                interleave=v,
                etp=etp,
                zero_group=int(dice.choice(groups)),
            )


def _zero_groups(sharers: int, owners: int) -> list[int]:
    """Parts of the sharers that ZeRO may shard over, and all of them as 0."""
    parts = [n for n in range(2, sharers) if sharers % n == 0 and owners % (sharers // n) == 0]
    return [0, *parts]


def any_stages(
    dice: np.random.Generator, instance: Instance, choice: Choice
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Any cut into virtual stages, any recomputation."""
    layers, parts = instance.problem.layers, choice.pp * choice.interleave
    inner = sorted(1 + dice.choice(layers - 1, parts - 1, replace=False))
    names = dice.choice(["none", "selective", "full"], choice.pp)
    return (0, *map(int, inner), layers), tuple(map(str, names))


def any_picks(dice: np.random.Generator, choice: Choice) -> tuple[Pick, ...]:
    """Any strategy for every stage, on as many devices each."""
    inner, outer = sorted((choice.order.index("tp"), choice.order.index("cp")))
    split = inner < choice.order.index("pp") < outer  # then a stage keeps its devices only alike
    picks = []
    for _ in range(choice.pp):
        tp = int(dice.choice([tp for tp in range(1, choice.width + 1) if choice.width % tp == 0]))
        sharers = choice.dp * choice.width // tp
        divisors = [ep for ep in range(1, sharers + 1) if sharers % ep == 0]
        sp = bool(tp > 1 and dice.random() < 0.5)
        ep, zero = int(dice.choice(divisors)), int(dice.integers(4))
        halves = sp and tp % 2 == 0 and dice.random() < 0.4
        etp = tp // 2 if halves else tp
        groups = _zero_groups(sharers, sharers * tp // (ep * etp)) if zero else [0]
        group = int(dice.choice(groups))
        picks.append(Pick(tp, sp, choice.width // tp, ep, zero, etp, group))
    return tuple(picks[:1] * choice.pp if split else picks)


def _quiet(compute: np.ndarray, boundary: np.ndarray) -> LayerTable:
    """A chain that takes time and sends activations, and nothing else."""
    layers = len(compute)
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    return LayerTable(
        compute_s=compute,
        forward_s=nothing,
        weight_s=nothing,
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=boundary,
    )


def _quiet_problem(fabric: Hierarchical, table: Tables, batch: int) -> Problem:
    return Problem(
        network=collapse(fabric),
        table=table,
        batch=batch,
        tokens=1,
        memory_bytes=1.0,
        reserved_bytes=0.0,
        state=StateBytes(2.0, 4.0, 12.0),
        update_Bps=1.0,
        model_flops=1.0,
        peak_flops=1.0,
    )


def even_instance(seed: int) -> Instance:
    """Powers of two wherever possible, so that many plans take exactly as long."""
    dice = np.random.default_rng([seed, 2])
    shape = ((8,), (2, 4), (4, 2), (2, 2, 2), (2, 2))[dice.integers(5)]
    tiers = tuple(
        Tier(f"tier {number}", size, float(dice.choice([1.0, 2.0, 4.0])), 0.0, "child")
        for number, size in enumerate(shape)
    )
    fabric = Hierarchical(f"even {shape}", tiers)
    layers = int(dice.choice([2, 4, 6]))
    speedup = float(dice.choice([0, 0, 1]))
    load = np.full(layers, float(dice.choice([1, 2, 4])))
    if dice.random() < 0.7:  # where only the first layer works, a deeper pipeline costs nothing
        load[1:] = 0.0
    edge = np.full(layers + 1, float(dice.choice([0, 0, 1])))
    edge[[0, -1]] = 0.0

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        return _quiet(load * micro_batch / tp**speedup, edge * micro_batch)

    every = tuple(range(1, fabric.devices + 1))
    # Few replicas leave devices to deeper and wider plans that are no faster.
    space = SearchSpace(
        tp=(1, 2, 4),
        sp=(False, True),
        dp=(every, every[:2], every[:1])[dice.integers(3)],
        pp=(every, every[:2])[dice.integers(2)],
        micro_batch=(1, 2),
        idle_devices=bool(dice.random() < 0.4),
    )
    problem = _quiet_problem(fabric, table, batch=int(dice.choice([4, 8])))
    return Instance(seed, FAMILIES[0], fabric, problem, space)


def level_instance() -> Instance:
    """Four devices, two layers, two micro-batches: (tp, pp) of (1, 2) and (4, 1) take 3 s."""
    fabric = Hierarchical("flat", (Tier("node", 4, 1.0, 0.0),))

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        return _quiet(np.full(2, 1.0 if tp == 1 else 0.75), np.zeros(3))

    space = SearchSpace(tp=(1, 4), sp=(False,), dp=(1,), pp=(1, 2), micro_batch=(1,))
    return Instance(0, FAMILIES[0], fabric, _quiet_problem(fabric, table, batch=2), space)


def queued_instance(seconds: tuple[float, ...], batch: int, counts: tuple[int, ...]) -> Instance:
    """Three stages on three devices; the first of ``counts`` micro-batches is the fastest.

    One unit flows between layers and takes a second. The fastest choice has layers of
    ``seconds``; the others are even and a little slower, but their lower bounds promise more.
    """
    fabric = Hierarchical("flat", (Tier("node", 3, 1.0, 0.0),))
    fast, layers = counts[0], len(seconds)
    units = np.ones(layers + 1)
    units[[0, -1]] = 0.0
    # The first stage is the tallest: it sends one unit.
    target = (sum(seconds) + 4) + (fast - 1) * (max(seconds) + 1) + 0.1 * (fast - 1)

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        m = batch // micro_batch
        if m == fast:
            return _quiet(np.array(seconds, dtype=float), units)
        # Three even stages x, with their transfers: (3 x + 4) + (m - 1) (x + 2) seconds.
        even = np.zeros(layers)
        even[-3:] = (target - 4 - 2 * (m - 1)) / (m + 2)
        return _quiet(even, units)

    space = SearchSpace(
        tp=(1,), sp=(False,), dp=(1,), pp=(3,), micro_batch=tuple(batch // m for m in counts)
    )
    return Instance(0, FAMILIES[0], fabric, _quiet_problem(fabric, table, batch), space)
