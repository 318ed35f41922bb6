"""What comes back from another format costs the same, or `convert` says what does not.

The oracle is the command line itself: levels, bom, collective and traffic of the fabric that went
in and of the file that came out. What differs there must be named under ``lost``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
from functools import cache
from itertools import product
from typing import Any

import pytest

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.costs import price
from nest_core.costs.parse import read_plan
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric.drawing import MAX_DRAWN, drawing_of
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import FORMATS, read_fabric, write_fabric
from nest_core.interop.formats.exchange import lost_on_canvas
from nest_core.network import collapse
from nest_core.scenario import fabric_document, load_fabric, load_scenario
from nest_studio.cli import run

READ = [name for name, entry in FORMATS.items() if entry.reads and entry.writes]
LARGEST = 128
SMALL = [name for name in preset_names("fabrics") if load_fabric(name).devices <= LARGEST]
DRAWN = [name for name in preset_names("fabrics") if load_fabric(name).devices <= MAX_DRAWN]
MEDIUM = [name for name in preset_names("fabrics") if LARGEST < load_fabric(name).devices <= 600]


def asked(*arguments: str) -> dict[str, Any] | str:
    """What a command answers, or its refusal."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([*arguments, "--json"])
    return json.loads(out.getvalue()) if status == 0 else err.getvalue()


