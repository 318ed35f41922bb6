"""What is installed runs on Linux, macOS and Windows: no source names what only some of them have.

`nest_studio.server.system` is where systems differ. Elsewhere such a name stands only where it is
asked for first: ``hasattr`` or ``getattr`` beside it, or a file that may be missing inside a
``try``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WHERE_SYSTEMS_DIFFER = "nest_studio/server/system.py"

MODULES = {
    "fcntl",
    "grp",
    "msvcrt",
    "nt",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "syslog",
    "termios",
    "tty",
    "winreg",
    "winsound",
}
NAMES = {
    "os": {
        "O_CLOEXEC",
        "O_DIRECTORY",
        "O_NOFOLLOW",
        "O_NONBLOCK",
        "O_SYNC",
        "WNOHANG",
        "chown",
        "confstr",
        "ctermid",
        "fchmod",
        "fchown",
        "fork",
        "forkpty",
        "getegid",
        "geteuid",
        "getgid",
        "getgroups",
        "getloadavg",
        "getpgid",
        "getpgrp",
        "getpriority",
        "getsid",
        "getuid",
        "initgroups",
        "killpg",
        "lchown",
        "lockf",
        "mkfifo",
        "mknod",
        "nice",
        "openpty",
        "pipe2",
        "popen",
        "posix_fadvise",
        "posix_fallocate",
        "posix_spawn",
        "pread",
        "pwrite",
        "sched_getaffinity",
        "sched_setaffinity",
        "sched_yield",
        "sendfile",
        "setegid",
        "seteuid",
        "setgid",
        "setpgid",
        "setpriority",
        "setsid",
        "setuid",
        "startfile",
        "statvfs",
        "sync",
        "sysconf",
        "system",
        "tcgetpgrp",
        "uname",
        "wait",
        "wait3",
        "wait4",
    },
    "signal": {
        "ITIMER_REAL",
        "SIGALRM",
        "SIGCHLD",
        "SIGCONT",
        "SIGHUP",
        "SIGKILL",
        "SIGPIPE",
        "SIGQUIT",
        "SIGSTOP",
        "SIGUSR1",
        "SIGUSR2",
        "SIGWINCH",
        "alarm",
        "pause",
        "pthread_kill",
        "pthread_sigmask",
        "setitimer",
        "siginterrupt",
        "sigwait",
    },
    "socket": {"AF_UNIX", "SO_REUSEADDR", "SO_REUSEPORT", "fromfd", "socketpair"},
    "time": {"CLOCK_BOOTTIME", "CLOCK_MONOTONIC", "CLOCK_REALTIME", "clock_gettime", "tzset"},
}
"""By module. `socket.SO_REUSEADDR` is everywhere, and on Windows takes another program's port;
shells (`os.system`, `os.popen`) are not alike anywhere."""

PLACES = re.compile(r"/(?:proc|sys|dev|tmp|etc|usr|var|bin|run)(?:/|$)|[A-Z]:\\")
DATES = re.compile(r"%[-#][a-zA-Z]")
STARTS_OF_PROCESSES = {"fork", "forkserver"}
TEXT_FILES = {"read_text", "write_text"}


def _sources() -> list[Path]:
    found = [ROOT / "app.py"]
    for folder in ("nest_core", "nest_studio", "pages"):
        found += sorted((ROOT / folder).rglob("*.py"))
    return [path for path in found if "node_modules" not in path.parts]


def _asked_for(tree: ast.AST) -> set[str]:
    """Names that a ``hasattr`` or a ``getattr`` with another value asks for."""
    return {
        node.args[1].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id, len(node.args)) in {("hasattr", 2), ("getattr", 3)}
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    }


def _may_be_missing(tree: ast.AST) -> set[ast.AST]:
    """What stands in a ``try`` that expects an OSError."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any("OSError" in ast.unparse(one.type) for one in node.handlers if one.type)
        for part in node.body
        for inner in ast.walk(part)
    }


