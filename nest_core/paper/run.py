"""Every planner on one case, under the costs that are chosen."""

from __future__ import annotations

from nest_core.paper.cases import Cell
from nest_core.paper.outcome import Outcome
from nest_core.paper.reproduction import Costs

__all__ = ["outcome_of"]


def outcome_of(costs: Costs, cell: Cell, planners: tuple[str, ...]) -> Outcome:
    """The outcome of a case under the chosen costs."""
    if costs == "published":
        from nest_core.paper.artifact import artifact_outcome

        return artifact_outcome(cell, planners)
    from nest_core.paper.own import own_outcome  # the planner is not for every start

    return own_outcome(cell, planners)
