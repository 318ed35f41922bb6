"""Documents give back what they hold: document -> fabric -> document, for every key of the schema.

The documents are made from the schema itself, so a key that is added to it and not to
`Fabric.document` fails here without anybody naming it.
"""

from __future__ import annotations

import itertools
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.documents.schema import FabricFile, checked
from nest_core.documents.schema.fabric import (
    ClosTable,
    DragonflyTable,
    ElementTable,
    IntraNodeTable,
    LevelTable,
    LinkTable,
    TorusTable,
    TpuSliceTable,
)
from nest_core.fabric import Fabric
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import read_fabric, write_fabric

RATES = st.sampled_from([0.1, 12.5, 50.0, 100 / 3, 450.0, 46.875])
TIMES = st.sampled_from([0.0, 0.5, 0.6, 1.25, 100 / 7])
RATIOS = st.sampled_from([1.0, 1.5, 2.0, 3.0, 4.0, 7.0])
SWITCHED = ("leaf_spine", "fat_tree", "rail_optimised", "rail_only")

VALUES: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    ClosTable: {
        "devices": st.sampled_from([32, 64, 128, 256, 1024]),
        "devices_per_node": st.sampled_from([4, 8]),
        "nics_per_node": st.sampled_from([1, 2, 4, 8]),
        "nic_bandwidth_GBps": RATES,
        "radix": st.sampled_from([16, 32, 40, 64]),
        "tiers": st.sampled_from([2, 3]),
        "oversubscription": st.lists(RATIOS, min_size=1, max_size=2),
        "hop_latency_us": TIMES,
        "planes": st.sampled_from([1, 2]),
        "rails": st.sampled_from([1, 2, 4]),
        "pods": st.sampled_from(["units", "rails"]),
        "oversubscribe": st.sampled_from(["remove_uplinks", "split_radix"]),
        "spread": st.sampled_from(["even", "fewest"]),
        "nodes_per_rack": st.sampled_from([1, 3]),
        "spine_link_GBps": st.sampled_from([25.0, 50.0, 100.0]),
        "core_link_GBps": st.sampled_from([25.0, 50.0, 100.0]),
    },
    IntraNodeTable: {
        "interconnect": st.sampled_from(["switch", "mesh", "ring", "hybrid_cube_mesh"]),
        "bandwidth_GBps": RATES,
        "latency_us": TIMES,
    },
    DragonflyTable: {
        "routers_per_group": st.sampled_from([2, 4]),
        "nodes_per_router": st.sampled_from([1, 2]),
        "global_links_per_router": st.sampled_from([1, 2]),
        "local_bandwidth_GBps": RATES,
        "global_bandwidth_GBps": RATES,
        "hop_latency_us": TIMES,
        "groups": st.sampled_from([1, 2, 3]),
        "devices_per_node": st.sampled_from([1, 8]),
        "nics_per_node": st.sampled_from([1, 8]),
        "nic_bandwidth_GBps": RATES,
    },
    TorusTable: {
        "shape": st.sampled_from([[4, 4], [2, 2, 4], [4, 4, 8], [3, 5], [1, 6], [2, 3, 4]]),
        "wrap": st.sampled_from([[True] * 3, [False] * 3, [True, False, True]]),
        "link_bandwidth_GBps": RATES,
        "hop_latency_us": TIMES,
        "twisted": st.booleans(),
        "nics_per_device": st.sampled_from([1, 2]),
        "nic_bandwidth_GBps": st.just(1e6),
        "devices_per_node": st.sampled_from([1, 8]),
    },
    TpuSliceTable: {
        "generation": st.sampled_from(["v4", "v5p", "v5e", "v6e", "v7x"]),
        "shape": st.sampled_from([[4, 4, 8], [2, 2, 4], [8, 16], [4, 4, 4], [16, 16]]),
        "twisted": st.booleans(),
        "link_bandwidth_GBps": RATES,
        "hop_latency_us": TIMES,
    },
    LevelTable: {
        "name": st.sampled_from(["node", "rack", "pod"]),
        "group_size": st.sampled_from([2, 3, 4]),
        "group_sizes": st.lists(st.integers(1, 4), min_size=1, max_size=4),
        "names": st.just(["some"]),
        "uplink_per": st.sampled_from(["device", "child"]),
        "bandwidth_GBps": RATES,
        "oversubscription": RATIOS,
        "latency_us": TIMES,
    },
    ElementTable: {
        "radix": st.sampled_from([64, 128]),
        "count": st.sampled_from([1, 2, 16]),
        "group": st.sampled_from(["rack 0", "rack 0/node 3"]),
        "x": st.sampled_from([0.0, -12.5]),
        "y": st.sampled_from([0.0, 60.0]),
    },
    LinkTable: {
        "bandwidth_GBps": RATES,
        "count": st.sampled_from([1, 2, 8]),
        "latency_us": TIMES,
    },
}
"""A few values of every key; the test below wants one for each key that the schema has."""

