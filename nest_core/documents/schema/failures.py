"""Failure files: events that somebody counted, with their exposure, and what recovery takes.

A rate is never written: it follows from events, units and days, so that its uncertainty is known.
What a source does not say is an assumption, and its ``source`` says so.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nest_core.documents.schema.checking import Count, Name, NotNegative, SchemaTable, label, must

__all__ = ["CauseTable", "FailureFile", "RecoveryTable", "StatedFigure"]

_Source = Annotated[str, Field(min_length=1, max_length=600)]
_Exposure = Annotated[float, Field(ge=1e-3, le=1e12)]


class CauseTable(SchemaTable):
    """``[[cause]]``: failures of one kind that somebody counted."""

    name: Name
    strikes: Annotated[
        Literal["device", "host", "nic", "link", "switch", "job"],
        label("strikes", "What the exposure counts; job: the training job itself."),
    ]
    events: NotNegative
    units: Annotated[_Exposure, label("units", "Parts that were watched, or jobs.")]
    days: Annotated[_Exposure, label("days", "That each of them was watched.")]
    job_devices: Annotated[
        Count | None,
        label(
            "devices of the job",
            "Of a job's failures: in proportion to its devices; empty: alike for any job.",
        ),
    ] = None
    counted: Annotated[
        bool, label("counted", "False where a source prints a rate and no count.")
    ] = True
    takes_host: Annotated[
        bool | None,
        label(
            "takes its host",
            "Whether the host is repaired and a spare takes over; empty: for device, host and NIC.",
        ),
    ] = None
    source: Annotated[str, Field(max_length=600)] = ""

    @model_validator(mode="after")
    def _of_a_job(self) -> Self:
        must(
            self.job_devices is None or self.strikes == "job",
            "without job_devices unless it strikes a job",
        )
        return self

    @property
    def needs_spare(self) -> bool:
        """Whether a host is lost until it is repaired."""
        usual = self.strikes in ("device", "host", "nic")
        return usual if self.takes_host is None else self.takes_host


class StatedFigure(SchemaTable):
    """A figure and who says so, or that it is assumed."""

    value: NotNegative
    source: _Source


class _Duration(StatedFigure):
    value: Annotated[float, Field(ge=0, le=1e8)]


class _Hours(StatedFigure):
    value: Annotated[float, Field(ge=1e-3, le=1e6)]


class _Bandwidth(StatedFigure):
    value: Annotated[float, Field(ge=1e-6, le=1e9)]


class _Share(StatedFigure):
    value: Annotated[float, Field(ge=0, le=1)]


class RecoveryTable(SchemaTable):
    """``[recovery]``: what a failure costs beyond the work that it loses."""

    detection_s: _Duration
    restart_s: Annotated[
        _Duration, label("restart", "Without reading the checkpoint, which is computed.")
    ]
    repair_hours: _Hours
    write_GBps_per_host: _Bandwidth
    write_GBps_store: Annotated[_Bandwidth, label("store", "Of the whole store at once.")]
    copy_GBps_per_host: Annotated[
        _Bandwidth | None,
        label("copy", "To host memory, while training waits; empty: training waits for writes."),
    ] = None
    interval_s: Annotated[
        _Duration | None, label("interval", "Between saves; empty: the best for availability.")
    ] = None
    spare_hosts: Annotated[_Share, label("spare hosts", "Over those used.", "share")]
    when_exhausted: Annotated[
        Literal["wait", "fewer_replicas"],
        label("without spares", "Wait for a repair, or train on with fewer replicas."),
    ] = "wait"


class FailureFile(SchemaTable):
    """A checked failure file."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    source: _Source
    notes: list[_Source] = Field(default=[], max_length=20)
    complete: Annotated[
        bool,
        label("complete", "Whether its causes are all, and none of its base's are added."),
    ] = False
    cause: list[CauseTable] = Field(max_length=200)
    recovery: RecoveryTable
