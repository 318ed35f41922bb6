"""What is not known of the network between nodes: one catalogue.

``presets/network/spread.toml`` holds a spread, with its source, for the share of the line rate that
a transport reaches, for incast, for uneven uplinks under hashing and adaptive routing, for switches
that reduce, and for what hides behind compute. Everything is a factor with a log-normal spread.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nest_core.documents import kept_per_edition, load_toml, preset_path, require
from nest_core.hardware.collectives import Curve

__all__ = [
    "CENTRE",
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
        of_curve = (entry for entry in self.transports if curve and curve.name in entry.curves)
        return next(of_curve, self.transport("unknown"))


@kept_per_edition(1)
def load_spread() -> TransportSpread:
    """Return the catalogue of ``presets/network/spread.toml``."""
    document = load_toml(preset_path("network", "spread.toml"))
    transports = tuple(
        Transport(name, entry["share"], entry["spread"], tuple(entry["curves"]))
        for name, entry in document["reach"].items()
    )
    return TransportSpread(transports, tuple(_leaves(document)))


def _leaves(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, float]]:
    """Spreads by dotted name; those of transports stand with them."""
    for key, value in document.items():
        if isinstance(value, Mapping) and key != "reach":
            if "spread" in value:
                yield (above + key, float(value["spread"]))
            else:
                yield from _leaves(value, f"{above}{key}.")
