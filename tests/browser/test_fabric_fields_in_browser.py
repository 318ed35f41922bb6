"""A fabric made by mouse and numbers alone, from a fresh start, as its file has it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
INPUT = Path(__file__).parents[3] / "shared" / "inputs" / "gb200-16416-3-tier.toml"
MOST_CLICKS = 20


def test_the_fabric_of_16416_is_made_by_mouse(watched, tmp_path):
    """Eight settings are not usual: a kind, seven numbers; too few tiers are mended by a button."""
    window = watched()
    page = window.page
    clicks = 0

    def click(target):
        nonlocal clicks
        clicks += 1
        target.click()

    def number(label, value):
        field = page.get_by_test_id("stSidebar").get_by_role("spinbutton", name=label)
        click(field)
        field.press("Control+a")
        field.press_sequentially(str(value))
        field.press("Enter")
        window.stands()

    window.go("design?tour=off", text="Collective explorer")
    click(page.get_by_role("combobox", name="Kind"))
    click(page.get_by_role("option", name="rail-optimised"))
    window.stands()
    number("Size, devices", 16416)
    click(page.get_by_role("button", name="Set switch tiers to 3"))
    window.stands()
    click(page.locator(".st-key-fold-fabric-0 summary"))
    for label, value in (
        ("Node size, devices", 72),
        ("NICs per node, number", 72),
        ("Rails, number", 18),
        ("Host size, devices", 4),
        ("Link speed in the node, GB/s", 900),
    ):
        number(label, value)
    click(page.get_by_role("button", name="Export"))
    exported = page.get_by_test_id("stPopoverBody")
    with page.expect_download() as downloading:
        click(exported.get_by_role("button", name="Download"))
    downloading.value.save_as(tmp_path / "made.toml")
    made = tomllib.loads((tmp_path / "made.toml").read_text())
    expected = tomllib.loads(INPUT.read_text())
    assert (made["kind"], made["devices_per_host"]) == ("rail_optimised", 4)
    for table in ("clos", "intra_node"):
        assert {key: made[table].get(key) for key in expected[table]} == expected[table]
    assert clicks <= MOST_CLICKS
