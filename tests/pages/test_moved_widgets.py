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

from nest_core.documents.presets import preset_names
from nest_studio.jobs import waiting as jobs

PAGES = ("plan", "design", "workload", "compare", "explore", "learn", "paper", "notebook")
SCENARIOS = (SMALL, TORUS)
FABRICS = ("h100-spine-leaf-64", "torus-16x16", "drawn-8", "v100-pods-64", "unequal-racks-88")
"""Small ones: a clicker is to click, not to wait for large searches."""

SLOW = ("explore-run", "start", "add-plan", "again-")
"""Beginnings of the keys of buttons that order large work."""


@pytest.fixture
def quick(monkeypatch):
    """Only fabrics and plans of small scenarios are computed; other work stays on its way."""
    done = jobs.JobQueue.ask

    def asked(job_queue, key, function, *args, urgent=True, wanted_by=None):
        small_plan = function.__name__ == "best_plan" and (
            args[0].values.model.name == "Llama 2 7B"
        )
        if small_plan or function.__module__ == "nest_studio.jobs.tasks.fabrics":
            return done(job_queue, key, function, *args)
        return jobs.WorkerJob(key)

    monkeypatch.setattr(jobs.JobQueue, "ask", asked)
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)


class Clicker:
    """One person's session, in which anything may be pressed."""

    def __init__(self, app: str, seed: int, forger: Forger) -> None:
        self.rng = random.Random(seed)
        self.forger = forger
        self.seen: dict[str, tuple[str, str]] = {}
        self.steps: list[str] = []
        name = self.rng.choice(PAGES)
        self.page = opened(name, {"scenario": SMALL, "tour": "off"}, app)
        self._after(f"open {name}")

    def step(self) -> None:
        """Do one thing."""
        roll = self.rng.random()
        if roll < 0.15:
            name = self.rng.choice(PAGES)
            self.page.switch_page(f"../../pages/{name}.py").run()
            self._after(f"go to {name}")
        elif roll < 0.45 and self.seen:
            self._forge()
        else:
            self._change()

    def _forge(self) -> None:
        """Say something for a widget of this page or of one before."""
        name = self.rng.choice(sorted(self.seen))
        widget, key = self.seen[name]
        kind, value = self.rng.choice(FORGED[widget])
        self.forger.send(self.page, name, kind, value)
        self._after(f"forge {key} {kind} {str(value)[:30]}")

    def _change(self) -> None:
        """Change a widget of the page as its controls allow."""
        widgets = [one for one in self._widgets() if self._usable(one)]
        if not widgets:
            return
        one = self.rng.choice(widgets)
        said = self._set(one)
        if one.type == "radio" and one.options:
            said = self.rng.choice(one.options)
            self.forger.send(self.page, one.id, "string_value", said)
        else:
            self.page.run()
        self._after(f"{one.type} {one.key or getattr(one, 'label', '')} {said}")

    def _widgets(self) -> list[Any]:
        found: list[Any] = []
        for kind in FORGED:
            found += self.page.get(kind)
        return found

    def _usable(self, one: Any) -> bool:
        slow = one.key is not None and one.key.startswith(SLOW)
        return not getattr(one, "disabled", False) and not slow

    def _some(self, one: Any) -> Any:
        options = list(getattr(one, "options", ()))
        return self.rng.sample(options, min(2, len(options)))

    def _set(self, one: Any) -> Any:
        rng = self.rng
        if one.type == "selectbox":
            options = list(one.options)
            known = {"scenario": SCENARIOS, "fabric": FABRICS}.get(one.key or "", options)
            chosen = rng.choice([option for option in options if option in known] or options)
            one.select_index(options.index(chosen))
        elif one.type == "multiselect":
            one.set_value(self._some(one))
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
            slow = (one.key or "").startswith(SLOW)
            if getattr(one, "id", "") and one.type in FORGED and not slow:
                self.seen[one.id] = one.type, one.key or one.type
        assert not faults(self.page), self.steps[-6:]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.check) for n in (1, 2))])
def test_a_random_clicker_breaks_no_page(quick, root, store, monkeypatch, seed):
    clicker = Clicker(str(root / "nest_studio" / "server" / "script.py"), seed, Forger(monkeypatch))
    for _ in range(15):
        clicker.step()


@pytest.mark.check
@pytest.mark.parametrize("seed", range(100, 160))
def test_a_random_clicker_breaks_no_page_at_length(quick, root, store, monkeypatch, seed):
    clicker = Clicker(str(root / "nest_studio" / "server" / "script.py"), seed, Forger(monkeypatch))
    for _ in range(60):
        clicker.step()


def widget_of(page: AppTest, kind: str, key: str) -> str:
    return next(one.id for one in page.get(kind) if one.key == key)


