"""The server's memory while six people click about for a quarter of an hour.

``python benchmarks/memory_curve.py [--minutes 15] [--sessions 6] [--pause 5] [--seed 0]`` starts
the studio and speaks its web socket as browsers do. Every session draws its next act from the seed:
mostly it sets a control of the page to another value, at times it goes to another page, at times it
closes its tab and opens another. Prints a table (Markdown) of the resident memory of the server and
of its workers against time, the seconds until a changed plan stood (median and 95th percentile),
and how many tracebacks the server wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import websockets
from many_sessions import PRESETS, Session, children_of, opened, resident_MB, serving
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

NOTED_EVERY_S = 15.0
TABS_CLOSED, PAGES_LEFT = 0.04, 0.18
"""Shares of all acts."""
LARGEST_TEXT = 40


@dataclass
class Seen:
    """What was noted on the way."""

    plan_s: list[float] = field(default_factory=list)
    late: int = 0
    acts: int = 0
    exceptions: list[str] = field(default_factory=list)
    rows: list[tuple[float, float, float, int, int]] = field(default_factory=list)


class Visitor(Session):
    """A session that knows the pages and every common control."""

    def __init__(self, line: Any, query: str) -> None:
        super().__init__(line, query)
        self.pages: dict[str, str] = {}
        self.page = ""
        self._afresh = False

    async def go(self, page: str, pause_s: float) -> None:
        """To another page, with no control set."""
        self.page = page
        self._states.clear()
        self._query = "tour=off"
        await self.run(pause_s=pause_s)

    async def _receive(self, longest_s: float) -> ForwardMsg | None:
        message = await super()._receive(longest_s)
        kind = message.WhichOneof("type") if message else ""
        if message and kind == "navigation":
            self.pages = {
                page.url_pathname: page.page_script_hash for page in message.navigation.app_pages
            }
        elif message and kind == "new_session" and self._afresh:
            self.widgets.clear()
            self._afresh = False
        return message

    async def _send(self, fragment: str = "") -> None:
        self._afresh |= not fragment
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.page_script_hash = self._query, self.pages.get(self.page, "")
        asked.fragment_id, asked.is_auto_rerun = fragment, bool(fragment)
        for name, (kind, value) in self._states.items():
            state = asked.widget_states.widgets.add(id=name)
            if kind.endswith("_array_value"):
                getattr(state, kind).data.extend(value)
            else:
                setattr(state, kind, value)
        self._states = {
            name: state for name, state in self._states.items() if state[0] != "trigger_value"
        }
        await self._socket.send(message.SerializeToString())

    def _read(self, delta: Any) -> bool:
        if delta.WhichOneof("type") == "new_element":
            kind = delta.new_element.WhichOneof("type")
            if kind in _VALUES:
                widget = getattr(delta.new_element, kind)
                self.widgets[widget.id] = widget
        return super()._read(delta)

    def another_state(self, dice: random.Random) -> tuple[str, Any]:
        """A control of the page and a value for it."""
        names = [name for name, widget in self.widgets.items() if not widget.disabled]
        while names:
            name = names.pop(dice.randrange(len(names)))
            kind = type(self.widgets[name]).__name__
            value = _VALUES[_FIELDS[kind]](self.widgets[name], dice)
            if value is not None:
                return name, value
        return "", None


def _slider(widget: Any, dice: random.Random) -> Any:
    if widget.options or not widget.step:
        return None
    steps = int((widget.max - widget.min) / widget.step)
    return "double_array_value", [widget.min + widget.step * dice.randint(0, steps)]


def _number(widget: Any, dice: random.Random) -> Any:
    value = widget.default * dice.choice((0.5, 0.75, 1.25, 1.5, 2.0)) or 1.0
    value = round(value) if float(widget.step).is_integer() else value
    low = widget.min if widget.has_min else value
    return "double_value", max(low, min(value, widget.max if widget.has_max else value))


def _one_of(widget: Any, dice: random.Random) -> Any:
    return ("string_value", dice.choice(widget.options)) if widget.options else None


def _some_of(widget: Any, dice: random.Random) -> Any:
    chosen = dice.choice(widget.options) if widget.options else None
    return ("string_array_value", [chosen.content]) if chosen else None


_VALUES: dict[str, Callable[[Any, random.Random], Any]] = {
    "slider": _slider,
    "number_input": _number,
    "selectbox": _one_of,
    "radio": _one_of,
    "button_group": _some_of,
    "checkbox": lambda widget, dice: ("bool_value", dice.random() < 0.5),
    "button": lambda widget, dice: ("trigger_value", True),
}
_FIELDS = {
    "Slider": "slider", "NumberInput": "number_input", "Selectbox": "selectbox", "Radio": "radio",
    "ButtonGroup": "button_group", "Checkbox": "checkbox", "Button": "button",
}  # fmt: skip


async def _tab(url: str, dice: random.Random, until: float, pause_s: float, seen: Seen) -> None:
    """One tab, from its opening to its closing."""
    async with opened(url) as line:
        visitor = Visitor(line, f"scenario={dice.choice(PRESETS)}&tour=off")
        await visitor.run()
        while time.monotonic() < until:
            await asyncio.sleep(dice.uniform(0, pause_s))
            seen.acts += 1
            draw = dice.random()
            if draw < TABS_CLOSED:
                break
            if draw < TABS_CLOSED + PAGES_LEFT and visitor.pages:
                await visitor.go(dice.choice(sorted(visitor.pages)), pause_s)
                continue
            changed, value = visitor.another_state(dice)
            plan_s, _ = await visitor.run(changed, value, pause_s)
            if visitor.page in ("", "plan"):
                seen.plan_s.append(plan_s)
        seen.exceptions += visitor.exceptions


async def _person(url: str, number: int, until: float, asked: Any, seen: Seen) -> None:
    dice = random.Random(f"{asked.seed} {number}")
    while time.monotonic() < until:
        try:
            await _tab(url, dice, until, asked.pause, seen)
        except (TimeoutError, websockets.ConnectionClosed):
            seen.late += 1


async def _note(process: int, log: Path, until: float, seen: Seen) -> None:
    began = time.monotonic()
    while True:
        children = children_of(process)
        tracebacks = log.read_text("utf-8", "replace").count("(most recent call last)")
        seen.rows.append((
            time.monotonic() - began, resident_MB(process), sum(map(resident_MB, children)),
            len(children), tracebacks,
        ))  # fmt: skip
        print("| {:.0f} | {:.0f} | {:.0f} | {} | {} |".format(*seen.rows[-1]), flush=True)
        if time.monotonic() > until:
            return
        await asyncio.sleep(NOTED_EVERY_S)


async def _all(url: str, process: int, log: Path, asked: argparse.Namespace) -> Seen:
    seen, until = Seen(), time.monotonic() + 60 * asked.minutes
    people = (_person(url, number, until, asked, seen) for number in range(asked.sessions))
    await asyncio.gather(_note(process, log, until, seen), *people)
    return seen


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between acts, at most")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as written, serving(written) as (url, process):
            print(
                "| s | server, MB | children, MB | children | tracebacks |\n|---|---|---|---|---|"
            )
            seen = asyncio.run(_all(url, process, log, asked))
        text = log.read_text("utf-8", "replace")
    if len(seen.plan_s) > 1:
        print(f"\nplans: median {statistics.median(seen.plan_s):.2f} s, "
              f"p95 {statistics.quantiles(seen.plan_s, n=20)[-1]:.2f} s of {len(seen.plan_s)}; "
              f"{seen.acts} acts, {seen.late} without an answer in time")  # fmt: skip
    print(f"errors shown on pages: {len(seen.exceptions)}", *seen.exceptions[:5], sep="\n")
    if "Traceback" in text:
        print(text[text.index("Traceback") :][:4000])


if __name__ == "__main__":
    main()
