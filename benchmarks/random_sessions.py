"""Six people who click at random for minutes: tracebacks, boxes of errors, memory, time to a plan.

``python benchmarks/random_sessions.py [--sessions 6] [--minutes 15] [--pause 2] [--seed 0]`` starts
the studio and speaks its web socket as browsers do. Every session opens links, goes from page to
page, changes what the page offers, presses buttons, sends a click for controls of the page before,
and often does not wait until the page is whole. Prints the errors that pages showed, the tracebacks
of the server's log, percentiles of the seconds until the headline figures of the Plan page were
sent, and the resident memory of the server and of its workers against time (Markdown).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import websockets
from many_sessions import children_of, resident_MB, serving
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

LINKS = (
    "scenario=llama2-7b-64-h100&tour=off",
    "scenario=bert-large-64-v100&search.tp=inf&tour=off",
    "scenario=llama2-7b-64-tpu-torus&accelerator.memory_GiB=1e999",
    "scenario=gpt3-175b-64-h100&fabric.clos.oversubscription.0=4&tour=off",
    "own=nobody&fabric=My+fabric&tour=off",
    "compare=%5B%5B%22a%22%2C%22llama2-7b-64-h100%22%2C%7B%22search.tp%22%3A%5B%5D%7D%5D%5D",
    "notebook=gone",
)
SPARED = ("again-", "delete", "explore-run")
"""Beginnings of the keys of buttons that a person of this kind leaves alone."""

NOTED_EVERY_S = 30.0
TRACEBACK = "(most recent call last)"
"""In every traceback, coloured or not."""
RAISED = re.compile(r"(\w+\.py)(?:\", line |:)(\d+)")
"""A place in a traceback, coloured or not."""

CLICKED = (
    "selectbox",
    "multiselect",
    "slider",
    "number_input",
    "checkbox",
    "radio",
    "text_input",
    "text_area",
    "button",
    "button_group",
)


@dataclass
class Seen:
    """What all sessions saw."""

    clicks: Counter[str] = field(default_factory=Counter)
    plan_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Session:
    """One person's window, without the drawing."""

    def __init__(self, line: Any, query: str, dice: random.Random, seen: Seen) -> None:
        self._line, self._query, self._dice, self._seen = line, query, dice, seen
        self._states: dict[str, tuple[str, Any]] = {}
        self._widgets: dict[str, Any] = {}
        self._before: dict[str, Any] = {}
        self._pages: dict[str, str] = {}
        self._page = ""
        self._steps: list[str] = []

    async def live(self, until: float, pause_s: float) -> None:
        """Click until the time is up."""
        await self._run(30.0)
        while time.monotonic() < until:
            self._click()
            await self._run(self._dice.expovariate(1 / pause_s))

    def _click(self) -> None:
        """Do one thing; what is sent with the next run."""
        roll = self._dice.random()
        if roll < 0.12 and self._pages:
            self._page = self._dice.choice(sorted(self._pages))
            self._before, self._widgets, self._states = dict(self._widgets), {}, {}
            self._note(f"go to {self._pages[self._page]}")
        elif roll < 0.2 and self._before:
            self._set(*self._dice.choice(sorted(self._before.items(), key=lambda pair: pair[0])))
        elif self._widgets:
            self._set(*self._dice.choice(sorted(self._widgets.items(), key=lambda pair: pair[0])))

    def _note(self, step: str) -> None:
        self._seen.clicks[step.split()[0]] += 1
        self._steps = [*self._steps[-5:], step]

    def _set(self, name: str, widget: Any) -> None:
        """Give a widget one of the values that it offers."""
        kind, dice = widget.__class__.__name__, self._dice
        state: tuple[str, Any]
        if any(part in name for part in SPARED):
            return
        if kind in ("Selectbox", "Radio"):
            state = "string_value", dice.choice(list(widget.options) or [""])
        elif kind in ("MultiSelect", "ButtonGroup"):
            options = [getattr(one, "content", one) for one in widget.options]
            most = 1 if kind == "ButtonGroup" else min(3, len(options))
            state = "string_array_value", dice.sample(options, min(most, len(options)))
        elif kind == "Slider":
            strings = [dice.choice(list(widget.options))] if widget.options else None
            number = dice.choice((widget.min, widget.max, (widget.min + widget.max) / 2))
            state = ("string_array_value", strings) if strings else ("double_array_value", [number])
        elif kind == "NumberInput":
            ends = (widget.min, widget.max, widget.default, widget.default + widget.step)
            state = "double_value", float(dice.choice(ends))
        elif kind in ("Checkbox", "Expandable"):
            state = "bool_value", dice.random() < 0.5
        elif kind in ("TextInput", "TextArea"):
            state = "string_value", dice.choice(("", "inf", "1, 2, 4", "x" * 300, "*a* `b`"))
        else:
            state = "trigger_value", True
        self._states[name] = state
        self._note(f"{kind} {name[-40:]} {str(state[1])[:20]}")

    async def _run(self, pause_s: float) -> None:
        """Send what is set, and look at what comes for so long."""
        began = time.monotonic()
        await self._send()
        fragments: dict[str, float] = {}
        due: dict[str, float] = {}
        fresh: dict[str, Any] = {}
        planned = False
        while (left := began + pause_s - time.monotonic()) > 0:
            try:
                data = await asyncio.wait_for(self._line.recv(), min([left, *fragments.values()]))
            except TimeoutError:
                for fragment in tuple(fragments):
                    await self._send(fragment)
                continue
            message = ForwardMsg()
            message.ParseFromString(data)
            kind = message.WhichOneof("type")
            if kind == "delta":
                first = self._read(message.delta, fresh) and not planned
                planned = planned or first
                if first and self._pages.get(self._page) in ("plan", ""):
                    self._seen.plan_s.append(time.monotonic() - began)
            elif kind == "navigation":
                self._pages = {
                    page.page_script_hash: page.url_pathname
                    for page in message.navigation.app_pages
                }
                self._page = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self._query = message.page_info_changed.query_string
            elif kind == "auto_rerun":
                due[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "stop_auto_rerun":
                fragments = {}
            elif kind == "script_finished" and (
                message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
            ):
                fragments, self._widgets = due, fresh
                self._states = {
                    name: state
                    for name, state in self._states.items()
                    if name in fresh and state[0] != "trigger_value"
                }
                due, fresh = {}, {}

    async def _send(self, fragment: str = "") -> None:
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.page_script_hash = self._query, self._page
        asked.fragment_id, asked.is_auto_rerun = fragment, bool(fragment)
        for name, (kind, value) in self._states.items():
            state = asked.widget_states.widgets.add(id=name)
            if kind.endswith("array_value"):
                getattr(state, kind).data.extend(value)
            elif kind != "trigger_value" or not fragment:
                setattr(state, kind, value)
        await self._line.send(message.SerializeToString())
        for name in [one for one, (kind, _) in self._states.items() if kind == "trigger_value"]:
            del self._states[name]

    def _read(self, delta: Any, fresh: dict[str, Any]) -> bool:
        """Note widgets and errors; whether this is a headline figure."""
        if delta.WhichOneof("type") != "new_element":
            if (fold := delta.add_block.expandable).id:
                fresh[fold.id] = self._widgets[fold.id] = fold
            return False
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind in CLICKED:
            widget = getattr(element, kind)
            if not widget.disabled:
                fresh[widget.id] = self._widgets[widget.id] = widget
        elif kind == "exception":
            self._seen.errors.append(f"{element.exception.message} after {self._steps}")
        return bool(kind == "metric")


async def _person(url: str, number: int, arguments: argparse.Namespace, seen: Seen) -> None:
    dice = random.Random(f"{arguments.seed} {number}")
    until = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < until:
        query = dice.choice(LINKS)
        async with websockets.connect(
            f"{url.replace('http', 'ws')}/_stcore/stream",
            subprotocols=[websockets.Subprotocol("streamlit")],
            origin=url,
            max_size=None,
        ) as line:
            session = Session(line, query, dice, seen)
            away = time.monotonic() + dice.uniform(60, 180)
            await session.live(min(until, away), arguments.pause)


async def _watch(process: int) -> None:
    """A row of the table now and then."""
    print("| s | server, MB | workers, MB | workers |\n|---|---|---|---|")
    began = time.monotonic()
    while True:
        workers = children_of(process)
        print(
            f"| {time.monotonic() - began:.0f} | {resident_MB(process):.0f} | "
            f"{sum(map(resident_MB, workers)):.0f} | {len(workers)} |",
            flush=True,
        )
        await asyncio.sleep(NOTED_EVERY_S)


async def _all(url: str, process: int, arguments: argparse.Namespace) -> Seen:
    seen = Seen()
    watching = asyncio.create_task(_watch(process))
    people = (_person(url, number, arguments, seen) for number in range(arguments.sessions))
    for ended in await asyncio.gather(*people, return_exceptions=True):
        if isinstance(ended, BaseException):
            seen.errors.append(f"{type(ended).__name__}: {ended}")
    watching.cancel()
    return seen


def main() -> int:
    """Click, and print what came of it; 1 if anything broke."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--pause", type=float, default=2.0, help="mean seconds between clicks")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        with serving(log) as (url, process):
            seen = asyncio.run(_all(url, process, arguments))
        log.seek(0)
        return _tell(seen, log.read())


def _tell(seen: Seen, log: str) -> int:
    print("\nclicks:", ", ".join(f"{count} {what}" for what, count in seen.clicks.most_common()))
    if len(seen.plan_s) > 1:
        p95 = statistics.quantiles(seen.plan_s, n=20)[-1]
        print(
            f"our plan: median {statistics.median(seen.plan_s):.2f} s, p95 {p95:.2f} s, largest "
            f"{max(seen.plan_s):.2f} s of {len(seen.plan_s)}"
        )
    tracebacks = log.split(TRACEBACK)[1:]
    print(f"tracebacks: {len(tracebacks)}; boxes of errors: {len(seen.errors)}")
    for error, times in Counter(seen.errors).most_common(10):
        print(f"  {times} times: {error}")
    kinds: dict[str, list[str]] = {}
    for text in tracebacks:
        kinds.setdefault(":".join([("?", "?"), *RAISED.findall(text)][-1]), []).append(text)
    for kind, texts in kinds.items():
        print(f"\n{len(texts)} times, raised at {kind}:\n{texts[0][:12_000]}")
    return int(bool(tracebacks or seen.errors))


if __name__ == "__main__":
    sys.exit(main())
