"""Lesson 6: why oversubscription moves tensor parallelism into the node.

The planner searches once per tensor-parallel width: cuts, depth, replicas and recomputation as it
likes; micro-batches of one, ZeRO up to stage 1, no context parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Report
from nest_core.documents.units import format_ratio, humanise_bytes
from nest_core.planner import SearchSpace, search
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import NODE_GBPS, ORDER, UPLINK_GBPS, problem

__all__ = ["OVERSUBSCRIPTION", "Width", "Widths", "widths"]

MODEL, NAME = "llama3.1-405b", "Llama 3.1 405B"
DEVICES, BATCH, TOKENS = 256, 512, 8192
ASKED = (8, 1, 4)
"""Devices per node, and the two ratios of the question."""

_WIDTHS = (1, 2, 4, 8, 16, 32)
_DEPTHS = (2, 4, 8, 16, 32)
_RATIOS = (1, 2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class Width:
    """The best plan of one tensor-parallel width; None where none fits."""

    tp: int
    report: Report | None


@dataclass(frozen=True, slots=True)
class Widths:
    """All widths under one oversubscription.

    Parameters
    ----------
    per_node : int
    ratio : float
    widths : tuple of Width
    """

    per_node: int
    ratio: float
    widths: tuple[Width, ...]

    @property
    def best(self) -> tuple[int, Report]:
        """The fastest width and its plan."""
        fitting = [(one.tp, one.report) for one in self.widths if one.report is not None]
        return min(fitting, key=lambda pair: pair[1].iteration_s)


@cache
def widths(per_node: int, ratio: int) -> Widths:
    """Search every width.

    Parameters
    ----------
    per_node : int
        Devices of a node.
    ratio : int
        Oversubscription of the nodes' uplinks, down : up.
    """
    whole = problem(MODEL, TOKENS, BATCH, DEVICES, per_node, ratio=float(ratio))
    found = []
    for tp in _WIDTHS:
        space = SearchSpace(
            tp=(tp,),
            sp=(tp > 1,),
            dp=tuple(2**power for power in range(9)),
            pp=_DEPTHS,
            micro_batch=(1,),
            zero=(0, 1),
            recompute=("none", "full"),
            orders=(ORDER,),
            idle_devices=False,
        )
        found.append(Width(tp, search(whole, space).best))
    return Widths(per_node, float(ratio), tuple(found))


def _to_one(ratio: int) -> str:
    """A ratio that no line breaks."""
    return f"{ratio}\u00a0:\u00a01"


def _show(settings: Settings) -> Reveal:
    per_node, ratio = int(settings["node"]), int(settings["ratio"])
    found = widths(per_node, ratio)
    tp, best = found.best
    point = best.plan.point
    inside = tp <= per_node
    rate = UPLINK_GBPS / ratio
    return Reveal(
        found,
        (
            f"At {_to_one(ratio)} the fastest width is tp {tp}, "
            + (
                "inside the node. Wider groups send their activations over the thin uplinks, in "
                "every layer of every micro-batch."
                if inside
                else f"across {tp // per_node} nodes. The uplinks carry it: dividing the "
                "layers further saves more memory, and so recomputation, than the traffic costs."
            ),
            "Pipelines and replicas send far less across nodes: a boundary per stage, gradients "
            "once per iteration. So when uplinks are removed, tensor parallelism goes first.",
        ),
        (
            Formula(
                "Per device, inside and across nodes",
                "B_node, B_uplink / ratio",
                f"{NODE_GBPS:g} GB/s, {UPLINK_GBPS:g} / {ratio} = {rate:.3g} GB/s: "
                f"{NODE_GBPS / rate:.3g} times less",
                "the fabric of this lesson: NVLink 4, one NDR port per device",
            ),
            Formula(
                "Sent per layer and micro-batch by tensor parallelism",
                "4 reduce-scatters and all-gathers forward, 4 backward, w b s h (tp - 1) / tp each",
                _traffic(tp),
                "Korthikanti et al. 2022 (sequence parallelism)",
            ),
            Formula(
                f"Iteration with tp {tp}",
                "sum(t) + (m - 1) max(t) + exposed synchronisation",
                f"{best.iteration_s:.3g} s with pp {point.pp}, dp {point.dp}, "
                f"recomputation {best.plan.recompute_summary}",
                "method.md, Time; overlap as fitted",
            ),
        ),
    )


def _traffic(tp: int) -> str:
    whole = problem(MODEL, TOKENS, BATCH, DEVICES, ASKED[0])
    table = whole.table(tp, True, 1, 1, 1, tp)
    calls = table.calls["tp"]
    block = 1  # the first layer after the embedding
    number, size = float(calls.number[block]), float(calls.bytes[block])
    each = size / number * (tp - 1) / tp
    return f"{number:g} of {humanise_bytes(each)}: {humanise_bytes(number * each)}"


def _fastest(given: Settings) -> tuple[int, int]:
    """The fastest width before and after uplinks are taken away."""
    before, after = (widths(int(given["node"]), int(given[when])) for when in ("before", "after"))
    return before.best[0], after.best[0]


def _right(given: Settings) -> str:
    first, then = _fastest(given)
    inside = then <= int(given["node"])
    return "a" if then == first else "c" if then > first else "b" if inside else "d"


def _uplink_seconds(given: Settings) -> float:
    """What every device of a node sends at once, over the uplinks that they share."""
    node, ratio = int(given["node"]), float(given["after"])
    network = problem(MODEL, TOKENS, BATCH, DEVICES, node, ratio=ratio).network
    return 1e6 * float(given["size_MB"]) / network.levels[-1].bandwidth_Bps


OVERSUBSCRIPTION = Figure(
    "oversubscription",
    (
        Control(
            "ratio",
            "Oversubscription, down : up",
            _RATIOS,
            ASKED[2],
            "Of the nodes' uplinks: 1 to 8.",
            tuple(map(format_ratio, _RATIOS)),
        ),
        Control("node", "Devices per node", (4, 8), ASKED[0], "4 or 8."),
    ),
    _show,
    {
        "node": Given(ASKED[0], 1, 16),
        "before": Given(ASKED[1], 1, 64),
        "after": Given(ASKED[2], 1, 64),
        "size_MB": Given(100.0, 1e-3, 1e6),
    },
    {
        "name": lambda given: NAME,
        "devices": lambda given: DEVICES,
        "node_GBps": lambda given: NODE_GBPS,
        "uplink_GBps": lambda given: UPLINK_GBPS,
        "one_to_one": lambda given: _to_one(1),
        "before_to_one": lambda given: _to_one(int(given["before"])),
        "after_to_one": lambda given: _to_one(int(given["after"])),
        "first": lambda given: _fastest(given)[0],
        "then": lambda given: _fastest(given)[1],
        "nodes": lambda given: _fastest(given)[0] // int(given["node"]),
        "right": _right,
        "left_GBps": lambda given: UPLINK_GBPS / int(given["after"]),
        "uplink": _uplink_seconds,
    },
    slow=True,
)
