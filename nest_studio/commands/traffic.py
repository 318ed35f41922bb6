"""``nest-studio traffic``: what a placement's traffic takes when all of it runs at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["traffic"]


def traffic(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    pattern: Annotated[str, typer.Option(help="dp_ring, dp_hier or pp.")],
    replica: Annotated[int, typer.Option(help="Devices of one replica, contiguous.")],
    size: Annotated[float, typer.Option("--bytes", help="A device's message (pp) or buffer (dp).")],
    stage: Annotated[
        int | None,
        typer.Option(help="Devices of one stage; those of a replica: all replicas in one stage."),
    ] = None,
    directions: Annotated[str, typer.Option(help="fwd, or fwdbwd: both ways at once.")] = "fwd",
    as_json: JsonFlag = False,
) -> None:
    """Time of data- or pipeline-parallel traffic, with contention and without."""
    from nest_core.network import collapse
    from nest_core.network.patterns import Direction, Pattern
    from nest_core.network.patterns import traffic as count
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    result = count(
        collapse(specification),
        cast(Pattern, pattern),
        replica,
        stage,
        size,
        cast(Direction, directions),
        specification,
    )
    fields = {
        "time_s": result.time_s,
        "explicit_time_s": result.explicit_time_s,
        "contention_free_s": result.contention_free_s,
        "busiest_links": [
            {"name": link.name, "load_bytes": link.load_bytes, "capacity_Bps": link.capacity_Bps}
            for link in result.busiest
        ],
    }
    emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
    explicit = fields["explicit_time_s"]
    lines = [
        f"{fields['time_s']:.4g} s with contention, {fields['contention_free_s']:.4g} s without",
        "not counted on explicit links (too many devices, or a twisted torus)"
        if explicit is None
        else f"{explicit:.4g} s counted on explicit links",
    ]
    if fields["busiest_links"]:
        rows = [
            [link["name"], f"{link['load_bytes'] / 1e9:.4g}", f"{link['capacity_Bps'] / 1e9:.4g}"]
            for link in fields["busiest_links"]
        ]
        lines += ["", table(["busiest link", "GB", "GB/s"], rows)]
    return "\n".join(lines)
