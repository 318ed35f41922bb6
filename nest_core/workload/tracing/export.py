"""Modules to PyTorch's exported graphs, on the meta device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from nest_core.documents.errors import InputError

__all__ = ["export"]


def export(module: nn.Module, inputs: Sequence[Any]) -> torch.export.ExportedProgram:
    """The exported program of a module, which is left as it was.

    Raises
    ------
    InputError
        If its forward fails or cannot be exported.
    """
    with _on_meta(module), torch.device("meta"):
        return _export(module, tuple(_meta(tensor) for tensor in inputs))


@contextmanager
def _on_meta(module: nn.Module) -> Iterator[None]:
    """The module's tensors without memory, and as they were afterwards."""
    originals: list[tuple[dict[str, Any], str, Any]] = []
    replaced: dict[int, Any] = {}
    for part in module.modules():
        for store in (part._parameters, part._buffers):
            for name, tensor in store.items():
                if tensor is None or tensor.is_meta:
                    continue
                originals.append((store, name, tensor))
                if id(tensor) not in replaced:
                    thin = tensor.detach().to("meta")
                    replaced[id(tensor)] = (
                        nn.Parameter(thin, tensor.requires_grad)
                        if isinstance(tensor, nn.Parameter)
                        else thin
                    )
                store[name] = replaced[id(tensor)]
    try:
        yield
    finally:
        for store, name, tensor in originals:
            store[name] = tensor


def _meta(value: Any) -> Any:
    return value.detach().to("meta") if isinstance(value, Tensor) else value


def _export(module: nn.Module, inputs: tuple[Any, ...]) -> torch.export.ExportedProgram:
    try:
        return torch.export.export(module, inputs)
    except Exception as error:  # whatever the person's forward or the exporter raises
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            f"module {type(module).__name__}",
            "must be traceable by torch.export on the meta device",
            f"{type(error).__name__}: {first}",
            "avoid branches on tensor values and operators without shapes, and check the inputs",
        ) from error
