"""Software stacks: what runs on an accelerator, as far as times depend on it.

A stack is a framework of a generation: which kernels it has, what it overlaps, how it launches.
Files in ``presets/stacks`` say so, each with its source; a person's own stack
(``nest-studio calibrate``) is such a file with figures of its own under ``[parameters]``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nest_core.documents import (
    kept_per_edition,
    load_toml,
    named_file,
    preset_names,
    preset_path,
    require,
)
from nest_core.documents.schema import StackFile, checked
from nest_core.hardware.accelerators import NARROW, Accelerator, Family
from nest_core.hardware.collectives import Curve
from nest_core.hardware.collectives.library import OWN, curve_from
from nest_core.hardware.memory_rules import MemoryRules
from nest_core.hardware.network_spread import load_spread
from nest_core.hardware.posterior import (
    PARAMETERS,
    RUN_FACTOR,
    Knowledge,
    adjusted,
    load_posterior,
)

__all__ = [
    "FEWEST_ROWS",
    "Stack",
    "all_stacks",
    "default_stack",
    "hidden_shares",
    "hiding",
    "known_of",
    "load_stack",
    "stack_of_table",
    "stacks_of",
    "under",
    "validated",
]

Checkpoint = Literal["whole", "per_operator", "per_operator_narrow", "jax"]

_ROUNDING = 1e-6
OWN_NAME = "own stack"
"""What one is called that stands in a scenario without a name."""
FEWEST_ROWS = 8
"""Measured runs of quality A over several nodes from which on a stack counts as validated."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A framework of a generation.

    Parameters
    ----------
    name : str
    framework : {"megatron", "fsdp", "deepspeed", "jax"}
    year : int
        Of its newest release.
    release, source : str
        Which releases are meant, and where what is said of them stands.
    families : tuple of str
        Of accelerators that it runs on.
    model_parallel : bool
        Whether tensors and pipelines are divided in it, as plans here are.
    attention : {"flash", "unfused"}
    fused : bool
        Whether element-wise operators are fused.
    joined : bool
        Whether projections that read the same tensor are one product.
    checkpoint : {"whole", "per_operator", "jax"}
        How recomputation runs (`nest_core.workload.recomputation`).
    launch : {"eager", "layer_graphs", "iteration_graphs"}
        Whether the host issues every kernel, or CUDA graphs do: of each layer's attention, norms
        and router, or of the whole iteration.
    eager_experts : bool
        See `nest_core.workload.operators.Launching`.
    scaled_activations : bool
        See `nest_core.workload.strategies.Strategy`.
    fp8 : str
        Scaling of its fp8 products; empty: it has none.
    memory : MemoryRules
        What it holds beside the tensors that every implementation has.
    accumulation : {"product", "pass", "none"}
        What adds a micro-batch's gradients of weights to those before: the product that makes
        them, a pass over memory, or nothing, as each is reduced when it is made.
    copies : tuple of {"weights", "gradients"}
        What is copied on the device before it is reduced or after it was gathered, where it is
        sharded.
    sharded_gradients : bool
        Whether gradients are reduced after every micro-batch of a pipeline where they are
        sharded; else they are whole there, and ZeRO 2 is 1.
    overlap : tuple of (str, tuple of str)
        Classes of traffic (``tp``, ``pp``, ``dp``), and the precisions in which each hides behind
        compute.
    rows : tuple of str
        Patterns, one of which is found in what a measured row says of its source.
    parameters : tuple of (str, float)
        Figures of a family (`Family`) that replace the accelerator's, and factors on what
        ``network`` carries and on whole runs (`RUN_FACTOR`); of a person's own stack.
    curves : tuple of Curve
        Measured on one's own cluster, of links inside a node and of the network between nodes, in
        place of the accelerator's.
    covariance : tuple of tuple of float
        Of the logarithms of factors on `PARAMETERS` and `RUN_FACTOR`, where own runs tell it.
    """

    name: str
    framework: Literal["megatron", "fsdp", "deepspeed", "jax"]
    year: int
    release: str
    source: str
    families: tuple[str, ...]
    model_parallel: bool
    attention: Literal["flash", "unfused"]
    fused: bool
    joined: bool
    checkpoint: Literal["whole", "per_operator", "jax"]
    launch: Literal["eager", "layer_graphs", "iteration_graphs"]
    eager_experts: bool
    scaled_activations: bool
    fp8: str
    memory: MemoryRules
    accumulation: Literal["product", "pass", "none"]
    copies: tuple[Literal["weights", "gradients"], ...]
    sharded_gradients: bool
    overlap: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[str, ...] = ()
    parameters: tuple[tuple[str, float], ...] = ()
    curves: tuple[Curve, ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()

    def curve(self, link: str) -> Curve | None:
        """Its own curve of a kind of link, ``nvlink`` or ``network``; None without one."""
        return next((curve for curve in self.curves if curve.link == link), None)

    def overlaps(self, traffic: str, precision: str) -> bool:
        """Whether a class of traffic hides behind compute in a precision."""
        return precision in dict(self.overlap)[traffic]

    def checkpointing(self, precision: str) -> Checkpoint:
        """How recomputation runs in a precision (`nest_core.workload.recomputation`)."""
        narrow = self.checkpoint == "per_operator" and precision in NARROW
        return "per_operator_narrow" if narrow else self.checkpoint

    def casts(self, precision: str) -> float:
        """Bytes moved to convert an operand over those of Transformer Engine's; 0 in 16 bits.

        torchao converts what it kept in 16 bits once in either pass, along the other dimension in
        backward: with a scale per tensor two readings and a write, and a transposed copy of what
        both products of a pass read (8 bytes), of blocks one reading and a write (6), where
        Transformer Engine reads once and writes both (4).
        """
        if precision not in NARROW:
            return 0.0
        torchao = {"tensorwise": 8.0 / 4.0, "blockwise": 6.0 / 4.0}
        return torchao.get(self.fp8, 1.0) if self.framework == "fsdp" else 1.0

    def ran(self, text: str) -> bool:
        """Whether a measured row that says this of its source ran it."""
        return any(re.search(pattern, text, re.I) for pattern in self.rows)


def load_stack(name: str, folder: Path | None = None) -> Stack:
    """Return a stack preset, or a file of one's own.

    Raises
    ------
    InputError
        If there is none of that name, or it is no stack.
    """
    return (
        _preset(name)
        if name in preset_names("stacks")
        else _read(named_file("stacks", name, folder, field="stack", table=True))
    )


@kept_per_edition(64)
def _preset(name: str) -> Stack:
    """Every measured run asks for its own several times."""
    return _read(preset_path("stacks", f"{name}.toml"))


def _read(path: Path) -> Stack:
    return _stack(path.stem, checked(StackFile, load_toml(path), "stack."))


def stack_of_table(table: StackFile) -> Stack:
    """Return a stack that stands in a scenario itself.

    Raises
    ------
    InputError
        If its curves or its covariance are none.
    """
    return _stack(table.name or OWN_NAME, table)


def _stack(name: str, file: StackFile) -> Stack:
    overlap = {key: tuple(value) for key, value in file.overlap.model_dump().items()}
    return Stack(
        name,
        file.framework,
        file.year,
        file.release,
        file.source,
        tuple(file.families),
        file.model_parallel,
        file.attention,
        file.fused,
        file.joined,
        file.checkpoint,
        file.launch,
        file.eager_experts,
        file.scaled_activations,
        file.fp8,
        MemoryRules(
            file.framework == "fsdp",
            file.eager_loss,
            file.deepspeed_zero,
            file.framework == "jax",
        ),
        file.accumulation,
        tuple(file.copies),
        file.sharded_gradients,
        tuple(overlap.items()),
        tuple(file.rows),
        tuple(file.parameters.items()),
        _curves(file.curves),
        _covariance(file.covariance),
    )


def _curves(documents: Sequence[Mapping[str, Any]]) -> tuple[Curve, ...]:
    """Return a stack's own: one of each link at most.

    Raises
    ------
    InputError
        If one is no curve, or two are of one link.
    """
    curves = tuple(curve_from(document, OWN) for document in documents)
    links = [curve.link for curve in curves]
    require(
        len(set(links)) == len(links),
        "stack.curves",
        "must be one of each link",
        links,
        "calibrate anew",
    )
    return curves


def _covariance(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return a stack's own, which may be absent.

    Raises
    ------
    InputError
        If it is no covariance of `PARAMETERS` and `RUN_FACTOR`.
    """
    size = len(PARAMETERS) + 1
    require(
        not rows or all(len(row) == size for row in (rows, *rows)),
        "stack.covariance",
        f"must have {size} rows of {size}",
        len(rows),
        "calibrate anew",
    )
    matrix = np.array(rows)
    require(
        not rows
        or (np.array_equal(matrix, matrix.T) and np.linalg.eigvalsh(matrix).min() > -_ROUNDING),
        "stack.covariance",
        "must be symmetric and have no negative variance",
        "another",
        "calibrate anew",
    )
    return tuple(map(tuple, rows))


