"""A problem under other parameters of its network (`nest_core.hardware.network_spread`)."""

from dataclasses import replace

from nest_core.costs.overlap import Overlap
from nest_core.costs.problem import Problem
from nest_core.costs.software import Software
from nest_core.hardware.network_spread import CENTRE, NetworkParameters
from nest_core.network import Network

__all__ = ["drawn_network", "drawn_software", "routing_of", "under"]

FIRST_UPLINKS = 2
"""Level above nodes (0) and the first switches (1), whose links are uplinks."""


def routing_of(network: Network) -> str:
    """How its flows choose among equal uplinks: ``ecmp`` or ``adaptive``."""
    return "ecmp" if network.link_map.variants > 1 else "adaptive"


def under(problem: Problem, parameters: NetworkParameters) -> Problem:
    """Return the problem with every factor applied; at `CENTRE` the same object.

    Examples
    --------
    >>> import numpy as np
    >>> from nest_core.hardware.network_spread import NetworkParameters
    >>> drawn_software(Software(), NetworkParameters(reach=0.5)) == Software()
    True
    """
    if parameters == CENTRE:
        return problem
    return replace(
        problem,
        network=drawn_network(problem.network, parameters),
        software=drawn_software(problem.software, parameters),
        overlap=_overlap(problem.overlap, parameters),
    )


def drawn_network(network: Network, parameters: NetworkParameters) -> Network:
    """Uplinks as wide as drawn; a torus and a network of one tier of switches have none."""
    if network.torus is not None or parameters.uplinks == 1.0:
        return network
    for level in range(FIRST_UPLINKS, len(network.levels)):
        network = network.faster(level, parameters.uplinks)
    return network


def drawn_software(software: Software, parameters: NetworkParameters) -> Software:
    """Protocols between nodes as fast as drawn; without a curve, links as they are."""
    if software.between is None:
        return software
    curve = software.between.reaching(parameters.reach, parameters.incast, parameters.reduction)
    return replace(software, between=curve)


def _overlap(overlap: Overlap, parameters: NetworkParameters) -> Overlap:
    return replace(
        overlap,
        tp=min(1.0, overlap.tp * parameters.overlap_tp),
        pp=min(1.0, overlap.pp * parameters.overlap_pp),
        dp=min(1.0, overlap.dp * parameters.overlap_dp),
    )