def test_the_price_list_of_a_drawing_that_is_no_fabric_says_nothing(
    quick, root, store, monkeypatch
):
    page = opened(
        "design",
        {"fabric": "h100-spine-leaf-64"},
        str(root / "nest_studio" / "server" / "script.py"),
    )
    limit = widget_of(page, "number_input", "prices.rack_power")
    new = next(one for one in page.button if one.label == "New drawing")
    new.click().run()
    next(one for one in page.button if one.label == "New drawing").click().run()
    Forger(monkeypatch).send(page, limit, "double_value", 33.0)
    assert not faults(page)
    page.selectbox(key="fabric").set_value("h100-spine-leaf-64").run()
    assert not faults(page)
    assert page.number_input(key="prices.rack_power").value


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("paper", "name"),
        ("paper", "costs"),
        ("learn", "lesson"),
        ("explore", "explore.asks"),
        ("plan", "paint"),
        ("design", "figure-format-bill"),
    ],
)
@pytest.mark.sampled(3)
def test_a_choice_that_must_be_made_is_not_taken_back(quick, root, store, monkeypatch, name, key):
    base = {"scenario": SMALL, "tour": "off"} if name in ("plan", "explore") else {}
    page = opened(name, base, str(root / "nest_studio" / "server" / "script.py"))
    Forger(monkeypatch).send(page, widget_of(page, "button_group", key), "string_array_value", [])
    assert not faults(page)


def test_a_late_press_for_another_scenario_opens_it(quick, root, store, monkeypatch):
    page = opened("compare", {}, str(root / "nest_studio" / "server" / "script.py"))
    late = widget_of(page, "button", "compare-plan-1")
    page.button(key="compare-plan-0").click().run()
    Forger(monkeypatch).send(page, late, "trigger_value", True)
    assert not faults(page)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("accelerator.memory_GiB", float("inf")),
        ("workload.sequence_length_tokens", 1.5),
        ("search.zero", "x"),
        ("fabric.clos.devices", -8),
        ("fabric.clos.oversubscription.0", 40.0),
        ("fabric.clos.oversubscription.0", "1"),
        pytest.param("accelerator.memory_GiB", "many", marks=pytest.mark.check),
        pytest.param("workload.global_batch_sequences", 10**7, marks=pytest.mark.check),
        pytest.param("search.tp", -4, marks=pytest.mark.check),
    ],
)
@pytest.mark.sampled(3)
def test_what_a_field_cannot_hold_is_forgotten(quick, root, store, key, value):
    """As where a step back, a link or a notebook sets what the controls of now do not have."""
    page = opened("compare", {}, str(root / "nest_studio" / "server" / "script.py"))
    page.session_state["scenario"] = SMALL
    page.session_state[key] = value
    page.switch_page("../../pages/plan.py").run()
    assert not faults(page)
    assert "nest-card" in "".join(one.proto.body for one in page.get("html"))
    assert page.session_state[key] != value


def test_more_choices_than_a_field_takes_are_forgotten(quick, root, store):
    """Seven models of a mix, where six have room: only a browser keeps to that by itself."""
    asks = {"explore.asks": "Highest ratios"}
    page = opened("explore", asks, str(root / "nest_studio" / "server" / "script.py"))
    page.session_state["explore.models"] = list(preset_names("models")[:7])
    page.run()
    assert not faults(page)
    assert len(page.session_state["explore.models"]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "kind", "key", "forged"),
    [
        ("plan", "selectbox", "scenario", ("string_value", "gone")),
        ("plan", "selectbox", "accelerator", ("string_value", "gone")),
        ("plan", "selectbox", "workload.model", ("string_value", "gone")),
        ("design", "selectbox", "fabric", ("string_value", "gone")),
        ("design", "selectbox", "collective.op", ("string_value", "gone")),
        ("workload", "selectbox", "layer.model", ("string_value", "gone")),
        ("workload", "selectbox", "layer.accelerator", ("string_value", "gone")),
        ("compare", "selectbox", "compare-set", ("string_value", "gone")),
        ("compare", "button", "compare-undo", ("trigger_value", True)),
        ("design", "selectbox", "prices.media", ("string_value", "gone")),
    ],
)
@pytest.mark.sampled(3)
def test_a_forged_value_breaks_no_page(quick, root, store, monkeypatch, name, kind, key, forged):
    base = {"scenario": SMALL, "tour": "off"} if name == "plan" else {}
    page = opened(name, base, str(root / "nest_studio" / "server" / "script.py"))
    Forger(monkeypatch).send(page, widget_of(page, kind, key), *forged)
    assert not faults(page)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PAGES)
def test_a_choice_that_no_control_offers_breaks_no_page(quick, root, store, monkeypatch, name):
    """Of every control of the page that has choices, in its callback as on the page."""
    base = {"scenario": SMALL, "tour": "off"} if name in ("plan", "explore") else {}
    page = opened(name, base, str(root / "nest_studio" / "server" / "script.py"))
    forger = Forger(monkeypatch)
    choices = [
        (one.id, kind)
        for kind in ("selectbox", "radio", "multiselect", "button_group", "select_slider")
        for one in page.get(kind)
    ]
    assert choices or name == "notebook"
    for widget, kind in choices:
        said = FORGED[kind][0]
        forger.send(page, widget, *said)
        assert not faults(page), (widget, said)
