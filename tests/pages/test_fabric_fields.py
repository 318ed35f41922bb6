"""Every part of a fabric has a field, on Design and on Plan, and what is refused mends itself.

The keys are walked here as pydantic has them; the form is asked by what stands on the page alone.
"""

from __future__ import annotations

import html
import tomllib
from pathlib import Path

import networkx as nx
import pytest

from nest_core.documents.schema import checked
from nest_core.documents.schema.fabric import (
    ClosTable,
    DragonflyTable,
    FabricFile,
    IntraNodeTable,
    LevelTable,
    TorusTable,
    TpuSliceTable,
)
from nest_core.fabric.files import build_fabric
from nest_core.scenario import fabric_document

TABLES = {
    "level": LevelTable,
    "clos": ClosTable,
    "intra_node": IntraNodeTable,
    "dragonfly": DragonflyTable,
    "torus": TorusTable,
    "tpu_slice": TpuSliceTable,
}
NO_FIELDS = {
    "schema": "the format, of which there is one",
    "name": "what its author called it: no title is read off it",
    "source": "where its figures are from",
    "assumed_inside_GBps": "what a reader assumed; the link speed in the node has a field",
    "element": "drawn on the canvas and in its table",
    "link": "drawn on the canvas and in its table",
    "forwarding": "tables of a subnet's switches, as they were dumped",
}
"""Keys of a fabric's file that no field is for, and why."""

UNDER = {
    "clos.pods": {"fabric": "dgx-superpod-h100-8192"},
    "clos.rails": {"fabric": "dgx-superpod-h100-8192"},
    "clos.core_link_GBps": {"fabric": "dgx-superpod-h100-8192"},
    "ecmp_seed": {"fabric": "h100-spine-leaf-64", "fabric.routing": "ecmp"},
}
"""Keys with a meaning on rails, in three tiers, or under hashing alone, and a page of it.
"""

PAGES = (
    {"fabric": "h100-spine-leaf-64"},
    {"fabric": "h100-spine-leaf-64", "fabric.routing": "ecmp"},
    {"fabric": "dgx-superpod-h100-8192"},
    {"fabric": "dragonfly-1056"},
    {"fabric": "torus-16x16"},
    {"fabric": "tpu-v4-2x2x4"},
    {"fabric": "unequal-racks-88"},
    {"fabric": "drawn-8"},
)
KINDS_ALONE = {"hierarchical", "dragonfly", "torus", "tpu_slice", "graph"}
"""No other kind has their tables: a preset chooses them."""
INPUT = Path(__file__).parents[3] / "shared" / "inputs" / "gb200-16416-3-tier.toml"


def widgets(page):
    kinds = ("selectbox", "multiselect", "slider", "number_input", "text_input", "checkbox")
    return {w.key: w for kind in kinds for w in getattr(page, kind) if w.key}


def fabric_of(page):
    """The document of the fabric that the page shows."""
    return page.session_state["DesignPage"].answer[0].fabric_table


def keys_of(document):
    """Dotted keys that a file of these tables may have."""
    for name, field in FabricFile.model_fields.items():
        key = field.alias or name
        present = document.get(key)
        if key not in TABLES and key not in NO_FIELDS:
            yield key
        elif key == "level":
            for place, _ in enumerate(present or ()):
                yield from (f"level.{place}.{inner}" for inner in LevelTable.model_fields)
        elif present is not None and key in TABLES:
            yield from (f"{key}.{inner}" for inner in TABLES[key].model_fields)


def lacks(key, document):
    """Whether a kind gives the key no meaning, or its document says the same in another."""
    kind = document["kind"]
    clos = "clos" in document
    level = key.startswith("level.") and document["level"][int(key.split(".")[1])]
    return (
        (key == "kind" and kind in KINDS_ALONE)
        or (key == "missing" and kind in ("dragonfly", "graph"))
        or (key == "devices_per_host" and not clos and kind != "hierarchical")
        or (key == "optics" and not clos and kind != "dragonfly")
        or (key in ("routing", "ecmp_seed") and kind in ("hierarchical", "torus", "tpu_slice"))
        or (key.endswith("group_sizes") and "group_size" in level)
        or (key.endswith("group_size") and "group_sizes" in level)
    )


