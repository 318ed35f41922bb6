"""A fabric of one's own, drawn or brought: every page reads it, every edit can be undone."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from page_parts import grey_parts

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.schema import FabricFile, checked
from nest_core.documents.units import humanise_rate
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.network.bisection import bisection_Bps
from nest_core.scenario import load_fabric
from nest_core.scenario.document import fabric_title
from nest_studio.cli import run
from nest_studio.session import own_fabric
from nest_studio.session.own_fabric import OWN

OPENSM = Path(__file__).resolve().parent.parent / "data" / "opensm"


def values(page):
    return {metric.label: metric.value for metric in page.metric}


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def press(page, label):
    return next(button for button in page.button if button.label == label).click().run()


def element(name: str, role: str, group: str = "") -> dict[str, Any]:
    return {"id": name, "role": role, "radix": 0, "group": group, "x": 0.0, "y": 0.0}


def link(a: str, b: str, rate: float, count: int = 1) -> dict[str, Any]:
    return {"a": a, "b": b, "bandwidth_GBps": rate, "count": count, "latency_us": 0.5}


def two_racks(uplink: float) -> tuple[list[Any], list[Any]]:
    """Two leaves of four devices under a spine."""
    elements, links = [element("spine", "switch")], []
    for rack in range(2):
        elements.append(element(f"leaf {rack}", "switch", f"rack {rack}"))
        links.append(link(f"leaf {rack}", "spine", uplink))
        for slot in range(4):
            name = f"gpu {4 * rack + slot}"
            elements.append(element(name, "device", f"rack {rack}"))
            links.append(link(name, f"leaf {rack}", 50.0))
    return elements, links


class Canvas:
    """What a browser's canvas would send."""

    def __init__(self, page):
        self.page = page
        self.edition = self.serial = 0

    def draw(self, elements, links):
        self.edition += 1
        change = {"base": 1, "edition": self.edition, "elements": elements, "links": links}
        return self._send({"drawing": change})

    def ask(self, name, ids=()):
        self.serial += 1
        action = {"name": name, "ids": list(ids), "groups": [], "serial": self.serial}
        return self._send({"action": action})

    def _send(self, sent):
        self.page.session_state["canvas"] = sent
        return self.page.run()


@pytest.fixture
def drawn(fabric_page):
    page = press(fabric_page(), "New drawing")
    canvas = Canvas(page)
    canvas.draw(*two_racks(200.0))
    return canvas


def test_an_empty_drawing_says_what_it_lacks_and_is_no_error(fabric_page):
    page = press(fabric_page(), "New drawing")
    assert not page.exception
    assert not page.error
    assert "Not a fabric yet: element must list at least one device, but is 0" in text_of(page)
    assert set(values(page).values()) == {"–"}


def test_a_drawing_becomes_levels_and_bisection(drawn):
    shown = values(drawn.page)
    assert shown["Devices"] == "8"
    assert shown["Bisection"] == humanise_rate(200e9)
    assert shown["Of full bisection"] == "–", "nodes end nowhere without NICs"
    drawn.draw(*two_racks(50.0))
    assert values(drawn.page)["Bisection"] == humanise_rate(50e9)
    assert values(drawn.page)["Levels"] == "2"


def test_a_drawing_that_falls_apart_keeps_the_last_figures(drawn):
    elements, links = two_racks(200.0)
    drawn.draw(elements, links[1:])
    assert not drawn.page.error
    assert "last whole fabric: link must connect all devices" in text_of(drawn.page)
    assert values(drawn.page)["Devices"] == "8"
    assert grey_parts(drawn.page) >= {"results", "results-picture", "results-below"}
    drawn.ask("undo")
    assert "last whole fabric" not in text_of(drawn.page)


def test_undo_and_redo_walk_through_every_edit(drawn):
    drawn.draw(*two_racks(50.0))
    drawn.draw(*two_racks(25.0))
    drawn.ask("undo")
    assert values(drawn.page)["Bisection"] == humanise_rate(50e9)
    drawn.ask("undo")
    assert values(drawn.page)["Bisection"] == humanise_rate(200e9)
    drawn.ask("redo")
    assert values(drawn.page)["Bisection"] == humanise_rate(50e9)
    drawn.draw(*two_racks(100.0))
    drawn.ask("redo")
    assert values(drawn.page)["Bisection"] == humanise_rate(100e9)


