"""Order the hosts of an allocation so that a plan's groups lie on the fabric as they were planned.

Runs inside a job, on Python 3.8 or newer and its own library alone; exports carry it as it is::

    python3 place_job.py shapes.json got.txt ranks > hosts.txt

``shapes.json`` says which nodes of the plan must stay below one switch, level by level, and what
the planner found that it costs where some of these groups are cut (`nest_core.interop.exporters.
shapes`). ``got.txt`` has a line per node, ``HOST [ADDRESS]``, the address as Slurm's
``SLURM_TOPOLOGY_ADDR`` has it; lines of ``scontrol show topology`` may follow for hosts without
one. What is written has one host per line: ``ranks`` for every rank (Slurm's arbitrary
distribution, ``--map-by seq`` of Open MPI), ``nodes`` for every node (torchrun's node ranks);
``rankfile`` is Open MPI's. One line on standard error says what was done.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["AllocationError", "OrderedHosts", "place", "written"]


class AllocationError(ValueError):
    """An allocation that the plan cannot run on: rule, value and remedy of one sentence."""

    def __init__(self, rule: str, value: str, remedy: str) -> None:
        super().__init__(f"the allocation {rule}, but has {value}: {remedy}.")
        self.rule, self.value, self.remedy = rule, value, remedy


@dataclass(frozen=True)
class OrderedHosts:
    """Hosts in the plan's order of nodes.

    Parameters
    ----------
    hosts : list of str
    cut : list of int
        Groups of the plan that do not lie below one switch, level by level, innermost first.
    loss : float or None
        By how much an iteration is slower at most than planned; None where the plan's fabric has
        no price for it.
    words : str
        What was done, one line.
    """

    hosts: list[str]
    cut: list[int]
    loss: float | None
    words: str


def place(shapes: Mapping[str, Any], lines: Iterable[str]) -> OrderedHosts:
    """Order the hosts of an allocation.

    Raises
    ------
    AllocationError
        If it has too few hosts, hosts of another cluster, or one twice.
    """
    paths = _paths(lines)
    given = shapes["paths"]
    unknown = [host for host in paths if given and host not in given]
    _check(paths and len(unknown) == len(paths), "hosts of the plan's fabric", unknown)
    _check(unknown, "no host that the plan's fabric does not know", unknown)
    nodes = shapes["nodes"]
    _check(len(paths) < nodes, f"{nodes} hosts", [f"{len(paths)}"], "ask for more")
    paths = {host: tuple(given[host]) if given else path for host, path in paths.items()}
    blank = [host for host, path in paths.items() if not path]
    lone = blank if len(blank) < len(paths) else []
    paths.update((host, (host,)) for host in lone)
    levels = [level["groups"] for level in shapes["levels"]]
    order = _fill(list(range(nodes)), sorted(paths, key=lambda host: paths[host]), paths, levels)
    hosts = [order[node] for node in range(nodes)]
    cut = [
        sum(len({_above(paths[hosts[node]], height) for node in group}) > 1 for group in groups)
        for height, groups in enumerate(map(_members, levels))
    ]
    loss, words = _told(shapes, cut, max(map(len, paths.values())))
    if lone and levels:
        words += f"; hosts without a switch above them ({lone[0]}, ...) count as apart: {len(lone)}"
    return OrderedHosts(hosts, cut, loss, words)


def _check(wrong: object, what: str, got: Sequence[str], remedy: str = "submit it there") -> None:
    if wrong:
        text = ", ".join(got[:3]) + (", ..." if len(got) > 3 else "")
        raise AllocationError(f"must have {what}", text, remedy)


def _paths(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the switches above every host, outermost first."""
    paths: dict[str, tuple[str, ...]] = {}
    above: dict[str, list[tuple[int, str]]] = {}
    for line in lines:
        if listed := re.match(r"(?:Switch|Block)Name=(\S+) (?:Block)?(?:Level|Index)=(\d+)", line):
            inside = re.search(r" Nodes=(\S+)", line)
            level = 0 if line.startswith("Block") else int(listed[2])
            for host in _expanded(inside[1] if inside else ""):
                above.setdefault(host, []).append((-level, listed[1]))
        elif line.strip():
            host, *address = line.split()
            _check(host in paths, "every host once", [f"{host} twice"], "take one out")
            paths[host] = tuple(address[0].split(".")[:-1]) if address else ()
    return {
        host: path or tuple(name for _, name in sorted(above.get(host, ())))
        for host, path in paths.items()
    }


def _expanded(text: str) -> list[str]:
    """Return the names of a list of hosts such as n[1,3-5],login."""
    names: list[str] = []
    for entry in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        parts = [
            [
                f"{number:0{len(low)}d}" if low else part
                for part in piece.strip("[]").split(",")
                for low, _, high in [part.partition("-") if piece[0] == "[" else ("", "", "")]
                for number in range(int(low or 0), int(high or low or 0) + 1)
            ]
            for piece in re.findall(r"\[[^\]]*\]|[^\[]+", entry)
        ]
        names += map("".join, itertools.product(*parts))
    return names


