"""What is compared: our plan first, then the baselines in the scenario's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nest_core.costs import Report
from nest_core.costs.plan_words import degrees_in_words
from nest_core.documents.units import humanise_bytes
from nest_core.planner import SearchResult
from nest_core.planner.baselines import NAMES, Baseline
from nest_core.report.explain import fullest
from nest_core.report.figures.style import shortened

__all__ = ["MethodRow", "entries", "pending_entries"]

OURS = "Exact search (ours)"


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method's row in a comparison.

    Parameters
    ----------
    name : str
    report : Report or None
        None where there is no plan to price.
    reason : str
        Why there is no feasible plan; empty otherwise.
    stale : bool
        Whether the report belongs to an earlier request and is drawn grey.
    """

    name: str
    report: Report | None
    reason: str = ""
    stale: bool = False

    @property
    def ours(self) -> bool:
        """Whether this is our plan."""
        return self.name == OURS

    @property
    def feasible(self) -> bool:
        """Whether the plan can be run."""
        return self.report is not None and not self.reason

    @property
    def degrees(self) -> str:
        """The plan's degrees; empty without a plan."""
        if self.report is None:
            return ""
        return degrees_in_words(self.report.plan.to_json())

    @property
    def shortfall(self) -> str:
        """Why the plan cannot be run, in few words; empty if it can. `reason` says it in full."""
        if self.report is None:
            return "no feasible plan" if self.ours else shortened(self.reason)
        if not self.reason:
            return ""
        over = fullest(self.report)[1].memory.total - self.report.memory_limit_bytes
        return f"does not fit, {humanise_bytes(over)} over"

    @property
    def summary(self) -> str:
        """Degrees, and what keeps the plan from running or from being current."""
        parts = (self.degrees, self.shortfall, "previous request" if self.report else "")
        return "; ".join(part for part in parts[: 3 if self.stale else 2] if part)


def entries(result: SearchResult, baselines: Iterable[Baseline]) -> tuple[MethodRow, ...]:
    """Return our plan and the baselines, all of the same request."""
    rows = [MethodRow(OURS, result.best, result.reason)]
    return (*rows, *(MethodRow(b.label, b.report, b.reason) for b in baselines))


def pending_entries(
    result: SearchResult, names: Iterable[str], earlier: Iterable[Baseline]
) -> tuple[MethodRow, ...]:
    """Return our plan with the baselines of an earlier request, stale until theirs are priced.

    Parameters
    ----------
    names : iterable of str
        The baselines that are being priced.
    earlier : iterable of Baseline
        Those of the request before; methods without one get an empty row.
    """
    reports = {b.name: (b.report, b.reason) for b in earlier if b.report}
    rows = [MethodRow(OURS, result.best, result.reason)]
    for name in names:
        report, reason = reports.get(name, (None, "being priced"))
        rows.append(MethodRow(NAMES.get(name, name), report, reason, stale=True))
    return tuple(rows)
