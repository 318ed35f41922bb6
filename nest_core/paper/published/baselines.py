"""Fixed placements priced by the published model, in both orders of their stages.

Other planners hand the artifact a number of stages, of replicas and a tensor width. The
artifact splits the layers evenly, counting the embedding as one of them, and leaves the
rest to the last stage. It then prices the list of stages the wrong way round: every stage
keeps its layers, its devices and its neighbours, but the model's last stage pays the
largest stash, recomputes, and has its parameters synchronised, while the first is spared.

``as_published`` repeats that, to reproduce the published tables; ``right_order`` prices
the same placement as the program prices its own.

References
----------
NEST, MLSys 2026, figures 5 and 6; scai-tech/Nest (MIT), its evaluation of baselines.
"""

from dataclasses import dataclass
from enum import StrEnum

from nest_core.documents import humanise_bytes
from nest_core.paper.published.costs import (
    BATCH_SEQUENCES,
    StageTables,
    boundary_levels,
    exceeds,
    time_per_batch,
)
from nest_core.paper.published.instance import ArtifactBaseline, Instance
from nest_core.paper.published.layers import Layers

__all__ = ["Evaluation", "StageOrder", "evaluate", "partition"]


class StageOrder(StrEnum):
    """Which stage counts as the last when a fixed placement is priced."""

    RIGHT = "right_order"
    """The model's last stage is the last: no recomputation, no stash."""
    AS_PUBLISHED = "as_published"
    """The model's first stage is, as in the artifact."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A fixed placement's time, or the reason for the paper's X.

    Attributes
    ----------
    feasible : bool
    time_per_batch : float or None
        In the instance's own unit.
    throughput : float or None
        The published tables' 4,096 sequences over `time_per_batch`.
    reason : str or None
        One sentence when infeasible.
    loads : tuple of float
        Of its stages, first to last: forward and backward of one micro-batch; empty when
        infeasible.
    """

    feasible: bool
    time_per_batch: float | None
    throughput: float | None
    reason: str | None
    loads: tuple[float, ...] = ()


def partition(baseline: ArtifactBaseline, layer_count: int) -> tuple[tuple[int, int], ...]:
    """Return layers ``[first, last)`` of each stage, first to last; a stage may come out empty.

    Even splits give ceil(layers / p) layers to a stage until the counted layers are gone;
    what is not counted goes to the last stage.
    """
    if baseline.partition is None:
        size = -(-baseline.layers // baseline.pipeline)
        ends = [min(stage * size, baseline.layers) for stage in range(1, baseline.pipeline + 1)]
    else:
        ends = [sum(baseline.partition[: stage + 1]) for stage in range(baseline.pipeline)]
    ends[-1] = layer_count
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def evaluate(instance: Instance, baseline: ArtifactBaseline, order: StageOrder) -> Evaluation:
    """Price a fixed placement.

    Parameters
    ----------
    instance : Instance
    baseline : ArtifactBaseline
    order : StageOrder

    Returns
    -------
    Evaluation
        Infeasible where the width is not offered, devices or micro-batches are too few,
        a stage is empty, or memory does not suffice.
    """
    layers = next((stage for stage in instance.widths if stage.width == baseline.tensor), None)
    if layers is None:
        offered = ", ".join(str(stage.width) for stage in instance.widths)
        return _infeasible(
            f"Width: no layers for tensor width {baseline.tensor} ({offered} exist)."
        )
    needed = baseline.pipeline * baseline.data * instance.stage_devices(baseline.tensor)
    if needed > instance.devices:
        return _infeasible(f"Devices: {needed:,} needed, {instance.devices:,} available.")
    if baseline.data > instance.micro_batches:
        return _infeasible(
            f"Batch: {baseline.data:,} replicas for {instance.micro_batches:,} micro-batches."
        )
    stages = partition(baseline, len(instance.layer_ids))
    for number, (first, last) in enumerate(stages, 1):
        if first >= last:
            return _infeasible(f"Layers: stage {number} of {len(stages)} would hold none.")
    return _priced(instance, baseline, layers, stages, order)


def _infeasible(reason: str) -> Evaluation:
    return Evaluation(feasible=False, time_per_batch=None, throughput=None, reason=reason)


def _priced(
    instance: Instance,
    baseline: ArtifactBaseline,
    layers: Layers,
    stages: tuple[tuple[int, int], ...],
    order: StageOrder,
) -> Evaluation:
    tables = StageTables(instance, layers)
    levels = boundary_levels(instance, instance.stage_devices(layers.width), len(stages))
    span = max(last - first for first, last in stages)
    loads = []
    for index, (first, last) in enumerate(stages):
        placed = len(stages) - index  # where the devices are
        counted = placed if order is StageOrder.RIGHT else index + 1  # what it pays for
        need = float(tables.memory(counted, span)[last - first - 1, first])
        if exceeds(need, instance.memory_bytes):
            return _infeasible(
                f"Memory: stage {index + 1} of {len(stages)} needs {humanise_bytes(need)} per "
                f"device, {humanise_bytes(instance.memory_bytes)} available."
            )
        table = tables.loads(counted, span, levels[placed], levels[placed - 1])
        loads.append(float(table[last - first - 1, first]))
    first, last = stages[0] if order is StageOrder.RIGHT else stages[-1]
    seconds = time_per_batch(
        instance,
        max(loads),
        stages=len(stages),
        data_parallel=baseline.data,
        stride=instance.devices // baseline.data,
        parameters=float(tables.parameters[last] - tables.parameters[first]),
    )
    return Evaluation(
        feasible=True,
        time_per_batch=seconds,
        throughput=BATCH_SEQUENCES / seconds,
        reason=None,
        loads=tuple(loads),
    )
