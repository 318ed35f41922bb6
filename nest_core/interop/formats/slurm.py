"""Slurm's topology.conf: the tree and block plugins (SchedMD, topology.conf(5)).

Keys are case-insensitive, ``#`` starts a comment, a backslash continues a line. A tree cannot
say that a switch has several parents, nor any rate: writing one leaves a logical parent per
level, as slurmibtopology and NVIDIA's topograph do.

Slurm's host lists: ``node[01-32,40],login`` in and out.

Zero padding is kept, brackets may stand anywhere and several times; commas outside brackets
separate entries. How many names a list has is counted before any is made.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from nest_core.documents import plural, shortened
from nest_core.fabric import MAX_DEVICES, ROLES, Fabric, Hierarchical, IntArray
from nest_core.interop.formats.trees import (
    Hosts,
    TreeSwitch,
    block_document,
    host_groups,
    tree_document,
)
from nest_core.interop.formats.values import FabricText, Reading, Source

__all__ = [
    "SlurmLine",
    "compressed",
    "expanded",
    "given_names",
    "read_slurm",
    "topology",
    "write_slurm_block",
    "write_slurm_tree",
]

_ENTRY = r"(?:[^\[\],\s]|\[[^\[\]\s]*\])+"
_LIST = re.compile(f"{_ENTRY}(?:,{_ENTRY})*")
_PART = re.compile(r"\[([^\]]*)\]|([^\[]+)")
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_PADDING = re.compile(
    r"(?:fake|phantom|pad|padding|dummy|placeholder|ghost)[-_]?\d+", re.IGNORECASE
)
"""Nodes that fill a block up to its size, as those that NVIDIA's topograph writes."""
_HOST = re.compile(r"[\w.-]{1,200}", re.ASCII)
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")


def expanded(
    source: Source, where: int | str, text: str, max_names: int = MAX_DEVICES
) -> list[str]:
    """Return the names of a list, in its order.

    Raises
    ------
    InputError
        For what is no list, repeats a name or has more than ``max_names``.
    """
    source.require(
        _LIST.fullmatch(text),
        where,
        "must have a host list such as node[01-32],login",
        text,
        "correct the list",
    )
    names: list[str] = []
    for entry in re.findall(_ENTRY, text):
        parts = [
            _names(source, where, inside, max_names) if inside or not plain else [plain]
            for inside, plain in _PART.findall(entry)
        ]
        _check_count(source, where, text, len(names) + math.prod(map(len, parts)), max_names)
        names += map("".join, itertools.product(*parts))
    source.require(
        len(set(names)) >= len(names),
        where,
        "must list every name once",
        text,
        "remove the repeated ones",
    )
    return names


