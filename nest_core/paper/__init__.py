"""The paper's figures and tables computed again, beside what it prints.

``reproduce(name, costs)`` computes one: under ``published``, the artifact's costs
(`nest_core.published`), or ``own``, this project's physics through its planner. Nothing that is
shown as ours is stored; printed numbers are in ``presets/paper/printed.toml``.

References
----------
NEST, MLSys 2026; scai-tech/Nest (MIT).

Examples
--------
>>> found = reproduce("table4", "published")
>>> found.rows[0]["model"], round(found.rows[0]["computed_reduction"], 3)
('gpt3-35b', 0.118)
"""

from __future__ import annotations

from importlib import import_module

from nest_core.errors import InputError
from nest_core.paper.reproduction import Costs, Reproduction, Row, Table

__all__ = ["NAMES", "Reproduction", "Row", "Table", "reproduce"]

# Modules by name: each has a function of the name, and is imported when it is asked for.
_MODULES = {
    "algorithm1": "program",
    "figure1": "strategies",
    "figure2": "iterations",
    "figure3": "strategies",
    "figure5": "throughput",
    "figure6": "throughput",
    "figure7": "throughput",
    "figure8": "topologies",
    "figure9": "topologies",
    "figure10": "iterations",
    "figure11": "throughput",
    "section5": "claims",
    "table1": "planners",
    "table2": "planners",
    "table3": "scaled_models",
    "table4": "planners",
    "table5": "scaled_models",
    "table6": "layer_memory",
    "table7": "zero_ablation",
}

NAMES = tuple(_MODULES)
"""What can be reproduced."""


def reproduce(name: str, costs: Costs) -> Reproduction:
    """Compute a figure or table of the paper again.

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
    if name not in _MODULES:
        raise InputError(
            "NAME",
            "must be a figure or table that is computed here",
            name,
            "pick " + ", ".join(NAMES),
        )
    module = import_module(f"nest_core.paper.{_MODULES[name]}")
    found: Reproduction = getattr(module, name)(costs)
    return found