def _above(path: tuple[str, ...], height: int) -> tuple[str, ...]:
    """Return the switch so far above a host; of hosts that name fewer, the outermost."""
    return path[: max(len(path) - height, 0)]


def _members(groups: Sequence[int]) -> list[list[int]]:
    """Return the nodes of every group."""
    members: dict[int, list[int]] = {}
    for node, group in enumerate(groups):
        members.setdefault(group, []).append(node)
    return list(members.values())


def _fill(
    nodes: Sequence[int],
    hosts: Sequence[str],
    paths: Mapping[str, tuple[str, ...]],
    levels: Sequence[Sequence[int]],
) -> dict[int, str]:
    """Return a host for every node, groups whole as far as switches have room for them.

    Largest groups come first, each below the switch that holds all of its inner groups whole and
    has the least room to spare. What fits below none is cut into its inner groups.
    """
    if not levels:
        return {node: hosts[place] for place, node in enumerate(nodes)}
    *inner, groups = levels
    height = len(inner)
    below: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        below.setdefault(_above(paths[host], height), []).append(host)
    members: dict[int, list[int]] = {}
    for node in nodes:
        members.setdefault(groups[node], []).append(node)
    placed: dict[int, str] = {}
    cut: list[int] = []
    for group in sorted(members.values(), key=len, reverse=True):
        room = [
            (len(free), switch)
            for switch, free in below.items()
            if len(free) >= len(group) and _whole(group, free, paths, inner)
        ]
        if not room:
            cut += group
            continue
        free = below[min(room)[1]]
        order = _fill(group, free, paths, inner)
        placed |= order
        used = set(order.values())
        free[:] = [host for host in free if host not in used]
    return placed | _fill(cut, [host for free in below.values() for host in free], paths, inner)


def _whole(
    nodes: Sequence[int],
    hosts: Sequence[str],
    paths: Mapping[str, tuple[str, ...]],
    levels: Sequence[Sequence[int]],
) -> bool:
    """Whether hosts take the groups of nodes without cutting one of the innermost level."""
    if not levels:
        return True
    order = _fill(nodes, hosts, paths, levels)
    switch_of: dict[int, set[tuple[str, ...]]] = {}
    for node, host in order.items():
        switch_of.setdefault(levels[0][node], set()).add(_above(paths[host], 0))
    return all(len(switches) == 1 for switches in switch_of.values())


def _told(shapes: Mapping[str, Any], cut: Sequence[int], depth: int) -> tuple[float | None, str]:
    """Return the loss and the line that says what was done.

    Parameters
    ----------
    depth : int
        Switches above each other that hosts name. Under topology/block Slurm names the block alone.
    """
    nodes, levels = shapes["nodes"], shapes["levels"]
    if levels and not depth:
        return None, f"{nodes} nodes by name: none says which switch is above it"
    losses, words = [0.0], []
    for level, count in zip(levels, cut):  # noqa: B905  # jobs run older Pythons too
        if count:
            groups, row = _members(level["groups"]), _row(level["losses"], count)
            losses.append(row["loss"])
            words.append(
                f"{count} of {len(groups)} groups of {max(map(len, groups))} nodes lie below more "
                f"than one {level['name']}"
            )
            other = level["other"]
            if other and other["loss"] < row["loss"]:
                words.append(f"{other['plan']} would lose {100 * other['loss']:.1f} %")
    unseen = "".join(f"; no host says its {level['name']}" for level in levels[depth:])
    if not words:
        return 0.0, f"{nodes} nodes ordered: all groups of the plan lie as planned{unseen}"
    loss = max(losses)
    return (
        loss,
        f"{nodes} nodes ordered: {100 * loss:.1f} % slower here than planned; "
        + "; ".join(words)
        + unseen,
    )


def _row(losses: Sequence[Mapping[str, Any]], cut: int) -> Mapping[str, Any]:
    """Return the first row with as many groups cut, or more."""
    return next(row for row in losses if row["cut"] >= cut)


def written(shapes: Mapping[str, Any], hosts: Sequence[str], form: str) -> str:
    """Return hosts as ``nodes``, ``ranks`` or ``rankfile``, see the module."""
    if form == "nodes":
        return "".join(f"{host}\n" for host in hosts)
    ranks = [(hosts[node], slot) for node, slot in shapes["ranks"]]
    if form == "ranks":
        return "".join(f"{host}\n" for host, _ in ranks)
    return "".join(f"rank {rank}={host} slot={slot}\n" for rank, (host, slot) in enumerate(ranks))


def main(arguments: Sequence[str]) -> int:
    """Write the file that was asked for on standard output; 3 where the plan was to stop."""
    shapes_file, got_file, form = arguments
    with open(shapes_file, encoding="utf-8") as file:
        shapes = json.load(file)
    with open(got_file, encoding="utf-8") as file:
        lines = file.readlines()
    try:
        placement = place(shapes, lines)
    except AllocationError as error:
        print(f"place_job.py: {error}", file=sys.stderr)
        return 2
    print(f"place_job.py: {placement.words}", file=sys.stderr)
    if placement.loss != 0 and os.environ.get("NEST_OTHER_SHAPE") == "stop":
        return 3
    sys.stdout.write(written(shapes, placement.hosts, form))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
