"""``nest-studio levels``: the levels that a fabric collapses into."""

from __future__ import annotations

from typing import Annotated

import typer

from nest_studio.commands.output import JsonFlag, show

__all__ = ["levels"]


def levels(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    as_json: JsonFlag = False,
) -> None:
    """Show the levels of a fabric, innermost first."""
    import nest_core as nest

    show(nest.levels(fabric), as_json)