@pytest.mark.check
def test_many_edits_of_a_large_drawing_are_not_all_kept(drawn, monkeypatch):
    """A failure: a hundred copies of a large drawing take a gigabyte of the server."""
    monkeypatch.setattr(own_fabric, "ROWS", 60)
    for rate in range(1, 7):
        drawn.draw(*two_racks(float(rate)))
    past = drawn.page.session_state["OwnFabric"].history.past
    assert [len(document["element"]) + len(document["link"]) for document, _ in past] == [21, 21]
    monkeypatch.setattr(own_fabric, "ROWS", 1)
    drawn.draw(*two_racks(7.0))
    assert len(drawn.page.session_state["OwnFabric"].history.past) == 1


def test_what_was_read_goes_and_comes_with_its_document(drawn):
    """An import that has no canvas can be undone too, and notes belong to one document."""
    page = drawn.page
    upload(page, "topology.conf", "SwitchName=leaf Nodes=n[1-4]\n")
    assert "As read: Slurm topology.conf" in text_of(page)
    assert values(page)["Devices"] == "32"
    press(page, "Undo import")
    assert not page.exception
    assert values(page)["Devices"] == "8"
    assert "As read" not in text_of(page)
    drawn.ask("redo")
    assert "As read: Slurm topology.conf" in text_of(page)


def test_an_address_that_names_a_fabric_of_another_session_says_so(fabric_page):
    page = fabric_page(fabric=OWN)
    assert "is not in this" in page.info[0].value
    assert "is not in this" in page.run().info[0].value
    assert not press(page, "New drawing").info


def test_a_duplicated_rack_is_there(drawn):
    drawn.ask("duplicate", ["leaf 1", "gpu 4", "gpu 5", "gpu 6", "gpu 7"])
    assert values(drawn.page)["Devices"] == "12"
    assert values(drawn.page)["Levels"] == "2"


def test_an_answered_gesture_is_taken_up_once(drawn):
    page = drawn.page.run()
    assert page.session_state["OwnFabric"].revision == 2
    assert page.run().session_state["OwnFabric"].revision == 2


def test_moving_computes_nothing(drawn):
    elements, links = two_racks(200.0)
    before = drawn.page.session_state["DesignPage"].answer
    drawn.draw([entry | {"x": 99.0} for entry in elements], links)
    assert drawn.page.session_state["OwnFabric"].document["element"][0]["x"] == 99.0
    assert drawn.page.session_state["DesignPage"].answer == before


def test_the_plan_page_plans_on_it(drawn):
    page = drawn.page
    page.switch_page("../../pages/plan.py").run()
    page.selectbox(key="scenario").set_value("llama2-7b-64-h100").run()
    page.selectbox(key="fabric").set_value(OWN).run()
    assert not page.exception
    assert not page.error
    assert "Changed: fabric My fabric" in text_of(page)
    assert "· 8 H100 · drawn ·" in text_of(page)
    assert any("ratio of a drawn tier is a field" in caption.value for caption in page.caption)


