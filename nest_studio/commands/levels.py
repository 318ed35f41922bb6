"""``nest-studio levels``: the levels that a fabric collapses into."""

from __future__ import annotations

from typing import Annotated

import typer

from nest_studio.commands.output import JsonFlag, show

__all__ = ["levels"]


def levels(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    scenario: Annotated[
        str | None,
        typer.Option(help="Scenario preset or file to plan on it, for level-wise cost matrices."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the levels of a fabric, innermost first, and a scenario's level-wise cost matrices."""
    import nest_core as nest

    show(nest.levels(fabric, scenario), as_json)
