"""The traces that ship with the project, one file per family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from nest_core.workload.tracing.modules import FAMILIES, example
from nest_core.workload.tracing.sizes import PRIMES
from nest_core.workload.tracing.tracer import trace

__all__ = ["as_document", "trace_family", "write_presets"]


SOURCE = "nest_core.workload.tracing.modules"


def trace_family(family: str) -> dict[str, list[dict[str, Any]]]:
    """The nodes of a family's distinct layers by kind, traced afresh.

    Parameters
    ----------
    family : str
        A key of `nest_core.workload.tracing.modules.FAMILIES`.
    """
    layers = {}
    for kind, build in FAMILIES[family].items():
        with torch.device("meta"):
            module, inputs = build(PRIMES), example(kind, PRIMES)
        layers[kind] = trace(module, inputs, PRIMES.symbols)
    return layers


def as_document(
    family: str,
    source: str,
    layers: Mapping[str, list[dict[str, Any]]],
    model: Mapping[str, int] | None = None,
) -> str:
    """A trace file's text, one node per line.

    Parameters
    ----------
    family : str
        What models call it.
    source : str
        What was traced.
    layers : mapping of str to list of dict
        Nodes by kind of layer.
    model : mapping of str to int, optional
        What the nodes leave open, where one model was traced and no family.
    """
    version = torch.__version__.partition("+")[0]
    fields = {"family": family, "torch": version, "source": source}
    head = json.dumps(fields if model is None else {**fields, "model": dict(model)}, indent=2)
    blocks = ",\n".join(
        f"    {json.dumps(kind)}: [\n"
        + ",\n".join(f"      {json.dumps(node)}" for node in nodes)
        + "\n    ]"
        for kind, nodes in layers.items()
    )
    return f'{head[:-2]},\n  "layers": {{\n{blocks}\n  }}\n}}\n'


def write_presets(folder: Path) -> list[Path]:
    """Write every family's trace into a folder; the paths written."""
    written = []
    for family in FAMILIES:
        path = folder / f"{family}.json"
        text = as_document(family, SOURCE, trace_family(family))
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
