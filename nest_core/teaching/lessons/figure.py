"""The figures that a lesson's file can name, and what lessons plan on.

A figure has controls, which people move, and given numbers, which its arithmetic takes: a question
is asked at some of them, an exercise draws others for every student. Lessons plan jobs on nodes
under one spine, and bare chains of layers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from nest_core.calibration.collectives.sweep import CollectiveSweep
from nest_core.costs import LayerTable, Problem, Report, StateBytes
from nest_core.documents import from_gbps_bytes, from_microseconds, require
from nest_core.documents.columns import column_of
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware import default_stack, load_accelerator, under
from nest_core.network import Network, collapse
from nest_core.scenario.job import Job
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings, Value, check_offered
from nest_core.workload import load_model

__all__ = [
    "LEVEL_NAMES",
    "NODE_GBPS",
    "UPLINK_GBPS",
    "Given",
    "LessonFigure",
    "Number",
    "Plans",
    "StageCut",
    "Sweeps",
    "bare_chain",
    "noded",
    "problem",
    "stage_load",
]

Number = Callable[[Settings], Value]


class Plans(NamedTuple):
    """Plans beside each other, by name, None where none fits.

    ``views`` says how the app shows them: ``memory`` and ``time`` of every stage, or the ``rate``
    at which sequences of ``tokens`` are trained on.
    """

    reports: Mapping[str, Report | None]
    views: tuple[str, ...]
    tokens: int = 1


class Sweeps(NamedTuple):
    """One collective by several algorithms."""

    sweeps: tuple[CollectiveSweep, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """A number, or one of some words, that arithmetic takes.

    Parameters
    ----------
    standard : int, float or str
        Where it stands if nothing is said; a whole one takes whole numbers only.
    min, max : float
        Bounds of a number, ends included.
    values : tuple of str
        What a word can be.
    """

    standard: Value
    min: float = 1.0
    max: float = 1024.0
    values: tuple[str, ...] = ()

    def check(self, name: str, value: Value) -> Value:
        """Return the value; InputError where it is none of these."""
        if isinstance(self.standard, str):
            check_offered(name, "must be one of its values", value, self.values)
            return value
        is_whole = isinstance(self.standard, int)
        wrong = isinstance(value, str | bool) or (is_whole and value != int(value))
        kind = "whole number" if is_whole else "number"
        require(
            not (wrong or not self.min <= float(value) <= self.max),
            name,
            f"must be a {kind} from {self.min:g} to {self.max:g}",
            value,
            "change it",
        )
        return int(value) if is_whole else float(value)


@dataclass(frozen=True, slots=True)
class LessonFigure:
    """What a lesson shows, without its words.

    Parameters
    ----------
    key : str
        How files name it.
    controls : tuple of Control
    show : callable (Settings) -> Reveal
        A pure function of valid settings.
    given : mapping of str to Given
    numbers : mapping of str to callable (Settings) -> value
        In SI, of what is given; words where a number would not do.
    row : callable (Settings) -> mapping, optional
        Numbers whose names are known only when they are computed.
    slow : bool
        Whether showing it takes longer than a page may, 100 ms.
    """

    key: str
    controls: tuple[Control, ...]
    show: Callable[[Settings], Reveal]
    given: Mapping[str, Given] = field(default_factory=dict)
    numbers: Mapping[str, Number] = field(default_factory=dict)
    row: Callable[[Settings], Mapping[str, Value]] | None = None
    slow: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What words can name."""
        return (*self.given, *self.numbers)

    def at(self, given: Settings, where: str = "given") -> dict[str, Value]:
        """All that is given, where a file says some of it."""
        for name in given:
            check_offered(
                f"{where}.{name}",
                f"must be something that the figure {self.key} takes",
                name,
                self.given,
            )
        return {
            name: bounds.check(f"{where}.{name}", given.get(name, bounds.standard))
            for name, bounds in self.given.items()
        }

    def check(self, name: str, where: str) -> None:
        """Refuse a name that the figure lacks, where that can be told before it computes."""
        if self.row is None and name not in self.names:
            self.number(name, {}, where)

    def number(self, name: str, given: Settings, where: str = "words") -> Value:
        """Return what a name stands for; InputError for one that the figure lacks."""
        if name in self.given:
            return given[name]
        if name in self.numbers:
            return self.numbers[name](given)
        row = self.row(given) if self.row else {}
        name = name if name in row else column_of(name)
        check_offered(
            where,
            f"must name what the figure {self.key} computes",
            name,
            row if name in row else (*self.names, *row),
        )
        return row[name]


NODE_GBPS = 450.0
"""One H100 into NVLink 4, one direction."""
UPLINK_GBPS = 50.0
"""One NDR port for each device of a node, one direction; the node shares them."""

