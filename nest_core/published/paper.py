"""The paper's figures from presets: figure 5, our optimum beside the published cells.

Throughputs are relative to the model's first feasible manual run as published. The
presets hold the artifact's own layer figures, one entry per distinct layer; they expand to
the same documents as the artifact's files and pass the same checks.

References
----------
NEST, MLSys 2026, figure 5; scai-tech/Nest (MIT), its inputs and reference results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nest_core.errors import InputError
from nest_core.presets import load_toml, preset_path
from nest_core.published.baselines import StageOrder, evaluate
from nest_core.published.instance import Baseline, Instance, parse_instance
from nest_core.published.reading import MAX_LAYERS, non_empty_list, number, table, whole
from nest_core.published.solver import solve

__all__ = ["PAPER_MODELS", "PaperCell", "figure5", "paper_cells"]

PAPER_MODELS = ("bert", "llama2", "llama3", "mixtral", "gpt3")
"""Models of figure 5, in the paper's order; each is a preset under ``paper/``."""

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
_LABELS = ("schema", "figure", "model", "micro_batch", "source", "reference_throughput")
_LAYER = {
    "forward_ms": "optimalLatencyFw",
    "backward_ms": "optimalLatencyBw",
    "parameter_bytes": "parameterSize",
    "activation_bytes": "activationSize",
}
_BASELINE = {"p": "p", "d": "d", "t": "t", "layers": "num_transformer_layers"}
# The artifact ships no placement for it, only results.
_ONLY_PUBLISHED = ("alpa_e",)


@dataclass(frozen=True, slots=True)
class PaperCell:
    """One number of devices of one model in figure 5.

    Attributes
    ----------
    model : str
        Name of the preset.
    micro_batch : int
        Sequences in a micro-batch.
    instance : Instance
        The case, with the baselines' placements.
    reference_throughput : float
        Throughput that counts as 1, in sequences per the instance's time unit.
    published : tuple of (str, float)
        Published relative throughput by planner, lower case; none where it printed an X.
    """

    model: str
    micro_batch: int
    instance: Instance
    reference_throughput: float
    published: tuple[tuple[str, float], ...]

    def relative(self, throughput: float | None) -> float | None:
        """A throughput as the figure counts it."""
        return None if throughput is None else throughput / self.reference_throughput


def paper_cells(model: str) -> tuple[PaperCell, ...]:
    """Read a model's cells of figure 5, ascending in devices.

    Parameters
    ----------
    model : str
        One of `PAPER_MODELS`.

    Raises
    ------
    InputError
        For another name, or a preset that someone broke.
    """
    if model not in PAPER_MODELS:
        raise InputError("model", f"must be one of {', '.join(PAPER_MODELS)}", model, "choose one")
    required = (*_LABELS, *_SCALARS, "width", "cell")
    preset = table(load_toml(preset_path("paper", f"{model}.toml")), model, required, ())
    shared = {key: preset[name] for name, key in _SCALARS.items()}
    shared |= _widths(preset["width"], f"{model}.width")
    cells = non_empty_list(preset["cell"], f"{model}.cell", MAX_LAYERS, "cells")
    return tuple(
        _cell(preset, shared, cell, f"{model}.cell[{index}]") for index, cell in enumerate(cells)
    )