@kept_per_edition(1)
def all_stacks() -> tuple[Stack, ...]:
    """Every shipped stack, newest first."""
    return tuple(
        sorted(
            [load_stack(name) for name in preset_names("stacks")],
            key=lambda stack: (-stack.year, stack.name),
        )
    )


def stacks_of(family: str) -> tuple[Stack, ...]:
    """Return the shipped stacks that run on a family of accelerators, newest first."""
    return tuple(stack for stack in all_stacks() if family in stack.families)


def default_stack(family: str, among: Sequence[Stack] = ()) -> Stack:
    """Return the stack of a scenario that names none, and of a run that does not.

    It is one that people run today: it divides tensors and pipelines, and its attention does not
    store scores where any software on these devices can do without (FlashAttention needs an A100
    or newer). Of those, and of ``among`` where they are given, as of one framework, the newest
    with `FEWEST_ROWS` measured runs of quality A over several nodes, else the newest; an unknown
    family has the stacks of an uncalibrated one.
    """
    candidates = tuple(among) or stacks_of(family) or stacks_of("uncalibrated")
    for wanted in (lambda stack: stack.model_parallel, lambda stack: stack.attention == "flash"):
        candidates = tuple(filter(wanted, candidates)) or candidates
    return next((stack for stack in candidates if validated(family, stack)), candidates[0])


