"""The levels that a fabric collapses into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nest_core.api.display import network_html
from nest_core.api.scenario import Named, load_fabric
from nest_core.formats.exchange import caveats
from nest_core.network import Network, collapse
from nest_core.network.error import collapse_error
from nest_core.text import plain, table
from nest_core.topology import Fabric

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

__all__ = ["Levels", "levels"]


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The levels that a fabric collapses into, innermost first.

    Parameters
    ----------
    network : Network
    """

    network: Network

    def to_json(self) -> dict[str, Any]:
        """The fields of ``nest-studio levels --json``."""
        return {
            "devices": self.network.devices,
            "levels": [
                {
                    "name": level.name,
                    "kind": level.kind,
                    "group_size": level.group_size if level.kind == "nested" else None,
                    "groups": level.groups,
                    "links": level.links,
                    "link_bandwidth_Bps": level.link_bandwidth_Bps,
                    "bandwidth_Bps": level.bandwidth_Bps,
                    "latency_s": level.latency_s,
                }
                for level in self.network.levels
            ],
            "collapse_error": collapse_error(self.network),
            "notes": caveats(self.network),
        }

    def to_frame(self) -> pd.DataFrame:
        """One row per level, in SI units."""
        import pandas as pd

        return pd.DataFrame(self.to_json()["levels"])

    def plot(self) -> go.Figure:
        """Which pairs of devices communicate on which level."""
        from nest_core.figures.levels import level_figure

        return level_figure(self.network).titled()

    def __str__(self) -> str:
        return _text(plain(self.to_json()))

    def _repr_html_(self) -> str:
        return network_html(self.network)


def levels(fabric: Fabric | Named) -> Levels:
    """Collapse a fabric into levels: classes of pairs of devices that communicate alike.

    Parameters
    ----------
    fabric : Fabric, str, Path or mapping
        As `load_fabric` returns or takes it.

    Raises
    ------
    InputError
        If it is no fabric, or devices of it have no path between them.

    Examples
    --------
    >>> levels("h100-spine-leaf-1024").to_frame()["name"].tolist()
    ['node', 'leaf', 'spine']
    """
    return Levels(collapse(fabric if isinstance(fabric, Fabric) else load_fabric(fabric)))


def _text(fields: Mapping[str, Any]) -> str:
    return (
        f"{fields['devices']:,} devices\n\n"
        + table(
            ["level", "kind", "group size", "groups", "links", "GB/s per device", "latency, us"],
            [
                [
                    level["name"],
                    level["kind"],
                    level["group_size"],
                    level["groups"],
                    level["links"],
                    f"{level['bandwidth_Bps'] / 1e9:.4g}",
                    f"{level['latency_s'] * 1e6:.4g}",
                ]
                for level in fields["levels"]
            ],
        )
        + (
            f"\n\ncollapse error {fields['collapse_error']:.3g}: levels alone against the links,"
            "\nworst relative difference over the planner's patterns; plans are priced on the links"
        )
        + "".join(f"\n! {note}" for note in fields["notes"])
    )
