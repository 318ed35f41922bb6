"""Packages that cannot be had without a GPU's compiler, as far as configurations ask for them.

Every name of theirs is an empty class. An H100 is posed; `typing.override`, which Python has from
3.12 on, stands in for itself. A program imports this module before its tool.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import typing
from types import SimpleNamespace

import torch

ABSENT = ("transformer_engine", "megatron.energon", "modelopt", "nvidia_resiliency_ext")

if not hasattr(typing, "override"):
    typing.override = lambda method: method
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(major=9, minor=0, name="NVIDIA H100")


class Empty(type):
    """A class whose missing attributes are such classes."""

    def __getattr__(cls, name: str) -> "Empty":
        if name.startswith("_"):
            raise AttributeError(name)
        return Empty(name, (torch.nn.Module,), {"__module__": cls.__module__})


class EmptyModule(types.ModuleType):
    """A package whose names are `Empty` classes."""

    __path__: typing.ClassVar[list[str]] = []
    __version__ = "2.12.0"

    def __getattr__(self, name: str) -> Empty:
        if name.startswith("_"):
            raise AttributeError(name)
        return Empty(name, (torch.nn.Module,), {"__module__": self.__name__})


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `ABSENT` packages and what is in them."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Return an empty package's."""
        absent = any(name == package or name.startswith(package + ".") for package in ABSENT)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return it."""
        return EmptyModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it empty."""


class FusedAdam:
    """Transformer Engine's, which Megatron Core asks for the names of its arguments."""

    def __init__(
        self,
        master_weight_dtype: object,
        exp_avg_dtype: object,
        exp_avg_sq_dtype: object,
        use_decoupled_grad: object,
    ) -> None: ...


sys.meta_path.append(Absent())
importlib.import_module("transformer_engine.pytorch.optimizers").FusedAdam = FusedAdam
