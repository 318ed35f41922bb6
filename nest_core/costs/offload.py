"""A problem in which shares of activations or optimizer states are on the host.

Every device has a link to its host, equally fast either way at once. Of the *optimizer's* share
the step sends gradients down, reads and writes states, reads gradients and writes weights on the
host, and fetches the weights, one after the other. Of *activations* the share of what blocks keep
goes down during forward and comes back during backward: what the layer's own compute in that pass
does not cover is waited for. While a layer runs backward, its own share and that of the next one
are on the device. Formulae and sources: ``docs/method.md``, "Offloading".
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nest_core.costs.problem import LayerTable, Problem
from nest_core.documents.errors import require
from nest_core.network import FloatArray
from nest_core.workload.offload import NO_OFFLOAD, Offload

__all__ = ["NO_OFFLOAD", "Offload", "exposed_seconds", "offloaded"]


def offloaded(problem: Problem, offload: Offload) -> Problem:
    """Return the problem of a plan that offloads; itself where that is done already.

    Raises
    ------
    InputError
        If the device's link to its host is unknown, or something else is offloaded already.
    """
    if offload == problem.offload:
        return problem
    require(
        problem.offload == NO_OFFLOAD,
        "plan.offload",
        f"must be {problem.offload.spelled} here",
        offload.spelled,
        "drop it",
    )
    require(
        problem.host_Bps,
        "accelerator.host_bandwidth_GBps",
        "must be given where something is offloaded to the host",
        "absent",
        "override it with what a device's link to its host carries one way",
    )
    state, stays = problem.state, 1.0 - offload.optimizer
    result = replace(
        problem,
        offload=offload,
        state=replace(state, optimizer=stays * state.optimizer, temporary=stays * state.temporary),
        host_optimizer=offload.optimizer * state.optimizer,
    )
    if not offload.activations:
        return result
    bound = problem.lower_bound
    return replace(
        result,
        table=_moved(problem.table, offload.activations),
        lower_bound=bound and _moved(bound, offload.activations),
    )


def exposed_seconds(problem: Problem, table: LayerTable) -> FloatArray:
    """Seconds per micro-batch that layers wait for their copies, both passes, shape (L,)."""
    if table.host_bytes is None:
        return np.zeros(table.layers)
    copied = table.host_bytes / problem.host_Bps
    backward = table.compute_s - table.forward_s
    return np.maximum(copied - table.forward_s, 0.0) + np.maximum(copied - backward, 0.0)


def _moved(tables: Callable[..., LayerTable], share: float) -> Callable[..., LayerTable]:
    @lru_cache(maxsize=4096)
    def table(*key: int) -> LayerTable:
        plain = tables(*key)
        moved = np.where(plain.replay_s[-1] > 0, share * plain.kept_bytes[0], 0.0)
        kept_bytes, working_bytes = plain.kept_bytes.copy(), plain.working_bytes.copy()
        kept_bytes[0] -= moved
        working_bytes[0] += 2 * moved
        return replace(plain, kept_bytes=kept_bytes, working_bytes=working_bytes, host_bytes=moved)

    return table