OWN_KEYS = {ElementTable: {"id", "role"}, LinkTable: {"a", "b"}}


def table(kind: type, **fixed: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A table of the schema: required keys always, optional ones here and there."""
    required, optional = {}, {}
    for name, field in kind.model_fields.items():
        if name in fixed or name in OWN_KEYS.get(kind, ()) or name not in VALUES[kind]:
            continue
        (required if field.is_required() else optional)[name] = VALUES[kind][name]
    return st.fixed_dictionaries(
        required | {key: st.just(value) for key, value in fixed.items()}, optional=optional
    )


@st.composite
def documents(draw: Any, kind: str) -> dict[str, Any]:
    """A document of a kind that may or may not be a fabric."""
    document: dict[str, Any] = {"schema": 1, "name": "f", "kind": kind}
    if draw(st.booleans()):
        document["assumed_inside_GBps"] = draw(RATES)
    if kind in (*SWITCHED, "dragonfly", "graph"):
        document["routing"] = draw(st.sampled_from(["adaptive", "shortest_path", "ecmp"]))
        if document["routing"] == "ecmp":
            document["ecmp_seed"] = draw(st.integers(0, 9))
    if kind in (*SWITCHED, "hierarchical") and draw(st.booleans()):
        document["devices_per_host"] = draw(st.sampled_from([1, 2, 4]))
    if kind in SWITCHED:
        clos = draw(table(ClosTable))
        clos["oversubscription"] = (clos.get("oversubscription", []) * 2 + [1.0] * 2)[
            : clos["tiers"] - 1
        ]
        if not kind.startswith("rail"):
            clos.pop("rails", None)
        document |= {"clos": clos, "intra_node": draw(table(IntraNodeTable))}
        tier = "edge" if kind == "fat_tree" else "leaf"
        document["optics"] = draw(st.sampled_from([{}, {tier: "DR"}]))
        gone = ["node 1", "device 9", "device 0", "spine 0"]
        document["missing"] = draw(st.lists(st.sampled_from(gone), max_size=2, unique=True))
    elif kind == "dragonfly":
        document |= {"dragonfly": draw(table(DragonflyTable))}
        if draw(st.booleans()):
            document["intra_node"] = draw(table(IntraNodeTable))
    elif kind in ("torus", "tpu_slice"):
        tables = {"torus": TorusTable, "tpu_slice": TpuSliceTable}
        document[kind] = draw(table(tables[kind]))
        document["routing"] = draw(st.sampled_from(["adaptive", "shortest_path"]))
        if kind == "torus" and not {"nics_per_device", "nic_bandwidth_GBps"} <= set(document[kind]):
            for key in ("nics_per_device", "nic_bandwidth_GBps"):
                document[kind].pop(key, None)
        if kind == "torus":
            document[kind]["wrap"] = document[kind]["wrap"][: len(document[kind]["shape"])]
        document["missing"] = draw(st.lists(st.sampled_from(["device 3", "device 0"]), max_size=1))
    elif kind == "hierarchical":
        document["level"] = draw(levels())
        gone = ["device 1", f"{document['level'][0]['name']} 0"]
        document["missing"] = draw(st.lists(st.sampled_from(gone), max_size=1))
    else:
        document["element"] = [
            draw(table(ElementTable, id="leaf", role="switch")),
            *(draw(table(ElementTable, id=f"gpu {n}", role="device", count=1)) for n in range(2)),
        ]
        document["link"] = [draw(table(LinkTable, a=f"gpu {n}", b="leaf")) for n in range(2)]
    return document


@st.composite
def levels(draw: Any) -> list[dict[str, Any]]:
    """Levels whose listed groups add up, from the outermost inwards."""
    found: list[dict[str, Any]] = []
    groups = 1
    for name in ("pod", "rack", "node")[draw(st.integers(0, 2)) :]:
        level = draw(table(LevelTable, name=name)) | {"name": name}
        if "names" in level:
            level["names"] = [f"{name} of {at}" for at in range(groups)]
        sizes = draw(st.lists(st.integers(1, 4), min_size=groups, max_size=groups))
        if "group_sizes" in level:
            level["group_sizes"] = sizes
            level.pop("group_size", None)
            groups = sum(sizes)
        else:
            groups *= level.setdefault("group_size", 2)
        found.insert(0, level)
    return found


def built(document: dict[str, Any]) -> Fabric:
    return build_fabric(checked(FabricFile, document))


FILTERS = [HealthCheck.filter_too_much, HealthCheck.too_slow]
KINDS = FabricFile.model_fields["kind"].annotation.__args__


def test_every_key_of_the_schema_is_tried():
    """A key added to the schema must get values above, or nothing proves that it survives."""
    missing = {
        f"{kind.__name__}.{name}"
        for kind, values in VALUES.items()
        for name in kind.model_fields
        if name not in values and name not in OWN_KEYS.get(kind, ())
    }
    assert not missing
    tables = {"level", "clos", "intra_node", "dragonfly", "torus", "tpu_slice", "element", "link"}
    tables |= {"forwarding"}  # tests/network/test_forwarding.py
    tried = {"version", "name", "kind", "routing", "ecmp_seed", "missing"}
    tried |= {"devices_per_host", "optics", "assumed_inside_GBps"}
    # Where figures are from is a remark of the document; no fabric has it.
    assert set(FabricFile.model_fields) - tables == tried | {"source"}


def gives_back(document: dict[str, Any]) -> None:
    try:
        fabric = built(document)
    except InputError:
        assume(False)
    again = fabric.document()
    assert built(again) == fabric
    assert built(tomllib.loads(toml_document(again))) == fabric
    assert built(again).document() == again
    # Whatever the document says otherwise than by default is said again; a slice is a torus.
    if document["kind"] == "tpu_slice":
        return
    for name, said in checked(FabricFile, document).model_dump(by_alias=True).items():
        found = checked(FabricFile, again).model_dump(by_alias=True)[name]
        for one, other in zip(_rows(said), _rows(found) if said is not None else (), strict=True):
            stated = {key: value for key, value in one.items() if value is not None}
            assert {key: other.get(key) for key in stated} == stated, name


def _rows(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return value
    return [{"value": value}] if value is not None else []


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, suppress_health_check=FILTERS)
@given(st.data())
@pytest.mark.sampled(3)
def test_documents_give_back_every_key(kind, data):
    gives_back(data.draw(documents(kind)))


@pytest.mark.check
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=600, deadline=None, suppress_health_check=FILTERS)
@given(st.data())
def test_documents_give_back_every_key_of_many(kind, data):
    gives_back(data.draw(documents(kind)))


CLOS_KEYS = {
    "oversubscribe": ["remove_uplinks", "split_radix"],
    "planes": [1, 2],
    "pods": ["units", "rails"],
    "spread": ["even", "fewest"],
    "tiers": [2, 3],
}


@pytest.mark.parametrize("chosen", list(itertools.product(*CLOS_KEYS.values())), ids=str)
def test_bill_and_levels_come_back_with_the_keys_of_a_clos(chosen):
    """What is exported as TOML costs what it cost before: no key is decoration."""
    from nest_core.network import collapse

    keys = dict(zip(CLOS_KEYS, chosen, strict=True))
    document = load_toml(preset_path("fabrics", "dgx-superpod-h100.toml"))
    ratios = [3.0, 2.0][: keys["tiers"] - 1]
    fabric = built(document | {"clos": document["clos"] | keys | {"oversubscription": ratios}})
    again = built(read_fabric(write_fabric(fabric, "toml").text.encode(), "x.toml").document)
    assert again == fabric
    assert bill(again, load_prices()) == bill(fabric, load_prices())
    assert collapse(again).levels == collapse(fabric).levels


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_presets_say_themselves_again(name):
    document = load_toml(preset_path("fabrics", f"{name}.toml"))
    fabric = built(document)
    text = write_fabric(fabric, "toml", document=document).text
    assert tomllib.loads(text) == document
