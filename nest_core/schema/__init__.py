"""The files people write, checked key by key: fabric and scenario, ``schema = 1``.

The pydantic models (`tables`) mirror ``README.md``, "Files"; human units stand in the keys.
`checked` turns pydantic's findings into one sentence about the first of them.
"""

from nest_core.schema.checking import MAX_DEPTH, check_plain, checked
from nest_core.schema.tables import (
    LONGEST_NAME,
    AcceleratorFile,
    FabricFile,
    LevelTable,
    Name,
    Range,
    ScenarioFile,
    SearchTable,
    WorkloadTable,
)

__all__ = [
    "LONGEST_NAME",
    "MAX_DEPTH",
    "AcceleratorFile",
    "FabricFile",
    "LevelTable",
    "Name",
    "Range",
    "ScenarioFile",
    "SearchTable",
    "WorkloadTable",
    "check_plain",
    "checked",
]
