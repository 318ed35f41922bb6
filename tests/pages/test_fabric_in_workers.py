"""The Design page computes nothing on fabrics itself: whatever may take long is a worker's."""

from __future__ import annotations

import json
import sys

import pytest
from page_parts import fabrics

from nest_core.bill.bill import Bill
from nest_core.fabric.graph import GraphFabric
from nest_core.interop.formats import FORMATS
from nest_core.network import Network
from nest_core.network.collective import CollectiveAnswer
from nest_core.scenario import fabric_document
from nest_studio.jobs import waiting as jobs
from nest_studio.jobs.workers import GIB, Limits
from nest_studio.session.own_fabric import OWN
from nest_studio.session.stored import links

pytestmark = pytest.mark.workers


@pytest.fixture
def light_page(not_made_here, fabric_page):
    """The page in a process where nothing heavy can be made."""
    not_made_here(Network, CollectiveAnswer, Bill, GraphFabric)
    return fabric_page


@pytest.mark.parametrize(
    "name",
    [
        "drawn-8",
        "mesh-8x8",
        pytest.param("h100-spine-leaf-64", marks=pytest.mark.check),
        pytest.param("dragonfly-1056", marks=pytest.mark.check),
    ],
)
def test_the_server_makes_no_part_of_an_answer(light_page, name):
    page = light_page(fabric=name)
    assert not page.exception
    assert len(page.get("plotly_chart")) == 4
    assert len(fabrics(page)) == 1
    page.number_input(key="collective.devices").set_value(4).run()
    assert not page.exception
    assert len(page.get("plotly_chart")) == 4
    assert len(fabrics(page)) == 1


def test_the_server_writes_and_reads_no_other_format(light_page):
    page = light_page(fabric="drawn-8")
    for name in [name for name, entry in FORMATS.items() if entry.writes]:
        page.selectbox(key="export.format").set_value(name).run()
        assert not page.exception


def test_a_fabric_is_copied_and_compared_elsewhere(light_page):
    page = light_page(fabric="h100-spine-leaf-64")
    copy = next(one for one in page.button if one.label == "Edit as my own drawing")
    copy.click().run()
    assert not page.exception
    assert page.selectbox(key="fabric").value == OWN


def test_a_fabric_of_ones_own_is_collapsed_elsewhere(light_page):
    document = json.loads(json.dumps(fabric_document("drawn-8")))
    page = light_page(own=links().put({"document": document, "notes": []}))
    assert not page.exception
    assert page.selectbox(key="fabric").value == OWN
    assert {metric.label: metric.value for metric in page.metric}["Devices"] == "8"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where memory has a limit")
@pytest.mark.check
def test_what_takes_too_much_is_one_sentence_and_the_page_stands(fabric_page, monkeypatch):
    held = jobs.JobQueue(limits=Limits(memory_bytes=0.4 * GIB))
    monkeypatch.setattr(jobs, "_queue", held)
    page = fabric_page(fabric="dragonfly-1056", **{"collective.devices": "1056"})
    held.close()
    assert not page.exception
    (notice,) = page.info
    assert notice.value == (
        "Pricing every algorithm at every size has no result: it takes more than 0.4 GiB, the "
        "most that this studio gives one request."
    )
    assert len(page.get("plotly_chart")) == 2
    assert len(fabrics(page)) == 1
    assert {metric.label: metric.value for metric in page.metric}["Devices"] == "1,056"
