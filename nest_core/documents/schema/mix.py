"""A mix file, ``schema = 1``: jobs that share a fabric, and how they are placed."""

from typing import Annotated, Any, Literal

from pydantic import Field

from nest_core.documents.schema.checking import Count, Name, SchemaTable

__all__ = ["MixFile", "MixJobTable"]

DeviceNumber = Annotated[int, Field(ge=0, lt=1_048_576)]
Jobs = Annotated[list["MixJobTable"], Field(min_length=2, max_length=8)]


class MixJobTable(SchemaTable):
    """One of ``[[job]]``: a scenario, whose fabric is the mix's, and its devices.

    ``devices`` are how many, or which, numbered as the fabric numbers them.
    """

    name: Name
    scenario: Name | dict[str, Any]
    overrides: dict[Name, Any] = {}
    devices: Count | Annotated[list[DeviceNumber], Field(min_length=1)]
    plan: Annotated[str, Field(max_length=4096)] = ""


class MixFile(SchemaTable):
    """Two to eight jobs on a fabric; without ``fabric`` that of the first job's scenario."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    fabric: Name | dict[str, Any] | None = None
    placement: Literal["by_hand", "packed", "spread", "joint"] = "packed"
    job: Jobs
