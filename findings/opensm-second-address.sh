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
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -o APT::Sandbox::User=root download --quiet opensm ibsim-utils libumad2sim0 libibmad5 \
    libibumad3 libwrap0 libopensm9 libosmcomp5 libosmvendor5 > /dev/null
ls opensm_3.3.23-* > /dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat > shifts.py <<'PYTHON'
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HOME, WORK = Path("root"), Path.cwd()
LIBRARIES = {str(path.resolve().parent) for path in HOME.glob("usr/lib/**/*.so*")}
PATH = f"{HOME.resolve()}/usr/sbin:{HOME.resolve()}/usr/bin:{os.environ['PATH']}"
ENVIRONMENT = os.environ | {
    "PATH": PATH, "LD_LIBRARY_PATH": ":".join(LIBRARIES), "IBSIM_SOCKNAME": WORK.name,
}
WRAPPER = str(next(HOME.glob("usr/lib/**/libumad2sim.so")).resolve())


def tree(k):
    """Cables between names and ports, and hosts in the order of their switches."""
    pods = range(2 * k)
    hosts = [f"H{pod}.{edge}.{host}" for pod in pods for edge in range(k) for host in range(k)]
    pairs = [(f"edge{host[1:].rpartition('.')[0]}", host) for host in hosts]
    pairs += [(f"edge{p}.{a}", f"upper{p}.{b}") for p in pods for a in range(k) for b in range(k)]
    pairs += [(f"upper{p}.{a}", f"core{a}.{b}") for p in pods for a in range(k) for b in range(k)]
    ports, cables = Counter(), []
    for a, b in pairs:
        ports.update((a, b))
        cables.append((a, ports[a], b, ports[b]))
    return hosts, cables


def tables(hosts, cables, engine, lmc):
    """Port of every switch to every address, and the addresses of every host."""
    blocks = {}
    for a, p, b, q in cables:
        for name, port, far, other in ((a, p, b, q), (b, q, a, p)):
            blocks.setdefault(name, []).append(f'[{port}] "{far}"[{other}] # "{far}" lid 0 4xHDR')
    text = [
        "\n".join([f'{"Hca 1" if name[0] == "H" else "Switch 16"} "{name}" # "{name}"', *lines])
        for name, lines in sorted(blocks.items())
    ]
    Path("net").write_text("\n\n".join(text) + "\n")
    inside = ENVIRONMENT | {
        "LD_PRELOAD": WRAPPER, "OSM_TMP_DIR": f"{WORK}/", "OSM_CACHE_DIR": f"{WORK}/",
    }
    for old in (*WORK.glob("guid2*"), *WORK.glob("opensm*.dump"), *WORK.glob("osm.log")):
        old.unlink()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    simulator = subprocess.Popen(
        ["ibsim", "-s", "net"], env=ENVIRONMENT, stdin=subprocess.PIPE, **quiet
    )
    time.sleep(2)
    words = ["opensm", "-o", "-R", engine, "-l", str(lmc), "-D", "0x43", "-f", "osm.log"]
    subprocess.run(words, env=inside, check=True, timeout=120, **quiet)
    simulator.kill()
    simulator.wait()
    assert f"{engine} tables configured" in Path("osm.log").read_text(), "another engine routed"
    forwards, addresses, at = {}, {}, ""
    for line in Path("opensm-lfts.dump").read_text().splitlines():
        if opened := re.match(r"Unicast lids .*\('(.*)'\)", line):
            at = opened[1]
        elif entry := re.match(r"0x(\S+) (\d+) # (\w+).*'(.*)'", line):
            forwards[at, int(entry[1], 16)] = int(entry[2])
            if entry[3] == "Channel":
                addresses.setdefault(entry[4], set()).add(int(entry[1], 16))
    return forwards, {name: sorted(lids) for name, lids in addresses.items()}


def crossed(hosts, cables, forwards, pairs):
    """How often every cable is crossed, by its switch and port; pairs of host and (host, lid)."""
    far = {(a, p): b for a, p, b, q in cables} | {(b, q): a for a, p, b, q in cables}
    load = Counter()
    for source, (goal, lid) in pairs:
        at, port = source, 1
        while at != goal:
            load[at, port] += 1
            at = far[at, port]
            port = forwards.get((at, lid))
    return load
PYTHON
cat > run.py <<'PYTHON'
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
python3 run.py
