"""Random journeys: address, title, form and figures of a page say the same, however it was reached.

A browser's Back and Forward are those of `tests/browser/test_titles_in_browser.py`.

What is held against each other is read off the page as a person reads it: the title's counts
against the form's fields, the plan's degrees and the headline; the address against the form; and
the page that the address opens anew against the one that wrote it.
"""

from __future__ import annotations

import html
import math
import random
import re
import tomllib
from pathlib import Path

import pytest
from plan_cards import big_figures
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
OWN = "My fabric"
SMALL = "llama2-7b-64-h100"
FABRICS = ("h100-spine-leaf-64", "v100-pods-64", "mesh-8x8", "dgx1-v100-64", "rail-only-1024")
MODELS = ("llama2-7b", "llama3-8b", "bert-large", "mixtral-8x7b")
PAGES = ("plan", "design", "explore")


class Journey:
    """A session that is led through pages, with the addresses that it left behind."""

    def __init__(self, start="plan", address=None):
        self.past = []
        self.open(start, address or {"scenario": SMALL, "tour": "off"})

    def open(self, page, address):
        """What a link or a reload does: another session begins with the address."""
        self.app = AppTest.from_file(
            str(ROOT / "nest_studio" / "server" / "script.py"), default_timeout=120
        )
        self.page = page
        self.app.query_params = dict(address)
        self.app.switch_page(f"../../pages/{page}.py").run()

    def go(self, page):
        self.past.append((self.page, dict(self.app.query_params)))
        self.page = page
        self.app.switch_page(f"../../pages/{page}.py").run()

    def reload(self, steps=0):
        """This address anew, or one from so many steps ago."""
        for _ in range(min(steps, len(self.past) - 1)):
            self.past.pop()
        self.open(*(self.past.pop() if steps and self.past else (self.page, self.address())))

    def address(self):
        return dict(self.app.query_params)

    def widget(self, key):
        for kind in ("selectbox", "slider", "number_input"):
            for found in getattr(self.app, kind):
                if found.key == key:
                    return found
        return None

    def set(self, key, value):
        found = self.widget(key)
        if found is not None:
            self.past.append((self.page, dict(self.app.query_params)))
            self.app.query_params[key] = str(value)  # as the browser does on its own
            found.set_value(value).run()

    def draw(self):
        """Copy the fabric of the Design page onto a canvas."""
        for button in self.app.button:
            if button.label == "Edit as my own drawing":
                button.click().run()
                return

    def text(self):
        return html.unescape(" ".join(entry.proto.body for entry in self.app.get("html")))

    def title(self):
        return re.search(r'class="nest-scenario">([^<]*)<', self.text())[1]

    def headlines(self):
        shown = {metric.label: metric.value for metric in self.app.metric}
        return shown or dict(enumerate(big_figures(self.text())))


def parameter(journey, key):
    found = journey.app.query_params.get(key)
    return found[-1] if isinstance(found, list) else found


def asked(journey):
    """Fabric, its devices, model and batch that the form asked for in this run.

    Read off the request, as a widget's value under test may be that of the page before.
    """
    if journey.page == "design":
        request, _ = journey.app.session_state["DesignPage"].answer
        fabric, scenario = request.document["fabric"], {}
    else:
        key = {"plan": "PlanPage", "explore": "ExplorePage"}[journey.page]
        request = journey.app.session_state[key].scenario
        fabric = request.overrides.get("fabric", request.document["fabric"])
        scenario = request.document["workload"]
    table = fabric
    if isinstance(fabric, str):
        table = tomllib.loads((ROOT / f"presets/fabrics/{fabric}.toml").read_text())
    work = {
        key: request.overrides.get(f"workload.{key}", scenario.get(key))
        for key in ("model", "global_batch_sequences")
    }
    sized = request.overrides.get("fabric.clos.devices")
    name = fabric if isinstance(fabric, str) else OWN
    return name, sized or counted(table), work["model"], work["global_batch_sequences"]


def counted(table):
    """Devices of a fabric's document."""
    if "clos" in table:
        return table["clos"]["devices"]
    if "element" in table:
        return sum(entry["role"] == "device" for entry in table["element"])
    sizes = [level["group_size"] for level in table.get("level", ())]
    return math.prod(sizes or table["torus"]["shape"])


