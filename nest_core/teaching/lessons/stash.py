"""Lesson 3, memory and the stash: what every stage holds at its fullest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import RECOMPUTE, Plan, Point, Report, in_flight, price
from nest_core.documents.errors import InputError
from nest_core.documents.units import from_gib, humanise_bytes
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import ORDER, even_cuts, problem

__all__ = ["STASH", "Stash", "priced"]

MODEL, NAME = "llama2-13b", "Llama 2 13B"
STAGES, REPLICAS, MICRO_BATCHES = 8, 8, 32
_TOKENS = 4096
_SCHEDULES = ("1f1b", "gpipe")
_SCHEDULE_NAMES = ("1F1B", "GPipe")


@dataclass(frozen=True, slots=True)
class Stash:
    """A pipeline's memory.

    Parameters
    ----------
    report : Report
    held : tuple of int
        Per stage, micro-batches in flight at its fullest.
    """

    report: Report
    held: tuple[int, ...]


@cache
def priced(
    schedule: str, recompute: str, stages: int = STAGES, micro_batches: int = MICRO_BATCHES
) -> Stash:
    """The plan of the lesson: one device per stage and replica, ZeRO 1, equal stages."""
    whole = problem(MODEL, _TOKENS, REPLICAS * micro_batches, stages * REPLICAS, stages)
    point = Point(1, False, REPLICAS, stages, 1, 1, ORDER, schedule=schedule)
    plan = Plan(point, even_cuts(whole.layers, stages), (recompute,) * stages)
    held = in_flight(point, micro_batches)
    return Stash(price(whole, plan), tuple(int(one) for one in held))


def _show(settings: Settings) -> Reveal:
    schedule, recompute = str(settings["schedule"]), str(settings["recompute"])
    found = priced(schedule, recompute)
    first = found.report.stages[0].memory
    needs = [stage.memory.total for stage in found.report.stages]
    limit = found.report.memory_limit_bytes
    one, held = first.activations, found.held[0]
    symbols = "min(m, pp - s), stages s counted from 0" if schedule == "1f1b" else "m, every stage"
    numbers = (
        f"stage 1: min({MICRO_BATCHES}, {STAGES} - 0) = {held}, stage {STAGES}: {found.held[-1]}"
        if schedule == "1f1b"
        else f"{held}"
    )
    return Reveal(
        found,
        (
            "Activations of a micro-batch are kept until its backward pass. One micro-batch is "
            "counted as activations, those in flight beside it as the stash.",
            "Under 1F1B early stages hold more, because their micro-batches come back last."
            if schedule == "1f1b"
            else "Under GPipe every stage holds all micro-batches before the first comes back.",
            "Full recomputation keeps the input of each layer only and runs the forward pass "
            f"again: this plan then takes {found.report.iteration_s:.3g} s instead of "
            f"{priced(schedule, 'none').report.iteration_s:.3g} s."
            if recompute == "full"
            else "Recomputation trades the stash for time: try full.",
        ),
        (
            Formula(
                "In flight, micro-batches",
                symbols,
                numbers,
                "Huang et al. 2019"
                if schedule == "gpipe"
                else "Narayanan et al. 2021 (PipeDream-Flush)",
            ),
            Formula(
                "Stash of stage 1",
                "(in flight - 1) kept",
                f"({held} - 1) {humanise_bytes(one)} = {humanise_bytes(first.stash)}",
                "method.md, Memory; kept: Korthikanti et al. 2022",
            ),
            Formula(
                "Fullest device",
                "weights + gradients + optimizer + activations + stash + buffers",
                f"{humanise_bytes(max(needs))} of {humanise_bytes(limit)}: "
                + ("fits" if found.report.feasible else "does not fit"),
                "method.md, Memory (equation 1 of the paper has the first five)",
            ),
        ),
    )


def _held(given: Settings) -> int:
    """Micro-batches that a stage, counted from 1, holds at its fullest under 1F1B."""
    point = Point(1, False, 1, int(given["pp"]), 1, 0, ORDER, schedule="1f1b")
    held = in_flight(point, int(given["m"]))
    stage = int(given["stage"])
    if stage > len(held):
        raise InputError("stage", f"must be at most pp, {len(held)}", stage, "make it smaller")
    return int(held[stage - 1])


def _gpipe_bytes(stages: int, micro_batches: int) -> float:
    report = priced("gpipe", "none", stages, micro_batches).report
    return max(stage.memory.total for stage in report.stages)


STASH = Figure(
    "stash",
    (
        Control("schedule", "Schedule", _SCHEDULES, "1f1b", "1F1B or GPipe.", _SCHEDULE_NAMES),
        Control(
            "recompute",
            "Recomputation",
            RECOMPUTE,
            "none",
            "None keeps everything, selective drops the attention, full keeps layer inputs only.",
        ),
    ),
    _show,
    {
        "pp": Given(STAGES, most=64),
        "m": Given(MICRO_BATCHES, most=512),
        "stage": Given(1, most=64),
        "kept_GiB": Given(1.0, 0.001, 1000),
    },
    {
        "name": lambda given: NAME,
        "held": _held,
        "behind": lambda given: int(given["pp"]) - 1,
        "activations": lambda given: _held(given) * from_gib(float(given["kept_GiB"])),
        "gpipe": lambda given: _gpipe_bytes(int(given["pp"]), int(given["m"])),
    },
)
