#!/usr/bin/env bash
# InfraGraph 3.1.0: its DGX devices state no rate, and a rack of GB200 has 18 NVLink domains.
#
# The links of NvidiaDGX ("xpu_fabric", "pcie", "cpu_fabric") carry a word and no bandwidth, from
# DGX-2 to GB200, though the generic blueprints of the same package state Gbit/s: whoever reads the
# graph has to know the rate from elsewhere. The profile "dgx_gb200" is a tray of 4 GPUs with all
# the 18 NVSwitches of a rack in it; 18 trays therefore hold 324 NVSwitches (a rack has 18), and
# their GPUs form 18 domains of 4 where NVL72 is one of 72.
#
# Guessed before it was run: 7,200 Gbit/s on each edge of a DGX H100; no NVSwitch in a tray.
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

for profile in ("dgx2", "dgx_a100", "dgx_h100", "dgx_gb200"):
    links = NvidiaDGX(profile).links
    rates = {link.name: link.physical.bandwidth.gigabits_per_second for link in links}
    print(profile, rates, {link.name: link.description for link in links})
    assert set(rates.values()) == {None}, rates

tray = NvidiaDGX("dgx_gb200")
rack = Infrastructure(name="rack")
rack.devices.append(tray)
rack.instances.add(name=tray.name, device=tray.name, count=18)
service = InfraGraphService()
service.set_graph(rack)
graph = service.get_networkx_graph()
kinds = [name.split(".")[-2] for name in graph]
nvlink = graph.edge_subgraph(
    (a, b) for a, b, data in graph.edges(data=True) if data.get("link") == "xpu_fabric"
)
domains = [
    sum(".xpu." in name for name in domain) for domain in networkx.connected_components(nvlink)
]
print("GPUs", kinds.count("xpu"), "NVSwitches", kinds.count("nvsw"), "GPUs by domain", domains)
assert (kinds.count("xpu"), kinds.count("nvsw")) == (72, 324), kinds
assert domains == [4] * 18, domains
print("as described")
PYTHON
