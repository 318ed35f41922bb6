"""Templates, ratios of drawn tiers, and fabrics kept by name, on the Design and other pages."""

from __future__ import annotations

import html

import pytest

from nest_studio.compare.state import fabric_choices
from nest_studio.session.own_fabric import OWN
from nest_studio.session.stored import documents


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def press(page, label=None, key=None):
    return (
        next(b for b in page.button if key in (None, b.key) and label in (None, b.label))
        .click()
        .run()
    )


def document(page):
    return page.session_state["OwnFabric"].document


@pytest.fixture
def racks(fabric_page, store):
    """Two racks of two servers with four devices each, under two spines."""
    page = press(fabric_page(), "New drawing")
    for name, value in {"copies": 2, "nodes": 2, "devices": 4}.items():
        page.number_input(key=f"template.{name}").set_value(value)
    page = press(page, key="template.add")
    assert "Not a fabric yet" in text_of(page)
    page.number_input(key="spines.switches").set_value(2)
    return press(page, key="spines.add")


def test_templates_make_a_fabric(racks):
    assert not racks.exception
    shown = {metric.label: metric.value for metric in racks.metric}
    assert shown["Devices"] == "16"
    assert "Realised 1:1 at most, 8 links up from each of 2 leaf switches" in text_of(racks)


def test_a_drawn_tier_is_oversubscribed_in_whole_ports(racks):
    (field,) = (one for one in racks.number_input if one.label.startswith("Oversubscription, down"))
    page = field.set_value(3.0).run()
    assert "Realised 2.67:1 at most, 3 links up" in text_of(page)
    assert [link["count"] for link in document(page)["link"] if link["b"] == "spine 0"] == [3, 3]
    (field,) = (one for one in page.number_input if one.label.startswith("Oversubscription, down"))
    page = field.set_value(0.02).run()
    assert "ratio must leave leaf 0 at its 64 ports or fewer" in page.error[0].value
    assert [link["count"] for link in document(page)["link"] if link["b"] == "spine 0"] == [3, 3]


def test_an_element_without_links_is_said_and_the_drawing_kept(racks):
    more = document(racks) | {
        "element": [*document(racks)["element"], {"id": "gpu 99", "role": "device"}]
    }
    sent = {"base": 1, "edition": 1, "elements": more["element"], "links": more["link"]}
    racks.session_state["canvas"] = {"drawing": sent}
    page = racks.run()
    assert not page.exception
    assert page.warning[0].value == "gpu 99 has no link: draw one, or delete it."
    assert document(page)["element"][-1]["id"] == "gpu 99"


def test_kept_by_name_opened_renamed_and_deleted(racks, fabric_page):
    page = racks
    page.text_input(key="library.save").set_value("Hall A")
    page = press(page, key="library.saving")
    assert documents("fabrics").names() == ("Hall A",)
    kept = documents("fabrics").open("Hall A")
    assert len(kept["element"]) == len(document(page)["element"])

    other = fabric_page()
    other.selectbox(key="fabric").set_value("Hall A").run()
    assert not other.exception
    assert other.selectbox(key="fabric").value == OWN
    assert "From the library: Hall A" in text_of(other)

    linked = fabric_page(fabric="Hall A")
    assert not linked.exception
    assert linked.selectbox(key="fabric").value == OWN
    assert document(linked)["element"] == kept["element"]

    page.text_input(key="library.rename").set_value("h100-spine-leaf-64")
    page = press(page, key="library.renaming")
    assert "must not be that of a preset" in page.error[0].value
    page.text_input(key="library.rename").set_value("Hall B")
    page = press(page, key="library.renaming")
    assert documents("fabrics").names() == ("Hall B",)
    page = press(page, key="library.delete")
    assert documents("fabrics").names() == ()
    assert document(page)["element"], "what is on the page stays"


def test_one_that_another_saved_is_not_replaced(racks):
    documents("fabrics").save("Hall A", {"kind": "torus"})
    racks.text_input(key="library.save").set_value("Hall A")
    page = press(racks, key="library.saving")
    assert "name must not be taken" in page.error[0].value
    assert documents("fabrics").open("Hall A") == {"kind": "torus"}


def test_compare_offers_them(store):
    documents("fabrics").save("Hall A", {"kind": "torus"})
    assert "Hall A" in fabric_choices()
