"""Shell scripts that start a framework with PyTorch's launcher, one call per node.

``torchrun`` of PyTorch 2.13 numbers ranks node after node and, within one, by local rank, which
is also the device. The caller says which node it is on and where node 0 is: ``NODE_RANK`` (under
Slurm ``SLURM_NODEID``), ``MASTER_ADDR``, ``MASTER_PORT``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from nest_core.export.seating import Seating

__all__ = ["TORCH", "array", "exports", "torchrun"]

TORCH = "PyTorch 2.13"


def array(name: str, words: Iterable[Sequence[str]]) -> str:
    """A bash array, one option with its values per line.

    Examples
    --------
    >>> print(array("PLAN", [("--a", "1"), ("--b",)]), end="")
    PLAN=(
      --a 1
      --b
    )
    """
    lines = "".join(f"  {shlex.join(group)}\n" for group in words)
    return f"{name}=(\n{lines})\n"


def exports(variables: Mapping[str, str]) -> str:
    """Environment variables; an empty value unsets."""
    return "".join(
        f"export {name}={shlex.quote(value)}\n" if value else f"unset {name}\n"
        for name, value in variables.items()
    )


def torchrun(seats: Seating, script: Sequence[str]) -> str:
    """The launching lines; ``script`` is what follows torchrun's own options, quoted already."""
    nodes = len(seats.per_host)
    own = [f"--nnodes {nodes}", f"--nproc-per-node {int(seats.per_host[0])}"]
    setup = ""
    if nodes > 1:
        setup = (
            'NODE_RANK="${NODE_RANK:-${SLURM_NODEID:?number of this node, from 0}}"\n'
            ': "${MASTER_ADDR:?host name of node 0}"\n'
        )
        own += [
            '--node-rank "$NODE_RANK"', '--master-addr "$MASTER_ADDR"',
            '--master-port "${MASTER_PORT:-29500}"',
        ]  # fmt: skip
    else:
        own.append("--standalone")
    return setup + " \\\n  ".join(["exec torchrun", *own, *script]) + "\n"