@pytest.mark.parametrize("address", PAGES, ids=lambda address: "-".join(address.values()))
def test_every_key_of_a_fabric_has_a_field(fabric_page, address):
    """Tiers, radix, rails, planes and NICs had none."""
    page = fabric_page(**address)
    assert not page.exception
    assert not page.error
    drawn = widgets(page)
    document = fabric_document(address["fabric"])
    for key in keys_of(document):
        if lacks(key, document) or UNDER.get(key, address) != address:
            continue
        assert any(
            name == f"fabric.{key}" or name.startswith(f"fabric.{key}.") for name in drawn
        ), key


def test_plan_has_the_same_fields_folded(plan_page, fabric_page):
    address = {"fabric": "h100-spine-leaf-64"}
    design = {key for key in widgets(fabric_page(**address)) if key.startswith("fabric")}
    plan = plan_page(**address)
    assert design == {key for key in widgets(plan) if key.startswith("fabric")}
    folds = {fold.label for fold in plan.expander}
    assert {"Fabric", "Switches and links", "Nodes", "Routing and failures"} <= folds


def test_a_link_with_tiers_is_taken(fabric_page):
    """It was refused: tiers had no field."""
    page = fabric_page(
        **{
            "fabric": "dgx-superpod-h100",
            "fabric.clos.tiers": "3",
            "fabric.clos.oversubscription.1": "2.0",
        }
    )
    assert not page.error
    assert not page.warning
    assert fabric_of(page)["clos"]["tiers"] == 3
    assert fabric_of(page)["clos"]["oversubscription"] == [1.0, 2.0]
    widgets(page)["fabric.clos.tiers"].set_value(2).run()
    assert fabric_of(page)["clos"]["oversubscription"] == [1.0]


def test_rates_of_tiers_come_and_go_with_them(fabric_page):
    """800 Gb/s to spines and cores over 400 Gb/s NICs: half as many links, the ratio as it was."""
    page = fabric_page(
        **{
            "fabric": "dgx-superpod-h100-8192",
            "fabric.clos.devices": "1024",
            "fabric.clos.core_link_GBps": "200.0",
            "fabric.clos.spine_link_GBps": "100.0",
        }
    )
    assert not page.error
    clos = fabric_of(page)["clos"]
    assert (clos["spine_link_GBps"], clos["core_link_GBps"]) == (100.0, 200.0)
    captions = " ".join(caption.value for caption in page.caption)
    assert "16 uplinks of 100 GB/s per leaf" in captions.replace("\\", "")
    widgets(page)["fabric.clos.tiers"].set_value(2).run()
    assert not page.exception
    assert "fabric.clos.core_link_GBps" not in widgets(page)
    assert fabric_of(page)["clos"].get("core_link_GBps") is None
    assert "fabric.clos.spine_link_GBps" in widgets(page)


def test_another_kind_keeps_what_it_has_in_common(fabric_page):
    page = fabric_page(fabric="gb200-nvl72-rails")
    for key, value in (("nics_per_node", 8), ("radix", 144)):
        widgets(page)[f"fabric.clos.{key}"].set_value(value).run()
    widgets(page)["fabric.kind"].set_value("fat-tree").run()
    assert not page.exception
    assert fabric_of(page)["kind"] == "fat_tree"
    assert fabric_of(page)["clos"]["rails"] == 1
    assert "fabric.clos.rails" not in widgets(page)


