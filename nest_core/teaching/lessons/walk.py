"""A collective step by step on a fabric: what moves over which link, and who waits for whom.

Devices in nodes under one leaf. The steps, their bytes and their seconds are those of the phases
that plans are priced by (`nest_core.network.steps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.documents.units import humanise_rate, humanise_seconds, percent
from nest_core.network.steps import Steps, steps
from nest_core.teaching.lessons.contents import Contents, contents
from nest_core.teaching.lessons.figure import Given, LessonFigure
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import NODE_GBPS, noded

__all__ = ["ALGORITHMS", "FABRICS", "LINKS", "STEPS", "Walk", "bytes_in_words", "walked"]

GIGABYTE = 1e9
LINKS = ("NVLink", "NIC")
"""Names of the links that belong to each level."""

ALGORITHMS = {
    "ring": ("all_reduce", "ring"),
    "tree": ("all_reduce", "double_binary_tree"),
    "hierarchical": ("all_reduce", "hierarchical_ring"),
    "all-to-all": ("all_to_all", "pairwise"),
}
"""Names on screen; the operation and its algorithm."""

FABRICS = ("2 × 4", "2 × 8", "4 × 8", "8 × 8")
NICS = (25, 50, 100, 200)
ASKED = ("ring", "2 × 4", 50)


def bytes_in_words(size: float) -> str:
    """Bytes as a class reads them, decimal.

    Examples
    --------
    >>> bytes_in_words(1e9), bytes_in_words(625e6), bytes_in_words(15.6e6)
    ('1 GB', '0.625 GB', '15.6 MB')
    """
    return f"{size / 1e9:.3g} GB" if size >= 2.5e8 else f"{size / 1e6:.3g} MB"


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A collective at one of its steps.

    Parameters
    ----------
    steps : Steps
    contents : Contents
    step : int
        How many steps are over.
    nodes, per_node : int
    """

    steps: Steps
    contents: Contents
    step: int
    nodes: int
    per_node: int


@cache
def walked(algorithm: str, fabric: str, nic_GBps: float) -> tuple[Steps, Contents]:
    """All steps of a collective of 1 GB among all devices, and what these hold meanwhile.

    Parameters
    ----------
    algorithm : str
        Of `ALGORITHMS`.
    fabric : str
        Nodes × devices of each.
    nic_GBps : float
        One NIC for each device, one direction.
    """
    nodes, per_node = _sizes(fabric)
    op, algorithm_name = ALGORITHMS[algorithm]
    network = noded(nodes, per_node, nic_GBps)
    result = steps(network, op, algorithm_name, GIGABYTE, network.devices)
    return result, contents(result)


def _sizes(fabric: str) -> tuple[int, int]:
    nodes, per_node = fabric.split(" × ")
    return int(nodes), int(per_node)


def _chosen(settings: Settings) -> tuple[Steps, Contents]:
    return walked(str(settings["algorithm"]), str(settings["fabric"]), float(settings["nic"]))


def _last(settings: Settings) -> int:
    return len(_chosen(settings)[0].states) + 1


MOST = 2 * (64 - 1)
"""Steps of the longest: a ring of 64."""


def _show(settings: Settings) -> Reveal:
    steps_taken, contents_held = _chosen(settings)
    nodes, per_node = _sizes(str(settings["fabric"]))
    walk = Walk(steps_taken, contents_held, int(settings["step"]), nodes, per_node)
    algorithm = str(settings["algorithm"])
    return Reveal(walk, (_TEXTS[algorithm],), (*_formulas(walk, algorithm),))


_TEXTS = {
    "ring": "Every link of the ring carries nearly twice the gradient: once while sums travel, "
    "once while results travel. Length hardly matters; the slowest link sets the pace.",
    "tree": "Chunks follow one another up and down two trees that join nodes, one pair of trees "
    "for each device of a node: few hops, so little latency, and all NICs work at once.",
    "hierarchical": "Inside nodes first: each device then has only its share of the gradient to "
    "exchange with other nodes, and all NICs work at once. Rings go level by level.",
    "all-to-all": "Everyone has another block for everyone: nothing is added up, so nothing gets "
    "smaller on the way, and most blocks leave their node.",
}


