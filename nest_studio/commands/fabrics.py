"""Commands on fabrics: ``levels``, ``collective``, ``traffic`` and ``convert``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from nest_core.documents import (
    InputError,
    preset_names,
    preset_path,
    read_bytes,
    read_text,
    require,
    setting,
    table,
    write_file,
)
from nest_studio.commands.output import JsonFlag, emit, show

if TYPE_CHECKING:
    from nest_core.fabric import Fabric
    from nest_core.interop.formats import Assumed
    from nest_core.network import IntArray, Network, Protocol

__all__ = ["collective", "convert", "levels", "traffic"]


def levels(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    scenario: Annotated[
        str | None,
        typer.Option(help="Scenario preset or file to plan on it, for level-wise cost matrices."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the levels of a fabric, innermost first, and a scenario's level-wise cost matrices."""
    import nest_core as nest

    show(nest.levels(fabric, scenario), as_json)


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
    from nest_core.network import check_op, collapse, member_groups
    from nest_core.network import collective as answer_of
    from nest_core.report.explain import busiest_text
    from nest_core.scenario import load_fabric

    network, plain = collapse(load_fabric(fabric)), _plain(op)
    name = algorithm.lower().replace("-", "_").replace(" ", "_")
    name = SYNONYMS.get(name, name)
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
        "busiest_links": [entry.to_json() for entry in answer.busiest],
        "candidates": [
            {"algorithm": entry.algorithm, "time_s": entry.time_s, "reason": entry.reason or None}
            for entry in answer.candidates
        ],
    }
    emit(fields, as_json, lambda of: _collective_text(of) + busiest_text(answer.busiest))


def _protocols(
    accelerator: str, network: Network, op: str, algorithm: str, groups: IntArray
) -> tuple[Protocol, ...]:
    """Return what the accelerator's library makes of the links; see `nest_core.costs.software`."""
    from nest_core.costs.software import software_of
    from nest_core.hardware import load_accelerator
    from nest_core.network import IDEAL, IN_NETWORK, KINDS

    if not accelerator:
        return IDEAL
    software = software_of(load_accelerator(accelerator))
    if algorithm == "library" and op in KINDS:
        return software.of_groups(network, KINDS[op][0], groups)
    return software.of_algorithm(network, op, groups, reduces=algorithm in IN_NETWORK)


def _plain(op: str) -> str:
    """Return an operation's name however it is spelled: all-reduce, AllReduce, all_reduce."""
    letters = op.lower().replace("-", "").replace("_", "").replace(" ", "")
    return SPELLINGS.get(letters, letters)


def _collective_text(fields: Mapping[str, Any]) -> str:
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


def traffic(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file (TOML).")],
    pattern: Annotated[str, typer.Option(help="dp_ring, dp_hier or pp.")],
    replica: Annotated[int, typer.Option(help="Devices of one replica, contiguous.")],
    size: Annotated[float, typer.Option("--bytes", help="A device's message (pp) or buffer (dp).")],
    stage: Annotated[
        int | None,
        typer.Option(help="Devices of one stage; those of a replica: all replicas in one stage."),
    ] = None,
    directions: Annotated[str, typer.Option(help="fwd, or fwdbwd: both ways at once.")] = "fwd",
    as_json: JsonFlag = False,
) -> None:
    """Time data- or pipeline-parallel traffic, with contention and without."""
    from nest_core.network import collapse
    from nest_core.network.patterns import Direction, Pattern
    from nest_core.network.patterns import traffic as count
    from nest_core.report.explain import busiest_text
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    result = count(
        collapse(specification),
        cast(Pattern, pattern),
        replica,
        stage,
        size,
        cast(Direction, directions),
        specification,
    )
    fields = {
        "time_s": result.time_s,
        "explicit_time_s": result.explicit_time_s,
        "contention_free_s": result.contention_free_s,
        "busiest_links": [entry.to_json() for entry in result.busiest],
    }
    emit(fields, as_json, lambda of: _traffic_text(of) + busiest_text(result.busiest))


