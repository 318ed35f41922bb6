"""The command line: which commands there are, and how they end.

Exit code 0: done; 2: bad input, one sentence on standard error; 1: a defect, which
shows its traceback. Commands live in `nest_studio.commands`, one module each; a module
imports typer and what all commands share, and the core only inside its command, so that
a short command stays short.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import sys
from collections.abc import Sequence
from typing import TextIO

import typer

from nest_core.errors import InputError, shortened
from nest_studio.commands.app import app as app_command
from nest_studio.commands.bom import bom as bom_command
from nest_studio.commands.collective import collective as collective_command
from nest_studio.commands.convert import convert as convert_command
from nest_studio.commands.export import export as export_command
from nest_studio.commands.levels import levels as levels_command
from nest_studio.commands.memory import memory as memory_command
from nest_studio.commands.output import unprinted
from nest_studio.commands.paper import paper as paper_command
from nest_studio.commands.place import place as place_command
from nest_studio.commands.plan import plan as plan_command
from nest_studio.commands.price import price as price_command
from nest_studio.commands.profile import profile as profile_command
from nest_studio.commands.regenerate import regenerate as regenerate_command
from nest_studio.commands.solve import solve as solve_command
from nest_studio.commands.trace import trace as trace_command
from nest_studio.commands.traffic import traffic as traffic_command
from nest_studio.commands.validate import validate as validate_command

__all__ = ["main", "run"]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST = 10_000
"""Characters of a usage error that are looked at."""

cli = typer.Typer(
    help="Plan distributed training on a fabric: exact plans beside every baseline.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("app")(app_command)
cli.command("plan")(plan_command)
cli.command("price")(price_command)
cli.command("place")(place_command)
cli.command("solve")(solve_command)
cli.command("levels")(levels_command)
cli.command("collective")(collective_command)
cli.command("traffic")(traffic_command)
cli.command("bom")(bom_command)
cli.command("convert")(convert_command)
cli.command("memory")(memory_command)
cli.command("export")(export_command)
cli.command("paper")(paper_command)
cli.command("profile")(profile_command)
cli.command("trace")(trace_command)
cli.command("validate")(validate_command)
cli.command("regenerate")(regenerate_command)


@cli.callback()
def _root() -> None:
    """Keeps the commands' names even while there is only one of them."""


def _sentence(message: str) -> str:
    """A usage error as one sentence: typer writes several, some over several lines."""
    short = " ".join(shortened(word, 60) for word in message[:_MOST].split())
    first, *rest = shortened(short, 400).rstrip(".").split(". ")
    joined = "; ".join([first, *(part[:1].lower() + part[1:] for part in rest)])
    return f"{joined} (see nest-studio --help)."


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code."""
    try:
        code = cli(args=list(arguments), prog_name="nest-studio", standalone_mode=False)
    except InputError as error:
        return _refused(str(error))
    except typer.TyperException as error:
        return _refused(_sentence(error.format_message()))
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        return _refused(str(unprinted(error.strerror)))  # the help, which typer prints itself
    return code or 0


def _refused(sentence: str) -> int:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # nowhere is left to say that it cannot be said
            print(sentence, file=sys.stderr, flush=True)
    return 2


def _ends(stream: TextIO | None) -> bool:
    """Whether what was printed to a stream has arrived."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        return False
    return True


def main() -> None:
    """The console script."""
    # A command leaves next to no garbage in cycles; looking for it seldom saves 5 % of `plan`.
    gc.set_threshold(100_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names may hold what its encoding lacks
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    # The interpreter would try to print once more, and complain about it.
    sys.stdout = sys.stdout if _ends(sys.stdout) else None
    sys.stderr = sys.stderr if _ends(sys.stderr) else None
    # Nor need the interpreter search all that is left before it lets go, which takes 0.3 s.
    gc.freeze()
    sys.exit(code)
