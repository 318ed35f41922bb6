"""The plan page says beside its figures how far they may be off, and what they assume."""

from __future__ import annotations

import html

import pytest
from our_plan import our_plan

from nest_core.documents.presets import preset_names
from nest_core.report.explain.validity import (
    calibration_in_words,
    memory_in_words,
    overlap_in_words,
)
from nest_core.scenario import load_scenario


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", preset_names("scenarios"))
def test_every_preset_says_what_its_figures_stand_on(plan_page, name):
    """The region and its runs, or that there is none; overlap, calibration, memory."""
    page = plan_page(scenario=name, tab="Why")
    assert not page.exception
    found = our_plan(load_scenario(name))
    shown = text_of(page)
    stands = found.validity_of(found.result.best)
    assert stands.in_words in shown
    assert overlap_in_words(found.scenario.hidden, found.scenario.accelerator) in shown
    assert calibration_in_words(found.scenario) in shown
    assert memory_in_words(found.scenario) in shown
    for line in found.headlines():
        assert line.span in shown
        assert line.note in shown
        assert line.basis in shown
    region = f"{stands.band.n} runs of {stands.band.region}" if stands.band else "Outside every"
    assert region in shown


def test_every_headline_keeps_a_line_for_its_span(plan_page):
    """Also where there is none, so that nothing moves when one appears."""
    for address, count in (
        ({"scenario": "bert-large-64-v100"}, 6),
        ({"accelerator.memory_GiB": "2"}, 5),
    ):
        page = plan_page(**address, tab="Why")
        lines = [e.proto.body for e in page.get("html") if 'class="nest-note"' in e.proto.body]
        assert len(lines) == count  # time to train only where there is a plan
        assert all(body.startswith('<div class="nest-span"') for body in lines)


def test_an_uncalibrated_device_takes_the_band_away(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100", tab="Why")
    assert "Validated on " in text_of(page)
    page.selectbox(key="accelerator").set_value("gaudi3-128gb").run()
    assert not page.exception
    shown = text_of(page)
    assert "Validated on " not in shown
    assert "Outside every validated region" in shown
    assert "Software: megatron-deepspeed-gaudi-2023" in shown
    assert "on family gaudi: 0 runs of it over several nodes measured" in shown
