"""A layer of a model on one device and on a rank of a strategy, as Workload asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nest_core.costs.anatomy import Anatomy, anatomy
from nest_core.documents.errors import InputError
from nest_core.hardware import load_accelerator
from nest_core.hardware.stacks import default_stack, under
from nest_core.report.explain.layer_summary import undivided
from nest_core.scenario.job import Job
from nest_core.workload.model_files import load_model

__all__ = ["LayerRequest", "layer", "layer_job"]


@dataclass(frozen=True, slots=True)
class LayerRequest:
    """A layer and how it is divided.

    Parameters
    ----------
    model : dict
        The model's table, so that one's own is told apart.
    accelerator : str
        A preset.
    kind : str
        Of layer: one of the model's ``runs``.
    precision, attention, recompute, context : str
        As scenario files have them.
    sequence, micro_batch, tp, cp, ep : int
    sp, expert_tensor : bool
    imbalance, capacity : float
    """

    model: dict[str, Any]
    accelerator: str
    kind: str
    precision: str
    attention: str
    sequence: int
    micro_batch: int
    tp: int
    sp: bool
    cp: int
    ep: int
    recompute: str
    context: str = "ring"
    expert_tensor: bool = True
    imbalance: float = 1.0
    capacity: float = 0.0


def layer(asked: LayerRequest) -> tuple[Anatomy, Anatomy]:
    """Return the layer undivided and on a rank of the strategy.

    Raises
    ------
    InputError
        If there is no such model, accelerator or layer, or the strategy does not divide it.
    """
    job = layer_job(asked)
    model, device = job.model, job.accelerator
    if asked.kind not in dict(model.runs):
        kinds = ", ".join(kind for kind, _ in model.runs)
        raise InputError("kind", "must be a layer of the model", asked.kind, f"pick {kinds}")
    etp = asked.tp if asked.expert_tensor else 1
    strategy = job.strategy(asked.tp, asked.sp, asked.micro_batch, asked.cp, asked.ep, etp)
    after = anatomy(model, asked.kind, strategy, device, asked.precision, asked.recompute)
    one_rank = undivided(strategy)
    before = anatomy(model, asked.kind, one_rank, device, asked.precision, asked.recompute)
    return before, after


def layer_job(asked: LayerRequest) -> Job:
    """Return one sequence of the layer's model on its device, under the family's usual stack."""
    device = load_accelerator(asked.accelerator)
    stack = default_stack(device.family.name)
    attention = stack.attention if asked.attention == "stack" else asked.attention
    return Job(
        under(device, stack, asked.precision),
        stack,
        load_model(asked.model),
        asked.sequence,
        1,
        asked.precision,
        "adam",
        attention="unfused" if attention == "unfused" else "flash",
        context="all_gather" if asked.context == "all_gather" else "ring",
        imbalance=asked.imbalance,
        capacity=asked.capacity,
    )
