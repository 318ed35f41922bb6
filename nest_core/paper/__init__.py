"""The paper's figures and tables computed again, beside what it prints.

``reproduce(name, costs)`` gives one: under ``published``, the artifact's costs
(`nest_core.paper.published`), or ``own``, this project's physics through its planner. Figures of
throughputs and algorithm 1 are computed when they are wanted; the others, and the sentences under
throughputs, are read from ``presets/paper``, where ``python -m benchmarks.paper`` writes them
(`nest_core.paper.reproduction`). Printed numbers are in ``presets/paper/printed.toml``.

References
----------
NEST, MLSys 2026; scai-tech/Nest (MIT).

Examples
--------
>>> table = reproduce("table4", "published")
>>> table.rows[0]["model"], round(table.rows[0]["computed_reduction"], 3)
('gpt3-35b', 0.118)
"""

from importlib import import_module

from nest_core.documents import require
from nest_core.paper.reproduction import STORED, Costs, Reproduction, ResultTable, Row, stored

__all__ = ["NAMES", "Reproduction", "ResultTable", "Row", "reproduce"]

# Modules by name: each has a function of the name, and is imported when it is asked for.
_LIVE = {
    "algorithm1": "own",
    "figure5": "throughput",
    "figure6": "throughput",
    "figure7": "throughput",
    "figure11": "throughput",
}

_KINDS = ("algorithm", "figure", "section", "table")

NAMES = tuple(
    name
    for kind in _KINDS
    for name in sorted((*_LIVE, *STORED), key=lambda name: (len(name), name))
    if name.startswith(kind)
)
"""What can be reproduced."""


def reproduce(name: str, costs: Costs) -> Reproduction:
    """Return a figure or table of the paper, computed again.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    costs : {"published", "own"}

    Raises
    ------
    InputError
        For another name.
    """
    require(
        name in NAMES,
        "NAME",
        "must be a figure or table that is computed here",
        name,
        "pick " + ", ".join(NAMES),
    )
    if name in STORED:
        return stored(name, costs)
    module = import_module(f"nest_core.paper.{_LIVE[name]}")
    reproduction: Reproduction = getattr(module, name)(costs)
    return reproduction
