"""A layer of a model on one device and on a rank of a strategy, as Workload asks for it."""

from dataclasses import dataclass
from typing import Any

from nest_core.costs.anatomy import Anatomy, anatomy
from nest_core.documents.errors import require
from nest_core.hardware import default_stack, load_accelerator, under
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


def layer(request: LayerRequest) -> tuple[Anatomy, Anatomy]:
    """Return the layer undivided and on a rank of the strategy.

    Raises
    ------
    InputError
        If there is no such model, accelerator or layer, or the strategy does not divide it.
    """
    job = layer_job(request)
    model, device = job.model, job.accelerator
    kinds = list(model.kinds)
    require(
        request.kind in kinds,
        "kind",
        "must be a layer of the model",
        request.kind,
        "pick " + ", ".join(kinds),
    )
    etp = request.tp if request.expert_tensor else 1
    strategy = job.strategy(
        request.tp, request.sp, request.micro_batch, request.cp, request.ep, etp
    )
    after = anatomy(model, request.kind, strategy, device, request.precision, request.recompute)
    before = anatomy(
        model, request.kind, undivided(strategy), device, request.precision, request.recompute
    )
    return before, after


def layer_job(request: LayerRequest) -> Job:
    """Return one sequence of the layer's model on its device, under the family's usual stack."""
    device = load_accelerator(request.accelerator)
    stack = default_stack(device.family.name)
    attention = stack.attention if request.attention == "stack" else request.attention
    return Job(
        under(device, stack, request.precision),
        stack,
        load_model(request.model),
        request.sequence,
        1,
        request.precision,
        "adam",
        attention="unfused" if attention == "unfused" else "flash",
        context="all_gather" if request.context == "all_gather" else "ring",
        imbalance=request.imbalance,
        capacity=request.capacity,
    )
