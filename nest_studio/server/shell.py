"""Around the script: routes and guards, what is done before the first visitor, and what one sees
of a defect.

Streamlit's settings are read when the server starts: the application is made before it has them.

Before its first visitor a server imports whatever pages need (`import_everything`): modules of ours
and of pandas import one another in circles. Several sessions that begin on a cold server would
import them from several ends at once, and then one finds a half-made module or waits for another
that waits for it.
"""

import asyncio
import importlib
import os
import pkgutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import streamlit as st
import typer
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from nest_core.documents import InputError, as_markdown
from nest_core.scenario import Scenario, scenario_document
from nest_studio.form.scenario import DEFAULT_SCENARIO
from nest_studio.jobs.tasks.requests import warm_up
from nest_studio.jobs.waiting import job_queue
from nest_studio.server.frames import Frames, believe_only_what_fits
from nest_studio.server.guard import (
    PUBLIC_VARIABLE,
    Guard,
    Names,
    beyond_this_machine,
    http_address,
)
from nest_studio.server.rail import HOME

__all__ = [
    "MIDDLEWARE",
    "ROUTES",
    "import_everything",
    "say_defect",
    "serving",
]

_PACKAGES = ("nest_core", "nest_studio")
# Neither torch nor JAX is installed where the studio is served, and commands are no pages.
_NOT_SERVED = (
    "nest_core.calibration.compiler.program",
    "nest_core.hardware.profiling",
    "nest_core.workload.tracing",
    "nest_studio.__main__",
    "nest_studio.cli",
    "nest_studio.commands",
)
_LATE = (
    "plotly.graph_objects",
    "plotly.io",
    "plotly.offline",
    "sqlalchemy.dialects.sqlite",
    "streamlit.dataframe_util",
)
"""What libraries import only when they are first used."""


def import_everything() -> None:
    """Import the packages of the studio and what they use late; takes seconds, once."""
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            if not module.name.startswith(_NOT_SERVED):
                importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)


_DEFECT = (
    "This part of the page failed, which is a defect of the studio and not of what you entered; "
    "the log of the server says what happened."
)


def _to_root(request: Request) -> RedirectResponse:
    """Lead to the root: Streamlit knows the page that stands there by no other address."""
    query = request.url.query
    return RedirectResponse(f"./?{query}" if query else "./")


ROUTES = [Route(f"{prefix}/{HOME}", _to_root) for prefix in ("", "/{prefix:path}")]


def _guard(app: ASGIApp) -> Guard:
    """Stand before every route, by Streamlit's settings and `PUBLIC_VARIABLE`."""
    has_tls = bool(st.get_option("server.sslCertFile"))
    return Guard(app, Names.of(_address(), has_tls, os.environ.get(PUBLIC_VARIABLE, "")))


MIDDLEWARE = [Middleware(_guard), Middleware(Frames)]


def say_defect(error: Exception) -> bool:
    """Show one sentence for what no page caught; Streamlit has written the traceback to the log."""
    st.error(as_markdown(error) if isinstance(error, InputError) else _DEFECT)
    return True


@asynccontextmanager
async def serving(_: object) -> AsyncGenerator[None]:
    """Make ready for visitors, and open the person's browser, unless told to open none."""
    import_everything()
    believe_only_what_fits()
    job_queue().start(partial(warm_up, Scenario(scenario_document(DEFAULT_SCENARIO)[0])))
    address, port = _address(), int(st.get_option("server.port"))
    if beyond_this_machine(address):
        print(
            f"Warning: whoever can reach {address} port {port} can "
            "read, change and delete every notebook here, for the studio has no accounts "
            "(docs/security.md).",
            file=sys.stderr,
            flush=True,
        )
    if not st.get_option("server.headless"):
        host = "localhost" if address in ("0.0.0.0", "::") else address
        url = http_address(host, port, str(st.get_option("server.baseUrlPath")))
        # The socket listens already; its first visitor waits for what is still being started.
        asyncio.get_running_loop().run_in_executor(None, typer.launch, url)
    yield


def _address() -> str:
    """Return where the server listens; Streamlit's own choice is every address."""
    return str(st.get_option("server.address") or "0.0.0.0")
