"""Instances of the published model: one validated, immutable value per file.

An instance is what the NEST artifact's solver reads: the layers of a model for each
tensor-parallel width, a network of nested levels and a batch. Layer times are in the
instance's own unit (the artifact never says which, and mixes milliseconds with the
seconds of its transfers); sizes are bytes, bandwidths bytes per second, latencies the
figures that the artifact adds to those transfers.

Nothing is converted here: ``published`` keeps the artifact's figures as they stand.

References
----------
NEST, MLSys 2026; scai-tech/Nest (MIT), the solver's input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.paper.published.layers import Layers, parse_widths
from nest_core.paper.published.reading import (
    MAX_DEVICES,
    MAX_LAYERS,
    choice,
    flag,
    non_empty_list,
    number,
    refuse_repeated_keys,
    table,
    whole,
)

__all__ = ["ArtifactBaseline", "Instance", "parse_instance", "read_instance"]

_MAX_LEVELS = 32
_LONGEST_NAME = 80
_MAX_MICRO_BATCHES = 10**12
# The artifact's own floor; below it a transfer's time would leave the range of floats.
_SMALLEST_BANDWIDTH = 1e-9

_REQUIRED = (
    "ep_degree",
    "cp_degree",
    "maxMemoryPerDevice",
    "maxDevices",
    "bws",
    "latency_per_level",
    "devices_per_level",
    "mbsInBatch",
    "nodes",
    "edges",
    "activationRecomputation",
    "optimizerAlgorithm",
)
# Present in every file of the artifact, read by nothing in this cost model.
_UNUSED = ("sp_enabled", "bandwidth", "frequency")


@dataclass(frozen=True, slots=True)
class ArtifactBaseline:
    """A fixed placement that a planner other than NEST proposed.

    Attributes
    ----------
    name : str
        The planner, as the file spells it.
    pipeline, data, tensor : int
        Number of stages p, of replicas d, and tensor-parallel width t.
    layers : int
        Layers that the even split counts, the embedding being the first of them.
    partition : tuple of int or None
        Layers per stage where the planner gave them, else None.
    """

    name: str
    pipeline: int
    data: int
    tensor: int
    layers: int
    partition: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Instance:
    """One input of the published model, validated and in topological order.

    Attributes
    ----------
    layer_ids : tuple of int
        The file's ids in topological order; every other index of this package counts
        positions in this order.
    widths : tuple of Layers
        The layers at each tensor-parallel width, ascending.
    bandwidths, latencies : tuple of float
        Bytes per second and latency of each level, innermost first, as given.
    devices_per_level : tuple of int
        Children that one group of each level joins, innermost first.
    devices : int
        Number of devices D, the product of `devices_per_level`.
    memory_bytes : float
        Memory M of one device.
    micro_batches : int
        Micro-batches B in a batch.
    expert_parallel, context_parallel : int
        Degrees that multiply the devices of every stage.
    recompute : bool
        Whether all stages but the last recompute their activations.
    optimizer : str
        ``SGD`` (no state) or ``Adam``.
    baselines : tuple of ArtifactBaseline
        Placements of other planners, in the file's order.
    """

    layer_ids: tuple[int, ...]
    widths: tuple[Layers, ...]
    bandwidths: tuple[float, ...]
    latencies: tuple[float, ...]
    devices_per_level: tuple[int, ...]
    devices: int
    memory_bytes: float
    micro_batches: int
    expert_parallel: int
    context_parallel: int
    recompute: bool
    optimizer: str
    baselines: tuple[ArtifactBaseline, ...]

    def stage_devices(self, width: int) -> int:
        """Devices of one stage, t * ep * cp, for a tensor-parallel width t."""
        return width * self.expert_parallel * self.context_parallel


def read_instance(path: str | Path) -> Instance:
    """Read an instance file.

    Parameters
    ----------
    path : str or Path
        A JSON file, as `nest_core.documents.files.read_text` takes it.

    Returns
    -------
    Instance

    Raises
    ------
    InputError
        When the file cannot be read, is not JSON, or breaks a rule of `parse_instance`.
    """
    text = read_text(Path(path))
    try:
        document = json.loads(
            text,
            parse_constant=_refuse_constant,
            object_pairs_hook=refuse_repeated_keys,
        )
    except InputError:
        raise
    except RecursionError as error:
        raise InputError(
            "instance file", "must nest a few levels deep", "deeper", "flatten the file"
        ) from error
    except ValueError as error:
        raise InputError(
            "instance file", "must be valid JSON", str(error), "correct the file"
        ) from error
    return parse_instance(document)


def _refuse_constant(name: str) -> object:
    raise InputError("instance file", "must hold finite numbers only", name, "give a number")


def parse_instance(document: object) -> Instance:
    """Validate the parsed JSON of an instance file.

    Parameters
    ----------
    document : object
        Normally a mapping with the keys of the artifact's files; ``sp_enabled``,
        ``bandwidth``, ``frequency``, ``baselines``, and the layers' ``energy`` and
        ``isTensorParallelized`` may be left out, because no cost reads them.

    Returns
    -------
    Instance

    Raises
    ------
    InputError
        At the first broken rule: keys missing or unknown; a figure that is no number,
        not finite, negative or absurdly large; levels of unequal number; devices that
        the levels do not multiply to; more than 1,048,576 devices or 2,000 layers;
        layers that repeat, differ between widths or do not follow one another in one
        topological order with the embedding (id -1) first.
    """
    fields = table(document, "instance", _REQUIRED, (*_UNUSED, "baselines"))
    _check_unused(fields)
    widths, layer_ids = parse_widths(fields["nodes"], fields["edges"])
    bandwidths, latencies, per_level = _levels(fields)
    devices = whole(fields["maxDevices"], "maxDevices", 1, MAX_DEVICES)
    product = 1
    for count in per_level:
        product *= count
    if product != devices:
        raise InputError(
            "devices_per_level",
            f"must multiply to maxDevices ({devices})",
            product,
            "correct one of the two",
        )
    return Instance(
        layer_ids=layer_ids,
        widths=widths,
        bandwidths=bandwidths,
        latencies=latencies,
        devices_per_level=per_level,
        devices=devices,
        memory_bytes=number(fields["maxMemoryPerDevice"], "maxMemoryPerDevice", lowest=1.0),
        micro_batches=whole(fields["mbsInBatch"], "mbsInBatch", 1, _MAX_MICRO_BATCHES),
        expert_parallel=whole(fields["ep_degree"], "ep_degree", 1, MAX_DEVICES),
        context_parallel=whole(fields["cp_degree"], "cp_degree", 1, MAX_DEVICES),
        recompute=flag(fields["activationRecomputation"], "activationRecomputation"),
        optimizer=choice(fields["optimizerAlgorithm"], "optimizerAlgorithm", ("SGD", "Adam")),
        baselines=_baselines(fields.get("baselines", {}), len(layer_ids)),
    )


def _check_unused(fields: Mapping[str, object]) -> None:
    """Refuse nonsense even where no cost reads it: the file is not what it claims."""
    if "sp_enabled" in fields:
        flag(fields["sp_enabled"], "sp_enabled")
    for key in ("bandwidth", "frequency"):
        if key in fields:
            number(fields[key], key)


def _levels(
    fields: Mapping[str, object],
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    lists = {
        key: non_empty_list(fields[key], key, _MAX_LEVELS, "levels")
        for key in ("bws", "latency_per_level", "devices_per_level")
    }
    levels = len(lists["bws"])
    for key, values in lists.items():
        if len(values) != levels:
            raise InputError(
                key,
                f"must have one entry per level of bws ({levels})",
                len(values),
                "give every level a bandwidth, a latency and a number of devices",
            )
    return (
        tuple(
            number(value, f"bws[{level}]", lowest=_SMALLEST_BANDWIDTH)
            for level, value in enumerate(lists["bws"])
        ),
        tuple(
            number(value, f"latency_per_level[{level}]")
            for level, value in enumerate(lists["latency_per_level"])
        ),
        tuple(
            whole(value, f"devices_per_level[{level}]", 1, MAX_DEVICES)
            for level, value in enumerate(lists["devices_per_level"])
        ),
    )


def _baselines(value: object, layer_count: int) -> tuple[ArtifactBaseline, ...]:
    return tuple(
        _baseline(name, entry, layer_count)
        for name, entry in table(value, "baselines", (), None).items()
    )


def _baseline(name: str, value: object, layer_count: int) -> ArtifactBaseline:
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise InputError(
            "baselines", f"must have names of 1 to {_LONGEST_NAME} letters", name, "rename it"
        )
    field = f"baselines[{name!r}]"
    entry = table(value, field, ("num_transformer_layers", "p", "d", "t"), ("layer_partition",))
    pipeline = whole(entry["p"], f"{field}.p", 1, MAX_DEVICES)
    layers = whole(
        entry["num_transformer_layers"], f"{field}.num_transformer_layers", 1, layer_count
    )
    partition: tuple[int, ...] | None = None
    if "layer_partition" in entry:
        where = f"{field}.layer_partition"
        sizes = non_empty_list(entry["layer_partition"], where, MAX_LAYERS, "stages")
        partition = tuple(
            whole(size, f"{where}[{stage}]", 0, MAX_LAYERS) for stage, size in enumerate(sizes)
        )
        if len(partition) != pipeline:
            raise InputError(
                where, f"must have p ({pipeline}) entries", len(partition), "give one per stage"
            )
        if sum(partition) != layers:
            raise InputError(
                where,
                f"must add up to num_transformer_layers ({layers})",
                sum(partition),
                "place every layer once",
            )
    return ArtifactBaseline(
        name=name,
        pipeline=pipeline,
        data=whole(entry["d"], f"{field}.d", 1, MAX_DEVICES),
        tensor=whole(entry["t"], f"{field}.t", 1, MAX_DEVICES),
        layers=layers,
        partition=partition,
    )
