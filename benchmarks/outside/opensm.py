"""Forwarding tables of OpenSM on drawn subnets, and ours beside them, flow by flow.

Subnets are drawn at random (leaf-spines, fat trees of three tiers, tori and meshes; shuffled ports,
parallel cables, leaves with unequal hosts) and routed by OpenSM on ibsim: intact, with a cable
lost, and with two addresses a port. `walked` follows the tables of OpenSM's own dump and shares no
code with the studio; the same traffic priced by the studio is held against it. Engines that the
studio has by name are compared port by port.
"""

import random
import re
import statistics
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.outside.tool import BUILD, Debian, Row
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, GraphFabric, build_fabric
from nest_core.interop.formats import Assumed, read_fabric
from nest_core.network import Network, Phase, collapse, price_phases
from nest_core.network.forwarding import stated_ports, stated_subnet
from nest_core.network.link_graph import read_links
from nest_core.network.opensm import engine_ports

TOOL = Debian(
    "opensm",
    (
        "opensm", "infiniband-diags", "ibsim-utils", "libumad2sim0", "libibmad5", "libibumad3",
        "libibnetdisc5", "libwrap0", "libopensm9", "libosmcomp5", "libosmvendor5",
    ),
)  # fmt: skip
SUBNETS = 60
STATES = ("intact", "cable lost", "LMC 1")
ENGINES = ("minhop", "updn", "dor", "ftree", "dfsssp")
OURS = ("minhop", "updn", "dor")
ROUTINGS = ("tables", "minhop", "adaptive", "ecmp", "shortest_path")
GBPS = 25.0  # of every cable, HDR with four lanes
BYTES = 1e9

Cable = tuple[str, int, str, int]
Flow = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class Wiring:
    """Switches and hosts, each with its ports, and cables between them.

    ``hosts`` lists the adapters of every host, rail by rail.
    """

    kind: str
    guids: dict[str, int]
    hosts: tuple[tuple[str, ...], ...]
    cables: tuple[Cable, ...]
    between: tuple[int, ...] = field(default=())
    """Cables that join switches."""

    def text(self) -> str:
        """Return what ibsim reads."""
        blocks = {name: [f'Switch\t64 "{name}"'] for name in self.guids if name[0] in "ls"}
        names = {
            adapter: f"node{number:03} mlx5_{rail}"
            for number, adapters in enumerate(self.hosts)
            for rail, adapter in enumerate(adapters)
        }
        blocks |= {name: [f'Hca\t1 "{name}"\t# "{shown}"'] for name, shown in names.items()}
        for a, p, b, q in self.cables:
            for name, port, far, far_port in ((a, p, b, q), (b, q, a, p)):
                shown = names.get(far, far)
                blocks[name].append(f'[{port}]\t"{far}"[{far_port}]\t# "{shown}" lid 0 4xHDR')
        return (
            "\n\n".join(
                "\n".join(
                    [
                        f"{'switchguid' if name[0] in 'ls' else 'caguid'}=0x{self.guids[name]:x}",
                        *lines,
                    ]
                )
                for name, lines in blocks.items()
            )
            + "\n"
        )