def check(journey):
    assert not journey.app.exception
    title = journey.title()
    assert "changed" not in title
    if journey.app.error or journey.app.warning:
        return  # the last figures stand in grey under their own title
    fabric, devices, model, batch = asked(journey)
    assert f"{devices:,} " in title
    assert ("drawn" in title) == (fabric == OWN)
    for realised in re.findall(
        r"realised ([\d.]+) : 1", " ".join(caption.value for caption in journey.app.caption)
    ):
        assert f"{float(realised):g}:1" in title
    named = parameter(journey, "own")
    assert fabric != OWN or (named and not named.startswith("aside."))
    assert fabric == OWN or not named or named.startswith("aside.")
    assert parameter(journey, "fabric") in (None, fabric)
    if journey.page == "design":
        assert journey.headlines()["Devices"] == f"{devices:,}"
        return
    assert f"batch {batch:,}" in title
    assert parameter(journey, "workload.global_batch_sequences") in (None, str(batch))
    preset = tomllib.loads((ROOT / f"presets/models/{model}.toml").read_text())
    between = " · " if journey.page == "plan" else " on "
    assert title.startswith(f"{preset['name']}{between}")
    if journey.page == "plan":
        figures(journey, devices, batch)


def figures(journey, devices, batch):
    """The plan in pills uses the title's devices and batch."""
    pills = dict(re.findall(r'class="nest-pill"><i>([^<]*)</i> ([^<]*)<', journey.text()))
    if not pills:
        return  # nothing fits, and the page says so
    used, there = (int(one.replace(",", "")) for one in pills["devices"].split(" of "))
    assert there == devices
    dp = int(pills["dp"].replace(",", ""))
    assert dp * int(pills["pp"]) * int(pills["tp"]) * int(pills.get("cp", 1)) == used
    assert batch % (dp * int(pills["micro-batch"])) == 0


def step(journey, dice):
    """One thing that a person may do."""
    match dice.randrange(8):
        case 0:
            journey.set("fabric", dice.choice(FABRICS))
        case 1:
            journey.set("fabric.clos.devices", dice.choice((16, 32, 64, 128)))
        case 2:
            journey.set("fabric.clos.oversubscription.0", dice.choice((1.0, 2.0, 3.0, 4.0)))
        case 3:
            journey.set("workload.global_batch_sequences", dice.choice((256, 512, 1024)))
        case 4:
            journey.set("workload.model", dice.choice(MODELS))
        case 5:
            journey.go(dice.choice(PAGES))
        case 6:
            journey.reload(dice.randrange(3))
        case 7:
            journey.go("design")
            journey.draw()


def again(journey):
    """Another session with the address shows the same."""
    if not journey.app.error and not journey.app.warning:
        other = Journey(journey.page, dict(journey.app.query_params))
        assert other.title() == journey.title()
        assert other.headlines() == journey.headlines()
        check(other)


def travel(seed, steps):
    dice = random.Random(seed)
    journey = Journey()
    check(journey)
    for _ in range(steps):
        step(journey, dice)
        check(journey)
    again(journey)


def test_a_drawing_keeps_its_title_on_plan_and_in_every_link_to_it():
    journey = Journey("design", {"fabric": "h100-spine-leaf-64"})
    check(journey)
    journey.draw()
    check(journey)
    drawn = journey.address()
    journey.go("plan")
    check(journey)
    assert "drawn" in journey.title()
    journey.set("workload.model", "mixtral-8x7b")
    check(journey)
    again(journey)
    journey.open("design", drawn)
    check(journey)
    assert re.fullmatch(r"64 \w+, drawn", journey.title())


@pytest.mark.parametrize("choice", [None, OWN], ids=["from a page change", "whole"])
@pytest.mark.sampled(2)
def test_an_address_with_a_drawing_names_it(choice):
    """Browsers keep addresses from the middle of a page change, without the choice."""
    journey = Journey("design", {"fabric": "h100-spine-leaf-64"})
    journey.draw()
    address = {"own": parameter(journey, "own")} | ({"fabric": choice} if choice else {})
    for page in ("plan", "design"):
        other = Journey(page, address)
        assert asked(other)[0] == OWN
        check(other)


def test_a_kept_drawing_is_not_named_while_another_fabric_is_shown():
    journey = Journey("design", {"fabric": "h100-spine-leaf-64"})
    journey.draw()
    journey.set("fabric", "mesh-8x8")
    check(journey)
    other = Journey("design", dict(journey.app.query_params))
    assert other.title() == journey.title()
    other.set("fabric", OWN)
    check(other)
    assert re.fullmatch(r"64 \w+, drawn", other.title())


def test_a_journey_holds_address_title_form_and_figures_together():
    travel(seed=11, steps=6)


@pytest.mark.check
@pytest.mark.parametrize("seed", range(8))
def test_long_journeys(seed):
    travel(seed, steps=14)
