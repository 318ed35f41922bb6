"""Widgets that say what their page no longer offers: late clicks, stale values, forgeries.

A seeded clicker changes widgets, presses buttons and goes from page to page, and now and then
sends what a browser would only send for controls that are gone, or what only a forged client says.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hostile import FORGED, SMALL, TEXTS, TORUS, Forger, faults, opened
from streamlit.testing.v1 import AppTest

from nest_studio import jobs

PAGES = ("plan", "design", "workload", "compare", "explore", "learn", "paper", "notebook")
SCENARIOS = (SMALL, TORUS)
FABRICS = ("h100-spine-leaf-64", "torus-16x16", "drawn-8", "v100-pods-64", "unequal-racks-88")
"""Small ones: a clicker is to click, not to wait for large searches."""

SLOW = ("explore-run", "start", "add-plan", "again-", "add-plan", "explore-open")
OURS = ("selectbox", "multiselect", "slider", "number_input", "checkbox", "toggle", "radio",
        "text_input", "text_area", "button", "button_group", "select_slider", "data_editor",
        "file_uploader", "component")  # fmt: skip


@pytest.fixture
def quick(at_once, monkeypatch):
    """Only plans of small scenarios are computed; other work stays on its way."""
    done = jobs.Desk.ask

    def asked(desk, key, function, *args, urgent=True):
        if key.startswith(("plan ", "lesson")) and '"Llama 2 7B' in key:
            return done(desk, key, function, *args)
        return jobs.Job(key)

    monkeypatch.setattr(jobs.Desk, "ask", asked)
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)


class Clicker:
    """One person's session, in which anything may be pressed."""

    def __init__(self, app: str, seed: int, forger: Forger) -> None:
        self.rng = random.Random(seed)
        self.forger = forger
        self.seen: dict[str, str] = {}
        self.steps: list[str] = []
        name = self.rng.choice(PAGES)
        self.page = opened(name, {"scenario": SMALL, "tour": "off"}, app)
        self._after(f"open {name}")

    def step(self) -> None:
        """Do one thing."""
        roll = self.rng.random()
        if roll < 0.15:
            name = self.rng.choice(PAGES)
            self.page.switch_page(f"pages/{name}.py").run()
            self._after(f"go to {name}")
        elif roll < 0.45 and self.seen:
            self._forge()
        else:
            self._change()

    def _forge(self) -> None:
        """Say something for a widget of this page or of one before."""
        name = self.rng.choice(sorted(self.seen))
        kind, value = self.rng.choice(FORGED)
        try:
            self.forger.send(self.page, name, kind, value)
        finally:
            self._after(f"forge {self.seen[name]} {kind} {str(value)[:30]}")

    def _change(self) -> None:
        """Change a widget of the page as its controls allow."""
        widgets = [one for one in self._widgets() if self._usable(one)]
        if not widgets:
            return
        one = self.rng.choice(widgets)
        said = self._set(one)
        self.page.run()
        self._after(f"{one.type} {one.key or getattr(one, 'label', '')} {said}")

    def _widgets(self) -> list[Any]:
        found: list[Any] = []
        for kind in OURS:
            found += self.page.get(kind)
        return found

    def _usable(self, one: Any) -> bool:
        slow = one.key is not None and one.key.startswith(SLOW)
        return hasattr(one, "run") and not getattr(one, "disabled", False) and not slow

    def _set(self, one: Any) -> Any:
        rng = self.rng
        if one.type in ("selectbox", "radio"):
            options = list(one.options)
            known = {"scenario": SCENARIOS, "fabric": FABRICS}.get(one.key or "", options)
            chosen = rng.choice([option for option in options if option in known] or options)
            one.select_index(options.index(chosen))
        elif one.type == "multiselect":
            one.set_value(rng.sample(list(one.options), min(2, len(one.options))))
        elif one.type in ("slider", "number_input"):
            one.set_value(rng.choice([value for value in (one.min, one.max) if value is not None]))
        elif one.type in ("checkbox", "toggle"):
            one.set_value(not one.value)
        elif one.type in ("text_input", "text_area"):
            one.set_value(rng.choice(TEXTS))
        elif one.type == "select_slider":
            one.set_value(rng.choice(one.options))
        elif one.type == "button":
            one.click()
        return getattr(one, "value", "")

    def _after(self, what: str) -> None:
        self.steps.append(what)
        for one in self._widgets():
            if getattr(one, "id", ""):
                self.seen[one.id] = one.key or one.type
        assert not faults(self.page), self.steps[-6:]


