"""Values that no page offers, sent as links and browsers send them; shared by the fuzzers."""

from __future__ import annotations

from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementTree

SMALL = "llama2-7b-64-h100"
TORUS = "llama2-7b-64-tpu-torus"

TEXTS = (
    "inf",
    "-inf",
    "nan",
    "1e999",
    "9" * 300,
    "9" * 5000,
    "-1",
    "0",
    "0.5",
    "1e-320",
    "-0",
    "true",
    "null",
    "[]",
    "{}",
    "[1]",
    '{"a":1}',
    "abc",
    "",
    " ",
    "a" * 5000,
    "\x00",
    "٣",
    "1_000",
    "0x10",
    "1,5",
    "My fabric",
    "My model",
    "../x",
    "kept.x",
    "kept.",
    "1e308",
    "9223372036854775808",
    "none",
    "`<b>*",
    "📈",
)
"""What an address may say where a page expects something else."""

VALUES: tuple[Any, ...] = (
    float("inf"), float("-inf"), float("nan"), 1e308, 10**300, 2**63, -1, 0, 0.5, True, None, [],
    {}, [1], [[]], {"a": 1}, "abc", "", "inf", "a" * 5000, "\ud800", {"min": "x"}, {"max": None},
    {"min": 3, "max": 1}, [None], ["x"], {"": {}}, {"name": []}, {"kind": "graph"}, {"clos": {}},
    {"clos": []}, {"level": [None]},
)  # fmt: skip
"""What a JSON document may hold where a page expects something else."""


def opened(name: str, address: dict[str, Any], app: str) -> AppTest:
    """A page as it opens on an address's parameters."""
    page = AppTest.from_file(app, default_timeout=120)
    for key, value in address.items():
        page.query_params[key] = value
    if name != "plan":
        page.switch_page(f"../../pages/{name}.py")
    return page.run()


def faults(page: AppTest) -> list[str]:
    """The exceptions that a page shows."""
    return [f"{entry.message} {entry.stack_trace}" for entry in page.exception]


class Forger:
    """A client that sends more than its page's widgets hold."""

    def __init__(self, monkeypatch: Any) -> None:
        self._sent: dict[str, tuple[str, Any]] = {}
        sound = ElementTree.get_widget_states

        def forged(tree: ElementTree) -> Any:
            states = sound(tree)
            kept = [one for one in states.widgets if one.id not in self._sent]
            del states.widgets[:]
            states.widgets.extend([*kept, *(self._state(name) for name in self._sent)])
            return states

        monkeypatch.setattr(ElementTree, "get_widget_states", forged)

    def send(self, page: AppTest, name: str, kind: str, value: Any) -> AppTest:
        """Run the page with one widget's state replaced, or that of one that is gone added."""
        self._sent = {name: (kind, value)}
        try:
            return page.run()
        finally:
            self._sent = {}

    def _state(self, name: str) -> WidgetState:
        kind, value = self._sent[name]
        state = WidgetState(id=name)
        if kind in ("double_array_value", "string_array_value", "int_array_value"):
            getattr(state, kind).data.extend(value)
        elif kind == "string_trigger_value":
            state.string_trigger_value.data = value
        else:
            setattr(state, kind, value)
        return state


_STRINGS = ("abc", "", "a" * 5000)
_LISTS: tuple[list[str], ...] = (["abc"], [], ["a"] * 99)
_NUMBERS = (1e308, -1.0, 0.5, 20.0, 1e15)
FORGED: dict[str, tuple[tuple[str, Any], ...]] = {
    **dict.fromkeys(
        ("selectbox", "radio", "text_input", "text_area"),
        tuple(("string_value", text) for text in _STRINGS),
    ),
    **dict.fromkeys(
        ("multiselect", "button_group", "select_slider"),
        tuple(("string_array_value", texts) for texts in _LISTS),
    ),
    "number_input": tuple(("double_value", number) for number in _NUMBERS),
    "slider": tuple(
        ("double_array_value", [number]) for number in (*_NUMBERS, float("nan"), float("inf"))
    ),
    **dict.fromkeys(("checkbox", "toggle"), (("bool_value", True), ("bool_value", False))),
    "button": (("trigger_value", True),),
}
"""What a client may say for a kind of widget, in its own type, that no page offers."""
