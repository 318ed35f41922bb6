#!/usr/bin/env bash
# ClusterShell 1.10.1: names of unequal width change places, and Slurm's n[01-100] is refused.
#
# A set of nodes is sorted by the width of its padding first: node08, node9 and node10 come back as
# node9, node08, node10, from Python as from "nodeset -e". Slurm's order of the same list, and that of
# python-hostlist 2.3.0, is node08, node9, node10. A range that grows in width, as Slurm takes it for
# node01 to node100, is an error ("padding length mismatch"); python-hostlist reads 100 names.
#
# Guessed before it was run: node[08,9-10], in that order, from both.
# Who numbers ranks by nodeset's order and reads Slurm's gives two hosts each other's ranks: pad all
# names of a cluster alike, or take the order from Slurm alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check ClusterShell==1.10.1 \
  python-hostlist==2.3.0
"$folder/env/bin/python" - <<'PYTHON'
import hostlist
from ClusterShell.NodeSet import NodeSet, NodeSetException

text = "node08,node9,node10"
orders = list(NodeSet(text)), hostlist.expand_hostlist(text)
print("ClusterShell", orders[0], str(NodeSet(text)), "hostlist", orders[1])
assert orders == (["node9", "node08", "node10"], ["node08", "node9", "node10"]), orders
try:
    NodeSet("n[01-100]")
except NodeSetException as error:
    print("n[01-100]:", error)
else:
    raise AssertionError("n[01-100] was read")
names = hostlist.expand_hostlist("n[01-100]")
assert (len(names), names[0], names[-1]) == (100, "n01", "n100"), names
print("as described")
PYTHON
printed=$("$folder/env/bin/nodeset" -e node08,node9,node10)
echo "nodeset -e: $printed"
[ "$printed" = "node9 node08 node10" ]
