"""What is not known of the network between nodes: one catalogue, and draws from it.

``presets/network/spread.toml`` holds a spread, with its source, for the share of the line rate that
a transport reaches, for incast, for uneven uplinks under hashing and adaptive routing, for switches
that reduce, and for what hides behind compute. Everything is a factor with a log-normal spread.

A `NetworkDraw` is one state of the world: it answers for every network, and two that share a
transport or a way of routing get the same factor from it, so that what they share cancels in the
ratio of two times and what differs does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from nest_core.documents.errors import require
from nest_core.documents.presets import kept_per_edition, load_toml, preset_path
from nest_core.hardware.collectives import Curve

__all__ = [
    "CENTRE",
    "NetworkDraw",
    "NetworkParameters",
    "Transport",
    "TransportSpread",
    "load_spread",
]


@dataclass(frozen=True, slots=True)
class Transport:
    """What carries bytes between nodes.

    Parameters
    ----------
    name : str
    share : float
        Of the line rate that its fastest protocol reaches.
    spread : float
        Standard deviation of its logarithm.
    curves : tuple of str
        Curves of ``presets/collectives`` that are of this transport.
    """

    name: str
    share: float
    spread: float
    curves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NetworkParameters:
    """Factors on what costs say of a network; `CENTRE` changes nothing.

    Parameters
    ----------
    reach : float
        On the share of the line rate between nodes.
    incast : float
        On the same of all-to-alls, beside it.
    uplinks : float
        On the capacity of links above the first switches.
    reduction : float
        On what switches that reduce reach.
    overlap_tp, overlap_pp, overlap_dp : float
        On the shares that hide behind compute, which stay at most 1.
    """

    reach: float = 1.0
    incast: float = 1.0
    uplinks: float = 1.0
    reduction: float = 1.0
    overlap_tp: float = 1.0
    overlap_pp: float = 1.0
    overlap_dp: float = 1.0


CENTRE = NetworkParameters()


@dataclass(frozen=True, slots=True)
class TransportSpread:
    """The catalogue.

    Parameters
    ----------
    transports : tuple of Transport
    spreads : tuple of (str, float)
        Standard deviations of logarithms by name: incast, reduction, ``uplinks.adaptive``,
        ``overlap.tp``, ...
    """

    transports: tuple[Transport, ...]
    spreads: tuple[tuple[str, float], ...]

    def draw(self, rng: np.random.Generator) -> NetworkDraw:
        """One state of the world."""
        return NetworkDraw(self, int(rng.integers(2**62)))

    def transport(self, name: str) -> Transport:
        """Return the transport of a name.

        Raises
        ------
        InputError
        """
        transports = {entry.name: entry for entry in self.transports}
        require(
            name in transports,
            "transport",
            "must be one of the catalogue",
            name,
            "pick " + ", ".join(transports),
        )
        return transports[name]

    def of_curve(self, curve: Curve | None) -> Transport:
        """Return the transport that a curve between nodes is of."""
        for entry in self.transports:
            if curve is not None and curve.name in entry.curves:
                return entry
        return self.transport("unknown")


@dataclass(frozen=True, slots=True)
class NetworkDraw:
    """One draw of everything in the catalogue.

    Parameters
    ----------
    spread : TransportSpread
    seed : int
    """

    spread: TransportSpread
    seed: int

    def factor(self, name: str, spread: float) -> float:
        """Return a log-normal factor; equal names get equal factors from one draw."""
        rng = np.random.default_rng((self.seed, crc32(name.encode())))
        return math.exp(spread * float(rng.standard_normal()))

    def parameters(
        self, transport: Transport, routing: str, separately: str = ""
    ) -> NetworkParameters:
        """Factors of one network around what costs say of it.

        Parameters
        ----------
        transport : Transport
        routing : {"adaptive", "ecmp"}
        separately : str
            Networks that differ here share no draw of the transport.
        """
        spreads = dict(self.spread.spreads)

        def drawn(name: str) -> float:
            return self.factor(name, spreads[name])

        return NetworkParameters(
            reach=self.factor(f"reach.{transport.name}{separately}", transport.spread),
            incast=drawn("incast"),
            uplinks=drawn(f"uplinks.{routing}"),
            reduction=drawn("reduction"),
            overlap_tp=drawn("overlap.tp"),
            overlap_pp=drawn("overlap.pp"),
            overlap_dp=drawn("overlap.dp"),
        )


@kept_per_edition(1)
def load_spread() -> TransportSpread:
    """Return the catalogue of ``presets/network/spread.toml``."""
    document = load_toml(preset_path("network", "spread.toml"))
    transports = tuple(
        Transport(name, entry["share"], entry["spread"], tuple(entry["curves"]))
        for name, entry in document["reach"].items()
    )
    return TransportSpread(transports, tuple(_leaves(document)))


def _leaves(document: Mapping[str, object], above: str = "") -> list[tuple[str, float]]:
    """Spreads by dotted name; those of transports stand with them."""
    leaves: list[tuple[str, float]] = []
    for key, value in document.items():
        if isinstance(value, Mapping) and key != "reach":
            if "spread" in value:
                leaves.append((above + key, float(value["spread"])))
            else:
                leaves += _leaves(value, f"{above}{key}.")
    return leaves
