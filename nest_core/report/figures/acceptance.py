"""Acceptance tests in rows and as a script to run."""

from __future__ import annotations

from itertools import groupby

from nest_core.calibration.acceptance.expected import RAIL, Expected
from nest_core.calibration.acceptance.verdict import CommandOutcome, Verdict
from nest_core.documents.units import GB, NOTHING

__all__ = ["acceptance_rows", "acceptance_script"]

_WORDS = {True: "passed", False: "failed", None: NOTHING}


def acceptance_rows(verdict: Verdict) -> list[dict[str, str]]:
    """Return rows from the inside out; rails that stand alike share one, with the slowest."""
    alike = groupby(
        verdict.outcomes, lambda outcome: (outcome.expected.scope.tier, _row(outcome)["outcome"])
    )
    rows = []
    for (tier, _), group in alike:
        outcomes = list(group)
        if tier != RAIL or len(outcomes) == 1:
            rows += [_row(outcome) for outcome in outcomes]
            continue
        slowest = min(outcomes, key=lambda outcome: outcome.measured_busbw_Bps or 0.0)
        first, last = (outcomes[end].expected.scope.name for end in (0, -1))
        device = f"device {slowest.expected.scope.device} of each"
        where = slowest.expected.where.replace(device, "one device of each")
        scope = f"{first} to {last.rpartition(' ')[2]}"
        rows.append(_row(slowest) | {"scope": scope, "where": where})
    return rows


def acceptance_script(expected: list[Expected]) -> str:
    """Return the commands, each under a comment that says where it runs."""
    return "\n".join(f"# {test.scope.name}: {test.where}\n{test.command}" for test in expected)


def _row(outcome: CommandOutcome) -> dict[str, str]:
    test, measured = outcome.expected, outcome.measured_busbw_Bps
    return {
        "scope": test.scope.name,
        "expected": _gbps(test.predicted_busbw_Bps),
        "at least": _gbps(test.threshold_Bps),
        "measured": NOTHING if measured is None else _gbps(measured),
        "outcome": _WORDS[outcome.passed],
        "where": test.where,
    }


def _gbps(rate_Bps: float) -> str:
    rate = rate_Bps / GB
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:#.3g}"