def test_a_torus_has_as_many_dimensions_as_are_asked_for(fabric_page):
    """They were the preset's. A link has them too, and what is counted is counted link by link."""
    address = {"fabric": "torus-16x16", "fabric.torus": "3", "fabric.torus.shape.2": "4"}
    for page in (fabric_page(**address), fabric_page(fabric="torus-16x16")):
        if widgets(page)["fabric.torus"].value == 2:
            assert "fabric.torus.shape.2" not in widgets(page)
            widgets(page)["fabric.torus"].set_value(3).run()
            widgets(page)["fabric.torus.shape.2"].set_value(4).run()
        assert not page.exception
        assert not page.error
        torus = fabric_of(page)["torus"]
        assert (torus["shape"], torus["wrap"]) == ([16, 16, 4], [True, True, True])
        graph = build_fabric(checked(FabricFile, fabric_of(page))).explicit()
        grid = nx.grid_graph((4, 16, 16), periodic=True)
        assert nx.faster_could_be_isomorphic(graph, grid)
        assert (len(graph), graph.number_of_edges()) == (1024, 3 * 1024)
    widgets(page)["fabric.torus.wrap.2"].set_value(False).run()
    assert fabric_of(page)["torus"]["wrap"] == [True, True, False]
    widgets(page)["fabric.torus"].set_value(2).run()
    assert not page.exception
    assert fabric_of(page) == fabric_document("torus-16x16")


def test_a_hierarchy_has_as_many_levels_as_are_asked_for(fabric_page, plan_page):
    page = fabric_page(fabric="v100-pods-64")
    widgets(page)["fabric.level"].set_value(4).run()
    widgets(page)["fabric.level.3.group_size"].set_value(3).run()
    widgets(page)["fabric.level.3.oversubscription"].set_value(4.0).run()
    assert not page.exception
    assert not page.error
    *_, third, added = fabric_of(page)["level"]
    assert added == third | {"name": "level 4", "group_size": 3, "oversubscription": 4.0}
    assert build_fabric(checked(FabricFile, fabric_of(page))).devices == 64 * 3
    widgets(page)["fabric.level"].set_value(2).run()
    assert not page.exception
    assert [level["name"] for level in fabric_of(page)["level"]] == ["node", "pod"]
    plan = plan_page(**{"fabric": "v100-pods-64", "fabric.level": "2"})
    assert not plan.exception
    assert "fabric.level.2.group_size" not in widgets(plan)
    assert any("2 levels" in markdown.value for markdown in (*plan.markdown, *plan.caption)) or any(
        "2 levels" in str(html.proto.body) for html in plan.get("html")
    )


REFUSED = [
    ("h100-spine-leaf-1024", "fabric.clos.devices", 16_416, "Set switch tiers to 3"),
    ("h100-spine-leaf-1024", "fabric.clos.radix", 3, "Set switch radix to 64 ports"),
    ("h100-spine-leaf-1024", "fabric.clos.devices", 1020, "Set devices to 1,024"),
    ("h100-spine-leaf-1024", "fabric.clos.planes", 3, "Set planes to 4"),
    (
        "h100-spine-leaf-1024",
        "fabric.clos.spine_link_GBps",
        75.0,
        "Set spine link speed to 100 GB/s",
    ),
    ("fat-tree-k16", "fabric.clos.spine_link_GBps", 60.0, "Set aggregation link speed to 50 GB/s"),
    (
        "dgx-superpod-h100-8192",
        "fabric.clos.core_link_GBps",
        60.0,
        "Set core link speed to 50 GB/s",
    ),
    ("dgx-superpod-h100", "fabric.clos.rails", 5, "Set rails to 4"),
    ("dgx-superpod-h100", "fabric.clos.tiers", 1, "Set switch tiers to 2"),
    ("gb200-nvl72-rails", "fabric.devices_per_host", 144, "Set host size to 72 devices"),
    ("gb200-nvl72-rails", "fabric.clos.nics_per_node", 10, "Set NICs per node to 18"),
    ("dragonfly-1056", "fabric.dragonfly.groups", 40, "Set groups to 33"),
    ("tpu-v4-4x4x8-twisted", "fabric.tpu_slice.shape.0", 5, "Set size along x to 4 devices"),
]


