"""Fabrics that people draw and bring, by mouse and by keyboard, and the plans on them."""

from __future__ import annotations

import sys

import pytest
from canvas_driver import Canvas
from playwright.sync_api import expect

from nest_core.interop.formats import read_fabric

pytestmark = pytest.mark.browser

PLOTS = ".stPlotlyChart .main-svg"
PLOTS_OF_A_FABRIC = 5


def enter(window):
    """The page, and its canvas."""
    window.go("design?tour=off", "Collective explorer", shown=PLOTS, count=PLOTS_OF_A_FABRIC)
    return Canvas(window.page)


def level_names(window):
    """First column of the level table."""
    rows = window.page.locator(".nest-table").first.locator("tbody tr")
    return [row.locator("td").first.inner_text() for row in rows.all()]


def new_drawing(window):
    canvas = enter(window)
    window.page.get_by_role("button", name="New drawing").click()
    window.page.get_by_text("Not a fabric yet").wait_for()
    canvas.wait(elements=0)
    return canvas


def draw_racks(canvas, window):
    """Two racks of two nodes under leaves, and a spine; the spine is linked by nobody yet."""
    canvas.put("Node", 130, 400)
    window.shows_one(0, "4")
    for x in (400, 700, 970):
        canvas.put("Node", x, 400)
    for x in (265, 835):
        canvas.put("Switch", x, 230)
    canvas.put("Switch", 550, 80)
    switches = canvas.ids("node[id ^= 'e:switch']")
    assert len(switches) == 3
    for node, leaf in ((0, 0), (1, 0), (2, 1), (3, 1)):
        canvas.link(switches[leaf], f"g:node{node}")
    return switches


@pytest.mark.parametrize("planned", [False, pytest.param(True, marks=pytest.mark.check)])
def test_two_racks_and_an_oversubscribed_spine_are_drawn_and_planned(watched, planned):
    """The level matrix gains a level with the spine, and the plan gives way to its uplinks."""
    window = watched(1920)
    canvas = new_drawing(window)
    switches = draw_racks(canvas, window)
    canvas.wait(links=48)  # four in each node, four NICs, and four to its leaf
    window.shows_one(0, "4")  # the first node stands alone until all are connected
    window.page.get_by_text("must connect all devices").wait_for()

    canvas.link(switches[0], switches[2])
    canvas.link(switches[1], switches[2])
    window.shows_one(0, "16")
    window.shows_one(1, "3")
    window.shows_one(2, "50.0 GB/s")
    window.settle()  # the table stands below the figures
    assert len(level_names(window)) == 3

    edges = canvas.ask(
        "cy.getElementById(argument).connectedEdges().map(edge => edge.id())", switches[2]
    )
    canvas.click(edges[0])
    canvas.click(edges[1], "Control")
    canvas.fill("Bandwidth, GB/s", "0.5")
    window.shows_one(2, "500 MB/s")
    if not planned:
        return
    narrow = plan(window)
    before = canvas.data("revision")
    window.page.get_by_role("button", name="Undo").click()
    canvas.after(before)
    window.shows_one(2, "50.0 GB/s")
    wide = plan(window)
    window.page.reload()
    window.shows_one(2, "50.0 GB/s")
    canvas.wait(elements=39)
    assert narrow[0] != wide[0], "throughput"
    assert narrow[1] != wide[1], "plan"


@pytest.mark.check
def test_copies_are_selected_and_what_is_arranged_is_in_sight(watched):
    """A copy of the copy stands beside it, not on it; nodes of two racks have two names."""
    canvas = new_drawing(watched(1920))
    canvas.put("Switch", 200, 200)
    canvas.click("e:switch0")
    before = canvas.data("revision")
    canvas.fill("Group", "rack 0")
    canvas.after(before)
    canvas.put("Node", 200, 215)
    canvas.put("Node", 800, 215)
    assert {"g:rack 0/node0", "g:node1"} <= set(canvas.ids())

    canvas.ask("cy.$(':selected').unselect() && cy.getElementById('g:rack 0').select() && 0")
    for name in ("rack 1", "rack 2"):
        before = canvas.data("revision")
        canvas.page.get_by_role("button", name="Duplicate").click()
        canvas.after(before)
        assert canvas.ids(":selected") == [f"g:{name}"]
    places = canvas.ask(
        "argument.map(path => cy.getElementById(path).position('x'))",
        [f"g:rack {number}" for number in range(3)],
    )
    assert places == sorted(set(places))
    before = canvas.data("revision")
    canvas.page.get_by_role("button", name="Arrange").click()
    canvas.after(before)
    assert canvas.ask(
        "(box => box.x1 >= 0 && box.y1 >= 0 && box.x2 <= cy.width() && box.y2 <= cy.height())"
        "(cy.elements().renderedBoundingBox())"
    )