LEVEL_NAMES = ("same node", "other node")
"""Where two stages of a bare chain on nodes meet, by level."""

_NODE_US, _SPINE_US = 1.0, 5.0


def _fabric(devices: int, per_node: int, ratio: float) -> Hierarchical:
    """Nodes under one spine, oversubscribed ``ratio`` : 1."""
    node = Tier("node", per_node, from_gbps_bytes(NODE_GBPS), from_microseconds(_NODE_US))
    spine = Tier(
        "spine",
        devices // per_node,
        per_node * from_gbps_bytes(UPLINK_GBPS),
        from_microseconds(_SPINE_US),
        "child",
        ratio,
    )
    return Hierarchical(f"{devices} devices, {per_node} per node", (node, spine))


@cache
def noded(nodes: int, per_node: int, nic_GBps: float) -> Network:
    """Nodes under one leaf, a NIC of their own for all devices; GB/s in one direction."""
    node = Tier("node", per_node, from_gbps_bytes(NODE_GBPS), from_microseconds(_NODE_US))
    leaf = Tier("leaf", nodes, from_gbps_bytes(nic_GBps), from_microseconds(_SPINE_US))
    return collapse(Hierarchical(f"{nodes} nodes of {per_node}", (node, leaf)))


@cache
def problem(
    model: str,
    sequence: int,
    batch: int,
    devices: int,
    per_node: int,
    *,
    ratio: float = 1.0,
    imbalance: float = 1.0,
    overlap: bool = True,
) -> Problem:
    """Return a model on H100 with 80 GiB, bf16 and Adam.

    Parameters
    ----------
    model : str
        A preset.
    sequence, batch : int
        Tokens, sequences per iteration.
    devices, per_node : int
    ratio : float
        Oversubscription of the nodes' uplinks, down : up.
    imbalance : float
        Load of the hottest expert over the mean.
    overlap : bool
        Whether communication may hide behind compute, as fitted; else all of it is exposed.
    """
    device = load_accelerator("h100-80gb")
    stack = default_stack(device.family.name)
    job = Job(
        under(device, stack, "bf16"),
        stack,
        load_model(model),
        sequence,
        batch,
        "bf16",
        "adam",
        imbalance=imbalance,
        overlap="fitted" if overlap else "none",
    )
    return job.problem_on(_fabric(devices, per_node, ratio))


def bare_chain(
    network: Network,
    seconds: Sequence[float],
    forward: Sequence[float],
    boundary: Sequence[float],
    batch: int,
) -> Problem:
    """Layers that take time and hand data on, and nothing else; micro-batches of one.

    Parameters
    ----------
    network : Network
    seconds, forward : sequence of float, length L
        Forward and backward, and of it forward.
    boundary : sequence of float, length L + 1
        Data between neighbouring layers; zero at both ends.
    batch : int
    """
    layers = len(seconds)
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    chain = LayerTable(
        compute_s=np.array(seconds, dtype=np.float64),
        forward_s=np.array(forward, dtype=np.float64),
        weight_s=nothing,
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.array(boundary, dtype=np.float64),
    )
    return Problem(
        network=network,
        table=lambda tp, sp, micro_batch, cp, ep, etp: chain,
        batch=batch,
        tokens=1,
        memory_bytes=float("inf"),
        reserved_bytes=0.0,
        state=StateBytes(0.0, 0.0, 0.0),
        update_Bps=1.0,
        model_flops=0.0,
        peak_flops=1.0,
    )


@dataclass(frozen=True, slots=True)
class StageCut:
    """One way to fill a cell of a program that places stages.

    Parameters
    ----------
    end : int
        The stage takes the layers up to this one, exclusive.
    load : float
        Seconds of the stage.
    rest : float
        The cell that it goes on with; 0 after the last stage.
    total : float
        What the cell holds by this way.
    after : tuple of int or None
        Stages and level of the cell that it goes on with, where they are not known before.
    """

    end: int
    load: float
    rest: float
    total: float
    after: tuple[int, int] | None = None


def stage_load(
    layers: tuple[Sequence[float], Sequence[float]],
    hops: Sequence[float],
    span: tuple[int, int],
    before: int | None,
    after: int | None,
) -> float:
    """Return seconds of a stage: its layers, what comes in, and gradients that come back.

    Parameters
    ----------
    layers : (sequence of float, sequence of float)
        Seconds of every layer, and units of data that enter each.
    hops : sequence of float
        Seconds per unit over a link of each level.
    span : (int, int)
        First layer, and the one after the last.
    before, after : int or None
        Level of the link to the stage before and after; None where there is none.
    """
    (seconds, units), (first, end) = layers, span
    arrives = hops[before] * units[first] if before is not None else 0.0
    returns = hops[after] * units[end] if after is not None else 0.0
    return sum(seconds[first:end]) + arrives + returns
