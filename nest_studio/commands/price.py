"""``nest-studio price``: what a given plan would take, beside the best one and term by term."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nest_core.documents.overrides import settings
from nest_studio.commands.output import JsonFlag, show
from nest_studio.commands.plan import Sets

__all__ = ["price"]


def price(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    plan: Annotated[str, typer.Option(help="JSON file, dp=8,tp=4,… or a Megatron-LM command.")],
    placement: Annotated[
        Path | None, typer.Option(help="Its rank mapping: CSV or JSON, see place.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Price a plan on a scenario, term by term beside the best plan."""
    import nest_core as nest

    show(nest.price(nest.load(scenario, settings(sets or ())), plan, placement=placement), as_json)