def _formulas(walk: Walk, algorithm: str) -> tuple[Formula, ...]:
    steps_taken = walk.steps
    n, last = steps_taken.groups.shape[1], steps_taken.states[-1]
    busy = steps_taken.busy(last.number)
    slow = int(busy.argmax())
    size = bytes_in_words(steps_taken.size_bytes)
    most = bytes_in_words(_most(walk, slow))
    links = steps_taken.network.link_map
    rate = float(links.capacity_Bps[links.tier == slow].max())
    return (
        Formula(
            f"Over the busiest {LINKS[slow]}",
            _SENT[algorithm],
            f"n = {n}, x = {size}: {most}",
            "Thakur, Rabenseifner and Gropp 2005"
            if algorithm != "tree"
            else "Sanders, Speck and Träff 2009; NCCL's trees",
        ),
        Formula(
            "Time",
            "sum over steps of latency + bytes / rate of the slowest link",
            f"{most} / {humanise_rate(rate)} + latency = {humanise_seconds(last.seconds)}; "
            f"{LINKS[slow]} sends {percent(float(busy[slow]))} of it",
            "the phases that plans are priced by (method.md, Network)",
        ),
    )


_SENT = {
    "ring": "2 (n - 1) / n · x",
    "tree": "up and down two trees, half of a rail's share on each",
    "hierarchical": "2 (N - 1) / N · x / devices of a node, N nodes",
    "all-to-all": "(n - devices of a node) / n · x",
}


def _most(walk: Walk, level: int) -> float:
    links = walk.steps.network.link_map
    return float(walk.steps.states[-1].sent_bytes[links.tier == level].max())


def _asked(given: Settings) -> tuple[Steps, Contents]:
    fabric = f"{given['nodes']} × {given['per_node']}"
    return walked(str(given["algorithm"]), fabric, float(given["nic_GBps"]))


def _leaves(given: Settings) -> float:
    """Bytes of the busiest NIC, one way."""
    steps_taken, _ = _asked(given)
    links = steps_taken.network.link_map
    return float(steps_taken.states[-1].sent_bytes[links.tier == 1].max())


STEPS = LessonFigure(
    "steps",
    (
        Control("algorithm", "Algorithm", tuple(ALGORITHMS), ASKED[0], "What is stepped through."),
        Control("fabric", "Nodes × devices", FABRICS, ASKED[1], "8 to 64 devices under one leaf."),
        Control("nic", "NIC, GB/s", NICS, ASKED[2], "One for each device: 25 to 200 GB/s."),
        Control(
            "step",
            "Step",
            tuple(range(MOST + 1)),
            0,
            "Steps that are over, from none to all.",
            stepped=True,
            last=_last,
        ),
    ),
    _show,
    {
        "algorithm": Given(ASKED[0], values=tuple(ALGORITHMS)),
        "nodes": Given(2, 2, 8),
        "per_node": Given(4, 2, 8),
        "nic_GBps": Given(float(ASKED[2]), 1, 1000),
    },
    {
        "nvlink_GBps": lambda given: NODE_GBPS,
        "devices": lambda given: int(given["nodes"]) * int(given["per_node"]),
        "before": lambda given: int(given["nodes"]) * int(given["per_node"]) - 1,
        "gradient": lambda given: bytes_in_words(GIGABYTE),
        "share": lambda given: bytes_in_words(GIGABYTE / int(given["per_node"])),
        "every": lambda given: bytes_in_words(
            GIGABYTE * int(given["nodes"]) * int(given["per_node"])
        ),
        "leaves": lambda given: bytes_in_words(_leaves(given)),
        "total": lambda given: _asked(given)[0].seconds,
        "halved": lambda given: (
            _asked({**given, "nic_GBps": float(given["nic_GBps"]) / 2})[0].seconds
        ),
    },
)
