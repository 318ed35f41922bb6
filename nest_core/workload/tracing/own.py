"""A person's own module: ``package.module:build`` to operator graphs.

``build()`` returns what to trace: ``(module, inputs)``, ``(module, inputs, sizes)`` with the
sizes that strategies may divide (``{"heads": 12, "ffn": 3072}``), or a mapping from kinds of
layers (embedding, block, moe_block, head) to such tuples, where a further number says how often
the layer stands in a row. It runs on PyTorch's meta device, so that nothing is allocated.

Importing runs the person's code: only the command line and Python come here.
"""

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nest_core.documents.errors import InputError, require
from nest_core.workload.graph import KINDS, SYMBOLS
from nest_core.workload.model_files import OF_THE_JOB
from nest_core.workload.tracing.tracer import trace

__all__ = ["OwnLayer", "as_document", "model_sizes", "trace_own"]

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_RETURNS = "(module, inputs), (module, inputs, sizes) or a mapping from kinds of layers to those"


@dataclass(frozen=True, slots=True)
class OwnLayer:
    """One distinct layer of a person's model.

    Parameters
    ----------
    kind : str
        One of `nest_core.workload.graph.KINDS`.
    count : int
        How often it stands in a row.
    nodes : list of dict
        As in a trace file.
    sizes : mapping of str to int
        What its symbols stand for.
    parameters : int
        Elements of its parameters, shared ones once.
    """

    kind: str
    count: int
    nodes: list[dict[str, Any]]
    sizes: Mapping[str, int]
    parameters: int


def trace_own(target: str, folder: Path) -> list[OwnLayer]:
    """Import, build and trace.

    Parameters
    ----------
    target : str
        ``package.module:build``.
    folder : pathlib.Path
        Where the package is looked for first.

    Raises
    ------
    InputError
        If any of the three fails, in one sentence.
    """
    built = _built(_imported(target, folder), target)
    if not isinstance(built, Mapping):
        sizes = built[2] if isinstance(built, tuple) and len(built) > 2 else {}
        built = {"moe_block" if "experts" in sizes else "block": built}
    require(built, target, f"must return {_RETURNS}", "an empty mapping", "name a layer")
    return [_layer(target, kind, entry) for kind, entry in built.items()]


def model_sizes(target: str, layers: Sequence[OwnLayer]) -> dict[str, int]:
    """Sizes of the model that its layers make up, and how many blocks it has.

    Raises
    ------
    InputError
        If layers give one size two values, or embedding or head stand more than once.
    """
    counts = dict.fromkeys(KINDS, 0) | {layer.kind: layer.count for layer in layers}
    for kind in ("embedding", "head"):
        require(
            counts[kind] <= 1,
            f"{target}() {kind}",
            "must stand once in a model",
            counts[kind],
            "correct it",
        )
    sizes = {"blocks": counts["block"] + counts["moe_block"], "dense_blocks": counts["block"]}
    if not counts["moe_block"]:
        del sizes["dense_blocks"]
    for layer in layers:
        for name in layer.sizes.keys() - OF_THE_JOB:
            require(
                sizes.setdefault(name, layer.sizes[name]) == layer.sizes[name],
                f"{target}() {layer.kind} sizes.{name}",
                f"must be {sizes[name]} in every layer",
                layer.sizes[name],
                "correct it",
            )
    return dict(sorted(sizes.items()))


