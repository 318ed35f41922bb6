"""Values that no page offers, sent as links and browsers send them; shared by the fuzzers."""

from __future__ import annotations

from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementTree

SMALL = "llama2-7b-64-h100"
TORUS = "llama2-7b-64-tpu-torus"

TEXTS = (
    "inf", "-inf", "nan", "1e999", "9" * 300, "9" * 5000, "-1", "0", "0.5", "1e-320", "-0", "true",
    "null", "[]", "{}", "[1]", '{"a":1}', "abc", "", " ", "a" * 5000, "\x00", "٣", "1_000", "0x10",
    "1,5", "My fabric", "My model", "../x", "kept.x", "kept.", "1e308", "9223372036854775808",
    "none", "`<b>*", "📈",
)  # fmt: skip
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
        page.switch_page(f"pages/{name}.py")
    return page.run()


def faults(page: AppTest) -> list[str]:
    """The exceptions that a page shows."""
    return [entry.message for entry in page.exception]


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


FORGED: tuple[tuple[str, Any], ...] = (
    ("string_value", "abc"), ("string_value", ""), ("string_value", "a" * 5000),
    ("string_array_value", ["abc"]), ("string_array_value", []), ("string_array_value", ["a"] * 99),
    ("double_value", float("nan")), ("double_value", float("inf")), ("double_value", 1e308),
    ("double_value", -1.0), ("int_value", 2**62), ("int_value", -1), ("int_array_value", [7, -1]),
    ("double_array_value", [float("nan")]), ("double_array_value", [1e9]),
    ("double_array_value", []), ("double_array_value", [20.0]), ("bool_value", True),
    ("trigger_value", True), ("json_value", "{}"), ("json_value", "[1]"), ("json_value", "{"),
    ("json_value", '{"edited_rows": {"999": {"price, $": -1}}}'), ("bytes_value", b"\xff"),
)  # fmt: skip
"""States that a client may send for any widget, of its kind or of another's."""
