"""What people print of a cluster, recognised by what it says and not by what its file is called."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nest_core.calibration.collectives.nccl_log import NcclRun, complete_run, is_log
from nest_core.documents import InputError, require, shortened
from nest_core.interop.formats import Assumed, format_of, read_fabric
from nest_core.interop.formats.nvidia_topo import NodeTopology, is_nvidia_topo, read_nvidia_topo
from nest_core.interop.formats.values import Source

__all__ = ["FabricLog", "Logs", "TopoLog", "read_logs"]

SLURM = ("slurm-tree", "slurm-block", "slurm-yaml")
KNOWN = "the output of ibnetdiscover, nvidia-smi topo -m or nccl-tests, or a Slurm topology file"


@dataclass(frozen=True, slots=True)
class FabricLog:
    """A file of a format of `nest_core.interop.formats`, and the nodes that Slurm lists in it."""

    name: str
    text: str
    format: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopoLog:
    """The inside of a node."""

    name: str
    node: NodeTopology


@dataclass(slots=True)
class Logs:
    """All that was given, by kind."""

    subnet: FabricLog | None = None
    slurm: FabricLog | None = None
    topo: TopoLog | None = None
    nccl: list[NcclRun] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    """What each file was read as."""


def read_logs(files: Iterable[tuple[str, str]]) -> Logs:
    """Return logs from the names and texts of files, in any order.

    Raises
    ------
    InputError
        For what is none of them, is cut off, failed, or is there twice.
    """
    logs = Logs()
    for given, text in files:
        name = shortened(given, 60) or "file"
        require(
            text.strip(), name, f"must hold {KNOWN}", "empty", "save the command's output again"
        )
        topo, nccl = is_nvidia_topo(text), is_log(text)
        if topo:
            _add_topo(logs, name, text)
        if nccl:
            logs.nccl.append(_nccl(name, text))
            logs.kinds[name] = "nccl-tests"
        if not topo and not nccl:
            _add_fabric(logs, name, text)
    require(logs.kinds, "LOG", f"must be {KNOWN}", "none", "name one at least")
    return logs


def _add_topo(logs: Logs, name: str, text: str) -> None:
    logs.kinds[name] = "nvidia-smi topo -m"
    topo = TopoLog(name, read_nvidia_topo(Source(text, name, Assumed())))
    logs.topo = logs.topo or topo
    require(
        topo.node == logs.topo.node,
        name,
        f"must show a node like that of {logs.topo.name}",
        "another",
        "inspect one kind of node at a time",
    )


def _nccl(name: str, text: str) -> NcclRun:
    run = complete_run(text, name)
    accelerators = dict.fromkeys(accelerator for *_, accelerator in run.ranks)
    require(
        len(accelerators) == 1,
        name,
        "must list ranks on one kind of accelerator",
        " and ".join(accelerators) or "none",
        "save the whole output of all_reduce_perf or its siblings on nodes that are alike",
    )
    return run


def _add_fabric(logs: Logs, name: str, text: str) -> None:
    try:
        format = format_of("", text)
    except InputError:
        format = ""
    require(
        "\0" not in text and format in (*SLURM, "ibnetdiscover"),
        name,
        f"must be {KNOWN}",
        "binary" if "\0" in text else "something else",
        "name the file that such a command wrote",
    )
    if format == "ibnetdiscover":
        before, kind, what = logs.subnet, format, "output of ibnetdiscover"
        logs.subnet = FabricLog(name, text, format)
    else:
        before, kind, what = logs.slurm, f"Slurm {format.removeprefix('slurm-')}", "Slurm topology"
        levels = read_fabric(text.encode(), name, format=format).document["level"]
        logs.slurm = FabricLog(name, text, format, tuple(levels[0].get("names", ())))
    require(
        before is None,
        "LOG",
        f"must be one {what}",
        f"{before.name if before else ''} and {name}",
        "leave one out",
    )
    logs.kinds[name] = kind
