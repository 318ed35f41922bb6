"""Two- and three-dimensional tori and meshes, whole or with failed chips, plain or twisted.

A twisted torus of k x k x 2k closes its short dimensions with a shift of k along the long one,
one of k x 2k x 2k its short dimension with a shift of k along both long ones: the face- and
body-centred cubic lattices of Camarero, Martinez and Beivide, "Lattice Graphs for High-Scale
Interconnection Topologies" (IEEE TPDS 2015), which TPU v4 offers (Jouppi et al., ISCA 2023).
All links are then equivalent, and none of the three directions is a bottleneck.

Slices of Google's TPU pods as tori: which dimensions wrap, and how fast a link is.

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

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from nest_core.documents import (
    from_gbps_bytes,
    from_microseconds,
    gigabytes,
    humanise_rate,
    microseconds,
    require,
)
from nest_core.documents.schema import FabricFile
from nest_core.documents.schema.fabric import TorusTable, TpuSliceTable
from nest_core.fabric.checks import (
    IntArray,
    LinkGraph,
    Routing,
    check_devices,
    check_explicit_size,
    check_some_left,
    parse_failed,
    positive,
    whole,
)
from nest_core.fabric.fabric import Document, Fabric

__all__ = ["LINK_BPS", "MAX_DIAMETER", "Generation", "Torus", "slice_from_file", "tpu_slice"]


_USUAL = {"nics_per_device": 0, "nic_bandwidth_GBps": 0.0, "devices_per_node": 1, "twisted": False}
"""What files of tori need not say."""

MAX_DIAMETER = 4096


@dataclass(frozen=True, slots=True)
class Torus(Fabric):
    """A torus or mesh; device ids count the first dimension fastest.

    Parameters
    ----------
    shape : tuple of int
        Two or three sizes.
    wrap : tuple of bool
        Whether a dimension closes into a ring; a mesh closes none.
    link_bandwidth_Bps, hop_latency_s : float
        One link in one direction; one hop.
    twisted : bool
        Shapes k x k x 2k and k x 2k x 2k in any order, all dimensions wrapped.
    missing : tuple of str
        ``"device 9"``: devices that take no part. Their routers still forward.
    routing : {"adaptive", "shortest_path"}
        Kept for the document; routes go dimension by dimension whatever it says.
    nics_per_device : int
        NICs whose ports, broken out, are the links; 0: the links are the devices' own.
    nic_bandwidth_Bps : float
        One NIC, one direction.
    devices_per_node : int
        Devices of a server, where links are NICs'. The bill reads it: no link joins devices of a
        server in another way.
    """

    kind = "torus"
    noun = "torus"
    routed = False
    switched = False

    shape: tuple[int, ...]
    wrap: tuple[bool, ...]
    link_bandwidth_Bps: float
    hop_latency_s: float
    twisted: bool = False
    nics_per_device: int = 0
    nic_bandwidth_Bps: float = 0.0
    devices_per_node: int = 1

    def __post_init__(self) -> None:
        require(
            len(self.shape) in (2, 3),
            "torus.shape",
            "must have two or three dimensions",
            list(self.shape),
            "add or drop one",
        )
        for index, size in enumerate(self.shape):
            whole(f"torus.shape[{index}]", size)
        require(
            len(self.wrap) == len(self.shape),
            "torus.wrap",
            f"must have one entry per dimension ({len(self.shape)})",
            list(self.wrap),
            "say true or false for every dimension",
        )
        require(
            self.places >= 2,
            "torus.shape",
            "must hold at least two devices",
            list(self.shape),
            "enlarge it",
        )
        check_devices("torus.shape", self.places)
        require(
            sum(self.shape) <= MAX_DIAMETER,
            "torus.shape",
            f"must have sizes that add up to at most {MAX_DIAMETER:,}, one level per hop",
            list(self.shape),
            "make it squarer",
        )
        positive("torus.link_bandwidth_GBps", self.link_bandwidth_Bps)
        positive("torus.hop_latency_us", self.hop_latency_s, zero=True)
        if self.twisted:
            self._check_twist()
        check_some_left(self.missing, self.devices)
        self._check_nics()

    def _check_nics(self) -> None:
        whole("torus.devices_per_node", self.devices_per_node)
        require(
            (self.nics_per_device == 0) == (self.nic_bandwidth_Bps == 0),
            "torus.nics_per_device",
            "must be given together with torus.nic_bandwidth_GBps",
            self.nics_per_device,
            "give both, or neither where the links are the devices' own",
        )
        rate, links = self.nics_per_device * self.nic_bandwidth_Bps, 2 * len(self.shape)
        require(
            not rate or links * self.link_bandwidth_Bps <= rate * (1 + 1e-09),
            "torus.link_bandwidth_GBps",
            f"must be at most {gigabytes(rate / links):g}, a device's NICs over {links} links",
            gigabytes(self.link_bandwidth_Bps),
            "lower it, or give more NICs",
        )

    def _check_twist(self) -> None:
        short, middle, long = sorted(self.shape) if len(self.shape) == 3 else (0, 0, 0)
        require(
            short >= 2 and long == 2 * short and (middle in (short, long)),
            "torus.twisted",
            "must be false unless the shape is k x k x 2k or k x 2k x 2k, k at least 2",
            list(self.shape),
            "change the shape, or leave the torus plain",
        )
        require(
            all(self.wrap),
            "torus.wrap",
            "must be true in every dimension of a twisted torus",
            list(self.wrap),
            "close all dimensions",
        )

    @classmethod
    def from_file(cls, file: FabricFile, table: TorusTable) -> Self:
        """Return the fabric of a file's ``[torus]``."""
        return cls(
            file.name,
            tuple(table.shape),
            tuple(table.wrap),
            from_gbps_bytes(table.link_bandwidth_GBps),
            from_microseconds(table.hop_latency_us),
            table.twisted,
            table.nics_per_device or 0,
            from_gbps_bytes(table.nic_bandwidth_GBps) if table.nic_bandwidth_GBps else 0.0,
            table.devices_per_node,
            missing=tuple(file.missing),
            routing=file.routing,
        )

    def tables(self) -> Document:
        """``[torus]``, whatever it was read from."""
        every = {
            "shape": list(self.shape),
            "wrap": list(self.wrap),
            "link_bandwidth_GBps": gigabytes(self.link_bandwidth_Bps),
            "hop_latency_us": microseconds(self.hop_latency_s),
            "nics_per_device": self.nics_per_device,
            "nic_bandwidth_GBps": gigabytes(self.nic_bandwidth_Bps),
            "devices_per_node": self.devices_per_node,
            "twisted": self.twisted,
        }
        return {"torus": {key: value for key, value in every.items() if value != _USUAL.get(key)}}

    def _called(self) -> str:
        return "torus" if any(self.wrap) else "mesh"

    def arrangement(self) -> str:
        """Shape, twist and whether anything wraps."""
        twisted = "twisted " if self.twisted else ""
        return f"{'×'.join(map(str, self.shape))} {twisted}{self._called()}"

    def extent(self) -> str:
        """Its shape."""
        return f"{' × '.join(map(str, self.shape))} {self._called()}"

    def contents(self) -> str:
        """Shape, wraps and links."""
        wraps = "every dimension wraps" if all(self.wrap) else "not every dimension wraps"
        wraps = wraps if any(self.wrap) else "no dimension wraps"
        twisted = ", twisted" if self.twisted else ""
        rate = humanise_rate(self.link_bandwidth_Bps)
        return f"{self.extent()}{twisted}, {wraps}; links of {rate} one way."

    @property
    def group_names(self) -> tuple[str, ...]:
        """Its dimensions."""
        return ("row", "plane", "all")

    def drawn_places(self) -> list[tuple[float, float]]:
        """Where devices sit: planes of the third dimension side by side."""
        across, down = self.shape[:2]
        place = self.place_of()
        x, y = place % across, place // across % down
        return list(
            zip((x + place // (across * down) * (across + 2)).tolist(), y.tolist(), strict=True)
        )

    @property
    def places(self) -> int:
        """Devices if nothing had failed."""
        return math.prod(self.shape)

    @property
    def element_counts(self) -> dict[str, int]:
        """Devices; a failed one leaves its router."""
        return {"device": self.places}

    @property
    def devices(self) -> int:
        """Number of devices present."""
        return self.places - len(self._failed())

    @property
    def shifts(self) -> tuple[tuple[int, ...], ...]:
        """Per dimension, what its wrap-around link adds to every coordinate; 0 if plain."""
        none = (0,) * len(self.shape)
        if not self.twisted:
            return (none,) * len(self.shape)
        short, long = min(self.shape), max(self.shape)
        along = tuple(short if size == long else 0 for size in self.shape)
        return tuple(along if size == short else none for size in self.shape)

    def place_of(self) -> IntArray:
        """Place of every device, first dimension fastest, shape (devices,)."""
        present = np.ones(self.places, dtype=bool)
        present[list(self._failed())] = False
        return np.flatnonzero(present).astype(np.int64)

    def bisection_Bps(self) -> float:
        """Bandwidth across the middle of a dimension, one direction, the least of all of them.

        ``2 N / n_max`` links, half as many where that dimension does not wrap (for odd sizes
        across the same plane, which is not quite a bisection); ``2 N / n_min`` if twisted.
        """
        if self.twisted:
            return 2 * self.places // min(self.shape) * self.link_bandwidth_Bps
        links = min(
            self.places // size * (2 if wrapped and size > 2 else 1)
            for size, wrapped in zip(self.shape, self.wrap, strict=True)
            if size > 1
        )
        return links * self.link_bandwidth_Bps

    def explicit(self) -> LinkGraph:
        """Return the link graph; devices are integers and forward one another's traffic.

        Where a device failed stands its router, ``("router", place)``.

        Raises
        ------
        InputError
            Over 16,384 devices.
        """
        check_explicit_size(self.places)
        import networkx as nx  # most are counted

        graph: LinkGraph = nx.Graph(name=self.name)
        names: list[Any] = [("router", place) for place in range(self.places)]
        for device, place in enumerate(self.place_of().tolist()):
            names[place] = device
        graph.add_nodes_from(range(self.devices), role="device")
        graph.add_nodes_from((name for name in names if isinstance(name, tuple)), role="switch")
        # Place by place, the last dimension fastest, as people list them.
        links = self.link_places()
        tails = np.concatenate([a for a, *_ in links])
        heads = np.concatenate([b for _, b, *_ in links])
        rank = np.arange(self.places).reshape(self.shape).reshape(-1, order="F")
        order = np.argsort(rank[tails], kind="stable")
        for a, b in zip(tails[order].tolist(), heads[order].tolist(), strict=True):
            graph.add_edge(
                names[a],
                names[b],
                bandwidth_Bps=self.link_bandwidth_Bps,
                count=1,
                latency_s=self.hop_latency_s,
            )
        return graph

    def link_places(self) -> list[tuple[IntArray, IntArray, int, bool]]:
        """Places at both ends of links, the dimension that they run along, and if they close it."""
        coordinates = np.unravel_index(np.arange(self.places), self.shape, order="F")
        strides = np.cumprod((1, *self.shape[:-1])).tolist()
        links = []
        for axis, (size, wrapped) in enumerate(zip(self.shape, self.wrap, strict=True)):
            inner = np.flatnonzero(coordinates[axis] < size - 1)
            if len(inner):
                links.append((inner, inner + strides[axis], axis, False))
            shifts = self.shifts[axis]
            if wrapped and (any(shifts) or size > 2):
                edge = np.flatnonzero(coordinates[axis] == size - 1)
                beside = [at[edge] * (other != axis) for other, at in enumerate(coordinates)]
                moved = tuple(at + shift for at, shift in zip(beside, shifts, strict=True))
                ahead = np.ravel_multi_index(moved, self.shape, mode="wrap", order="F")
                links.append((edge, ahead, axis, True))
        return links

    def _failed(self) -> tuple[int, ...]:
        return parse_failed(self.missing, self.element_counts).get("device", ())


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
        missing=missing,
        routing=routing,
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
