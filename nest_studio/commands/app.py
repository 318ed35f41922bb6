"""``nest-studio app``: serve the studio."""

import errno
import os
import re
import runpy
import signal
import socket
import sys
from typing import Annotated

import typer

from nest_core.documents import InputError, require
from nest_core.teaching.course import LESSONS_VARIABLE
from nest_studio.jobs.kernels import build_kernels
from nest_studio.jobs.workers import GIB, MEMORY_VARIABLE, MINUTES_VARIABLE, USUAL
from nest_studio.paths import app_script
from nest_studio.server.guard import PUBLIC_VARIABLE, http_address, public_addresses
from nest_studio.server.system import PORT_OPTION

__all__ = ["app"]

FIRST_PORT = 8501
PORTS_TRIED = 100


def app(
    port: Annotated[
        int | None, typer.Option(help=f"Port; the first free one from {FIRST_PORT} if left out.")
    ] = None,
    address: Annotated[str, typer.Option(help="Address to listen on.")] = "localhost",
    headless: Annotated[bool, typer.Option("--headless", help="Open no browser.")] = False,
    prefix: Annotated[
        str, typer.Option(help="Path under which a proxy in front serves it, as in /nest.")
    ] = "",
    public: Annotated[
        str,
        typer.Option(
            envvar=PUBLIC_VARIABLE,
            help="Address at which visitors reach it, as https://studio.example.org; "
            "several between blanks.",
        ),
    ] = "",
    lessons: Annotated[
        str,
        typer.Option(envvar=LESSONS_VARIABLE, help="Folder of a teacher's own lesson files."),
    ] = "",
    request_minutes: Annotated[
        float,
        typer.Option(
            envvar=MINUTES_VARIABLE, min=0.1, max=1e5, help="What a visitor's request may take."
        ),
    ] = USUAL.seconds / 60,
    request_gib: Annotated[
        float,
        typer.Option(
            "--request-GiB",
            envvar=MEMORY_VARIABLE,
            min=0.1,
            max=1e5,
            help="Memory that a visitor's request may take.",
        ),
    ] = USUAL.memory_bytes / GIB,
) -> None:
    """Open the studio in the browser."""
    chosen = _free_port(address) if port is None else _given_port(address, port)
    path = _path(prefix)
    public_addresses(public)
    # The app reads them, however it was started.
    os.environ[PUBLIC_VARIABLE] = public
    os.environ[LESSONS_VARIABLE] = _folder(lessons)
    os.environ[MINUTES_VARIABLE] = str(request_minutes)
    os.environ[MEMORY_VARIABLE] = str(request_gib)
    # The server stops by itself and then hands the signal on, which would end this process before
    # its workers have been put away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    build_kernels()
    where = http_address(address, chosen, path)
    print(f"Nest Studio: {where} (stop with Ctrl-C)", file=sys.stderr, flush=True)
    sys.argv = [str(app_script())]  # Streamlit reads the settings beside it
    runpy.run_path(str(app_script()), run_name="app")["app"].run(
        config={
            "server.address": address,
            "server.port": chosen,
            "server.baseUrlPath": path,
            # Streamlit's own greeting asks a public service for this machine's address.
            "logger.hideWelcomeMessage": True,
            # Watching sources is for who edits pages: `streamlit run app.py` does it.
            "server.fileWatcherType": "none",
            **({"server.headless": True} if headless else {}),
        }
    )


def _folder(lessons: str) -> str:
    """Return a folder's whole path; workers may start elsewhere."""
    require(
        not lessons or os.path.isdir(lessons),
        "--lessons",
        "must be a folder",
        lessons,
        "name one, or leave it out",
    )
    return os.path.abspath(lessons) if lessons else ""


def _path(prefix: str) -> str:
    """Return a prefix without slashes at its ends."""
    path = prefix.strip("/")
    # Browsers take names of dots alone for ways up, and ask for another path.
    require(
        all(re.fullmatch(r"(?!\.+$)[A-Za-z0-9_.~-]+", part) for part in path.split("/") if path),
        "--prefix",
        "must be names of letters, digits, dots and dashes between slashes",
        prefix,
        "give a path like /nest",
    )
    return path


def _given_port(address: str, port: int) -> int:
    require(1 <= port <= 65535, "--port", "must lie between 1 and 65535", port, "give another port")
    refusal = _refusal(address, port)
    require(
        refusal != errno.EADDRINUSE,
        "--port",
        "must be free",
        port,
        "stop what uses it or give another port",
    )
    require(
        refusal != errno.EACCES,
        "--port",
        "must be one this user may open",
        port,
        "give a port from 1024 upwards",
    )
    return port


def _free_port(address: str) -> int:
    last = FIRST_PORT + PORTS_TRIED - 1
    for port in range(FIRST_PORT, last + 1):
        if _refusal(address, port) is None:
            return port
    raise InputError(
        "--port", f"must be given when {FIRST_PORT} to {last} are taken", None, "give a free one"
    )


def _refusal(address: str, port: int) -> int | None:
    """Return the error number with which the system refuses the port, or None if it grants it."""
    require(
        address.strip(),  # else the system would listen on every address
        "--address",
        "must be a host name or address",
        address,
        "try localhost",
    )
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, PORT_OPTION, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return error.errno
            raise InputError(
                "--address", "must be one of this machine's addresses", address, "try localhost"
            ) from error
        except UnicodeError as error:  # a name that no name service takes
            raise InputError(
                "--address", "must be a host name or address", address, "try localhost"
            ) from error
    return None
