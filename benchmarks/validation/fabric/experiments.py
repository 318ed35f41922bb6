"""What ran on two networks: the tables that make a row of words two priced experiments.

A row names workload and networks in words, which no rule reads. ``presets/validation/
fabric_ratios.toml`` says for the published rows, by id, what stands behind the words, from what
source, and what had to be assumed; a person's own table says it in columns of the same names:

* ``fabric_a``, ``fabric_b``: a fabric's preset, file or table;
* ``transport_a``, ``transport_b``: an entry of ``presets/network/spread.toml``; by default that of
  the accelerator's network;
* ``reach_a``, ``reach_b``: the share of the line rate that was measured between nodes, in place of
  the transport's;
* ``in_network_a``, ``in_network_b``: whether switches reduce, ``yes`` or ``no``; by default as the
  accelerator's library has it;
* a training run as ``scenario`` (its own fabric is not used) and ``plan``, or in the TOML file as
  ``run``, with the columns of ``train_measurements.csv``;
* or a collective as ``collective``, ``bytes``, ``device`` (a preset of accelerators, whose library
  it runs), ``group`` (devices, all by default), ``stride`` and ``concurrent`` (``one`` or ``all``
  groups);
* ``seconds_a``: one step on network a, where it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from benchmarks.validation.fabric.worlds import NetworkDraw
from nest_core.calibration.training.cells import NotNumber, figure, positive_integer
from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.predict import plan_of, problem_of
from nest_core.calibration.training.rows import Unusable, run_of
from nest_core.costs import LayerTable, Plan, Problem, price
from nest_core.costs.network_draw import drawn_network, drawn_software, routing_of, under
from nest_core.costs.parse import read_plan
from nest_core.costs.software import Software, software_of
from nest_core.documents.presets import load_toml, preset_path
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import build_fabric
from nest_core.hardware import load_accelerator
from nest_core.hardware.collectives import Curve, load_curve
from nest_core.hardware.collectives.library import REDUCING
from nest_core.hardware.network_spread import NetworkParameters, Transport, load_spread
from nest_core.network import IntArray, Network, collapse
from nest_core.network.algorithms import check_op
from nest_core.network.collective import KINDS, Concurrent, collective, member_groups
from nest_core.scenario import load_fabric, load_scenario

__all__ = ["COLUMNS", "Experiment", "Side", "Work", "experiment_of", "published"]

COLUMNS = (
    "fabric_a", "fabric_b", "transport_a", "transport_b", "reach_a", "reach_b",
    "in_network_a", "in_network_b", "scenario", "plan", "collective", "bytes", "device",
    "group", "stride", "concurrent", "seconds_a",
)  # fmt: skip
"""Columns of a person's own table that say what ran; those of the other network end in b."""

INFINIBAND = "network-infiniband"
"""Curve between nodes of a device without one."""