def test_a_preset_becomes_a_drawing(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-64")
    before = values(page)
    press(page, "Edit as my own drawing")
    assert not page.exception
    assert page.selectbox(key="fabric").value == OWN
    assert values(page)["Devices"] == before["Devices"]
    assert values(page)["Bisection"] == before["Bisection"]
    assert values(page)["Levels"] == before["Levels"]


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("mi300x-mesh-64", [8, 4]),
        pytest.param("h100-spine-leaf-1024", [32, 16], marks=pytest.mark.check),
    ],
)
def test_a_preset_that_is_edited_keeps_its_bill(fabric_page, name, switches):
    """32 leaves and 16 spines, not one spine of 1,024 ports; and cables as long as before."""
    page = press(fabric_page(fabric=name), "Edit as my own drawing")
    assert not page.exception
    drawn = build_fabric(checked(FabricFile, page.session_state["OwnFabric"].document))
    before, after = (bill(fabric, load_prices()) for fabric in (load_fabric(name), drawn))
    assert [total.count for total in after.switches] == switches
    assert (after.nics, after.cables, after.price_usd) == (
        before.nics,
        before.cables,
        before.price_usd,
    )


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("unequal-racks-88", "Its bill: 336 ports become 94"),
        pytest.param("dgx-superpod-h100-as-built", "Its bill: ", marks=pytest.mark.check),
        pytest.param("dragonfly-1056", "Its bill: ", marks=pytest.mark.check),
        ("dgx1-v100-64", "Its levels: of node, latency"),
        ("drawn-8", "The remark on where"),
    ],
)
@pytest.mark.sampled(3)
def test_a_copy_says_what_convert_says_is_lost(fabric_page, name, differs, tmp_path, capsys):
    page = press(fabric_page(fabric=name), "Edit as my own drawing")
    assert not page.exception
    assert run(["convert", name, str(tmp_path / "out.graphml"), "--json"]) == 0
    lost = json.loads(capsys.readouterr().out)["lost"]
    assert any(loss.startswith(differs) for loss in lost)
    shown = [one.proto.body for one in page.get("html") if "As read: " in one.proto.body]
    origin = f"As read: {fabric_title(load_fabric(name))}, as a drawing."
    assert [html.unescape(one) for one in shown] == [
        f'<div class="nest-quiet">{origin} Left out: {" ".join(lost)}</div>'
    ]


def test_a_large_fabric_says_why_it_is_not_drawn(fabric_page):
    page = fabric_page(fabric="hpn-dual-plane")
    assert "Element by element a fabric is drawn up to 8,192 devices" in text_of(page)
    assert not any(button.label == "Edit as my own drawing" for button in page.button)


def test_a_hierarchy_of_ones_own_has_its_sliders(fabric_page):
    """Imported TOML keeps its kind; the form starts from its figures, not the preset's before."""
    page = fabric_page(fabric="h100-spine-leaf-1024-4to1")
    exported = write_fabric(load_fabric("nest-fat-tree-256"), "toml").text
    upload(page, "mine.toml", exported)
    assert not page.exception
    assert values(page)["Devices"] == "256"
    fabric = load_fabric("nest-fat-tree-256")
    assert values(page)["Bisection"] == humanise_rate(bisection_Bps(fabric, collapse(fabric)))
    assert "As read: Nest Studio TOML, mine.toml." in text_of(page)


def test_a_file_that_cannot_be_read_changes_nothing(fabric_page):
    page = fabric_page()
    before = values(page)
    upload(page, "broken.toml", "kind = ")
    assert not page.exception
    assert len(page.error) == 1
    assert "TOML" in page.error[0].value
    assert values(page) == before


def upload(page, name, text):
    upload_files(page, {name: text})


def upload_files(page, texts):
    files = [(name, text.encode(), "text/plain") for name, text in texts.items()]
    page.file_uploader(key="fabric file").set_value(files).run()


def of_subnet(name):
    return (OPENSM / f"{name}.txt").read_text(encoding="utf-8")


def test_forwarding_tables_come_beside_their_topology(fabric_page):
    """In either order; what is read is what `convert --tables` reads."""
    topology, tables = of_subnet("leaf_spine"), of_subnet("leaf_spine_updn")
    read = read_fabric(topology.encode(), "net.txt", tables=tables.encode()).document
    assert read["routing"] == "tables"
    page = fabric_page()
    for files in ({"net.txt": topology, "lfts.txt": tables},
                  {"lfts.txt": tables, "net.txt": topology}):  # fmt: skip
        upload_files(page, files)
        assert not page.exception
        assert not page.error
        assert page.session_state["OwnFabric"].document == read
        assert "As read: ibnetdiscover output, net.txt, lfts.txt." in text_of(page)
        assert "Traffic follows the forwarding tables of 6 switches." in text_of(page)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"lfts.txt": "leaf_spine_updn"}, "with forwarding tables beside it or behind it"),
        ({"net.txt": "leaf_spine", "lfts.txt": "torus_dor"}, "of the switches of this subnet"),
    ],
)
def test_tables_without_their_topology_are_refused_in_a_sentence(fabric_page, files, message):
    page = fabric_page()
    before = values(page)
    upload_files(page, {name: of_subnet(text) for name, text in files.items()})
    assert not page.exception
    assert len(page.error) == 1
    assert message in page.error[0].value
    assert values(page) == before


