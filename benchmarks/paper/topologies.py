"""Figures 8 and 9: the paper's topologies as levels, and affinity levels of meshes and tori.

Own: the levels that collapse makes of this project's fabric presets. Published: the levels of
the artifact's instances, as given. Figure 9 counts the devices of every affinity level around one
source, and how far the pairs of one "remote" level would be from one another.

References
----------
NEST, MLSys 2026, sections 5.2 and 5.3, appendix B.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numpy as np

from nest_core.documents.units import GB, MICROSECOND, join_words
from nest_core.network.patterns import REMOTE_HOPS
from nest_core.paper.cases import Cell, shipped_instance
from nest_core.paper.reproduction import Costs, Reproduction, ResultTable, Row, printed, ratio
from nest_core.paper.topologies import affinity, network_of

__all__ = ["figure8", "figure8_paragraph", "figure9", "figure9_paragraph"]

HIERARCHIES = (
    "nest-fat-tree-1024",
    "nest-spine-leaf-1024",
    "h100-spine-leaf-1024-4to1",
    "nest-v100-16",
)
"""Presets: the paper's, and one that oversubscribes its leaves."""

MESHES = ("mesh-8x8", "torus-16x16")
"""Presets of figure 9."""

_CELLS = (Cell("tpuv4_fatTree", "llama2", 1024, 1), Cell("h100_spineLeaf", "llama2", 1024, 1))
_SAME = 1e-3
_NO_TORUS = "Instance: the artifact ships none of a mesh or torus; see --costs own."


def figure8(costs: Costs) -> Reproduction:
    """Levels of the topologies."""
    rows = _own_levels() if costs == "own" else _published_levels()
    return Reproduction(
        "figure8",
        "Figure 8: hierarchical topologies",
        costs,
        "The paper shows figure 8 as a picture; sections 5.2 and 5.3 print bandwidths of the fat "
        "tree and the spine-leaf.",
        (ResultTable("rows", "Levels, innermost first", rows, tuple(map(_level_words, rows))),),
        figure8_paragraph(rows),
    )


def _own_levels() -> tuple[Row, ...]:
    return tuple(
        {
            "costs": "own",
            "fabric": preset,
            "level": level.name,
            "group_devices": level.group_size,
            "published_Bps": _printed_Bps(preset, index),
            "uplink_Bps": level.capacity_Bps,
            "per_device_Bps": level.bandwidth_Bps,
            "latency_s": level.latency_s,
        }
        for preset in HIERARCHIES
        for index, level in enumerate(network_of(preset).levels)
    )


def _published_levels() -> tuple[Row, ...]:
    """As the instances give them; latencies are in the layers' unit, so none is told in seconds."""
    rows: list[Row] = []
    for preset, cell in zip(HIERARCHIES, _CELLS, strict=False):
        instance = shipped_instance(cell)
        sizes = accumulate(instance.devices_per_level, mul)
        for index, (size, rate) in enumerate(zip(sizes, instance.bandwidths, strict=True)):
            rows.append(
                {
                    "costs": "published",
                    "fabric": cell.setup,
                    "level": f"level {index}",
                    "group_devices": size,
                    "published_Bps": _printed_Bps(preset, index),
                    "uplink_Bps": rate,
                    "per_device_Bps": None,
                    "latency_s": None,
                }
            )
    return tuple(rows)


def _printed_Bps(preset: str, index: int) -> float | None:
    shown = printed()["figure8"].get(preset, [])
    return shown[index] * GB if index < len(shown) else None


def figure8_paragraph(rows: Sequence[Row]) -> tuple[str, ...]:
    """Which printed bandwidths are those of our levels, and how steep the fabrics are."""
    shown = [row for row in rows if row["published_Bps"] is not None]
    if rows[0]["costs"] == "published":
        factors = [row["uplink_Bps"] / row["published_Bps"] for row in shown]
        return (
            f"The {len(shown)} printed bandwidths stand in the instances {min(factors):.4f} to "
            f"{max(factors):.4f} times as large: a gigabyte is 2^30 bytes there "
            f"({2**30 / GB:.4f}).",
            "Each level has one bandwidth; whether the devices of a group share it is in the "
            "artifact's costs, not in its levels.",
        )
    off = [
        f"{row['level']} of {row['fabric']} ({row['uplink_Bps'] / GB:.4g} GB/s against "
        f"{row['published_Bps'] / GB:g})"
        for row in shown
        if abs(row["uplink_Bps"] / row["published_Bps"] - 1) > _SAME
    ]
    found = [
        f"{len(shown) - len(off)} of {len(shown)} printed bandwidths are those of the levels here; "
        f"others: {join_words(off)}.",
        "NVLink 4 is 450 GB/s each way; the 900 that are printed for H100 nodes are both ways.",
    ]
    steep = []
    for fabric in dict.fromkeys(row["fabric"] for row in rows):
        rates = [row["per_device_Bps"] for row in rows if row["fabric"] == fabric]
        steep.append(f"{ratio(rates[0] / rates[-1], 0)} on {fabric}")
    found.append(
        "A device has, when all send at once, more bandwidth at the innermost level than at the "
        f"outermost by {join_words(steep)}: an uplink is shared by the devices below it."
    )
    return tuple(found)


