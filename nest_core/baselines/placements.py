"""Published placements on this project's own costs.

Manual (Megatron-LM's rules), MCMC (TopoOpt's random search) and Phaze (a network-agnostic
program) chose a pipeline depth and a tensor-parallel width for the paper's models on 64 to 1,024
devices (NEST, MLSys 2026, figure 5; ``presets/paper``). Here each keeps the depth and width
that it published for the nearest device count not above the fabric's; data parallelism grows
to fill the fabric, as the paper scales Manual. Everything that those methods left open is
chosen in their favour: blocks split as evenly as they go, and the micro-batch, ZeRO stage,
sequence parallelism, axis order and recomputation per stage that are fastest within the
search limits. What remains different from our plan is the choice of depth, width and cuts.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nest_core.costs.parse import even_cuts
from nest_core.costs.plan import Plan, Point
from nest_core.costs.price import Report, price
from nest_core.costs.problem import RECOMPUTE, Problem
from nest_core.costs.stages import Links, links, stage_costs
from nest_core.planner.space import SearchSpace
from nest_core.presets import load_toml, preset_path
from nest_core.workload import Model

__all__ = ["NAMES", "Baseline", "evaluate_baselines"]

NAMES = {"manual": "Manual", "mcmc": "MCMC", "phaze": "Phaze"}

_PAPER_FILE = {
    "BERT-large": "bert.toml",
    "Llama 2 7B": "llama2.toml",
    "Llama 3 70B": "llama3.toml",
    "Mixtral 8x7B": "mixtral.toml",
    "GPT-3 175B": "gpt3.toml",
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """One method's plan, priced like ours.

    Parameters
    ----------
    name, label : str
        Key and display name.
    origin : str
        Where its depth and width come from.
    report : Report or None
        None where no placement exists; not feasible where it does not fit.
    reason : str
        Why there is no feasible plan; empty otherwise.
    search_seconds : float
        Time that the evaluation took here.
    """

    name: str
    label: str
    origin: str
    report: Report | None
    reason: str
    search_seconds: float

    @property
    def feasible(self) -> bool:
        """Whether it can be run."""
        return self.report is not None and not self.reason


def evaluate_baselines(
    problem: Problem,
    space: SearchSpace,
    model: Model,
    names: tuple[str, ...],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Baseline, ...]:
    """Price the named methods' placements of a model on a problem."""
    return tuple(_evaluate(problem, space, model, name, clock) for name in names)


def _evaluate(
    problem: Problem, space: SearchSpace, model: Model, name: str, clock: Callable[[], float]
) -> Baseline:
    began = clock()
    label = NAMES.get(name, name)

    def ended(origin: str, report: Report | None, reason: str) -> Baseline:
        return Baseline(name, label, origin, report, reason, clock() - began)

    if name not in NAMES:
        return ended("", None, f"evaluated are {', '.join(NAMES)}")
    published = _published(model, problem.network.devices, label)
    if published is None:
        return ended("", None, f"no published placement of {model.name}")
    depth, width, devices = published
    origin = f"pp {depth}, tp {width}: published for {devices:,} devices (NEST, figure 5)"
    if width not in space.tp or depth not in space.pp:
        return ended(origin, None, f"tp {width} or pp {depth} is outside the search limits")
    points = _points(problem, space, depth, width)
    if not points:
        needs, there = width * depth, problem.network.devices
        reason = (
            f"needs at least {needs} devices, the fabric has {there}"
            if needs > there
            else f"no dp, micro-batch and sp in the search limits go with tp {width}, pp {depth}"
        )
        return ended(origin, None, reason)
    cuts = even_cuts(problem.layers, depth)
    shared: dict[Point, Links] = {}
    plans = []
    for point in points:
        key = replace(point, sp=False, micro_batch=1, zero=0)
        if key not in shared:
            shared[key] = links(problem, point)
        plans.append(_best_recompute(problem, space, point, cuts, shared[key]))
    fitting = [pair for pair in plans if pair[1] is not None]
    if fitting:
        _, plan = min(fitting, key=lambda pair: pair[0])
        if plan is not None:
            return ended(origin, price(problem, plan), "")
    reports = [price(problem, _leanest(space, point, cuts)) for point in points]
    report = min(reports, key=lambda entry: max(stage.memory.total for stage in entry.stages))
    return ended(origin, report, report.reason)


def _published(model: Model, devices: int, label: str) -> tuple[int, int, int] | None:
    """Depth, width and device count of the placement published for the nearest count."""
    file = _PAPER_FILE.get(model.name)
    if file is None:
        return None
    cells = [
        cell for cell in load_toml(preset_path("paper", file))["cell"] if label in cell["baselines"]
    ]
    if not cells:
        return None
    below = [cell for cell in cells if cell["devices"] <= devices]
    cell = max(below, key=_devices) if below else min(cells, key=_devices)
    placement = cell["baselines"][label]
    return int(placement["p"]), int(placement["t"]), int(cell["devices"])


def _devices(cell: dict[str, int]) -> int:
    return cell["devices"]


def _points(problem: Problem, space: SearchSpace, depth: int, width: int) -> list[Point]:
    """Points of this depth and width, each with the largest dp that the micro-batch allows."""
    points: dict[Point, None] = {}
    devices = problem.network.devices
    room = devices // (depth * width)
    filled = [
        dp
        for dp in space.dp
        if dp <= room and (space.idle_devices or dp * depth * width == devices)
    ]
    for micro, sp, zero, order, seating in itertools.product(
        space.micro_batch, space.sp, space.zero, space.orders, space.device_orders
    ):
        fitting = [dp for dp in filled if problem.batch % (dp * micro) == 0]
        if not fitting or (sp and width == 1):
            continue
        dp = max(fitting)
        zero = zero if dp > 1 else 0
        points[Point(width, sp, dp, depth, micro, zero, order, seating)] = None
    return list(points)


def _best_recompute(
    problem: Problem, space: SearchSpace, point: Point, cuts: tuple[int, ...], shared: Links
) -> tuple[float, Plan | None]:
    """The fastest recomputation that fits, stage by stage; None where a stage fits with none."""
    costs = stage_costs(problem, point, shared)
    choices, loads, syncs = [], [], []
    for s, (i, j) in enumerate(itertools.pairwise(cuts)):
        options = [
            (costs.load(s, i, j, c), c)
            for c, name in enumerate(RECOMPUTE)
            if name in space.recompute and costs.used(s, i, j, c) <= costs.limit
        ]
        if not options:
            return float("inf"), None
        load, choice = min(options)
        choices.append(RECOMPUTE[choice])
        loads.append(load)
        syncs.append(costs.sync_seconds(s, i, j))
    seconds = sum(loads) + (costs.micro_batches - 1) * max(loads) + max(syncs)
    return seconds, Plan(point, cuts, tuple(choices))


def _leanest(space: SearchSpace, point: Point, cuts: tuple[int, ...]) -> Plan:
    """What comes closest to fitting: the strongest recomputation allowed, everywhere."""
    strongest = max(space.recompute, key=RECOMPUTE.index)
    return Plan(point, cuts, (strongest,) * point.pp)
