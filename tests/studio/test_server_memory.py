"""A real server: what a visitor asks of fabrics takes memory in workers, not in the server."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from live_server import OURS, elements, served, shown

pytestmark = pytest.mark.check
MOST_MB = 100
"""A collective over 1,056 devices takes over 400 where it is computed."""


def highest_mb(port):
    """The most memory that the server of a port has had."""
    for thread in Path(f"/proc/{os.getpid()}/task").iterdir():
        for child in (thread / "children").read_text().split():
            if str(port).encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                status = Path(f"/proc/{child}/status").read_text()
                return int(status.split("VmHWM:")[1].split()[0]) / 1024
    raise AssertionError("no server")


def charts_of(port, query):
    """The charts of a Design page, once all of it is there."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        charts = elements(asyncio.run(shown(port, "design", query)), "plotly_chart")
        if len(charts) == 4:
            return charts
        time.sleep(0.5)
    raise AssertionError("no answer")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads what Linux says")
def test_a_collective_over_all_devices_takes_no_memory_of_the_server(tmp_path):
    small = "tour=off&fabric=dragonfly-1056"
    with served(OURS, tmp_path) as (port, _):
        charts_of(port, small)
        before = highest_mb(port)
        charts_of(port, f"{small}&collective.devices=1056")
        assert highest_mb(port) < before + MOST_MB
