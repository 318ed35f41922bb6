"""Lesson 5, collectives on a ring and on a tree: latency against bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from nest_core.documents.units import (
    from_gbps_bytes,
    from_microseconds,
    humanise_bytes,
    humanise_seconds,
)
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import FloatArray, collapse
from nest_core.network.collective import collective
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings

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


def _asked(given: Settings) -> Crossing:
    return crossing(int(given["devices"]), float(given["latency_us"]))


def _early(found: Crossing) -> float:
    """Where the steps that the tree saves would weigh as much as all of the ring's bytes."""
    return (found.ring.alpha_s - found.tree.alpha_s) / found.ring.beta_s_per_byte


COLLECTIVES = Figure(
    "collectives",
    (
        Control("devices", "Devices (n)", (4, 8, 16, 64, 256), ASKED[0], "In one group: 4 to 256."),
        Control("latency", "Latency, µs", (1, 2, 5, 20), ASKED[1], "Of one step: 1 to 20 µs."),
    ),
    _show,
    {
        "devices": Given(ASKED[0], 2, 4096),
        "latency_us": Given(float(ASKED[1]), 0.01, 1000),
        "size_MB": Given(100.0, 1e-3, 1e6),
    },
    {
        "port_GBps": lambda given: PORT_GBPS,
        "crosses": lambda given: _asked(given).crosses_bytes,
        "early": lambda given: _early(_asked(given)),
        "ring_steps": lambda given: 2 * (int(given["devices"]) - 1),
        "tree_steps": lambda given: round(_asked(given).tree.alpha_s / _asked(given).latency_s),
        "ring": lambda given: float(_asked(given).ring.seconds(1e6 * float(given["size_MB"]))),
        "tree": lambda given: float(_asked(given).tree.seconds(1e6 * float(given["size_MB"]))),
    },
)
