"""What tests share: the data beside the repository, a browser, a running studio.

A test that lacks one of these skips and says why. With ``CI=true`` everything is
supposed to be there, so it fails instead.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Tests run in several processes: threads of BLAS and torch would spin, waiting for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
SERVER_START_SECONDS = 180.0
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the planner, once for all processes of the tests.

    A command would say that it does, where tests expect it to say nothing.
    """
    if not hasattr(session.config, "workerinput"):
        build = "from nest_studio.jobs.kernels import build_kernels; build_kernels()"
        subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=False)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Leave all but one in ``n`` cases of a sampled enumeration to `make check`.

    Every enumeration keeps a case. Cases are drawn by a checksum of their names: every n-th in
    order would take the same fabric again and again where several lists are multiplied. What
    `-m` deselects is not made into items at all: half of the cases are for `make check` alone.
    """
    yield
    cases, marks = metafunc._calls, metafunc.definition.iter_markers
    if sampled := next(marks("sampled"), None):
        name = metafunc.function.__name__
        drawn = sorted(cases, key=lambda case: zlib.crc32(f"{name}[{case.id}]".encode()))
        for case in drawn[-(-len(cases) // sampled.args[0]) :]:
            case.marks.append(pytest.mark.check.mark)
    if "not check" in metafunc.config.option.markexpr:
        # A function without cases would become an item without its parameters.
        usual = [case for case in cases if not any(mark.name == "check" for mark in case.marks)]
        cases[:] = usual if usual and not any(marks("check")) else cases[:1]


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays: no collection of garbage goes through it again.

    The caches of the engine grow as tests go on; looking through all of them as often as Python
    does by default takes a tenth of the tests' time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(scope="session", autouse=True)
def _own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store of the tests' own: nobody's notebooks are touched."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("store") / "notebooks.sqlite"
        patch.setenv("NEST_STUDIO_DATABASE", f"sqlite:///{path}")
        yield


def _require(condition: object, reason: str) -> None:
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (CI must have it)")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require() -> Callable[[object, str], None]:
    """``require(condition, reason)``: skip without the condition, fail on CI."""
    return _require


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The reference data beside the repository."""
    folder = ROOT.parent / "shared" / "data"
    _require(folder.is_dir(), "the reference data is not beside the repository (../shared/data)")
    return folder


@pytest.fixture(scope="session")
def torch_installed() -> None:
    """Ask for this where torch is used."""
    _require(importlib.util.find_spec("torch"), "torch is not installed")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Debian's Chromium."""
    path = shutil.which("chromium")
    _require(path, "Chromium is not installed (apt-get install chromium)")
    _require(_loads("libatomic.so.1"), "Playwright's driver lacks libatomic1 (apt-get install it)")
    return str(path)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextmanager
def _serve(command: list[str], cwd: Path, log: Path, prefix: str = "") -> Iterator[str]:
    port = _free_port()
    with log.open("w") as output:
        under = ["--prefix", prefix] if prefix else []
        server = subprocess.Popen(
            [*command, "app", "--headless", "--port", str(port), *under],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://localhost:{port}{prefix}"
    try:
        deadline = time.monotonic() + SERVER_START_SECONDS
        while not _healthy(url):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the studio did not start:\n{log.read_text()}")
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture(scope="session")
def serve() -> Callable[..., object]:
    """``with serve(command, cwd, log) as url``: the studio, started by that command."""
    return _serve


@pytest.fixture(scope="session")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the studio, run from this checkout."""
    folder = tmp_path_factory.mktemp("studio")
    with _serve([sys.executable, "-m", "nest_studio"], folder, folder / "log.txt") as url:
        yield url


def _while_browsing(fixture_name: str, config: pytest.Config) -> Literal["session", "module"]:
    """Return how long Playwright may run: its event loop owns the main thread meanwhile."""
    return "session" if config.option.markexpr.startswith("browser") else "module"


@pytest.fixture(scope=_while_browsing)
def launched(chromium: str) -> Iterator[Callable[[], Browser]]:
    """Gives headless Chromium: that of the test before, or a new one if that has died."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started: list[Browser] = []

        def living() -> Browser:
            if not (started and started[-1].is_connected()):
                launch = playwright.chromium.launch
                started.append(launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS))
            return started[-1]

        yield living
        for instance in started:
            instance.close()


@pytest.fixture
def browser(launched: Callable[[], Browser]) -> Browser:
    """Headless Chromium; a new one where the last test's has died."""
    return launched()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page of 1280 by 900 in a fresh profile."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()
