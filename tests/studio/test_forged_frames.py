"""What only a forged client sends: values of another type or shape, and frames that are none.

The page that a forger's own session shows stays whole, whatever it sent: what no browser would send
is passed over. Nobody else notices, and the log has no traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import websockets
from live_server import OURS, connected, elements, served, shown
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from nest_studio.server.frames import Frames

PAGES = {
    "plan": "scenario=llama2-7b-64-h100&tour=off",
    "design": "fabric=drawn-8",
    "compare": "tour=off",
    "workload": "tour=off",
    "explore": "scenario=llama2-7b-64-h100&tour=off",
    "paper": "",
    "learn": "lesson=levels",
    "notebook": "",
}
SLOW = ("explore-run", "again-", "delete", "start", "clear_cache")
"""In the names of widgets that order large work, or of the only thing that is kept."""

NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e308, -1.0, 0.5, 20.0, 2.0**63)
WHOLE = (-(2**63), -1, 0, 7, 2**63 - 1)
TEXTS = ("", "gone", "inf", "a" * 5000, "\x00", "{}", "null")
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    1e308,
    float("nan"),
    "x",
    [],
    {},
    [[]],
    [None],
    {"x": None},
)
DOCUMENTS: tuple[Any, ...] = (
    {"edited_rows": {"0": {"price, $": 1.0}}, "added_rows": [], "deleted_rows": []},
    {"edited_rows": {"0": {"radix": 3}}, "added_rows": [{"id": "x"}], "deleted_rows": [0]},
    {"selection": {"points": [{"customdata": "x"}], "point_indices": [0], "box": [], "lasso": []}},
    {"drawing": {"base": 1, "edition": 9, "elements": [{"id": "a", "role": "device", "radix": 0,
     "count": 1, "group": "", "x": 0, "y": 0}], "links": []}},
    {"action": {"name": "duplicate", "ids": ["a"], "groups": [], "serial": 9}},
)  # fmt: skip
"""What sound widgets say in JSON, to be spoiled."""


class Session:
    """One client's session on a page."""

    def __init__(self, line: Any, page: str, query: str) -> None:
        self._line, self._page, self._query = line, page, query
        self.widgets: dict[str, str] = {}
        self._opened: list[WidgetState] = []

    async def run(self, *states: WidgetState) -> list[ForwardMsg]:
        """Run the page with what the widgets are said to be, to its end."""
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.page_name = self._query, self._page
        asked.widget_states.widgets.extend((*self._opened, *states))
        await self._line.send(message.SerializeToString())
        found: list[ForwardMsg] = []
        while not found or not _ended(found[-1]):
            found.append(ForwardMsg.FromString(await asyncio.wait_for(self._line.recv(), 40)))
        self.widgets.update(widgets_of(found))
        return found

    async def unfolded(self) -> list[ForwardMsg]:
        """Run the page with the groups of its form open from now on, so that it has all fields."""
        await self.run()
        folds = [name for name in self.widgets if "-fold-" in name]
        self._opened = [WidgetState(id=name, bool_value=True) for name in folds]
        return await self.run()

    async def send(self, frame: bytes | str) -> None:
        """Send a frame as it is."""
        await self._line.send(frame)


def _said(messages: list[ForwardMsg], words: bytes) -> bool:
    return any(words in message.SerializeToString() for message in messages)


def _ended(message: ForwardMsg) -> bool:
    return (
        message.WhichOneof("type") == "script_finished"
        and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
    )


def widgets_of(messages: list[ForwardMsg]) -> dict[str, str]:
    """Kinds of the widgets among messages, by their ids."""
    found = {}
    for message in messages:
        if message.WhichOneof("type") != "delta":
            continue
        kind = message.delta.WhichOneof("type")
        part = {"new_element": "new_element", "add_block": "add_block"}.get(kind or "")
        if part is None:
            continue
        holder = getattr(message.delta, part)
        one = holder.WhichOneof("type")
        name = getattr(getattr(holder, one), "id", "") if one else ""
        if isinstance(name, str) and name.startswith("$$"):
            found[name] = one
    return found


@contextlib.asynccontextmanager
async def session(port: int, page: str) -> AsyncIterator[Session]:
    async with connected(port) as line:
        yield Session(line, page, PAGES[page])


def spoiled(dice: random.Random) -> str:
    """JSON as a widget might say it, with a value replaced; or none at all."""
    if dice.random() < 0.2:
        return dice.choice((*TEXTS, "[" * 5000, "1" * 400, '{"selection": ', "1e999"))
    made = json.loads(json.dumps(dice.choice((*DOCUMENTS, *ODD))))
    ways: list[tuple[Any, Any]] = []

    def walk(place: Any) -> None:
        inner = place.items() if isinstance(place, dict) else ()
        inner = enumerate(place) if isinstance(place, list) else inner
        for key, value in inner:
            ways.append((place, key))
            walk(value)

    walk(made)
    if ways:
        place, key = dice.choice(ways)
        if dice.random() < 0.8:
            place[key] = dice.choice(ODD)
        elif isinstance(place, dict):
            place[dice.choice(("x", "-5", "99"))] = place.pop(key)
    return json.dumps(made)