def figures(value: Any) -> Any:
    """Numbers to nine digits: graphs add in another order."""
    if isinstance(value, dict):
        return {key: figures(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [figures(entry) for entry in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@cache
def levels_of(fabric: str) -> Any:
    found = asked("levels", fabric)
    assert isinstance(found, dict), found
    return figures(found["levels"])


@cache
def bill_of(fabric: str) -> Any:
    found = asked("bom", fabric)
    assert isinstance(found, dict), found
    keys = ("nics", "transceivers", "cables", "price_usd", "power_w")
    lines = sorted((line["part"], line["item"], line["count"]) for line in found["lines"])
    return figures({key: found[key] for key in keys}), lines


@cache
def times_of(fabric: str, devices: int) -> dict[str, Any]:
    found = {}
    for op in ("all-reduce", "all-to-all"):
        for size, stride in ((devices, 1), (2, devices // 2), (min(8, devices), 1)):
            answer = asked(
                "collective",
                fabric,
                "--op",
                op,
                "--bytes",
                "1e9",
                "--size",
                str(size),
                "--stride",
                str(stride),
            )
            key = f"{op} {size} {stride}"
            found[key] = figures(answer["time_s"]) if isinstance(answer, dict) else "refused"
    return found


def converted(fabric: str, format: str, folder: Any) -> tuple[str, dict[str, Any]] | None:
    target = str(folder / f"out{FORMATS[format].suffixes[0]}")
    answer = asked("convert", fabric, target, "--to", format)
    if isinstance(answer, str):
        assert " must " in answer
        return None
    return target, answer


def same_or_said(fabric: str, format: str, folder: Any) -> None:
    done = converted(fabric, format, folder)
    if done is None:
        return
    target, answer = done
    lost = " ".join(answer["lost"])
    devices = load_fabric(fabric).devices
    if load_fabric(target).devices != devices:
        assert "Its devices:" in lost
        return
    if levels_of(fabric) != levels_of(target):
        assert "Its levels:" in lost, (levels_of(fabric), levels_of(target))
    if bill_of(fabric) != bill_of(target):
        assert "Its bill:" in lost, (bill_of(fabric), bill_of(target))
    if times_of(fabric, devices) != times_of(target, devices):
        assert "Its times:" in lost, (times_of(fabric, devices), times_of(target, devices))


# Each format with a preset that it holds with difficulty.
CHOSEN = {
    ("unequal-racks-88", "toml"),
    ("unequal-racks-88", "graphml"),
    ("h100-spine-leaf-64", "graphml"),
    ("mi300x-mesh-64", "csv"),
    ("dgx1-v100-64", "slurm-tree"),
    ("tpu-v4-2x2x4", "slurm-block"),
    ("drawn-8", "astrasim"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "format"),
    [
        pytest.param(*pair, marks=() if pair in CHOSEN else pytest.mark.check)
        for pair in product(SMALL, READ)
    ],
)
@pytest.mark.sampled(3)
def test_what_comes_back_is_the_same_or_said_to_be_lost(name, format, tmp_path):
    same_or_said(name, format, tmp_path)


@pytest.mark.check
@pytest.mark.parametrize("format", READ)
@pytest.mark.parametrize("name", MEDIUM)
def test_what_comes_back_of_larger_ones_is_the_same_or_said_to_be_lost(name, format, tmp_path):
    same_or_said(name, format, tmp_path)


def same_on_canvas(name: str, folder: Any) -> None:
    fabric, document = load_fabric(name), fabric_document(name)
    drawing = drawing_of(fabric, collapse(fabric).nesting)
    _, answer = converted(name, "graphml", folder) or pytest.fail("must convert")
    assert list(lost_on_canvas(fabric, document, drawing, load_prices())) == answer["lost"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        "dgx-superpod-h100-as-built",
        "drawn-8",
        "gb200-nvl72-rails",
        "tpu-v4-4x4x8-twisted",
        "unequal-racks-88",
    ],
)
def test_the_canvas_loses_what_convert_says(name, tmp_path):
    """A copy by hand and one by command are the same elements, and the same sentences."""
    same_on_canvas(name, tmp_path)


@pytest.mark.check
@pytest.mark.parametrize("name", DRAWN)
def test_the_canvas_loses_what_convert_says_of_any_preset(name, tmp_path):
    same_on_canvas(name, tmp_path)


LATTICES = ["tpu-v4-4x4x4", "tpu-v4-2x2x4", "mesh-8x8", "tpu-v5e-8x8", "tpu-v4-4x4x8-twisted"]
MESHED = ["mi300x-mesh-64", "dgx1-v100-64"]


LATTICE_FILES = [
    ("tpu-v4-4x4x4", "graphml"),
    ("tpu-v4-2x2x4", "graphml"),
    ("tpu-v4-2x2x4", "csv"),
    ("mi300x-mesh-64", "graphml"),
    ("dgx1-v100-64", "csv"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "format"),
    [
        pytest.param(*pair, marks=() if pair in LATTICE_FILES else pytest.mark.check)
        for pair in product([*LATTICES[:2], *MESHED], ["graphml", "csv"])
    ],
)
def test_tori_and_meshed_nodes_cost_as_graphs_what_they_cost_as_presets(name, format, tmp_path):
    """A torus was up to 4.2 times as slow as a graph as it was when it was picked."""
    target, _ = converted(name, format, tmp_path) or pytest.fail("must convert")
    devices = load_fabric(name).devices
    assert times_of(target, devices) == times_of(name, devices)
    assert bill_of(target)[0]["nics"] == bill_of(name)[0]["nics"]
    if name in LATTICES:
        assert (levels_of(target), bill_of(target)) == (levels_of(name), bill_of(name))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("shape", "wrap", "twisted", "missing"),
    [
        ([4, 4], [True, True], False, ["device 3", "device 0"]),
        ([8, 4], [True, False], False, ["device 5"]),
        ([3, 5], [True, False], False, []),
        ([6, 1], [True, False], False, []),
        ([2, 3, 4], [False, False, True], False, []),
        ([2, 2, 4], [True, True, True], True, []),
        ([4, 4], [False, False], False, ["device 0"]),
    ],
)
def test_any_torus_is_one_as_a_graph(shape, wrap, twisted, missing, tmp_path):
    torus = {"shape": shape, "wrap": wrap, "link_bandwidth_GBps": 50.0, "hop_latency_us": 1.0}
    document = {
        "schema": 1,
        "name": "t",
        "kind": "torus",
        "missing": missing,
        "torus": torus | {"twisted": twisted},
    }
    path = tmp_path / "in.toml"
    path.write_text(toml_document(document))
    target, _ = converted(str(path), "graphml", tmp_path) or pytest.fail("must convert")
    devices = load_fabric(target).devices
    assert levels_of(target) == levels_of(str(path))
    assert bill_of(target) == bill_of(str(path))
    assert times_of(target, devices) == times_of(str(path), devices)


def test_a_torus_with_a_link_too_few_is_said_to_be_none(tmp_path):
    """Nobody knows its rings, and its times are those of any graph: levels and convert say so."""
    document = read_fabric(
        write_fabric(load_fabric("tpu-v4-4x4x4"), "graphml").text.encode(), "x.graphml"
    ).document
    document["link"] = document["link"][1:]
    path = tmp_path / "broken.toml"
    path.write_text(toml_document(document))
    found = asked("levels", str(path))
    assert isinstance(found, dict)
    assert any("rings" in note for note in found["notes"])
    _, answer = converted(str(path), "graphml", tmp_path) or pytest.fail("must convert")
    assert any("rings" in note for note in answer["notes"])
    whole = asked("levels", "h100-spine-leaf-64")
    assert isinstance(whole, dict)
    assert whole["notes"] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        "h100-spine-leaf-64",
        "h100-spine-leaf-1024-4to1",
        "fat-tree-k16",
        "dgx-superpod-b300-ethernet",
        "rail-only-1024",
    ],
)
@pytest.mark.sampled(4)
def test_a_preset_that_is_drawn_has_the_presets_bill(name):
    """Sixteen spines are sixteen switches with their ports, also where they are drawn as one."""
    fabric = load_fabric(name)
    drawing = drawing_of(fabric, [fabric.node_of()])
    drawn = bill(build_fabric(checked(FabricFile, drawing)), load_prices())
    whole = bill(fabric, load_prices())
    assert (drawn.nics, drawn.cables, drawn.transceivers) == (
        whole.nics,
        whole.cables,
        whole.transceivers,
    )
    assert [(one.item, one.count) for one in drawn.switches] == [
        (one.item, one.count) for one in whole.switches
    ]
    assert drawn.price_usd.typical == pytest.approx(whole.price_usd.typical, rel=1e-9)
    spines = [entry for entry in drawing["element"] if entry["id"].startswith(("spine", "core"))]
    counted = sum(entry.get("count", 1) for entry in spines)
    assert counted == sum(
        count for tier, count in fabric.switch_counts().items() if tier in ("spine", "core")
    )
    assert all(entry["radix"] == fabric.radix for entry in spines)


PLANS = ["dp=8,tp=8,pp=1,micro_batch=1", "dp=4,tp=4,pp=4,micro_batch=1", "dp=16,tp=2,pp=2,zero=1"]


@pytest.mark.parametrize("name", ["h100-spine-leaf-64", "mi300x-mesh-64", "tpu-v4-4x4x4"])
def test_the_planner_prices_a_graph_as_its_preset(name):
    problem = load_scenario("llama2-7b-64-h100").problem()
    fabric = load_fabric(name)
    text = write_fabric(fabric, "graphml").text
    again = build_fabric(checked(FabricFile, read_fabric(text.encode(), "x.graphml").document))
    for text in PLANS:
        one, other = (
            price(
                dataclasses.replace(problem, network=collapse(version)),
                read_plan(text, problem.layers, 64),
            ).iteration_s
            for version in (fabric, again)
        )
        assert math.isclose(one, other, rel_tol=1e-9), text


def test_a_tree_of_hosts_has_one_card_per_device_when_it_is_drawn(tmp_path):
    """An imported tree counts a NIC per device; drawn, it counted one more per level."""
    path = tmp_path / "topology.conf"
    path.write_text(
        "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=r Switches=s[0-1]\n"
    )
    target, _ = converted(str(path), "graphml", tmp_path) or pytest.fail("must convert")
    assert bill_of(str(path))[0]["nics"] == bill_of(target)[0]["nics"] == 32


def test_the_inside_of_a_node_is_not_billed(tmp_path):
    """Neither where NICs tell the node nor where its group does."""
    elements: list[dict[str, Any]] = [{"id": "leaf", "role": "switch", "radix": 64}]
    links = []
    for node in range(2):
        hub, group = f"node{node}-switch", f"node{node}"
        elements.append({"id": hub, "role": "switch", "group": group})
        for slot in range(4):
            device = f"node{node}-device{slot}"
            elements.append({"id": device, "role": "device", "group": group})
            links.append({"a": device, "b": hub, "bandwidth_GBps": 450.0})
        links.append({"a": hub, "b": "leaf", "bandwidth_GBps": 50.0})
    path = tmp_path / "nodes.toml"
    document = {"schema": 1, "name": "f", "kind": "graph", "element": elements, "link": links}
    path.write_text(toml_document(document))
    found = asked("bom", str(path))
    assert isinstance(found, dict)
    assert sum(found["switches"].values()) == 1
    assert found["cables"] == 2


def test_documents_of_counted_fabrics_are_unchanged():
    """The words of `Fabric.document` stay those of the schema."""
    for name in preset_names("fabrics"):
        checked(FabricFile, load_fabric(name).document())
