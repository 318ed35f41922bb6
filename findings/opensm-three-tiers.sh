#!/usr/bin/env bash
# OpenSM 3.3.23: on a whole three-tier fat tree its default engine uses one of k upper cables.
#
# k pairs of pods of k edge and k upper switches, k cables from each to each and k*k cores, nothing
# lost, ports in order: full bisection. `minhop` (the default) and `updn` count destinations switch
# by switch, all of the subnet in one order. Destinations that reach an upper switch from below are
# those that every edge switch gave the same uplink, and all of those have the same turn there: each
# upper switch sends all that climbs over one of its k cables to the cores, and k - 1 stay idle.
# Shifts of all hosts then find up to k flows on a cable (k = 2, 3: 2, 3), where `ftree` has one.
#
# Guessed before the order in which it counts was looked at: all cables to the cores carry something
# under minhop, the busiest of a shift has two flows at most and 1.3 in the mean of all shifts.
# Who plans on such a fabric should read its tables, or have it routed by ftree; a "1:1" of three
# tiers is k : 1 above the pods under OpenSM's default.
set -euo pipefail
source "$(dirname "$0")/opensm.bash"
python3 - <<'PYTHON'
from shifts import crossed, tables, tree

for k in (2, 3):
    hosts, cables = tree(k)
    count = len(hosts)
    for engine, idle in (("minhop", True), ("updn", True), ("ftree", False)):
        forwards, lids = tables(hosts, cables, engine, 0)
        ends = [(host, lids[host][0]) for host in hosts]
        busiest = [
            max(crossed(hosts, cables, forwards, zip(hosts, ends[n:] + ends[:n])).values())
            for n in range(1, count)
        ]
        every = crossed(hosts, cables, forwards, [(a, b) for a in hosts for b in ends if a != b[0]])
        up = sum(at.startswith("upper") and port > k for at, port in every)
        mean = sum(busiest) / len(busiest)
        print(f"k {k} {engine}: {up} of {2 * k**3} cables to the cores carry anything; busiest cable")
        print(f"    of a shift: largest {max(busiest)} flows, mean {mean:.2f}")
        assert up == (2 * k * k if idle else 2 * k**3), up
        assert max(busiest) == (k if idle else 1), busiest
print("as described")
PYTHON
