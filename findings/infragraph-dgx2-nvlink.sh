#!/usr/bin/env bash
# InfraGraph 3.1.0: in its DGX-2 no GPU has an NVLink.
#
# The device "dgx2" of NvidiaDGX lists 16 GPUs and 12 NVSwitches and a link for NVLink, but no edge
# joins a GPU to an NVSwitch or to a GPU: the 12 switches stand alone (the service warns of nodes
# without a connection), and the way from one GPU to another leads over PCIe switches. The DGX A100
# and the DGX H100 of the same class are joined, 8 x 6 and 8 x 4 edges.
#
# Guessed before it was run: 16 x 12 = 192 edges between GPUs and NVSwitches.
# A planner that reads the graph gives 16 V100s the rate of PCIe within their node.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check infragraph==3.1.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import networkx
from infragraph import Infrastructure
from infragraph.blueprints.devices.nvidia.dgx import NvidiaDGX
from infragraph.infragraph_service import InfraGraphService


def graph_of(profile):
    device = NvidiaDGX(profile)
    infrastructure = Infrastructure(name="one")
    infrastructure.devices.append(device)
    infrastructure.instances.add(name=device.name, device=device.name, count=1)
    service = InfraGraphService()
    service.set_graph(infrastructure)
    return service.get_networkx_graph()


def nvlinks(graph):
    return sum(data.get("link") == "xpu_fabric" for _, _, data in graph.edges(data=True))


edges = {profile: nvlinks(graph_of(profile)) for profile in ("dgx2", "dgx_a100", "dgx_h100")}
graph = graph_of("dgx2")
alone = [name for name in graph if ".nvsw." in name and graph.degree(name) == 0]
way = networkx.shortest_path(graph, "dgx2.0.xpu.0", "dgx2.0.xpu.15")
print("edges of NVLink", edges, "NVSwitches without any edge", len(alone), "a way", way)
assert edges == {"dgx2": 0, "dgx_a100": 48, "dgx_h100": 32}, edges
assert len(alone) == 12, alone
assert any(".pciesw." in name for name in way), way
print("as described")
PYTHON
