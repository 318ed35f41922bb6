"""What a server does before its first visitor: it imports whatever pages need.

Modules of ours and of pandas import one another in circles. Several sessions that begin on a cold
server would import them from several ends at once, and then one finds a half-made module or waits
for another that waits for it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

__all__ = ["import_everything"]

_PACKAGES = ("nest_core", "nest_studio")
# Torch is not installed where the studio is served, and commands are no pages.
_NOT_SERVED = frozenset(
    {
        "nest_core.hardware.profiling",
        "nest_core.workload.tracing",
        "nest_studio.__main__",
        "nest_studio.cli",
        "nest_studio.commands",
    }
)
_LATE = (
    "plotly.graph_objects",
    "plotly.io",
    "plotly.offline",
    "sqlalchemy.dialects.sqlite",
    "streamlit.dataframe_util",
)
"""What libraries import only when they are first used."""


def import_everything() -> None:
    """Import the packages of the studio and what they use late; takes seconds, once."""
    for package in _PACKAGES:
        for name in _modules(package):
            importlib.import_module(name)
    for name in _LATE:
        importlib.import_module(name)


def _modules(package: str) -> Iterator[str]:
    """Return a package and its modules, parents first."""
    yield package
    folders = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(folders, f"{package}."):
        if module.name in _NOT_SERVED:
            continue
        if module.ispkg:
            yield from _modules(module.name)
        else:
            yield module.name
