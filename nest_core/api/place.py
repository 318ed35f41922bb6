"""Which device plays which part in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nest_core.api.price import Given, given_plan
from nest_core.api.scenario import Named, load
from nest_core.costs import check_plan
from nest_core.costs.placement import RankMapping, rank_mapping_of
from nest_core.costs.plan import Plan
from nest_core.documents.errors import InputError
from nest_core.documents.text import plain, table
from nest_core.planner import search
from nest_core.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Placement", "place"]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Which device plays which part in a plan.

    Parameters
    ----------
    plan : Plan or None
        None where none fits.
    rank_mapping : RankMapping or None
        Rank and rank on every axis of each device, shape (devices,), −1 where it is idle.
    reason : str
        Why there is no plan; empty where there is one.
    """

    plan: Plan | None
    rank_mapping: RankMapping | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields of ``nest-studio place --json``."""
        rows = self.rows()
        return {
            "reason": self.reason or None,
            "plan": self.plan.to_json() if self.plan else None,
            "devices": len(rows),
            "placement": rows,
            "output": None,
        }

    def rows(self) -> list[dict[str, int | None]]:
        """One row per device; None where it is idle."""
        return self.rank_mapping.rows() if self.rank_mapping else []

    def to_csv(self) -> str:
        """One row per device; cells of idle devices are empty."""
        return self.rank_mapping.to_csv() if self.rank_mapping else ""

    def to_frame(self) -> pd.DataFrame:
        """One row per device; missing where it is idle."""
        import pandas as pd

        return pd.DataFrame(self.rows(), dtype="Int64")

    def __str__(self) -> str:
        return _text(plain(self.to_json()))

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, max_rows=20))


def place(
    scenario: Scenario | Named, plan: Given | None = None, *, placement: str | Path | None = None
) -> Placement:
    """Every device's rank, replica, stage and rank on each axis, all counted from 0.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    plan : optional
        As `price` takes it; the best plan without it.
    placement : str or Path, optional
        A CSV or JSON file with its rank mapping.

    Raises
    ------
    InputError
        If it is no plan of this scenario.
    """
    if placement is not None and plan is None:
        raise InputError("placement", "must come with a plan", str(placement), "give the plan")
    asked = load(scenario).values
    problem = asked.problem()
    if plan is not None:
        chosen = given_plan(asked, problem, plan, placement).plan
        check_plan(asked.problem(chosen.recompute), chosen)
    else:
        found = search(problem, asked.space, time_limit_s=asked.time_limit_s)
        if found.best is None:
            return Placement(None, None, found.reason)
        chosen = found.best.plan
    return Placement(chosen, rank_mapping_of(problem.network, chosen))


def _text(fields: Mapping[str, Any]) -> str:
    if fields["plan"] is None:
        return f"infeasible: {fields['reason']}"
    rows = fields["placement"]
    return table(list(rows[0]), [list(row.values()) for row in rows])
