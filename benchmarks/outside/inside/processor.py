"""Megatron Core on a processor: what it asks of a GPU is answered.

A program imports this module before its tool.
"""

import contextlib
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

if not hasattr(typing, "override"):
    typing.override = lambda method: method
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(major=9, minor=0, name="NVIDIA H100")
torch.cuda.current_device = lambda: torch.device("cpu")
torch.cuda.device_count = lambda: 1
torch.cuda.set_device = lambda *_: None
torch.cuda.synchronize = lambda *_: None
torch.cuda.get_rng_state = lambda *_: torch.get_rng_state()
torch.cuda.manual_seed = torch.manual_seed
torch.cuda.stream = lambda _: contextlib.nullcontext()
torch.cuda.current_stream = lambda *_: Idle()


class Idle:
    """A stream, or an event in one, where nothing waits."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, _: str) -> Callable[..., "Idle"]:
        return lambda *_: self


torch.cuda.Stream = torch.cuda.Event = Idle


class OnProcessor(TorchFunctionMode):
    """Makes tensors on the processor that are asked for on a GPU, and calls them the GPU's."""

    def __torch_function__(self, function: Any, _: Any, args: Any = (), fields: Any = None) -> Any:
        """Return what a function of PyTorch does."""
        if function is torch.Tensor.cuda:
            return args[0]
        fields = dict(fields or {})
        if "cuda" in str(fields.get("device")):
            fields["device"] = "cpu"
        answer = function(*args, **fields)
        if function is torch.Tensor.type and isinstance(answer, str):
            return answer.replace("torch.", "torch.cuda.")
        return answer
