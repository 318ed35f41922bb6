"""Random small problems over the planner's joint space, at most 20,000 plans each.

Every axis is open or pinned by chance; while there are too many plans, axes lose values. What a
case leaves to choose is counted axis by axis (`choices_left`), so that tests can insist on enough
of each. Everything follows from the seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from oracle import AXES, CHOICES, Choice, Oracle, Pick
from oracle_traffic import place
from planner_instances import (
    FAMILIES,
    Instance,
    random_fabric,
    random_overlap,
    random_problem,
    random_software,
    random_state,
    random_tables,
)

from nest_core.costs import LayerTable, Overlap
from nest_core.costs.problem import with_methods
from nest_core.network import Dispatch
from nest_core.planner import ORDERS, SearchSpace
from nest_core.workload.recomputation import ordered

MOST_PLANS = 20_000
_MOST_POINTS = 400

LEFT = (
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "etp",
    "sp",
    "zero",
    "zero_group",
    "recompute",
    "micro_batch",
    "schedule",
    "interleave",
    "order",
    "device_order",
    "idle_devices",
    "uneven cuts",
    "mixed",
    "as_needed",
    "pad_batch",
)
"""Axes of the joint space, the rule that narrows it, and the one that widens it."""

_STARS = LEFT[:-2]
_NARROWED = {name: name for name in (*LEFT[:8], "micro_batch", "interleave")} | {
    "zero_groups": "zero_group",
    "recompute": "recompute",
    "orders": "order",
    "device_orders": "device_order",
    "schedules": "schedule",
}
"""Fields of the space that lose values, and the axes that they are."""

_SHAPES = (
    (8,), (6,), (4,), (2, 4), (4, 2), (2, 3), (3, 2), (2, 2), (2, 2), (2, 2, 2), (2, 2, 2),
    (2, 1, 3), (3, 3), (2, 3, 2),
)  # fmt: skip
_LAYERS = (3, 4, 4, 5, 6, 6, 6, 7, 8, 8, 9, 10)
_DIVISIBLE = (6, 8, 8, 10)
_BATCHES = (4, 6, 8, 8, 12, 12, 16, 24)
_ORDERS = tuple(("tp", *rest) for rest in permutations(AXES[1:]))  # as scenarios allow
_TRIES = 60


def joint_instance(seed: int) -> Instance:
    """The case of a seed; three axes, drawn first, are sure to be open."""
    dice = np.random.default_rng([seed, 31])
    stars = tuple(str(name) for name in dice.permutation(_STARS)[:3])
    family, layers = FAMILIES[seed % len(FAMILIES)], _LAYERS
    if "interleave" in stars:  # worth it where even cuts are even work, and cheap to send on
        family, layers = replace(family, slope=0.1, boundary=0.05 * family.boundary), _DIVISIBLE
    family = replace(family, shapes=_SHAPES, layers=layers, batches=_BATCHES)
    fabric = random_fabric(dice, family)
    tables = random_tables(
        dice,
        family,
        int(dice.choice(layers)),
        experts=0.6,
        exchange=float(dice.choice([0.3, 1.0, 6.0])),
        unlike=float(dice.choice([0.1, 0.6])),
    )
    problem = random_problem(dice, family, fabric, tables)
    problem = replace(
        problem,
        state=random_state(seed, problem.state),
        fragmentation=0.07 * (seed % 4),
        communicator_bytes=4.0 * (seed % 3),
        bucket_bytes=30.0 * (seed % 3 == 1),
        software=random_software(seed + int(dice.integers(2))),
        overlap=_overlap(seed),
        dispatch=_dispatch(seed),
        pad_batch=bool(np.random.default_rng([seed, 53]).random() < 0.75),
    )
    found: Instance | None = None
    for _ in range(_TRIES):
        instance = Instance(seed, family, fabric, problem, _space(dice, stars))
        found = _trimmed(dice, instance, stars) or found
        if found is not None and set(stars) <= set(choices_left(found.oracle)):
            break
    assert found is not None, f"seed {seed} has no plans"
    return replace(found, problem=replace(problem, memory_bytes=_memory(dice, found)))


def _overlap(seed: int) -> Overlap:
    """In every third case passes of different micro-batches run beside one another."""
    return replace(random_overlap(seed), experts=seed % 3 == 1)


def _dispatch(seed: int) -> Dispatch | None:
    """In every other case tokens are sent once per node, some of them to few groups of experts."""
    dice = np.random.default_rng([seed, 61])
    ways = ((1, 1), (2, 1), (4, 2))
    groups = ways[dice.integers(len(ways))]
    return Dispatch(8, int(dice.integers(1, 5)), *groups) if dice.random() < 0.5 else None


def _space(dice: np.random.Generator, stars: tuple[str, ...]) -> SearchSpace:
    def some(p: float) -> bool:
        return bool(dice.random() < p)

    def opened(name: str, p: float, *ways: Any) -> Any:
        """One of the ways, or one value of it."""
        way = ways[dice.integers(len(ways))]
        return way if name in stars or some(p) else (way[dice.integers(len(way))],)

    mixed = "mixed" in stars or some(0.25)
    # Stages that differ sit on the same devices: no pipeline between tp and cp.
    whole = [order for order in _ORDERS if not mixed or _together(order)]
    three = tuple(whole[at] for at in dice.permutation(len(whole))[:3])
    chunked = some(0.4) or "interleave" in stars
    names = ["1f1b", "gpipe", "interleaved"]
    listed = tuple(str(name) for name in dice.permutation(names)) if chunked else ("1f1b", "gpipe")
    return SearchSpace(
        tp=opened("tp", 0.6, (1, 2), (1, 2, 4), (2, 1), (1, 3)),
        cp=opened("cp", 0.5, (1, 2), (1, 2, 4), (2, 1)),
        ep=opened("ep", 0.5, (1, 2), (1, 2, 4), (2, 4)),
        dp=opened("dp", 0.6, (1, 2), (1, 2, 3, 4), (2, 4), (1, 3)),
        pp=opened("pp", 0.7, (1, 2), (2, 3), (1, 2, 3, 4), (2, 4)),
        sp=opened("sp", 0.5, (False, True), (True, False)),
        micro_batch=opened("micro_batch", 0.6, (1, 2), (1, 2, 4), (2, 1)),
        zero=opened("zero", 0.6, (0, 1, 2, 3), (0, 3), (1, 2), (0, 2, 3), (3, 1)),
        recompute=opened("recompute", 0.7, CHOICES, CHOICES, CHOICES[::2], CHOICES[1:]),
        orders=opened("order", 0.4, ORDERS, three),
        device_orders=opened("device_order", 0.4, *permutations(("natural", "rail", "rack"))),
        idle_devices="idle_devices" in stars or some(0.7),
        schedules=opened("schedule", 0.8 * chunked, listed),
        interleave=opened("interleave", 0.5, (2, 3), (1, 2, 3), (3, 2), (2, 4), (4, 2)),
        mixed=mixed,
        as_needed=some(0.4),
        zero_groups=opened("zero_group", 0.3, (0, 2), (2, 0), (0, 2, 3, 4), (4, 0, 2)),
        etp=opened("etp", 0.6, (1, 2), (1, 2, 4), (2, 1)) if "etp" in stars or some(0.3) else (),
    )


def with_recompute_methods(
    dice: np.random.Generator, instance: Instance, methods: tuple[str, ...]
) -> Instance:
    """The case with methods of full recomputation, and much or little to keep.

    In half of the cases the first and the last layer are never run again, as embeddings and heads.
    """
    layers, names = instance.problem.layers, ordered(methods)
    heavy, ends = dice.uniform(0.5, 4.0, layers), dice.random() < 0.5
    base = instance.problem.table

    def table(*key: int) -> LayerTable:
        plain = base(*key)
        kept, replay = plain.kept_bytes.copy(), plain.replay_s.copy()
        kept[0] = np.maximum(kept[0] * heavy, kept[-1])
        if ends:
            replay[:, [0, -1]], kept[:, [0, -1]] = 0.0, kept[0, [0, -1]]
        working = plain.working_bytes.copy()
        working[-1] = working[0] + kept[0] - kept[-1]  # all of the layer is made again
        full = replace(plain, kept_bytes=kept, replay_s=replay, working_bytes=working)
        return with_methods(full, names)

    problem = replace(instance.problem, table=table, lower_bound=None, recomputations=names)
    return replace(instance, problem=problem)


def _together(order: tuple[str, ...]) -> bool:
    inner, outer = sorted((order.index("tp"), order.index("cp")))
    return not inner < order.index("pp") < outer


def _trimmed(
    dice: np.random.Generator, instance: Instance, stars: tuple[str, ...]
) -> Instance | None:
    """The case with so many values less that it can be enumerated; None where nothing is valid."""
    while True:
        oracle = instance.oracle
        choices = list(oracle.choices())
        plans = sum(oracle.count(choice) for choice in choices)
        named = (pick.zero for choice in choices for pick in oracle.picks(choice))
        if not plans or not (0 in instance.space.zero_groups or any(named)):
            return None  # groups of which none divides anything are refused
        if plans <= MOST_PLANS and len(choices) <= _MOST_POINTS:
            return instance
        space = instance.space
        wide = {name: len(getattr(space, name)) for name in _NARROWED}
        spare = [name for name, n in wide.items() if n > (2 if _NARROWED[name] in stars else 1)]
        names = spare or [name for name, n in wide.items() if n > 1]
        name = names[dice.integers(len(names))]
        values = list(getattr(space, name))
        del values[dice.integers(len(values))]
        instance = replace(instance, space=replace(space, **{name: tuple(values)}))


def _memory(dice: np.random.Generator, instance: Instance) -> float:
    """Somewhere among what random plans take; below the leanest of them at times."""
    if dice.random() < 0.3:
        return float("inf")
    oracle = instance.oracle
    choices = list(oracle.choices())
    peaks = []
    for _ in range(30):
        stages = oracle.price(*random_joint_plan(dice, oracle, choices)).stages
        peaks.append(max(stage.memory for stage in stages))
    return float(np.quantile(peaks, dice.uniform(0, 0.5))) * float(dice.uniform(0.85, 1.2))


def random_joint_plan(
    dice: np.random.Generator, oracle: Oracle, choices: list[Choice]
) -> tuple[Choice, tuple[int, ...], tuple[str, ...], tuple[Pick, ...]]:
    """Any point, any of its cuts, anything that its stages may do."""
    choice = choices[dice.integers(len(choices))]
    cuts, picks = list(oracle.cuts(choice)), oracle.picks(choice)
    return (
        choice,
        cuts[dice.integers(len(cuts))],
        tuple(str(name) for name in dice.choice(oracle.space.recompute, choice.pp)),
        tuple(picks[at] for at in dice.integers(len(picks), size=choice.pp)),
    )


def choices_left(oracle: Oracle) -> Iterator[str]:
    """Axes on which the case's plans differ."""
    space, choices = oracle.space, list(oracle.choices())
    picks = [pick for choice in choices for pick in oracle.picks(choice)]
    for name in ("dp", "pp", "micro_batch"):
        if len({getattr(choice, name) for choice in choices}) > 1:
            yield name
    if len({pick.etp == pick.tp for pick in picks if pick.sp}) > 1:
        yield "etp"
    if len({pick.zero_group for pick in picks if pick.zero}) > 1:
        yield "zero_group"
    for name in ("tp", "sp", "cp", "ep", "zero"):
        if len({getattr(pick, name) for pick in picks}) > 1:
            yield name
    piped = [choice for choice in choices if choice.pp > 1]
    if len({choice.schedule for choice in piped}) > 1:
        yield "schedule"
    if len({choice.interleave for choice in piped if choice.schedule == "interleaved"}) > 1:
        yield "interleave"
    for name in ("order", "device_order"):
        # The same ranks on other devices, not only another name for the same mapping.
        rank_mapping = defaultdict(list)
        for choice in choices:
            rank_mapping[choice._replace(**{name: ""})].append(choice)
        alike = (group for group in rank_mapping.values() if len(group) > 1)
        if any(len({str(place(oracle.link_map, one)) for one in group}) > 1 for group in alike):
            yield name
    used = [choice.devices == oracle.devices for choice in choices]
    if any(used) and not all(used):
        yield "idle_devices"
    if len(space.recompute) > 1:
        yield "recompute"
    if any(sum(1 for _ in oracle.cuts(choice)) > 1 for choice in piped):
        yield "uneven cuts"
    if any(oracle.problem.batch % (one.dp * one.micro_batch) for one in choices):
        yield "pad_batch"
    if any(len(oracle.picks(choice)) > 1 for choice in piped) and space.mixed:
        yield "mixed"
    raised = len(space.recompute) > 1 or len({pick.sharing for pick in picks}) > 1
    if space.as_needed and raised and oracle.problem.memory_bytes < float("inf"):
        yield "as_needed"
