"""The command line: which commands there are, and how they end.

Exit code 0: done; 2: bad input, one sentence on standard error; 1: a defect, which
shows its traceback. Commands live in `nest_studio.commands`, a module for each subject; a module
imports typer and what all commands share, and the core only inside its command, so that
a short command stays short.
"""

import contextlib
import errno
import gc
import io
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TextIO

import typer

from nest_core.documents.errors import InputError, shortened
from nest_studio.commands.output import unprinted

__all__ = ["console", "execute", "main", "run"]

COMMANDS = {
    "app": "app",
    "plan": "plans",
    "mix": "mixes",
    "price": "plans",
    "place": "plans",
    "simulate": "plans",
    "diff": "plans",
    "solve": "lessons",
    "levels": "fabrics",
    "collective": "fabrics",
    "traffic": "fabrics",
    "bom": "bills",
    "bill": "bills",
    "compare": "bills",
    "cables": "bills",
    "accept": "clusters",
    "convert": "fabrics",
    "inspect": "clusters",
    "memory": "plans",
    "compiled": "plans",
    "goodput": "plans",
    "export": "plans",
    "paper": "lessons",
    "exercise": "lessons",
    "lesson": "lessons",
    "profile": "models",
    "trace": "models",
    "calibrate": "clusters",
    "next": "plans",
    "sweep": "studies",
    "ratios": "studies",
    "design": "studies",
}
"""By command, in the order of the help: the module of `nest_studio.commands` with its function."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST = 10_000
"""Characters of a usage error that are looked at."""


def _root() -> None:
    """Keeps the commands' names even where there is only one of them."""


def _sentence(message: str, name: str) -> str:
    """A usage error as one sentence: typer writes several, some over several lines."""
    words = message[:_MOST].replace("Value error, ", "").split()  # what of typer found it
    first, *rest = (
        shortened(" ".join(shortened(word, 60) for word in words), 400).rstrip(".").split(". ")
    )
    joined = "; ".join([first, *(part[:1].lower() + part[1:] for part in rest)])
    return f"{joined} (see {name} --help)."


@cache
def _program(*names: str) -> Callable[..., int | None]:
    """Return the program of some commands; put together once, for `get_command` takes long."""
    cli = typer.Typer(
        help="Plan distributed training on a fabric: exact plans beside every baseline.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    cli.callback()(_root)
    for name in names:
        cli.command(name)(getattr(import_module(f"nest_studio.commands.{COMMANDS[name]}"), name))
    return typer.main.get_command(cli)


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; other commands are not even read."""
    names = arguments[:1] if {*arguments[:1]} & COMMANDS.keys() else COMMANDS
    return execute(_program(*names), arguments, "nest-studio")


def execute(command: Callable[..., int | None], arguments: Sequence[str], name: str) -> int:
    """Carry out one command line of a program, here `name`, and return its exit code."""
    try:
        code = command(args=list(arguments), prog_name=name, standalone_mode=False)
    except InputError as error:
        return _refused(str(error))
    except typer.TyperException as error:
        return _refused(_sentence(error.format_message(), name))
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
    console(run)


def console(program: Callable[[Sequence[str]], int]) -> None:
    """Run a program on the words of the command line, and exit with its code."""
    # A command leaves next to no garbage in cycles; looking for it seldom saves 5 % of `plan`.
    gc.set_threshold(100_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names may hold what its encoding lacks
            stream.reconfigure(errors="backslashreplace")
    code = program(sys.argv[1:])
    # The interpreter would try to print once more, and complain about it.
    sys.stdout = sys.stdout if _ends(sys.stdout) else None
    sys.stderr = sys.stderr if _ends(sys.stderr) else None
    # Nor need the interpreter search all that is left before it lets go, which takes 0.3 s.
    gc.freeze()
    sys.exit(code)
