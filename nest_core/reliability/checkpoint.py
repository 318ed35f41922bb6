"""What a plan saves, how long that takes, and how often it is best saved.

A checkpoint holds every weight once, in the precision that training keeps, with its optimizer
states (`nest_core.costs.problem.StateBytes`). Ranks that hold the same weights divide them, whether
or not ZeRO does: PyTorch's distributed checkpoints and Megatron-LM's parallel saving do. It is
written as fast as the fullest host or the whole store lets it, whichever is slower.

Intervals, with ``Tf`` the mean time between failures, ``Ts`` what a save blocks and ``Tr`` the time
to recover:

* Young 1974: ``sqrt(2 Tf Ts)`` of work between saves.
* Daly 2006, "A higher order estimate of the optimum checkpoint interval": ``sqrt(2 Tf Ts) *
  (1 + sqrt(Ts / 2 Tf) / 3 + Ts / 18 Tf) - Ts`` of work, ``Tf`` where ``Ts >= 2 Tf``.
* arXiv 2410.18124, best for availability: ``Ts + sqrt(2 (Tf + Tr) Ts + Ts^2)`` from save to save.
  A save that goes on while training does is lost with what follows it, so that its time counts as
  recovery.
"""

import math
from dataclasses import dataclass

from nest_core.costs import Plan, Problem, held, offloaded
from nest_core.documents.schema.failures import RecoveryTable
from nest_core.documents.units import GB

__all__ = ["SavedState", "Saving", "availability_s", "daly_s", "saved_state", "saving", "young_s"]


@dataclass(frozen=True, slots=True)
class SavedState:
    """Bytes of a checkpoint.

    Parameters
    ----------
    total_bytes : float
    device_bytes : float
        That a device of the fullest stage writes.
    """

    total_bytes: float
    device_bytes: float


def saved_state(problem: Problem, plan: Plan) -> SavedState:
    """Return what a plan saves: weights as they are stored, and optimizer states, each once."""
    problem = offloaded(problem, plan.offload)
    per_element = (
        problem.state.weights
        - problem.state.unheld
        + problem.state.optimizer
        + problem.host_optimizer
    )
    by_stage = []
    for stage in range(plan.point.pp):
        point = plan.stage_point(stage)
        table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
        layers = [layer for i, j in plan.virtual_stages(stage) for layer in range(i, j)]
        elements = (
            held(table, point)[layers].sum() / point.sharers
            + table.expert_parameters[layers].sum() / point.expert_sharers
        )
        by_stage.append((per_element * float(elements), point.tp * point.cp * point.dp))
    return SavedState(
        sum(size * devices for size, devices in by_stage), max(size for size, _ in by_stage)
    )


@dataclass(frozen=True, slots=True)
class Saving:
    """How long a save takes.

    Parameters
    ----------
    write_s : float
        Until it is finished, as far as writing goes.
    blocking_s : float
        Of it, or before it, what training waits.
    lag_s : float
        From then on until it is finished.
    """

    write_s: float
    blocking_s: float
    lag_s: float


def saving(state: SavedState, devices_per_host: float, recovery: RecoveryTable) -> Saving:
    """Return the times of a save; a copy to host memory blocks in place of the write."""
    per_host = state.device_bytes * devices_per_host
    write = max(
        per_host / (recovery.write_GBps_per_host.value * GB),
        state.total_bytes / (recovery.write_GBps_store.value * GB),
    )
    copy = recovery.copy_GBps_per_host
    return (
        Saving(write, write, 0.0)
        if copy is None
        else Saving(write, per_host / (copy.value * GB), write)
    )


def young_s(mtbf_s: float, blocking_s: float) -> float:
    """Return the work between saves by Young, s."""
    return math.sqrt(2 * mtbf_s * blocking_s)


def daly_s(mtbf_s: float, blocking_s: float) -> float:
    """Return the work between saves by Daly, s."""
    part = blocking_s / (2 * mtbf_s)
    higher = young_s(mtbf_s, blocking_s) * (1 + math.sqrt(part) / 3 + part / 9) - blocking_s
    return higher if part < 1 else mtbf_s


def availability_s(mtbf_s: float, times: Saving, recover_s: float) -> float:
    """Return the time from save to save that is best for availability, s.

    Infinite without failures. No save begins before the one before it is finished.
    """
    ahead = 2 * (mtbf_s + recover_s + times.lag_s) * times.blocking_s
    best = times.blocking_s + math.sqrt(ahead + times.blocking_s**2)
    return max(best, times.blocking_s + times.lag_s)