def _traffic_text(fields: Mapping[str, Any]) -> str:
    explicit = fields["explicit_time_s"]
    lines = [
        f"{fields['time_s']:.4g} s with contention, {fields['contention_free_s']:.4g} s without",
        "not counted on explicit links (too many devices, or a twisted torus)"
        if explicit is None
        else f"{explicit:.4g} s counted on explicit links",
    ]
    return "\n".join(lines)


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Fabric preset or file.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    read_as: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="Format of IN, unless it is clear.")
    ] = "",
    write_as: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="Format of OUT, unless its ending says.")
    ] = "",
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="FILE",
            help="Forwarding tables beside what ibnetdiscover prints, as dump_lfts prints them.",
        ),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            "--assume",
            metavar="KEY=VALUE",
            help="What IN does not state: devices_per_node=4, link_bandwidth_GBps=25, …",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Convert a fabric file, saying what is lost."""
    from nest_core.bill.prices import load_prices
    from nest_core.documents.schema import FabricFile, checked
    from nest_core.fabric.files import build_fabric
    from nest_core.interop.formats import read_fabric, write_fabric
    from nest_core.interop.formats.exchange import MAX_COMPARED, lost_between
    from nest_core.interop.formats.lfts import MAX_TABLE_BYTES

    preset = source in preset_names("fabrics")
    path = preset_path("fabrics", f"{source}.toml") if preset else Path(source)
    to = write_as or _by_ending(target)
    content = read_text(path).encode()
    require(
        not os.path.exists(target) or not os.path.samefile(target, path),
        "OUT",
        "must not be the file that is read",
        str(target),
        "name another",
    )
    imported = read_fabric(
        content,
        path.name,
        format=read_as,
        assumed=_assumed(assume or ()),
        tables=b"" if tables is None else read_bytes(tables, MAX_TABLE_BYTES),
    )
    fabric = build_fabric(checked(FabricFile, imported.document))
    exported = write_fabric(fabric, to, document=imported.document)
    write_file(target, exported.text, "OUT")
    small = fabric.devices <= MAX_COMPARED
    fields = {
        "format": to,
        "read_as": imported.format,
        "devices": fabric.devices,
        "lost": lost_between(fabric, exported, to, load_prices()),
        "notes": (*imported.notes, *(_notes(fabric) if small else ())),
        "output": str(target),
    }
    emit(fields, as_json, _convert_text)


def _notes(fabric: Fabric) -> tuple[str, ...]:
    """Return what prices leave out, and what the routing of a subnet is assumed to be."""
    from nest_core.interop.formats.exchange import caveats
    from nest_core.network import collapse
    from nest_core.network.opensm import routing_notes

    network = collapse(fabric)
    return (*caveats(network), *routing_notes(fabric, network))


def _assumed(settings: Iterable[str]) -> Assumed:
    """Return the assumptions with some replaced."""
    from dataclasses import asdict

    from nest_core.interop.formats import Assumed

    figures = asdict(Assumed())
    for text in settings:
        key, value = setting(text, "--assume")
        require(
            key in figures,
            "--assume",
            "must name an assumption",
            key,
            "use " + ", ".join(figures),
        )
        is_kind = isinstance(value, int) or key != "devices_per_node"
        if isinstance(value, bool) or not isinstance(value, int | float) or not is_kind:
            rule = "must be a number" if is_kind else "must be a whole number"
            raise InputError(f"--assume {key}", rule, value, "correct it")
        figures[key] = value
    return Assumed(**figures)


def _by_ending(target: Path) -> str:
    """Return the format that OUT's ending names; of several the first."""
    from nest_core.interop.formats import FORMATS

    suffix = target.suffix.lower()
    for entry in FORMATS.values():
        if entry.writes and suffix in entry.suffixes:
            return entry.name
    writable = [entry for entry in FORMATS.values() if entry.writes]
    endings = dict.fromkeys(suffix for entry in writable for suffix in entry.suffixes)
    raise InputError(
        "OUT",
        "must end in one of " + " ".join(endings),
        str(target),
        "rename it, or name the format: --to " + ", ".join(entry.name for entry in writable),
    )


def _convert_text(fields: Mapping[str, Any]) -> str:
    lines = [
        f"{fields['output']}: {fields['devices']:,} devices, {fields['read_as']} to"
        f" {fields['format']}"
    ]
    for title, key in (("Assumed or left out in reading", "notes"), ("Lost in writing", "lost")):
        if fields[key]:
            lines += ["", f"{title}:", *(f"- {sentence}" for sentence in fields[key])]
    return "\n".join(lines)
