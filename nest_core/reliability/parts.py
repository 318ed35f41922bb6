"""What of a fabric a plan uses: devices, hosts, NICs, links and switches under its devices.

Links and switches are those that the bill counts (`nest_core.bill.bill.inventory`), tier by tier,
in the share of the tier's groups that hold a device in use. A tier that no traffic need climb to,
as all devices lie in one group below it, is not used. Links inside nodes are the hosts' own.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from nest_core.bill.bill import inventory
from nest_core.bill.prices import load_prices
from nest_core.costs.placement import rank_mapping_of
from nest_core.costs.plan import Plan
from nest_core.fabric import Fabric
from nest_core.network import BoolArray, FloatArray, IntArray, Network

__all__ = ["parts_used"]


def parts_used(fabric: Fabric, network: Network, plan: Plan) -> Mapping[str, float]:
    """Return how many parts a plan uses, by what causes strike; one job.

    Tiers of direct links (tori) count in the share of devices in use.
    """
    counts = inventory(fabric, load_prices())
    used = rank_mapping_of(network, plan).rank >= 0
    hosts = len(np.unique(network.host[used]))
    blocks = _blocks(network)
    if network.torus is None:
        below = [_share(block, used) for block in blocks]
        climbs = [len(np.unique(block[used])) > 1 for block in blocks]
        links, switches = np.multiply(below, climbs), np.multiply([*below[1:], below[-1]], climbs)
    else:
        links = switches = np.array([used.mean()])
    return {
        "device": float(used.sum()),
        "host": float(hosts),
        "nic": counts.nics * hosts / len(np.unique(network.host)),
        "link": _sum([link.count for link in counts.links], links),
        "switch": _sum([switch.count for switch in counts.switches], switches),
        "job": 1.0,
    }


def _blocks(network: Network) -> tuple[IntArray, ...]:
    """Return the groups that climb into the first tier of switches, and those above."""
    nodes = [np.array_equal(block, network.node) for block in network.nesting]
    return network.nesting[nodes.index(True) if any(nodes) else 0 :]


def _share(block: IntArray, used: BoolArray) -> float:
    """Return the share of groups with devices in use."""
    return len(np.unique(block[used])) / len(np.unique(block))


def _sum(counts: Sequence[int], shares: FloatArray) -> float:
    """Return parts of all tiers in use; tiers that no level stands for are as the topmost."""
    return float(
        sum(count * shares[min(tier, len(shares) - 1)] for tier, count in enumerate(counts))
    )
