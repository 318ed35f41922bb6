"""A real server and links that ask for much: what they take ends with their tab."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

pytestmark = pytest.mark.check
DEEP = {
    "search.time_limit_s": 1e18,
    "workload.model": {
        "name": "deep", "family": "llama", "blocks": 1998, "hidden": 4096, "heads": 32,
        "kv_heads": 32, "head_dim": 128, "ffn": 11008, "vocabulary": 32000,
    },
}  # fmt: skip
TICKS = os.sysconf("SC_CLK_TCK")


def children(pid):
    found = [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return [
        child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def busy_s(pids):
    """Seconds of computation of processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICKS


async def asked(line, page, query):
    message = BackMsg()
    message.rerun_script.query_string = urllib.parse.urlencode(query | {"tour": "off"})
    message.rerun_script.page_name = page
    await line.send(message.SerializeToString())


def opened(url):
    return websockets.connect(
        f"{url.replace('http', 'ws')}/_stcore/stream",
        origin=url,
        max_size=None,
        subprotocols=[websockets.Subprotocol("streamlit")],
    )


async def headline(line, page, query):
    """Run a page until it shows a figure, as a browser does whose page says that it waits."""
    await asked(line, page, query)
    while True:
        message = ForwardMsg()
        message.ParseFromString(await line.recv())
        if message.WhichOneof("type") == "delta":
            element = message.delta.new_element
            if (
                message.delta.WhichOneof("type") == "new_element"
                and "nest-card" in element.html.body
            ):
                return
        elif message.WhichOneof("type") == "script_finished":
            await asyncio.sleep(0.5)
            await asked(line, page, query)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads what Linux says")
def test_what_a_link_takes_ends_with_its_tab_and_holds_up_nobody(tmp_path, root):
    """A failure: closed tabs compute on, others' plans wait, a killed server leaves workers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "nest_studio", "app", "--headless", "--port", str(port)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=log,
        stderr=log,
    )
    try:
        asyncio.run(visits(f"http://localhost:{port}", server.pid))
        workers = children(server.pid)
        server.send_signal(signal.SIGKILL)
        server.wait()
        until = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < until:
            time.sleep(0.1)
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    finally:
        server.kill()
        server.wait()


async def visits(url, server):
    until = time.monotonic() + 60
    while True:
        try:
            probe = await opened(url)
            break
        except OSError:
            assert time.monotonic() < until, "no server"
            await asyncio.sleep(0.2)
    await probe.close()
    lines = []
    for number in range(3):
        lines.append(await opened(url))
        deep = {**DEEP, "workload.global_batch_sequences": 1024 + 64 * number}
        entries = [[name, "llama2-7b-64-h100", deep] for name in ("a", "b")]
        await asked(lines[-1], "compare", {"compare": json.dumps(entries)})
    async with asyncio.timeout(120):
        while not children(server) or busy_s(children(server)) < 5:
            await asyncio.sleep(0.5)
    small = await opened(url)
    async with asyncio.timeout(45):
        await headline(small, "", {"scenario": "bert-large-64-v100"})
    await small.close()
    for line in lines:
        await line.close()
    await asyncio.sleep(20)
    workers = children(server)
    before = busy_s(workers)
    await asyncio.sleep(4)
    assert children(server) == workers
    assert busy_s(workers) - before < 0.5, "somebody computes on for nobody"