def plan(window):
    """Throughput and plan in words on one's own fabric; back to the Design page."""
    page = window.page
    page.get_by_role("link", name="Plan").click()
    page.get_by_text("Rests on").wait_for()
    choose(page, "Scenario preset", "llama2-7b-64-h100")
    window.unfold("fabric")
    choose(page, "Fabric", "My fabric")
    page.get_by_text("Changed: fabric My fabric").wait_for()
    window.settle()
    found = window.values()[0], page.locator(".nest-pills").inner_text()
    page.get_by_role("link", name="Design").click()
    page.get_by_text("Collective explorer").wait_for()
    return found


def choose(page, name, option):
    page.get_by_role("combobox", name=name, exact=True).click()
    page.keyboard.type(option)
    page.keyboard.press("Enter")


def test_a_running_clusters_fabric_is_imported(watched, root, tmp_path):
    """600 nodes as ibnetdiscover prints them: hosts, leaves and spines by their names."""
    sys.path.insert(0, str(root / "tests" / "formats"))
    from ibnet_sample import ibnetdiscover_text

    text = ibnetdiscover_text(70, hosts_per_unit=35, spines=8)
    nodes = sum(line.startswith(("Switch", "Ca")) for line in text.splitlines())
    assert nodes >= 600
    path = tmp_path / "fabric.ibnetdiscover"
    path.write_text(text)
    found = read_fabric(text.encode(), path.name)
    devices = sum(entry["role"] == "device" for entry in found.document["element"])

    window = watched()
    canvas = enter(window)
    window.page.get_by_role("button", name="Import a file").click()
    window.page.get_by_test_id("stPopoverBody").locator("input[type=file]").set_input_files(
        str(path)
    )
    window.shows_one(0, f"{devices:,}")
    window.page.keyboard.press("Escape")
    window.page.get_by_text("As read: ibnetdiscover output, fabric.ibnetdiscover.").wait_for()
    window.page.locator(".nest-table").first.get_by_text("IBLEAF").wait_for()
    assert level_names(window) == ["node", "IBLEAF", "IBSPINE"]
    canvas.wait(links=len(found.document["link"]))
    assert not canvas.ids("node[id ^= 'e:'][id *= 'gpu']"), "a large fabric opens compressed"


@pytest.mark.check
def test_a_file_that_cannot_be_read_leaves_the_page_as_it_was(watched, tmp_path):
    window = watched()
    enter(window)
    window.shows_one(0, "1,024")
    before = window.values()
    path = tmp_path / "broken.graphml"
    path.write_bytes(b"<!DOCTYPE a [<!ENTITY b 'c'>]><graphml>&b;</graphml>")
    window.page.get_by_role("button", name="Import a file").click()
    window.page.get_by_test_id("stPopoverBody").locator("input[type=file]").set_input_files(
        str(path)
    )
    window.page.get_by_text("must have no document type or entities").wait_for()
    window.shows(before)


def test_a_drawing_is_edited_by_keyboard_alone(watched):
    """A preset becomes a drawing, and a cell of its link table changes the figures."""
    window = watched()
    enter(window)
    page = window.page
    combobox = page.get_by_role("combobox", name="Fabric", exact=True)
    combobox.focus()
    page.keyboard.type("v100-pods-64")
    page.keyboard.press("Enter")
    before = "50.0 GB/s"  # the page came with another fabric of 64 devices
    window.shows_one(2, before)
    window.settle()
    page.get_by_role("button", name="Edit as my own drawing").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Drawn: 64 devices").wait_for()
    window.shows_one(2, before)
    page.locator("summary", has_text="Elements and links as tables").focus()
    page.keyboard.press("Enter")
    tables = page.locator("details", has_text="Elements and links as tables")
    table = tables.get_by_test_id("stDataFrame").last
    table.wait_for()
    table.scroll_into_view_if_needed()
    cells, editor = table.locator("canvas").first, page.locator("#portal input")
    press = page.keyboard.press

    def edit(value):
        """The cell under the cursor gets this value."""
        press("Enter")
        editor.wait_for()
        press("Control+a")  # the editor selects what stands there only once it is drawn
        page.keyboard.type(value, delay=30)
        expect(editor).to_have_value(value)
        press("Enter")
        editor.wait_for(state="detached")

    window.stands()  # a run that ends while a cell is typed into would close it
    cells.focus()
    press("Control+Home")
    press("ArrowRight")
    press("ArrowRight")
    edit("1")
    window.stands("a device has 1.00 GB/s at level node")
    edit("2")
    # The table kept its focus, one row down, and the canvas followed both edits.
    page.get_by_text("a device has 1.00 GB/s at level node").wait_for()
    canvas = Canvas(page)
    for _ in range(75):
        labels = canvas.ask("cy.edges().map(edge => edge.data('label'))")
        if {"1 GB/s", "2 GB/s"} <= set(labels):
            break
        page.wait_for_timeout(200)
    assert [labels.count(label) for label in ("1 GB/s", "2 GB/s")] == [1, 1]
