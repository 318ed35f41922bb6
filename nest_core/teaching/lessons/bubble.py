"""Lesson 1, the bubble: who waits while a pipeline fills and drains.

Stages take equally long: a forward pass one unit of time, a backward pass two. Each schedule is
priced like any plan and played back pass by pass (`nest_core.costs.timeline`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Plan, Point, Problem, in_flight, price
from nest_core.costs.timeline import Timeline, timeline
from nest_core.documents.units import percent
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import ORDER, bare_chain

__all__ = ["BUBBLE", "Bubble", "Played", "played"]

FORWARD, BACKWARD = 1.0, 2.0
"""Units of time of one pass of one micro-batch through one stage."""

SCHEDULES = ("gpipe", "1f1b")
ASKED = (4, 4)
"""Stages and micro-batches of the question."""


@dataclass(frozen=True, slots=True)
class Played:
    """A schedule, played back.

    Parameters
    ----------
    timeline : Timeline
        "Seconds" are units.
    held : tuple of int
        Per stage, micro-batches between their forward and backward pass at its fullest.
    """

    timeline: Timeline
    held: tuple[int, ...]

    @property
    def point(self) -> Point:
        """Schedule and depth."""
        return self.timeline.report.plan.point

    @property
    def idle(self) -> float:
        """Share of all stages' time in which they wait."""
        busy = float(self.timeline.pass_parts_s.sum())
        return 1.0 - busy / (self.timeline.stages * self.timeline.seconds)


@dataclass(frozen=True, slots=True)
class Bubble:
    """Both schedules of the same pipeline."""

    schedules: tuple[Played, ...]


@cache
def played(schedule: str, stages: int, micro_batches: int) -> Played:
    """Price and play back one layer per stage, without communication.

    Parameters
    ----------
    schedule : {"gpipe", "1f1b"}
    stages, micro_batches : int
    """
    point = Point(1, False, 1, stages, 1, 0, ORDER, schedule=schedule)
    whole = _problem(stages, micro_batches)
    report = price(whole, Plan(point, tuple(range(stages + 1)), ("none",) * stages))
    held = in_flight(point, micro_batches)
    return Played(timeline(whole, report), tuple(int(one) for one in held))


def _problem(stages: int, micro_batches: int) -> Problem:
    tier = Tier("switch", stages, 1.0, 0.0, "device")
    return bare_chain(
        collapse(Hierarchical("bubble", (tier,))),
        (FORWARD + BACKWARD,) * stages,
        (FORWARD,) * stages,
        (0.0,) * (stages + 1),
        micro_batches,
    )


def _show(settings: Settings) -> Reveal:
    stages, count = int(settings["pp"]), int(settings["m"])
    both = tuple(played(schedule, stages, count) for schedule in SCHEDULES)
    whole = both[0].timeline.report.iteration_s
    held = [one.held[0] for one in both]
    extra = (stages - 1) / count
    return Reveal(
        Bubble(both),
        (
            "Every stage works m times; while the first micro-batch climbs and the last one comes "
            "back it waits pp - 1 times as long as one micro-batch takes it.",
            "1F1B does not shrink the bubble: it ends when GPipe ends. It starts the backward "
            "pass as soon as one micro-batch has come through, so less is held at once.",
        ),
        (
            Formula(
                "Iteration, units",
                "(m + pp - 1) (t_forward + t_backward)",
                f"({count} + {stages} - 1) ({FORWARD:g} + {BACKWARD:g}) = {whole:g}",
                "Huang et al. 2019 (GPipe); Narayanan et al. 2021 (PipeDream-Flush)",
            ),
            Formula(
                "Bubble over ideal time",
                "(pp - 1) / m",
                f"({stages} - 1) / {count} = {percent(extra)}",
                "Narayanan et al. 2021 (SC), section 2.2",
            ),
            Formula(
                "Share of the time spent idle",
                "(pp - 1) / (m + pp - 1)",
                f"({stages} - 1) / ({count} + {stages} - 1) = {percent(both[0].idle)}",
                "the same, over the whole iteration",
            ),
            Formula(
                "Held by stage 1, micro-batches",
                "GPipe m, 1F1B min(m, pp)",
                f"GPipe {held[0]}, 1F1B min({count}, {stages}) = {held[1]}",
                "Narayanan et al. 2021 (PipeDream-Flush)",
            ),
        ),
    )


def _asked(given: Settings) -> tuple[int, int]:
    """Stages and micro-batches."""
    return int(given["pp"]), int(given["m"])


BUBBLE = Figure(
    "bubble",
    (
        Control("pp", "Stages (pp)", (2, 4, 8), ASKED[0], "Pipeline stages: 2, 4 or 8."),
        Control(
            "m",
            "Micro-batches (m)",
            (1, 2, 4, 8, 16, 32),
            ASKED[1],
            "Per replica and iteration: 1 to 32.",
        ),
    ),
    _show,
    {"pp": Given(ASKED[0], most=64), "m": Given(ASKED[1], most=512)},
    {
        "idle": lambda given: played("1f1b", *_asked(given)).idle,
        "over": lambda given: (_asked(given)[0] - 1) / _asked(given)[1],
        "one": lambda given: 1 / _asked(given)[0],
    },
)
