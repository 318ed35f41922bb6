"""Our reading of what ``ibnetdiscover`` prints of subnets that ibsim plays.

Drawn subnets of leaves and spines: hosts of several cards, of one name or of several words, file
servers, cables of a lower rate, cards whose cable is out. Looked at are hosts, cards, switches and
cables of the fabric that we read.
"""

import random
import subprocess
import time
from dataclasses import dataclass

from benchmarks.outside.tool import BUILD, Debian, Row, reasons
from nest_core.documents import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import GraphFabric, build_fabric
from nest_core.interop.formats import read_fabric
from nest_core.interop.formats.values import Assumed

TOOL = Debian(
    "infiniband-diags",
    (
        "infiniband-diags", "ibsim-utils", "libumad2sim0", "libibmad5", "libibumad3",
        "libibnetdisc5",
    ),
)  # fmt: skip
SUBNETS = 40
NAMES = (
    "node{:02} mlx5_{}",
    "dgx-{} HCA-{}",
    "gpu{:03}.cluster.local mlx5_{}",
    "rack1-{:02} hfi1_{}",
)
LINK = '[{}]\t"{}"[{}]\t# "{}" lid 0 4x{}'


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet as ibsim's file describes it, and what a reader should see."""

    text: str
    hosts: int
    cards: int
    switches: int
    cables: int


def drawn(rng: random.Random) -> Subnet:
    """Return a subnet."""
    leaves, spines, per_leaf = rng.randint(1, 5), rng.randint(1, 4), rng.randint(1, 5)
    cards, parallel = rng.choice((1, 2, 4)), rng.choice((1, 2))
    pattern, servers = rng.choice(NAMES), rng.choice((0, 0, 1))
    ports: dict[str, list[str]] = {f"leaf{n}": [] for n in range(leaves)}
    ports |= {f"spine{n}": [] for n in range(spines if leaves > 1 else 0)}
    blocks, up = [], 0
    slow = rng.random() < 0.3
    for leaf in range(leaves):
        for spine in range(spines if leaves > 1 else 0):
            for _ in range(parallel):
                ends = [f"leaf{leaf}", f"spine{spine}"]
                places = [len(ports[end]) + 1 for end in ends]
                for end, other in ((0, 1), (1, 0)):
                    line = LINK.format(places[end], ends[other], places[other], ends[other], "HDR")
                    ports[ends[end]].append(line)
    hosts = [(leaf, "") for leaf in range(leaves) for _ in range(per_leaf)]
    hosts += [(rng.randrange(leaves), "storage{:02} mlx5_{}") for _ in range(servers)]
    whole = 0
    for number, (leaf, special) in enumerate(hosts, 1):
        linked = 0
        for card in range(1 if special else cards):
            name = (special or pattern).format(number, card)
            lines = []
            # A host without any cable is none: its first always has one.
            if card == 0 or rng.random() > 0.1:
                place = len(ports[f"leaf{leaf}"]) + 1
                rate = "EDR" if slow and number == 1 else "HDR"
                ports[f"leaf{leaf}"].append(LINK.format(place, f"H{number}c{card}", 1, name, rate))
                lines = [LINK.format(1, f"leaf{leaf}", place, f"leaf{leaf}", rate)]
                linked += 1
            blocks.append("\n".join([f'Hca\t1 "H{number}c{card}"\t# "{name}"', *lines]))
        if not special:
            up += linked
            whole += 1
    switches = ["\n".join([f'Switch\t40 "{name}"', *lines]) for name, lines in ports.items()]
    cables = leaves * spines * parallel if leaves > 1 else 0
    return Subnet("\n\n".join([*switches, *blocks]) + "\n", whole, up, len(ports), cables)


def printed(subnet: Subnet) -> str:
    """Return what ``ibnetdiscover`` prints of it."""
    environment, folder = TOOL.environment(), BUILD / "infiniband"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net").write_text(subnet.text)
    wrapper = next(TOOL.root().glob("usr/lib/**/libumad2sim.so"))
    with subprocess.Popen(
        ["ibsim", "-s", "net"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as simulator:
        try:
            for _ in range(50):
                done = subprocess.run(
                    ["ibnetdiscover"],
                    env=environment | {"LD_PRELOAD": str(wrapper)},
                    capture_output=True,
                    text=True,
                )
                if not done.returncode:
                    return done.stdout
                time.sleep(0.1)
        finally:
            simulator.kill()
    raise ValueError(done.stderr.strip())


def read(text: str) -> tuple[int, int, int, int]:
    """Return hosts, cards, switches and cables between switches of the fabric that we read."""
    document = read_fabric(text.encode(), "ib.out", assumed=Assumed(devices_per_node=1)).document
    fabric = build_fabric(checked(FabricFile, document))
    if not isinstance(fabric, GraphFabric):
        raise TypeError(type(fabric).__name__)
    roles = {element.id: element.role for element in fabric.elements}
    inside = {end for link in fabric.links if roles[link.a] == "device" for end in (link.a, link.b)}
    cards = {name for name, role in roles.items() if role == "nic"}
    switches = roles.keys() - inside - cards
    cables = sum(link.count for link in fabric.links if {link.a, link.b} <= switches)
    return fabric.devices, len(cards), len(switches), cables


def rows() -> list[Row]:
    """Return how many subnets are read as they are."""
    TOOL.root()
    wrong = []
    for number in range(SUBNETS):
        subnet = drawn(random.Random(number))
        meant = (subnet.hosts, subnet.cards, subnet.switches, subnet.cables)
        try:
            seen = read(printed(subnet))
        except InputError as error:
            wrong.append(str(error))
            continue
        if seen != meant:
            wrong.append(f"subnet {number}: {seen}, meant {meant}")
    version = f"{TOOL.version()} on ibsim"
    what = "ibnetdiscover of drawn subnets: hosts, cards, switches, cables as they are"
    return [Row(TOOL.name, version, what, SUBNETS, SUBNETS - len(wrong), reasons(wrong))]
