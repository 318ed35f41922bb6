"""The files people write, checked key by key: fabric and scenario, ``schema = 1``.

The pydantic models (`fabric`, `scenario`, `search`) mirror ``docs/files.md``; human units stand in
the keys. `checked` turns pydantic's findings into one sentence about the first of them; `parameter`
is what the tables say of a key.
"""

from nest_core.documents.schema.checking import (
    LONGEST_NAME,
    MAX_DEPTH,
    Name,
    SchemaTable,
    check_plain,
    checked,
    label,
)
from nest_core.documents.schema.fabric import FabricFile, LevelTable
from nest_core.documents.schema.parameters import (
    Parameter,
    fabric_key,
    in_labels,
    names_of,
    parameter,
    settings_in,
)
from nest_core.documents.schema.scenario import (
    AcceleratorFile,
    Range,
    ScenarioFile,
    SearchTable,
    StackFile,
    StudyTable,
    WorkloadTable,
    add_kind,
)

__all__ = [
    "LONGEST_NAME",
    "MAX_DEPTH",
    "AcceleratorFile",
    "FabricFile",
    "LevelTable",
    "Name",
    "Parameter",
    "Range",
    "ScenarioFile",
    "SchemaTable",
    "SearchTable",
    "StackFile",
    "StudyTable",
    "WorkloadTable",
    "add_kind",
    "check_plain",
    "checked",
    "fabric_key",
    "in_labels",
    "label",
    "names_of",
    "parameter",
    "settings_in",
]
