"""The drawing canvas under a real mouse and keyboard, on a page of its own."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from canvas_driver import Canvas

pytestmark = pytest.mark.browser

HARNESS = Path(__file__).with_name("canvas_app.py")
LAUNCH = """
import sys
from streamlit.web import cli
port = sys.argv[-1]
cli.main(["run", {path!r}, "--server.headless=true", "--server.port=" + port])
"""


@pytest.fixture(scope="module")
def harness(root, serve, tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("canvas")
    command = [sys.executable, "-c", LAUNCH.format(path=str(HARNESS))]
    with serve(command, root, folder / "log.txt") as url:
        yield url


@pytest.fixture
def opened(browser, harness) -> Iterator[Any]:
    """``opened(fabric)``: the harness in a window in which nothing may go wrong."""
    windows: list[Canvas] = []

    def open_(address: str = "", scheme: str = "light") -> Canvas:
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        canvas = Canvas(context.new_page())
        windows.append(canvas)
        canvas.page.on(
            "console",
            lambda message: (
                canvas.complaints.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        canvas.page.on("pageerror", lambda error: canvas.complaints.append(str(error)))
        canvas.page.on(
            "request",
            lambda request: (
                None
                if urlsplit(request.url).hostname in (None, "localhost")
                else canvas.foreign.append(request.url)
            ),
        )
        canvas.page.goto(f"{harness}/{address}")
        canvas.wait(revision=1)
        return canvas

    yield open_
    for canvas in windows:
        canvas.page.context.close()
        assert not canvas.complaints
        assert not canvas.foreign


def test_the_shipped_asset_is_built_from_the_shipped_sources(root):
    folder = root / "nest_studio" / "components" / "drawing"
    frontend = folder / "frontend"
    names = ["build.mjs", "package-lock.json", "package.json"]
    names += [f"src/{path.name}" for path in (frontend / "src").iterdir()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name}\0".encode() + (frontend / name).read_bytes() + b"\0")
    banner = (folder / "assets" / "drawing.js").read_text(encoding="utf-8").partition("\n")[0]
    assert re.search(r"sources (\w+);", banner)[1] == digest.hexdigest(), "run `make canvas`"


def test_the_manifest_names_the_asset(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    for component in project["tool"]["streamlit"]["component"]["components"]:
        folder = root / "nest_studio" / component["asset_dir"]
        assert (folder / f"{component['name']}.js").is_file()


def test_two_switches_and_a_device_are_placed_linked_edited_and_undone(opened):
    canvas = opened()
    canvas.put("Switch", 200, 120)
    canvas.put("Switch", 450, 120)
    canvas.put("Device", 325, 320)
    assert canvas.ids() == ["e:device0", "e:switch0", "e:switch1"]
    canvas.link("e:switch0", "e:device0")
    canvas.says("Linked switch0 – device0, 50 GB/s")
    canvas.link("e:device0", "e:switch1")
    canvas.wait(elements=3, links=2)

    before = canvas.data("revision")
    canvas.click("e:device0")
    canvas.click(canvas.ids("edge")[0])
    canvas.fill("Bandwidth, GB/s", "400")
    canvas.after(before)
    canvas.says("Set bandwidth of 1 link")
    assert canvas.ask("cy.edges().map(edge => edge.data('label')).sort()") == [
        "400 GB/s",
        "50 GB/s",
    ]
    assert canvas.field("Bandwidth, GB/s").input_value() == "400"

    before = canvas.data("revision")
    canvas.page.get_by_role("button", name="Undo").click()
    canvas.after(before)
    canvas.page.wait_for_timeout(100)
    assert canvas.ask("cy.edges().map(edge => edge.data('label'))") == ["50 GB/s", "50 GB/s"]
    assert canvas.field("Bandwidth, GB/s").input_value() == "50"


@pytest.mark.check
def test_dragging_a_second_link_raises_the_count(opened):
    canvas = opened("?fabric=node")
    edge = canvas.ask(
        "cy.getElementById('e:core0').edgesWith(cy.getElementById('e:pod0-spine0')).id()"
    )
    canvas.tool("Link")
    before = canvas.data("revision")
    canvas.drag(canvas.place_of("e:core0"), canvas.place_of("e:pod0-spine0"))
    canvas.after(before)
    canvas.says("Linked core0 – pod0-spine0, 2 × 50 GB/s")
    canvas.wait(links=24)
    canvas.drag(canvas.place_of("e:core0"), canvas.place_of("e:core1"))
    canvas.wait(links=25, revision=3)
    assert canvas.ask("cy.getElementById(argument).data('label')", edge) == "2 × 50 GB/s"


@pytest.mark.check
def test_an_action_right_after_a_gesture_keeps_the_gesture(opened):
    canvas = opened("?fabric=node")
    canvas.click("e:core0")
    canvas.field("Name").fill("north")
    canvas.page.get_by_role("button", name="Duplicate").click()
    canvas.wait(elements=21)
    assert {"e:north", "e:north-copy"} <= set(canvas.ids())
    before = canvas.data("revision")
    canvas.page.locator(".nd-stage").focus()
    canvas.page.keyboard.press("Control+z")
    canvas.page.keyboard.press("Control+z")
    canvas.wait(elements=20, revision=int(before) + 2)
    assert "e:core0" in canvas.ids()
    canvas.page.keyboard.press("Control+Shift+z")
    canvas.page.keyboard.press("Control+y")
    canvas.wait(elements=21)


@pytest.mark.check
def test_a_name_stays_unique(opened):
    canvas = opened("?fabric=node")
    canvas.click("e:core0")
    canvas.fill("Name", "core1")
    canvas.page.get_by_text("There is already a core1.").wait_for()
    assert canvas.field("Name").get_attribute("aria-invalid") == "true"
    assert canvas.data("revision") == "1"
    canvas.fill("Name", "<b>core</b>")
    canvas.wait(revision=2)
    assert "e:<b>core</b>" in canvas.ids()
    assert canvas.page.locator(".nd-root b", has_text="core").count() == 0


@pytest.mark.check
def test_many_are_selected_edited_duplicated_and_deleted(opened):
    canvas = opened("?fabric=node")
    canvas.click("e:core0")
    for name in ("core1", "core2"):
        canvas.click(f"e:{name}", "Control")
    canvas.wait(selected=3)
    canvas.fill("Radix, ports", "64")
    canvas.wait(revision=2, selected=3)
    canvas.click("e:core3")
    canvas.click("e:core0")
    for name in ("core1", "core2"):
        canvas.click(f"e:{name}", "Control")
    canvas.page.keyboard.press("Control+d")
    canvas.wait(revision=3, elements=23, selected=3)
    canvas.page.keyboard.press("Delete")
    canvas.wait(revision=4, elements=20, links=24)  # the copies were selected, and had no links
    canvas.page.keyboard.press("Control+a")
    canvas.page.keyboard.press("Delete")
    canvas.wait(elements=0, links=0)


@pytest.mark.check
def test_the_wheel_zooms_once_the_canvas_was_clicked(opened):
    canvas = opened("?fabric=node")
    before = canvas.ask("cy.zoom()")
    canvas.page.mouse.move(*canvas.at(20, 20))
    canvas.page.mouse.wheel(0, -100)
    canvas.page.wait_for_timeout(300)
    assert canvas.ask("cy.zoom()") == before
    canvas.page.mouse.click(*canvas.at(20, 20))
    canvas.page.mouse.wheel(0, -100)
    canvas.page.wait_for_timeout(300)
    assert canvas.ask("cy.zoom()") > before


@pytest.mark.check
def test_shift_and_drag_select_a_box(opened):
    canvas = opened("?fabric=node")
    left, right = canvas.place_of("e:core0"), canvas.place_of("e:core3")
    canvas.page.keyboard.down("Shift")
    canvas.drag((left[0] - 40, left[1] - 15), (right[0] + 40, right[1] + 15))
    canvas.page.keyboard.up("Shift")
    canvas.wait(selected=4)


@pytest.mark.check
def test_a_node_is_one_click_and_links_by_its_nics(opened):
    """Without NICs it would not be known what of it is inside: all of it would be billed."""
    canvas = opened()
    canvas.tool("Node")
    canvas.fill("Devices, each", "8")
    canvas.page.mouse.click(*canvas.at(300, 300))
    canvas.wait(elements=17, links=16, revision=2)
    canvas.put("Switch", 300, 80)
    canvas.link("e:switch0", "g:node0")
    canvas.says("Linked switch0 – node0: 8 links, 8 × 50 GB/s")
    beside = canvas.ask("cy.getElementById('e:switch0').neighborhood('node').map(n => n.id())")
    assert sorted(beside) == [f"e:node0-nic{slot}" for slot in range(8)]


@pytest.mark.check
def test_an_element_that_stands_for_several_says_so(opened):
    """Sixteen spines that are used as one were called spine 0."""
    canvas = opened()
    canvas.put("Switch", 300, 80)
    canvas.click("e:switch0")
    before = canvas.data("revision")
    canvas.fill("Count, alike", "16")
    canvas.after(before)
    assert canvas.ask("cy.getElementById('e:switch0').data('label')") == "16 switches"


@pytest.mark.check
def test_moving_keeps_viewport_selection_and_groups(opened):
    canvas = opened("?fabric=node")
    canvas.ask("(cy.viewport({zoom: 0.8, pan: {x: 420, y: 240}}), null)")
    canvas.page.mouse.dblclick(*canvas.at(*_inside(canvas, "g:pod0/rack0/node1")))
    assert "g:pod0/rack0/node1" in canvas.ids("node.closed")
    x, y = canvas.place_of("g:pod0/rack0/node1")
    before = canvas.ask("cy.getElementById('g:pod0/rack0/node1').position('x')")
    canvas.drag((x, y), (x + 80, y))
    canvas.wait(revision=2)
    canvas.says("Moved 5 elements")
    canvas.page.wait_for_timeout(200)
    assert canvas.ask("[cy.zoom(), cy.pan().x, cy.pan().y]") == [0.8, 420, 240]
    assert canvas.ids("node.closed:selected") == ["g:pod0/rack0/node1"]
    after = canvas.ask("cy.getElementById('g:pod0/rack0/node1').position('x')")
    assert after - before == pytest.approx(100, abs=1)


def _inside(canvas, key):
    """A place on an open group that none of its members covers."""
    box = canvas.ask("cy.getElementById(argument).renderedBoundingBox({includeLabels: false})", key)
    return box["x2"] - 6, box["y1"] + 6


def test_a_thousand_devices_open_compressed(opened):
    canvas = opened("?fabric=1024")
    canvas.wait(elements=1236)
    closed = canvas.ids("node.closed")
    assert 8 <= len(closed) <= 150
    assert canvas.ids("node.device") == []
    label = canvas.ask("cy.getElementById('g:pod0/rack0').data('label')")
    assert label.startswith("pod0/rack0\n32 devices")
    assert "8 × 50 GB/s" in canvas.ask("cy.edges().map(edge => edge.data('label'))") or canvas.ask(
        "cy.edges().some(edge => edge.data('label').startsWith('2 × 50'))"
    )
    canvas.page.mouse.dblclick(*canvas.place_of("g:pod0/rack0"))
    canvas.page.locator(".nd-said", has_text="Opened rack0").wait_for()
    assert len(canvas.ids("node.closed")) == len(closed) - 1 + 4
    assert canvas.data("revision") == "1"


def test_keys_typed_into_a_field_do_not_reach_streamlit(opened):
    canvas = opened("?fabric=node")
    canvas.click("e:core0")
    canvas.field("Name").fill("")
    canvas.page.keyboard.type("rcd")
    canvas.page.wait_for_timeout(300)
    assert canvas.field("Name").input_value() == "rcd"
    assert canvas.page.get_by_test_id("stDialog").count() == 0


@pytest.mark.check
def test_the_page_running_again_changes_nothing(opened):
    canvas = opened("?fabric=node")
    canvas.click("e:core0")
    canvas.page.get_by_role("button", name="Run again").click()
    canvas.page.wait_for_timeout(400)
    canvas.wait(revision=1, selected=1)


@pytest.mark.check
def test_looking_only(opened):
    canvas = opened("?fabric=node&look=1")
    assert canvas.page.get_by_role("toolbar", name="Tools").count() == 0
    canvas.click("e:core0")
    canvas.wait(selected=1)
    assert canvas.field("Name").is_disabled()
    canvas.page.keyboard.press("Delete")
    canvas.wait(elements=20)


@pytest.mark.check
def test_light_and_dark_differ(opened):
    colours = {}
    for scheme in ("light", "dark"):
        canvas = opened("?fabric=node", scheme)
        colours[scheme] = canvas.ask(
            "[cy.edges()[0].style('line-color'), cy.$('.open')[0].style('color'),"
            " getComputedStyle(root).backgroundColor, cy.$('.switch')[0].style('background-color')]"
        )
    light, dark = colours["light"], colours["dark"]
    assert all(one != other for one, other in zip(light[:3], dark[:3], strict=True))
    assert light[3] == dark[3] == "rgb(230,159,0)"


LABELS = """cy.elements().filter(shown => shown.style("label")).map(shown =>
  [shown.id(), shown.style("label"), parseFloat(shown.style("font-size")) * cy.zoom()])"""


def test_hosts_that_are_alike_are_one_box_with_their_number(opened):
    """94 boxes of hosts had labels of 4 pixels: a leaf and its hosts are one, what lacks shows."""
    canvas = opened("?fabric=subnet")
    shown = canvas.ask("cy.nodes().map(node => [node.id(), node.data('label')])")
    folds = {label.split("\n")[0].strip("\u2063"): label for key, label in shown if key[0] == "g"}
    assert folds.keys() == {f"leaf{index}" for index in range(16)}
    assert all("6 × 8 devices" in folds[f"leaf{index}"] for index in range(15))
    assert all(part in folds["leaf15"] for part in ("4 × 8 devices", "2 fewer"))
    assert [key for key, _ in shown if key.startswith("e:")] == [f"e:spine{at}" for at in range(4)]
    assert canvas.ask("cy.$('.fewer').length") == 1

    canvas.ask("cy.getElementById('g:\u2063leaf3').select()")
    before = len(canvas.ids())
    canvas.page.locator(".nd-inspector").get_by_role("button", name="Open group").click()
    canvas.says("Opened")
    assert len(canvas.ids()) == before + 1 + 6
    assert "e:leaf3" in canvas.ids()


def test_what_python_is_sent_has_no_folds(opened):
    canvas = opened("?fabric=subnet")
    before = canvas.data("revision")
    canvas.ask("cy.getElementById('g:\u2063leaf3').select()")
    canvas.page.locator(".nd-stage").press("ArrowDown")
    canvas.after(before)
    canvas.wait(elements=canvas.data("elements"))
    state = canvas.ask("root.querySelector('.nd-counts').textContent")
    assert "752 devices" in state
    canvas.page.get_by_role("button", name="Run again").click()
    canvas.wait(elements=canvas.data("elements"))
    groups = [key for key in canvas.ids() if key.startswith("g:")]
    assert groups == sorted(f"g:\u2063leaf{index}" for index in range(16))
    document = canvas.page.evaluate("document.body.innerText")
    assert "\u2063" not in document.partition("Document")[2]


@pytest.mark.parametrize("fabric", ["node", "small", "1024", "1024-nics", "subnet"])
def test_labels_are_nine_pixels_or_none(opened, fabric):
    """At every zoom; what is in sight at first has some."""
    canvas = opened(f"?fabric={fabric}")
    labels = canvas.ask(LABELS)
    assert labels
    for how in ("Zoom out", "Zoom out", "Zoom out", "Zoom in", "Fit"):
        assert [label for label in canvas.ask(LABELS) if label[2] < 8.999] == [], how
        canvas.page.get_by_role("button", name=how, exact=True).click()
