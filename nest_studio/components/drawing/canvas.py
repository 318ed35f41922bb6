"""The canvas as a Streamlit component: what goes to the browser, what comes back.

Python owns the drawing. The browser shows it, lets people change it, and after every finished
gesture sends the whole drawing back; what needs the whole document (undo, redo, duplicate,
arrange) it asks for by name. A page does::

    received = pending("canvas")       # what the person did since the last run
    ...                                # bring the document up to date
    canvas(drawing, key="canvas")      # show it; this also says what has been answered

or, at the price of a second run, reads the same from what `canvas` returns. Not both.

Importing this module outside a running Streamlit fails: it registers the component. The browser
side is built from ``frontend/`` into ``assets/`` by ``make canvas``; Streamlit finds the latter
through ``[tool.streamlit.component]`` in ``pyproject.toml``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_origin, get_type_hints

import streamlit as st

__all__ = [
    "Action",
    "CanvasDrawing",
    "CanvasResult",
    "Change",
    "DrawnElement",
    "DrawnLink",
    "canvas",
    "pending",
]

Role = Literal["device", "nic", "switch"]
ActionName = Literal["undo", "redo", "duplicate", "arrange"]


class DrawnElement(TypedDict):
    """A device, NIC or switch."""

    id: str
    """Its name, unique in the drawing."""
    role: Role
    radix: int
    """Ports it has; 0: not stated."""
    count: int
    """Equal NICs or switches that it stands for; a device is one."""
    group: str
    """Path of the groups around it, outermost first ("pod0/rack1/node3"); "" for none."""
    x: float | None
    """Centre, in pixels at zoom 1, y downwards; None: the browser lays it out."""
    y: float | None


class DrawnLink(TypedDict):
    """One or several equal links between two elements."""

    a: str
    b: str
    bandwidth_GBps: float
    """Of one link, per direction."""
    count: int
    latency_us: float


class CanvasDrawing(TypedDict):
    """What the canvas shows."""

    revision: int
    """Another number whenever elements or links differ from what was shown before."""
    name: str
    elements: list[DrawnElement]
    links: list[DrawnLink]


class Change(TypedDict):
    """The whole drawing after a gesture."""

    base: int
    """Revision that the browser held."""
    edition: int
    """Counts the gestures of a session; every change has a higher one."""
    elements: list[DrawnElement]
    """All with a position."""
    links: list[DrawnLink]


class Action(TypedDict):
    """What the browser leaves to Python; to be done after the change that came with it."""

    name: ActionName
    ids: list[str]
    """Elements selected, those of selected groups included."""
    groups: list[str]
    """Groups selected as a whole, by path."""
    serial: int
    """Counts the actions of a session."""


@dataclass(frozen=True, slots=True)
class CanvasResult:
    """What a person did since the canvas was last drawn; each is handed out until then."""

    drawing: Change | None
    action: Action | None


_component = st.components.v2.component("nest-studio.drawing", js="drawing.js")


def pending(key: str) -> CanvasResult:
    """Return what the canvas of that key has sent and no run has answered by drawing it again."""
    sent = st.session_state.get(key)
    return _unanswered(key, sent if isinstance(sent, Mapping) else {})


def canvas(
    drawing: CanvasDrawing, *, key: str, height: int = 560, editable: bool = True
) -> CanvasResult:
    """Show a drawing and let it be changed.

    Parameters
    ----------
    drawing
        What to show. The browser takes it over when its revision is new to it, keeping viewport,
        selection and opened groups; fitted anew is only what shares no element with before.
        An answer to an older gesture than the browser's last is passed over.
    key
        Names the canvas within the session; also the entry of ``st.session_state`` that tests
        may write: ``{"drawing": change}``, and an action under ``"action"``.
    height
        Of the whole canvas, in pixels.
    editable
        Whether it can be changed or only looked at.

    Returns
    -------
    CanvasResult
        As `pending` returned it before this call.
    """
    result = pending(key)
    answered = _answered(key)
    if result.drawing:
        answered["edition"] = result.drawing["edition"]
    if result.action:
        answered["serial"] = result.action["serial"]
    st.session_state[_memory(key)] = answered
    _component(
        key=key,
        data={**drawing, "answered": answered, "height": height, "editable": editable},
        on_drawing_change=_nothing,
        on_action_change=_nothing,
    )
    return result


def _nothing() -> None:
    """Streamlit knows a component's values by their callbacks."""


def _memory(key: str) -> str:
    return f"{key} answered"


def _answered(key: str) -> dict[str, int]:
    return dict(st.session_state.get(_memory(key), {"edition": 0, "serial": 0}))


def _unanswered(key: str, sent: Mapping[str, Any]) -> CanvasResult:
    answered = _answered(key)
    change, action = sent.get("drawing"), sent.get("action")
    return CanvasResult(
        drawing=change if _is_new(change, Change, "edition", answered) else None,
        action=action if _is_new(action, Action, "serial", answered) else None,
    )


def _is_new(sent: Any, kind: Any, count: str, answered: Mapping[str, int]) -> bool:
    """Whether something was sent that no run has answered; what has not its shape was not."""
    if not isinstance(sent, Mapping):
        return False
    shaped = all(
        isinstance(sent.get(key), _plain(hint)) for key, hint in get_type_hints(kind).items()
    )
    return shaped and sent[count] > answered[count]


def _plain(hint: Any) -> Any:
    """Return the type of a JSON value that a field of `Change` or `Action` has."""
    return {Literal: str}.get(get_origin(hint), get_origin(hint) or hint)
