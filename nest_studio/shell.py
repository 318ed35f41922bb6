"""Around the script: the HTML in which Streamlit's front end starts, and the first browser.

Streamlit serves one shell at every address. At a page's its front end takes the address for the
root of the app, asks for the server below it, and learns from two answers "not found" that the
root lies above: each a line of error in the browser's console. It asks nothing amiss when
``window.__streamlit`` names the root.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import typer
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route
from streamlit import config, file_util
from streamlit.web.server import server_util

__all__ = ["opened", "page_routes", "with_root"]

# Assets are named relative to the address as well, so this is where they come from too,
# under any prefix and behind any proxy.
_ROOT = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href}</script>'
_HEAD = "<head>"


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
    shell = with_root(Path(file_util.get_static_dir(), "index.html").read_text("utf-8"))

    def answer(_: Request) -> HTMLResponse:
        return HTMLResponse(shell, headers={"Cache-Control": "no-cache"})

    def lead(request: Request) -> RedirectResponse:
        query = request.url.query
        return RedirectResponse(f"./?{query}" if query else "./")

    prefix = str(config.get_option("server.baseUrlPath")).strip("/")
    above = f"/{prefix}" if prefix else ""
    return [Route(f"{above}/{name}", lead if name == home else answer) for name in names]


@asynccontextmanager
async def opened(_: object) -> AsyncGenerator[None]:
    """Open the person's browser on the studio, unless told to open none."""
    if not config.get_option("server.headless"):
        host = server_util.get_display_address(config.get_option("server.address") or "localhost")
        # The socket listens already; its first visitor waits for what is still being started.
        asyncio.get_running_loop().run_in_executor(None, typer.launch, server_util.get_url(host))
    yield
