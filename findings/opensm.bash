# What the findings on OpenSM share: OpenSM 3.3.23 and ibsim, unpacked in a folder that is left at the
# end, and there `shifts.py`, which wires a fat tree, has OpenSM route it and walks its tables.
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
