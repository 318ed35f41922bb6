"""Why an instance has no placement: what the least demanding one would need.

The smallest memory that any plan needs on its fullest device is itself a chain program,
that of `nest_core.paper.published.solver` with bytes in the place of loads.
"""

from __future__ import annotations

import numpy as np

from nest_core.documents.units import humanise_bytes, plural
from nest_core.paper.published.costs import StageTables
from nest_core.paper.published.instance import Instance
from nest_core.paper.published.layers import Layers

__all__ = ["least_memory", "shortage"]


def least_memory(instance: Instance, layers: Layers) -> tuple[float, int]:
    """Bytes per device of the least demanding pipeline of one width.

    Parameters
    ----------
    instance : Instance
    layers : Layers
        One of the instance's widths, of which at least one stage fits the devices.

    Returns
    -------
    float, int
        The smallest possible need of the fullest device, and the fewest stages that
        attain it.
    """
    tables = StageTables(instance, layers)
    least, stages = np.inf, 0
    behind = np.full(tables.count + 1, np.inf)
    behind[-1] = 0.0
    for position in range(1, min(tables.count, _most_stages(instance, layers)) + 1):
        span = tables.span(memory=least)
        padded = np.concatenate((behind[1:], np.full(span, np.inf)))
        following = np.lib.stride_tricks.sliding_window_view(padded, tables.count)[:span]
        behind[:-1] = np.maximum(tables.memory(position, span), following).min(axis=0)
        behind[-1] = np.inf
        if behind[0] < least:
            least, stages = float(behind[0]), position
    return least, stages


def _most_stages(instance: Instance, layers: Layers) -> int:
    return instance.devices // instance.stage_devices(layers.width)


def shortage(instance: Instance) -> str:
    """One sentence on what an instance without a placement is short of."""
    fitting = [layers for layers in instance.widths if _most_stages(instance, layers) >= 1]
    if not fitting:
        fewest = instance.stage_devices(instance.widths[0].width)
        return (
            f"Devices: one stage takes at least {fewest:,} (tensor width times ep_degree times "
            f"cp_degree), but there are {instance.devices:,}."
        )
    needs = [(*least_memory(instance, layers), layers.width) for layers in fitting]
    need, stages, width = min(needs)
    return (
        f"Memory: the least demanding placement (tensor width {width}, {plural(stages, 'stage')}) "
        f"needs {humanise_bytes(need)} on its fullest "
        f"device, {humanise_bytes(need - instance.memory_bytes)} more than the "
        f"{humanise_bytes(instance.memory_bytes)} there are."
    )
