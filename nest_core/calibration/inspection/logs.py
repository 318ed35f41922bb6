"""What people print of a cluster, recognised by what it says and not by what its file is called.

How many nodes and processes a launch command starts: srun, torchrun, mpirun, deepspeed.

A command may hold several launchers (``srun -N 16 torchrun --nproc-per-node 8``): processes that
the inner one starts on every node count, one for each device.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath

from nest_core.calibration.collectives.nccl_log import NcclRun, complete_run, is_log
from nest_core.calibration.logs.launch import launch_words
from nest_core.documents import InputError, require, shortened
from nest_core.interop.formats import Assumed, format_of
from nest_core.interop.formats.nvidia_topo import NodeTopology, is_nvidia_topo, read_nvidia_topo
from nest_core.interop.formats.slurm import slurm_nodes
from nest_core.interop.formats.slurm_yaml import slurm_yaml_nodes
from nest_core.interop.formats.values import Source

__all__ = ["FabricLog", "Launch", "Logs", "TopoLog", "read_launch", "read_logs"]

FIELD = "--launch"

_NODES = ("--nnodes", "--nodes", "--num_nodes", "-N")
_PER_NODE = (
    *("--nproc-per-node", "--gpus-per-node", "--num_gpus", "--gres", "--ntasks-per-node"),
    *("-npernode", "--npernode", "-ppn"),
)
"""Innermost first: srun may start one torchrun per node, which starts a process per device."""
_DEVICES = ("--ntasks", "-n", "-np", "--np")
_OPTIONS = (*_NODES, *_PER_NODE, *_DEVICES)
_SHORT = re.compile(r"(-[Nn])=?(\d+)")
_COUNT = re.compile(r"(?:gpu:(?:[\w.]+:)?)?(\d{1,7})(?:\(.*)?")
_PROGRAM = re.compile(r".*(?:_perf|\.py|\.sh)")
"""What is started: options behind it are its own (``all_reduce_perf -n 20``)."""
_ELASTIC = re.compile(r"(\d{1,7})[:-](\d{1,7})")


@dataclass(frozen=True, slots=True)
class Launch:
    """What a command says of the machine; None where it is silent.

    Parameters
    ----------
    nodes, per_node, devices : int or None
        Nodes, processes on each, and all processes.
    """

    nodes: int | None
    per_node: int | None
    devices: int | None


def read_launch(command: str) -> Launch:
    """Return nodes and processes of a launch command.

    Raises
    ------
    InputError
        If it states none, or two that contradict one another.

    Examples
    --------
    >>> read_launch("srun -N 16 --ntasks-per-node 1 torchrun --nproc_per_node=8 train.py")
    Launch(nodes=16, per_node=8, devices=128)
    >>> read_launch("mpirun -np 64 all_reduce_perf")
    Launch(nodes=None, per_node=None, devices=64)
    """
    counts = _options(command)
    require(
        len({counts[option] for option in _NODES if option in counts}) <= 1,
        FIELD,
        "must state one number of nodes",
        command,
        "let srun and torchrun start the same nodes",
    )
    nodes = _first(counts, _NODES)
    per_node, devices = _first(counts, _PER_NODE), _first(counts, _DEVICES)
    if nodes and devices and not per_node and devices % nodes == 0:
        per_node = devices // nodes
    inner = any(option in counts for option in _PER_NODE[:4])
    if nodes and per_node:
        require(
            not (devices and not inner and devices != nodes * per_node),
            FIELD,
            "must start as many processes as its nodes times those of a node",
            f"{devices or 0:,} on {nodes:,} nodes of {per_node:,}",
            "correct the command",
        )
        devices = nodes * per_node
    elif per_node and devices and not inner:
        nodes = -(-devices // per_node)
    require(
        nodes or per_node or devices,
        FIELD,
        "must state nodes or processes",
        command,
        "give it as in srun -N 16 --ntasks-per-node 8, or torchrun --nnodes 16 --nproc-per-node 8",
    )
    return Launch(nodes, per_node, devices)


def _options(command: str) -> dict[str, int]:
    """Return counts by option, spelled with hyphens; of an option given twice the last."""
    words = launch_words(command)
    counts: dict[str, int] = {}
    by_mpi = any(PurePath(word).name in ("mpirun", "mpiexec") for word in words)
    for place, word in enumerate(
        itertools.takewhile(lambda text: not _PROGRAM.fullmatch(text), words)
    ):
        short = _SHORT.fullmatch(word)
        name, equals, value = word.partition("=")
        if short:
            name, equals, value = short[1], "=", short[2]
        if name == "-N" and by_mpi:  # Open MPI's processes per node
            name = "--npernode"
        if name.startswith("--") and name not in _OPTIONS:
            name = name.replace("_", "-")
        if name not in _OPTIONS:
            continue
        value = value if equals else (words[place + 1] if place + 1 < len(words) else "")
        if (count := _count(name, value)) is not None:
            counts[name] = count
    return counts


def _count(name: str, value: str) -> int | None:
    """Return the number that an option states; None for words such as ``gpu``."""
    elastic = _ELASTIC.fullmatch(value)
    require(
        not elastic or elastic[1] == elastic[2],
        f"{FIELD} {name}",
        "must be one number",
        value,
        "say how many nodes the job had",
    )
    count = _COUNT.fullmatch(elastic[1] if elastic else value)
    require(
        not count or int(count[1]),
        f"{FIELD} {name}",
        "must be above 0",
        value,
        "correct the command",
    )
    return int(count[1]) if count else None


def _first(counts: dict[str, int], options: tuple[str, ...]) -> int | None:
    return next((counts[option] for option in options if option in counts), None)


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
    kind = "subnet" if format == "ibnetdiscover" else "slurm"
    before = logs.subnet if kind == "subnet" else logs.slurm
    if before is not None:
        what = "output of ibnetdiscover" if kind == "subnet" else "Slurm topology"
        raise InputError("LOG", f"must be one {what}", f"{before.name} and {name}", "leave one out")
    logs.kinds[name] = (
        "ibnetdiscover" if kind == "subnet" else f"Slurm {format.removeprefix('slurm-')}"
    )
    if kind == "subnet":
        logs.subnet = FabricLog(name, text, format)
    else:
        nodes = slurm_yaml_nodes if format == "slurm-yaml" else slurm_nodes
        logs.slurm = FabricLog(name, text, format, tuple(nodes(Source(text, name, Assumed()))))
