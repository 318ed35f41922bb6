"""An architect's, a teacher's and an engineer's hour, as newcomers would spend them.

What the person must see is asserted; how exact the figures are stands in the tests of their parts.
"""

from __future__ import annotations

import re
import sys
import zipfile

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.check]

PINS = "search.tp=1&search.cp=1&search.micro_batch_sequences=1&search.zero=1"
SMALL = "scenario=llama2-7b-64-h100&tour=off"
PATIENCE_MS = 60_000


def follow(window, name, text):
    window.page.get_by_role("link", name=name, exact=True).click()
    window.stands(text)


def saved(page, button, path):
    """What a button hands over."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    download.value.save_as(path)
    return path


def pick(page, field, option):
    page.get_by_role("combobox", name=field, exact=True).click()
    page.keyboard.type(option)
    page.keyboard.press("Enter")


def title(page):
    return page.locator("h1").inner_text()


def test_an_architects_hour(watched, tmp_path):
    """2,048 H100: which ratio; its cables and acceptance tests; a drawing of one's own."""
    window = watched(1440)
    page = window.page
    window.go(f"?{SMALL}&{PINS}", "Rests on")
    page.get_by_role("button", name=re.compile("^Devices 64 H100")).click()
    size = page.get_by_role("spinbutton", name="Size, devices").filter(visible=True).first
    size.fill("2048")
    size.press("Enter")
    window.stands("Changed: devices 2,048")
    window.settle()
    assert "2,048 H100 · spine-leaf 1:1" in title(page)
    full = window.values()
    expect(page.locator(".nest-pills")).to_contain_text("2,048 of 2,048")
    expect(page.get_by_text("64 leaves").first).to_be_visible()
    page.keyboard.press("Escape")
    window.unfold("fabric")
    page.get_by_role("slider", name="Leaf oversubscription").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    window.stands("realised 4:1")
    window.settle()
    assert "spine-leaf 4:1" in title(page)
    assert window.values()[1] != full[1], "time to train"

    follow(window, "Design", "Order, build, accept")
    expect(page.get_by_text("Changed: devices 2,048, oversubscription 4:1")).to_be_visible()
    counted = page.get_by_text("cables, one row each").inner_text()
    cables = int(counted.partition(" ")[0].replace(",", ""))
    sheet = saved(page, "NetBox import (CSV)", tmp_path / "cables.csv")
    assert len(sheet.read_text().splitlines()) == cables + 1
    expect(page.get_by_text("Nothing was measured yet")).to_be_visible()

    page.get_by_role("button", name="New drawing").click()
    window.stands("Not a fabric yet")
    page.get_by_role("button", name="Add racks, rails or pods").click()
    page.get_by_role("button", name="Add to the drawing").filter(visible=True).click()
    window.stands("must connect all devices")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add spines").click()
    page.get_by_role("button", name="Add to the drawing").filter(visible=True).click()
    window.stands("Drawn: 128 devices")
    page.keyboard.press("Escape")
    follow(window, "Plan", "Rests on")
    window.unfold("fabric")
    pick(page, "Fabric", "My fabric")
    window.stands("Changed: fabric My fabric")
    window.settle()
    expect(page.locator(".nest-pills")).to_contain_text("128 of 128")


