"""What was measured: errors of runs under a stack as shipped and as fitted, acceptance in rows."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from nest_core.calibration.acceptance.expected import RAIL, Expected
from nest_core.calibration.acceptance.verdict import CommandOutcome, Verdict
from nest_core.calibration.training.calibration import Calibrated
from nest_core.documents import GB, NOTHING, humanise_seconds, percent, signed_percent, truncated
from nest_core.hardware.posterior import SHARE, WIDTH
from nest_core.report.figures.style import (
    ACCENT,
    MUTED,
    Chart,
    Trace,
    broken,
    curve,
    dots,
    hovered,
    plain,
    plot,
    rows_axis,
    value_axis,
)

__all__ = [
    "acceptance_rows",
    "acceptance_script",
    "errors_picture",
]

_ROW = 40
_OFFSET = 0.16
_LONGEST = 30
_MAX_RUNS = 40
"""Runs that are drawn: the first."""


def errors_picture(runs: Sequence[Calibrated]) -> Chart:
    """Draw a row per run: its error before and after, each with the interval of the prediction.

    Parameters
    ----------
    runs : sequence of Calibrated
        With measured times, in their order.
    """
    rows = [_row(run) for run in runs]
    drawn = rows[:_MAX_RUNS]
    labels = [plain(truncated(row["run"], _LONGEST)) for row in drawn]
    data: list[Trace] = []
    reach = [0.0]
    for name, colour, offset in (("shipped", MUTED, -_OFFSET), ("yours", ACCENT, _OFFSET)):
        at = [row + offset for row in range(len(drawn))]
        spans = [_span(row, name) for row in drawn]
        reach += [end for span in spans for end in span]
        lines = broken((span, (y, y)) for span, y in zip(spans, at, strict=True))
        data += [
            curve(**lines, colour=colour, hoverinfo="skip"),
            dots(
                [100 * row[f"{name}_error"] for row in drawn],
                at,
                {"size": 10, "color": colour},
                name=name,
                **hovered(_hover(row, name) for row in drawn),
            ),
        ]
    room = 0.04 * (max(reach) - min(reach))
    more = f" The first {_MAX_RUNS} of {len(runs)} runs." if len(runs) > _MAX_RUNS else ""
    return Chart(
        _finding(rows),
        f"Error of the predicted iteration time, %, and its {100 * SHARE:.0f} % interval",
        f"A line that crosses zero holds what was measured.{more}",
        plot(
            data,
            70 + _ROW * len(drawn),
            (8 + 7 * max(map(len, labels)), 16, 8, 50),
            xaxis=value_axis(
                "predicted over measured, %",
                range=[min(reach) - room, max(reach) + room],
                zeroline=True,
                zerolinewidth=1.5,
            ),
            yaxis=rows_axis(labels),
        ),
        (("shipped stack", MUTED), ("your stack", ACCENT)),
        table=partial(list, rows),
    )


def _row(run: Calibrated) -> dict[str, Any]:
    """Return a run's times and errors under both stacks, with their units in the names."""
    measured = run.row.outcome.seconds or 1.0
    row: dict[str, Any] = {"run": run.row.run.id, "measured_s": measured}
    for name, seconds, spread in (
        ("shipped", run.before, run.before_spread),
        ("yours", run.after, run.after_spread),
    ):
        row |= {
            f"{name}_s": seconds,
            f"{name}_low_s": seconds * math.exp(-WIDTH * spread),
            f"{name}_high_s": seconds * math.exp(WIDTH * spread),
            f"{name}_error": seconds / measured - 1,
        }
    return row


def _span(row: dict[str, Any], name: str) -> tuple[float, float]:
    """Return the ends of a prediction's interval over what was measured, %."""
    low, high = (row[f"{name}_{end}_s"] / row["measured_s"] for end in ("low", "high"))
    return 100 * (low - 1), 100 * (high - 1)


def _finding(rows: Sequence[dict[str, Any]]) -> str:
    before, after = (
        percent(sum(abs(row[f"{name}_error"]) for row in rows) / len(rows))
        for name in ("shipped", "yours")
    )
    inside = sum(low <= 0 <= high for low, high in [_span(row, "yours") for row in rows])
    return (
        f"Mean error {before} under the shipped stack, {after} under yours; "
        f"{inside} of {len(rows)} in its interval"
    )


def _hover(row: dict[str, Any], name: str) -> str:
    low, high = (signed_percent(end / 100) for end in _span(row, name))
    return (
        f"<b>{plain(row['run'])}</b>, {name} stack<br>measured "
        f"{humanise_seconds(row['measured_s'])}, predicted {humanise_seconds(row[f'{name}_s'])}"
        f"<br>error {signed_percent(row[f'{name}_error'])}, {low.removesuffix(' %')} to {high}"
    )


_WORDS = {True: "passed", False: "failed", None: NOTHING}


def acceptance_rows(verdict: Verdict) -> Iterator[dict[str, str]]:
    """Yield rows from the inside out; rails that stand alike share one, with the slowest."""
    alike = groupby(
        verdict.outcomes,
        lambda outcome: (outcome.expected.scope.tier, _acceptance_row(outcome)["outcome"]),
    )
    for (tier, _), group in alike:
        outcomes = list(group)
        if tier != RAIL or len(outcomes) == 1:
            yield from (_acceptance_row(outcome) for outcome in outcomes)
            continue
        slowest = min(outcomes, key=lambda outcome: outcome.measured_busbw_Bps or 0.0)
        first, last = (outcomes[end].expected.scope.name for end in (0, -1))
        where = slowest.expected.where.replace(
            f"device {slowest.expected.scope.device} of each", "one device of each"
        )
        scope = f"{first} to {last.rpartition(' ')[2]}"
        yield _acceptance_row(slowest) | {"scope": scope, "where": where}


def acceptance_script(expected: list[Expected]) -> str:
    """Return the commands, each under a comment that says where it runs."""
    return "\n".join(f"# {test.scope.name}: {test.where}\n{test.command}" for test in expected)


def _acceptance_row(outcome: CommandOutcome) -> dict[str, str]:
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
