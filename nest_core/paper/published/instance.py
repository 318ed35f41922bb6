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

The artifact's cases, from presets: solver inputs with the placements of other planners.

The presets hold the artifact's own layer figures, one entry per distinct layer; they expand to
the same documents as the artifact's files, whose checks they pass. What the paper prints about
them is not here (`nest_core.paper.reproduction`).

References
----------
NEST, MLSys 2026; scai-tech/Nest (MIT), the inputs of its solver.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nest_core.documents import InputError, load_toml, preset_path, read_text, require
from nest_core.paper.published.layers import (
    MAX_LAYERS,
    Check,
    Layers,
    choice,
    count,
    entries,
    flag,
    mapping,
    number,
    parse_widths,
    refuse_repeated_keys,
    table,
    whole,
)

__all__ = [
    "PAPER_CASES",
    "PAPER_MODELS",
    "ArtifactBaseline",
    "Instance",
    "PaperCell",
    "paper_cells",
    "parse_instance",
    "read_instance",
]

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
        """Return devices of one stage, t * ep * cp, for a tensor-parallel width t."""
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
    if partition is not None:
        require(
            len(partition) == plan["p"],
            f"{field}.layer_partition",
            f"must have p ({plan['p']}) entries",
            len(partition),
            "give one per stage",
        )
        require(
            sum(partition) == layers,
            f"{field}.layer_partition",
            f"must add up to num_transformer_layers ({layers})",
            sum(partition),
            "place every layer once",
        )
    return ArtifactBaseline(name, plan["p"], plan["d"], plan["t"], layers, partition)


PAPER_MODELS = ("bert", "llama2", "llama3", "mixtral", "gpt3")
"""Models of figure 5, in the paper's order, at micro-batch 1: presets under ``paper/``."""

_LARGER = tuple(f"{model}-mb{size}" for model in ("bert", "llama2", "llama3") for size in (2, 4, 8))
_ON_H100 = tuple(f"{model}-h100" for model in ("bertlarge", "llama2", "llama3", "mixtral", "gpt3"))

PAPER_CASES = (*PAPER_MODELS, *_LARGER, *_ON_H100)
"""Every preset with cases: also the larger micro-batches, and the H100 cluster of figure 7."""

_SCALARS = {
    "memory_bytes": "maxMemoryPerDevice",
    "micro_batches": "mbsInBatch",
    "expert_parallel": "ep_degree",
    "context_parallel": "cp_degree",
    "recompute": "activationRecomputation",
    "optimizer": "optimizerAlgorithm",
    "bandwidths_Bps": "bws",
    "latencies": "latency_per_level",
}
_LAYER = {
    "forward_ms": "optimalLatencyFw",
    "backward_ms": "optimalLatencyBw",
    "parameter_bytes": "parameterSize",
    "activation_bytes": "activationSize",
}
_BASELINE = {
    "p": "p",
    "d": "d",
    "t": "t",
    "layers": "num_transformer_layers",
    "partition": "layer_partition",
}


@dataclass(frozen=True, slots=True)
class PaperCell:
    """One number of devices of one model.

    Attributes
    ----------
    setup, model : str
        The artifact's names.
    micro_batch : int
        Sequences in a micro-batch.
    instance : Instance
        The case, with the baselines' placements.
    """

    setup: str
    model: str
    micro_batch: int
    instance: Instance


def paper_cells(name: str) -> tuple[PaperCell, ...]:
    """Read a preset's cells, ascending in devices.

    Parameters
    ----------
    name : str
        One of `PAPER_CASES`.

    Raises
    ------
    InputError
        For another name.
    """
    require(
        name in PAPER_CASES,
        "model",
        f"must be one of {', '.join(PAPER_CASES)}",
        name,
        "choose one",
    )
    preset = load_toml(preset_path("paper", f"{name}.toml"))
    shared = {key: preset[field] for field, key in _SCALARS.items()} | _widths(preset["width"])
    labels = str(preset["setup"]), str(preset["model"]), int(preset["micro_batch"])
    return tuple(
        PaperCell(*labels, parse_instance({**shared, **_of_cell(cell)})) for cell in preset["cell"]
    )


def _of_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "maxDevices": cell["devices"],
        "devices_per_level": cell["devices_per_level"],
        "baselines": {
            name: {target: plan[key] for key, target in _BASELINE.items() if key in plan}
            for name, plan in cell["baselines"].items()
        },
    }


def _widths(widths: list[dict[str, Any]]) -> dict[str, Any]:
    """Expand the presets' counted layers and regular edges to the artifact's lists."""
    nodes, edges = {}, {}
    for width in widths:
        key = str(width["tensor_parallel"])
        kinds = [kind for kind in width["layers"] for _ in range(kind["count"])]
        # The artifact's ids: the embedding, layer 0 here, is -1.
        nodes[key] = [
            {"id": place - 1} | {target: kind[name] for name, target in _LAYER.items()}
            for place, kind in enumerate(kinds)
        ]
        sizes = {(layer, layer + 1): width["chain_bytes"] for layer in range(len(kinds) - 1)}
        for skip in width.get("skip", ()):
            sizes |= {(skip["from"], layer): skip["bytes"] for layer in range(*skip["to"])}
        edges[key] = [
            {"sourceId": source - 1, "destId": target - 1, "communicationCost": size}
            for (source, target), size in sizes.items()
        ]
    return {"nodes": nodes, "edges": edges}
