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
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nest_core.documents.errors import InputError, require
from nest_core.documents.files import read_text
from nest_core.paper.published.layers import Layers, parse_widths
from nest_core.paper.published.reading import (
    MAX_LAYERS,
    Check,
    choice,
    count,
    entries,
    flag,
    mapping,
    number,
    refuse_repeated_keys,
    table,
    whole,
)

__all__ = ["ArtifactBaseline", "Instance", "parse_instance", "read_instance"]

_LONGEST_NAME = 80
_LEVELS: dict[str, Check] = {
    # The artifact's own floor; below it a transfer's time would leave the range of floats.
    "bws": partial(number, lowest=1e-9),
    "latency_per_level": number,
    "devices_per_level": count,
}


def _unread(value: object, field: str) -> object:
    """Return a value that is checked with what surrounds it."""
    return value


_REQUIRED: dict[str, Check] = {
    "ep_degree": count,
    "cp_degree": count,
    "maxMemoryPerDevice": partial(number, lowest=1.0),
    "maxDevices": count,
    "mbsInBatch": partial(whole, lowest=1, largest=10**12),
    "nodes": _unread,
    "edges": _unread,
    "activationRecomputation": flag,
    "optimizerAlgorithm": partial(choice, options=("SGD", "Adam")),
    **{key: partial(entries, max_count=32, check=check) for key, check in _LEVELS.items()},
}
_OPTIONAL: dict[str, Check] = {
    # Present in every file of the artifact, read by nothing in this cost model.
    "sp_enabled": flag,
    "bandwidth": number,
    "frequency": number,
    "baselines": mapping,
}


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
            text, parse_constant=_refuse_constant, object_pairs_hook=refuse_repeated_keys
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
    fields = table(document, "instance", _REQUIRED, _OPTIONAL, prefix="")
    widths, layer_ids = parse_widths(fields["nodes"], fields["edges"])
    levels = len(fields["bws"])
    for key in _LEVELS:
        require(
            len(fields[key]) == levels,
            key,
            f"must have one entry per level of bws ({levels})",
            len(fields[key]),
            "give every level a bandwidth, a latency and a number of devices",
        )
    devices, product = fields["maxDevices"], math.prod(fields["devices_per_level"])
    require(
        product == devices,
        "devices_per_level",
        f"must multiply to maxDevices ({devices})",
        product,
        "correct one of the two",
    )
    return Instance(
        layer_ids=layer_ids,
        widths=widths,
        bandwidths=fields["bws"],
        latencies=fields["latency_per_level"],
        devices_per_level=fields["devices_per_level"],
        devices=devices,
        memory_bytes=fields["maxMemoryPerDevice"],
        micro_batches=fields["mbsInBatch"],
        expert_parallel=fields["ep_degree"],
        context_parallel=fields["cp_degree"],
        recompute=fields["activationRecomputation"],
        optimizer=fields["optimizerAlgorithm"],
        baselines=tuple(
            _baseline(name, entry, len(layer_ids))
            for name, entry in fields.get("baselines", {}).items()
        ),
    )


def _baseline(name: str, value: object, layer_count: int) -> ArtifactBaseline:
    require(
        1 <= len(name) <= _LONGEST_NAME,
        "baselines",
        f"must have names of 1 to {_LONGEST_NAME} letters",
        name,
        "rename it",
    )
    field = f"baselines[{name!r}]"
    size: Check = partial(whole, lowest=0, largest=MAX_LAYERS)
    counted: Check = partial(whole, lowest=1, largest=layer_count)
    plan = table(
        value,
        field,
        {"p": count, "d": count, "t": count, "num_transformer_layers": counted},
        {"layer_partition": partial(entries, max_count=MAX_LAYERS, check=size)},
    )
    partition, layers = plan.get("layer_partition"), plan["num_transformer_layers"]
    if partition is not None and len(partition) != plan["p"]:
        rule = f"must have p ({plan['p']}) entries"
        raise InputError(f"{field}.layer_partition", rule, len(partition), "give one per stage")
    if partition is not None and sum(partition) != layers:
        rule = f"must add up to num_transformer_layers ({layers})"
        raise InputError(f"{field}.layer_partition", rule, sum(partition), "place every layer once")
    return ArtifactBaseline(name, plan["p"], plan["d"], plan["t"], layers, partition)