def forged(name: str, dice: random.Random) -> WidgetState:
    """A widget's state of some kind."""
    state = WidgetState(id=name)
    kind = dice.choice([one.name for one in WidgetState.DESCRIPTOR.oneofs[0].fields])
    if kind in ("json_value", "json_trigger_value"):
        setattr(state, kind, spoiled(dice))
    elif kind in ("double_array_value", "int_array_value", "string_array_value"):
        values = {"d": NUMBERS, "i": WHOLE, "s": TEXTS}[kind[0]]
        getattr(state, kind).data.extend(dice.choices(values, k=dice.choice((0, 1, 2, 3, 99))))
        getattr(state, kind).SetInParent()
    elif kind == "double_value":
        state.double_value = dice.choice(NUMBERS)
    elif kind == "int_value":
        state.int_value = dice.choice(WHOLE)
    elif kind in ("bool_value", "trigger_value"):
        setattr(state, kind, dice.random() < 0.8)
    elif kind == "string_value":
        state.string_value = dice.choice((dice.choice(TEXTS), spoiled(dice)))  # tables and charts
    elif kind == "bytes_value":
        state.bytes_value = dice.randbytes(9)
    elif kind == "file_uploader_state_value":
        one = state.file_uploader_state_value.uploaded_file_info.add(file_id="gone", name="a.txt")
        one.size = 2**62
    else:
        getattr(state, kind).SetInParent()
    return state


def faults(messages: list[ForwardMsg]) -> list[str]:
    """Boxes of errors that only a defect shows."""
    told = [one.body for one in elements(messages, "alert") if "which is a defect" in one.body]
    return told + [one.message for one in elements(messages, "exception")]


async def forge(port: int, page: str, seed: int, times: int) -> None:
    dice = random.Random(f"{page} {seed}")
    async with session(port, page) as one:
        first = await one.run()
        assert not faults(first)
        named = [name for name in sorted(one.widgets) if not any(part in name for part in SLOW)]
        assert named
        for _ in range(times):
            named = [name for name in sorted(one.widgets) if not any(part in name for part in SLOW)]
            states = [
                forged(dice.choice([*named, "$$ID-0-gone"]), dice)
                for _ in range(dice.choice((1, 1, 3)))
            ]
            told = ", ".join(f"{state.id[-40:]} {str(state)[-150:]}" for state in states)
            assert not faults(await one.run(*states)), told
        last = await one.run()
        assert not faults(last)
        assert len(elements(last, "alert")) <= len(elements(first, "alert")) + 2


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with served(OURS, tmp_path_factory.mktemp("studio")) as found:
        yield found


def quiet(log: Path, before: int) -> bool:
    return "Traceback" not in log.read_text()[before:]


@pytest.mark.parametrize(
    "page",  # all but those that wait for long
    [
        "workload",
        "notebook",
        *(pytest.param(page, marks=pytest.mark.check) for page in ("design", "paper", "learn")),
    ],
)
def test_forged_widgets_break_no_page(studio, page):
    port, log = studio
    before = len(log.read_text())
    asyncio.run(forge(port, page, 0, 3))
    assert quiet(log, before)


@pytest.mark.check
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("page", PAGES)
def test_forged_widgets_break_no_page_at_length(studio, page, seed):
    port, log = studio
    before = len(log.read_text())
    asyncio.run(forge(port, page, seed, 60))
    assert quiet(log, before)


KINDS = [
    ("workload.global_batch_sequences", {"string_value": "many"}),
    ("workload.global_batch_sequences", {"double_value": float("nan")}),
    ("fabric", {"double_value": 1.0}),
    ("fabric", {"json_value": "[" * 5000}),
    ("accelerator.memory_GiB", {"bytes_value": b"\xff"}),
    pytest.param("scenario", {"double_value": 1.0}, marks=pytest.mark.check),  # plans the default
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("key", "said"), KINDS)
def test_a_session_goes_on_after_a_value_of_another_type(studio, key, said):
    """And takes the next sound one."""
    port, log = studio
    before = len(log.read_text())

    async def visit() -> None:
        def metrics(run: list[ForwardMsg]) -> list[str]:
            return [one.body for one in elements(run, "html") if "nest-card" in one.body]

        async with session(port, "plan") as one, asyncio.timeout(150):
            first = await one.unfolded()
            name = next(name for name in one.widgets if name.endswith(f"-{key}"))
            assert not faults(await one.run(WidgetState(id=name, **said)))
            batch = next(name for name in one.widgets if name.endswith("global_batch_sequences"))
            state = WidgetState(id=batch, double_value=256.0)
            last = await one.run(state)
            while not faults(last) and metrics(last) in ([], metrics(first)):  # it is on its way
                await asyncio.sleep(0.5)
                last = await one.run(state)
            assert not faults(last)

    asyncio.run(visit())
    assert quiet(log, before)


