"""Lesson 7, experts and all-to-all: what spreading the experts saves, and what it sends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Plan, Point, Report, links, price
from nest_core.documents.units import humanise_bytes, humanise_seconds, percent
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import ORDER, even_cuts, problem
from nest_core.workload import load_model

__all__ = ["EXPERTS", "Spread", "Spreads", "spreads"]

MODEL, NAME = "mixtral-8x7b", "Mixtral 8x7B"
DEVICES, STAGES, REPLICAS, BATCH, TOKENS = 64, 4, 16, 256, 4096
DEGREES = (1, 2, 4, 8)
SHOWN_STAGE = 1
"""The second stage: blocks alone, without embedding or head."""

_BLOCK = 1  # the first layer after the embedding
_NODES = (2, 4, 8)
_IMBALANCES = (1.0, 1.25, 1.5, 2.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """One expert-parallel degree.

    Parameters
    ----------
    ep : int
    report : Report
    sent_bytes : float
        What a device holds for one all-to-all, its own part included.
    all_to_all_s : float
        One of them.
    """

    ep: int
    report: Report
    sent_bytes: float
    all_to_all_s: float


@dataclass(frozen=True, slots=True)
class Spreads:
    """All degrees on nodes of one size."""

    per_node: int
    imbalance: float
    spreads: tuple[Spread, ...]


@cache
def spreads(per_node: int, imbalance: float) -> Spreads:
    """Price every degree: ``pp`` 4, ``dp`` 16, ZeRO 1, all communication exposed.

    Parameters
    ----------
    per_node : int
    imbalance : float
        Load of the hottest device over the mean.
    """
    whole = problem(MODEL, TOKENS, BATCH, DEVICES, per_node, imbalance=imbalance, overlap=False)
    found = []
    for ep in DEGREES:
        point = Point(1, False, REPLICAS, STAGES, 1, 1, ORDER, ep=ep)
        report = price(whole, Plan(point, even_cuts(whole.layers, STAGES), ("full",) * STAGES))
        sent = seconds = 0.0
        if ep > 1:
            sent = _buffer(ep, imbalance)
            kind = whole.table(1, False, 1, 1, ep, 1).calls["ep"].kind
            time = links(whole, point).time("ep", kind)
            seconds = float(time.seconds(sent)[SHOWN_STAGE])
        found.append(Spread(ep, report, sent, seconds))
    return Spreads(per_node, imbalance, tuple(found))


@cache
def _buffer(ep: int, imbalance: float) -> float:
    """Bytes that the hottest device holds for one all-to-all, its own part included."""
    whole = problem(MODEL, TOKENS, BATCH, DEVICES, DEGREES[-1], imbalance=imbalance, overlap=False)
    calls = whole.table(1, False, 1, 1, ep, 1).calls["ep"]
    return float(calls.bytes[_BLOCK] / calls.number[_BLOCK])


def _show(settings: Settings) -> Reveal:
    per_node, imbalance = int(settings["node"]), float(settings["imbalance"])
    found = spreads(per_node, imbalance)
    widest = found.spreads[-1]
    ep = widest.ep
    model = load_model(MODEL)
    hidden, chosen = model.hidden, model.top_k
    inside = "inside the node" if ep <= per_node else f"across {ep // per_node} nodes"
    whole, spread = (
        one.report.stages[SHOWN_STAGE].memory.total for one in (found.spreads[0], widest)
    )
    return Reveal(
        found,
        (
            f"Spreading the experts over {ep} devices leaves each of them {model.experts // ep} of "
            f"{model.experts}: {humanise_bytes(whole)} become "
            f"{humanise_bytes(spread)} per device.",
            f"For that every token travels to its experts and back, {inside}. "
            + (
                "All tokens are spread evenly here; raise the imbalance to see the hottest device "
                "set the pace."
                if imbalance == 1.0
                else f"The hottest device has {imbalance:g} times the mean to do, and everyone "
                "waits for it."
            ),
        ),
        (
            Formula(
                "Share of the copies that leave their device",
                "(ep - 1) / ep",
                f"({ep} - 1) / {ep} = {percent((ep - 1) / ep)}",
                "uniform routing; Lepikhin et al. 2020 (GShard)",
            ),
            Formula(
                "Held for one all-to-all",
                "w · b · s · top_k · h" + (" · imbalance" if imbalance != 1.0 else ""),
                f"2 · 1 · {TOKENS} · {chosen} · {hidden}"
                + (f" · {imbalance:g}" if imbalance != 1.0 else "")
                + f" = {humanise_bytes(widest.sent_bytes)}",
                "method.md, Strategies; two per layer and pass",
            ),
            Formula(
                "One all-to-all, alone",
                "latency + (ep - 1) / ep bytes / B",
                f"{humanise_seconds(widest.all_to_all_s)}, all groups at once",
                "method.md, Groups",
            ),
        ),
    )


def _asked(given: Settings) -> tuple[int, float]:
    return int(given["ep"]), float(given["imbalance"])


EXPERTS = Figure(
    "experts",
    (
        Control("node", "Devices per node", _NODES, 8, "2, 4 or 8; ep goes up to 8."),
        Control(
            "imbalance",
            "Imbalance",
            _IMBALANCES,
            1.0,
            "Load of the hottest device over the mean: 1 to 2.",
        ),
    ),
    _show,
    {"ep": Given(DEGREES[-1], 2, DEGREES[-1]), "imbalance": Given(1.0, 1, 8)},
    {
        "name": lambda given: NAME,
        "devices": lambda given: DEVICES,
        "pp": lambda given: STAGES,
        "dp": lambda given: REPLICAS,
        "tokens": lambda given: TOKENS,
        "hidden": lambda given: load_model(MODEL).hidden,
        "experts": lambda given: load_model(MODEL).experts,
        "chosen": lambda given: load_model(MODEL).top_k,
        "held": lambda given: load_model(MODEL).experts // int(given["ep"]),
        "stays": lambda given: 1 / int(given["ep"]),
        "seen": lambda given: load_model(MODEL).top_k / int(given["ep"]),
        "leaves": lambda given: 1 - 1 / int(given["ep"]),
        "buffer": lambda given: _buffer(*_asked(given)),
        "sent": lambda given: (1 - 1 / int(given["ep"])) * _buffer(*_asked(given)),
    },
)
