#!/usr/bin/env bash
# InfraGraph 3.1.0: the third rate of a three-tier fat tree reaches no cable.
#
# ClosFatTreeFabric takes one rate for each level. A fabric of 8-port switches that is asked for
# with 100, 200 and 400 Gbit/s has cables of 100, 200 and 200: the uppermost tier is put on the
# link of the tier below, and "tier_2_link" (400) is declared and used by no edge. The same holds
# for a thinner top: 400, 400 and 200, meant as 2:1, is wired and rated as 1:1.
#
# Guessed before it was run: 100, 200, 400 and 400, 400, 200.
# Who reads such a file for its rates plans on spines of the wrong speed, up to the ratio of the
# two upper tiers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check infragraph==3.1.0
"$folder/env/bin/python" - <<'PYTHON'
from infragraph.blueprints.devices.generic.generic_switch import Switch
from infragraph.blueprints.devices.generic.server import Server
from infragraph.blueprints.fabrics.clos_fat_tree_fabric import ClosFatTreeFabric

expected = {
    (100, 200, 400): {"server": 100, "tier_1": 200, "tier_2": 200},
    (400, 400, 200): {"server": 400, "tier_1": 400, "tier_2": 400},
}
for asked, rates in expected.items():
    fabric = ClosFatTreeFabric(Switch(port_count=8), Server(), 3, list(asked))
    declared = {link.name: link.physical.bandwidth.gigabits_per_second for link in fabric.links}
    seen = {}
    for edge in fabric.edges:
        seen.setdefault(edge.ep1.instance.split("[")[0], set()).add(declared[edge.link])
    used = {edge.link for edge in fabric.edges}
    print("asked", asked, "declared", declared, "cables, by where they begin", seen)
    assert seen == {tier: {rate} for tier, rate in rates.items()}, seen
    assert declared["tier_2_link"] == asked[2] and "tier_2_link" not in used, used
print("as described")
PYTHON
