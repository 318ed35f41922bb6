"""Lesson 4, ZeRO: what every stage of it shards, and what it sends for that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from nest_core.costs import StateBytes, state_shares
from nest_core.costs.zero import traffic
from nest_core.documents.units import humanise_bytes
from nest_core.teaching.lessons.figure import Figure, Given
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings
from nest_core.teaching.lessons.teaching import problem

__all__ = ["ZERO", "Sharded", "ZeroStages", "zero_stages"]

MODEL, NAME = "llama2-7b", "Llama 2 7B"
ASKED = 64
"""Ranks of the question."""

_RANKS = (1, 2, 4, 8, 16, 64, 256)
_MICRO_BATCHES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Sharded:
    """One ZeRO stage; bytes on, and sent by, one device.

    Parameters
    ----------
    zero : int
    weights, gradients, optimizer : float
    sent : float
        Per iteration.
    per_parameter : float
        Bytes held per parameter of the model.
    """

    zero: int
    weights: float
    gradients: float
    optimizer: float
    sent: float
    per_parameter: float

    @property
    def held(self) -> float:
        """Bytes of all states."""
        return self.weights + self.gradients + self.optimizer


@dataclass(frozen=True, slots=True)
class ZeroStages:
    """Stages 0 to 3 on so many ranks."""

    ranks: int
    micro_batches: int
    limit_bytes: float
    stages: tuple[Sharded, ...]


@cache
def _model() -> tuple[float, StateBytes, float]:
    """Parameters, bytes per parameter, and memory of a device."""
    whole = problem(MODEL, 4096, 256, 8, 8)
    table = whole.table(1, False, 1, 1, 1, 1)
    parameters = float(table.parameters.sum()) - table.tied_parameters
    return parameters, whole.state, whole.memory_bytes


def zero_stages(ranks: int, micro_batches: int) -> ZeroStages:
    """All four stages for one model.

    Parameters
    ----------
    ranks : int
        That hold the same weights.
    micro_batches : int
        Per rank and iteration.
    """
    parameters, state, limit = _model()
    found = []
    for zero in range(4):
        weights, gradients, optimizer = state_shares(zero, ranks, state)
        sends = traffic(zero, state)
        buffers = micro_batches * sum(sends.step) + sum(sends.sync)
        away = (ranks - 1) / ranks
        found.append(
            Sharded(
                zero,
                weights * parameters,
                gradients * parameters,
                optimizer * parameters,
                away * buffers * parameters,
                weights + gradients + optimizer,
            )
        )
    return ZeroStages(ranks, micro_batches, limit, tuple(found))


def _show(settings: Settings) -> Reveal:
    ranks, count = int(settings["ranks"]), int(settings["m"])
    found = zero_stages(ranks, count)
    _, state, _ = _model()
    w, g, o = state.weights, state.gradients, state.optimizer
    by = found.stages
    away = f"({ranks} - 1) / {ranks}"
    return Reveal(
        found,
        (
            "Stage 1 shards the optimizer's states, stage 2 the gradients too, stage 3 the weights "
            "too. None shards activations.",
            "Stage 1 is nearly free: a reduce-scatter and an all-gather are what an all-reduce is "
            "made of. Stages 2 and 3 send again for every micro-batch (in a pipeline 2 does as 1).",
        ),
        (
            Formula(
                "Held per parameter at stage 1, bytes",
                "w + g + o / N",
                f"{w:g} + {g:g} + {o:g} / {ranks} = {by[1].per_parameter:.3g}",
                "Rajbhandari et al. 2020, section 5; bytes: Megatron Core's",
            ),
            Formula(
                "Held per parameter at stage 3, bytes",
                "(w + g + o) / N",
                f"({w:g} + {g:g} + {o:g}) / {ranks} = {by[3].per_parameter:.3g}",
                "the same",
            ),
            Formula(
                "Sent per iteration at stage 1",
                "(g + w) P (N - 1) / N",
                f"({g:g} + {w:g}) P {away} = {humanise_bytes(by[1].sent)}",
                "Rajbhandari et al. 2020, section 7",
            ),
            Formula(
                "Sent per iteration at stage 3",
                "m (g + 2 w) P (N - 1) / N",
                f"{count} ({g:g} + 2 · {w:g}) P {away} = {humanise_bytes(by[3].sent)}",
                "the same; weights are gathered before both passes",
            ),
        ),
    )


def _per_parameter(zero: int, ranks: int) -> float:
    return sum(state_shares(zero, ranks, _model()[1]))


def _states(given: Settings) -> float:
    """Bytes of a model of so many billion parameters on one rank."""
    held = _per_parameter(int(given["zero"]), int(given["ranks"]))
    return held * 1e9 * float(given["billions"])


ZERO = Figure(
    "zero",
    (
        Control("ranks", "Ranks (N)", _RANKS, ASKED, "Data-parallel ranks: 1 to 256."),
        Control("m", "Micro-batches (m)", _MICRO_BATCHES, 4, "Per rank and iteration: 1 to 16."),
    ),
    _show,
    {
        "ranks": Given(ASKED, most=65536),
        "zero": Given(1, 0, 3),
        "billions": Given(7.0, 0.001, 1e5),
    },
    {
        "name": lambda given: NAME,
        "w": lambda given: _model()[1].weights,
        "g": lambda given: _model()[1].gradients,
        "o": lambda given: _model()[1].optimizer,
        "whole": lambda given: _per_parameter(0, 1),
        "kept": lambda given: _model()[1].weights + _model()[1].gradients,
        "per_parameter": lambda given: _per_parameter(int(given["zero"]), int(given["ranks"])),
        "second": lambda given: _per_parameter(2, int(given["ranks"])),
        "third": lambda given: _per_parameter(3, int(given["ranks"])),
        "states": _states,
    },
)
