"""InfraGraph's own reading of the files that we write, and ours of its blueprints.

Looked at are accelerators, NICs, switches and links by their rates: of our files all, of its
blueprints accelerators, switches outside of hosts and links between instances.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.outside.tool import Row, Tool, reasons
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, as_graph, build_fabric
from nest_core.interop.formats import read_fabric, write_fabric
from nest_core.scenario import load_fabric

TOOL = Tool("infragraph", "3.1.0", ("infragraph==3.1.0",))
MAX_DEVICES = 576
"""Larger ones take it minutes."""

Counts = tuple[dict[str, int], dict[float, int]]
"""Elements by their role, links by their rate (GB/s)."""


def rounded(rates: list[tuple[float, int]]) -> dict[float, int]:
    """Return how many links have a rate, to nine digits."""
    counts: Counter[float] = Counter()
    for rate, count in rates:
        counts[float(f"{rate:.9g}")] += count
    return dict(counts)


def contents(fabric: Fabric, between: bool = False) -> Counts:
    """Return what a fabric holds; ``between`` hosts alone, whose elements have a group."""
    graph = as_graph(fabric)
    group = {element.id: element.group for element in graph.elements}
    links = [
        (link.bandwidth_Bps / 1e9, link.count)
        for link in graph.links
        if not between or group[link.a] != group[link.b] or not group[link.a]
    ]
    switch = [e for e in graph.elements if e.role == "switch" and not (between and e.group)]
    roles = Counter(element.role for element in graph.elements)
    counts = {"xpu": fabric.devices, "nic": roles["nic"], "switch": len(switch)}
    return counts, rounded(links)


def read_by_it(graph: dict[str, Any]) -> Counts:
    """Return the same of the graph that it makes of our file."""
    counts = {kind: graph["types"].get(kind, 0) for kind in ("xpu", "nic", "switch")}
    return counts, rounded([*graph["inside"], *graph["outside"]])


def rows() -> list[Row]:
    """Return how many files are read as they are meant, by it and by us."""
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fabrics = {name: load_fabric(name) for name in preset_names("fabrics")}
        fabrics = {name: f for name, f in fabrics.items() if f.devices <= MAX_DEVICES}
        for name, fabric in fabrics.items():
            (folder / f"{name}.json").write_text(write_fabric(fabric, "infragraph").text)
        graphs = json.loads(TOOL.run("infragraph_files.py", folder).splitlines()[-1])
        for name, fabric in fabrics.items():
            graph = graphs.pop(f"{name}.json")
            if "refused" in graph:
                theirs.append(graph["refused"])
            elif read_by_it(graph) != contents(fabric):
                theirs.append(f"{name}: {read_by_it(graph)} for {contents(fabric)}")
        for name, graph in graphs.items():
            text = (folder / name).read_bytes()
            document = read_fabric(text, name, format="infragraph").document
            counts, links = contents(build_fabric(checked(FabricFile, document)), between=True)
            hosts = {device for device, _ in graph["instances"]} - {"switch"}
            switches = sum(count for device, count in graph["instances"] if device not in hosts)
            seen = (counts["xpu"], counts["switch"], links)
            meant = (graph["types"]["xpu"], switches, rounded(graph["outside"]))
            if seen != meant:
                ours.append(f"{name}: {seen}, meant {meant}")
    sizes = f"of fabrics up to {MAX_DEVICES} devices"
    return [
        TOOL.row(
            f"our descriptions {sizes}: accelerators, NICs, switches, links as ours",
            len(fabrics),
            len(fabrics) - len(theirs),
            reasons(theirs),
        ),
        TOOL.row(
            "its blueprints, read by us: accelerators, switches, links between instances as its",
            len(graphs),
            len(graphs) - len(ours),
            reasons(ours),
        ),
    ]
