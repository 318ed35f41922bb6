"""Many people at once: how long a change takes to our plan and to the end, and the server's memory.

``python benchmarks/many_sessions.py [--sessions 20] [--pause 8] [--changes 500] [--seed 0]`` starts
the studio and speaks its web socket as browsers do, without drawing: every session opens the plan
page on a preset, and changes an oversubscription, the batch or the memory every ``pause`` seconds,
drawn from the seed, never the same state twice in one session. Prints percentiles of the seconds
until the headline figures of the changed plan were sent, and until the page was whole; errors; and
the memory of the server with its workers as the changes go by.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PRESETS = ("llama3-70b-1024-h100", "llama2-7b-64-h100", "gpt3-175b-64-h100", "bert-large-64-v100")
MEMORY_EVERY = 50
PATIENCE_S = 60.0


@dataclass
class Measured:
    """What all sessions saw."""

    plan_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory_MB: list[tuple[int, float]] = field(default_factory=list)


class Session:
    """One person's page, without the drawing."""

    def __init__(self, socket_: Any, query: str) -> None:
        self._socket, self._query = socket_, query
        self.widgets: dict[str, Any] = {}
        self._states: dict[str, Any] = {}
        self._fragments: dict[str, float] = {}
        self.exceptions: list[str] = []

    async def run(self, changed: str = "", value: float = 0.0) -> tuple[float, float]:
        """Run the page, and return the seconds to its headline figures and to its end."""
        began = time.monotonic()
        if changed:
            self._states[changed] = value
        await self._send()
        headline: float | None = None
        due: dict[str, float] = {}
        while True:
            message = await self._receive()
            if message is None:
                continue
            kind = message.WhichOneof("type")
            if kind == "delta":
                if self._read(message.delta) and headline is None:
                    headline = time.monotonic() - began
            elif kind == "auto_rerun":
                due[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "stop_auto_rerun":
                self._fragments.clear()
            elif kind == "script_finished":
                whole = message.script_finished in (
                    ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_WITH_COMPILE_ERROR
                )  # fmt: skip
                self._fragments = due if whole else self._fragments | due
                due = {}
                if whole and not self._fragments:
                    return headline or time.monotonic() - began, time.monotonic() - began
                if whole:
                    headline = None  # what was sent stands for the plan before
            if time.monotonic() - began > PATIENCE_S:
                raise TimeoutError(f"no plan after {PATIENCE_S:.0f} s")

    async def _receive(self) -> ForwardMsg | None:
        """The next message; None where a fragment was due first."""
        wait = min(self._fragments.values(), default=PATIENCE_S)
        try:
            data = await asyncio.wait_for(self._socket.recv(), wait)
        except TimeoutError:
            if not self._fragments:
                raise
            for fragment in tuple(self._fragments):
                await self._send(fragment)
            return None
        message = ForwardMsg()
        message.ParseFromString(data)
        return message

    async def _send(self, fragment: str = "") -> None:
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = self._query
        asked.fragment_id, asked.is_auto_rerun = fragment, bool(fragment)
        for name, value in self._states.items():
            state = asked.widget_states.widgets.add(id=name)
            if self.widgets[name].__class__.__name__ == "Slider":
                state.double_array_value.data.append(value)
            else:
                state.double_value = value
        await self._socket.send(message.SerializeToString())

    def _read(self, delta: Any) -> bool:
        """Note widgets and errors; whether this is a headline figure."""
        if delta.WhichOneof("type") != "new_element":
            return False
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind in ("slider", "number_input"):
            widget = getattr(element, kind)
            self.widgets[widget.id] = widget
        elif kind == "exception":
            self.exceptions.append(element.exception.message)
        return bool(kind == "metric")

    def another_state(self, dice: random.Random) -> tuple[str, float]:
        """A widget and a value that it did not have yet."""
        offered: list[tuple[str, float]] = []
        for name, widget in self.widgets.items():
            if "oversubscription" in widget.label and widget.__class__.__name__ == "Slider":
                steps = int((widget.max - widget.min) / widget.step)
                offered += [(name, widget.min + widget.step * k) for k in range(steps + 1)]
            elif widget.label.startswith("Memory per device"):
                offered += [(name, value / 2) for value in range(96, 320)]
            elif widget.label.startswith("Global batch"):
                offered += [(name, float(64 * k)) for k in range(4, 40)]
        return dice.choice([pair for pair in offered if self._states.get(pair[0]) != pair[1]])


async def _person(
    url: str, number: int, arguments: argparse.Namespace, measured: Measured, left: Any
) -> None:
    dice = random.Random(f"{arguments.seed} {number}")
    query = f"scenario={PRESETS[number % len(PRESETS)]}&tour=off"
    async with websockets.connect(
        f"{url.replace('http', 'ws')}/_stcore/stream",
        subprotocols=[websockets.Subprotocol("streamlit")], origin=url, max_size=None,
    ) as line:  # fmt: skip
        session = Session(line, query)
        await session.run()
        await asyncio.sleep(dice.uniform(0, arguments.pause))
        while next(left, None) is not None:
            due = time.monotonic() + arguments.pause
            plan_s, whole_s = await session.run(*session.another_state(dice))
            measured.plan_s.append(plan_s)
            measured.whole_s.append(whole_s)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        measured.errors += session.exceptions


async def _watch(process: int, measured: Measured) -> None:
    noted = -MEMORY_EVERY
    while True:
        if len(measured.plan_s) >= noted + MEMORY_EVERY:
            noted = len(measured.plan_s)
            measured.memory_MB.append((noted, _memory_MB(process)))
        await asyncio.sleep(1.0)


def _memory_MB(process: int) -> float:
    """Resident memory of a process and its children, as Linux counts it."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    threads = Path(f"/proc/{process}/task").iterdir()
    children = [child for thread in threads for child in (thread / "children").read_text().split()]
    return pages * 4096 / 1e6 + sum(_memory_MB(int(child)) for child in children)


async def _all(url: str, process: int, arguments: argparse.Namespace) -> Measured:
    measured, left = Measured(), iter(range(arguments.changes))
    watching = asyncio.create_task(_watch(process, measured))
    people = (_person(url, n, arguments, measured, left) for n in range(arguments.sessions))
    for ended in await asyncio.gather(*people, return_exceptions=True):
        if isinstance(ended, BaseException):
            measured.errors.append(f"{type(ended).__name__}: {ended}")
    watching.cancel()
    measured.memory_MB.append((len(measured.plan_s), _memory_MB(process)))
    return measured


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--pause", type=float, default=8.0, help="seconds between changes")
    parser.add_argument("--changes", type=int, default=500, help="of all sessions together")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "nest_studio", "app", "--headless", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://localhost:{port}"
    try:
        for _ in itertools.count():
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        measured = asyncio.run(_all(url, server.pid, arguments))
    finally:
        server.terminate()
        server.wait()
    for name, values in (("our plan", measured.plan_s), ("whole page", measured.whole_s)):
        if len(values) > 1:
            p95 = statistics.quantiles(values, n=20)[-1]
            print(f"{name}: median {statistics.median(values):.2f} s, p95 {p95:.2f} s, "
                  f"largest {max(values):.2f} s of {len(values)} changes")  # fmt: skip
    print("memory:", ", ".join(f"{count}: {used:.0f} MB" for count, used in measured.memory_MB))
    print(f"errors: {len(measured.errors)}", *measured.errors[:5])


if __name__ == "__main__":
    main()
