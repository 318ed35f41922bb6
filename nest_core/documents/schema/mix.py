"""A mix file, ``schema = 1``: jobs that share a fabric, one by one or as a population."""

from typing import Annotated, Any, Literal

from pydantic import Field

from nest_core.documents.schema.checking import Count, Name, SchemaTable

__all__ = ["MixFile", "PopulationFile", "PopulationTable", "RunTable"]

DeviceNumber = Annotated[int, Field(ge=0, lt=1_048_576)]
Ratio = Annotated[float, Field(ge=0.1, le=64)]


class RunTable(SchemaTable):
    """What jobs run: a scenario, whose fabric is the file's."""

    scenario: Name | dict[str, Any]
    overrides: dict[Name, Any] = {}


class MixJobTable(RunTable):
    """One of ``[[job]]``: ``devices`` are how many, or which, numbered as the fabric does."""

    name: Name
    devices: Count | Annotated[list[DeviceNumber], Field(min_length=1)]
    plan: Annotated[str, Field(max_length=4096)] = ""

    @property
    def number(self) -> int:
        """How many devices it has."""
        return self.devices if isinstance(self.devices, int) else len(self.devices)


class SizeTable(SchemaTable):
    """One of ``[[population.jobs]]``: those of so many devices, and their part of GPU-hours."""

    devices: Count
    share: Annotated[float, Field(gt=0, le=1e18)]


class PopulationTable(RunTable):
    """``[population]``: jobs that come and go, all with the scenario's batch per device.

    ``jobs`` is what ``sacct -P`` printed, or their sizes. ``segment`` is that of Slurm's sbatch, in
    nodes, and ``ratios`` are of the leaves' uplinks.
    """

    jobs: Name | Annotated[list[SizeTable], Field(min_length=1, max_length=64)]
    source: Annotated[str, Field(max_length=600)] = ""
    placement: Literal["tree", "block"] = "tree"
    segment: Count | None = None
    ratios: Annotated[list[Ratio], Field(min_length=1, max_length=8)] = [1.0, 2.0, 4.0]
    seed: Annotated[int, Field(ge=0)] = 0


class SharedFabricFile(SchemaTable):
    """What both have; without ``fabric`` that of the first scenario."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    fabric: Name | dict[str, Any] | None = None


class MixFile(SharedFabricFile):
    """Two to eight jobs on a fabric."""

    placement: Literal["by_hand", "packed", "spread", "joint"] = "packed"
    job: Annotated[list[MixJobTable], Field(min_length=2, max_length=8)]


class PopulationFile(SharedFabricFile):
    """Jobs of a cluster that come and go."""

    population: PopulationTable
