"""Lesson 6: why oversubscription moves tensor parallelism into the node.

The planner searches once per tensor-parallel width: cuts, depth, replicas and recomputation as it
likes; micro-batches of one, ZeRO up to stage 1, no context parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Report
from nest_core.lessons.lesson import (
    Brief,
    Choice,
    Control,
    Formula,
    Lesson,
    Notes,
    Question,
    Reveal,
    Settings,
)
from nest_core.lessons.teaching import NODE_GBPS, ORDER, UPLINK_GBPS, problem
from nest_core.planner import SearchSpace, search
from nest_core.units import humanise_bytes

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


@cache
def _brief() -> Brief:
    per_node, before, after = ASKED
    first, then = widths(per_node, before).best[0], widths(per_node, after).best[0]
    right = "a" if then == first else "c" if then > first else "b" if then <= per_node else "d"
    return Brief(
        Question(
            f"{NAME} on {DEVICES} H100 in nodes of {per_node}. At {_to_one(before)} the fastest "
            f"tensor-parallel width is {first}. The nodes' uplinks are oversubscribed "
            f"{_to_one(after)}. What is the fastest width then?",
            right,
            f"tp {then}, inside the node; at {_to_one(before)} it is tp {first}, across "
            f"{first // per_node} nodes.",
            (
                Choice("a", f"Still {first}: NVLink does the work"),
                Choice("b", f"{per_node} or less: inside the node"),
                Choice("c", f"More than {first}: wider groups send less each"),
                Choice("d", "1: without tensor parallelism"),
            ),
        ),
        Notes(
            15,
            f"tp {then}. Every layer of every micro-batch waits for its collectives; at "
            f"{_to_one(after)} a device has {UPLINK_GBPS / after:g} GB/s of uplink left.",
            (
                (
                    f"Still {first}",
                    f"A group of {first} spans {first // per_node} nodes; the slowest link sets "
                    "its pace, not the mean.",
                ),
                (
                    f"More than {first}",
                    "What a device sends hardly falls with the width: (tp - 1) / tp.",
                ),
                ("1", "Then a device holds whole layers; with ZeRO 1 this model does not fit."),
            ),
            (
                "Halve the node: at which ratio does the width move now?",
                "Why do narrow widths have deep pipelines, and what do they recompute?",
                "Who pays for the uplinks that this plan no longer needs? (Compare page.)",
            ),
        ),
    )


OVERSUBSCRIPTION = Lesson(
    "oversubscription",
    "Oversubscription",
    "Why oversubscription moves tensor parallelism into the node",
    "Tensor parallelism divides every layer and sends activations in each. Nodes have fast links "
    f"inside ({NODE_GBPS:g} GB/s per device) and share uplinks ({UPLINK_GBPS:g} GB/s per device at "
    f"{_to_one(1)}).",
    (
        Control(
            "ratio",
            "Oversubscription, down : up",
            _RATIOS,
            ASKED[1],
            "Of the nodes' uplinks: 1 to 8.",
            tuple(f"{ratio} : 1" for ratio in _RATIOS),
        ),
        Control("node", "Devices per node", (4, 8), ASKED[0], "4 or 8."),
    ),
    _brief,
    _show,
    slow=True,
)
