"""The timeline of 1,024 devices: drawn at once, and a device's in its place when one is named."""

from __future__ import annotations

import json

import pytest
from plotly.offline import get_plotlyjs

from nest_core.api.simulate import simulate

pytestmark = pytest.mark.browser

SCENARIO = "llama3-70b-1024-h100"
MOST_ELEMENTS = 5000
DRAW = """async figure => {
  const place = document.body.appendChild(document.createElement("div"));
  place.style.width = "832px";
  await Plotly.newPlot(place, figure.data, figure.layout);
  return place.querySelectorAll("*").length;
}"""


def test_1024_devices_are_drawn_in_few_elements(watched):
    """Browsers freeze over elements; how long drawing takes is measured in benchmarks."""
    page = watched().page
    page.set_content("<!doctype html><body></body>")
    page.add_script_tag(content=get_plotlyjs())
    for picture in simulate(SCENARIO).pictures():
        figure = json.loads(picture.plot.to_json())
        assert 10 < page.evaluate(DRAW, figure) < MOST_ELEMENTS


def test_a_device_is_shown_in_place_of_all_stages(watched):
    window = watched()
    window.open(f"?scenario={SCENARIO}&tab=Timeline")
    page = window.page
    page.get_by_text("sets the pace and waits").wait_for()
    field = page.get_by_label("Device", exact=True)
    field.fill("300")
    field.press("Enter")
    page.get_by_text("Device 300, of stage 2, waits").wait_for()
    assert not window.complaints