def test_a_teachers_hour(watched, tmp_path):
    """Twelve lessons; one at the projector with hands and keys; one as a file; one pinned."""
    window = watched()
    page = window.page
    page.set_viewport_size({"width": 1280, "height": 720})
    window.go("learn?tour=off", "esson 1 of 14")
    page.get_by_role("button", name="Present").click()
    window.stands("Hands are counted at the right.")
    assert not page.locator(".stSidebar, .stAppHeader").filter(visible=True).count()
    for letter, hands in (("A", 12), ("C", 7)):
        page.get_by_label(f"Hands for {letter}").fill(str(hands))
        page.keyboard.press("Tab")
    window.stands("19 hands")
    page.locator(".wall-ask").click()
    window.press("Enter")
    window.stands("42.9 % ✓")
    expect(page.get_by_text("Devices stand idle 42.9 % of the time").first).to_be_visible()
    over = (
        "[...document.querySelectorAll('.stMain, html')].map(e => e.scrollHeight - e.clientHeight)"
    )
    assert max(page.evaluate(over)) <= 0
    before = page.locator(".st-key-wall-figure").inner_text()
    window.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.st-key-wall-figure').innerText !== before",
        arg=before,
        timeout=PATIENCE_MS,
    )
    window.press("n")
    window.stands("Hands are counted at the right.")
    window.press("Escape")
    window.stands("esson 2 of 14")

    window.go("learn?lesson=bubble&bubble.show=true&tour=off", "Reveal")
    file = saved(page, "This lesson (HTML)", tmp_path / "bubble.html")
    assert "<title>The bubble" in file.read_text(encoding="utf-8")
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("textbox", name="Title").fill("For Thursday")
    page.get_by_role("button", name="Pin to the notebook").click()
    page.get_by_role("button", name="Open the notebook").click()
    window.stands("Saved")
    expect(page.locator(".nest-notes").first).to_have_text("For Thursday")
    expect(page.get_by_text("Devices stand idle 42.9 % of the time").first).to_be_visible(
        timeout=PATIENCE_MS
    )


def test_an_engineers_hour(watched, root, tmp_path):
    """Micro-batch x ZeRO, a pin, Megatron's arguments; a log, the refit, and its plan."""
    window = watched(1440)
    page = window.page
    window.go(f"explore?{SMALL}&search.tp=1&search.cp=1", "Which micro-batch and ZeRO stage?")
    page.get_by_text("Which micro-batch and ZeRO stage?").click()
    window.stands("ZeRO stage")
    expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible(timeout=PATIENCE_MS)

    window.go(f"?{SMALL}&{PINS}", "Rests on")
    window.settle()
    shipped = window.values()
    pick(page, "ZeRO", "exactly 2")
    window.stands("ZeRO exactly 2")
    window.settle()
    expect(page.locator(".nest-pills")).to_contain_text(re.compile("ZeRO\\s*2"))
    page.get_by_role("button", name="Export").click()
    window.stands("plan.zero must be 0 or 1 with a pipeline for Megatron-LM")
    page.keyboard.press("Escape")
    pick(page, "ZeRO", "exactly 1")
    window.stands("ZeRO exactly 1")
    window.settle()
    page.get_by_role("button", name="Export").click()
    archive = saved(page, "Megatron-LM (zip)", tmp_path / "megatron.zip")
    with zipfile.ZipFile(archive) as files:
        arguments = "".join(files.read(name).decode() for name in files.namelist())
    assert "--tensor-model-parallel-size" in arguments
    page.keyboard.press("Escape")

    sys.path.append(str(root / "tests" / "calibration" / "logs"))
    from printed_logs import megatron, text

    window.go(f"measure?{SMALL}&{PINS}", "Drop what your jobs printed")
    logs = page.locator("input[type=file]").first
    nonsense = tmp_path / "nonsense.log"
    nonsense.write_text("the quick brown fox\n" * 50)
    logs.set_input_files(nonsense)
    window.stands("nonsense.log must be what Megatron-LM")
    page.reload()
    window.stands("Drop what your jobs printed")
    pick(page, "Accelerator", "h100-80gb")
    window.stands()
    slow = tmp_path / "slow.log"
    slow.write_text(text(megatron([9.0, 8.0, 7.0, *[5.4] * 5])))
    logs.set_input_files(slow)
    window.stands("1 measured run, as read")
    window.stands("Whole runs moves most")
    window.stands("and the plan stays")
    page.get_by_role("button", name="Use on Plan").click()
    window.stands("Changed: software stack My measurements")
    window.settle()
    assert window.values()[0] != shipped[0], "throughput"
