"""What is left of a plan where an element of its fabric fails or is slow, replayed event by event.

Elements are those of `nest_core.studies.broken`. Devices that died are replaced by idle ones, those
that are nearest on the fabric first.

Two losses are told: of the same plan, and after it was planned anew. For the latter spare nodes of
the bill first stand in for nodes whose devices are lost or slow, under leaves that serve them as
the lost ones did; then the best plan on what is left runs, or the same plan where that loses less.

`single_failures` tries every element, those that classes of equal devices and links
(`nest_core.simulator.classes`) do not tell apart once. The worst single failure of a design is the
first of them, the same for everybody who asks. Rails and planes are many switches at once, so they
come after (docs/decisions/failed-switches.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np

from nest_core.costs import Plan, price
from nest_core.documents import InputError, grouped, percent, plural
from nest_core.fabric import Fabric, GraphFabric, heights
from nest_core.network import GraphLinkMap, Network, TreeLinkMap, collapse
from nest_core.scenario import ScenarioValues
from nest_core.simulator import Iteration, simulate
from nest_core.studies.broken import (
    Broken,
    broken,
    gone_devices,
    named_elements,
    only_device,
    without_spared,
)
from nest_core.studies.solving import Stop, never, solve

__all__ = ["Failure", "break_elements", "single_failures", "worst_failure"]

_SAME = 1e-9
_Run = tuple[float, Plan]
_ByTrace = dict[tuple[str, object], list[str]]
MOST_TASKS = 10**8
"""Classes of elements times tasks of the iteration, up to which the worst is sought among all."""
MOST_DRAWN, BUSIEST = 256, 4
"""Elements of a drawn fabric up to which all are tried; and of a larger one those of a kind, as far
from devices. For the worst one is enough."""
_SEVERAL = ("rail", "plane")


@dataclass(frozen=True, slots=True)
class Failure:
    """What elements that fail, or are slow, take of a plan.

    Parameters
    ----------
    elements : tuple of str
    before_s : float
        Of an iteration on the fabric as it was.
    same_plan_s : float or None
        None where the plan cannot run, for ``reason``.
    replanned_s : float or None
        Of the best plan on what is left; None where none was sought, or there is none.
    replanned_plan : Plan or None
    is_replanned : bool
        Whether one was sought.
    spares : int
        Nodes that stand in once it is planned anew.
    by_batch : float
        Part of the loss after that because the batch does not divide over what is left.
    alike : int
        How many elements of its kind take as much, itself among them.
    iteration : Iteration or None
        Of the same plan.
    """

    elements: tuple[str, ...]
    before_s: float
    same_plan_s: float | None
    reason: str = ""
    replanned_s: float | None = None
    replanned_plan: Plan | None = None
    is_replanned: bool = False
    spares: int = 0
    by_batch: float = 0.0
    alike: int = 1
    iteration: Iteration | None = field(default=None, compare=False, repr=False)

    @property
    def loss(self) -> float:
        """Share of throughput that is lost if the plan stays."""
        return self._share(self.same_plan_s)

    @property
    def replanned_loss(self) -> float:
        """The same of the best plan on what is left."""
        return self._share(self.replanned_s)

    @property
    def least_loss(self) -> float:
        """The loss that stays, as far as it was sought."""
        return self.replanned_loss if self.is_replanned else self.loss

    @property
    def is_several(self) -> bool:
        """Whether it is many switches at once."""
        return self.elements[0].rsplit(" ", 1)[0] in _SEVERAL

    @property
    def words(self) -> str:
        """Which element it is, and how much of the loss is not its doing."""
        part = f", of which {percent(self.by_batch)} because the batch does not divide"
        return f"{', '.join(self.elements)}{part if self.by_batch > _SAME else ''}"

    @property
    def note(self) -> str:
        """Why the plan cannot stay, and who stands in; empty where nothing is to be said."""
        spare = f"{plural(self.spares, 'spare node')} stand in" if self.spares else ""
        return "; ".join(filter(None, (self.reason, spare)))

    def to_json(self) -> dict[str, Any]:
        """Return an entry of ``failures`` of ``nest-studio simulate``."""
        plan = self.replanned_plan
        return {
            "elements": list(self.elements),
            "alike": self.alike,
            "iteration_time_s": self.same_plan_s,
            "loss": self.loss,
            "reason": self.reason or None,
            "spares": self.spares,
            "replanned_iteration_time_s": self.replanned_s,
            "replanned_loss": self.replanned_loss if self.is_replanned else None,
            "replanned_plan": plan.to_json() if plan else None,
            "by_batch": self.by_batch,
        }

    def _share(self, after_s: float | None) -> float:
        """What runs on less also runs on more, so nothing is won."""
        return max(0.0, 1.0 - self.before_s / after_s) if after_s else 1.0


def break_elements(
    values: ScenarioValues,
    plan: Plan,
    fail: Sequence[str],
    slow: Mapping[str, float] | None = None,
    *,
    replan: bool = False,
    spares: int = 0,
    before: Iteration | None = None,
    stop: Stop | None = None,
) -> Failure:
    """Replay a plan where elements fail or are slow.

    Parameters
    ----------
    replan : bool
        Whether the best plan on what is left is sought too: with slow devices and without them.
    spares : int
        Nodes that stand in before it is.
    before : Iteration, optional
        On the fabric as it is, where it was played already.
    stop : callable, optional
        See `search`.
    """
    network = before.problem.network if before else collapse(values.fabric)
    before = before or simulate(values.problem(plan.recompute, network), plan)
    rest = broken(values.fabric, network, fail, slow)
    moved, reason = rest.moved(plan, network), ""
    same_plan = _played(values, moved, rest)
    if moved is None:
        reason = f"the plan needs {plan.devices_used:,} devices, {len(rest.devices):,} are left"
    elif same_plan is None:
        reason = "the plan's devices no longer all reach each other"
    lost = Failure(
        (*fail, *(slow or {})),
        before.seconds,
        same_plan.seconds if same_plan else None,
        reason,
        iteration=same_plan,
    )
    return _Replanning(values, plan, before, spares, stop).of(lost, slow or {}) if replan else lost


@dataclass(slots=True)
class _Replanning:
    """Plans on what elements leave of a fabric.

    Parameters
    ----------
    values, plan, before, spares, stop
        As of `break_elements`.
    planned : mapping
        By what is left (`_shape`), seconds and plan of the best iteration, None where there is
        none, and what of the loss is the batch's. Whole iterations would fill the memory.
    """

    values: ScenarioValues
    plan: Plan
    before: Iteration
    spares: int = 0
    stop: Stop | None = None
    planned: dict[object, tuple[_Run | None, float]] = field(default_factory=dict)

    def shape_without(self, name: str) -> object:
        """Return what an element leaves once spare nodes stand in: None for all, or its shape."""
        fabric, network = self.values.fabric, self.before.problem.network
        remaining, _ = without_spared(fabric, network, [name], self.spares)
        rest = broken(fabric, network, remaining)
        return _shape(network, rest.network, remaining) if remaining else None

    def of(self, lost: Failure, slow: Mapping[str, float]) -> Failure:
        """Return what is lost once spare nodes stand in and the rest is planned anew."""
        fabric, network = self.values.fabric, self.before.problem.network
        fail = lost.elements[: len(lost.elements) - len(slow)]
        paced = [name for name in slow if len(gone_devices(fabric, name))]
        best = replace(lost, replanned_s=lost.same_plan_s, is_replanned=True)
        for elements in (fail, (*fail, *paced)) if paced else (fail,):
            remaining, standing = without_spared(fabric, network, elements, self.spares)
            still_slow = {name: share for name, share in slow.items() if name not in elements}
            if not remaining and not still_slow:
                return replace(
                    best,
                    replanned_s=self.before.seconds,
                    replanned_plan=self.plan,
                    spares=standing,
                )
            rest = broken(fabric, network, remaining, still_slow)
            is_same = tuple(remaining) == fail and still_slow == slow
            same_plan = lost.same_plan_s if is_same else None
            again, by_batch = self._best(rest, (*remaining, *still_slow.items()), same_plan)
            if again and (best.replanned_s is None or again[0] <= best.replanned_s):
                best = replace(
                    best,
                    replanned_s=again[0],
                    replanned_plan=again[1],
                    spares=standing,
                    by_batch=by_batch,
                )
        return best

    def _best(
        self, rest: Broken, elements: Sequence[object], same_s: float | None
    ) -> tuple[_Run | None, float]:
        """Play the best plan on what is left, or the same one; return the batch's part as well."""
        values, network = self.values, self.before.problem.network
        key = _shape(network, rest.network, elements) if (rest.pace == 1).all() else elements
        if key not in self.planned:
            moved, within_s = rest.moved(self.plan, network), float("inf")
            same = (same_s, moved) if same_s and moved else _run(values, moved, rest)
            if same is not None:
                problem = values.problem(self.plan.recompute, rest.network)
                within_s = price(problem, same[1]).iteration_s
            problem = values.problem(network=rest.network)
            with np.errstate(invalid="ignore"):  # what has no way left takes for ever
                best = solve(values, problem, within_s=within_s, stop=self.stop).best
            again = [same, _run(values, best.plan if best else None, rest)]
            least = min(filter(None, again), key=itemgetter(0), default=None)
            self.planned[key] = least, self._by_batch(rest, *least) if least else 0.0
        return self.planned[key]

    def _by_batch(self, rest: Broken, after_s: float, after: Plan) -> float:
        """Return the part of a loss that a batch cut as the devices are would not have."""
        values, plan, before_s = self.values, self.plan, self.before.seconds
        idle = len(rest.devices) - after.devices_used
        replicas = len(rest.devices) * plan.point.dp // plan.devices_used
        if not idle or replicas >= plan.point.dp:
            return 0.0
        cut = replace(values, batch=max(1, values.batch * replicas // plan.point.dp))
        problem = cut.problem(network=rest.network)
        best = solve(cut, problem, within_s=after_s, stop=self.stop).best
        again = _run(cut, best.plan if best else None, rest)
        rate = before_s / after_s
        share = before_s / again[0] * cut.batch / values.batch if again else 0.0
        return min(max(0.0, share - rate), max(0.0, 1.0 - rate))


def _shape(before: Network, after: Network, elements: Sequence[object]) -> object:
    """Return what is left of a fabric up to the numbers of its devices.

    Of a tree whose groups are as large and whose links are as fast on every level, what lacks as
    many devices of groups and as many links is the same, so plans for one run on the other.
    """
    was = before.link_map
    sizes = [np.bincount(groups) for groups in before.nesting]
    rates = [was.capacity_Bps[was.tier == tier] for tier in np.unique(was.tier)]
    if not isinstance(was, TreeLinkMap) or any(np.ptp(of) > 0 for of in (*sizes, *rates)):
        return tuple(elements)
    groups = tuple(tuple(np.sort(np.bincount(of)).tolist()) for of in after.nesting)
    return after.devices, groups, np.sort(after.link_map.capacity_Bps).tobytes()


def _played(values: ScenarioValues, plan: Plan | None, rest: Broken) -> Iteration | None:
    """Play a plan on what is left; None where there is none, or it never ends."""
    if plan is None:
        return None
    problem = values.problem(plan.recompute, rest.network)
    iteration = simulate(problem, plan, pace=rest.pace)
    return iteration if np.isfinite(iteration.seconds) else None


def _run(values: ScenarioValues, plan: Plan | None, rest: Broken) -> _Run | None:
    """Return seconds of an iteration, and its plan."""
    iteration = _played(values, plan, rest)
    return (iteration.seconds, iteration.plan) if iteration else None


def single_failures(
    values: ScenarioValues,
    plan: Plan,
    *,
    spares: int = 0,
    is_every: bool = True,
    stop: Stop = never,
) -> tuple[Failure, ...]:
    """Let every element fail that may, one at a time; return classes of them, the worst first.

    A NIC and the only link that it has leave the same, so such classes are replayed once. Classes
    that leave the same of a fabric up to the numbers of its devices are planned anew once, for the
    first of them. Planning anew never loses more than the same plan, so what loses less
    than the worst so far is not planned anew. On a large drawn fabric, where few elements are
    alike, only those of each kind and distance from devices are tried whose links are busiest. For
    the worst of many classes of an iteration with many tasks the busiest of each kind and tier is
    replayed; one that is less busy may lose more.

    Parameters
    ----------
    is_every : bool
        Whether every class is replayed and planned anew; without it only what may be the worst.
    spares, stop
        As of `break_elements`.
    """
    network = collapse(values.fabric)
    before = simulate(values.problem(plan.recompute, network), plan)
    replanning = _Replanning(values, plan, before, spares, stop)
    alike: _ByTrace = {}
    for kind, name in _tried(values.fabric, before, BUSIEST if is_every else 1):
        alike.setdefault((kind, _trace(values.fabric, before, name)), []).append(name)
    if not is_every and len(alike) * len(before.begins_s) > MOST_TASKS:
        alike = _busiest(alike, before)
    groups: dict[tuple[bool, object], list[tuple[object, list[str]]]] = {}
    failures: list[Failure] = []
    for (_, trace), names in alike.items():
        is_several = names[0].rsplit(" ", 1)[0] in _SEVERAL
        try:
            groups.setdefault((is_several, replanning.shape_without(names[0])), []).append(
                (trace, names)
            )
        except InputError as error:
            reason = error.rule.replace("must leave a", "leaves no", 1)
            failures.append(
                Failure(
                    (names[0],),
                    before.seconds,
                    None,
                    reason,
                    is_replanned=True,
                    alike=len(names),
                )
            )
    same_plans: dict[object, Failure] = {}
    firsts: list[Failure] = []
    others: dict[tuple[str, ...], list[tuple[object, list[str]]]] = {}
    for (is_several, _), ((trace, names), *rest) in groups.items():
        if is_several and not is_every:
            continue
        lost = replace(break_elements(values, plan, names[:1], before=before), iteration=None)
        same_plans[trace] = lost
        firsts.append(replace(lost, alike=len(names)))
        others[lost.elements] = rest
    worst = max((lost.loss for lost in failures if not lost.is_several), default=-1.0)
    for lost in sorted(firsts, key=lambda lost: (lost.is_several, -lost.loss)):
        if stop() or not (is_every or lost.loss > worst):
            continue
        anew = replanning.of(lost, {})
        worst = max(worst, anew.least_loss)
        failures.append(anew)
        for trace, names in others[lost.elements] if is_every else ():
            if trace not in same_plans:
                same = break_elements(values, plan, names[:1], before=before)
                same_plans[trace] = replace(same, iteration=None)
            as_before = replace(same_plans[trace], elements=(names[0],), iteration=None)
            failures.append(replanning.of(replace(as_before, alike=len(names)), {}))
    failures.sort(
        key=lambda lost: (
            lost.is_several,
            -lost.least_loss,
            lost.elements not in others,
            -lost.loss,
        )
    )
    return tuple(failures)


def worst_failure(
    values: ScenarioValues, plan: Plan, spares: int, *, stop: Stop | None = None
) -> Failure | None:
    """Return the worst single failure; None where nothing that may fail has a name."""
    ranked = single_failures(values, plan, spares=spares, is_every=False, stop=stop or never)
    return ranked[0] if ranked else None


def _busiest(alike: _ByTrace, before: Iteration) -> _ByTrace:
    """Return of each kind and tier of links the class whose links are busiest."""
    link_map, of_class = before.problem.network.link_map, before.classes.link
    busy, tier = np.zeros(of_class.max() + 1), np.zeros(of_class.max() + 1, np.int64)
    np.maximum.at(busy, of_class, before.loads.busy)
    tier[of_class] = link_map.tier
    first: dict[tuple[object, ...], tuple[float, tuple[str, object]]] = {}
    for kind, trace in alike:
        touched = trace if isinstance(trace, tuple) else ()
        links = [entry[0] for entry in touched if isinstance(entry, tuple)]
        share, key = busy[links].max(initial=0.0), (kind, *np.unique(tier[links]).tolist())
        if share > first.get(key, (-1.0, None))[0]:
            first[key] = share, (kind, trace)
    return {entry: alike[entry] for _, entry in first.values()}


def _tried(fabric: Fabric, before: Iteration, most: int) -> list[tuple[str, str]]:
    """Return elements and their kinds, of a drawn fabric the busiest of those that are alike."""
    network = before.problem.network
    elements = [*named_elements(fabric, network)]
    link_map = network.link_map
    if not (isinstance(fabric, GraphFabric) and isinstance(link_map, GraphLinkMap)):
        return elements
    if len(elements) <= MOST_DRAWN:
        return elements
    links = link_map.links
    by_arc = np.bincount(link_map.arc, before.loads.busy, len(links.tail)).tolist()
    far = heights(fabric.explicit(), range(fabric.devices))
    name_of = {of: fabric.device_ids[of] if isinstance(of, int) else of for of in far}
    busy: Counter[str] = Counter()
    height: dict[str, tuple[int, ...]] = {name_of[of]: (tall,) for of, tall in far.items()}
    for tail, head, seconds in zip(links.tail, links.head, by_arc, strict=True):
        ends = links.elements[tail], links.elements[head]
        link = " to ".join(name_of[of] for of in ends)
        height[link] = tuple(sorted(far[of] for of in ends))
        busy.update(dict.fromkeys((*(name_of[of] for of in ends), link), seconds))
    alike = grouped(((kind, height[name]), (kind, name)) for kind, name in elements)
    return [
        entry
        for of_kind in alike.values()
        for entry in sorted(of_kind, key=lambda entry: -busy[entry[1]])[:most]
    ]


def _trace(fabric: Fabric, before: Iteration, name: str) -> object:
    """Return what of an iteration an element touches: classes of devices, and of links."""
    network, classes = before.problem.network, before.classes
    try:
        gone = gone_devices(fabric, only_device(fabric, network, name) or name)
        if len(gone):
            return tuple(np.sort(classes.device[gone]).tolist())
        rest = broken(fabric, network, [name])
    except InputError as error:
        return error.rule
    was, is_now = network.link_map.capacity_Bps, rest.network.link_map.capacity_Bps
    if len(was) != len(is_now):
        return name
    links = np.flatnonzero(was != is_now)
    return tuple(sorted(zip(classes.link[links].tolist(), is_now[links].tolist(), strict=True)))