class Work(Protocol):
    """What runs on one network."""

    @property
    def network(self) -> Network:
        """What it runs on."""

    @property
    def between(self) -> Curve | None:
        """What the library makes of links between nodes."""

    def seconds(self, parameters: NetworkParameters, slower: float = 1.0) -> float:
        """Its time under such parameters, on a device that computes so much slower."""


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A training step.

    Parameters
    ----------
    problem : Problem
    plan : Plan
    """

    problem: Problem
    plan: Plan

    @property
    def network(self) -> Network:
        return self.problem.network

    @property
    def between(self) -> Curve | None:
        return self.problem.software.between

    def seconds(self, parameters: NetworkParameters, slower: float = 1.0) -> float:
        problem = under(self.problem, parameters)
        return price(_slower(problem, slower), self.plan).iteration_s


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A collective; parameters as those of `collective`."""

    network: Network
    software: Software
    op: str
    size_bytes: float
    group: int
    stride: int
    concurrent: Concurrent

    @property
    def between(self) -> Curve | None:
        return self.software.between

    @property
    def groups(self) -> IntArray:
        """Devices of every group.

        Raises
        ------
        InputError
            If the network has no such groups.
        """
        return member_groups(
            self.network.devices, self.group, stride=self.stride, concurrent=self.concurrent
        )

    def seconds(self, parameters: NetworkParameters, slower: float = 1.0) -> float:
        del slower
        network = drawn_network(self.network, parameters)
        software = drawn_software(self.software, parameters)
        found = collective(
            network,
            self.op,
            self.size_bytes,
            self.group,
            stride=self.stride,
            concurrent=self.concurrent,
            protocols=software.of_groups(network, KINDS[self.op][0], self.groups),
        )
        return found.time_s


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two networks, and what ran on it.

    Parameters
    ----------
    name : {"a", "b"}
    work : Work
    transport : Transport
    reach : float
        Factor on the curve between nodes at the centre.
    """

    name: str
    work: Work
    transport: Transport
    reach: float

    def seconds(self, draw: NetworkDraw | None = None, slower: float = 1.0) -> float:
        """At the centre, or in one state of the world."""
        parameters = NetworkParameters()
        if draw is not None:
            apart = self.name if self.transport.name == "measured" else ""
            parameters = draw.parameters(self.transport, routing_of(self.work.network), apart)
        return self.work.seconds(replace(parameters, reach=parameters.reach * self.reach), slower)


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """One workload on two networks.

    Parameters
    ----------
    a, b : Side
    seconds_a : float or None
        Measured on network a.
    complete : bool
        Whether the published row is complete enough for an end-to-end prediction.
    assumed : str
        What the source does not say.
    """

    a: Side
    b: Side
    seconds_a: float | None
    complete: bool
    assumed: str


@dataclass(frozen=True, slots=True)
class Published:
    """The tables of published rows.

    Parameters
    ----------
    rows : mapping of str to mapping
        What ran, by a row's id.
    fabrics : mapping of str to mapping
        Fabrics by the names that rows give.
    skipped : mapping of str to str
        Why a row cannot be predicted, by how its id begins.
    """

    rows: Mapping[str, Mapping[str, Any]]
    fabrics: Mapping[str, Mapping[str, Any]]
    skipped: Mapping[str, str]

    def reason(self, identity: str) -> str:
        """Why a row has no tables; empty where no reason is known."""
        found = [start for start in self.skipped if identity.startswith(start)]
        return self.skipped[max(found, key=len)] if found else ""


def published() -> Published:
    """What ``presets/validation/fabric_ratios.toml`` says."""
    document = load_toml(preset_path("validation", "fabric_ratios.toml"))
    return Published(document["rows"], document["fabrics"], document["skipped"])


def experiment_of(
    entry: Mapping[str, Any], fabrics: Mapping[str, Mapping[str, Any]], folder: Path | None
) -> Experiment:
    """The two priced experiments of a row.

    Parameters
    ----------
    entry : mapping
        Keys of this module's first lines; cells of a table are text.
    fabrics : mapping
        Fabrics that names may mean, before presets.
    folder : Path or None
        Where paths start; None where names may be presets' only.

    Raises
    ------
    Unusable, InputError
        If it says too little, or what it says is no experiment.
    """
    works = {side: _work(entry, side, fabrics, folder) for side in ("a", "b")}
    a, b = (_side(entry, side, work) for side, work in works.items())
    devices = {side: work.network.devices for side, work in works.items()}
    if not entry.get("group") and devices["a"] != devices["b"]:
        raise Unusable(f"has {devices['a']} devices on network a and {devices['b']} on b")
    return Experiment(
        a, b, _number(entry, "seconds_a"), bool(entry.get("complete")), entry.get("assumed", "")
    )


def _side(entry: Mapping[str, Any], name: str, work: Work) -> Side:
    spread, curve = load_spread(), work.between
    named, measured = _text(entry, f"transport_{name}"), _number(entry, f"reach_{name}")
    if measured is not None and measured > 1:
        raise Unusable(f"states reach_{name} as {measured:g}, which is more than the line rate")
    transport = spread.transport(named) if named else spread.of_curve(curve)
    if measured is not None:
        transport = spread.transport("measured")
    if curve is None or (measured is None and (not named or curve.name in transport.curves)):
        return Side(name, work, transport, 1.0)
    return Side(name, work, transport, (measured or transport.share) / curve.top)


def _work(
    entry: Mapping[str, Any],
    side: str,
    fabrics: Mapping[str, Mapping[str, Any]],
    folder: Path | None,
) -> Work:
    network = _network(entry, f"fabric_{side}", fabrics, folder)
    given = [key for key in ("run", "scenario", "collective") if entry.get(key)]
    if len(given) != 1:
        said = " and ".join(given) or "neither"
        raise Unusable(f"must name one of a scenario with its plan and a collective, not {said}")
    if given == ["collective"]:
        message = _message(entry, network)
        return replace(message, software=_library(entry, side, message.software))
    if given == ["scenario"]:
        problem, plan = _planned(entry, network, folder)
    else:
        run = run_of({key: str(value) for key, value in entry["run"].items()}, "run")
        if run.devices != network.devices:
            raise Unusable(f"runs on {run.devices} devices, and its fabric has {network.devices}")
        problem = replace(problem_of(run, accelerator_of(run.accelerator)), network=network)
        plan = plan_of(run, problem.layers, run.recompute or "none")
    return Training(replace(problem, software=_library(entry, side, problem.software)), plan)


def _network(
    entry: Mapping[str, Any],
    key: str,
    fabrics: Mapping[str, Mapping[str, Any]],
    folder: Path | None,
) -> Network:
    named = entry.get(key)
    table = fabrics.get(named) if isinstance(named, str) else named
    if not named:
        raise Unusable(f"names no {key}")
    if table is None:
        return collapse(load_fabric(str(named).strip(), folder))
    document = {"schema": 1, "name": str(named), **table}
    return collapse(build_fabric(checked(FabricFile, document)))


def _planned(
    entry: Mapping[str, Any], network: Network, folder: Path | None
) -> tuple[Problem, Plan]:
    scenario = load_scenario(_text(entry, "scenario"), (), folder)
    given = _text(entry, "plan")
    if not given:
        raise Unusable("names a scenario without the plan that ran")
    layers = scenario.problem().layers
    plan = read_plan(given, layers, network.devices, whole_experts=not scenario.expert_tensor)
    problem = scenario.problem(plan.recompute)
    return replace(problem, network=network), plan


def _message(entry: Mapping[str, Any], network: Network) -> Message:
    op = _text(entry, "collective")
    check_op(op)
    if op not in KINDS:
        raise Unusable(f"names the collective {op}, which plans do not have")
    size = _number(entry, "bytes")
    if size is None:
        raise Unusable("names a collective without its bytes")
    device = _text(entry, "device")
    software = software_of(load_accelerator(device)) if device else Software()
    word = _text(entry, "concurrent") or "one"
    if word not in ("one", "all"):
        raise Unusable(f"states concurrent as {word!r}, which is neither one nor all")
    concurrent: Concurrent = "all" if word == "all" else "one"
    group, stride = _whole(entry, "group") or network.devices, _whole(entry, "stride") or 1
    return Message(network, software, op, size, group, stride, concurrent)


def _without_reduction(curve: Curve) -> Curve:
    """Return the curve of switches that do not reduce."""
    rings = tuple(regime for regime in curve.regimes if regime.algorithm == "ring")
    return replace(curve, regimes=rings, in_network_from=None)


def _library(entry: Mapping[str, Any], side: str, software: Software) -> Software:
    """The device's library on this network: a transport has a curve, switches reduce or do not."""
    reduces, named = _text(entry, f"in_network_{side}"), _text(entry, f"transport_{side}")
    inside, between = software.inside, software.between
    if between is None and named:
        between = load_curve(INFINIBAND)
    if reduces not in ("", "yes", "no"):
        raise Unusable(f"states in_network_{side} as {reduces!r}, which is neither yes nor no")
    if reduces == "no":
        inside, between = (
            None if curve is None else _without_reduction(curve) for curve in (inside, between)
        )
    elif reduces == "yes" and between is not None and between.name in REDUCING:
        between = load_curve(REDUCING[between.name])
    return Software(inside, between)


def _slower(problem: Problem, factor: float) -> Problem:
    """The problem on a device whose kernels take so many times as long."""
    if factor == 1.0:
        return problem

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        found = problem.table(tp, sp, micro_batch, cp, ep, etp)
        names = ("compute_s", "forward_s", "weight_s", "replay_s", "launch_s")
        return replace(found, **{name: getattr(found, name) * factor for name in names})

    return replace(problem, table=table, update_Bps=problem.update_Bps / factor)


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key) or "").strip()


def _number(entry: Mapping[str, Any], key: str) -> float | None:
    try:
        value = figure(_text(entry, key))
    except NotNumber as error:
        raise Unusable(f"states {key} as {error}, which is no number") from error
    if value is not None and value <= 0:
        raise Unusable(f"states {key} as {value:g}, which is not positive")
    return value


def _whole(entry: Mapping[str, Any], key: str) -> int | None:
    try:
        return positive_integer(_text(entry, key))
    except NotNumber as error:
        raise Unusable(f"states {key} as {error}, which is no whole number") from error