def compressed(names: Iterable[str]) -> str:
    """Return a short list of the names, in their order.

    Examples
    --------
    >>> compressed(["node08", "node09", "node10", "login", "node1"])
    'node[08-10],login,node1'
    """
    runs: list[tuple[str, list[str]]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        stem, number = (match[1], match[2]) if match else (name, "")
        if number and runs and runs[-1][0] == stem and _follows(runs[-1][1][-1], number):
            runs[-1][1].append(number)
        else:
            runs.append((stem, [number]))
    entries: list[str] = []
    for (stem, _), group in itertools.groupby(runs, key=lambda run: (run[0], run[1] != [""])):
        inside = [n[0] if len(n) == 1 else f"{n[0]}-{n[-1]}" for _, n in group]
        is_single = len(inside) == 1 and "-" not in inside[0]
        entries.append(stem + (inside[0] if is_single else f"[{','.join(inside)}]"))
    return ",".join(entries)


def _follows(last: str, number: str) -> bool:
    # 9 to 10 keeps its padding only where there was none.
    plain = not last.startswith("0") and not number.startswith("0")
    same = bool(last) and (len(last) == len(number) or plain)
    return same and int(number) == int(last) + 1


def _names(source: Source, where: int | str, inside: str, max_names: int) -> list[str]:
    numbers: list[str] = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise source.wrong(
                where,
                "must have numbers and ranges in brackets",
                f"[{inside}]",
                "write them as in node[1-8,12]",
            )
        low, high = match[1], match[2] or match[1]
        count = int(high) - int(low) + 1
        source.require(
            count > 0, where, "must have ranges that ascend", f"[{part}]", "swap the ends"
        )
        _check_count(source, where, f"[{inside}]", len(numbers) + count, max_names)
        # Padding is that of the lower end: node[01-12] has node01.
        width = len(low) if low.startswith("0") or len(low) == len(high) else 1
        numbers += [f"{number:0{width}d}" for number in range(int(low), int(low) + count)]
    return numbers


def _check_count(source: Source, where: int | str, text: str, count: int, max_names: int) -> None:
    source.require(
        count <= max_names,
        where,
        f"must list at most {max_names:,} names",
        text,
        "shorten the range",
    )


_KEYS = ("switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes", "ringname")
# As Slurm's own parser has it: blanks around the sign, values in double quotes.
_PAIR = re.compile(r"\s*([A-Za-z]+)\s*=\s*(?:\"([^\"]*)\"|([^\s\"]+))(?=\s|$)")
_BETWEEN = re.compile(r"\s*,\s*|\s+")

SlurmLine = tuple[int | str, dict[str, str]]
"""Where a line stands, and its values by key of topology.conf, in lower case."""


def read_slurm(source: Source) -> Reading:
    """Return levels from a tree or from blocks."""
    return topology(source, list(_lines(source)))


def _expanded(
    source: Source, number: int | str, text: str, room: int = MAX_DEVICES
) -> tuple[str, ...]:
    """Return the names of a list, which may stand on a line of its own."""
    where = getattr(text, "line", number)
    source.require(
        text.lower() != "all",
        where,
        "must name its nodes here, where no slurm.conf says which there are",
        text,
        "write them as in node[01-32]",
    )
    return tuple(expanded(source, where, text, room)) if text else ()


def topology(source: Source, lines: list[SlurmLine]) -> Reading:
    """Return levels from the lines of a topology.conf, or from those of a file like it.

    Raises
    ------
    InputError
        For what is neither a tree nor blocks.
    """
    kinds = {key for _, line in lines for key in line if key.endswith(("name", "sizes"))}
    source.require(
        "ringname" not in kinds,
        "",
        "must define switches or blocks",
        "rings",
        "describe it as a graph",
    )
    source.require(
        "switchname" not in kinds or len(kinds) <= 1,
        "",
        "must define either switches or blocks",
        "both",
        "split the file",
    )
    of_blocks = bool(kinds & {"blockname", "blocksizes"})
    kind, others = (
        ("block", ("nodes",)) if of_blocks else ("switch", ("switches", "nodes", "linkspeed"))
    )
    switches: dict[str, TreeSwitch] = {}
    sizes: list[int] = []
    padding: list[str] = []
    room = MAX_DEVICES
    for number, line in lines:
        if "blocksizes" in line:
            sizes = [
                int(source.number(number, "BlockSizes", text, whole=True))
                for text in line["blocksizes"].split(",")
            ]
            _check_block_sizes(source, number, sizes)
            continue
        name = _required(source, number, line, f"{kind}name", others)
        source.require(
            name not in switches,
            number,
            f"must define a {kind} once",
            name,
            "remove the second one",
        )
        below = _expanded(source, number, line.get("switches", ""), room)
        nodes = _expanded(source, number, line.get("nodes", ""), room - len(below))
        room -= len(below) + len(nodes)
        real = tuple(node for node in nodes if not _PADDING.fullmatch(node))
        padding += [node for node in nodes if _PADDING.fullmatch(node)]
        switches[name] = TreeSwitch(number, below, real, len(nodes))
    document, notes = (
        block_document(source, switches, sizes) if of_blocks else tree_document(source, switches)
    )
    filling = shortened(compressed(dict.fromkeys(padding)), 200)
    more = {
        f"{plural(len(padding), 'padding node')}, as their names say, left out:"
        f" {filling}.": padding,
        "LinkSpeed left out: Slurm gives it no unit and does not use it.": any(
            "linkspeed" in line for _, line in lines
        ),
    }
    return document, (*notes, *(note for note, holds in more.items() if holds))


def write_slurm_tree(fabric: Fabric) -> FabricText:
    """Return the fabric as a tree of switches and hosts.

    Hosts without names are ``node0000``, ``node0001``, ...
    """
    hosts = host_groups(fabric, "a Slurm tree")
    names = _host_names(fabric, hosts)
    lines = []
    below, key = names, "Nodes"
    members = np.arange(len(names))
    for height, group in enumerate(hosts.groups):
        stem = ROLES[height] if height < len(ROLES) else f"tier{height + 1}s"
        # One member speaks for each child: children are whole groups.
        switches = [f"{stem}{number}" for number in range(int(group.max()) + 1)]
        children: list[list[str]] = [[] for _ in switches]
        for child, member in enumerate(members.tolist()):
            children[group[member]].append(below[child])
        lines += [
            f"SwitchName={switch} {key}={compressed(inside)}"
            for switch, inside in zip(switches, children, strict=True)
        ]
        members = np.unique(group, return_index=True)[1]
        below, key = switches, "Switches"
    return FabricText("\n".join(lines) + "\n", _lost(fabric, hosts))


def write_slurm_block(fabric: Fabric) -> FabricText:
    """Return the fabric as blocks: hosts under one leaf, and sizes that gather as many blocks.

    Raises
    ------
    InputError
        For tori, and for hosts that no switch gathers.
    """
    hosts = host_groups(fabric, "Slurm blocks")
    names = np.array(_host_names(fabric, hosts))
    block = hosts.groups[0]
    sizes = np.bincount(block)
    lines = _block_lines(names, block)
    base, lost = int(sizes.min()), []
    block_sizes = [base]
    first = np.unique(block, return_index=True)[1]
    for group in hosts.groups[1:]:
        counts = np.bincount(group[first])
        # The outermost gathers all; a size is written where it is a power of two of blocks.
        step = int(counts.max())
        equal = (counts[:-1] == step).all() and (np.diff(group[first]) >= 0).all()
        if step & (step - 1) == 0 and equal:
            if base * step > block_sizes[-1]:
                block_sizes.append(base * step)
        elif counts.size > 1:
            lost.append(
                f"Groups of {plural(step, 'block')}, because sizes are powers of two of blocks in a"
                " row."
            )
    lines.append("BlockSizes=" + ",".join(map(str, block_sizes)))
    return FabricText("\n".join(lines) + "\n", _lost(fabric, hosts) + tuple(lost))


def _block_lines(names: npt.NDArray[np.str_], block: IntArray) -> list[str]:
    order = np.argsort(block, kind="stable")
    cuts = np.flatnonzero(np.diff(block[order])) + 1
    return [
        f"BlockName=block{number} Nodes={compressed(inside.tolist())}"
        for number, inside in enumerate(np.split(names[order], cuts))
    ]


def _check_block_sizes(source: Source, where: int | str, sizes: list[int]) -> None:
    """Refuse sizes that are no powers of two of the first."""
    odd = [size for size in sizes if size not in {sizes[0] << power for power in range(31)}]
    source.require(
        not odd,
        where,
        "must have block sizes that are the first one times powers of two",
        next(iter(odd), 0),
        "correct BlockSizes",
    )
    source.require(
        sorted({*sizes}) == sizes, where, "must have block sizes that ascend", sizes, "sort them"
    )


def _host_names(fabric: Fabric, hosts: Hosts) -> list[str]:
    count = int(hosts.host_of.max()) + 1
    if given := given_names(fabric, count):
        return given
    return [f"node{number:0{max(4, len(str(count - 1)))}d}" for number in range(count)]


def given_names(fabric: Fabric, hosts: int) -> list[str]:
    """Return what the fabric's file calls its hosts; none where Slurm could not."""
    labels = fabric.group_labels(fabric.host_level if isinstance(fabric, Hierarchical) else 0)
    names = [*filter(_HOST.fullmatch, dict.fromkeys(labels))]
    return names if len(names) == hosts else []


def _lost(fabric: Fabric, hosts: Hosts) -> tuple[str, ...]:
    devices = np.bincount(hosts.host_of)
    per_host = (
        f"{devices.min()}"
        if devices.min() == devices.max()
        else (f"{devices.min()} to {devices.max()}")
    )
    return (
        "Rates, latencies, numbers of links and oversubscription: Slurm states none.",
        f"The inside of nodes: each holds {per_host} of the {plural(fabric.devices, 'device')}.",
        *(
            ["Names: hosts are numbered node0000 and on, in the order of their devices."]
            if not given_names(fabric, len(devices))
            else []
        ),
        *hosts.lost,
    )


def _required(
    source: Source, number: int | str, line: dict[str, str], key: str, others: tuple[str, ...]
) -> str:
    for other in line:
        source.require(
            other == key or other in others,
            number,
            "must have keys that belong together",
            other,
            "split the line",
        )
    source.require(
        key in line,
        number,
        f"must start with {key}=",
        " ".join(line),
        "name what the line defines",
    )
    return line[key]


def _lines(source: Source) -> Iterator[SlurmLine]:
    """Yield numbers and pairs of the lines that say something."""
    pending, first = "", 0
    for number, raw in enumerate(source.text.splitlines(), start=1):
        text = raw.partition("#")[0].rstrip()
        first = first if pending else number
        pending += text.removesuffix("\\") + (" " if text.endswith("\\") else "")
        if text.endswith("\\"):
            continue
        line, pending = pending.strip(), ""
        if not line:
            continue
        stated = [
            (key.lower(), _BETWEEN.sub(",", (quoted or plain).strip()))
            for key, quoted, plain in _PAIR.findall(line)
        ]
        wrong = [*_PAIR.sub("", line).split(), *(k for k, v in stated if k not in _KEYS or not v)]
        source.require(
            not wrong,
            first,
            "must consist of keys of topology.conf and their values",
            "".join(wrong[:1]),
            "write it as in SwitchName=leaf0 Nodes=node[1-8]",
        )
        pairs = dict(stated)
        keys = [key for key, _ in stated]
        twice = [key for key in pairs if keys.count(key) > 1]
        source.require(not twice, first, "must state a key once", "".join(twice[:1]), "remove one")
        yield first, pairs
    source.require(
        not pending, first, "must end after its last line", "a backslash", "complete the file"
    )
