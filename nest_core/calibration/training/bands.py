"""The error band beside a predicted figure: how far similar runs were from their predictions.

Measured runs fall into *cells* that do not overlap: accelerator, how the model is divided, dense
or mixture, width of the products, one node or several. ``presets/validation/regions.toml``, which
``benchmarks/validation`` writes, holds for every cell with enough measured runs how many there
were, what sizes they span and the quantiles of their errors (``predicted / measured - 1``). A
scenario with its plan takes the band of its cell where devices, parameters and tokens lie within a
factor of two of what was measured; else it has none.

With a band of ``p10`` to ``p90``, a predicted time ``t`` stands for measured ones between
``t / (1 + p90)`` and ``t / (1 + p10)`` in four runs of five.

What settings were worth where they were measured, as shipped.

``presets/validation/settings.toml`` holds for every effect the least and the largest ratio of
throughputs with a setting over without; ``benchmarks/validation`` writes it from published
experiments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from nest_core.calibration.training.machines import find_machine
from nest_core.costs import Plan
from nest_core.documents import kept_per_edition, load_toml, preset_path
from nest_core.workload import Model

__all__ = [
    "MARGIN",
    "ErrorBand",
    "Setting",
    "band_of",
    "cell",
    "kind_of",
    "load_bands",
    "load_settings",
    "read_bands",
    "read_settings",
]

MARGIN = 2.0
"""How far outside the measured sizes a scenario may lie."""

PATH = ("validation", "settings.toml")

Span = tuple[float, float]

ANY: Span = (1.0, float("inf"))


@dataclass(frozen=True, slots=True)
class ErrorBand:
    """A validated cell.

    Parameters
    ----------
    region : str
        In words.
    cell : tuple of str
        As `cell` gives it.
    n : int
        Measured runs.
    p10, p90, mape : float
        Of their relative errors.
    devices, parameters, tokens, tp, pp : (float, float)
        Smallest and largest measured; ``tokens`` per sequence, degrees.
    """

    region: str
    cell: tuple[str, ...]
    n: int
    p10: float
    p90: float
    mape: float
    devices: Span
    parameters: Span
    tokens: Span
    tp: Span = ANY
    pp: Span = ANY

    def holds(
        self, devices: float, parameters: float, tokens: float, tp: float = 1, pp: float = 1
    ) -> bool:
        """Return whether sizes and degrees lie within the margin of the measured ones."""
        spans = (
            (devices, self.devices),
            (parameters, self.parameters),
            (tokens, self.tokens),
            (tp, self.tp),
            (pp, self.pp),
        )
        return all(low / MARGIN <= value <= high * MARGIN for value, (low, high) in spans)

    def to_json(self) -> dict[str, object]:
        """Return the fields of the command line's ``error_band``."""
        return {"region": self.region, "n": self.n, "p10": self.p10, "p90": self.p90}


def band_of(
    accelerator: str,
    model: Model,
    plan: Plan,
    precision: str,
    tokens: int,
    devices: int,
    bands: Iterable[ErrorBand] | None = None,
) -> ErrorBand | None:
    """Return the band of a scenario's plan; None where nothing like it was measured.

    Parameters
    ----------
    accelerator : str
        Its name, as a preset or a person gives it.
    tokens : int
        Per sequence.
    devices : int
        That the plan uses.
    bands : iterable of ErrorBand, optional
        Those that are shipped by default.
    """
    machine = find_machine(accelerator)
    if machine is None:
        return None
    point = plan.point
    kind, one_node = kind_of(point.zero, point.pp), devices <= machine.per_node
    here = cell(machine.name, kind, model.experts, precision, one_node)
    like = (
        band
        for band in (load_bands() if bands is None else bands)
        if band.cell == here and band.holds(devices, model.parameters, tokens, point.tp, point.pp)
    )
    return next(like, None)


@kept_per_edition(1)
def load_bands() -> tuple[ErrorBand, ...]:
    """Return the shipped bands."""
    return read_bands(load_toml(preset_path("validation", "regions.toml")))


def read_bands(document: Mapping[str, Any]) -> tuple[ErrorBand, ...]:
    """Return the bands of a file of the shipped form."""
    return TypeAdapter(tuple[ErrorBand, ...]).validate_python(
        [{**entry, "region": ", ".join(entry["cell"])} for entry in document.get("region", ())]
    )


def kind_of(zero: int, pp: int) -> str:
    """Return how a model is divided: ``sharded`` (ZeRO 2 and 3, FSDP) or ``model parallel``."""
    return "sharded" if zero >= 2 and pp == 1 else "model parallel"


def cell(
    device: str, kind: str, experts: int, precision: str, one_node: bool
) -> tuple[str, str, str, str, str]:
    """Return a cell: accelerator, division, model, products, extent."""
    return (
        device,
        kind,
        "dense" if experts == 1 else "mixture of experts",
        {"fp8": "8 bits", "int8": "8 bits", "nvfp4": "4 bits"}.get(precision, "16 bits"),
        "one node" if one_node else "several nodes",
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """An effect, measured.

    Parameters
    ----------
    name, key : str
        The setting in words, and the dotted key of the field that offers it; empty: no file has
        one.
    ratios : (float, float) or None
        Least and largest throughput with it over without, of experiments that say all of their
        plan; None: there are none.
    n, clean : int
        How many those are, and how many of them changed one setting alone.
    others : (float, float) or None
        Likewise, of experiments that leave out a part of their plan.
    n_others : int
    memory : (float, float) or None
        Least and largest memory with it over without, of all experiments that print it.
    groups : tuple of str
        Of the experiments.
    """

    name: str
    key: str
    ratios: Span | None
    n: int
    clean: int
    others: Span | None
    n_others: int
    memory: Span | None
    groups: tuple[str, ...]


@kept_per_edition(1)
def load_settings() -> tuple[Setting, ...]:
    """Return the shipped settings."""
    return read_settings(load_toml(preset_path(*PATH)))


def read_settings(document: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return the settings of a file of the shipped form."""
    return TypeAdapter(tuple[Setting, ...]).validate_python(
        [
            {"ratios": None, "others": None, "memory": None, **entry}
            for entry in document.get("setting", ())
        ]
    )
