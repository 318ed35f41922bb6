#!/usr/bin/env bash
# InfraGraph 3.1.0: an edge "one to one" of unequal ends loses cables in silence; a ring is none.
#
# The schema says that both ends of such an edge are of the same length. The service joins them as
# far as the shorter one goes and says nothing: four hosts against two ports are two cables, two
# hosts are cut off. Of the three schemes that the schema lists, "ring" is not built at all
# (NotImplementedError). And slices leave their last index out, as Python's do, also where the
# package's own DGX H100 writes [0:3] and [4:7] for four slots each: PCIe slots 3 and 7 hang on no
# CPU.
#
# Guessed before it was run: an error for unequal ends, a ring of four, a CPU for each of 8 slots.
# Who writes such a file counts the edges of the graph; who reads one counts its cables.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check infragraph==3.1.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from infragraph import Component, Infrastructure
from infragraph.blueprints.devices.nvidia.dgx import NvidiaDGX
from infragraph.infragraph_service import InfraGraphService


def graph_of(infrastructure):
    service = InfraGraphService()
    service.set_graph(infrastructure)
    return service.get_networkx_graph()


def hosts_on_switch(scheme, ports):
    """Four hosts of a device each, and the ports that they are joined to."""
    result = Infrastructure(name="one")
    for name, kind, count in (("host", Component.XPU, 1), ("switch", Component.PORT, 8)):
        device = result.devices.add(name=name, description=name)
        component = device.components.add(name="end", count=count)
        component.choice = kind
        result.instances.add(name=name, device=name, count=4 if name == "host" else 1)
    result.links.add(name="cable")
    edge = result.edges.add(scheme=scheme, link="cable")
    edge.ep1.instance, edge.ep1.component = "host[0:4]", "end[0]"
    edge.ep2.instance, edge.ep2.component = "switch[0]", f"end[0:{ports}]"
    return result


cables = {ports: graph_of(hosts_on_switch("one2one", ports)).number_of_edges() for ports in (4, 2)}
print("cables of four hosts, by ports", cables)
assert cables == {4: 4, 2: 2}, cables
try:
    graph_of(hosts_on_switch("ring", 4))
except NotImplementedError as error:
    print("ring:", error)
else:
    raise AssertionError("a ring was built")

device = NvidiaDGX("dgx_h100")
node = Infrastructure(name="node")
node.devices.append(device)
node.instances.add(name=device.name, device=device.name, count=1)
graph = graph_of(node)
slots = [name for name in graph if ".pciesl." in name]
alone = [name for name in slots if not any(".cpu." in other for other in graph[name])]
print(len(slots), "slots, without a CPU", alone)
assert [name.rpartition(".")[2] for name in alone] == ["3", "7"], alone
print("as described")
PYTHON
