"""The command line of the validation; the product's rules of ending hold (`nest_studio.cli`).

``python -m benchmarks.validation TARGET [FILE] [--json]`` prints predictions beside measurements
(`benchmarks.validation.validate`), ``python -m benchmarks.validation regenerate TARGET [--fit]``
writes what the project keeps of them (`benchmarks.validation.regenerate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

from nest_studio.cli import console, execute

__all__ = ["run"]

NAME = "python -m benchmarks.validation"


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code."""
    command = "regenerate" if arguments[:1] == ["regenerate"] else "validate"
    module = import_module(f"benchmarks.validation.{command}")
    application = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.command()(getattr(module, command))
    if command == "regenerate":
        return execute(typer.main.get_command(application), arguments[1:], f"{NAME} regenerate")
    return execute(typer.main.get_command(application), arguments, NAME)


if __name__ == "__main__":
    console(run)
