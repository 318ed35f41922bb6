"""How busy links are in the course of an iteration.

A call's bytes are spread evenly over the time that it runs, its latencies among it: what links
carry in all is exact, and how it changes is as fine as calls are short. Where calls meet on a link,
one of them may run faster than on the mean while the other is late, so that a moment's sum can
pass the link's rate.

Units: seconds; shares of a link's rate.
"""

from collections.abc import Sequence

import numpy as np

from nest_core.network import BusyLink, FloatArray, busiest_links
from nest_core.simulator.iteration import Iteration

__all__ = ["BUSIEST", "busiest", "link_use"]

BUSIEST = 10
"""How many links are named."""


def busiest(iteration: Iteration) -> tuple[BusyLink, ...]:
    """Return the busiest links of an iteration, and which traffic uses them."""
    loads = iteration.loads
    return busiest_links(loads.network, loads.bytes, loads.iteration_s, BUSIEST)


def link_use(iteration: Iteration, links: Sequence[int], edges_s: FloatArray) -> FloatArray:
    """Return the share of its rate that every link carries, shape (links, bins).

    Parameters
    ----------
    links : sequence of int
        Link groups.
    edges_s : float array (bins + 1,)
        Where bins begin and end, ascending.
    """
    classes, traffic = iteration.classes, iteration.traffic
    tasks, way, size = iteration.calls()
    begins_s, ends_s = iteration.begins_s[tasks], iteration.ends_s[tasks]
    runs = ends_s > begins_s
    rate = np.divide(size, ends_s - begins_s, out=np.zeros(len(size)), where=runs)
    result = np.zeros((len(links), len(edges_s) - 1))
    for place, link in enumerate(links):
        share = np.zeros((len(traffic.ways), int(classes.group.max(initial=-1)) + 1))
        for number, entry in enumerate(traffic.ways):
            mine = entry.link == link
            flow = entry.flow[mine]
            sent = entry.volume[flow] * entry.share[mine]
            np.add.at(share[number], classes.group[entry.group[flow]], sent)
        link_Bps = rate * share[way, iteration.owner[tasks]]
        sent_bytes = _ramps(begins_s, link_Bps, edges_s) - _ramps(ends_s, link_Bps, edges_s)
        capacity_Bps = iteration.problem.network.link_map.capacity_Bps[link]
        result[place] = np.diff(sent_bytes) / np.diff(edges_s) / capacity_Bps
    return np.maximum(0.0, result)  # rounding


def _ramps(since_s: FloatArray, rate_Bps: FloatArray, at_s: FloatArray) -> FloatArray:
    """Return bytes by some times if each rate goes on from a time, shape of ``at_s``."""
    after = np.searchsorted(at_s, since_s)
    rates, offsets = (
        np.cumsum(np.bincount(after, weights, len(at_s) + 1))[: len(at_s)]
        for weights in (rate_Bps, rate_Bps * since_s)
    )
    return np.asarray(at_s * rates - offsets)