def _level_words(row: Row) -> dict[str, str]:
    def rate(value: float | None) -> str:
        return "–" if value is None else f"{value / GB:.4g}"

    latency = row["latency_s"]
    return {
        "fabric": row["fabric"],
        "level": row["level"],
        "group, devices": f"{row['group_devices']:,}",
        "printed, GB/s": rate(row["published_Bps"]),
        "uplink, GB/s": rate(row["uplink_Bps"]),
        "all sending, GB/s per device": rate(row["per_device_Bps"]),
        "latency, µs": "–" if latency is None else f"{latency / MICROSECOND:.3g}",
    }


def figure9(costs: Costs) -> Reproduction:
    """Affinity levels around one device."""
    rows = (
        tuple(row for preset in MESHES for row in _affinity_rows(preset))
        if costs == "own"
        else tuple(_empty_row(preset) for preset in MESHES)
    )
    return Reproduction(
        "figure9",
        "Figure 9: affinity levels of meshes and tori",
        costs,
        "The paper shows figure 9 as a picture; appendix B.2 names three levels: neighbours, two "
        "hops, and remote beyond a threshold that it does not print.",
        (ResultTable("rows", "Levels seen from the middle", rows, tuple(map(_hop_words, rows))),),
        figure9_paragraph(costs, rows),
    )


def _class(hops: int) -> str:
    return f"{hops}" if hops < REMOTE_HOPS else "3, remote"


def _affinity_rows(preset: str) -> list[Row]:
    network = network_of(preset)
    devices = np.bincount(affinity(network).ravel() + 1, minlength=len(network.levels) + 1)[1:]
    return [
        {
            "costs": "own",
            "fabric": preset,
            "hops": hops,
            "class": _class(hops),
            "devices": int(count),
            "per_device_Bps": level.bandwidth_Bps,
            "latency_s": level.latency_s,
        }
        for hops, (level, count) in enumerate(zip(network.levels, devices, strict=True), start=1)
        if count
    ]


def _empty_row(preset: str) -> Row:
    return {
        "costs": "published",
        "fabric": preset,
        "hops": None,
        "class": None,
        "devices": None,
        "per_device_Bps": None,
        "latency_s": None,
        "reason": _NO_TORUS,
    }


def figure9_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """What one remote level would put together."""
    if costs == "published":
        return (
            "The artifact's instances are nested levels, none of a mesh or torus, so nothing of "
            "the figure can be computed from its costs.",
        )
    found = [
        "Here every hop distance is a level of its own; three classes are what the paper draws, "
        f"and what its level-wise program reads here: remote from {REMOTE_HOPS} hops on, priced "
        f"as at {REMOTE_HOPS}."
    ]
    for fabric in dict.fromkeys(row["fabric"] for row in rows):
        seen = [row for row in rows if row["fabric"] == fabric]
        remote = [row for row in seen if row["class"] == "3, remote"]
        share = sum(row["devices"] for row in remote) / sum(row["devices"] for row in seen)
        found.append(
            f"On {fabric} one remote level would hold {100 * share:.0f} % of the devices, at "
            f"{remote[0]['hops']} to {remote[-1]['hops']} hops, whose bandwidth where all send "
            f"differs {ratio(remote[0]['per_device_Bps'] / remote[-1]['per_device_Bps'])} times."
        )
    found.append(
        "Hop levels price point-to-point messages alone: they are no groups, since two neighbours "
        "of a device may be two hops apart, so collectives are priced from the slice's shape."
    )
    return tuple(found)


def _hop_words(row: Row) -> dict[str, str]:
    known = row["hops"] is not None
    return {
        "fabric": row["fabric"],
        "hops": str(row["hops"]) if known else "–",
        "the paper's level": row["class"] or "–",
        "devices": str(row["devices"]) if known else "–",
        "all sending, GB/s per device": f"{row['per_device_Bps'] / GB:.3g}" if known else "–",
        "latency, µs": f"{row['latency_s'] / MICROSECOND:.3g}" if known else "–",
    }
