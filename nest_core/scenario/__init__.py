"""What people write becomes what the core works on: scenarios, jobs, titles."""

from nest_core.scenario.document import (
    Scenario,
    accelerator_title,
    as_written,
    fabric_title,
    file_stem,
    load_scenario,
    scenario_or_fabric,
    scenario_title,
)
from nest_core.scenario.values import (
    OF_FAILURES,
    OF_PRICES,
    ScenarioValues,
    expanded,
    fabric_document,
    load_fabric,
    scenario_document,
)

__all__ = [
    "OF_FAILURES",
    "OF_PRICES",
    "Scenario",
    "ScenarioValues",
    "accelerator_title",
    "as_written",
    "expanded",
    "fabric_document",
    "fabric_title",
    "file_stem",
    "load_fabric",
    "load_scenario",
    "scenario_document",
    "scenario_or_fabric",
    "scenario_title",
]
