"""Seconds that SimGrid's flow model takes for phases of messages; in its own Python.

The model is CM02 without cross-traffic, a window or factors: max-min fair shares of every link.
"""

import json
import os
import sys
from pathlib import Path

import simgrid
from simgrid import Comm, Engine, Link

FLAGS = ("network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0")
FAST_Bps, LEAST_S = 1e18, 1e-9
SLOWER = 1024.0  # all rates: the solver compares them to 1e-5, which are few bits of 1e11
BOTH_WAYS = Link.SharingPolicy.SPLITDUPLEX


def built(root, zone):
    """Add a zone; hosts are named by their numbers."""
    kind = zone["kind"]
    if kind == "routed":
        routed(root, zone)
        return
    figures = zone["rate_Bps"] / SLOWER, zone["latency_s"] * SLOWER, BOTH_WAYS
    if kind == "fat_tree":
        words = len(zone["down"]), zone["down"], zone["up"], zone["count"]
        made = root.add_netzone_fatTree("zone", *words, *figures)
    elif kind == "torus":
        made = root.add_netzone_torus("zone", zone["shape"], *figures)
    else:
        parts = (tuple(zone[name]) for name in ("groups", "chassis", "routers"))
        made = root.add_netzone_dragonfly("zone", *parts, zone["nodes"], *figures)
    made.set_host_cb(lambda inside, _, number: inside.add_host(str(number), 1e9))
    made.seal()


def routed(root, zone):
    """Add hosts that have a route for every pair that is listed: [from, to, links, weight].

    Flows share a link in inverse proportion to their latency, so that of a link of its own sets
    the weight of every route.
    """
    made = root.add_netzone_full("zone")
    links = [made.add_link(f"link{n}", rate / SLOWER) for n, rate in enumerate(zone["links_Bps"])]
    hosts = [made.add_host(str(number), 1e9) for number in range(zone["hosts"])]
    for number, (source, target, way, weight) in enumerate(zone["routes"]):
        own = made.add_link(f"own{number}", FAST_Bps).set_latency(SLOWER * LEAST_S / weight)
        steps = [simgrid.LinkInRoute(link) for link in (own, *(links[n] for n in way))]
        made.add_route(hosts[source], hosts[target], steps, False)
    made.seal()


def run(case):
    """Return the seconds of all phases together, and of each."""
    engine = Engine(["simgrid", *(f"--cfg={flag}" for flag in FLAGS), "--log=root.thres:critical"])
    built(engine.netzone_root, case["zone"])
    hosts = {host.name: host for host in engine.all_hosts}
    seconds = []

    def send():
        for flows in case["phases"]:
            begin = Engine.clock
            sent = [
                Comm.sendto_async(hosts[str(source)], hosts[str(target)], round(size))
                for source, target, size in flows
            ]
            for message in sent:
                message.wait()
            seconds.append((Engine.clock - begin) / SLOWER)

    engine.add_actor("sender", hosts["0"], send)
    engine.run()
    return seconds


def apart(case, run=run):
    """Return the same from a process of its own: an engine is there once."""
    reads, writes = os.pipe()
    if not (child := os.fork()):
        with os.fdopen(writes, "w") as out:
            out.write(json.dumps(run(case)))
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as inward:
        text = inward.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    cases = json.loads((folder / "cases.json").read_text())
    (folder / "answers.json").write_text(json.dumps([apart(case) for case in cases]))
