"""Seconds of a layer's collectives on a fabric, as plans are priced by them.

The layer's ranks sit as in a job without a pipeline whose data parallelism fills the fabric: groups
of all axes at once, tensor parallelism innermost. Nothing is hidden behind compute here.
"""

from dataclasses import dataclass

from nest_core.costs.anatomy import Anatomy
from nest_core.costs.layout import MEGATRON_ORDER
from nest_core.costs.links import PlanLinks, links
from nest_core.costs.plan import Point
from nest_core.costs.problem import Problem
from nest_core.costs.tables import call_kind
from nest_core.documents.errors import InputError

__all__ = ["ExchangeTime", "exchange_times"]


@dataclass(frozen=True, slots=True)
class ExchangeTime:
    """Seconds of one collective's calls in either pass."""

    forward_s: float
    backward_s: float

    @property
    def seconds(self) -> float:
        """Both passes, replays left out."""
        return self.forward_s + self.backward_s


def exchange_times(problem: Problem, layer: Anatomy) -> tuple[ExchangeTime, ...]:
    """Return what each of ``layer.exchanges`` takes.

    Parameters
    ----------
    problem : Problem
        Of the same job; its network is the fabric.
    layer : Anatomy

    Raises
    ------
    InputError
        Where the fabric has no room for one group of ranks.
    """
    if not layer.exchanges:
        return ()
    shared = links(problem, _point(problem, layer))
    return tuple(
        ExchangeTime(
            _seconds(shared, layer, exchange.node.axis, exchange.node.forward, exchange.bytes),
            _seconds(shared, layer, exchange.node.axis, exchange.node.backward, exchange.bytes),
        )
        for exchange in layer.exchanges
    )


def _point(problem: Problem, layer: Anatomy) -> Point:
    at, devices = layer.strategy, problem.network.devices
    ranks, etp = at.tp * at.cp, at.etp or at.tp
    replicas = devices // ranks
    if replicas * ranks < max(ranks, at.ep * etp) or (replicas * ranks) % (at.ep * etp):
        room = max(ranks, at.ep * etp)
        raise InputError(
            "layer",
            f"must have ranks that fill the fabric's {devices:,} devices",
            f"groups of {room:,}",
            "lower tp, cp or ep, or plan on a larger fabric",
        )
    return Point(
        at.tp, at.sp, replicas, 1, at.micro_batch, 0, MEGATRON_ORDER, cp=at.cp, ep=at.ep, etp=etp
    )


def _seconds(
    shared: PlanLinks, layer: Anatomy, axis: str, calls: tuple[str, ...], size: float
) -> float:
    """Return calls one after another; an all-reduce is a reduce-scatter and an all-gather."""
    if not calls:
        return 0.0
    once = float(shared.time(axis, call_kind(axis, layer.strategy)).seconds(size)[0])
    return once * (len(calls) + calls.count("all_reduce"))