@pytest.mark.parametrize(("fabric", "key", "value", "button"), REFUSED)
def test_a_refusal_is_a_sentence_in_labels_and_a_button(fabric_page, fabric, key, value, button):
    page = fabric_page(fabric=fabric)
    widgets(page)[key].set_value(value).run()
    assert not page.exception
    (notice,) = page.error
    sentence = notice.value.replace("\\", "")
    assert "_" not in sentence
    assert not any(f"{part}." in sentence for part in ("clos", "dragonfly", "tpu_slice", "fabric"))
    beside = [caption.value for caption in page.caption if caption.value.startswith(":red[")]
    assert len(beside) <= 1
    assert widgets(page)[key].value == value  # nothing is lost
    mend = next(entry for entry in page.button if entry.label == button)
    mend.click().run()
    assert not page.exception
    assert not page.error
    assert not [caption for caption in page.caption if caption.value.startswith(":red[")]


def test_the_fabric_of_16416_is_made_of_fields(fabric_page):
    """From a fresh start, in as many inputs as it has settings that are not usual."""
    page = fabric_page()
    chosen = {
        "fabric.kind": "rail-optimised",
        "fabric.clos.devices": 16_416,
        "fabric.clos.tiers": 3,
        "fabric.clos.devices_per_node": 72,
        "fabric.clos.nics_per_node": 72,
        "fabric.clos.rails": 18,
        "fabric.devices_per_host": 4,
        "fabric.intra_node.bandwidth_GBps": 900.0,
    }
    for key, value in chosen.items():
        widgets(page)[key].set_value(value).run()
        assert not page.exception, key
    assert not page.error
    expected = tomllib.loads(INPUT.read_text())
    made = fabric_of(page)
    assert made["kind"] == expected["kind"]
    assert made["devices_per_host"] == expected["devices_per_host"]
    for table in ("clos", "intra_node"):
        assert {key: made[table][key] for key in expected[table]} == expected[table]
    assert "16,416" in html.unescape(" ".join(entry.proto.body for entry in page.get("html")))


def test_a_domain_of_another_accelerator_proposes_it_and_a_batch(fabric_page):
    """72 devices of an NVL72 rack on an H100, and nine times the devices with the batch of 64.

    For 64 of the 72, a Trainium 2 was proposed, whose domain is the smallest that holds them.
    """
    open_page = fabric_page.func
    few = {"fabric.clos.devices_per_node": 64, "fabric.clos.nics_per_node": 64}
    page = open_page(
        "measure",
        scenario="llama2-7b-64-h100",
        fabric="gb200-nvl72-rails",
        **few,
        **{"fabric.clos.rails": 16},
    )
    (proposed,) = [button for button in page.button if button.key == "proposed"]
    assert proposed.label == "Use gb200-186gb, batch 9,216"
    page = open_page("measure", scenario="llama2-7b-64-h100", fabric="gb200-nvl72-rails")
    assert not page.exception
    captions = [caption.value.replace("\\", "") for caption in page.caption]
    assert any("Nodes of 72 devices" in words and "at most 8" in words for words in captions)
    assert any("7,282 tokens a device" in words for words in captions)
    proposed = next(button for button in page.button if button.key == "proposed")
    assert proposed.label == "Use gb200-186gb, batch 9,216"
    proposed.click().run()
    assert not page.exception
    assert widgets(page)["accelerator"].value == "gb200-186gb"
    assert widgets(page)["workload.global_batch_sequences"].value == 9_216
    assert widgets(page)["accelerator.memory_GiB"].value == 186.0
    assert not [button for button in page.button if button.key == "proposed"]


def test_a_rack_larger_than_the_domain_is_said_below_its_field(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-64")
    widgets(page)["fabric.clos.devices_per_node"].set_value(16).run()
    (said,) = [caption.value for caption in page.caption if "one domain" in caption.value]
    assert "Nodes of 16 devices: H100 SXM 80 GB is sold with at most 8" in said
    assert fabric_of(page)["clos"]["devices_per_node"] == 16
