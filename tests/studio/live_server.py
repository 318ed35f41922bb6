"""A studio of one's own, and its web socket as browsers speak it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def served(command: list[str], folder: Path, cwd: Path = ROOT, **variables: str):
    """A studio of its own: its port, and the file of its log."""
    port, log = free_port(), folder / "log.txt"
    variables["NEST_STUDIO_DATABASE"] = f"sqlite:///{folder / 'store' / 'n.sqlite'}"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *(part.format(port=port) for part in command)],
            cwd=cwd,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        for _ in range(600):
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield port, log
    finally:
        process.terminate()
        process.wait(20)


OURS = ["nest_studio", "app", "--headless", "--port", "{port}"]
STREAMLITS = [
    "streamlit",
    "run",
    "app.py",
    "--server.headless=true",
    "--server.port={port}",
    "--server.enableCORS=false",
    "--server.allowedHosts=*",
    "--client.showErrorDetails=full",
]


def connected(port: int) -> websockets.connect:
    """A session's web socket, to be entered."""
    return websockets.connect(
        f"ws://localhost:{port}/_stcore/stream",
        origin=f"http://localhost:{port}",
        max_size=None,
        subprotocols=[websockets.Subprotocol("streamlit")],
    )


async def shown(port: int, page: str = "", query: str = "tour=off") -> list[ForwardMsg]:
    """What a session is sent until the first run of a page has ended."""
    found: list[ForwardMsg] = []
    async with connected(port) as line:
        message = BackMsg()
        message.rerun_script.query_string, message.rerun_script.page_name = query, page
        await line.send(message.SerializeToString())
        while not found or found[-1].WhichOneof("type") != "script_finished":
            found.append(ForwardMsg.FromString(await asyncio.wait_for(line.recv(), 120)))
    return found


def elements(messages: list[ForwardMsg], kind: str) -> list:
    """The elements of a kind among messages."""
    deltas = (one.delta.new_element for one in messages if one.WhichOneof("type") == "delta")
    return [getattr(one, kind) for one in deltas if one.WhichOneof("type") == kind]
