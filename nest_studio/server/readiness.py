"""What a server does before its first visitor: it imports whatever pages need.

Modules of ours and of pandas import one another in circles. Several sessions that begin on a cold
server would import them from several ends at once, and then one finds a half-made module or waits
for another that waits for it.
"""

import importlib
import pkgutil

__all__ = ["import_everything"]

_PACKAGES = ("nest_core", "nest_studio")
# Neither torch nor JAX is installed where the studio is served, and commands are no pages.
_NOT_SERVED = (
    "nest_core.calibration.compiler.program",
    "nest_core.hardware.profiling",
    "nest_core.workload.tracing",
    "nest_studio.__main__",
    "nest_studio.cli",
    "nest_studio.commands",
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
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            if not module.name.startswith(_NOT_SERVED):
                importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
