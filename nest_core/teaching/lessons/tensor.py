"""What tensor parallelism saves and what its collectives cost, block by block.

Every width divides the compute of a block and sends its activations in collectives, each at the
price that plans pay (`nest_core.costs.links`), here with nothing hidden behind compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Point, links
from nest_core.documents.units import format_ratio, humanise_bytes, humanise_seconds, percent
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import NODE_GBPS, ORDER, UPLINK_GBPS, problem

__all__ = ["TENSOR", "Blocks", "Divided", "divided"]

MODEL, NAME = "llama3-70b", "Llama 3 70B"
DEVICES = 64
WIDTHS = (1, 2, 4, 8, 16, 32)
ASKED = (8, 1, 8192)
"""Devices per node, oversubscription, tokens."""
_BLOCK = 1  # the first layer after the embedding


@dataclass(frozen=True, slots=True)
class Divided:
    """A block on one rank of a width, forward and backward of one micro-batch.

    Parameters
    ----------
    tp : int
    compute_s : float
    calls : int
        Reduce-scatters and all-gathers.
    call_bytes : float
        The whole buffer of each.
    sent_s : float
        Of all of them.
    """

    tp: int
    compute_s: float
    calls: int
    call_bytes: float
    sent_s: float

    @property
    def seconds(self) -> float:
        """Compute and collectives, one after another."""
        return self.compute_s + self.sent_s


@dataclass(frozen=True, slots=True)
class Blocks:
    """All widths on one fabric.

    Parameters
    ----------
    per_node : int
    ratio : int
        Oversubscription of the nodes' uplinks, down : up.
    widths : tuple of Divided
    """

    per_node: int
    ratio: int
    widths: tuple[Divided, ...]

    def of(self, tp: int) -> Divided:
        """One width."""
        return next(one for one in self.widths if one.tp == tp)


@cache
def divided(per_node: int, ratio: int, tokens: int) -> Blocks:
    """Price a block under every width.

    Parameters
    ----------
    per_node : int
        H100 of a node.
    ratio : int
        Oversubscription of the nodes' uplinks, down : up.
    tokens : int
        Of a micro-batch of one sequence.
    """
    whole = problem(MODEL, tokens, DEVICES, DEVICES, per_node, ratio=float(ratio))
    found = []
    for tp in WIDTHS:
        table = whole.table(tp, tp > 1, 1, 1, 1, tp)
        compute = float(table.compute_s[_BLOCK])
        if tp == 1:
            found.append(Divided(1, compute, 0, 0.0, 0.0))
            continue
        calls = table.calls["tp"]
        number, size = float(calls.number[_BLOCK]), float(calls.bytes[_BLOCK])
        shared = links(whole, Point(tp, True, DEVICES // tp, 1, 1, 0, ORDER))
        once = float(shared.time("tp", calls.kind).seconds(size / number)[0])
        found.append(Divided(tp, compute, round(number), size / number, number * once))
    return Blocks(per_node, ratio, tuple(found))


def _show(settings: Settings) -> Reveal:
    per_node, ratio, tokens = (int(settings[key]) for key in ("node", "ratio", "tokens"))
    found = divided(per_node, ratio, tokens)
    one, inside, across = found.of(1), found.of(per_node), found.of(2 * per_node)
    gains = across.seconds < inside.seconds
    return Reveal(
        found,
        (
            f"Compute falls with the width; what a rank sends hardly does, (tp - 1) / tp of "
            f"{humanise_bytes(inside.call_bytes)} in each of {inside.calls} calls. So the share "
            "of the collectives grows with every doubling.",
            f"From tp {per_node} to tp {2 * per_node} the groups leave their nodes: a block takes "
            f"{humanise_seconds(across.seconds)} in place of {humanise_seconds(inside.seconds)}, "
            + ("still less, for twice the devices." if gains else "longer, on twice the devices."),
        ),
        (
            Formula(
                f"Sent by a rank at tp {per_node}",
                "calls · s b h w (tp - 1) / tp",
                f"{inside.calls} · {humanise_bytes(inside.call_bytes)} · "
                f"{per_node - 1} / {per_node} = "
                f"{humanise_bytes(_sent(inside))}",
                "Korthikanti et al. 2022 (sequence parallelism)",
            ),
            Formula(
                f"Collectives at tp {per_node}",
                "latency + bytes / rate that the library reaches",
                f"{humanise_seconds(inside.sent_s)}, "
                f"{percent(inside.sent_s / inside.seconds)} of {humanise_seconds(inside.seconds)}",
                "the price of plans (method.md, Network); nothing hidden",
            ),
            Formula(
                f"Speed-up at tp {per_node}",
                "t(1) / t(tp)",
                f"{humanise_seconds(one.seconds)} / {humanise_seconds(inside.seconds)} = "
                f"{one.seconds / inside.seconds:.3g} of {per_node}",
                "smaller kernels are less efficient, too",
            ),
        ),
    )


def _sent(one: Divided) -> float:
    return one.calls * one.call_bytes * (one.tp - 1) / one.tp


def _asked(given: Settings) -> Blocks:
    return divided(int(given["per_node"]), int(given["ratio"]), int(given["tokens"]))


def _width(given: Settings) -> Divided:
    return _asked(given).of(int(given["per_node"]))


_RATIOS = (1, 2, 4, 8)

TENSOR = Figure(
    "tensor",
    (
        Control("node", "Devices per node", (4, 8), ASKED[0], "4 or 8."),
        Control(
            "ratio",
            "Oversubscription, down : up",
            _RATIOS,
            ASKED[1],
            "Of the nodes' uplinks: 1 to 8.",
            tuple(map(format_ratio, _RATIOS)),
        ),
        Control("tokens", "Tokens", (2048, 8192, 32768), ASKED[2], "Of a sequence."),
    ),
    _show,
    {
        "per_node": Given(ASKED[0], 4, 8),
        "ratio": Given(ASKED[1], 1, 8),
        "tokens": Given(ASKED[2], 1024, 32768),
    },
    {
        "model": lambda given: NAME,
        "node_GBps": lambda given: NODE_GBPS,
        "uplink_GBps": lambda given: UPLINK_GBPS,
        "whole": lambda given: _asked(given).of(1).seconds,
        "share": lambda given: _asked(given).of(1).seconds / int(given["per_node"]),
        "compute": lambda given: _width(given).compute_s,
        "sent": lambda given: _width(given).sent_s,
        "seconds": lambda given: _width(given).seconds,
        "part": lambda given: _width(given).sent_s / _width(given).seconds,
        "calls": lambda given: _width(given).calls,
        "call": lambda given: _width(given).call_bytes,
        "each": lambda given: _width(given).sent_s / _width(given).calls,
        "twice": lambda given: 2 * _asked(given).of(1).seconds / int(given["per_node"]),
    },
    slow=True,
)
