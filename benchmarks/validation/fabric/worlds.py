"""Draws of what is not known of networks: one state of the world, the same for two networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from nest_core.hardware.network_spread import (
    NetworkParameters,
    Transport,
    TransportSpread,
    load_spread,
)

__all__ = ["NetworkDraw", "drawn_worlds"]


def drawn_worlds(count: int, seed: int) -> list[NetworkDraw]:
    """Return so many draws from the shipped catalogue."""
    rng, spread = np.random.default_rng(seed), load_spread()
    return [NetworkDraw(spread, int(rng.integers(2**62))) for _ in range(count)]


@dataclass(frozen=True, slots=True)
class NetworkDraw:
    """One draw of everything in the catalogue.

    It answers for every network, and two that share a transport or a way of routing get the same
    factor from it, so that what they share cancels in the ratio of two times and what differs does
    not.

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