def drawn(dice: random.Random) -> Wiring:
    """Return a subnet."""
    kind = dice.choice(("leaf-spine", "leaf-spine", "three tiers", "torus", "mesh"))
    joined: list[tuple[str, str]] = []
    if kind == "leaf-spine":
        leaves = [f"leaf{n}" for n in range(dice.randint(2, 6))]
        spines = [f"spine{n}" for n in range(dice.randint(1, 5))]
        times = dice.randint(1, 3)
        joined = [(a, b) for a in leaves for b in spines for _ in range(times)]
    elif kind == "three tiers":
        pods, half = dice.randint(2, 3), dice.randint(2, 3)
        leaves = [f"leaf{pod}.{n}" for pod in range(pods) for n in range(half)]
        spines = [f"spine{pod}.{n}" for pod in range(pods) for n in range(half)]
        joined = [
            (a, b) for a in leaves for b in spines if a[4:].split(".")[0] == b[5:].split(".")[0]
        ]
        cores = half * dice.randint(1, 2)
        joined += [
            (b, f"sore{core}")
            for b in spines
            for core in range(cores)
            if core % half == int(b.split(".")[1])
        ]
    else:
        shape = dice.choice(((4, 4), (3, 3), (5, 3), (2, 2, 2), (3, 3, 2), (6,)))
        places = list(np.ndindex(*shape))
        leaves = ["leaf" + ".".join(map(str, place)) for place in places]
        for place, name in zip(places, leaves, strict=True):
            for axis, size in enumerate(shape):
                onward = list(place)
                onward[axis] += 1
                if onward[axis] == size:
                    if kind == "mesh" or size < 3:
                        continue
                    onward[axis] = 0
                joined.append((name, "leaf" + ".".join(map(str, onward))))
    per_leaf, rails = dice.randint(1, 6), dice.choice((1, 1, 2, 4))
    if kind in ("torus", "mesh"):
        per_leaf, rails = dice.randint(1, 2), 1
    hosts: list[tuple[str, ...]] = []
    for number, leaf in enumerate(leaves):
        fewer = dice.random() < 0.3 and per_leaf > 1
        for _ in range(per_leaf - fewer):
            adapters = tuple(f"H{len(hosts)}c{rail}" for rail in range(rails))
            hosts.append(adapters)
            # Rail-optimised: rails of a host on neighbouring leaves.
            by_rail = rails > 1 and len(leaves) % rails == 0 and kind == "leaf-spine"
            for rail, adapter in enumerate(adapters):
                home = leaves[number // rails * rails + rail] if by_rail else leaf
                joined.append((home, adapter))
    # Numbers of hosts are dealt to the leaves in order, or anyhow.
    if dice.random() < 0.3:
        dice.shuffle(hosts)
    switches = list(dict.fromkeys(name for pair in joined for name in pair if name[0] != "H"))
    ordered = dice.random() < 0.4
    ports: dict[str, list[int]] = {}
    degree = Counter(name for pair in joined for name in pair)
    for name in degree:
        free = list(range(1, (degree[name] if ordered or name[0] == "H" else 40) + 1))
        if not ordered and name[0] != "H":
            free = dice.sample(free, degree[name])
        ports[name] = free[::-1]
    cables = tuple((a, ports[a].pop(), b, ports[b].pop()) for a, b in joined)
    every = [*switches, *(adapter for host in hosts for adapter in host)]
    bits = dice.choice((12, 40, 60))
    numbers = (
        dice.sample(range(2**bits), len(every))
        if bits == 12
        else [dice.getrandbits(bits) for _ in every]
    )
    guids = {name: 16 + 4 * number for name, number in zip(every, numbers, strict=True)}
    between = tuple(n for n, (a, _, b, _) in enumerate(cables) if b[0] != "H")
    return Wiring(kind, guids, tuple(hosts), cables, between)


def without_cable(wiring: Wiring, dice: random.Random) -> Wiring:
    """Return the subnet with one cable between switches out, whole still."""
    for lost in dice.sample(wiring.between, len(wiring.between)):
        cables = wiring.cables[:lost] + wiring.cables[lost + 1 :]
        near: dict[str, set[str]] = defaultdict(set)
        for a, _, b, _ in cables:
            near[a].add(b)
            near[b].add(a)
        reached, front = set(), [cables[0][0]]
        while front:
            at = front.pop()
            reached.add(at)
            front += near[at] - reached
        if reached >= wiring.guids.keys():
            return replace(wiring, cables=cables)
    return wiring


@dataclass(frozen=True, slots=True)
class Routed:
    """What the tools print of a subnet: topology, tables, and which engine routed it."""

    topology: str
    tables: str
    engine: str


def routed(wiring: Wiring, engine: str, lmc: int) -> Routed:
    """Return what OpenSM and ibnetdiscover say of a subnet on ibsim."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        (folder / "net").write_text(wiring.text())
        environment = TOOL.environment() | {"IBSIM_SOCKNAME": folder.name}
        inside = environment | {
            "LD_PRELOAD": str(next(TOOL.root().glob("usr/lib/**/libumad2sim.so"))),
            "OSM_TMP_DIR": f"{folder}/",
            "OSM_CACHE_DIR": f"{folder}/",
        }
        words = ["opensm", "-o", "-R", engine, "-l", str(lmc), "-f", "osm.log", "-D", "0x43"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        with subprocess.Popen(
            ["ibsim", "-s", "net"], env=environment, stdin=subprocess.PIPE, **quiet
        ) as simulator:
            try:
                for _ in range(50):
                    time.sleep(0.05)
                    if not subprocess.run(["ibnetdiscover"], env=inside, **quiet).returncode:
                        break
                done = subprocess.run(words, env=inside, timeout=60, **quiet)
                seen = subprocess.run(
                    ["ibnetdiscover"], cwd=folder, env=inside, capture_output=True, text=True
                )
            finally:
                simulator.kill()
        dump, log = folder / "opensm-lfts.dump", (folder / "osm.log").read_text()
        if done.returncode or not dump.exists():
            raise ValueError(f"{engine}: {log[-300:]}")
        used = re.findall(r"(\w+) tables configured on all switches", log)
        return Routed(seen.stdout, dump.read_text(), used[-1] if used else "")


def walked(wiring: Wiring, tables: str, flows: list[Flow]) -> float:
    """Return seconds on the busiest cable, by the tables of OpenSM's dump alone."""
    by_guid = {guid: name for name, guid in wiring.guids.items()}
    forwards: dict[str, dict[int, int]] = {}
    address: dict[str, int] = {}
    for line in tables.splitlines():
        if opened := re.match(r"Unicast lids .* guid 0x([0-9a-f]+)", line):
            table = forwards[by_guid[int(opened[1], 16)]] = {}
        elif entry := re.match(r"0x([0-9a-f]+) (\d+) # (.*)", line):
            table[int(entry[1], 16)] = int(entry[2])
            # ibsim gives the port of an adapter the GUID behind its own.
            if adapter := re.match(r"Channel Adapter portguid 0x([0-9a-f]+)", entry[3]):
                name = by_guid[int(adapter[1], 16) - 1]
                address[name] = min(address.get(name, 1 << 16), int(entry[1], 16))
    far = {(a, p): (b, q) for a, p, b, q in wiring.cables}
    far |= {(b, q): (a, p) for a, p, b, q in wiring.cables}
    load: dict[tuple[str, int], float] = defaultdict(float)
    adapters = [adapter for host in wiring.hosts for adapter in host]
    for source, target, size in flows:
        at, goal = adapters[source], adapters[target]
        port = 1
        while at != goal:
            if at != adapters[source]:
                port = forwards[at][address[goal]]
            load[at, port] += size
            at = far[at, port][0]
    return max(load.values()) / (GBPS * 1e9)


def patterns(wiring: Wiring, dice: random.Random) -> Iterator[tuple[str, list[Flow]]]:
    """Yield traffic that runs at once, by name; none stays in a host."""
    rails = len(wiring.hosts[0])
    count = len(wiring.hosts) * rails
    home = {b: a for a, _, b, _ in wiring.cables}
    leaf = [home[host[0]] for host in wiring.hosts]
    by_leaf: dict[str, list[int]] = defaultdict(list)
    for host, name in enumerate(leaf):
        by_leaf[name].append(host)
    groups = list(by_leaf.values())

    def on_rails(pairs: list[tuple[int, int]]) -> list[Flow]:
        return [
            (a * rails + rail, b * rails + rail, BYTES)
            for a, b in pairs
            for rail in range(rails)
            if a != b
        ]

    hosts = range(len(wiring.hosts))
    yield "neighbour shift", on_rails([(a, (a + 1) % len(hosts)) for a in hosts])
    yield (
        "next leaf",
        on_rails(
            [
                (host, below[place % len(below)])
                for group, below in zip(groups, [*groups[1:], groups[0]], strict=True)
                for place, host in enumerate(group)
            ]
        ),
    )
    ring = [
        (a, b, 2 * BYTES * (count - 1) / count)
        for a, b, _ in on_rails([(a, (a + 1) % len(hosts)) for a in hosts])
    ]
    yield "ring all-reduce", ring
    every = [(a, b, BYTES / count) for a in range(count) for b in range(count)]
    yield "all-to-all", [flow for flow in every if flow[0] // rails != flow[1] // rails]
    stride = max(1, len(hosts) // 2)
    yield "stride", on_rails([(a, (a + stride) % len(hosts)) for a in hosts])
    other = dice.sample(hosts, len(hosts))
    yield "random permutation", on_rails(list(zip(hosts, other, strict=True)))


def priced(network: Network, flows: list[Flow]) -> float:
    """Return seconds by the studio, latency left out."""
    source, target, size = (np.array(column) for column in zip(*flows, strict=True))
    none = np.zeros(len(source))
    phase = Phase(source, target, none.astype(np.int64), size, none)
    return float(price_phases(network.link_map, [phase], 1).seconds(1.0)[0])


def fabric_of(seen: Routed, rails: int, routing: str) -> Fabric:
    """Return the subnet as the studio reads it, under a routing."""
    document = read_fabric(
        seen.topology.encode(),
        "net.txt",
        assumed=Assumed(devices_per_node=rails),
        tables=seen.tables.encode(),
    ).document
    return build_fabric(checked(FabricFile, document | {"routing": routing}))


def differing(fabric: GraphFabric, engine: str) -> bool:
    """Return whether any port towards an adapter is another by the studio's engine."""
    subnet = stated_subnet(read_links(fabric.explicit()), fabric.forwarding)
    ends = np.flatnonzero(subnet.peer < 0)
    theirs = stated_ports(fabric.forwarding, subnet.lid[ends])
    return bool((engine_ports(subnet, engine) != theirs).any())


def rows() -> list[Row]:
    """Return how far flows are from the tables, and how often engines agree with OpenSM's."""
    TOOL.root()
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    tried, agreed, used = Counter[str](), Counter[str](), Counter[str]()
    for number in range(SUBNETS):
        dice = random.Random(number)
        drawing = drawn(dice)
        lost = without_cable(drawing, dice)
        for state in STATES:
            wiring = lost if state == "cable lost" else drawing
            for engine in ENGINES if state != "LMC 1" else ("minhop", "dfsssp"):
                seen = routed(wiring, engine, int(state == "LMC 1"))
                used[f"{engine} {state}: {seen.engine}"] += 1
                rails = len(wiring.hosts[0])
                if engine in OURS:
                    tried[engine] += 1
                    agreed[engine] += not differing(fabric_of(seen, rails, "tables"), engine)
                if engine != "minhop":
                    continue
                networks = {name: collapse(fabric_of(seen, rails, name)) for name in ROUTINGS}
                for _, flows in patterns(wiring, random.Random(number)):
                    if flows:
                        true = walked(wiring, seen.tables, flows)
                        for name, network in networks.items():
                            errors[name, state].append(priced(network, flows) / true - 1)
    version = f"{TOOL.version()} on ibsim"
    result = []
    for name in ROUTINGS:
        remark = "; ".join(
            f"{state}: largest {max(map(abs, errors[name, state])):.1%},"
            f" median {statistics.median(map(abs, errors[name, state])):.1%}"
            for state in STATES
        )
        every = [error for state in STATES for error in errors[name, state]]
        what = f"busiest cable by minhop's tables, six patterns, ours under {name}"
        exact = sum(abs(error) < 1e-9 for error in every)
        result.append(Row(TOOL.name, version, what, len(every), exact, remark))
    for engine in OURS:
        states = "intact, with a cable lost" + (", with LMC 1" if engine == "minhop" else "")
        what = f"{engine}: tables port by port, {states}"
        result.append(Row(TOOL.name, version, what, tried[engine], agreed[engine], ""))
    others = ", ".join(f"{case} {count}" for case, count in sorted(used.items()))
    result.append(Row(TOOL.name, version, "which engine routed", None, None, others))
    return result
