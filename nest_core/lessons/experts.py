"""Lesson 7, experts and all-to-all: what spreading the experts saves, and what it sends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Plan, Point, Report, links, price
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
    percent,
)
from nest_core.lessons.teaching import ORDER, even_cuts, problem
from nest_core.units import humanise_bytes, humanise_seconds
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
            calls = whole.table(1, False, 1, 1, ep, 1).calls["ep"]
            sent = float(calls.bytes[_BLOCK] / calls.number[_BLOCK])
            time = links(whole, point).time("ep", calls.kind)
            seconds = float(time.seconds(sent)[SHOWN_STAGE])
        found.append(Spread(ep, report, sent, seconds))
    return Spreads(per_node, imbalance, tuple(found))


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


@cache
def _brief() -> Brief:
    model = load_model(MODEL)
    ep, chosen = DEGREES[-1], model.top_k
    right = (ep - 1) / ep
    return Brief(
        Question(
            f"{NAME}: {model.experts} experts per layer, each token goes to {chosen} of them. "
            f"Every one of {ep} devices holds {model.experts // ep} expert; routing is uniform. "
            "What share of the tokens' copies is sent to another device?",
            "c",
            f"{percent(right)}: one expert of {ep} is at home.",
            (
                Choice("a", percent(1 / ep)),
                Choice("b", percent(chosen / ep)),
                Choice("c", percent(right)),
                Choice("d", "100 %"),
            ),
        ),
        Notes(
            12,
            f"{percent(right)}. A copy stays if its expert is at home, which is 1 of {ep}.",
            (
                (percent(1 / ep), "That is what stays."),
                (
                    percent(chosen / ep),
                    "That is how many experts a token sees; it says how large the buffer is, not "
                    "where it goes.",
                ),
                ("100 %", "Nearly; the larger ep, the nearer."),
            ),
            (
                "Make the nodes smaller than ep: which bar grows?",
                "An imbalance of 2: is the network or the hottest expert the bottleneck?",
                "Why not ep 1 and ZeRO 3 instead? (Weights of all experts would be gathered for "
                "every micro-batch.)",
            ),
        ),
    )


EXPERTS = Lesson(
    "experts",
    "Experts",
    "Experts and all-to-all",
    "A mixture-of-experts layer has many feed-forward networks and sends each token to a few of "
    f"them. Expert parallelism (ep) spreads them over devices. {NAME} on {DEVICES} H100, pp "
    f"{STAGES}, dp {REPLICAS}, full recomputation; no communication hides behind compute here.",
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
    _brief,
    _show,
)
