"""Slices of Google's TPU pods as tori: which dimensions wrap, and how fast a link is.

v4, v5p and v7x are built from cubes of 4 x 4 x 4 chips behind optical switches: a slice of whole
cubes wraps in every dimension, one smaller than a cube in none. v5e and v6e are one fixed
16 x 16 torus: an axis wraps only when the slice spans all 16 (Austin et al., "How to Scale
Your Model", chapter 2; Google Cloud TPU documentation).

Link rates are one direction. They are read off Google's all-reduce and bisection bandwidth per
pod: v5e 51.2 and 1.6 TB/s, v6e 102.4 and 3.2 TB/s. v4's two figures, 1.1 PB/s and 24 TB/s,
would take 44.8 and 46.9 GB/s; 46 is the one whole figure that rounds to both (the book
measures 45). v5p is the book's. v7x has 1,200 GB/s both ways over six links per chip
(docs.cloud.google.com/tpu/docs/tpu7x); its pod of 9,216 chips is taken for 16 x 24 x 24.
"""

from typing import Literal

from nest_core.documents import from_gbps_bytes, from_microseconds, require
from nest_core.documents.schema import FabricFile
from nest_core.documents.schema.fabric import TpuSliceTable
from nest_core.fabric.checks import Routing, whole
from nest_core.fabric.torus import Torus

__all__ = ["LINK_BPS", "Generation", "slice_from_file", "tpu_slice"]

Generation = Literal["v4", "v5p", "v5e", "v6e", "v7x"]

LINK_BPS: dict[Generation, float] = {
    "v4": 46e9,
    "v5p": 90e9,
    "v5e": 50e9,
    "v6e": 100e9,
    "v7x": 100e9,
}
_POD: dict[Generation, tuple[int, ...]] = {
    "v4": (16, 16, 16),
    "v5p": (16, 20, 28),
    "v5e": (16, 16),
    "v6e": (16, 16),
    "v7x": (16, 24, 24),
}
_CUBE = 4


def tpu_slice(
    name: str,
    generation: Generation,
    shape: tuple[int, ...],
    *,
    twisted: bool = False,
    hop_latency_s: float = 1e-6,
    link_bandwidth_Bps: float = 0.0,
    missing: tuple[str, ...] = (),
    routing: Routing = "adaptive",
) -> Torus:
    """Return the torus of a slice.

    Parameters
    ----------
    generation : {"v4", "v5p", "v5e", "v6e", "v7x"}
    shape : tuple of int
        Chips; three sizes for v4, v5p and v7x, two for v5e and v6e.
    twisted : bool
        v4 and v5p, shapes k x k x 2k and k x 2k x 2k of whole cubes.
    hop_latency_s : float
        One hop; 1 us unless given ("How to Scale Your Model").
    link_bandwidth_Bps : float
        One link, one direction; 0: that of the generation.

    Raises
    ------
    InputError
        For shapes that the generation does not have.

    Examples
    --------
    >>> tpu_slice("cube", "v4", (4, 4, 4)).wrap, tpu_slice("part", "v4", (2, 2, 4)).wrap
    ((True, True, True), (False, False, False))
    >>> tpu_slice("half", "v5e", (8, 16)).wrap
    (False, True)
    """
    pod = _POD[generation]
    for index, size in enumerate(shape):
        whole(f"tpu_slice.shape[{index}]", size)
    require(
        len(shape) == len(pod),
        "tpu_slice.shape",
        f"must have {len(pod)} dimensions for {generation}",
        list(shape),
        "add or drop one",
    )
    require(
        all(size <= most for size, most in zip(sorted(shape), pod, strict=True)),
        "tpu_slice.shape",
        f"must fit into a pod of {' x '.join(map(str, pod))}",
        list(shape),
        "make the slice smaller",
    )
    if len(pod) == 2:
        wrap = tuple(size == most for size, most in zip(shape, pod, strict=True))
    else:
        cubes = all(size % _CUBE == 0 for size in shape)
        require(
            cubes or max(shape) <= _CUBE,
            "tpu_slice.shape",
            "must be made of whole cubes of 4 x 4 x 4, or fit into one",
            list(shape),
            "use multiples of 4",
        )
        wrap = (cubes,) * 3
    return Torus(
        name,
        shape,
        wrap,
        link_bandwidth_Bps or LINK_BPS[generation],
        hop_latency_s,
        twisted,
        missing,
        routing,
    )


def slice_from_file(file: FabricFile, table: TpuSliceTable) -> Torus:
    """Return the torus of a file's ``[tpu_slice]``."""
    return tpu_slice(
        file.name,
        table.generation,
        tuple(table.shape),
        twisted=table.twisted,
        hop_latency_s=from_microseconds(table.hop_latency_us),
        link_bandwidth_Bps=from_gbps_bytes(table.link_bandwidth_GBps or 0.0),
        missing=tuple(file.missing),
        routing=file.routing,
    )
