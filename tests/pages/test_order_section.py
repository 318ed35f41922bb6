"""Order, build, accept on the Design page: cables to download, commands, logs and a verdict."""

from __future__ import annotations

import html
import importlib.util
from pathlib import Path

import pytest

from nest_core.calibration.acceptance.expected import expected_of, library_of
from nest_core.network import collapse
from nest_core.scenario import load_fabric

NAME = "h100-spine-leaf-64"
LOGS = "acceptance logs"


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def printed():
    """Logs of the fabric with a spine that carries half."""
    place = Path(__file__).parents[1] / "calibration" / "acceptance" / "nccl_text.py"
    spec = importlib.util.spec_from_file_location("nccl_text", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fabric = load_fabric(NAME)
    for test in expected_of(fabric, collapse(fabric), library_of(fabric)):
        share = 0.5 if test.scope.tier == "spine" else 1.0
        text = module.log_of(test, share * test.predicted_busbw_Bps)
        yield f"{test.scope.name}.log", text.encode(), "text/plain"


@pytest.fixture
def page(fabric_page):
    return fabric_page(fabric=NAME)


def test_cables_and_commands_stand_there(page):
    assert not page.exception
    assert "128 cables, one row each: 64 to the leaf tier, 64 to the spine tier." in text_of(page)
    labels = [button.label for button in page.get("download_button")]
    assert {"↓ NetBox import (CSV)", "↓ Order list (CSV)"} <= set(labels)
    (commands,) = (code.value for code in page.code if "all_reduce_perf" in code.value)
    assert commands.count("\n# ") == 2
    assert "Nothing was measured yet" in text_of(page)


def test_logs_give_a_verdict_and_nonsense_a_sentence(page):
    page.file_uploader(key=LOGS).set_value(list(printed())).run()
    assert "The spine tier is at fault" in text_of(page)
    assert "Nothing was measured yet" not in text_of(page)
    page.file_uploader(key=LOGS).set_value([("odd.txt", b"hello", "text/plain")]).run()
    assert not page.exception
    assert "odd.txt must be the output of nccl-tests" in page.error[0].value
    assert "Nothing was measured yet" in text_of(page)


def test_what_has_no_cables_or_hosts_says_so_and_nothing_breaks(fabric_page):
    levels = fabric_page(fabric="meta-3tier-7to1")
    assert not levels.exception
    assert "which switches join its devices" in text_of(levels)
    torus = fabric_page(fabric="tpu-v5e-8x8")
    assert "must have hosts behind NICs" in text_of(torus)