def _notes(tree: ast.AST) -> set[ast.AST]:
    """Docstrings and other texts that nobody reads while the program runs."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _of_a_call(node: ast.Call) -> str | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else None
    if isinstance(node.func, ast.Name):
        name = node.func.id
    given = {one.arg for one in node.keywords}
    if name == "open" and isinstance(node.func, ast.Name):
        mode = ast.unparse(node.args[1]) if len(node.args) > 1 else "'r'"
        # A mode that is not written out is checked where it is typed.
        if re.fullmatch(r"'[^b]*'", mode) and "encoding" not in given:
            return "a text file without its encoding"
    if (
        name in TEXT_FILES
        and isinstance(node.func, ast.Attribute)
        and "encoding" not in given
        and len(node.args) < (1 if name == "read_text" else 2)
    ):
        return "a text file without its encoding"
    if name == "get_context" and any(
        isinstance(one, ast.Constant) and one.value in STARTS_OF_PROCESSES for one in node.args
    ):
        return "a process that is forked"
    shell = next((one.value for one in node.keywords if one.arg == "shell"), None)
    if shell is not None and ast.unparse(shell) != "False":
        return "a shell"
    return None


def not_everywhere(source: str) -> Iterator[str]:
    """What a source names that not every system has."""
    tree = ast.parse(source)
    asked, missing, notes = _asked_for(tree), _may_be_missing(tree), _notes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from sorted(MODULES & {one.name for one in node.names})
        elif isinstance(node, ast.ImportFrom):
            names = {one.name for one in node.names}
            yield from sorted({node.module} & MODULES)
            yield from sorted(NAMES.get(node.module or "", set()) & names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NAMES.get(node.value.id, ()) and node.attr not in asked:
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Call):
            if found := _of_a_call(node):
                yield found
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in notes
            and ((PLACES.match(node.value) and node not in missing) or DATES.search(node.value))
        ):
            yield repr(node.value)


@pytest.mark.check
def test_no_source_names_what_only_some_systems_have():
    sources = _sources()
    assert len(sources) > 300
    found = {
        path.relative_to(ROOT).as_posix(): list(not_everywhere(path.read_text(encoding="utf-8")))
        for path in sources
        if path.relative_to(ROOT).as_posix() != WHERE_SYSTEMS_DIFFER
    }
    assert not {name: names for name, names in found.items() if names}


@pytest.mark.parametrize(
    "source",
    [
        "import resource",
        "from fcntl import flock",
        "import os\nos.fork()",
        "from os import nice",
        "import os\nif os.geteuid() == 0: pass",
        "import signal\nsignal.signal(signal.SIGKILL, None)",
        "import socket\nprobe.setsockopt(1, socket.SO_REUSEADDR, 1)",
        "open('/proc/meminfo', encoding='utf-8')",
        "path = '/tmp/nest.db'",
        "multiprocessing.get_context('fork')",
        "subprocess.run('ls', shell=True)",
        "now.strftime('%-d %B')",
        "f'{now:%-d}'",
        "path.read_text()",
        "path.write_text(text)",
        "open(path)",
        "open(path, 'w')",
    ],
)
def test_such_a_name_would_be_found(source):
    assert len(list(not_everywhere(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import os\nif hasattr(os, 'geteuid') and os.geteuid() == 0: pass",
        "import os\nflag = getattr(os, 'O_NONBLOCK', 0)",
        "try:\n    open('/proc/cpuinfo', encoding='utf-8')\nexcept OSError:\n    pass",
        '"""Reads /proc nowhere, `os.fork` neither."""',
        "open(path, 'rb')",
        "path.read_text('utf-8')",
        "path.write_text(text, encoding='utf-8')",
        "name = '/processes'",
    ],
)
def test_what_is_asked_for_first_may_stand(source):
    assert not list(not_everywhere(source))
