"""What is left of a plan where an element of its fabric fails or is slow, replayed event by event.

Beside the counted elements of a fabric (`nest_core.fabric.failing`) a ``nic 5`` of a Clos may fail,
or one of the parallel links that `nest_core.network.link_group_name` names, both ways where the
fabric is a tree. Routes are those of the fabric that is left. Devices that died are replaced by
idle ones, those that are nearest on the fabric first. An element that is slow by a share has so
much less of its speed: a device takes longer for its work, a switch or a link carries less.

`single_failures` tries every element, those that classes of equal devices and links
(`nest_core.simulator.classes`) do not tell apart once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nest_core.costs import Plan
from nest_core.costs.layout import device_order
from nest_core.documents import InputError, require
from nest_core.fabric import Clos, Fabric, GraphFabric, counted_element, element_kinds, no_such
from nest_core.fabric import without as fabric_without
from nest_core.network import FloatArray, IntArray, Network, TreeLinkMap, collapse, link_group_name
from nest_core.scenario import ScenarioValues
from nest_core.simulator import Iteration, simulate
from nest_core.studies.solving import solve

__all__ = ["Broken", "Failure", "break_elements", "broken", "single_failures"]

CUT_OFF = "the plan's devices no longer all reach each other"


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """A fabric on which elements failed or are slow.

    Parameters
    ----------
    network : Network
    devices : int array (devices left,)
        Their numbers on the fabric as it was.
    pace : float array (devices left,)
        Seconds that each takes for a second of work.
    """

    network: Network
    devices: IntArray
    pace: FloatArray

    def moved(self, plan: Plan, before: Network) -> Plan | None:
        """Return a plan with idle devices in place of dead ones; None where there are too few."""
        where = device_order(before, plan.point.device_order)[: plan.devices_used]
        place = np.full(before.devices, -1)
        place[self.devices] = np.arange(len(self.devices))
        if (place >= 0).all():
            return plan
        idle = np.setdiff1d(self.devices, where)
        dead = np.flatnonzero(place[where] < 0)
        if len(dead) > len(idle):
            return None
        where = where.copy()
        for rank in dead.tolist():
            spare = int(np.argmin(before.level(where[rank], idle)))
            where[rank], idle = idle[spare], np.delete(idle, spare)
        order = tuple(place[where].tolist())
        return replace(plan, point=replace(plan.point, device_order=order))


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """What elements that fail, or are slow, take of a plan.

    Parameters
    ----------
    elements : tuple of str
    before : Iteration
        On the fabric as it was.
    same_plan : Iteration or None
        None where it cannot run, for ``reason``.
    replanned : Iteration or None
        Of the best plan on what is left; None where none was sought, or there is none.
    alike : int
        How many elements of its kind take as much, itself among them.
    """

    elements: tuple[str, ...]
    before: Iteration
    same_plan: Iteration | None
    reason: str = ""
    replanned: Iteration | None = None
    alike: int = 1

    @property
    def loss(self) -> float:
        """Share of throughput that is lost if the plan stays."""
        return self._share(self.same_plan)

    @property
    def replanned_loss(self) -> float:
        """The same of the best plan on what is left."""
        return self._share(self.replanned)

    def to_json(self) -> dict[str, Any]:
        """Return an entry of ``failures`` of ``nest-studio simulate``."""
        replanned = self.replanned
        return {
            "elements": list(self.elements),
            "alike": self.alike,
            "iteration_time_s": self.same_plan.seconds if self.same_plan else None,
            "loss": self.loss,
            "reason": self.reason or None,
            "replanned_iteration_time_s": replanned.seconds if replanned else None,
            "replanned_loss": self.replanned_loss if replanned else None,
            "replanned_plan": replanned.plan.to_json() if replanned else None,
        }

    def _share(self, after: Iteration | None) -> float:
        return 1.0 - self.before.seconds / after.seconds if after else 1.0


def broken(
    fabric: Fabric,
    network: Network,
    fail: Sequence[str] = (),
    slow: Mapping[str, float] | None = None,
) -> Broken:
    """Return what is left of a fabric.

    Parameters
    ----------
    network : Network
        The fabric's.
    fail : sequence of str
    slow : mapping of str to float
        By element, the share of its speed that it lost.

    Raises
    ------
    InputError
        For an element that there is not, with the nearest; for what leaves nothing or no path.
    """
    is_drawn, kinds = isinstance(fabric, GraphFabric), element_kinds(fabric)
    counted = [name for name in fail if is_drawn or counted_element(name, kinds)]
    try:
        rest = fabric_without(fabric, counted) if counted else fabric
        after = collapse(rest) if counted else network
    except InputError as error:  # in the words of a fabric's file
        names = ", ".join(counted)
        raise InputError("fail", error.rule, names, "let fewer elements fail") from error
    factor, pace = np.ones(len(after.link_map.capacity_Bps)), np.ones(network.devices)
    for name, lost in (slow or {}).items():
        require(0 < lost < 1, f"slow {name}", "must lose from 0 to 100 %", lost, "change it")
    losses = {name: 1.0 for name in fail if name not in counted} | dict(slow or {})
    for name, lost in losses.items():
        element = counted_element(name, kinds)
        if element is None:
            links, share = _link(fabric, network, name)
        else:
            other = fabric_without(fabric, [element])
            gone = np.setdiff1d(np.arange(network.devices), _left(fabric, other))
            if len(gone) and element.rsplit(" ", 1)[0] not in fabric.tier_names:
                pace[gone] /= 1.0 - lost
                continue
            require(not len(gone), "slow", "must leave devices a path", name, "name its links")
            before_Bps = network.link_map.capacity_Bps
            narrower = collapse(other).link_map.capacity_Bps / np.maximum(before_Bps, 1e-9)
            links = np.flatnonzero((narrower < 1) & (before_Bps > 0))
            share = 1.0 - narrower[links]
        np.multiply.at(factor, _moved_links(network, after, links), 1.0 - lost * share)
    if (factor < 1).any():
        after = replace(after, link_map=after.link_map.scaled(factor))
    devices = _left(fabric, rest)
    return Broken(after, devices, pace[devices])


def _left(fabric: Fabric, rest: Fabric) -> IntArray:
    """Return which devices of a fabric are left."""
    if isinstance(fabric, GraphFabric):
        return np.flatnonzero(np.isin(fabric.device_ids, rest.device_ids))
    return np.searchsorted(fabric.place_of(), rest.place_of())


def _link(fabric: Fabric, network: Network, name: str) -> tuple[IntArray, FloatArray]:
    """Return link groups that a NIC or a link is one of, and its share of each."""
    link_map, kinds = network.link_map, element_kinds(fabric)
    capacity_Bps, rate_Bps = link_map.capacity_Bps, 0.0
    if isinstance(fabric, Clos) and isinstance(link_map, TreeLinkMap):
        kinds |= {"nic": fabric.nodes * fabric.nics_per_node}
    element = counted_element(name, kinds) if "nic" in kinds else None
    if element is not None and isinstance(fabric, Clos) and isinstance(link_map, TreeLinkMap):
        served, nics = fabric.devices_per_node // fabric.rails, fabric.nics_per_node // fabric.rails
        pool = int(element.rsplit(" ", 1)[1]) // (nics // int(np.gcd(served, nics)))
        first, rate_Bps = int(link_map.ways.offset[1]) + 2 * pool, fabric.nic_bandwidth_Bps
    else:
        names = {link_group_name(network, n): n for n in range(len(capacity_Bps))}
        if name not in names:
            raise no_such(name, kinds, names)
        first = names[name]
        level = network.levels[int(link_map.tier[first])]
        rate_Bps = min(float(link_map.link_Bps[first]), level.link_bandwidth_Bps)
    links = np.array([first])
    if isinstance(link_map, TreeLinkMap) and first >= link_map.ways.offset[0]:
        odd = (first - int(link_map.ways.offset[0])) % 2
        links = np.array([first, first + 1 - 2 * odd])
    return links, np.minimum(1.0, rate_Bps / np.maximum(capacity_Bps[links], rate_Bps))


def _moved_links(before: Network, after: Network, links: IntArray) -> IntArray:
    """Return the numbers that links have where devices are gone."""
    if before is after or not isinstance(before.link_map, TreeLinkMap):
        return links
    if not isinstance(after.link_map, TreeLinkMap):
        return links
    was, is_now = before.link_map.ways.offset, after.link_map.ways.offset
    tier = np.searchsorted(was, links, side="right") - 1
    return np.asarray(links - np.where(tier < 0, 0, was[tier] - is_now[tier]))


def break_elements(
    values: ScenarioValues,
    plan: Plan,
    fail: Sequence[str],
    slow: Mapping[str, float] | None = None,
    *,
    replan: bool = False,
    before: Iteration | None = None,
) -> Failure:
    """Replay a plan where elements fail or are slow.

    Parameters
    ----------
    replan : bool
        Whether the best plan on what is left is sought too: with slow devices and without them.
    before : Iteration, optional
        On the fabric as it is, where it was played already.
    """
    network = before.problem.network if before else collapse(values.fabric)
    before = before or simulate(values.problem(plan.recompute, network), plan)
    rest = broken(values.fabric, network, fail, slow)
    moved, reason = rest.moved(plan, network), ""
    same_plan = _played(values, moved, rest) if moved else None
    if moved is None:
        needed, number = plan.devices_used, len(rest.devices)
        reason = f"the plan needs {needed:,} devices, {number:,} are left"
    elif same_plan is None:
        reason = CUT_OFF
    replanned = same_plan
    if replan:
        devices = [name for name in slow or () if (rest.pace > 1).any()]
        options = [rest] + ([broken(values.fabric, network, (*fail, *devices))] if devices else [])
        for option in options:
            best = solve(values, values.problem(network=option.network)).best
            other = _played(values, best.plan, option) if best else None
            if other and (replanned is None or other.seconds < replanned.seconds):
                replanned = other
    elements = (*fail, *(slow or {}))
    return Failure(elements, before, same_plan, reason, replanned if replan else None)


def _played(values: ScenarioValues, plan: Plan, rest: Broken) -> Iteration | None:
    """Play a plan on what is left; None where it never ends."""
    problem = values.problem(plan.recompute, rest.network)
    iteration = simulate(problem, plan, pace=rest.pace)
    return iteration if np.isfinite(iteration.seconds) else None


def single_failures(
    values: ScenarioValues, plan: Plan, *, replan: bool = False
) -> tuple[Failure, ...]:
    """Let every element fail that may, one at a time; return classes of them, the worst first."""
    network = collapse(values.fabric)
    before = simulate(values.problem(plan.recompute, network), plan)
    alike: dict[object, list[str]] = {}
    for kind, name in _elements(values.fabric, network):
        alike.setdefault((kind, _trace(values.fabric, before, name)), []).append(name)
    failures = []
    for names in alike.values():
        try:
            lost = break_elements(values, plan, names[:1], replan=replan, before=before)
        except InputError as error:
            lost = Failure((names[0],), before, None, str(error))
        failures.append(replace(lost, alike=len(names)))
    return tuple(sorted(failures, key=lambda failure: (-failure.loss, -failure.replanned_loss)))


def _elements(fabric: Fabric, network: Network) -> Iterator[tuple[str, str]]:
    """Yield every element by its kind."""
    for kind, number in element_kinds(fabric).items():
        yield from ((kind, f"{kind} {n}") for n in range(number))
    if isinstance(fabric, GraphFabric):
        yield from ((element.role, element.id) for element in fabric.elements)
        yield from (("link", f"{link.a} to {link.b}") for link in fabric.links)
        return
    step = 2 if isinstance(network.link_map, TreeLinkMap) else 1
    for link in range(0, len(network.link_map.capacity_Bps), step):
        yield "link", link_group_name(network, link)


def _trace(fabric: Fabric, before: Iteration, name: str) -> object:
    """Return what of an iteration an element touches: classes of devices, and of links."""
    network, classes = before.problem.network, before.classes
    try:
        rest = broken(fabric, network, [name])
    except InputError as error:
        return error.rule
    gone = np.setdiff1d(np.arange(network.devices), rest.devices)
    if len(gone):
        return tuple(np.sort(classes.device[gone]).tolist())
    was, is_now = network.link_map.capacity_Bps, rest.network.link_map.capacity_Bps
    if len(was) != len(is_now):
        return name
    links = np.flatnonzero(was != is_now)
    rates = zip(classes.link[links].tolist(), is_now[links].tolist(), strict=True)
    return tuple(sorted(rates))
