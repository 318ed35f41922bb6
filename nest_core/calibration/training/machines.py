"""The accelerator and the fabric of a run.

`MACHINES` names the preset behind an accelerator as sources write it, and what a node of it
usually has; a row's own columns come first. The fabric is two levels: nodes whose devices reach
one another over links of their own, and above them a network that every device enters through a
port of its own and that blocks nowhere (rails). A job takes the fewest nodes that hold its
groups whole, evenly filled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from nest_core.calibration.training.runs import Run
from nest_core.documents.errors import InputError
from nest_core.documents.presets import kept_per_edition, preset_names
from nest_core.documents.units import GB
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware import Accelerator, load_accelerator
from nest_core.network import Network, collapse

__all__ = ["MACHINES", "Machine", "accelerator_of", "fabric_of", "machine_of", "network_of"]

NODE_LATENCY_S = 1e-6
NETWORK_LATENCY_S = 5e-6
"""One way, all hops; what software adds is in the curves of ``presets/collectives``."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What an accelerator is usually built into.

    Parameters
    ----------
    name : str
    preset : str
    per_node : int
    intra_Bps, inter_Bps : float
        Per device and direction.
    """

    name: str
    preset: str
    per_node: int
    intra_Bps: float
    inter_Bps: float


MACHINES: tuple[tuple[str, Machine], ...] = (
    (r"v100", Machine("V100", "v100-32gb", 8, 150 * GB, 12.5 * GB)),
    (r"a800", Machine("A100", "a100-80gb", 8, 200 * GB, 25 * GB)),
    (r"a100.*40", Machine("A100", "a100-40gb", 8, 300 * GB, 25 * GB)),
    (r"a100", Machine("A100", "a100-80gb", 8, 300 * GB, 25 * GB)),
    (r"h800", Machine("H100", "h100-80gb", 8, 200 * GB, 50 * GB)),
    (r"h100.*hbm2e", Machine("H100", "h100-96gb-hbm2e", 8, 450 * GB, 50 * GB)),
    (r"h100", Machine("H100", "h100-80gb", 8, 450 * GB, 50 * GB)),
    (r"h200", Machine("H200", "h200-141gb", 8, 450 * GB, 50 * GB)),
    (r"gb300", Machine("GB300", "gb300-288gb", 72, 900 * GB, 100 * GB)),
    (r"gb200", Machine("GB200", "gb200-186gb", 72, 900 * GB, 50 * GB)),
    (r"b300", Machine("B300", "b300-288gb", 8, 900 * GB, 100 * GB)),
    (r"b200", Machine("B200", "b200-180gb", 8, 900 * GB, 50 * GB)),
    (r"mi300x", Machine("MI300X", "mi300x-192gb", 8, 448 * GB, 50 * GB)),
    (r"mi355x", Machine("MI355X", "mi355x-288gb", 8, 535.5 * GB, 50 * GB)),
    (r"tpu ?v4", Machine("TPU v4", "tpu-v4", 4096, 270 * GB, 6.25 * GB)),
    (r"tpu ?v5e", Machine("TPU v5e", "tpu-v5e", 256, 200 * GB, 3.125 * GB)),
    (r"tpu ?v5p", Machine("TPU v5p", "tpu-v5p", 8960, 600 * GB, 6.25 * GB)),
    (r"tpu ?v6e", Machine("TPU v6e", "tpu-v6e", 256, 400 * GB, 12.5 * GB)),
    (r"gaudi ?2", Machine("Gaudi 2", "gaudi2-96gb", 8, 262.5 * GB, 37.5 * GB)),
    (r"gaudi ?3", Machine("Gaudi 3", "gaudi3-128gb", 8, 525 * GB, 75 * GB)),
    (r"trainium ?2", Machine("Trainium 2", "trainium2-96gb", 16, 640 * GB, 25 * GB)),
)
"""Patterns in column ``accelerator``, ignoring case, in order.

Link and port rates: NVIDIA's and Google's data sheets as tabled in stas00/ml-engineering@744d01e
and the TPU pages of docs.cloud.google.com; a TPU slice counts as one node.
"""


def machine_of(name: str) -> Machine:
    """Return the machine behind an accelerator's name.

    Raises
    ------
    InputError
        If none of `MACHINES` is meant, or its preset is not there.
    """
    for pattern, machine in MACHINES:
        if re.search(pattern, name, re.I):
            if machine.preset in preset_names("accelerators"):
                return machine
            break
    raise InputError("accelerator", "must have a preset", name, "add one to presets/accelerators")


@kept_per_edition(64)
def accelerator_of(name: str) -> Accelerator:
    """Return the device behind an accelerator's name."""
    return load_accelerator(machine_of(name).preset)


def fabric_of(run: Run) -> Hierarchical:
    """Return nodes of a run's devices, and the network between them."""
    machine = machine_of(run.accelerator)
    sizes = _node_sizes(run.devices, run.per_node or machine.per_node, _together(run))
    inside = Tier(
        "node",
        sizes[0],
        run.intra_Bps or machine.intra_Bps,
        NODE_LATENCY_S,
        group_sizes=() if sizes[0] == sizes[-1] else sizes,
    )
    if len(sizes) == 1:
        return Hierarchical("node", (inside,))
    outside = Tier("network", len(sizes), run.inter_Bps or machine.inter_Bps, NETWORK_LATENCY_S)
    return Hierarchical("cluster", (inside, outside))


def _together(run: Run) -> tuple[int, ...]:
    """Return devices side by side that a node had better hold whole.

    Tensor groups, then wider ones.
    """
    point = run.point
    inner = point.tp * point.cp
    ahead = point.order.index("pp") < point.order.index("dp")
    return point.tp, inner, point.tp * max(point.cp, point.ep), inner * point.pp if ahead else inner


def _node_sizes(devices: int, per_node: int, together: Sequence[int] = (1,)) -> tuple[int, ...]:
    """Return devices of every node: the fewest nodes that hold groups whole, as evenly as it goes.

    Parameters
    ----------
    together : sequence of int
        Sizes of groups. The first is held whole, or where no node holds it the largest part that
        divides it; of the others the largest for which that takes no more nodes.

    Examples
    --------
    A job on 256 devices of racks of 72 takes 64 in each of four racks; one on 1,024 in groups of 16
    takes 64 in each of 16, not 68 or 69 in each of 15.

    >>> _node_sizes(256, 72), _node_sizes(20, 8), set(_node_sizes(1024, 72, (16,)))
    ((64, 64, 64, 64), (7, 7, 6), {64})
    """
    first = next(
        size for size in range(min(per_node, together[0]), 0, -1) if together[0] % size == 0
    )
    wider = [size for size in together if size <= per_node and devices % size == 0]

    def nodes(group: int) -> int:
        return -(-(devices // group) // (per_node // group))

    group = max([first, *(size for size in wider if nodes(size) <= nodes(first))])
    per_node_groups, more = divmod(devices // group, nodes(group))
    return ((per_node_groups + 1) * group,) * more + (per_node_groups * group,) * (
        nodes(group) - more
    )


@lru_cache(maxsize=256)
def network_of(fabric: Hierarchical) -> Network:
    """Return a fabric's levels; runs on the same fabric share them."""
    return collapse(fabric)
