"""The command ``mix``: jobs that share a fabric."""

from typing import Annotated

import typer

import nest_core as nest
from nest_studio.commands.output import JsonFlag, show
from nest_studio.jobs.kernels import build_kernels

__all__ = ["mix"]


def mix(
    file: Annotated[str, typer.Argument(help="Mix preset or file (TOML).")],
    as_json: JsonFlag = False,
) -> None:
    """Play jobs that share a fabric: who slows whom, and on which links; or a population."""
    build_kernels()
    show(nest.mix(file), as_json)
