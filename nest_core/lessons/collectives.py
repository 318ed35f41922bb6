"""Lesson 5, collectives on a ring and on a tree: latency against bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

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
from nest_core.network import FloatArray, collapse
from nest_core.network.collective import collective
from nest_core.topology import Hierarchical, Tier
from nest_core.units import (
    from_gbps_bytes,
    from_microseconds,
    humanise_bytes,
    humanise_seconds,
)

__all__ = ["COLLECTIVES", "Affine", "Crossing", "crossing"]

PORT_GBPS = 50.0
ASKED = (16, 2)
"""Devices and microseconds of the question."""

ALGORITHMS = {"ring": "ring", "tree": "double_binary_tree"}
SIZES: FloatArray = np.asarray(2.0 ** np.arange(10, 35), dtype=np.float64)
"""Bytes, 1 KiB to 16 GiB."""


@dataclass(frozen=True, slots=True)
class Affine:
    """A time ``alpha_s + beta_s_per_byte * bytes``."""

    alpha_s: float
    beta_s_per_byte: float

    def seconds(self, size: FloatArray | float) -> FloatArray:
        """Time of messages of ``size`` bytes."""
        return np.asarray(self.alpha_s + self.beta_s_per_byte * size)


@dataclass(frozen=True, slots=True)
class Crossing:
    """An all-reduce by two algorithms.

    Parameters
    ----------
    devices : int
    latency_s : float
        Of one step.
    ring, tree : Affine
    crosses_bytes : float
        Where they take equally long; infinite where the tree is ahead for good.
    """

    devices: int
    latency_s: float
    ring: Affine
    tree: Affine
    crosses_bytes: float


@cache
def crossing(devices: int, latency_us: float) -> Crossing:
    """Price an all-reduce on one switch with both algorithms.

    Parameters
    ----------
    devices : int
    latency_us : float
        Of one step, microseconds.
    """
    tier = Tier(
        "switch", devices, from_gbps_bytes(PORT_GBPS), from_microseconds(latency_us), "device"
    )
    network = collapse(Hierarchical("one switch", (tier,)))

    def fitted(name: str) -> Affine:
        none, some = (
            collective(network, "all_reduce", size, devices, algorithm=name).time_s
            for size in (0.0, SIZES[-1])
        )
        return Affine(none, (some - none) / float(SIZES[-1]))

    ring, tree = (fitted(name) for name in ALGORITHMS.values())
    slower = tree.beta_s_per_byte - ring.beta_s_per_byte
    where = (ring.alpha_s - tree.alpha_s) / slower if slower > 0 else float("inf")
    return Crossing(devices, from_microseconds(latency_us), ring, tree, max(where, 0.0))


def _show(settings: Settings) -> Reveal:
    devices, latency_us = int(settings["devices"]), float(settings["latency"])
    found = crossing(devices, latency_us)
    steps = round(found.tree.alpha_s / found.latency_s)
    return Reveal(
        found,
        (
            "A ring passes the buffer on in n - 1 steps, twice: many steps, but every port sends "
            "the least there is to send. A tree takes few steps and sends a little more.",
            f"Below {humanise_bytes(found.crosses_bytes)} the steps decide and the tree is ahead; "
            "above, the bytes decide and the ring is.",
        ),
        (
            Formula(
                "Ring",
                "2 (n - 1) latency + 2 (n - 1) / n · x / B",
                f"{2 * (devices - 1)} steps {humanise_seconds(found.ring.alpha_s)} + "
                f"{found.ring.beta_s_per_byte * from_gbps_bytes(PORT_GBPS):.4g} x / B",
                "Thakur, Rabenseifner and Gropp 2005",
            ),
            Formula(
                "Tree (double binary)",
                "2 log2(n) latency + 2 x / B",
                f"{steps} steps {humanise_seconds(found.tree.alpha_s)} + "
                f"{found.tree.beta_s_per_byte * from_gbps_bytes(PORT_GBPS):.4g} x / B",
                "Sanders, Speck and Träff 2009; NCCL's trees",
            ),
            Formula(
                "Where they cross",
                "x = (alpha_ring - alpha_tree) / (beta_tree - beta_ring)",
                f"({humanise_seconds(found.ring.alpha_s)} - "
                f"{humanise_seconds(found.tree.alpha_s)}) / "
                f"({(found.tree.beta_s_per_byte - found.ring.beta_s_per_byte):.3g} s/B) = "
                f"{humanise_bytes(found.crosses_bytes)}",
                "both lines equated",
            ),
        ),
    )


@cache
def _brief() -> Brief:
    devices, latency_us = ASKED
    found = crossing(devices, latency_us)
    where = found.crosses_bytes
    early = (found.ring.alpha_s - found.tree.alpha_s) / found.ring.beta_s_per_byte
    return Brief(
        Question(
            f"An all-reduce among {devices} devices on one switch, {PORT_GBPS:g} GB/s ports, "
            f"{latency_us} µs per step. From which size on is a ring faster than a tree?",
            "c",
            f"From {humanise_bytes(where)} on; below, the tree's few steps win.",
            (
                Choice("a", "Always: every port sends the least"),
                Choice("b", f"From about {humanise_bytes(early)} on"),
                Choice("c", f"From about {humanise_bytes(where)} on"),
                Choice("d", "Never: log n steps beat n steps"),
            ),
        ),
        Notes(
            15,
            f"About {humanise_bytes(where)}: {2 * (devices - 1)} steps against "
            f"{round(found.tree.alpha_s / found.latency_s)}, and "
            "2 (n - 1) / n against 2 buffers through each port.",
            (
                ("Always", "Leaves latency out."),
                (
                    humanise_bytes(early),
                    "Sets the steps that the tree saves against all the bytes. Both send "
                    "nearly the same; the ring saves one in n.",
                ),
                ("Never", "Leaves bandwidth out; gradients are gigabytes."),
            ),
            (
                "Double the devices: the crossing moves about fourfold. Why not twofold?",
                "Gradients of a 7B model, or activations of one micro-batch: which side are they "
                "on?",
                "What changes when the devices sit in two nodes? (Fabric page, collectives.)",
            ),
        ),
    )


COLLECTIVES = Lesson(
    "collectives",
    "Collectives",
    "Collectives on a ring and on a tree",
    "An all-reduce adds up what all devices hold and gives everyone the sum. It can run round a "
    f"ring or up and down a tree. One switch, {PORT_GBPS:g} GB/s (B) per port and direction.",
    (
        Control("devices", "Devices (n)", (4, 8, 16, 64, 256), ASKED[0], "In one group: 4 to 256."),
        Control("latency", "Latency, µs", (1, 2, 5, 20), ASKED[1], "Of one step: 1 to 20 µs."),
    ),
    _brief,
    _show,
)
