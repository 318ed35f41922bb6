#!/usr/bin/env bash
# SimGrid 4.0: a dragonfly of more groups than a group has routers is built, and ends the process.
#
# Its router n of a group leads to group n, one global link each, so a dragonfly of a routers a group
# has a groups at the most, where Kim et al. have a h + 1. With 6 groups of 4 routers the zone is
# made, sealed and counts 24 hosts without a word; the first message between two groups is a
# segmentation fault (exit 139) and no exception. With 4 groups the same program takes 1 s.
#
# Guessed before it was run: an exception when the zone is sealed.
# Who simulates such a fabric there describes it as links and routes of his own, or with as many
# routers a group as there are groups.
#
# Debian 13's packages, unpacked beside a Debian of any age and started with their own C library.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $site trixie main" >sources.list
mkdir -p lists/partial cache/archives/partial packages root
options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=-
  -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User=root)
apt-get -qq "${options[@]}" update
(cd packages && apt-get -qq "${options[@]}" download python3-simgrid libsimgrid4.0 libns3.43 \
  libboost-context1.83.0 libgsl28 libgslcblas0 libgfortran5 libxml2 libsqlite3-0 liblzma5 zlib1g \
  libzstd1 libstdc++6 libgcc-s1 libc6 libexpat1 libffi8 libbz2-1.0 libssl3t64 python3.13-minimal \
  libpython3.13-minimal libpython3.13-stdlib)
for package in packages/*.deb; do dpkg-deb -x "$package" root; done
ls packages | grep -q '^python3-simgrid_4\.0-' || { echo "another release"; exit 1; }
cat >dragonfly.py <<'PYTHON'
import sys

from simgrid import Comm, Engine, Link

groups, routers = map(int, sys.argv[1:])
engine = Engine(["run", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0"])
both_ways = Link.SharingPolicy.SPLITDUPLEX
zone = engine.netzone_root.add_netzone_dragonfly(
    "dragonfly", (groups, 1), (1, 1), (routers, 1), 1, 1e6, 0.0, both_ways
)
zone.set_host_cb(lambda inside, _, number: inside.add_host(f"h{number}", 1e9))
zone.seal()
hosts = {host.name: host for host in engine.all_hosts}
print(groups, "groups of", routers, "routers:", len(hosts), "hosts", flush=True)


def send():
    Comm.sendto_async(hosts["h0"], hosts[f"h{(groups - 1) * routers}"], 10**6).wait()
    print(f"{Engine.clock:.3f} s", flush=True)


engine.add_actor("sender", hosts["h0"], send)
engine.run()
PYTHON

run() {
  local libraries=$PWD/root/usr/lib/x86_64-linux-gnu
  PYTHONHOME=$PWD/root/usr PYTHONPATH=$PWD/root/usr/lib/python3/dist-packages \
    "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" root/usr/bin/python3.13 \
    dragonfly.py "$@" 2>/dev/null
}

run 4 4 | tee few
grep -q "16 hosts" few
grep -q "1.000 s" few
code=0
run 6 4 >many || code=$?
cat many
echo "exit $code"
grep -q "24 hosts" many
! grep -q " s$" many
[ "$code" -eq 139 ]
echo "as described"
