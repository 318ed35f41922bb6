"""Nest Studio as a library: fabrics, training jobs, and the plan that is proven best for them.

``import nest_core as nest`` and use what stands in `__all__`; that is what keeps its meaning from
version to version. Every other module is private by convention, whatever its name: it may change
with any version.

Examples
--------
>>> import nest_core as nest
>>> scenario = nest.load("llama2-7b-64-h100").with_(oversubscription=[2.0])
>>> plan = nest.plan(scenario)
>>> plan.best.plan.point.devices_used, plan.result.certificate.proven
(64, True)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nest_core.api.answer import Answer, plan
    from nest_core.api.calibrate import calibrate
    from nest_core.api.compiler import compiled
    from nest_core.api.export import export, next_runs
    from nest_core.api.goodput import goodput
    from nest_core.api.levels import levels
    from nest_core.api.mixes import mix
    from nest_core.api.place import place_on
    from nest_core.api.price import place, price
    from nest_core.api.scenario import (
        list_presets,
        load,
        load_accelerator,
        load_fabric,
        load_model,
    )
    from nest_core.api.simulate import simulate
    from nest_core.api.studies import compare, design, ratios, study, sweep
    from nest_core.documents.errors import InputError
    from nest_core.scenario import Scenario

__all__ = [
    "Answer",
    "InputError",
    "Scenario",
    "calibrate",
    "compare",
    "compiled",
    "design",
    "export",
    "goodput",
    "levels",
    "list_presets",
    "load",
    "load_accelerator",
    "load_fabric",
    "load_model",
    "mix",
    "next_runs",
    "place",
    "place_on",
    "plan",
    "price",
    "ratios",
    "simulate",
    "study",
    "sweep",
]

_HOMES = {
    "Answer": "api.answer",
    "InputError": "documents.errors",
    "Scenario": "scenario",
    "calibrate": "api.calibrate",
    "compare": "api.studies",
    "compiled": "api.compiler",
    "design": "api.studies",
    "export": "api.export",
    "goodput": "api.goodput",
    "levels": "api.levels",
    "list_presets": "api.scenario",
    "load": "api.scenario",
    "load_accelerator": "api.scenario",
    "load_fabric": "api.scenario",
    "load_model": "api.scenario",
    "mix": "api.mixes",
    "next_runs": "api.export",
    "place": "api.price",
    "place_on": "api.place",
    "plan": "api.answer",
    "price": "api.price",
    "ratios": "api.studies",
    "simulate": "api.simulate",
    "study": "api.studies",
    "sweep": "api.studies",
}

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The API on first use: `nest_core` itself imports nothing, so that commands start at once."""
    if name in _HOMES:
        return getattr(import_module(f"nest_core.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
