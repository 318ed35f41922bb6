"""Around the script: the HTML in which Streamlit's front end starts, what is done before the first
visitor, and what one sees of a defect.

Streamlit serves one shell at every address. At a page's its front end takes the address for the
root of the app, asks for the server below it, and learns from two answers "not found" that the
root lies above: each a line of error in the browser's console. It asks nothing amiss when
``window.__streamlit`` names the root.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
import typer
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route
from streamlit import config, file_util
from streamlit.web.server import server_util

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_studio.jobs.tasks.requests import import_tasks
from nest_studio.jobs.waiting import job_queue
from nest_studio.server.frames import Frames
from nest_studio.server.guard import PUBLIC_VARIABLE, Guard, Names, beyond_this_machine
from nest_studio.server.readiness import import_everything

__all__ = ["guards", "opened", "page_routes", "say_defect", "with_root"]

# Assets are named relative to the address as well, so this is where they come from too,
# under any prefix and behind any proxy.
_ROOT = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href}</script>'
_HEAD = "<head>"
_INLINE = re.compile(r"<script>(.*?)</script>", re.S)
_DEFECT = (
    "This part of the page failed, which is a defect of the studio and not of what you entered; "
    "the log of the server says what happened."
)


def with_root(shell: str) -> str:
    """A shell that tells the front end where the app's root is.

    Parameters
    ----------
    shell : str
        Streamlit's own.

    Raises
    ------
    ValueError
        If the shell has no head, or more than one.
    """
    if shell.count(_HEAD) != 1:
        raise ValueError("Streamlit's index.html has no single <head> to write into")
    return shell.replace(_HEAD, _HEAD + _ROOT)


def page_routes(names: Iterable[str], home: str) -> list[Route]:
    """Routes that answer pages' addresses, below the prefix that the server is told.

    Parameters
    ----------
    names : iterable of str
        Last parts of the addresses.
    home : str
        The one that Streamlit knows at the root only; it is led there, with what it asks for.
    """
    shell = _shell()

    def answer(_: Request) -> HTMLResponse:
        return HTMLResponse(shell, headers={"Cache-Control": "no-cache"})

    def lead(request: Request) -> RedirectResponse:
        query = request.url.query
        return RedirectResponse(f"./?{query}" if query else "./")

    prefix = str(config.get_option("server.baseUrlPath")).strip("/")
    above = f"/{prefix}" if prefix else ""
    return [Route(f"{above}/{name}", lead if name == home else answer) for name in names]


def guards() -> list[Middleware]:
    """What stands before every route, by Streamlit's settings and `PUBLIC_VARIABLE`."""
    names = Names.of(
        _address(),
        bool(config.get_option("server.sslCertFile")),
        os.environ.get(PUBLIC_VARIABLE, ""),
    )
    return [
        Middleware(Guard, names=names, scripts=[_digest(one) for one in _INLINE.findall(_shell())]),
        Middleware(Frames),
    ]


def say_defect(error: Exception) -> bool:
    """Show one sentence for what no page caught; Streamlit has written the traceback to the log."""
    st.error(as_markdown(error) if isinstance(error, InputError) else _DEFECT)
    return True


@asynccontextmanager
async def opened(_: object) -> AsyncGenerator[None]:
    """Make ready for visitors, and open the person's browser, unless told to open none."""
    import_everything()
    job_queue().start(import_tasks)
    if beyond_this_machine(_address()):
        print(
            f"Warning: whoever can reach {_address()} port {config.get_option('server.port')} can "
            "read, change and delete every notebook here, for the studio has no accounts "
            "(docs/security.md).",
            file=sys.stderr,
            flush=True,
        )
    if not config.get_option("server.headless"):
        host = server_util.get_display_address(config.get_option("server.address") or "localhost")
        # The socket listens already; its first visitor waits for what is still being started.
        asyncio.get_running_loop().run_in_executor(None, typer.launch, server_util.get_url(host))
    yield


def _address() -> str:
    """Where the server listens; Streamlit's own choice is every address."""
    return str(config.get_option("server.address") or "0.0.0.0")


def _shell() -> str:
    return with_root(Path(file_util.get_static_dir(), "index.html").read_text("utf-8"))


def _digest(script: str) -> str:
    """How a policy names an inline script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
