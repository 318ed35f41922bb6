"""Lessons on one pipeline and its replicas: the bubble, the stash, the stages of ZeRO."""

from functools import cache
from typing import NamedTuple

from nest_core.costs import (
    MEGATRON_ORDER,
    RECOMPUTE,
    Plan,
    Point,
    Report,
    StateBytes,
    even_cuts,
    in_flight,
    price,
    state_shares,
    traffic,
)
from nest_core.documents import from_gib, require
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.simulator import Iteration, simulate
from nest_core.simulator.activity import PARTS, slowest
from nest_core.teaching.lessons.figure import (
    Given,
    LessonFigure,
    Plans,
    bare_chain,
    problem,
)
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings

__all__ = [
    "BUBBLE",
    "STASH",
    "ZERO",
    "Played",
    "idle_share",
    "pipeline",
    "played",
    "replica",
    "sent_bytes",
]

FORWARD_S, BACKWARD_S = 1.0, 2.0
SCHEDULES = ("1f1b", "gpipe")
_SCHEDULE_NAMES = ("1F1B", "GPipe")
_STASH_MODEL, _STASH_NAME, _REPLICAS = "llama2-13b", "Llama 2 13B", 8
_ZERO_MODEL, _ZERO_NAME = "llama2-7b", "Llama 2 7B"
_TOKENS = 4096


class Played(NamedTuple):
    """A plan that was priced and simulated."""

    report: Report
    iteration: Iteration


@cache
def played(schedule: str, stages: int, micro_batches: int) -> Played:
    """Price and simulate one layer per stage, without communication.

    Parameters
    ----------
    schedule : {"gpipe", "1f1b"}
    stages, micro_batches : int
    """
    point = Point(1, False, 1, stages, 1, 0, MEGATRON_ORDER, schedule=schedule)
    chain = bare_chain(
        collapse(Hierarchical("bubble", (Tier("switch", stages, 1.0, 0.0, "device"),))),
        (FORWARD_S + BACKWARD_S,) * stages,
        (FORWARD_S,) * stages,
        (0.0,) * (stages + 1),
        micro_batches,
    )
    plan = Plan(point, tuple(range(stages + 1)), ("none",) * stages)
    return Played(price(chain, plan), simulate(chain, plan))


def idle_share(playback: Played) -> float:
    """Return the share of all stages' time in which they wait."""
    stages = [entry.seconds for entry in slowest(playback.iteration)]
    waited = sum(float(seconds[PARTS.index("waiting")]) for seconds in stages)
    return waited / (len(stages) * playback.iteration.seconds)


def _sizes(given: Settings) -> tuple[int, int]:
    """Return stages and micro-batches."""
    return int(given["pp"]), int(given["m"])


def _flying(schedule: str, given: Settings) -> tuple[int, ...]:
    """Return the micro-batches that every stage holds at its fullest."""
    stages, micro_batches = _sizes(given)
    return tuple(
        map(
            int,
            in_flight(
                Point(1, False, 1, stages, 1, 0, MEGATRON_ORDER, schedule=schedule), micro_batches
            ),
        )
    )


BUBBLE = LessonFigure(
    "bubble",
    (
        Control("pp", "Stages (pp)", (2, 4, 8), 4, "Pipeline stages: 2, 4 or 8."),
        Control(
            "m",
            "Micro-batches (m)",
            (1, 2, 4, 8, 16, 32),
            4,
            "Per replica and iteration: 1 to 32.",
        ),
        Control("schedule", "Schedule", SCHEDULES, "1f1b", "1F1B or GPipe.", _SCHEDULE_NAMES),
    ),
    lambda settings: Reveal(played(str(settings["schedule"]), *_sizes(settings))),
    {"pp": Given(4, max=64), "m": Given(4, max=512)},
    {
        "idle": lambda given: idle_share(played("1f1b", *_sizes(given))),
        "over": lambda given: (_sizes(given)[0] - 1) / _sizes(given)[1],
        "one": lambda given: 1 / _sizes(given)[0],
        "goal": lambda given: 0.1,
        "forward": lambda given: FORWARD_S,
        "backward": lambda given: BACKWARD_S,
        "total": lambda given: played("1f1b", *_sizes(given)).iteration.seconds,
        "held": lambda given: _flying("1f1b", given)[0],
    },
)


@cache
def pipeline(schedule: str, recompute: str, stages: int = 8, micro_batches: int = 32) -> Report:
    """Price the plan of the lesson on the stash: ZeRO 1, equal stages of one device per replica."""
    job = problem(_STASH_MODEL, _TOKENS, _REPLICAS * micro_batches, stages * _REPLICAS, stages)
    point = Point(1, False, _REPLICAS, stages, 1, 1, MEGATRON_ORDER, schedule=schedule)
    return price(job, Plan(point, even_cuts(job.layers, stages), (recompute,) * stages))


def _stash_report(given: Settings) -> Report:
    return pipeline(str(given["schedule"]), str(given["recompute"]))


def _held(given: Settings) -> int:
    """Return the micro-batches that a stage, counted from 1, holds at its fullest."""
    flying = _flying(str(given["schedule"]), given)
    stage = int(given["stage"])
    require(
        stage <= len(flying),
        "stage",
        f"must be at most pp, {len(flying)}",
        stage,
        "make it smaller",
    )
    return flying[stage - 1]


