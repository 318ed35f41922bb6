"""Acceptance tests in rows and as a script to run."""

from __future__ import annotations

from nest_core.measured.acceptance.expected import Expected
from nest_core.measured.acceptance.verdict import Outcome, Verdict
from nest_core.units import humanise_rate

__all__ = ["acceptance_rows", "acceptance_script"]

_SAID = {True: "passed", False: "failed", None: "–"}


def acceptance_rows(verdict: Verdict) -> list[dict[str, str]]:
    """One row per command, from the inside out."""
    return [_row(outcome) for outcome in verdict.outcomes]


def acceptance_script(expected: list[Expected]) -> str:
    """The commands, each under a comment that says where it runs."""
    return "\n".join(f"# {one.scope.name}: {one.where}\n{one.command}" for one in expected)


def _row(outcome: Outcome) -> dict[str, str]:
    one, measured = outcome.expected, outcome.measured_busbw_Bps
    return {
        "scope": one.scope.name,
        "expected": humanise_rate(one.predicted_busbw_Bps),
        "at least": humanise_rate(one.threshold_Bps),
        "measured": "–" if measured is None else humanise_rate(measured),
        "outcome": _SAID[outcome.passed],
        "where": one.where,
    }
