"""How long searches take to prove their plan on random scenarios over every kind of fabric.

``python benchmarks/proof_times.py [--scenarios 200] [--first 0] [--seed 0] [--limit 5]`` draws
fabrics of 8 to 1,024 devices, models dense and of experts, sequences and batches, leaves all axes
open, and searches each with a time limit. Prints a row per scenario (CSV): kind, devices, seconds,
and the gap that was left. ``--mixtures`` draws mixtures of experts on racks of 8 to 72 devices
instead, on several accelerators. Seconds are those of the processor, so that what else runs on the
machine does not count; a search runs in one thread. One search goes before all, unmeasured: what it
compiles is kept. ``--picture FILE.svg`` draws such rows, read from standard input, as a histogram.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import ScenarioValues, load_scenario

MODELS = (
    "llama2-7b",
    "llama2-70b",
    "llama3-8b",
    "llama3-70b",
    "mistral-7b",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "qwen2.5-7b",
    "qwen2.5-72b",
    "gpt-oss-120b",
)
NODE = {"bandwidth_GBps": 450.0, "latency_us": 0.5}
"""The links inside a node of every Clos fabric."""

Table = dict[str, object]


@dataclass(frozen=True, slots=True)
class Proof:
    """What one search came to."""

    scenario: int
    kind: str
    devices: int
    model: str
    batch: int
    points: int
    solved: int
    seconds: float
    proven: bool
    gap: float
    sets: str


def _sizes(dice: random.Random, devices: int, parts: int) -> list[int]:
    """Factors of at least two whose product is ``devices``, as many as there are, up to a limit."""
    found = []
    rest, prime = devices, 2
    while rest > 1:
        while rest % prime == 0:
            found.append(prime)
            rest //= prime
        prime += 1
    dice.shuffle(found)
    while len(found) > parts:
        found[1] *= found.pop(0)
        dice.shuffle(found)
    return found


def _hierarchy(dice: random.Random, devices: int) -> Table:
    per_device = dice.random() < 0.5
    rate = 450.0
    levels = []
    for depth, size in enumerate(_sizes(dice, devices, 3)):
        levels.append(
            {
                "name": f"tier{depth}",
                "group_size": size,
                "uplink_per": "device" if per_device or depth == 0 else "child",
                "bandwidth_GBps": rate,
                "oversubscription": dice.choice([1.0, 2.0, 4.0]) if depth else 1.0,
                "latency_us": 0.5 + depth,
            }
        )
        rate = dice.choice([25.0, 50.0, 100.0, 200.0])
    return {"kind": "hierarchical", "level": levels}


def odd_hierarchy(dice: random.Random) -> Table:
    """Any number of devices from 21 to 125, in up to three levels."""
    return _hierarchy(dice, dice.randint(21, 125))


def even_hierarchy(dice: random.Random) -> Table:
    """A power of two."""
    return _hierarchy(dice, 2 ** dice.randint(4, 10))


def unequal_hierarchy(dice: random.Random) -> Table:
    """Racks of different sizes."""
    racks = [dice.randint(1, 6) for _ in range(dice.randint(2, 6))]
    if len(set(racks)) == 1:
        racks[0] += 1
    rest = {"uplink_per": "device", "bandwidth_GBps": 50.0, "latency_us": 1.5}
    return {
        "kind": "hierarchical",
        "level": [
            {"name": "node", "group_size": 8, "uplink_per": "device", **NODE},
            {"name": "rack", "group_sizes": racks, **rest},
            {"name": "fabric", "group_size": len(racks), **rest, "latency_us": 3.0},
        ],
    }


def _clos(dice: random.Random, kind: str, tiers: int, most: int = 10) -> Table:
    devices = 2 ** dice.randint(5, most)
    ratios = [dice.choice([1.0, 1.0, 2.0, 4.0])] + [1.0] * (tiers - 2)
    radix = (32 if devices <= 256 else 64) if tiers == 2 else dice.choice([16, 32])
    clos = {
        "devices": devices,
        "devices_per_node": 8,
        "nics_per_node": 8,
        "nic_bandwidth_GBps": 50.0,
        "radix": radix,
        "tiers": tiers,
        "oversubscription": ratios,
        "hop_latency_us": 0.6,
    }
    return {"kind": kind, "clos": clos, "intra_node": NODE}


def two_tiers(dice: random.Random) -> Table:
    """Leaf and spine, with a ratio."""
    return _clos(dice, "leaf_spine", 2)


def three_tiers(dice: random.Random) -> Table:
    """A fat tree."""
    return _clos(dice, "fat_tree", 3)


def rails(dice: random.Random) -> Table:
    """Rail-optimised, two tiers."""
    return _clos(dice, "rail_optimised", 2)


def hashed(dice: random.Random) -> Table:
    """Clos fabrics whose switches hash flows."""
    kind = dice.choice(["leaf_spine", "rail_optimised"])
    return {**_clos(dice, kind, 2), "routing": "ecmp"}


def with_holes(dice: random.Random) -> Table:
    """Clos fabrics that lack nodes."""
    fabric = _clos(dice, dice.choice(["leaf_spine", "rail_optimised"]), 2)
    nodes = int(fabric["clos"]["devices"]) // 8  # type: ignore[index]  # a table of the above
    gone = dice.sample(range(nodes), dice.randint(1, max(1, nodes // 8)))
    return {**fabric, "missing": [f"node {number}" for number in sorted(gone)]}


def torus(dice: random.Random) -> Table:
    """Two or three dimensions, any of which may be open."""
    if dice.random() < 0.5:
        shape = [dice.choice([4, 5, 6, 8, 12, 16, 32]) for _ in range(2)]
    else:
        shape = [dice.choice([2, 3, 4, 6, 8]) for _ in range(3)]
    wrap = [dice.random() < 0.7 for _ in shape]
    links = {"link_bandwidth_GBps": 50.0, "hop_latency_us": 1.0}
    return {"kind": "torus", "torus": {"shape": shape, "wrap": wrap, **links}}


def twisted(dice: random.Random) -> Table:
    """k x k x 2k or k x 2k x 2k."""
    k = dice.choice([4, 4, 8])
    shape = [k, k, 2 * k] if dice.random() < 0.5 or k == 8 else [k, 2 * k, 2 * k]
    slice_of = {"generation": "v4", "shape": shape, "twisted": True, "hop_latency_us": 1.0}
    return {"kind": "tpu_slice", "tpu_slice": slice_of}


def dragonfly(dice: random.Random) -> Table:
    """Balanced, or with fewer groups than fit; one or four devices per node."""
    h = dice.choice([2, 3])
    groups = dice.randint(3, 2 * h * h + 1)
    per_node = dice.choice([1, 4])
    table: Table = {
        "kind": "dragonfly",
        "routing": dice.choice(["adaptive", "shortest_path", "ecmp"]),
        "dragonfly": {
            "routers_per_group": 2 * h,
            "nodes_per_router": h if per_node == 1 else 2,
            "global_links_per_router": h,
            "groups": groups,
            "devices_per_node": per_node,
            "local_bandwidth_GBps": 50.0,
            "global_bandwidth_GBps": 50.0,
            "hop_latency_us": 0.6,
        },
    }
    return table if per_node == 1 else {**table, "intra_node": NODE}


def drawn(dice: random.Random) -> Table:
    """Leaves and spines element by element, under every routing."""
    leaves, each, spines = dice.randint(2, 8), dice.choice([2, 4, 8, 16]), dice.choice([1, 2, 4])
    element = [{"id": f"spine{s}", "role": "switch"} for s in range(spines)]
    link = []
    wires = {"bandwidth_GBps": 50.0, "latency_us": 0.6}
    for leaf in range(leaves):
        element.append({"id": f"leaf{leaf}", "role": "switch"})
        link += [{"a": f"leaf{leaf}", "b": f"spine{s}", **wires} for s in range(spines)]
        for slot in range(each):
            name = f"device{leaf * each + slot}"
            element.append({"id": name, "role": "device"})
            link.append({"a": name, "b": f"leaf{leaf}", **wires})
    routing = dice.choice(["adaptive", "shortest_path", "ecmp"])
    return {"kind": "graph", "routing": routing, "element": element, "link": link}


RACKS = (8, 16, 18, 32, 36, 64, 72)
"""Devices of a scale-up domain."""
CHIPS = ("a100-80gb", "h100-80gb", "h200-141gb", "b200-180gb", "gb200-186gb", "mi300x-192gb")


def racks(dice: random.Random) -> Table:
    """64 to 1,024 devices in racks, of which the last one, or the last leaf, may be part filled."""
    rack = dice.choice(RACKS)
    nodes = dice.randint(-(-64 // rack), 1024 // rack)
    devices = rack * nodes - dice.choice([0, 0, rack // 2]) * (nodes > 1)
    inside = {"bandwidth_GBps": dice.choice([450.0, 900.0]), "latency_us": 0.5}
    outside = {"bandwidth_GBps": dice.choice([25.0, 50.0, 100.0]), "latency_us": 2.0}
    if dice.random() < 0.3:
        sizes = [rack] * (nodes - 1) + [rack - (rack * nodes - devices)]
        node = {"name": "rack", "group_sizes": sizes, "uplink_per": "device", **inside}
        row = {"name": "row", "group_size": nodes, "uplink_per": "device", **outside}
        return {"kind": "hierarchical", "level": [node, row]}
    kind = dice.choice(["rail_optimised", "rail_optimised", "leaf_spine", "fat_tree"])
    rails = dice.choice([n for n in (4, 8, 9, 16, 18, 32) if rack % n == 0])
    clos: Table = {
        "devices": rack * nodes,
        "devices_per_node": rack,
        "nics_per_node": rack if kind == "rail_optimised" else rails,
        "nic_bandwidth_GBps": outside["bandwidth_GBps"],
        "radix": 64,
        "tiers": 3 if kind == "fat_tree" else 2,
        "oversubscription": [dice.choice([1.0, 1.0, 2.0])] + [1.0] * (kind == "fat_tree"),
        "hop_latency_us": 0.6,
    }
    if kind == "rail_optimised":
        clos["rails"] = rails
    gone = [f"device {number}" for number in range(devices, rack * nodes)]
    return {"kind": kind, "clos": clos, "intra_node": inside, "missing": gone}


def mixture(dice: random.Random) -> Table:
    """A model of 8 to 256 experts of which a token meets 1 to 8."""
    hidden = dice.choice([2048, 4096, 6144, 7168])
    experts = dice.choice([8, 16, 24, 32, 60, 64, 96, 128, 160, 256])
    wide = 2048 * 64 // experts  # as many parameters in all, however many experts divide them
    model: Table = {
        "name": f"{experts} experts",
        "family": dice.choice(["mixtral", "qwen3_moe", "gpt_oss"]),
        "blocks": dice.randint(4, 40),
        "hidden": hidden,
        "heads": hidden // 128,
        "kv_heads": dice.choice([n for n in (4, 8, 16) if hidden // 128 % n == 0]),
        "head_dim": 128,
        "ffn": 0,
        "vocabulary": 128 * dice.randint(250, 1200),
        "experts": experts,
        "top_k": dice.randint(1, 8),
        "expert_ffn": max(256, wide // 256 * 256 * dice.choice([1, 2])),
    }
    return model


KINDS: dict[str, Callable[[random.Random], Table]] = {
    "Clos, 2 tiers": two_tiers,
    "Clos, 3 tiers": three_tiers,
    "rails": rails,
    "hashed Clos": hashed,
    "Clos with holes": with_holes,
    "odd hierarchy": odd_hierarchy,
    "unequal hierarchy": unequal_hierarchy,
    "even hierarchy": even_hierarchy,
    "torus": torus,
    "twisted torus": twisted,
    "dragonfly": dragonfly,
    "drawn": drawn,
}


def inline(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def drawn_scenario(seed: int, number: int) -> tuple[str, list[str]]:
    """Kind and settings of one scenario; the kinds take turns."""
    kind = list(KINDS)[number % len(KINDS)]
    dice = random.Random(f"{seed} {number}")
    fabric = {"schema": 1, "name": kind, **KINDS[kind](dice)}
    settings = [
        f"fabric={inline(fabric)}",
        f"workload.model='{dice.choice(MODELS)}'",
        f"workload.global_batch_sequences={2 ** dice.randint(5, 11) * dice.choice([1, 1, 1, 3])}",
        f"workload.sequence_length_tokens={dice.choice([2048, 4096, 4096, 8192])}",
        "search={}",
    ]
    return kind, settings


def drawn_mixture(seed: int, number: int) -> tuple[str, list[str]]:
    """Accelerator and settings of one mixture of experts on racks of 8 to 72 devices."""
    dice = random.Random(f"mixture {seed} {number}")
    chip = dice.choice(CHIPS)
    settings = [
        f"fabric={inline({'schema': 1, 'name': 'racks', **racks(dice)})}",
        f"accelerator='{chip}'",
        f"workload.model={inline(mixture(dice))}",
        f"workload.global_batch_sequences={2 ** dice.randint(6, 11) * dice.choice([1, 1, 1, 3])}",
        f"workload.sequence_length_tokens={dice.choice([2048, 4096, 4096, 8192])}",
        "search={}",
    ]
    return chip, settings


def proven(
    number: int, kind: str, scenario: ScenarioValues, limit_s: float, sets: list[str]
) -> Proof:
    """Search one scenario until it is proven or the time is over."""
    problem = scenario.problem()
    began = time.process_time()
    result = search(problem, scenario.space, time_limit_s=limit_s, clock=time.process_time)
    seconds, told = time.process_time() - began, result.certificate
    return Proof(
        number,
        kind,
        problem.network.devices,
        scenario.model.name,
        problem.batch,
        told.points,
        told.solved,
        round(seconds, 3),
        told.proven,
        round(told.gap if result.best or told.proven else 1.0, 5),
        sets[0],
    )


BINS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, math.inf)
"""Upper ends in seconds; the last one has what was not proven by the limit."""


def histogram(rows: list[dict[str, str]]) -> str:
    """How many scenarios were proven within how many seconds, as plain SVG."""
    found = [0] * len(BINS)
    for row in rows:
        seconds = float(row["seconds"]) if row["proven"] == "True" else math.inf
        found[next(n for n, end in enumerate(BINS) if seconds <= end)] += 1
    wide, left, top, high = 62, 20, 46, 170
    title = f"{len(rows) - found[-1]} of {len(rows)} random scenarios are proven within 5 s"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide * len(BINS) + 20} 260" '
        'role="img" font-family="sans-serif" font-size="11" fill="#767b82">',
        f'<text x="{left}" y="18" font-size="14" font-weight="600">{title}</text>',
        f'<text x="{left}" y="34">scenarios by processor seconds of the search</text>',
    ]
    for number, (end, count) in enumerate(zip(BINS, found, strict=True)):
        x, tall = left + wide * number, high * count / max(found)
        colour = "#0072B2" if end < math.inf else "#D55E00"
        label = f"to {end:g} s" if end < math.inf else "not proven"
        parts.append(
            f'<rect x="{x}" y="{top + high - tall:.1f}" width="{wide - 6}" height="{tall:.1f}" '
            f'fill="{colour}"/><text x="{x + wide / 2 - 3}" y="{top + high - tall - 4:.1f}" '
            f'text-anchor="middle">{count}</text><text x="{x + wide / 2 - 3}" '
            f'y="{top + high + 16}" text-anchor="middle">{label}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Draw, measure, write, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scenarios", type=int, default=200)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=float, default=5.0)
    options.add_argument("--mixtures", action="store_true")
    options.add_argument("--picture", type=Path)
    asked = options.parse_args()
    if asked.picture:
        asked.picture.write_text(histogram(list(csv.DictReader(sys.stdin))), encoding="utf-8")
        return
    warm = load_scenario("llama2-7b-64-h100", ["search={}"])
    search(warm.problem(), warm.space, time_limit_s=asked.limit)
    writer = None
    for number in range(asked.first, asked.first + asked.scenarios):
        kind, sets = (drawn_mixture if asked.mixtures else drawn_scenario)(asked.seed, number)
        try:
            scenario = load_scenario("llama2-7b-64-h100", sets)
            found = proven(number, kind, scenario, asked.limit, sets)
        except InputError as error:
            print(number, kind, error, sets, file=sys.stderr)
            continue
        row = asdict(found)
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row))
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
