"""What a browser's messages may hold: what no page of ours would send is passed over.

Streamlit keeps what a message says of widgets until a page asks for it, and believes it then. A
value of another type than its widget's, or one that the widget cannot read, would fail there, in
this run and in every later one of its session, and write a traceback each time.

Nor may a part of a page run once another page was asked for: Streamlit would run it after that
page, and the browser, told of a page that it has left, would empty the one that it shows for good.

Here are the studio's uses of what Streamlit keeps to itself: `BackMsg` and `ForwardMsg`, because
what a message says can only be told by reading it, and `WStates`, because a widget's value is read
before any code of a page sees it. `tests/studio/test_private_streamlit.py` fails when one changes.
"""

import itertools
import logging
from typing import Any

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.state.session_state import Serialized, WStates

__all__ = ["OPEN_SOCKETS", "SOCKET_HEADER", "Frames", "believe_only_what_fits"]

_LOG = logging.getLogger(__name__)

LONGEST = 25_000_000
"""Streamlit closes the sockets of longer ones itself."""
LONGEST_NAVIGATION = 20_000
"""Bytes of a message that says which page is shown, with the names of all pages: a few hundred."""
SOCKET_HEADER = "x-nest-studio-socket"
"""What a script reads in ``st.context.headers``: the number of its session's web socket."""
OPEN_SOCKETS: set[str] = set()
"""Numbers of the web sockets that have a browser at their end."""
_numbers = itertools.count()
WIDGETS = ("$$ID-", "$$STREAMLIT_INTERNAL_KEY_$$ID-")
"""Beginnings of the names of widgets, and of what components send beside their own."""
PASSED = frozenset(
    {
        "rerun_script",
        "stop_script",
        "file_urls_request",
        "app_heartbeat",
        "backend_operation_request",
    }
)
"""Kinds of messages: none empties everybody's caches or reads the server's folder."""


class Frames:
    """ASGI middleware: of what web sockets bring, only messages pass; every socket has a number.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or open a web socket."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        page = ""  # what the browser shows, or has asked for last

        async def receive_message() -> Message:
            nonlocal page
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                if (read := _message(message.get("bytes"))) is None:
                    continue
                request = read.rerun_script
                if not request.fragment_id:
                    page = request.page_script_hash or page
                if request.page_script_hash in ("", page):
                    return message

        async def send_message(message: Message) -> None:
            nonlocal page
            frame = message.get("bytes") or b""
            if 0 < len(frame) < LONGEST_NAVIGATION:
                page = ForwardMsg.FromString(frame).navigation.page_script_hash or page
            await send(message)

        name, number = SOCKET_HEADER.encode(), str(next(_numbers))
        headers = [pair for pair in scope["headers"] if pair[0] != name]
        OPEN_SOCKETS.add(number)
        try:
            numbered = {**scope, "headers": [*headers, (name, number.encode())]}
            await self._app(numbered, receive_message, send_message)
        finally:
            OPEN_SOCKETS.discard(number)


def believe_only_what_fits() -> None:
    """Let a widget that was sent what it cannot hold have its standard value; once per server."""
    read = WStates.__getitem__

    def fitting(states: WStates, name: str) -> Any:
        state, widget = states.states.get(name), states.widget_metadata.get(name)
        if not isinstance(state, Serialized) or widget is None:
            return read(states, name)
        kind = state.value.WhichOneof("value")
        if widget.value_type == "double_value" and kind == "int_value":
            kind = "double_value"  # fields of whole numbers say so
        sent = str(kind)
        if kind is None or widget.value_type in (None, kind):
            try:
                return read(states, name)
            except Exception as error:  # whatever a widget raises that never wrote this
                sent = f"{kind}, which it cannot read: {type(error).__name__}"
        _LOG.warning("A widget was sent %s in place of %s.", sent, widget.value_type)
        value = widget.deserializer(None)
        states.set_from_value(name, value)
        return value

    WStates.__getitem__ = fitting  # type: ignore[method-assign]


def _message(frame: bytes | None) -> BackMsg | None:
    """Return what a frame, None for one of text, says; None where no browser sends its like."""
    if frame is None:
        return None
    if len(frame) > LONGEST:
        return BackMsg()
    try:
        message = BackMsg.FromString(frame)
    except DecodeError:
        return None
    states = message.rerun_script.widget_states.widgets
    passed = message.WhichOneof("type") in PASSED
    return message if passed and all(state.id.startswith(WIDGETS) for state in states) else None
