"""Has JAX lay meshes on slices of TPU v5p that are described and not there."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jax.experimental import mesh_utils
from reading import expect, read_all


def read(_: Path, case: dict[str, Any]) -> None:
    """Raise where JAX lays a mesh that we do not, or the other way round."""
    shape = (*case["shape"], 1)[:3]
    devices = [
        SimpleNamespace(
            id=number,
            platform="tpu",
            device_kind="TPU v5p",
            coords=(x, y, z),
            core_on_chip=0,
            process_index=0,
        )
        for number, (z, y, x) in enumerate(
            itertools.product(range(shape[2]), range(shape[1]), range(shape[0]))
        )
    ]
    try:
        mesh_utils.create_device_mesh(tuple(reversed(case["degrees"])), devices)
    except NotImplementedError:
        lies = False
    else:
        lies = True
    expect(lies=(lies, case["lies"]))


if __name__ == "__main__":
    read_all(read)
