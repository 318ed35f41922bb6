"""Lesson 3, memory and the stash: what every stage holds at its fullest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import RECOMPUTE, Plan, Point, Report, in_flight, price
from nest_core.lessons.lesson import (
    Brief,
    Control,
    Formula,
    Lesson,
    Notes,
    Question,
    Reveal,
    Settings,
)
from nest_core.lessons.teaching import ORDER, even_cuts, problem
from nest_core.units import humanise_bytes

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
def priced(schedule: str, recompute: str) -> Stash:
    """The plan of the lesson: one device per stage and replica, ZeRO 1, equal stages."""
    whole = problem(MODEL, _TOKENS, REPLICAS * MICRO_BATCHES, STAGES * REPLICAS, STAGES)
    point = Point(1, False, REPLICAS, STAGES, 1, 1, ORDER, schedule=schedule)
    plan = Plan(point, even_cuts(whole.layers, STAGES), (recompute,) * STAGES)
    held = in_flight(point, MICRO_BATCHES)
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


@cache
def _brief() -> Brief:
    held = priced("1f1b", "none").held[0]
    gpipe = priced("gpipe", "none")
    full = humanise_bytes(max(stage.memory.total for stage in gpipe.report.stages))
    return Brief(
        Question(
            f"{NAME} on {STAGES} pipeline stages, {MICRO_BATCHES} micro-batches per replica, 1F1B. "
            "Of how many micro-batches does the first stage hold the activations at its fullest?",
            float(held),
            f"{held}: those that entered before the first came back, not all {MICRO_BATCHES}.",
            unit="micro-batches",
            most=float(4 * MICRO_BATCHES),
            tolerance=0.0,
        ),
        Notes(
            12,
            f"{held} = min(m, pp): the first micro-batch returns to stage 1 when {STAGES} have "
            "left it. The last stage holds one.",
            (
                (
                    f"{MICRO_BATCHES}",
                    f"That is GPipe: all of them, {full} per device, more than there is.",
                ),
                ("1", "True of the last stage; stage 1 waits for the whole pipeline."),
                (f"{STAGES - 1}", "Forgets the micro-batch that is being worked on."),
            ),
            (
                "Why do the stages at both ends stand out? (Embedding; head and its loss.)",
                "Which would you rather give up first, GPipe or keeping everything?",
                "Does ZeRO make the stash smaller? (No: lesson 4.)",
            ),
        ),
    )


STASH = Lesson(
    "stash",
    "Stash",
    "Memory and the stash",
    "A device holds weights, gradients and optimizer states all the time, and activations from "
    "each forward pass to its backward pass.",
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
    _brief,
    _show,
)
