"""The artifact's cases, from presets: solver inputs with the placements of other planners.

The presets hold the artifact's own layer figures, one entry per distinct layer; they expand to
the same documents as the artifact's files and pass the same checks. What the paper prints about
them is not here (`nest_core.paper.settings`).

References
----------
NEST, MLSys 2026; scai-tech/Nest (MIT), the inputs of its solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_path
from nest_core.paper.published.instance import Instance, parse_instance
from nest_core.paper.published.reading import MAX_LAYERS, non_empty_list, table, whole

__all__ = ["PAPER_CASES", "PAPER_MODELS", "PaperCell", "paper_cells"]

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
_LABELS = ("schema", "setup", "model", "micro_batch", "source")
_LAYER = {
    "forward_ms": "optimalLatencyFw",
    "backward_ms": "optimalLatencyBw",
    "parameter_bytes": "parameterSize",
    "activation_bytes": "activationSize",
}
_BASELINE = {"p": "p", "d": "d", "t": "t", "layers": "num_transformer_layers"}


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
        For another name, or a preset that someone broke.
    """
    if name not in PAPER_CASES:
        raise InputError("model", f"must be one of {', '.join(PAPER_CASES)}", name, "choose one")
    required = (*_LABELS, *_SCALARS, "width", "cell")
    preset = table(load_toml(preset_path("paper", f"{name}.toml")), name, required, ())
    shared = {key: preset[field] for field, key in _SCALARS.items()}
    shared |= _widths(preset["width"], f"{name}.width")
    cells = non_empty_list(preset["cell"], f"{name}.cell", MAX_LAYERS, "cells")
    return tuple(
        _cell(preset, shared, cell, f"{name}.cell[{index}]") for index, cell in enumerate(cells)
    )


def _cell(
    preset: Mapping[str, object], shared: Mapping[str, object], value: object, field: str
) -> PaperCell:
    cell = table(value, field, ("devices", "devices_per_level", "baselines"), ())
    baselines = table(cell["baselines"], f"{field}.baselines", (), None)
    document = {
        **shared,
        "maxDevices": cell["devices"],
        "devices_per_level": cell["devices_per_level"],
        "baselines": {
            name: _placement(plan, f"{field}.baselines.{name}") for name, plan in baselines.items()
        },
    }
    return PaperCell(
        setup=str(preset["setup"]),
        model=str(preset["model"]),
        micro_batch=whole(preset["micro_batch"], "micro_batch", 1, 10**6),
        instance=parse_instance(document),
    )


def _widths(value: object, field: str) -> dict[str, object]:
    """Expand the presets' counted layers and regular edges to the artifact's lists."""
    nodes: dict[str, object] = {}
    edges: dict[str, object] = {}
    for index, entry in enumerate(non_empty_list(value, field, MAX_LAYERS, "widths")):
        where = f"{field}[{index}]"
        width = table(entry, where, ("tensor_parallel", "chain_bytes", "layers"), ("skip",))
        key = str(width["tensor_parallel"])
        layers: list[dict[str, object]] = []
        for kind in non_empty_list(width["layers"], f"{where}.layers", MAX_LAYERS, "layers"):
            figures = table(kind, f"{where}.layers", ("count", *_LAYER), ())
            layer = {target: figures[name] for name, target in _LAYER.items()}
            for _ in range(whole(figures["count"], f"{where}.layers.count", 1, MAX_LAYERS)):
                layers.append({"id": len(layers) - 1, **layer})
        nodes[key] = layers
        chain = {(source, source + 1): width["chain_bytes"] for source in range(len(layers) - 1)}
        edges[key] = [
            # The artifact's ids: the embedding, layer 0 here, is -1.
            {"sourceId": source - 1, "destId": target - 1, "communicationCost": size}
            for (source, target), size in (
                chain | _skips(width.get("skip"), f"{where}.skip")
            ).items()
        ]
    return {"nodes": nodes, "edges": edges}


def _skips(value: object, field: str) -> dict[tuple[int, int], object]:
    edges: dict[tuple[int, int], object] = {}
    if value is None:
        return edges
    for entry in non_empty_list(value, field, MAX_LAYERS, "edges"):
        skip = table(entry, field, ("from", "to", "bytes"), ())
        source = whole(skip["from"], f"{field}.from", 0, MAX_LAYERS)
        bounds = non_empty_list(skip["to"], f"{field}.to", 2, "bounds")
        first, last = (
            whole(bound, f"{field}.to", 0, MAX_LAYERS) for bound in (bounds[0], bounds[-1])
        )
        edges |= {(source, target): skip["bytes"] for target in range(first, last)}
    return edges


def _placement(value: object, field: str) -> dict[str, object]:
    entry = table(value, field, tuple(_BASELINE), ("partition",))
    renamed = {target: entry[name] for name, target in _BASELINE.items()}
    return renamed | (
        {"layer_partition": entry["partition"]} if entry.get("partition") is not None else {}
    )
