"""What a page that was left still asks for: parts of it draw nothing on the page that followed."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from live_server import OURS, connected, served
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

QUIET_S = 2.0


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with served(OURS, tmp_path_factory.mktemp("studio")) as (port, _):
        yield port


def asks(query="tour=off", **fields) -> bytes:
    message = BackMsg()
    message.rerun_script.query_string = query
    for name, value in fields.items():
        setattr(message.rerun_script, name, value)
    return message.SerializeToString()


async def until_quiet(line) -> list[ForwardMsg]:
    """All messages up to a pause after a run's end."""
    messages: list[ForwardMsg] = []
    with contextlib.suppress(TimeoutError):
        while True:
            ended = any(message.WhichOneof("type") == "script_finished" for message in messages)
            patience = QUIET_S if ended else 60
            messages.append(ForwardMsg.FromString(await asyncio.wait_for(line.recv(), patience)))
    return messages


def pages_of(messages: list[ForwardMsg]) -> list[str]:
    """Hashes of the pages whose runs began, in order."""
    return [
        message.new_session.page_script_hash
        for message in messages
        if message.WhichOneof("type") == "new_session"
    ]


def test_a_part_of_the_page_that_was_left_does_not_run(port):
    """The browser would empty the page that it now shows, for good."""

    async def visit() -> None:
        async with connected(port) as line:
            await line.send(asks(page_name="compare"))
            first = await until_quiet(line)
            (shown,) = [one.navigation for one in first if one.WhichOneof("type") == "navigation"]
            left = shown.page_script_hash
            pages = {page.url_pathname: page.page_script_hash for page in shown.app_pages}
            part = next(one.delta.fragment_id for one in first if one.delta.fragment_id)
            assert pages["compare"] == left
            await line.send(asks(page_script_hash=left, fragment_id=part))
            assert {*pages_of(await until_quiet(line))} == {left}  # shown, it does; late runs too
            await line.send(asks(page_script_hash=pages["workload"]))
            await line.send(asks(page_script_hash=left, fragment_id=part))
            assert pages_of(await until_quiet(line)) == [pages["workload"]]

    asyncio.run(visit())