def test_of_several_fabrics_the_last_is_read(fabric_page):
    page = fabric_page()
    exported = write_fabric(load_fabric("nest-fat-tree-256"), "toml").text
    upload_files(page, {"net.txt": of_subnet("leaf_spine"), "mine.toml": exported})
    assert not page.error
    assert "As read: Nest Studio TOML, mine.toml." in text_of(page)


def test_a_changed_fabric_is_called_what_it_is(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-64")
    page.slider(key="fabric.clos.oversubscription.0").set_value(2.0).run()
    assert "64 H100, spine-leaf 2:1" in text_of(page)


def test_a_fabric_is_taken_to_compare(fabric_page):
    page = fabric_page(fabric="torus-16x16")
    page.button(key="to-compare").click().run()
    planned, moved = page.session_state["ComparePage"].history.present
    assert planned.name == "Plan"
    assert moved.name == fabric_title(load_fabric("torus-16x16"))
    assert moved.scenario.fabric == load_fabric("torus-16x16")


def test_the_price_list_is_edited_for_every_fabric(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-64")
    before = text_of(page)
    page.selectbox(key="prices.media").set_value("cheapest").run()
    assert not page.exception
    assert "copper" in text_of(page)
    assert "copper" not in before
    page.number_input(key="prices.rack_power").set_value(5.0).run()
    assert "⚠" in text_of(page)
    page.switch_page("../../pages/plan.py").run()
    page.switch_page("../../pages/design.py").run()
    assert page.selectbox(key="prices.media").value == "cheapest"
    assert page.number_input(key="prices.rack_power").value == 5.0
    assert "copper" in text_of(page)


def test_both_meanings_of_oversubscription_are_offered(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-1024-4to1")
    meaning = page.selectbox(key="fabric.clos.oversubscribe")
    assert "32" in text_of(page)
    meaning.set_value("splits the ports anew").run()
    assert not page.exception
    assert "splits the ports anew" in text_of(page)
    assert "split_radix" not in text_of(page)
    leaf, _ = page.session_state["DesignPage"].answer
    assert leaf.overrides == {"fabric.clos.oversubscribe": "split_radix"}


def test_other_assumptions_read_the_file_again_until_it_is_edited(fabric_page):
    page = fabric_page()
    upload(page, "topology.conf", "SwitchName=s0 Nodes=n[0-3]\n")
    assert values(page)["Devices"] == "32"
    page.number_input(key="assumed.devices_per_node").set_value(4).run()
    assert values(page)["Devices"] == "16"
    press(page, "Edit as my own drawing")
    page.number_input(key="assumed.devices_per_node").set_value(2).run()
    assert values(page)["Devices"] == "16"


def test_a_reload_brings_the_drawing_back_as_a_copy(drawn, fabric_page):
    """Another session with the address starts from the drawing and leaves the first alone."""
    key = drawn.page.query_params["own"]
    key = key[0] if isinstance(key, list) else key
    again = fabric_page(own=key, fabric=OWN)
    assert not again.exception
    assert values(again) == values(drawn.page)
    assert again.session_state["OwnFabric"].key == key
    Canvas(again).draw(*two_racks(25.0))
    assert values(again)["Bisection"] == humanise_rate(25e9)
    assert again.session_state["OwnFabric"].key != key
    assert values(drawn.page.run())["Bisection"] == humanise_rate(200e9)


def test_an_address_that_nobody_knows_opens_the_page(fabric_page):
    page = fabric_page(own="nobody")
    assert not page.exception
    assert values(page)["Devices"] == "1,024"


def test_a_file_of_one_device_is_a_drawing_too(fabric_page):
    """It has no links, which its file need not say; every part of the page stands."""
    page = fabric_page()
    one = 'schema = 1\nname = "one"\nkind = "graph"\n[[element]]\nid = "g"\nrole = "device"\n'
    upload(page, "one.toml", one)
    assert not page.exception
    assert not page.error
    assert values(page)["Devices"] == "1"