STASH = LessonFigure(
    "stash",
    (
        Control("schedule", "Schedule", SCHEDULES, "1f1b", "1F1B or GPipe.", _SCHEDULE_NAMES),
        Control(
            "recompute",
            "Recomputation",
            RECOMPUTE,
            "none",
            "None keeps everything, selective drops the attention, full keeps layer inputs only.",
        ),
    ),
    lambda settings: Reveal(Plans({_STASH_NAME: _stash_report(settings)}, ("memory",))),
    {
        "schedule": Given("1f1b", values=SCHEDULES),
        "recompute": Given("none", values=RECOMPUTE),
        "pp": Given(8, max=64),
        "m": Given(32, max=512),
        "stage": Given(1, max=64),
        "kept_GiB": Given(1.0, 0.001, 1000),
    },
    {
        "name": lambda given: _STASH_NAME,
        "held": _held,
        "last": lambda given: _flying(str(given["schedule"]), given)[-1],
        "behind": lambda given: int(given["pp"]) - 1,
        "activations": lambda given: _held(given) * from_gib(float(given["kept_GiB"])),
        "all_at_once": lambda given: int(given["m"]) * from_gib(float(given["kept_GiB"])),
        "of_the_first": lambda given: (
            _held({**given, "stage": 1}) * from_gib(float(given["kept_GiB"]))
        ),
        "beside": lambda given: (_held(given) - 1) * from_gib(float(given["kept_GiB"])),
        "gpipe": lambda given: pipeline("gpipe", "none", *_sizes(given)).fullest_bytes,
        "kept": lambda given: _stash_report(given).stages[0].memory.activations,
        "stash": lambda given: _stash_report(given).stages[0].memory.stash,
        "fullest": lambda given: _stash_report(given).fullest_bytes,
        "limit": lambda given: _stash_report(given).memory_limit_bytes,
        "seconds": lambda given: _stash_report(given).iteration_s,
    },
)


@cache
def replica(zero: int, ranks: int, micro_batches: int) -> Report:
    """Price one ZeRO stage of a model that nothing else divides."""
    job = problem(_ZERO_MODEL, _TOKENS, ranks * micro_batches, ranks, min(8, ranks // 2))
    return price(
        job, Plan(Point(1, False, ranks, 1, 1, zero, MEGATRON_ORDER), (0, job.layers), ("full",))
    )


@cache
def _replica_states() -> tuple[float, StateBytes]:
    """Return the parameters of the model, and bytes of each."""
    job = problem(_ZERO_MODEL, _TOKENS, 64, 64, 8)
    table = job.table(1, False, 1, 1, 1, 1)
    return float(table.parameters.sum()) - table.tied_parameters, job.state


def _per_parameter(zero: int, ranks: int) -> float:
    return sum(state_shares(zero, ranks, _replica_states()[1]))


def sent_bytes(zero: int, ranks: int, micro_batches: int) -> float:
    """Return what one rank sends per iteration."""
    parameters, state = _replica_states()
    buffers = traffic(zero, state)
    per_parameter = micro_batches * sum(buffers.step) + sum(buffers.sync)
    return (ranks - 1) / ranks * per_parameter * parameters


def _states(given: Settings, further: int = 0) -> float:
    """Return bytes of states at a ZeRO stage, or so many stages further, 1 after 3."""
    return (
        1e9
        * float(given["billions"])
        * _per_parameter(
            (int(given["zero"]) + further - 1) % 3 + 1 if further else int(given["zero"]),
            int(given["ranks"]),
        )
    )


ZERO = LessonFigure(
    "zero",
    (
        Control("ranks", "Ranks (N)", (4, 8, 16, 64, 256), 64, "Data-parallel ranks: 4 to 256."),
        Control("m", "Micro-batches (m)", (1, 2, 4, 8, 16), 4, "Per rank and iteration: 1 to 16."),
    ),
    lambda settings: Reveal(
        Plans(
            {
                f"ZeRO {zero}": replica(zero, int(settings["ranks"]), int(settings["m"]))
                for zero in range(4)
            },
            ("memory", "time"),
        )
    ),
    {
        "ranks": Given(64, max=65536),
        "m": Given(4),
        "zero": Given(1, 0, 3),
        "billions": Given(7.0, 0.001, 1e5),
    },
    {
        "name": lambda given: _ZERO_NAME,
        "w": lambda given: _replica_states()[1].weights,
        "g": lambda given: _replica_states()[1].gradients,
        "o": lambda given: _replica_states()[1].optimizer,
        "whole": lambda given: _per_parameter(0, 1),
        "kept": lambda given: _replica_states()[1].weights + _replica_states()[1].gradients,
        "per_parameter": lambda given: _per_parameter(int(given["zero"]), int(given["ranks"])),
        "second": lambda given: _per_parameter(2, int(given["ranks"])),
        "third": lambda given: _per_parameter(3, int(given["ranks"])),
        "states": _states,
        "next_stage": lambda given: _states(given, 1),
        "last_stage": lambda given: _states(given, 2),
        "no_optimizer": lambda given: (
            1e9
            * float(given["billions"])
            * sum(state_shares(int(given["zero"]), int(given["ranks"]), _replica_states()[1])[:2])
        ),
        "first_sent": lambda given: sent_bytes(1, int(given["ranks"]), int(given["m"])),
        "third_sent": lambda given: sent_bytes(3, int(given["ranks"]), int(given["m"])),
    },
    slow=True,
)
