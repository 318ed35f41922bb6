"""Hosts of an allocation in the order of a plan's nodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nest_core.api.price import Given, priced_plans
from nest_core.api.scenario import Named, load
from nest_core.costs import Report
from nest_core.documents import InputError, read_text
from nest_core.interop.exporters import place_job
from nest_core.interop.exporters.shapes import allocation_shapes
from nest_core.scenario import Scenario

__all__ = ["HostOrder", "place_on"]


@dataclass(frozen=True, slots=True)
class HostOrder:
    """Hosts of an allocation in the order of a plan's nodes.

    Parameters
    ----------
    report : Report
        The plan as it was priced.
    shapes : dict
        What other allocations cost, see `nest_core.interop.exporters.shapes`.
    placement : place_job.OrderedHosts
    """

    report: Report
    shapes: dict[str, Any]
    placement: place_job.OrderedHosts

    def text(self, form: str = "ranks") -> str:
        """Return a host per rank (``ranks``), per node (``nodes``), or Open MPI's ``rankfile``."""
        return place_job.written(self.shapes, self.placement.hosts, form)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio place --got --json``."""
        loss = self.placement.loss
        planned_s = self.report.iteration_s
        return {
            "plan": self.report.plan.to_json(),
            "hosts": self.placement.hosts,
            "ranks": self.text().split(),
            "cut": self.placement.cut,
            "loss": loss,
            "planned_iteration_time_s": planned_s,
            "iteration_time_s": None if loss is None else planned_s * (1 + loss),
            "said": self.placement.words,
            "output": None,
        }

    def __str__(self) -> str:
        return f"{self.text('nodes')}{self.placement.words}"


def place_on(
    scenario: Scenario | Named,
    got: str | Path,
    plan: Given | None = None,
    *,
    placement: str | Path | None = None,
) -> HostOrder:
    """Order the hosts that a job got so that a plan's groups lie as planned, and price it.

    Parameters
    ----------
    got : str or Path
        A file with a line per node, its name and the switches above it as ``spine.leaf1.n1``, as
        Slurm's ``SLURM_TOPOLOGY_ADDR`` has them; lines of ``scontrol show topology`` may follow.
    plan, placement : optional
        As `export` takes them.

    Raises
    ------
    InputError
        If it is no plan of this scenario, or no allocation that the plan could run on.
    """
    values = load(scenario).values
    lines = read_text(Path(got)).splitlines()
    report, others = priced_plans(values, plan, placement)
    shapes = allocation_shapes(values, report, others)
    try:
        return HostOrder(report, shapes, place_job.place(shapes, lines))
    except place_job.AllocationError as error:
        raise InputError("got", error.rule, error.value, error.remedy) from error
