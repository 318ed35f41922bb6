"""Reading a large InfiniBand subnet with its tables and planning on it, beside the same preset.

``python benchmarks/tables_speed.py [--repeat 3] [--nodes 1024] [--tiers 2] [--radix 128]`` draws
the subnet of a rail-optimised fabric as ibnetdiscover and OpenSM print it (8 NICs a node, minhop's
tables), then plans on what it reads and on the fabric as a kind, in turn. Printed: medians of the
processor's seconds, and their ratio; the most that was asked for is 1.5.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import nest_core
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.interop.formats import Assumed, read_fabric
from nest_core.network.link_graph import read_links
from nest_core.network.opensm import assumed_subnet, engine_ports, single_switches

SPEED = "4xNDR"  # 50 GB/s


def counted(nodes: int, tiers: int, radix: int) -> dict:
    """Return the fabric as people choose it."""
    return {
        "schema": 1,
        "name": "subnet",
        "kind": "rail_optimised",
        "clos": {
            "devices": 8 * nodes,
            "devices_per_node": 8,
            "nics_per_node": 8,
            "nic_bandwidth_GBps": 50.0,
            "radix": radix,
            "tiers": tiers,
            "oversubscription": [1.0] * (tiers - 1),
            "hop_latency_us": 0.6,
        },
        "intra_node": {"bandwidth_GBps": 450.0, "latency_us": 0.5},
    }


def dumped(fabric: Fabric) -> tuple[bytes, bytes]:
    """Return topology and tables as the tools print them."""
    links = read_links(single_switches(fabric.explicit()))
    subnet = assumed_subnet(links)
    peer, switches = subnet.peer, len(subnet.element)
    cables = [*zip(subnet.switch.tolist(), subnet.port.tolist(), subnet.end.tolist(), strict=True)]
    lids = (switches + subnet.lid).tolist()
    ways: dict[tuple[int, int], list[int]] = {}
    for cable, (switch, port, _) in enumerate(cables):
        ways.setdefault((switch, int(peer[cable])), []).append(port)
    # Parallel cables join ports in their order.
    far_port = {
        (a, port): ways[b, a][place]
        for (a, b), ports in ways.items()
        if b >= 0
        for place, port in enumerate(ports)
    }
    blocks: list[list[str]] = [
        [f'Switch\t65 "S-{guid:016x}"\t\t# "switch{at}" enhanced port 0 lid {at + 1} lmc 0']
        for at, guid in enumerate(subnet.guid)
    ]
    names = {}
    for cable, (switch, port, end) in enumerate(cables):
        other, home = int(peer[cable]), f'"switch{switch}" lid {switch + 1} {SPEED}'
        if other >= 0:
            there = f'"S-{subnet.guid[other]:016x}"[{far_port[switch, port]}]'
            blocks[switch].append(f'[{port}]\t{there}\t\t# "switch{other}" lid {other + 1} {SPEED}')
            continue
        _, node, rail = links.elements[end]
        guid, name = (1 << 36) + 2 * cable, f"node{node:04} mlx5_{rail}"
        names[cable] = f"# Channel Adapter portguid 0x{guid + 1:016x}: '{name}'"
        there = f'"H-{guid:016x}"[1]({guid + 1:x})'
        blocks[switch].append(f'[{port}]\t{there} \t\t# "{name}" lid {lids[cable]} {SPEED}')
        here = f'[1]({guid + 1:x}) \t"S-{subnet.guid[switch]:016x}"[{port}]'
        blocks.append(
            [f'Ca\t1 "H-{guid:016x}"\t\t# "{name}"', f"{here}\t\t# lid {lids[cable]} lmc 0 {home}"]
        )
    ports, ends = engine_ports(subnet, "minhop"), np.flatnonzero(peer < 0).tolist()
    tables = []
    for at, guid in enumerate(subnet.guid):
        tables.append(
            f"Unicast lids [0-{max(lids)}] of switch Lid {at + 1} guid 0x{guid:016x} ('s'):"
        )
        tables += [
            f"0x{lids[cable]:04x} {port:03} {names[cable]}"
            for cable, port in zip(ends, ports[at].tolist(), strict=True)
        ]
    topology = "\n\n".join("\n".join(block) for block in blocks)
    return f"{topology}\n".encode(), ("\n".join(tables) + "\n").encode()


def timed(read: Callable[[], dict]) -> tuple[float, float, float]:
    """Return seconds of the processor to read and to plan, and those of a step."""
    began = time.process_time()
    document = read()
    after = time.process_time()
    answer = nest_core.plan(nest_core.load("llama3-70b-1024-h100", {"fabric": document}))
    return after - began, time.process_time() - after, answer.best.iteration_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--tiers", type=int, default=2)
    parser.add_argument("--radix", type=int, default=128)
    given = parser.parse_args()
    preset = counted(given.nodes, given.tiers, given.radix)
    topology, tables = dumped(build_fabric(checked(FabricFile, preset)))
    print(f"{len(topology) / 1e6:.1f} MB of topology, {len(tables) / 1e6:.1f} MB of tables")
    inside = Assumed(intra_bandwidth_GBps=450.0)
    ways = {
        "as a kind": lambda: preset,
        "read with tables": lambda: (
            read_fabric(topology, "net.txt", assumed=inside, tables=tables).document
        ),
    }
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for number in range(given.repeat + 1):
        for name, read in ways.items():
            run = timed(read)
            if number:  # the first compiles
                runs[name].append(run)
    for name, every in runs.items():
        reading, planning, step = (statistics.median(column) for column in zip(*every, strict=True))
        print(f"{name}: {reading:.2f} s to read, {planning:.2f} s to plan, {step:.4f} s a step")
    kind, tabled = (statistics.median(a + b for a, b, _ in every) for every in runs.values())
    print(f"ratio {tabled / kind:.2f}")


if __name__ == "__main__":
    main()
