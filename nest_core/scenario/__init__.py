"""What people write becomes what the core works on: scenarios, jobs, titles."""

from nest_core.scenario.scenario import (
    OF_PRICES,
    Scenario,
    expanded,
    fabric_document,
    load_fabric,
    load_scenario,
    resolve_scenario,
    scenario_document,
)

__all__ = [
    "OF_PRICES",
    "Scenario",
    "expanded",
    "fabric_document",
    "load_fabric",
    "load_scenario",
    "resolve_scenario",
    "scenario_document",
]
