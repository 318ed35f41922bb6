"""What each method may choose in the NEST paper, out of what a scenario allows.

By default every method here gets the scenario's whole space, with axes that its original lacks.
The paper compares methods as their papers have them: all under PipeDream-Flush (1F1B) and with
recomputation on or off, Manual and Phaze without ZeRO, only NEST (and MCMC, which walks over NEST's
strategies) with sequence and context parallelism, and with ZeRO over 8, 4 or 2 devices too.

References
----------
.. [1] NEST, MLSys 2026, tables 1 and 2 and section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nest_core.planner import SearchSpace

__all__ = ["paper_space"]

_EVERYBODY: Mapping[str, tuple[Any, ...]] = {
    "schedules": ("1f1b",),
    "interleave": (1,),
    "recompute": ("none", "full"),
    "device_orders": ("natural",),
    "zero_groups": (0, 2, 4, 8),
}
_ITS_OWN: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "manual": {"sp": (False,), "cp": (1,), "zero": (0,), "zero_groups": (0,)},
    "mcmc": {},
    "phaze": {"sp": (False,), "cp": (1,), "zero": (0,), "zero_groups": (0,)},
    "alpa_e": {"sp": (False,), "cp": (1,), "zero_groups": (0,)},
    "mist": {"sp": (False,), "cp": (1,), "ep": (1,), "zero_groups": (0,)},
}


def paper_space(name: str, space: SearchSpace) -> SearchSpace:
    """The part of a space that a method searches in the paper.

    An axis of which the scenario allows none of a method's values stays as the scenario has it.

    Examples
    --------
    >>> space = SearchSpace((1, 2), (False, True), (1,), (1,), (1,))
    >>> paper_space("phaze", space).zero, paper_space("mist", space).zero
    ((0,), (0, 1, 2, 3))
    """
    narrowed: dict[str, Any] = {}
    for field, values in (*_EVERYBODY.items(), *_ITS_OWN.get(name, {}).items()):
        allowed = getattr(space, field)
        narrowed[field] = tuple(value for value in allowed if value in values) or allowed
    return replace(space, **narrowed)
