"""A study's file, ``schema = 1``: what is planned, what varies, what is asked of every point."""

import itertools
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from nest_core.documents.schema.checking import Count, Name, Positive, SchemaTable, must
from nest_core.documents.schema.fabric import Oversubscribe, Ratio

__all__ = [
    "METRICS",
    "MOST_VALUES",
    "AxisTable",
    "BoundTable",
    "DesignTable",
    "MemberTable",
    "NodeTable",
    "RangeTable",
    "StudyFile",
]

Metric = Literal[
    "tokens_per_s",
    "iteration_time_s",
    "mfu",
    "bubble",
    "memory_GiB",
    "network_usd",
    "network_kW",
    "tokens_per_s_per_network_usd",
    "tokens_per_s_per_network_W",
    "worst_loss",
    "effective_tokens_per_s",
    "iteration_s",  # as files of before call it
]
Goal = Literal["days", "tokens_per_network_usd", "tokens_per_usd", "tokens_per_W"]
"""What the answer of a design is sorted by."""
METRICS: tuple[Metric, ...] = get_args(Metric)
"""Every figure that a point may be asked for; units stand in the names."""
Value = int | float | Annotated[str, Field(max_length=200)]
MOST_VALUES = 10_000


class RangeTable(SchemaTable):
    """Values from one to another, both ends included, by steps or by factors."""

    start: float = Field(alias="from")
    stop: float = Field(alias="to")
    step: Positive | None = None
    factor: Annotated[float, Field(gt=1, le=1e6)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        must(
            (self.step is None) != (self.factor is None),
            "a range with a step or a factor, not both",
        )
        rises = self.stop >= self.start and (self.factor is None or self.start > 0)
        must(rises, "a range that goes up, from above 0 where by a factor")
        return self


class AxisTable(SchemaTable):
    """One of ``[[axes]]``: a parameter with its values or range, or designs by name."""

    parameter: Name | None = None
    values: Annotated[list[Value], Field(min_length=1, max_length=MOST_VALUES)] | None = None
    range: RangeTable | None = None
    designs: Annotated[list[Name], Field(min_length=1, max_length=1000)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [self.values is not None, self.range is not None, self.designs is not None]
        must(
            sum(given) == 1 and (self.parameter is None) == (self.designs is not None),
            "a parameter with values or a range, or designs alone",
        )
        return self


class MemberTable(SchemaTable):
    """One of ``[[mix]]``: a scenario, and its weight, the tokens that it trains."""

    scenario: Name
    weight: Positive = 1.0


class BoundTable(SchemaTable):
    """What a metric must be at least, at most, or both."""

    least: float | None = Field(default=None, alias="min")
    most: float | None = Field(default=None, alias="max")


class NodeTable(SchemaTable):
    """One of ``[[design.nodes]]``: what a node is; what it does not say is as the scenario has it.

    NICs of each device stay as many, unless it states those of the node.
    """

    accelerator: Name | None = None
    devices_per_node: Count | None = None
    scale_up_GBps: Positive | None = None
    nics_per_node: Count | None = None


class DesignTable(SchemaTable):
    """``[design]``: which fabrics may be bought, with what money, and what for."""

    families: Annotated[list[Name], Field(min_length=1, max_length=16)]
    ratios: Annotated[list[Ratio], Field(min_length=1, max_length=64)] = [1.0]
    outer_ratios: Annotated[list[Ratio], Field(min_length=1, max_length=64)] = [1.0]
    oversubscribe: Annotated[list[Oversubscribe], Field(min_length=1, max_length=2)] = [
        "remove_uplinks"
    ]
    tiers: Annotated[list[Literal[1, 2, 3]], Field(max_length=3)] = []
    devices: Annotated[list[Count], Field(min_length=1, max_length=64)] | None = None
    nodes: Annotated[list[NodeTable], Field(min_length=1, max_length=16)] = [NodeTable()]
    nics_per_node: Annotated[list[Count], Field(min_length=1, max_length=16)] | None = None
    nic_GBps: Annotated[list[Positive], Field(min_length=1, max_length=16)] | None = None
    radix: Annotated[list[Count], Field(min_length=1, max_length=16)] | None = None
    optics: Annotated[list[dict[Name, Name]], Field(min_length=1, max_length=16)] = [{}]
    phases: Annotated[list[Count], Field(max_length=8)] = []
    goal: Goal = "days"
    max_usd: Positive | None = None
    max_kW: Positive | None = None
    max_racks: Count | None = None
    max_cable_m: Positive | None = None
    max_loss: Annotated[float, Field(ge=0, le=1)] = 0.1
    tokens_T: Positive | None = None

    @model_validator(mode="after")
    def _growing(self) -> Self:
        phases, one_ratio = self.phases, len(self.outer_ratios) <= 1
        must(all(a < b for a, b in itertools.pairwise(phases)), "a design whose phases grow")
        must(not phases or self.devices is None, "a design with devices or with phases, not both")
        must(len(phases) <= 1 or one_ratio, "a design with one outer ratio where it has phases")
        return self


class StudyFile(SchemaTable):
    """A study: the product of its axes, every point planned for the scenario or for the mix; or
    the fabrics of ``[design]``, of which those that no other beats are sought.
    """

    version: Literal[1] = Field(alias="schema")
    name: Name
    question: Annotated[str, Field(max_length=1000)] = ""
    scenario: Name | None = None
    mix: Annotated[list[MemberTable], Field(max_length=12)] = []
    overrides: dict[Name, Any] = {}
    axes: Annotated[list[AxisTable], Field(max_length=8)] = []
    design: DesignTable | None = None
    metrics: Annotated[list[Metric], Field(min_length=1)] = list(METRICS[:7])
    constraints: dict[Metric, BoundTable] = {}

    @model_validator(mode="after")
    def _one_base(self) -> Self:
        must((self.scenario is None) == bool(self.mix), "a study with a scenario or a mix of them")
        must(
            bool(self.axes) == (self.design is None),
            "a study with axes, or with a design, not both",
        )
        return self
