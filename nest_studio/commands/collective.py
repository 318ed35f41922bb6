"""``nest-studio collective``: the time of one collective on a fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.network import IntArray, Network, Protocol

__all__ = ["collective"]

SPELLINGS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "pointtopoint": "point_to_point",
    "p2p": "point_to_point",
    "sendreceive": "send_receive",
    "sendrecv": "send_receive",
}

# How papers, simulators and libraries spell what the studio has one name for.
SYNONYMS = {
    "recursive_halving_doubling": "halving_doubling",
    "halving_doubling_flat_near": "halving_doubling",
    "halving_doubling_flat_far": "halving_doubling_far",
    "halving_doubling_dimwise": "hierarchical_halving",
    "ring_flat": "ring",
    "ring_dimwise": "hierarchical_ring",
    "ring_bidir_multiport": "ring_bidirectional",
    "ring_bidir_multiport_dimwise": "multi_ring",
    "torus_multi_ring": "multi_ring",
    "nccl": "library",
    "tree": "double_binary_tree",
    "nvls": "in_network",
    "sharp": "in_network",
    "direct_flat": "direct",
    "direct_all_at_once": "direct",
    "direct_all_at_once_dimwise": "hierarchical_direct",
    "direct_window1": "pairwise",
    "direct_window1_dimwise": "hierarchical_pairwise",
    "pairwise_flat": "pairwise",
}


def collective(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    op: Annotated[str, typer.Option(help="all-reduce, all-gather, reduce-scatter, all-to-all, …")],
    size_bytes: Annotated[
        float, typer.Option("--bytes", help="Per-rank input; for all-gather the per-rank output.")
    ],
    size: Annotated[int, typer.Option(help="Devices in a group.")],
    stride: Annotated[int, typer.Option(help="Distance between the members of a group.")] = 1,
    concurrent: Annotated[
        Literal["one", "all"],
        typer.Option(help="one group, or all that tile the fabric at once."),
    ] = "one",
    algorithm: Annotated[
        str, typer.Option(help="library (what plans are priced by), fastest, or a name.")
    ] = "library",
    accelerator: Annotated[
        str, typer.Option(help="Preset whose library's curves count; without, links alone.")
    ] = "",
    in_network: Annotated[
        bool, typer.Option("--in-network", help="Switches can reduce (NVLS, SHARP), for fastest.")
    ] = False,
    chunks: Annotated[
        int, typer.Option(help="Parts in which the buffer passes through a named algorithm.")
    ] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Time a collective: its algorithm, bus bandwidth and bottleneck."""
    from nest_core.network import collapse
    from nest_core.network.algorithms import check_op
    from nest_core.network.collective import collective as answer_of
    from nest_core.network.collective import member_groups
    from nest_core.scenario import load_fabric

    network, plain, name = collapse(load_fabric(fabric)), _plain(op), _algorithm(algorithm)
    check_op(plain)
    groups = member_groups(network.devices, size, stride=stride, concurrent=concurrent)
    answer = answer_of(
        network,
        plain,
        size_bytes,
        size,
        stride=stride,
        concurrent=concurrent,
        algorithm=name,
        in_network=in_network,
        chunks=chunks,
        protocols=_protocols(accelerator, network, plain, name, groups),
    )
    fields = {
        "time_s": answer.time_s,
        "bus_bandwidth_Bps": answer.bus_bandwidth_Bps,
        "algorithm": answer.algorithm,
        "bottleneck": answer.bottleneck,
        "level": answer.level,
        "candidates": [
            {"algorithm": entry.algorithm, "time_s": entry.time_s, "reason": entry.reason or None}
            for entry in answer.candidates
        ],
    }
    emit(fields, as_json, _as_text)


def _protocols(
    accelerator: str, network: Network, op: str, algorithm: str, groups: IntArray
) -> tuple[Protocol, ...]:
    """Return what the accelerator's library makes of the links; see `nest_core.costs.software`."""
    from nest_core.costs.software import software_of
    from nest_core.hardware import load_accelerator
    from nest_core.network import IDEAL
    from nest_core.network.algorithms import IN_NETWORK
    from nest_core.network.collective import KINDS

    if not accelerator:
        return IDEAL
    software = software_of(load_accelerator(accelerator))
    if algorithm == "library" and op in KINDS:
        return software.of_groups(network, KINDS[op][0], groups)
    return software.of_algorithm(network, op, groups, reduces=algorithm in IN_NETWORK)


def _algorithm(name: str) -> str:
    plain = name.lower().replace("-", "_").replace(" ", "_")
    return SYNONYMS.get(plain, plain)


def _plain(op: str) -> str:
    """Return an operation's name however it is spelled: all-reduce, AllReduce, all_reduce."""
    letters = op.lower().replace("-", "").replace("_", "").replace(" ", "")
    return SPELLINGS.get(letters, letters)


def _as_text(fields: Mapping[str, Any]) -> str:
    lines = [
        f"{fields['time_s'] * 1e6:,.4g} us, {fields['bus_bandwidth_Bps'] / 1e9:,.4g} GB/s bus",
        f"algorithm   {fields['algorithm']}",
        f"bottleneck  {fields['bottleneck']}",
    ]
    others = [entry for entry in fields["candidates"] if entry["time_s"] is not None]
    if len(others) > 1:
        rows = [[entry["algorithm"], f"{entry['time_s'] * 1e6:,.4g}"] for entry in others]
        lines += ["", table(["algorithm", "us"], rows)]
    return "\n".join(lines)
