#!/usr/bin/env bash
# OpenSM 3.3.23: a second address of every port (LMC 1) opens no other cable to the cores.
#
# LMC gives a port 2**LMC addresses with a way each, which OpenSM's minhop and updn lay over other
# switches where they can. On a whole three-tier fat tree (2k pods of k edge and k upper switches,
# k*k cores) the two addresses of a host leave every edge switch by different uplinks, and yet both
# together use the same cables from the upper switches to the cores as the first one alone: one of
# k. `dfsssp` uses all.
#
# Guessed before it was run: both addresses together use all cables to the cores, as they are asked
# to go through other systems and nodes than the first.
# Who stripes over addresses to have more bandwidth between pods gets none from minhop or updn.
set -euo pipefail
source "$(dirname "$0")/opensm.bash"
python3 - <<'PYTHON'
from shifts import crossed, tables, tree

for k in (2, 3):
    hosts, cables = tree(k)
    for engine in ("minhop", "updn", "dfsssp"):
        forwards, lids = tables(hosts, cables, engine, 1)
        used, first_hops = [], []
        for address in (0, 1):
            ends = [(host, lids[host][address]) for host in hosts]
            pairs = [(a, b) for a in hosts for b in ends if a != b[0]]
            load = crossed(hosts, cables, forwards, pairs)
            used.append({at for at in load if at[0].startswith("upper") and at[1] > k})
            edge = "edge0.0"
            first_hops.append([forwards[edge, lid] for host, lid in ends if host[1] != "0"])
        both, moved = used[0] | used[1], sum(a != b for a, b in zip(*first_hops))
        print(f"k {k} {engine}: cables to the cores used by the first addresses {len(used[0])}, by")
        print(f"    both {len(both)} of {2 * k**3}; {moved} of {len(first_hops[0])} hosts' second"
              " addresses leave the first edge switch by another port")
        if engine == "dfsssp":
            assert len(both) == 2 * k**3, both
        else:
            assert used[0] == used[1] and len(both) == 2 * k * k, used
            assert moved == len(first_hops[0]), first_hops
print("as described")
PYTHON
