"""The part of ``docs/validation.md`` on replays: prices beside iterations played event by event."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.replay.agreement import KINDS, LOUD, QUIET, SOME, Agreement

__all__ = ["replay_part", "summary"]

INTRODUCTION = f"""\
## Replay

Plans in closed form (`nest_core.costs.price`) beside the same iterations played event by event \
(`nest_core.simulator`): the fastest plans of all shipped scenarios, of random ones over every \
kind of fabric with up to 256 devices (`benchmarks/proof_times.py`), and of every schedule, where \
nothing hides and where everything does that can. "Meets" is by how much the replay is longer than \
one in which different kinds of traffic never share a link. Asked is a difference of {QUIET:.0%} \
where that is at most {SOME:.1%}, and of {LOUD:.0%} elsewhere.
"""

WHY = """\
### What larger differences come from

* *Other stages.* The closed form counts flows of other stages as if they were always there. \
Where stages share links, an all-to-all or a transfer of one stage often has them to itself, and \
the replay is shorter.
* *Kinds of traffic that meet.* The closed form has them follow one another, and hide behind work \
alone. In a replay they run beside one another: side by side where they use different links, each \
slower where they share them. A pipeline whose transfers share links with the collectives of \
layers waits for both, stage by stage.
* *What follows the last pass.* The closed form adds the longest of all stages after the pipeline \
has drained; a late stage begins with it before.
"""


def replay_part(rows: Sequence[Agreement]) -> str:
    """Return Markdown: what agrees, what does not and why, and all rows."""
    far = [row for row in rows if not row.is_near]
    lines = [INTRODUCTION]
    lines += markdown_table(
        ["plans", "overlap", "number", "as near as asked", "median difference", "largest"],
        summary(rows),
        2,
    )
    lines += ["", WHY]
    if far:
        lines += ["### Further off than asked", ""]
        lines += [
            "The last columns are the difference where one kind of traffic alone may hide.",
            "",
        ]
        lines += markdown_table(
            ["plan", "overlap", "planned", "replayed", "difference", "meets", *KINDS],
            (_cells(row) for row in sorted(far, key=lambda row: -abs(row.difference))),
            2,
        )
        lines += [""]
    lines += ["### All plans", ""]
    lines += markdown_table(
        ["plan", "overlap", "planned", "replayed", "difference", "meets"],
        (_cells(row)[:6] for row in rows),
        2,
    )
    return "\n".join(lines) + "\n"


def summary(rows: Sequence[Agreement]) -> list[list[str]]:
    """Return how many agree, by where plans come from and what hides."""
    result = []
    for source, overlap in dict.fromkeys((row.source, row.overlap) for row in rows):
        mine = [row for row in rows if (row.source, row.overlap) == (source, overlap)]
        largest = max(mine, key=lambda row: abs(row.difference))
        result.append(
            [
                source,
                overlap,
                str(len(mine)),
                str(sum(row.is_near for row in mine)),
                f"{median(abs(row.difference) for row in mine):.2%}",
                f"{largest.difference:+.1%} ({largest.name})",
            ]
        )
    return result


def _cells(row: Agreement) -> list[str]:
    return [
        f"{row.name}: {row.plan}",
        row.overlap,
        f"{row.planned_s:.4g} s",
        f"{row.simulated_s:.4g} s",
        f"{row.difference:+.2%}",
        f"{row.contention:.2%}",
        *(f"{row.alone[name]:+.1%}" if name in row.alone else "" for name in KINDS),
    ]