@pytest.mark.parametrize("seed", range(6))
def test_a_random_clicker_breaks_no_page(quick, root, store, monkeypatch, seed):
    clicker = Clicker(str(root / "app.py"), seed, Forger(monkeypatch))
    for _ in range(15):
        clicker.step()


@pytest.mark.check
@pytest.mark.parametrize("seed", range(100, 160))
def test_a_random_clicker_breaks_no_page_at_length(quick, root, store, monkeypatch, seed):
    clicker = Clicker(str(root / "app.py"), seed, Forger(monkeypatch))
    for _ in range(60):
        clicker.step()


def widget_of(page: AppTest, kind: str, key: str) -> str:
    return next(one.id for one in page.get(kind) if one.key == key)


def test_the_price_list_of_a_drawing_that_is_no_fabric_says_nothing(
    quick, root, store, monkeypatch
):
    page = opened("design", {"fabric": "h100-spine-leaf-64"}, str(root / "app.py"))
    limit = widget_of(page, "number_input", "prices.rack_power")
    new = next(one for one in page.button if one.label == "New drawing")
    new.click().run()
    next(one for one in page.button if one.label == "New drawing").click().run()
    Forger(monkeypatch).send(page, limit, "double_value", 33.0)
    assert not faults(page)
    page.selectbox(key="fabric").set_value("h100-spine-leaf-64").run()
    assert not faults(page)
    assert page.number_input(key="prices.rack_power").value


def test_a_slider_of_a_wider_fabric_leaves_its_value_behind(quick, root, store):
    page = opened("plan", {"scenario": SMALL, "tour": "off"}, str(root / "app.py"))
    page.session_state["fabric.clos.oversubscription.0"] = 40.0
    page.run()
    assert not faults(page)
    assert page.slider(key="fabric.clos.oversubscription.0").value == 1.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("accelerator.memory_GiB", "many"),
        ("accelerator.memory_GiB", float("inf")),
        ("workload.global_batch_sequences", 10**7),
        ("workload.sequence_length_tokens", 1.5),
        ("search.tp", []),
        ("search.zero", [7]),
        ("search.zero", "x"),
        ("workload.precision", 3),
        ("scenario", "gone"),
        ("fabric.clos.devices", -8),
        ("fabric.clos.oversubscription.0", "1"),
    ],
)
def test_what_a_field_cannot_hold_is_forgotten(quick, root, store, key, value):
    page = opened("plan", {"scenario": SMALL, "tour": "off"}, str(root / "app.py"))
    usual = page.session_state[key]
    page.session_state[key] = value
    page.run()
    assert not faults(page)
    assert page.session_state[key] == usual or key == "scenario"


@pytest.mark.parametrize(
    ("name", "address", "kind", "key", "forged"),
    [
        ("plan", {}, "selectbox", "scenario", ("string_value", "gone")),
        ("plan", {}, "selectbox", "accelerator", ("string_value", "gone")),
        ("plan", {}, "selectbox", "workload.model", ("string_value", "gone")),
        ("design", {}, "selectbox", "fabric", ("string_value", "gone")),
        ("design", {}, "selectbox", "collective.op", ("string_value", "gone")),
        ("workload", {}, "selectbox", "layer.model", ("string_value", "gone")),
        ("workload", {}, "selectbox", "layer.accelerator", ("string_value", "gone")),
        ("compare", {}, "selectbox", "compare-set", ("string_value", "gone")),
        ("compare", {}, "button", "compare-undo", ("trigger_value", True)),
        ("design", {}, "selectbox", "prices.media", ("string_value", "gone")),
        ("design", {}, "data_editor", "prices.table", ("json_value", "[1]")),
    ],
)
def test_a_forged_value_breaks_no_page(
    quick, root, store, monkeypatch, name, address, kind, key, forged
):
    base = {"scenario": SMALL, "tour": "off"} if name == "plan" else {}
    page = opened(name, base | address, str(root / "app.py"))
    known = [one.id for one in page.get(kind) if one.key == key]
    if not known and kind == "data_editor":
        known = [one.proto.id for one in page.get("arrow_data_frame") if key in one.proto.id]
    for one in known:
        Forger(monkeypatch).send(page, one, *forged)
        assert not faults(page)
