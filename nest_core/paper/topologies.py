"""The paper's topologies as levels, and affinity levels around one device of a mesh or torus."""

from functools import cache

import numpy as np
import numpy.typing as npt

from nest_core.network import Network, collapse
from nest_core.scenario import load_fabric

__all__ = ["affinity", "network_of"]


@cache
def network_of(preset: str) -> Network:
    """Return a fabric preset as levels."""
    return collapse(load_fabric(preset))


def affinity(network: Network) -> npt.NDArray[np.int64]:
    """Return the level of every device from the middle one, −1 itself; shape (last, …, first)."""
    if network.torus is None:
        raise ValueError("affinity levels are those of a mesh or torus")
    shape = network.torus.shape[::-1]
    middle = int(np.ravel_multi_index([size // 2 for size in shape], shape))
    return network.level(middle, np.arange(network.devices)).reshape(shape)
