"""ASTRA-sim: one Chakra trace per NPU, groups, network and system, and the command that runs them.

Formats of ASTRA-sim (analytical network as JSON, which earlier readers take as
YAML too) with the Chakra feeder v3; options of ``network_frontend/analytical/common/
CmdLineParser.cc``. ASTRA-sim reads binary traces only, and the text form that Chakra's converter
knows has neither stages nor groups, so the traces are written in full
(`nest_core.interop.exporters.chakra`). The network is `nest_core.interop.formats.astrasim`'s; the
congestion unaware backend is the one that takes several dimensions.
"""

import json
from collections.abc import Sequence

import numpy as np

from nest_core.costs import SPLIT, Report, device_order
from nest_core.interop.exporters import chakra
from nest_core.interop.exporters.astra_workload import groups_of, stage_nodes, trace, workload
from nest_core.interop.exporters.values import (
    ExportFiles,
    check_plain_experts,
    check_uniform,
    header,
    pipelined,
    refuse_first,
)
from nest_core.interop.formats.astrasim import astrasim_network
from nest_core.interop.formats.values import unsaid
from nest_core.network import IntArray, Network
from nest_core.scenario import ScenarioValues

__all__ = ["MAX_NODES", "export_astra_sim"]

MAX_NODES = 1_000_000
"""Nodes of all traces together."""

_NAME = "ASTRA-sim"
_RUN = """\
#!/usr/bin/env bash
{top}# ASTRA_SIM: the binary AstraSim_Analytical_Congestion_Unaware.
set -euo pipefail
cd -- "$(dirname -- "$0")"
exec "${{ASTRA_SIM:?path of AstraSim_Analytical_Congestion_Unaware}}" \\
  --workload-configuration=workload \\
  --comm-group-configuration={groups} \\
  --system-configuration=system.json \\
  --remote-memory-configuration=remote_memory.json \\
  --network-configuration=network.json
"""


def export_astra_sim(scenario: ScenarioValues, report: Report) -> ExportFiles:
    """Return traces and configurations of a priced plan.

    Raises
    ------
    Refused
        If the fabric is no product of ASTRA-sim's building blocks, if stages divide their layers
        differently, or if the traces would have more than `MAX_NODES` nodes.
    """
    plan, point = report.plan, report.plan.point
    check_uniform(plan, _NAME)
    check_plain_experts(scenario, point, _NAME)
    refuse_first(
        (
            point.schedule in SPLIT and pipelined(point),
            "plan.schedule",
            f"must be 1f1b, gpipe or interleaved for {_NAME}",
            point.schedule,
            "pin search.schedule to 1f1b, gpipe or interleaved",
        )
    )
    problem = scenario.problem(plan.recompute)
    network, lost = astrasim_network(scenario.fabric)
    lost += unsaid(scenario.fabric, None)
    steps = workload(problem, plan)
    nodes = point.devices_used // point.pp * sum(map(len, steps))
    refuse_first(
        (
            nodes > MAX_NODES,
            "plan",
            f"must need at most {MAX_NODES:,} trace nodes for {_NAME}",
            f"{nodes:,}",
            "lower workload.global_batch_sequences, or use fewer devices",
        )
    )
    npu = _npus(problem.network)
    rank_mapping = npu[device_order(problem.network, point.device_order)[: point.devices_used]]
    groups = groups_of(point)
    stage = point.layout.stage_of(point.devices_used)
    stride = point.layout.stride("pp")
    shared = [stage_nodes(of_stage, len(network["npus_count"])) for of_stage in steps]

    def peer(rank: int, hop: int) -> int:
        return rank + ((int(stage[rank]) + hop) % point.pp - int(stage[rank])) * stride

    files: dict[str, str | bytes] = {
        f"workload.{npu_number}.et": chakra.metadata() for npu_number in range(len(npu))
    }
    files |= {
        f"workload.{int(rank_mapping[rank])}.et": trace(
            shared[int(stage[rank])], rank, groups, peer, rank_mapping
        )
        for rank in range(point.devices_used)
    }
    top = header(scenario, plan, "astra-sim")
    has_groups = bool(groups.members)
    if has_groups:
        members = {
            str(int(groups.number[axis][group[0]])): rank_mapping[group].tolist()
            for axis, of_axis in groups.members.items()
            for group in of_axis
        }
        files["groups.json"] = json.dumps(members) + "\n"
    return ExportFiles(
        files
        | {
            "network.json": json.dumps(network, indent=2) + "\n",
            "system.json": json.dumps(_system(scenario, network["topology"]), indent=2) + "\n",
            "remote_memory.json": json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}) + "\n",
            "run.sh": _RUN.format(top=top, groups="groups.json" if has_groups else "empty"),
        },
        (
            *(
                f"The network leaves out: {loss}"
                for loss in (*lost, *unsaid(scenario.fabric, None))
            ),
            "Collectives of one pass and axis are one node; compute times are whole microseconds.",
            "ASTRA-sim hides nothing behind compute here and knows no kernel launches.",
        ),
    )


def _npus(network: Network) -> IntArray:
    """Return ASTRA-sim's number of every device: the innermost dimension counts fastest."""
    if network.torus is not None:
        return np.asarray(network.place)
    return np.argsort(device_order(network, "rack"))  # the inverse of the order


def _system(scenario: ScenarioValues, kinds: Sequence[object]) -> dict[str, object]:
    ways = {"Ring": "ring", "FullyConnected": "direct", "Switch": "ring"}
    rings = [ways[str(kind)] for kind in kinds]
    return {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 10,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 4,
        "all-reduce-implementation": rings,
        "all-gather-implementation": rings,
        "reduce-scatter-implementation": rings,
        "all-to-all-implementation": rings,
        "collective-optimization": "localBWAware",
        "local-mem-bw": scenario.accelerator.memory_bandwidth_Bps / 1e9,
        "boost-mode": 0,
        "roofline-enabled": 0,
    }