def validated(family: str, stack: Stack) -> bool:
    """Whether enough runs of a stack were measured on a family of accelerators."""
    return load_posterior().sure_rows(family, stack.name) >= FEWEST_ROWS


def hiding(stack: Stack, precision: str, traffic: Mapping[str, bool]) -> Stack:
    """Return a stack that hides classes of traffic in a precision, or does not; others as before.

    Parameters
    ----------
    traffic : mapping of str to bool
        By class, ``tp``, ``pp`` or ``dp``.
    """
    chosen = {name: (precision,) if hides else () for name, hides in traffic.items()}
    return replace(stack, overlap=tuple({**dict(stack.overlap), **chosen}.items()))


def hidden_shares(family: Family, stack: Stack, precision: str) -> dict[str, float]:
    """Return what hides of each class of traffic, by field of `Family`."""
    return {
        f"overlap_{traffic}": getattr(family, f"overlap_{traffic}")
        * stack.overlaps(traffic, precision)
        for traffic in ("tp", "pp", "dp")
    }


def known_of(accelerator: Accelerator, stack: Stack) -> Knowledge:
    """Return what is known of an accelerator's parameters under a stack.

    A person's own stack knows its cluster: nothing is left between sources but what its factor on
    whole runs is not sure of. Of a network whose curve was measured there, what runs said of the
    shipped curves is not said: its factor is 1, but for what measurements repeat within.
    """
    shipped = load_posterior().of(accelerator.family.name, stack.framework, stack.name)
    if stack.curve("network"):
        shipped = _measured_network(shipped)
    if not stack.covariance:
        return shipped
    return replace(
        shipped,
        parameters=(*PARAMETERS, RUN_FACTOR),
        centre=np.append(shipped.centre, 0.0),
        covariance=np.array(stack.covariance),
        source_sd=0.0,
    )


def _measured_network(fabric: Knowledge) -> Knowledge:
    place = fabric.parameters.index("network")
    centre, covariance = fabric.centre.copy(), fabric.covariance.copy()
    centre[place] = covariance[place, :] = covariance[:, place] = 0.0
    covariance[place, place] = load_spread().transport("measured").spread ** 2
    return replace(fabric, centre=centre, covariance=covariance)


def under(
    accelerator: Accelerator,
    stack: Stack,
    precision: str,
    factors: Mapping[str, float] | None = None,
) -> Accelerator:
    """Return an accelerator as it is under a stack: what its kernels reach, and what overlaps.

    Parameters
    ----------
    accelerator, stack, precision
    factors : mapping, optional
        Of `PARAMETERS` and `RUN_FACTOR`; the posterior's centre by default. A stack's own figures
        go before.
    """
    family = accelerator.family
    if factors is None:
        knowledge = known_of(accelerator, stack)
        factors = knowledge.factors(knowledge.centre)
    parameters = dict(stack.parameters)
    slower = {RUN_FACTOR: parameters.pop(RUN_FACTOR, 1.0)}
    if "network" in parameters:
        factors = {**factors, "network": parameters.pop("network")}
    accelerator = replace(
        accelerator,
        links=stack.curve("nvlink") or accelerator.links,
        network=stack.curve("network") or accelerator.network,
    )
    moved = adjusted(accelerator, factors)
    graphs = {"host_s": 0.0} if stack.launch == "iteration_graphs" else {}
    figures: dict[str, Any] = hidden_shares(family, stack, precision) | graphs | parameters
    return adjusted(replace(moved, family=replace(moved.family, **figures)), slower)
