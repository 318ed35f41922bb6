"""The cells of the paper's throughput figures: which model, on what, at which micro-batch.

References
----------
NEST, MLSys 2026, figures 5, 6, 7 and 11.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from nest_core.paper.published import PAPER_CASES, Instance, paper_cells

__all__ = [
    "FIGURES",
    "PLANNERS",
    "Cell",
    "Outcome",
    "Rival",
    "ThroughputFigure",
    "instance_of",
    "shipped_instance",
]


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One case.

    Parameters
    ----------
    setup : str
        Cluster: ``tpuv4_fatTree`` or ``h100_spineLeaf``, the artifact's names.
    model : str
        The artifact's name.
    devices, micro_batch : int
    """

    setup: str
    model: str
    devices: int
    micro_batch: int

    @property
    def key(self) -> tuple[str, int, int]:
        """Return what identifies it within a figure."""
        return self.model, self.devices, self.micro_batch


@dataclass(frozen=True, slots=True)
class ThroughputFigure:
    """A figure of relative throughputs.

    Parameters
    ----------
    title : str
    cells : tuple of Cell
        In the figure's order.
    planners : tuple of str
        Beside NEST.
    axis : str
        Field that runs along the figure's axis; the others keep one throughput as 1.
    """

    title: str
    cells: tuple[Cell, ...]
    planners: tuple[str, ...]
    axis: str

    def group(self, cell: Cell) -> tuple[str, int]:
        """Cells with the same group share the run that counts as 1."""
        return cell.model, (cell.devices if self.axis == "model" else 0)


@dataclass(frozen=True, slots=True)
class Rival:
    """Another planner's placement, priced.

    Parameters
    ----------
    as_published : float or None
        Throughput with its stages in reverse order, as the artifact prices them.
    right_order : float or None
        Throughput of the same placement in its right order.
    as_published_reason, right_order_reason : str
        Why there is none; empty otherwise.
    plan : mapping or None
        Degrees.
    search_seconds : float or None
        Of the search here; None where the placement was given.
    """

    as_published: float | None
    right_order: float | None
    as_published_reason: str
    right_order_reason: str
    plan: Mapping[str, Any] | None = None
    search_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Our optimum and its rivals.

    Parameters
    ----------
    ours : float or None
        Throughput of the proven optimum.
    reason : str
        Why there is none; empty otherwise.
    plan : mapping or None
        Degrees of the optimum, with ``devices_used``.
    search_seconds : float or None
    rivals : mapping
        By planner, lower case.
    even_division : float or None
        Throughput if the layers' work, as the optimum does it, were spread over all devices
        with no idle time and no transfers; published costs only.
    widths : tuple of int
        Tensor widths that the search could choose from.
    """

    ours: float | None
    reason: str
    plan: Mapping[str, Any] | None
    search_seconds: float | None
    rivals: Mapping[str, Rival]
    even_division: float | None = None
    widths: tuple[int, ...] = ()


PLANNERS = {
    "manual": "Manual",
    "mcmc": "MCMC",
    "alpa_e": "Alpa-E",
    "phaze": "Phaze",
    "mist": "Mist",
}
"""Planners beside NEST, with their names for people."""

_FAT_TREE = ("manual", "mcmc", "alpa_e", "phaze")
_TRIO = ("bert", "llama2", "llama3")


def _sweep(devices: int) -> tuple[Cell, ...]:
    return tuple(
        Cell("tpuv4_fatTree", model, devices, size) for model in _TRIO for size in (1, 2, 4, 8)
    )


FIGURES = {
    "figure5": ThroughputFigure(
        "Figure 5: throughput on the TPUv4-like fat tree, 64 to 1,024 devices",
        tuple(
            Cell("tpuv4_fatTree", model, devices, 1)
            for model in ("bert", "llama2", "llama3", "mixtral", "gpt3")
            for devices in (64, 128, 256, 512, 1024)
        ),
        _FAT_TREE,
        "devices",
    ),
    "figure6": ThroughputFigure(
        "Figure 6: throughput over the micro-batch, 256 devices",
        _sweep(256),
        _FAT_TREE,
        "micro_batch",
    ),
    "figure7": ThroughputFigure(
        "Figure 7: throughput on the H100 spine-leaf",
        tuple(
            Cell("h100_spineLeaf", model, devices, 1)
            for devices in (1024, 128)
            for model in ("bertlarge", "llama2", "llama3", "mixtral", "gpt3", "gpt3-35b")
        ),
        ("manual", "mcmc", "phaze", "mist"),
        "model",
    ),
    "figure11": ThroughputFigure(
        "Figure 11: throughput over the micro-batch, 512 devices",
        _sweep(512),
        _FAT_TREE,
        "micro_batch",
    ),
}
"""By name."""


@cache
def instance_of(cell: Cell) -> Instance | None:
    """Return the artifact's instance of a cell; None where it ships none."""
    name = cell.model
    if cell.micro_batch > 1:
        name += f"-mb{cell.micro_batch}"
    if cell.setup == "h100_spineLeaf":
        name += "-h100"
    if name not in PAPER_CASES:
        return None
    return next(
        (
            entry
            for entry in (entry.instance for entry in paper_cells(name))
            if entry.devices == cell.devices
        ),
        None,
    )


def shipped_instance(cell: Cell) -> Instance:
    """Return the artifact's instance of a cell that it is known to ship."""
    instance = instance_of(cell)
    if instance is None:
        raise RuntimeError(f"the presets lost the graph of {cell}")
    return instance
