"""A pipeline step by step on its nodes: who computes, who waits, what crosses which NIC.

Every stage is a node of eight devices; a micro-batch takes it two units forward and four backward.
Activations go on to the next node and their gradients come back, and nothing of that hides behind
compute, so that the class sees it. The schedule is priced like any plan and played back
(`nest_core.costs.timeline`, `nest_core.costs.pass_steps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import Plan, Point, price
from nest_core.costs.pass_steps import PassSteps, pass_steps
from nest_core.costs.timeline import timeline
from nest_core.documents.units import humanise_seconds, percent
from nest_core.teaching.lessons.figure import Given, LessonFigure
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import ORDER, bare_chain, noded
from nest_core.teaching.lessons.walk import bytes_in_words

__all__ = ["PASSES", "PER_NODE", "PassWalk", "passed"]

PER_NODE = 8
FORWARD_S, BACKWARD_S = 2e-3, 4e-3
"""Of one micro-batch through one stage."""
MESSAGE = 64e6
"""Bytes that every device hands on at the end of a virtual stage."""

SCHEDULES = {"1F1B": ("1f1b", 1), "interleaved": ("interleaved", 2)}
"""Names on screen; the schedule and its virtual stages per stage."""
STAGES, MICRO_BATCHES, NICS = (2, 4, 8), (4, 8, 16), (25, 50, 100, 200)
ASKED = ("1F1B", 4, 8, 50)


@dataclass(frozen=True, slots=True, eq=False)
class PassWalk:
    """An iteration at one of its steps.

    Parameters
    ----------
    steps : PassSteps
    step : int
        How many steps are over; the passes of the last of them are shown.
    nic_Bps : float
    """

    steps: PassSteps
    step: int
    nic_Bps: float

    @property
    def waited(self) -> float:
        """Share of all stages' time so far in which they waited."""
        done = self.steps.states[: max(self.step, 1)]
        idle = sum(state.taken_s * float((state.running < 0).mean()) for state in done)
        return idle / done[-1].seconds


@cache
def passed(schedule: str, stages: int, micro_batches: int, nic_GBps: float) -> PassSteps:
    """All steps of an iteration.

    Parameters
    ----------
    schedule : str
        Of `SCHEDULES`.
    stages, micro_batches : int
    nic_GBps : float
        One NIC for each device, one direction.
    """
    order, virtual = SCHEDULES[schedule]
    layers = stages * virtual
    point = Point(PER_NODE, True, 1, stages, 1, 0, ORDER, schedule=order, interleave=virtual)
    chain = bare_chain(
        noded(stages, PER_NODE, nic_GBps),
        ((FORWARD_S + BACKWARD_S) / virtual,) * layers,
        (FORWARD_S / virtual,) * layers,
        (0.0, *(MESSAGE,) * (layers - 1), 0.0),
        micro_batches,
    )
    report = price(chain, Plan(point, tuple(range(layers + 1)), ("none",) * stages))
    return pass_steps(chain, timeline(chain, report))


def _chosen(settings: Settings) -> PassSteps:
    return passed(
        str(settings["schedule"]),
        int(settings["pp"]),
        int(settings["m"]),
        float(settings["nic"]),
    )


def _last(settings: Settings) -> int:
    return len(_chosen(settings).states) + 1


MOST = 512
"""Steps of the longest."""


def _show(settings: Settings) -> Reveal:
    steps = _chosen(settings)
    walk = PassWalk(steps, int(settings["step"]), 1e9 * float(settings["nic"]))
    schedule, stages, count = str(settings["schedule"]), int(settings["pp"]), int(settings["m"])
    end = PassWalk(steps, len(steps.states), walk.nic_Bps)
    report = steps.timeline.report
    _, virtual = SCHEDULES[schedule]
    crossings = 2 * (virtual * stages - 1) * count
    return Reveal(
        walk,
        (_TEXTS[schedule],),
        (
            Formula(
                "Bubble without communication",
                "(pp - 1) / (v m + pp - 1)",
                f"({stages} - 1) / ({virtual} · {count} + {stages} - 1) = "
                f"{percent((stages - 1) / (virtual * count + stages - 1))}; with it stages wait "
                f"{percent(end.waited)}",
                "Narayanan et al. 2021 (SC), section 2.2",
            ),
            Formula(
                "Messages of a rank's peers over NICs",
                "2 (v pp - 1) m",
                f"2 ({virtual} · {stages} - 1) {count} = {crossings} of {bytes_in_words(MESSAGE)}",
                "forward and backward over every boundary",
            ),
            Formula(
                "Iteration",
                "sum(t) + (m - 1) max(t)",
                f"played back {humanise_seconds(steps.seconds)}; the price, in which every "
                f"micro-batch waits for the slowest stage, {humanise_seconds(report.iteration_s)}",
                "method.md, Time; pp - 1 is divided by v where stages are interleaved",
            ),
        ),
    )


_TEXTS = {
    "1F1B": "After its first micro-batches every stage runs one forward and one backward pass in "
    "turn. It waits while the first micro-batch climbs and while the last one comes back.",
    "interleaved": "Every stage holds two pieces of the model, so work reaches the last stage "
    "sooner and the bubble is half; every micro-batch goes over the NICs about twice as often.",
}


def _asked(given: Settings, schedule: str) -> PassSteps:
    return passed(schedule, int(given["pp"]), int(given["m"]), float(given["nic_GBps"]))


def _bubble(given: Settings, virtual: int) -> float:
    pp, m = int(given["pp"]), int(given["m"])
    return (pp - 1) / (virtual * m + pp - 1)


PASSES = LessonFigure(
    "passes",
    (
        Control("schedule", "Schedule", tuple(SCHEDULES), ASKED[0], "In which order passes run."),
        Control("pp", "Stages (pp)", STAGES, ASKED[1], "A node of eight devices each: 2 to 8."),
        Control("m", "Micro-batches (m)", MICRO_BATCHES, ASKED[2], "Per iteration: 4 to 16."),
        Control("nic", "NIC, GB/s", NICS, ASKED[3], "One for each device: 25 to 200 GB/s."),
        Control(
            "step",
            "Step",
            tuple(range(MOST + 1)),
            0,
            "From one end of a pass to the next.",
            stepped=True,
            last=_last,
        ),
    ),
    _show,
    {
        "pp": Given(ASKED[1], 2, 8),
        "m": Given(ASKED[2], 2, 512),
        "nic_GBps": Given(float(ASKED[3]), 1, 1000),
    },
    {
        "message": lambda given: bytes_in_words(MESSAGE),
        "per_node": lambda given: PER_NODE,
        "plain": lambda given: _asked(given, "1F1B").seconds,
        "interleaved": lambda given: _asked(given, "interleaved").seconds,
        "bubble": lambda given: _bubble(given, 1),
        "half": lambda given: _bubble(given, 2),
        "hop": lambda given: MESSAGE / (1e9 * float(given["nic_GBps"])),
        "pass": lambda given: FORWARD_S,
        "quick": lambda given: (
            passed(
                "interleaved", int(given["pp"]), int(given["m"]), 8 * float(given["nic_GBps"])
            ).seconds
        ),
        "quick_plain": lambda given: (
            passed("1F1B", int(given["pp"]), int(given["m"]), 8 * float(given["nic_GBps"])).seconds
        ),
    },
)
