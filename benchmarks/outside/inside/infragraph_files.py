"""Graphs that InfraGraph makes of our files, and descriptions and graphs of its own blueprints.

``PYTHON infragraph_files.py FOLDER`` reads every ``*.json`` of the folder, writes its blueprints
there as ``*.yaml``, and prints what the graphs hold, as JSON: by file, components by type, edges by
rate (GB/s, or null) and, of a blueprint, those between instances apart.
"""

import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from infragraph import Infrastructure
from infragraph.blueprints.devices.amd.mi300x import MI300X
from infragraph.blueprints.devices.common.transceiver.qsfp import QSFP
from infragraph.blueprints.devices.generic.generic_switch import Switch
from infragraph.blueprints.devices.generic.server import Server
from infragraph.blueprints.devices.ironwood_rack import IronwoodRack
from infragraph.blueprints.devices.nvidia.cx5 import Cx5
from infragraph.blueprints.devices.nvidia.dgx import NvidiaDGX
from infragraph.blueprints.fabrics.clos_fat_tree_fabric import ClosFatTreeFabric
from infragraph.blueprints.fabrics.closfabric import ClosFabric
from infragraph.blueprints.fabrics.dragonfly_fabric import DragonflyFabric
from infragraph.blueprints.fabrics.single_tier_fabric import SingleTierFabric
from infragraph.infragraph_service import InfraGraphService

UNITS = {"Gbps": 1 / 8, "GBps": 1.0}


def graph_of(infrastructure: Any) -> dict[str, Any]:
    """Return what a graph holds."""
    service = InfraGraphService()
    service.set_graph(infrastructure)
    graph = service.get_networkx_graph()
    inside, outside = Counter[float | None](), Counter[float | None]()
    for a, b, edge in graph.edges(data=True):
        figure, unit = edge.get("bandwidth", "0 Gbps").split()
        is_inside = a.split(".")[:2] == b.split(".")[:2]
        (inside if is_inside else outside)[float(figure) * UNITS[unit]] += (
            edge["link"] != "internal"
        )
    return {
        "types": Counter(data["type"] for _, data in graph.nodes(data=True)),
        "inside": sorted((+inside).items()),
        "outside": sorted((+outside).items()),
        "instances": [(entry.device, entry.count) for entry in service.infrastructure.instances],
    }


def alone(*devices: Any) -> Any:
    """Return an infrastructure of one of the first device, which has the others inside."""
    infrastructure = Infrastructure(name=devices[0].name)
    for device in devices:
        infrastructure.devices.append(device)
    infrastructure.instances.add(name=devices[0].name, device=devices[0].name, count=1)
    return infrastructure


def blueprints() -> dict[str, Any]:
    """Return its own, by name."""
    transceiver = QSFP("qsfp28_100g")
    card = Cx5("cx5_100g_dual", transceiver)
    profiles = ("dgx1", "dgx2", "dgx_a100", "dgx_h100", "dgx_gb200")
    return {name: alone(NvidiaDGX(name)) for name in profiles} | {
        "dgx_a100_cx5": alone(NvidiaDGX("dgx_a100", card), card, transceiver),
        "mi300x": alone(MI300X()),
        "ironwood": alone(IronwoodRack()),
        "clos": ClosFabric(),
        "fat_tree_2": ClosFatTreeFabric(Switch(16), NvidiaDGX("dgx_h100"), 2, [400, 400]),
        "fat_tree_3": ClosFatTreeFabric(Switch(4), Server(), 3, [100, 200, 400]),
        "single_tier": SingleTierFabric(NvidiaDGX("dgx_a100"), 4, 200),
        "dragonfly": DragonflyFabric(Switch(8), Server(), 4, 2, 2, [100, 200, 400]),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    graphs: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            graphs[path.name] = graph_of(path.read_text())
        except Exception as error:
            graphs[path.name] = {
                "refused": f"{type(error).__name__}: {' '.join(str(error).split())}"
            }
    for name, infrastructure in blueprints().items():
        graphs[f"{name}.yaml"] = graph_of(infrastructure)
        (folder / f"{name}.yaml").write_text(infrastructure.serialize("yaml"))
    print(json.dumps(graphs))