def _imported(target: str, folder: Path) -> Callable[[], Any]:
    require(
        _TARGET.fullmatch(target),
        "MODEL",
        "must read package.module:build",
        target,
        "name a function",
    )
    name, _, path = target.partition(":")
    with _first_on_path(folder):
        try:
            part_object: Any = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # whatever importing it does
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and f"{name}.".startswith(f"{missing}."):
                raise InputError(
                    f"module {name}",
                    "must be importable",
                    "not found",
                    "run the command in the folder that holds it, or install it",
                ) from error
            raise InputError(
                f"module {name}", "must be importable", _line(error), "correct the module"
            ) from error
    for part in path.split("."):
        require(
            hasattr(part_object, part),
            f"module {name}",
            f"must have {path}",
            f"without {part}",
            "correct the name",
        )
        part_object = getattr(part_object, part)
    require(
        callable(part_object),
        target,
        "must be a function without arguments",
        type(part_object).__name__,
        f"let it return {_RETURNS}",
    )
    return part_object  # type: ignore[no-any-return]  # callable, as was just asked


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _built(build: Callable[[], Any], target: str) -> Any:
    """Return what build() returns: without memory where it can, in memory where it must."""
    try:
        with torch.device("meta"):
            return build()
    except (Exception, SystemExit):  # some read values, which the meta device lacks
        try:
            return build()
        except (Exception, SystemExit) as error:  # whatever the person's function raises
            raise InputError(
                f"{target}()", "must return a module", _line(error), "correct the function"
            ) from error


def _layer(target: str, kind: Any, entry: Any) -> OwnLayer:
    require(
        kind in KINDS,
        f"{target}()",
        f"must name layers {', '.join(KINDS)}",
        kind,
        "rename the layer",
    )
    require(
        isinstance(entry, tuple) and 2 <= len(entry) <= 4,
        f"{target}()",
        f"must return {_RETURNS}",
        _kind_of(entry),
        "return a tuple",
    )
    module, inputs, *rest = entry
    sizes = _sizes(target, rest[0] if rest else {})
    count = rest[1] if len(rest) > 1 else 1
    require(
        isinstance(module, nn.Module),
        f"{target}()",
        "must return a torch.nn.Module first",
        _kind_of(module),
        f"return {_RETURNS}",
    )
    require(
        not isinstance(count, bool) and isinstance(count, int) and (1 <= count <= 2000),
        f"{target}() {kind}",
        "must stand 1 to 2,000 times in a row",
        count,
        "correct it",
    )
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    require(
        any(isinstance(tensor, torch.Tensor) for tensor in given),
        f"{target}()",
        "must return example inputs second, tensors",
        _kind_of(inputs),
        f"return {_RETURNS}",
    )
    parameters = sum(tensor.numel() for tensor in module.parameters())
    return OwnLayer(kind, count, trace(module, given, sizes), sizes, parameters)


def _sizes(target: str, given: Any) -> dict[str, int]:
    require(
        isinstance(given, Mapping),
        f"{target}()",
        "must return sizes third, a dictionary",
        _kind_of(given),
        'write {"heads": 12, "ffn": 3072}',
    )
    for name, size in given.items():
        require(
            name in SYMBOLS,
            f"{target}() sizes",
            f"must be of {', '.join(SYMBOLS)}",
            name,
            "rename the size",
        )
        require(
            not isinstance(size, bool) and isinstance(size, int) and (size >= 2),
            f"{target}() sizes.{name}",
            "must be a whole number of 2 or more",
            size,
            "leave it out where it is 1",
        )
        twin = next((other for other in given if other != name and given[other] == size), None)
        require(
            twin is None,
            f"{target}() sizes.{name}",
            f"must differ from {twin}",
            size,
            "build the module at sizes that are told apart, primes best of all",
        )
    return dict(given)


def _kind_of(value: Any) -> str:
    return f"of {len(value)} entries" if isinstance(value, tuple) else type(value).__name__


def _line(error: BaseException) -> str:
    try:
        text = str(error).strip().splitlines()
    except Exception:  # a person's exception may have no words
        text = []
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def as_document(
    family: str,
    source: str,
    layers: Mapping[str, list[dict[str, Any]]],
    model: Mapping[str, int] | None = None,
) -> str:
    """Return a trace file's text, one node per line.

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
    fields = {"family": family, "torch": torch.__version__.partition("+")[0], "source": source}
    head = json.dumps(fields if model is None else {**fields, "model": dict(model)}, indent=2)
    blocks = ",\n".join(
        f"    {json.dumps(kind)}: [\n"
        + ",\n".join(f"      {json.dumps(node)}" for node in nodes)
        + "\n    ]"
        for kind, nodes in layers.items()
    )
    return f'{head[:-2]},\n  "layers": {{\n{blocks}\n  }}\n}}\n'
