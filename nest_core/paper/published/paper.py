"""The artifact's cases, from presets: solver inputs with the placements of other planners.

The presets hold the artifact's own layer figures, one entry per distinct layer; they expand to
the same documents as the artifact's files, whose checks they pass. What the paper prints about
them is not here (`nest_core.paper.reproduction`).

References
----------
NEST, MLSys 2026; scai-tech/Nest (MIT), the inputs of its solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nest_core.documents.errors import require
from nest_core.documents.presets import load_toml, preset_path
from nest_core.paper.published.instance import Instance, parse_instance

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