def test_a_whole_number_is_taken_as_browsers_say_it(studio):
    """Fields of whole numbers send whole numbers, though Streamlit calls all of them doubles."""
    port, _ = studio

    async def visit() -> None:
        async with session(port, "plan") as one:
            await one.unfolded()
            name = next(name for name in one.widgets if name.endswith("global_batch_sequences"))
            state = WidgetState(id=name, int_value=96)
            async with asyncio.timeout(150):  # the page says it with its plan
                while not _said(await one.run(state), b"batch 96"):
                    await asyncio.sleep(0.1)

    asyncio.run(visit())


def test_a_first_message_of_forged_widgets_opens_its_page(studio):
    """As where a line was lost: the server knows none of the widgets yet."""
    port, log = studio
    before = len(log.read_text())

    async def visit() -> None:
        async with session(port, "plan") as one:
            await one.unfolded()
            names = list(one.widgets)
        async with session(port, "plan") as one:
            first = await one.run(*(WidgetState(id=name, json_value="[") for name in names))
            assert not faults(first)
            assert elements(first, "selectbox")

    asyncio.run(visit())
    assert quiet(log, before)


TABLES = (
    {"edited_rows": {"999": {"price, $": 1}}},
    {"edited_rows": {"-1": {"radix": 1}}},
    {"edited_rows": {"0": {"no column": 1}}},
    {"edited_rows": {"0": {"price, $": "much", "radix": "many", "id": 5}}},
    {"edited_rows": {"0": {"price, $": [1], "radix": 0.5, "id": {}}}},
    {"edited_rows": {"0": None}},
    {"edited_rows": {"0": {"price, $": 1e999, "radix": 1e999}}},
    {"added_rows": [5]},
    {"added_rows": {"0": {}}},
    {"deleted_rows": [999]},
    {"deleted_rows": ["0"]},
    {"deleted_rows": 0},
)


@pytest.mark.parametrize("table", ["prices.table", "elements 0"])
def test_edits_that_a_table_does_not_have_are_forgotten(studio, table):
    port, log = studio
    before = len(log.read_text())

    async def visit() -> None:
        async with session(port, "design") as one:
            first = await one.run()
            draw = next(
                button.id
                for button in elements(first, "button")
                if button.label in ("Edit as my own drawing", "New drawing")
            )
            if table != "prices.table":
                assert not faults(await one.run(WidgetState(id=draw, trigger_value=True)))
            while not any(name.endswith(f"-{table}") for name in one.widgets):  # bills take a while
                await one.run()
            name = next(name for name in one.widgets if name.endswith(f"-{table}"))
            for said in TABLES:
                state = WidgetState(id=name, string_value=json.dumps(said))
                assert not faults(await one.run(state)), said

    asyncio.run(visit())
    assert quiet(log, before)


NAMED_OTHERWISE = BackMsg()
NAMED_OTHERWISE.rerun_script.widget_states.widgets.add(id="compare entries", string_value="x")
FRAMES = {
    "text": "text",
    "empty": b"",
    "none": b"\xff" * 99,
    "cut": NAMED_OTHERWISE.SerializeToString()[:-1],
    "no widget": NAMED_OTHERWISE.SerializeToString(),
    "random": random.Random(18).randbytes(10_000_000),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_that_are_no_message_are_passed_over(studio, frame):
    port, log = studio
    before = len(log.read_text())

    async def visit() -> None:
        async with session(port, "learn") as one:
            await one.run()
            await one.send(frame)
            assert not faults(await one.run())

    asyncio.run(visit())
    assert quiet(log, before)


def test_no_visitor_empties_the_caches_of_all_or_asks_for_the_servers_folder():
    """Streamlit's clients may: of its messages only those pass that a visitor's own pages need."""
    kinds = BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields
    frames = []
    for kind in kinds:
        message = BackMsg()
        if kind.message_type is None:
            setattr(message, kind.name, kind.type != kind.TYPE_STRING or "x")
        else:
            getattr(message, kind.name).SetInParent()
        frames.append(message.SerializeToString())
    passed = []

    async def app(scope, receive, send):
        while (message := await receive())["type"] == "websocket.receive":
            passed.append(BackMsg.FromString(message["bytes"]).WhichOneof("type"))

    async def brought():
        if frames:
            return {"type": "websocket.receive", "bytes": frames.pop()}
        return {"type": "websocket.disconnect"}

    asyncio.run(Frames(app)({"type": "websocket", "headers": []}, brought, None))
    refused = {kind.name for kind in kinds} - set(passed)
    assert {"clear_cache", "load_git_info", "set_run_on_save", "debug_shutdown_runtime"} <= refused
    assert {"rerun_script", "stop_script", "file_urls_request"} <= set(passed)


@pytest.mark.check
def test_a_frame_that_is_too_long_ends_its_session_alone(studio):
    port, log = studio
    before = len(log.read_text())

    async def visit() -> None:
        async with session(port, "learn") as one:
            await one.run()
            message = BackMsg()
            message.rerun_script.query_string = "x" * 30_000_000
            await one.send(message.SerializeToString())
            with pytest.raises(websockets.ConnectionClosed):
                await one.run()

    asyncio.run(visit())
    assert quiet(log, before)
    assert not faults(asyncio.run(shown(port, "learn")))
