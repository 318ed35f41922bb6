"""Many people at once: how long a change takes to our plan and to the end, and the server's memory.

``python benchmarks/many_sessions.py [--sessions 20] [--pause 8] [--changes 500] [--seed 0]`` starts
the studio and speaks its web socket as browsers do, without drawing: every session opens the plan
page on a preset, and changes an oversubscription, the batch or the memory every ``pause`` seconds,
drawn from the seed, whether or not the baselines of the change before are there yet. Prints
percentiles of the seconds until the headline figures of the changed plan were sent, and until the
page was whole, for the changes that got so far; errors; and the memory of the server with its
workers as the changes go by.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
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
        self._folds: set[str] = set()
        self._fragments: dict[str, float] = {}
        self.exceptions: list[str] = []

    async def run(
        self, changed: str = "", value: float = 0.0, pause_s: float = 0.0
    ) -> tuple[float, float | None]:
        """Run the page, and look at it for ``pause_s``, or until our plan stands if that is later.

        Returns the seconds to the headline figures, and to the page's end, None if that did not
        come in time. Without a pause it waits for the end.
        """
        began = time.monotonic()
        if changed:
            self._states[changed] = value
        await self._send()
        headline: float | None = None
        ended: float | None = None
        due: dict[str, float] = {}
        while True:
            now = time.monotonic() - began
            stood = ended is not None
            if (pause_s and stood and now >= pause_s) or (not pause_s and stood):
                return headline or now, ended
            if pause_s and now >= pause_s and headline is not None:
                return headline, ended
            if now > PATIENCE_S:
                raise TimeoutError(f"no plan after {PATIENCE_S:.0f} s")
            left = pause_s - now if pause_s > now else PATIENCE_S - now
            message = await self._receive(left)
            if message is None:
                continue
            now = time.monotonic() - began
            kind = message.WhichOneof("type")
            if kind == "delta":
                if self._read(message.delta) and headline is None:
                    headline = now
            elif kind == "auto_rerun":
                due[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "stop_auto_rerun":
                self._fragments.clear()
            elif kind == "script_finished":
                whole = message.script_finished in (
                    ForwardMsg.FINISHED_SUCCESSFULLY,
                    ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
                )
                self._fragments = due if whole else self._fragments | due
                due = {}
                if whole and not self._fragments:
                    ended = now
                elif whole:
                    headline = None  # what was sent stands for the plan before

    async def _receive(self, longest_s: float) -> ForwardMsg | None:
        """The next message; None where a fragment was due first, or nothing came for so long."""
        wait = min([longest_s, *self._fragments.values()])
        try:
            data = await asyncio.wait_for(self._socket.recv(), wait)
        except TimeoutError:
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
        for name in self._folds:
            asked.widget_states.widgets.add(id=name).bool_value = True
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
            if "-fold-" in (fold := delta.add_block.expandable.id):
                self._folds.add(fold)
            return False
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind in ("slider", "number_input"):
            widget = getattr(element, kind)
            self.widgets[widget.id] = widget
        elif kind == "exception":
            self.exceptions.append(element.exception.message)
        return kind == "html" and '<div class="nest-card' in element.html.body

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


def opened(url: str) -> Any:
    """The web socket of a new tab, for ``async with``."""
    return websockets.connect(
        f"{url.replace('http', 'ws')}/_stcore/stream",
        subprotocols=[websockets.Subprotocol("streamlit")],
        origin=url,
        max_size=None,
    )


async def _person(
    url: str, number: int, arguments: argparse.Namespace, measured: Measured, left: Any
) -> None:
    dice = random.Random(f"{arguments.seed} {number}")
    query = f"scenario={PRESETS[number % len(PRESETS)]}&tour=off"
    async with opened(url) as line:
        session = Session(line, query)
        await session.run()
        await session.run()  # with the groups of its form open, whose fields are drawn then
        await asyncio.sleep(dice.uniform(0, arguments.pause))
        while next(left, None) is not None:
            changed, value = session.another_state(dice)
            plan_s, whole_s = await session.run(changed, value, arguments.pause)
            measured.plan_s.append(plan_s)
            if whole_s is not None:
                measured.whole_s.append(whole_s)
        measured.errors += session.exceptions


async def _watch(process: int, measured: Measured) -> None:
    noted = -MEMORY_EVERY
    while True:
        if len(measured.plan_s) >= noted + MEMORY_EVERY:
            noted = len(measured.plan_s)
            measured.memory_MB.append((noted, memory_MB(process)))
        await asyncio.sleep(1.0)


def children_of(process: int) -> list[int]:
    """The processes that a process started and that still run, as Linux knows them."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def resident_MB(process: int) -> float:
    """Resident memory of a process; none once it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 1e6
    except FileNotFoundError:
        return 0.0


def memory_MB(process: int) -> float:
    """Resident memory of a process and its children, as Linux counts it."""
    return resident_MB(process) + sum(map(resident_MB, children_of(process)))


async def _all(url: str, process: int, arguments: argparse.Namespace) -> Measured:
    measured, left = Measured(), iter(range(arguments.changes))
    watching = asyncio.create_task(_watch(process, measured))
    people = (_person(url, n, arguments, measured, left) for n in range(arguments.sessions))
    for ended in await asyncio.gather(*people, return_exceptions=True):
        if isinstance(ended, BaseException):
            measured.errors.append(f"{type(ended).__name__}: {ended}")
    watching.cancel()
    measured.memory_MB.append((len(measured.plan_s), memory_MB(process)))
    return measured


@contextmanager
def serving(log: Any) -> Iterator[tuple[str, int]]:
    """A studio with a store of its own: its address and process; what it writes goes to ``log``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "nest_studio", "app", "--headless", "--port", str(port)]
    url = f"http://localhost:{port}"
    with tempfile.TemporaryDirectory() as folder:
        own = os.environ | {"NEST_STUDIO_DATABASE": f"sqlite:///{folder}/notebooks.sqlite"}
        server = subprocess.Popen(command, stdout=log, stderr=log, env=own)
        try:
            while True:
                try:
                    urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                    break
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    time.sleep(0.1)
            yield url, server.pid
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--pause", type=float, default=8.0, help="seconds between changes")
    parser.add_argument("--changes", type=int, default=500, help="of all sessions together")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with serving(subprocess.DEVNULL) as (url, process):
        measured = asyncio.run(_all(url, process, arguments))
    for name, values in (("our plan", measured.plan_s), ("whole page", measured.whole_s)):
        if len(values) > 1:
            p95 = statistics.quantiles(values, n=20)[-1]
            print(
                f"{name}: median {statistics.median(values):.2f} s, p95 {p95:.2f} s, "
                f"largest {max(values):.2f} s of {len(values)} changes"
            )
    print("memory:", ", ".join(f"{count}: {used:.0f} MB" for count, used in measured.memory_MB))
    print(f"errors: {len(measured.errors)}", *measured.errors[:5])


if __name__ == "__main__":
    main()
