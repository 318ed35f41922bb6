"""Plans in the words of other programs: launch arguments, rank order and host files.

Each target is a pure function of a scenario and a priced plan that gives `ExportFiles`, or raises
`ExportRefused` with one sentence where the program cannot express the plan; `releases` names
the release that its options were checked against.
"""

from collections.abc import Callable, Mapping, Sequence

from nest_core.costs import NO_OFFLOAD, Plan, Report
from nest_core.interop.exporters import (
    astra_sim,
    deepspeed,
    maxtext,
    megatron,
    nemo,
    slurm,
    torchtitan,
)
from nest_core.interop.exporters.releases import RELEASES
from nest_core.interop.exporters.values import ExportFiles, ExportRefused, refuse_first
from nest_core.scenario import ScenarioValues

__all__ = ["RELEASES", "TARGETS", "ExportFiles", "ExportRefused", "export_plan"]

TARGETS: Mapping[str, Callable[[ScenarioValues, Report], ExportFiles]] = {
    "megatron": megatron.export_megatron,
    "nemo": nemo.export_nemo,
    "deepspeed": deepspeed.export_deepspeed,
    "torchtitan": torchtitan.export_torchtitan,
    "maxtext": maxtext.export_maxtext,
    "slurm": slurm.export_slurm,
    "astra-sim": astra_sim.export_astra_sim,
}
"""Every target by the name that ``nest-studio export --to`` takes."""

_OFFLOADING = ("megatron", "deepspeed", "slurm")
"""Those that say what is on the host; Slurm starts any program."""


def export_plan(
    target: str, scenario: ScenarioValues, report: Report, others: Sequence[Plan] = ()
) -> ExportFiles:
    """Return the files of a priced plan for one target.

    Parameters
    ----------
    others : sequence of Plan
        The next best, of which one may lose less where a job gets other nodes than planned.

    Raises
    ------
    Refused
        If the target cannot express the plan.
    InputError
        If there is no such target.
    """
    refuse_first(
        (
            report.plan.ragged,
            "plan.stage_strategies",
            "must give every stage as many devices, as no framework launches others",
            ", ".join(map(str, report.plan.widths)),
            "plan without unequal widths",
        ),
        (
            report.plan.offload != NO_OFFLOAD and target not in _OFFLOADING,
            "plan.offload",
            f"must be none for {RELEASES[target]}, whose export has nothing on the host",
            report.plan.offload.words,
            "pin search.offload to none",
        ),
    )
    if target == "slurm":
        return slurm.export_slurm(scenario, report, others)
    return TARGETS[target](scenario, report)
