"""Acceptance tests in rows and as a script to run."""

from __future__ import annotations

from itertools import groupby

from nest_core.calibration.acceptance.expected import Expected
from nest_core.calibration.acceptance.scopes import RAIL
from nest_core.calibration.acceptance.verdict import CommandOutcome, Verdict
from nest_core.documents.units import GB

__all__ = ["acceptance_rows", "acceptance_script"]

_SAID = {True: "passed", False: "failed", None: "–"}


def acceptance_rows(verdict: Verdict) -> list[dict[str, str]]:
    """From the inside out; rails that stand alike share a row, with the slowest of them."""
    alike = groupby(verdict.outcomes, lambda one: (one.expected.scope.tier, _row(one)["outcome"]))
    rows = []
    for (tier, _), group in alike:
        own = list(group)
        if tier != RAIL or len(own) == 1:
            rows += [_row(one) for one in own]
            continue
        slowest = min(own, key=lambda one: one.measured_busbw_Bps or 0.0)
        names = [one.expected.scope.name for one in own]
        where = slowest.expected.where.replace(
            f"device {slowest.expected.scope.device} of each", "one device of each"
        )
        last = names[-1].rpartition(" ")[2]
        rows.append(_row(slowest) | {"scope": f"{names[0]} to {last}", "where": where})
    return rows


def acceptance_script(expected: list[Expected]) -> str:
    """The commands, each under a comment that says where it runs."""
    return "\n".join(f"# {one.scope.name}: {one.where}\n{one.command}" for one in expected)


def _row(outcome: CommandOutcome) -> dict[str, str]:
    one, measured = outcome.expected, outcome.measured_busbw_Bps
    return {
        "scope": one.scope.name,
        "expected": _gbps(one.predicted_busbw_Bps),
        "at least": _gbps(one.threshold_Bps),
        "measured": "–" if measured is None else _gbps(measured),
        "outcome": _SAID[outcome.passed],
        "where": one.where,
    }


def _gbps(rate_Bps: float) -> str:
    rate = rate_Bps / GB
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:#.3g}"
