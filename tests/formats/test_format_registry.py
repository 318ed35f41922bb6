"""All formats at once: how they are told apart, what every preset becomes, what is refused."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from fabric_strategies import graph_fabrics
from hypothesis import given, settings
from ibnet_sample import ibnetdiscover_text

from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES
from nest_core.documents.overrides import toml_document
from nest_core.documents.presets import preset_names, preset_path
from nest_core.documents.schema import FabricFile, checked
from nest_core.documents.units import gigabytes, microseconds
from nest_core.fabric import Fabric, GraphFabric
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import FORMATS, Assumed, format_of, read_fabric, write_fabric
from nest_core.scenario import load_fabric


def built(document) -> Fabric:
    return build_fabric(checked(FabricFile, document))


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_the_document_of_a_fabric_builds_it_again(name):
    fabric = load_fabric(name)
    document = fabric.document()
    assert built(document) == fabric
    assert built(tomllib.loads(toml_document(document))) == fabric


@pytest.mark.parametrize("kind", ["rail_optimised", "rail_only", "leaf_spine"])
def test_every_key_of_a_clos_is_in_its_document(kind):
    rails = {"rails": 4, "pods": "rails"} if kind != "leaf_spine" else {}
    document = {
        "schema": 1, "name": "f", "kind": kind, "routing": "ecmp", "ecmp_seed": 7,
        "missing": ["node 3", "device 9"],
        "clos": {
            "devices": 2048, "devices_per_node": 8, "nics_per_node": 8, "nic_bandwidth_GBps": 50.0,
            "radix": 64, "tiers": 3, "oversubscription": [2.0, 1.5], "hop_latency_us": 0.7,
            "planes": 2, **rails,
        },
        "intra_node": {"interconnect": "mesh", "bandwidth_GBps": 448.0, "latency_us": 0.3},
    }  # fmt: skip
    fabric = built(document)
    assert built(fabric.document()) == fabric
    assert fabric.document() == document


@settings(max_examples=30, deadline=None)
@given(graph_fabrics())
def test_documents_of_graphs_build_them_again(fabric):
    assert built(fabric.document()) == fabric


def test_figures_are_the_shortest_that_are_read_back():
    assert [gigabytes(rate * 1e9) for rate in (12.5, 0.1, 450, 1e-9, 46.875)] == [
        12.5, 0.1, 450.0, 1e-9, 46.875,
    ]  # fmt: skip
    assert [microseconds(time * 1e-6) for time in (0.6, 1.3, 0.0)] == [0.6, 1.3, 0.0]


PAIRS = [
    (name, format)
    for name in preset_names("fabrics")
    for format in FORMATS
    if FORMATS[format].writes
]


@pytest.mark.sampled(30)
@pytest.mark.parametrize(("name", "format"), PAIRS)
def test_every_preset_becomes_readable_text_or_a_refusal(name, format):
    """What is read back equals the preset exactly where nothing is said to be lost."""
    fabric = load_fabric(name)
    if fabric.devices > 2100 and not format.startswith(("toml", "slurm")):
        pytest.skip("large; smaller ones of every kind are there")
    try:
        exported = write_fabric(fabric, format)
    except InputError as refusal:
        refused = str(refusal)
    else:
        refused = ""
    if refused:
        assert refused.startswith("fabric must ")
        return
    assert all(sentence.endswith(".") for sentence in exported.lost)
    if not FORMATS[format].reads:
        assert exported.lost
        return
    per_node = getattr(fabric, "devices_per_node", 8)
    again = built(
        read_fabric(
            exported.text.encode(),
            f"x{FORMATS[format].suffixes[0]}",
            assumed=Assumed(devices_per_node=per_node),
        ).document
    )
    assert (again == fabric) == (not exported.lost)
    same_hosts = not format.startswith("slurm") or not isinstance(fabric, GraphFabric)
    whole = fabric.devices % per_node == 0 and not getattr(fabric, "missing", ())
    if same_hosts and whole and "gb200" not in name:
        assert again.devices == fabric.devices


def test_files_that_are_too_large_to_come_back_say_so():
    exported = write_fabric(load_fabric("tpu-v5p-16x16x24"), "graphml")
    size = len(exported.text.encode())
    told = any(text.startswith("A way back: the studio reads files of") for text in exported.lost)
    assert told == (size > MAX_FILE_BYTES)


def test_links_drawn_one_by_one_are_limited():
    with pytest.raises(
        InputError, match="fabric must have at most 16,384 devices to be written lin"
    ):
        write_fabric(load_fabric("meta-3tier-7to1"), "csv")


def test_a_remark_on_sources_is_said_to_be_lost():
    document = tomllib.loads(preset_path("fabrics", "drawn-8.toml").read_text())
    fabric = built(document)
    assert write_fabric(fabric, "graphml").lost == ()
    lost = write_fabric(fabric, "graphml", document=document).lost
    assert lost == ("The remark on where the fabric's figures are from.",)
    text = write_fabric(fabric, "toml", document=document).text
    assert tomllib.loads(text) == document


SAMPLES = {
    "toml": (
        "f.toml",
        'schema = 1\nname = "f"\nkind = "hierarchical"\n[[level]]\nname = "n"\n'
        "group_size = 2\nbandwidth_GBps = 1.0\nlatency_us = 1.0\n",
    ),
    "graphml": (
        "f.xml",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<graph edgedefault="undirected"><node id="gpu0"/></graph></graphml>',
    ),
    "csv": ("f.csv", "bandwidth_GBps,a,b\n1,gpu0,gpu1\n"),
    "slurm-tree": ("topology.conf", "# comment\nSwitchName=s Nodes=n[1-4]\n"),
    "slurm-block": ("topology.conf", "# comment\nBlockName=b Nodes=n[1-4]\n"),
    "slurm-yaml": ("topology.yaml", "- topology: t\n  block: {blocks: [{block: s, nodes: n}]}"),
    "ibnetdiscover": ("ib.txt", ibnetdiscover_text(1, spines=1, rails=1, hosts_per_unit=2)),
    "infragraph": (
        "x.json",
        '{"devices": [{"name": "d", "components": [{"name": "x", "choice": "xpu", "count": 1}]}],'
        '\n"instances": [{"name": "d", "device": "d", "count": 1}]}',
    ),
    "astrasim": ("net.yml", "topology: [Switch]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n"),
}


@pytest.mark.parametrize("format", SAMPLES)
@pytest.mark.parametrize("ending", [True, False])
@pytest.mark.parametrize("bom", [True, False])
def test_formats_are_told_by_name_and_content(format, ending, bom):
    name, text = SAMPLES[format]
    content = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    assert read_fabric(content, name if ending else "file").format == format
    assert read_fabric(content, "file", format=format).format == format


def test_there_is_a_sample_of_every_format_that_is_read():
    assert set(SAMPLES) == {name for name, entry in FORMATS.items() if entry.reads}


REFUSED = [
    (b"", "x.conf", "", "x.conf must hold a fabric as text, but is 'empty'"),
    (b" \n", "x", "", "x must hold a fabric as text, but is 'empty'"),
    ("é".encode("latin-1"), "x.csv", "", "x.csv must be UTF-8 text, but is"),
    ("SwitchName=s Nodes=n".encode("utf-16"), "x.conf", "", "x.conf must be UTF-8 text, but is"),
    (b"a,b\0", "x.csv", "", "x.csv must hold a fabric as text, but is 'binary'"),
    (b"x" * (MAX_FILE_BYTES + 1), "x.csv", "", "x.csv must hold at most 5,000,000 bytes, but"),
    (b"\n" * 4_000_000 + b"x", "x", "", "x must be a fabric file of a known format"),
    (b"hello", "x", "", "x must be a fabric file of a known format, but is .*: known are Nest Stu"),
    (b"hello", "x", "visio", "from must be a known format, but is 'visio': pick toml, graphml, cs"),
    (b"hello", "x", "ns3", "from must be a known format, but is 'ns3'"),
    (b"kind = 1\n" * 2, "x.toml", "", "x.toml must be valid TOML"),
    (b"a" + b".a" * 400_000 + b" = 1", "x.toml", "", "x.toml must have keys of at most 16 parts"),
    (b'name = "x"', "x.toml", "", "schema is required"),
]


@pytest.mark.parametrize(
    ("content", "name", "format", "message"), REFUSED, ids=[message for *_, message in REFUSED]
)
def test_what_cannot_be_read_is_refused(content, name, format, message):
    with pytest.raises(InputError, match=message):
        read_fabric(content, name, format=format)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("devices_per_node", 0),
        ("link_bandwidth_GBps", 0.0),
        ("link_bandwidth_GBps", float("nan")),
        ("intra_bandwidth_GBps", -1.0),
        ("hop_latency_us", -1.0),
        ("intra_latency_us", float("inf")),
    ],
)
def test_assumptions_are_checked(field, value):
    with pytest.raises(InputError, match=f"{field} must be a"):
        Assumed(**{field: value})


def test_writing_needs_a_known_format():
    with pytest.raises(InputError, match="to must be a known format, but is 'ibnetdiscover': pick"):
        write_fabric(load_fabric("drawn-8"), "ibnetdiscover")


@pytest.mark.check
def test_foreign_parsers_load_only_with_the_formats():
    """Planning on a preset needs none of them (YAML comes with numba)."""
    script = (
        "import sys; from nest_core.scenario import load_fabric; load_fabric('drawn-8');"
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "nest_core.scenario" in loaded
    assert not {"defusedxml", "nest_core.interop.formats"} & set(loaded)


def test_unknown_endings_are_told_by_content():
    assert format_of("cluster.v2", "SwitchName=a Nodes=b") == "slurm-tree"