def _cell(
    preset: Mapping[str, object], shared: Mapping[str, object], value: object, field: str
) -> PaperCell:
    cell = table(value, field, ("devices", "devices_per_level", "published", "baselines"), ())
    baselines = table(cell["baselines"], f"{field}.baselines", (), None)
    published = table(cell["published"], f"{field}.published", ("nest",), None)
    document = {
        **shared,
        "maxDevices": cell["devices"],
        "devices_per_level": cell["devices_per_level"],
        "baselines": {
            name: _renamed(plan, f"{field}.baselines.{name}", _BASELINE)
            for name, plan in baselines.items()
        },
    }
    return PaperCell(
        model=str(preset["model"]),
        micro_batch=whole(preset["micro_batch"], "micro_batch", 1, 10**6),
        instance=parse_instance(document),
        reference_throughput=number(
            preset["reference_throughput"], "reference_throughput", lowest=1e-12
        ),
        published=tuple(
            (name, number(figure, f"{field}.published.{name}"))
            for name, figure in published.items()
        ),
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
            one = {target: figures[name] for name, target in _LAYER.items()}
            for _ in range(whole(figures["count"], f"{where}.layers.count", 1, MAX_LAYERS)):
                layers.append({"id": len(layers) - 1, **one})
        nodes[key] = layers
        edges[key] = [
            _edge(source, source + 1, width["chain_bytes"]) for source in range(len(layers) - 1)
        ] + _skips(width.get("skip"), f"{where}.skip")
    return {"nodes": nodes, "edges": edges}


def _skips(value: object, field: str) -> list[dict[str, object]]:
    if value is None:
        return []
    edges: list[dict[str, object]] = []
    for entry in non_empty_list(value, field, MAX_LAYERS, "edges"):
        skip = table(entry, field, ("from", "to", "bytes"), ())
        source = whole(skip["from"], f"{field}.from", 0, MAX_LAYERS)
        bounds = non_empty_list(skip["to"], f"{field}.to", 2, "bounds")
        first, last = (
            whole(bound, f"{field}.to", 0, MAX_LAYERS) for bound in (bounds[0], bounds[-1])
        )
        edges += [_edge(source, target, skip["bytes"]) for target in range(first, last)]
    return edges


def _edge(source: int, target: int, size: object) -> dict[str, object]:
    # The artifact's ids: the embedding, layer 0 here, is -1.
    return {"sourceId": source - 1, "destId": target - 1, "communicationCost": size}


def _renamed(value: object, field: str, names: Mapping[str, str]) -> dict[str, object]:
    entry = table(value, field, tuple(names), ())
    return {target: entry[name] for name, target in names.items()}


def figure5() -> list[dict[str, object]]:
    """Solve every cell of figure 5 and set it beside the published ones.

    Returns
    -------
    list of dict
        25 rows ``{costs, model, devices, micro_batch, ours, published, baselines}``, the
        last ``{planner: {published, as_published, right_order}}``. All figures are relative
        throughputs, None where infeasible (or, for ``published``, printed as an X); then
        ``reason``, or ``as_published_reason`` and ``right_order_reason``, say why.

    Notes
    -----
    ``as_published`` prices the stages in reverse, as the artifact did; ``right_order`` is
    the same placement priced as ours is. ``as_published`` rounds to every printed cell but
    three of GPT-3: MCMC at 512 devices in the last digit, and MCMC and Phaze at 1,024,
    which look swapped in print.
    """
    return [_row(cell) for model in PAPER_MODELS for cell in paper_cells(model)]


def _row(cell: PaperCell) -> dict[str, object]:
    solution = solve(cell.instance)
    published = dict(cell.published)
    baselines: dict[str, dict[str, object]] = {
        baseline.name.lower(): _baseline(cell, baseline, published)
        for baseline in cell.instance.baselines
    }
    for name in _ONLY_PUBLISHED:
        reason = "Placement: the artifact ships results of this planner but no placement."
        baselines[name] = {
            "published": published.get(name),
            **{order.value: None for order in StageOrder},
            **{f"{order.value}_reason": reason for order in StageOrder},
        }
    row: dict[str, object] = {
        "costs": "published",
        "model": cell.model,
        "devices": cell.instance.devices,
        "micro_batch": cell.micro_batch,
        "ours": cell.relative(solution.throughput),
        "published": published["nest"],
        "baselines": baselines,
    }
    if solution.reason is not None:
        row["reason"] = solution.reason
    return row


def _baseline(
    cell: PaperCell, baseline: Baseline, published: Mapping[str, float]
) -> dict[str, object]:
    found: dict[str, object] = {"published": published.get(baseline.name.lower())}
    for order in StageOrder:
        evaluation = evaluate(cell.instance, baseline, order)
        found[order.value] = cell.relative(evaluation.throughput)
        if evaluation.reason is not None:
            found[f"{order.value}_reason"] = evaluation.reason
    return found
