"""ZeRO in the published memory model: how far the states of one-layer stages must be sharded.

A stage needs ``2P + O + A + (s - 1) S`` bytes (`nest_core.paper.published.costs`); ZeRO over g
devices divides the optimizer's states O by g from stage 1 on, the gradients P from stage 2, the
weights P from stage 3. It shards no activations. The artifact raises the degree by powers of two
and the stage from 1 to 3, and takes the first that fits; every device of a shard is an extra device
of the stage.

References
----------
NEST, MLSys 2026, section 4 (adaptive ZeRO) and table 7; scai-tech/Nest (MIT).
"""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.paper.published.costs import StageTables, exceeds
from nest_core.paper.published.instance import Instance
from nest_core.paper.published.layers import Layers

__all__ = ["Sharding", "StageNeed", "sharded_bytes", "sharding", "stage_needs"]

_LARGEST_DEGREE = 1024


@dataclass(frozen=True, slots=True)
class Sharding:
    """A ZeRO stage and the devices it shards over; stage 0 and one device are none."""

    zero: int
    degree: int


@dataclass(frozen=True, slots=True)
class StageNeed:
    """Bytes of a stage of one layer, by what ZeRO does to them.

    Attributes
    ----------
    parameters : float
        Weights, and as much again for gradients.
    optimizer : float
    rest : float
        Activations and stash at the stage's position.
    """

    parameters: float
    optimizer: float
    rest: float


def stage_needs(instance: Instance, layers: Layers) -> tuple[StageNeed, ...]:
    """Needs of the pipeline that gives every layer a stage of its own, first to last."""
    count = len(layers.forward)
    tables = StageTables(instance, layers)
    needs = []
    for layer in range(count):
        position = count - layer
        whole = float(tables.memory(position, 1)[0, layer])
        states = 2 * layers.parameters[layer]
        optimizer = (6.0 if instance.optimizer == "Adam" else 0.0) * layers.parameters[layer]
        needs.append(StageNeed(layers.parameters[layer], optimizer, whole - states - optimizer))
    return tuple(needs)


def sharded_bytes(need: StageNeed, how: Sharding) -> float:
    """Bytes per device of a sharded stage."""
    optimizer = need.optimizer / (how.degree if how.zero >= 1 else 1)
    gradients = need.parameters / (how.degree if how.zero >= 2 else 1)
    weights = need.parameters / (how.degree if how.zero >= 3 else 1)
    return weights + gradients + optimizer + need.rest


def sharding(needs: tuple[StageNeed, ...], memory_bytes: float) -> Sharding | None:
    """The first sharding under which all of some stages fit; None where none does.

    Parameters
    ----------
    needs : tuple of StageNeed
        Stages that are sharded alike.
    memory_bytes : float
        Of one device.
    """
    for how in _ladder():
        if not any(exceeds(sharded_bytes(need, how), memory_bytes) for need in needs):
            return how
    return None


def _ladder() -> list[Sharding]:
    steps = [Sharding(0, 1)]
    degree = 2
    while degree <= _LARGEST_DEGREE:
        steps += [Sharding(zero, degree) for zero in (1, 2, 3)]
        degree *= 2
    return steps
