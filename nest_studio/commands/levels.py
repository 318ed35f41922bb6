"""``nest-studio levels``: the levels that a fabric collapses into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from nest_studio.commands.output import JsonFlag, emit, table

__all__ = ["levels"]


def levels(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    as_json: JsonFlag = False,
) -> None:
    """Show the levels of a fabric, innermost first."""
    from nest_core.network import collapse
    from nest_core.network.error import collapse_error
    from nest_core.network.exchange import caveats
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    network = collapse(specification)
    fields = {
        "devices": network.devices,
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
            for level in network.levels
        ],
        "collapse_error": collapse_error(network),
        "notes": caveats(network),
    }
    emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
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
