"""What a browser's messages may hold: what no page of ours would send is passed over.

Streamlit keeps what a message says of widgets until a page asks for it, and believes it then. A
value of another type than its widget's, or one that the widget cannot read, would fail there, in
this run and in every later one of its session, and write a traceback each time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.state.session_state import Serialized, WStates

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Frames", "believe_only_what_fits"]

_LOG = logging.getLogger(__name__)

LONGEST = 25_000_000
"""Streamlit closes the sockets of longer ones itself."""
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
    """ASGI middleware: of what web sockets bring, only messages pass.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or open a web socket."""

        async def sound() -> Message:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive" or _is_message(message.get("bytes")):
                    return message

        await self._app(scope, sound if scope["type"] == "websocket" else receive, send)


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


def _is_message(frame: bytes | None) -> bool:
    """Whether a frame, None for one of text, is a message as browsers send them."""
    if frame is None:
        return False
    if len(frame) > LONGEST:
        return True
    try:
        message = BackMsg.FromString(frame)
    except DecodeError:
        return False
    states = message.rerun_script.widget_states.widgets
    passed = message.WhichOneof("type") in PASSED
    return passed and all(one.id.startswith(WIDGETS) for one in states)
